"""What people see of a review: the comment, the terminal, the page. Small, quiet, and nobody's
markup but ours."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from html.parser import HTMLParser
from typing import Any

import pytest

from gputier.lock import read_lock
from gputier.review import words
from gputier.review.comment import (
    LIMIT,
    SIZES,
    code,
    comment,
    marker,
    rendered,
    safe,
)
from gputier.review.document import document
from gputier.review.page import page
from gputier.review.preview import Change, Preview, Violation
from gputier.review.read import read
from gputier.review.review import Beside, Review, review
from gputier.review.risk import Risk
from gputier.review.text import WIDTH, text
from tests.conftest import ROOT
from tests.review.test_read import SAMPLES
from tests.review.worlds import catalog, known, state

INSTANCE = "aws:ec2/instance:Instance"
Golden = Callable[[str, str], None]


def sample(name: str) -> Preview:
    return read((SAMPLES / f"{name}.json").read_bytes(), name)


def destroyed() -> Preview:
    """The prod stack as `pulumi destroy` previews it."""
    export = sample("prod-export")
    gone = {urn: one._replace(op="delete", after=None) for urn, one in export.changes.items()}
    return export._replace(kind="digest", changes=gone)


def replaced() -> Preview:
    """The prod stack where the desktop's machine gets other user data, and goes for that."""
    export = sample("prod-export")
    urn = next(urn for urn in export.changes if urn.endswith("::desktops-machine"))
    before = export.changes[urn].after
    assert before
    after = before._replace(inputs={**before.inputs, "userDataBase64": "bmV3"})
    paths, forced = {"userDataBase64": "update"}, ("userDataBase64",)
    change = Change(urn, before.type, "replace", before, after, paths, forced)
    return export._replace(kind="digest", changes={urn: change})


REVIEWS: dict[str, Callable[[], Review]] = {
    "create": lambda: review(sample("create"), catalog()),
    "update": lambda: review(sample("prod-change"), catalog(), Beside(sample("prod-export"))),
    "replace": lambda: review(sample("replace"), catalog()),
    "destroy": lambda: review(destroyed(), catalog()),
    "replaced": lambda: review(replaced(), catalog(), Beside(sample("prod-export"))),
    "nothing": lambda: review(sample("noop"), catalog()),
    "failed": lambda: review(sample("bad-argument"), catalog()),
}


@pytest.mark.parametrize("name", REVIEWS)
def test_each_kind_of_change_has_its_comment(name: str, golden: Golden) -> None:
    golden(f"review/{name}.md", comment(REVIEWS[name]()))


@pytest.mark.parametrize("name", ["update", "failed"])
def test_a_terminal_is_told_the_same_in_columns(name: str, golden: Golden) -> None:
    golden(f"review/{name}.txt", text(REVIEWS[name]()) + "\n")


@pytest.mark.parametrize("width", [60, WIDTH, 120])
@pytest.mark.parametrize("name", REVIEWS)
def test_a_screen_is_as_wide_as_the_terminal(name: str, width: int) -> None:
    head, *lines = text(REVIEWS[name](), width).splitlines()
    assert head
    assert [line for line in lines[:-1] if len(line) > width] == []


def test_a_reason_stands_behind_its_row_where_there_is_room_and_else_below() -> None:
    found = REVIEWS["update"]()
    reason = "p5en.48xlarge → p4de.24xlarge, 4 → 6 machines"
    assert any(line.endswith(f"−$97,049  {reason}") for line in text(found, 120).splitlines())
    assert f"    {reason}" in text(found, 80).splitlines()


def test_the_document_is_a_contract(golden: Golden) -> None:
    found = document(REVIEWS["update"]())
    golden("review/update.json", json.dumps(found, indent=1, sort_keys=True) + "\n")
    totals = found["totals"]
    assert totals["delta_usd_per_month"] == pytest.approx(
        totals["after_usd_per_month"] - totals["before_usd_per_month"], abs=0.011
    )


