"""What people see of a review: the comment, the terminal, the page. Small, quiet, and nobody's
markup but ours."""

from __future__ import annotations

import json
from collections.abc import Callable
from html.parser import HTMLParser
from typing import Any

import pytest

from gputier.review import words
from gputier.review.comment import (
    LIMIT,
    MOST_DETAILS,
    MOST_ROWS,
    _rendered,  # pyright: ignore[reportPrivateUsage]
    code,
    comment,
    marker,
    safe,
)
from gputier.review.document import document
from gputier.review.page import page
from gputier.review.preview import Change, Preview, Violation
from gputier.review.read import read
from gputier.review.review import Beside, Review, review
from gputier.review.text import WIDTH, text
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


REVIEWS: dict[str, Callable[[], Review]] = {
    "create": lambda: review(sample("create"), catalog()),
    "update": lambda: review(sample("prod-change"), catalog(), Beside(sample("prod-export"))),
    "replace": lambda: review(sample("replace"), catalog()),
    "destroy": lambda: review(destroyed(), catalog()),
    "nothing": lambda: review(sample("noop"), catalog()),
    "failed": lambda: review(sample("bad-argument"), catalog()),
}


@pytest.mark.parametrize("name", REVIEWS)
def test_each_kind_of_change_has_its_comment(name: str, golden: Golden) -> None:
    golden(f"review/{name}.md", comment(REVIEWS[name]()))


@pytest.mark.parametrize("name", ["update", "failed"])
def test_a_terminal_is_told_the_same_in_columns(name: str, golden: Golden) -> None:
    shown = text(REVIEWS[name]())
    golden(f"review/{name}.txt", shown + "\n")
    prose = [line for line in shown.splitlines() if line[:1] in ("⚠", "·")]
    assert all(len(line) <= WIDTH + 2 for line in prose)


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
    assert line.change.endswith("(g5.xlarge → g6.xlarge)")


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
    told = Violation("owner-tag", "ours", "mandatory", "no owner", None)
    found = of(machine("a"), violations=(told,))
    assert "✗ `owner-tag` (mandatory): no owner" in comment(found)


@pytest.mark.parametrize("count", [200, 2000])
def test_a_comment_fits_whatever_changes(count: int) -> None:
    long = "x" * 300
    found = of(*(machine(f"m-{n}-{long}", rootBlockDevice={"volumeSize": 9}) for n in range(count)))
    shown = comment(found)
    assert len(shown) <= LIMIT
    assert f"{count - 40} more" in shown or "more |" in shown
    assert shown == comment(found)


def test_a_comment_that_would_be_too_long_leaves_out_more() -> None:
    long = "x" * 230
    disk = {"volumeSize": 9, "volumeType": "gp3"}
    public: dict[str, Any] = {"associatePublicIpAddress": True, "rootBlockDevice": disk}
    known_ = (machine(f"{n}{long}", **public) for n in range(200))
    unknown = (machine(f"u{n}{long}", "*" * 230) for n in range(200))
    found = of(*known_, *unknown)
    whole = _rendered(found, MOST_ROWS, MOST_DETAILS)
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


HOSTILE = {
    "a table": ("a | b", "a \\| b"),
    "html": ("<script>alert(1)</script>", "&lt;script\\>alert(1)&lt;/script\\>"),
    "a person": ("@octocat", "@\u2060octocat"),
    "a link": ("[x](http://e)", "\\[x\\](http:\u2060//e)"),
    "lines": ("a\n\n# b", "a \\# b"),
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