def machine(name: str, type_: str = "g6.xlarge", **more: Any) -> Change:
    made = state(INSTANCE, name, instanceType=type_, region="us-east-1", **more)
    return Change(made.urn, INSTANCE, "create", None, made, {}, ())


def of(*changes: Change, **more: Any) -> Review:
    steps = {change.urn: change for change in changes}
    preview = Preview("shop", "dev", "digest", steps, {}, (), (), None, 0)
    return review(preview._replace(**more), catalog())


def test_the_first_words_say_what_it_costs_and_how_many_machines_go() -> None:
    assert words.headline(REVIEWS["update"]()).startswith("−$96,7")
    assert words.headline(REVIEWS["update"]()).endswith(", 1 machine replaced")
    assert words.headline(REVIEWS["nothing"]()) == "nothing changes"
    assert words.headline(REVIEWS["failed"]()).startswith("no review: the preview failed: ")


def test_a_total_that_leaves_something_out_says_so() -> None:
    found = of(machine("a"), machine("b", "m7i.large"))
    assert "at least $0 → $587.50" in words.headline(found)
    assert "1 changed resource without a price, 1 changed resource priced in part" in ", ".join(
        words.left_out(found)
    )


def test_what_does_not_change_is_not_listed() -> None:
    one = machine("a")
    same = one._replace(op="same", before=one.after)
    found = of(same, machine("b"))
    assert [row.change.state.name for row in found.rows] == ["b"]
    assert found.totals.before == pytest.approx(0.8048 * 730), "and yet it counts"
    assert "`a`" not in comment(found)


def test_another_machine_for_the_same_money_is_worth_a_line() -> None:
    one = machine("a")
    assert one.after
    before = known(one.after, "i-1")
    edited = one._replace(op="update", before=before)
    assert words.lines(of(edited)) == []
    (line,) = words.lines(of(edited._replace(before=before._replace(
        inputs={**before.inputs, "instanceType": "g5.xlarge"}))))  # fmt: skip
    assert line.why == "g5.xlarge → g6.xlarge"


def test_what_is_small_beside_the_rest_is_one_line() -> None:
    alarm = "aws:cloudwatch/metricAlarm:MetricAlarm"
    alarms = [
        Change(one.urn, alarm, "create", None, one, {}, ())
        for one in (state(alarm, f"a-{n}", region="us-east-1") for n in range(5))
    ]
    *_, last = words.lines(of(machine("m"), *alarms))
    assert last == words.Line("", "5 smaller", "$0", "$0.50", "+$0.50")
    assert len(words.lines(of(*alarms))) == 5, "nothing is small where all are"
    assert len(document(of(machine("m"), *alarms))["resources"]) == 6


def test_a_failed_preview_is_never_reviewed_as_a_whole_one() -> None:
    found = of(machine("a"), incomplete="the preview failed: no credentials")
    for shown in (comment(found), text(found), page(found)):
        assert "no review: the preview failed: no credentials" in shown
        assert "$587" not in shown
    assert document(found)["incomplete"] == "the preview failed: no credentials"


def test_a_policy_that_does_not_allow_it_is_shown() -> None:
    about = "urn:pulumi:prod::shop::aws:ec2/instance:Instance::web"
    whole = "urn:pulumi:prod::shop::pulumi:pulumi:Stack::shop-prod"
    told = (
        Violation("owner-tag", "ours", "mandatory", "no owner", about),
        Violation("one-budget", "ours", "advisory", "no budget", whole),
    )
    found = of(machine("a"), violations=told)
    assert "✗ `owner-tag` on `web` (mandatory): no owner" in comment(found)
    assert "· `one-budget` (advisory): no budget" in comment(found)
    assert "✗ owner-tag on web (mandatory): no owner" in text(found)
    assert "· one-budget (advisory): no budget" in text(found)
    assert "✗ <code>owner-tag</code> on <code>web</code> (mandatory): no owner" in page(found)


def test_the_way_out_of_a_long_rule_is_not_cut_off() -> None:
    told = Violation("owner-tag", "ours", "mandatory", f"{'why ' * 120}set the tag", None)
    assert "set the tag" in comment(of(machine("a"), violations=(told,)))


@pytest.mark.parametrize("count", [200, 2000])
def test_a_comment_fits_whatever_changes(count: int) -> None:
    long = "x" * 300
    found = of(*(machine(f"m-{n}-{long}", rootBlockDevice={"volumeSize": 9}) for n in range(count)))
    shown = comment(found)
    assert len(shown) <= LIMIT
    assert re.search(r"\d+ more change in cost", shown)
    assert shown == comment(found)


def test_a_comment_that_would_be_too_long_leaves_out_more() -> None:
    long = "x" * 230
    disk = {"volumeSize": 9, "volumeType": "gp3"}
    public: dict[str, Any] = {"associatePublicIpAddress": True, "rootBlockDevice": disk}
    known_ = (machine(f"{n}{long}", **public) for n in range(200))
    unknown = (machine(f"u{n}{long}", "*" * 230) for n in range(200))
    found = of(*known_, *unknown)
    whole = rendered(found, SIZES[0])
    shown = comment(found)
    assert len(whole) > LIMIT >= len(shown)
    assert "180 more" in shown


def test_what_is_looked_up_is_somebody_elses_cost() -> None:
    one = machine("theirs")
    found = of(one._replace(op="read"), machine("ours"))
    assert [row.change.state.name for row in found.rows] == ["ours"]
    assert found.totals.after == pytest.approx(0.8048 * 730)


def test_the_marker_is_the_first_thing_and_one_stacks_alone() -> None:
    shown = comment(of(machine("a")))
    assert shown.startswith(marker("shop", "dev") + "\n")
    assert marker("shop", "dev") != marker("shop", "dev2")
    assert "-->" not in marker("a-->b", "x")[:-3]


def test_a_comment_fits_whatever_is_warned_of() -> None:
    told = Violation("p" * 300, "ours", "m" * 300, "&" * 300, None)
    risk = Risk("zone-lost", "urn", None, "&" * 300, "warning")
    found = of(machine("a"), violations=(told,) * 2000)._replace(risks=(risk,) * 2000)
    assert len(rendered(found, SIZES[0])) > LIMIT >= len(comment(found))
    assert "1995 more violations of policy" in comment(found)
    assert "1995 more warnings" in comment(found)
    least = found._replace(stack="&" * 10**5, project="p" * 10**5, incomplete="&" * 10**5)
    assert len(comment(least)) <= LIMIT


def test_what_is_left_out_is_counted() -> None:
    shown = comment(of(*(machine(f"m-{n}") for n in range(200))))
    assert "160 more change in cost: " in shown
    assert "- and 140 more with a price" in shown
    assert shown.count("\n- and 140 more\n") == 1, "their disks have no price"


def test_a_range_that_grows_is_worth_a_line_where_the_cost_stays() -> None:
    group = "aws:autoscaling/group:Group"
    template = state("aws:ec2/launchTemplate:LaunchTemplate", "t", instanceType="g6.xlarge")
    template = known(template, "lt-1")
    sides = [
        state(group, "g", region="us-east-1", minSize=1, maxSize=most, desiredCapacity=1,
              launchTemplate={"id": "lt-1", "version": "1"})
        for most in (2, 50)
    ]  # fmt: skip
    before, after = sides
    edited = Change(before.urn, group, "update", before, after, {"maxSize": "update"}, ())
    same = Change(template.urn, template.type, "same", template, template, {}, ())
    (line,) = words.lines(of(edited, same))
    assert (line.change, line.why) == ("±$0", "at most $1,175 → $29,375")


def test_an_open_machine_has_its_range_beside_it() -> None:
    (row,) = of(machine("a")).rows
    assert row.after
    spread = row._replace(after=row.after._replace(low=500.0, high=900.0))
    found = of(machine("a"))._replace(rows=(spread,))
    (line,) = words.lines(found)
    assert line.after == "$587.50"
    assert line.why == "new, $500.00 to $900.00 by the machine that starts"
    assert "(new, $500.00 to $900.00 by the machine that starts)" in comment(found)


def test_a_missing_price_is_open_unless_use_decides_or_names_alone_change() -> None:
    unknown = machine("cpu", "m7i.large")
    bucket = state("aws:s3/bucket:Bucket", "store")
    made = Change(bucket.urn, bucket.type, "create", None, bucket, {}, ())
    assert {one.type: one.open for one in of(unknown, made).unpriced} == {
        INSTANCE: True, bucket.type: False}  # fmt: skip
    tagged = unknown._replace(op="update", before=unknown.after, changed={"tags.owner": "add"})
    assert [one.open for one in of(tagged).unpriced] == [False]
    resized = tagged._replace(changed={"tags.owner": "add", "instanceType": "update"})
    assert [one.open for one in of(resized).unpriced] == [True]


def test_a_failed_preview_is_not_held_against_the_lock_as_if_it_were_whole() -> None:
    fleet = state("gputier:aws:GpuFleet", "a")._replace(custom=False)
    change = Change(fleet.urn, fleet.type, "create", None, fleet, {}, ())
    failed = Preview("shop", "dev", "digest", {fleet.urn: change}, {}, (), (), "it failed", 0)
    lock = read_lock(ROOT / "stacks" / "gputier.prod.lock", "prod")
    assert lock
    (risk,) = review(failed, catalog(), Beside(lock=lock)).risks
    assert risk.text == "The preview has the fleet `a`, and the lock does not hold it."


CONTROLS = "ev\x1b[31mil\u202e\ud800\n| x"


def test_no_name_moves_the_cursor_or_turns_the_text() -> None:
    found = of(machine(CONTROLS), machine(f"{CONTROLS}2", "m7i.large"))
    for shown in (comment(found), text(found), page(found)):
        assert "ev�[31mil��" in shown
        assert not set(shown) & set("\x1b\u202e\ud800")
        shown.encode()


HOSTILE = {
    "a table": ("a | b", "a \\| b"),
    "html": ("<script>alert(1)</script>", "&lt;script\\>alert(1)&lt;/script\\>"),
    "a person": ("@octocat", "@\u2060octocat"),
    "a link": ("[x](http://e)", "\\[x\\](http:\u2060//e)"),
    "lines": ("a\n\n# b", "a \\# b"),
    "somebody's issue": ("o/r#12 GH-3 !4", "o/r\\#\u206012 GH-\u20603 !\u20604"),
    "an address": ("www.e.com", "www\u2060.e.com"),
    "an end of our marker": ("--> x", "--\\> x"),
}


@pytest.mark.parametrize(("given", "shown"), HOSTILE.values(), ids=HOSTILE)
def test_text_of_anybody_is_text(given: str, shown: str) -> None:
    assert safe(given) == shown


def test_a_name_of_anybody_stays_in_its_code() -> None:
    assert code("a`b|c\nd") == "`a'b¦c d`"
    assert safe("the group `a|b` goes") == "the group `a¦b` goes"
    assert safe("one ` alone") == "one \\` alone"


class Tags(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.found: set[str] = set()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.add(tag)
        assert not [name for name, _ in attrs if name in ("src", "href") or name[:2] == "on"]


def test_a_page_loads_nothing_and_escapes_everything() -> None:
    tags = Tags()
    tags.feed(page(of(machine("<img src=x onerror=alert(1)>", "m7i.large"), machine("b"))))
    assert not tags.found & {"img", "script", "link", "iframe"}
    assert "table" in tags.found
