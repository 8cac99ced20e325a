"""Reading previews: the engine's own samples, its four formats, and what is none of them."""

from __future__ import annotations

import contextlib
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gputier.errors import InvalidInput
from gputier.review.merge import before_and_after, with_base
from gputier.review.preview import SECRET, UNKNOWN, Preview
from gputier.review.read import read
from gputier.review.states import SENTINELS, SIGNATURE, shown
from tests.review.worlds import catalog

SAMPLES = Path(__file__).parent / "samples"
GROUP = "urn:pulumi:sample::fleet::aws:autoscaling/group:Group::asg"
TEMPLATE = "urn:pulumi:sample::fleet::aws:ec2/launchTemplate:LaunchTemplate::lt"
NET = "urn:pulumi:sample::fleet::aws:ec2/vpc:Vpc::net"


def sample(name: str) -> Preview:
    return read((SAMPLES / f"{name}.json").read_bytes(), f"{name}.json")


def document(**parts: Any) -> bytes:
    return json.dumps(parts).encode()


def step(op: str, **more: Any) -> dict[str, Any]:
    side = {"urn": NET, "type": "aws:ec2/vpc:Vpc", "inputs": {"a": 1}}
    sides: dict[str, Any] = {}
    if op != "create":
        sides["oldState"] = {**side, "id": "vpc-1", "outputs": {"a": 1, "b": 2}}
    if op != "delete":
        sides["newState"] = side
    return {"op": op, "urn": NET, **sides, **more}


def refusal(data: bytes) -> str:
    with pytest.raises(InvalidInput) as caught:
        read(data, "preview.json")
    (problem,) = caught.value.problems
    return f"{problem.message} | {problem.hint}"


def test_a_creation_has_one_side_and_its_unknown_values_are_unknown() -> None:
    found = sample("create")
    assert (found.project, found.stack, found.kind) == ("fleet", "sample", "digest")
    assert {change.op for change in found.changes.values()} == {"create"}
    group = found.changes[GROUP]
    assert group.before is None
    assert group.state.get("vpcZoneIdentifiers") == [UNKNOWN, UNKNOWN]
    assert group.state.dependencies["mixedInstancesPolicy"] == (TEMPLATE,)
    assert (found.incomplete, found.unlisted) == (None, 0)


def test_an_update_has_both_sides_and_what_differs() -> None:
    found = sample("update")
    change = found.changes[GROUP]
    assert (change.op, change.changed) == ("update", {"maxSize": "update"})
    assert change.before is not None
    assert (change.before.get("maxSize"), change.state.get("maxSize")) == (4, 6)
    assert change.state.id == change.before.id, "it is the same thing"
    assert found.changes[TEMPLATE].state.get("userData") is SECRET
    assert found.changes[TEMPLATE].state.get("latestVersion") == 1, "as the cloud had it"
    assert found.unlisted == 17


def test_a_replacement_says_what_forces_it() -> None:
    change = sample("replace").changes[NET]
    assert (change.op, change.forced_by) == ("replace", ("cidrBlock",))
    assert change.changed == {"cidrBlock": "update", "tags.owner": "update"}
    assert change.state.id is None, "the new one has none yet"


def test_a_preview_that_changes_nothing_counts_what_it_leaves_out() -> None:
    found = sample("noop")
    assert ({change.op for change in found.changes.values()}, found.unlisted) == ({"same"}, 20)


def test_a_failed_preview_prints_json_too_and_is_known_by_its_error() -> None:
    assert "'p5.48xlrge' is not a value" in (sample("bad-argument").incomplete or "")


@pytest.mark.parametrize("severity", ["info", "warning", "debug"])
def test_other_messages_fail_nothing(severity: str) -> None:
    told = {"severity": severity, "message": "error: it says"}
    found = read(document(steps=[step("same")], diagnostics=[told]), "f")
    assert (found.incomplete, found.diagnostics[0].message) == (None, "error: it says")


def test_a_saved_plan_is_complete_where_it_only_makes_and_needs_a_base_where_it_changes() -> None:
    made = sample("create.plan")
    assert (made.kind, made.incomplete) == ("plan", None)
    assert made.changes[GROUP].state.get("maxSize") == 4
    plans = json.loads((SAMPLES / "create.plan.json").read_text("utf-8"))
    plan = plans["resourcePlans"][GROUP]
    plan["steps"], plan["goal"]["inputDiff"] = ["update"], {"updates": {"maxSize": 9}}
    changing = read(document(resourcePlans={GROUP: plan}), "f")
    assert "add `--base`" in (changing.incomplete or "")
    whole = with_base(changing, sample("create"))
    change = whole.changes[GROUP]
    assert whole.incomplete is None
    assert change.before is not None
    assert (change.before.get("maxSize"), change.state.get("maxSize")) == (4, 9)
    assert change.state.get("minSize") == 0, "the rest is the base's"


def test_the_parts_of_a_replacement_are_one_change() -> None:
    parts = [step("create-replacement"), step("replace", replaceReasons=["a"]),
             step("delete-replaced")]  # fmt: skip
    (change,) = read(document(steps=parts), "f").changes.values()
    assert (change.op, change.forced_by) == ("replace", ("a",))
    assert change.before is not None
    assert change.after is not None


def test_what_a_program_stops_asking_for_is_not_there_because_it_was_there() -> None:
    gone = step("update", detailedDiff={"b": {"kind": "delete"}, "__defaults": {"kind": "add"}})
    (change,) = read(document(steps=[gone]), "f").changes.values()
    assert change.changed == {"b": "delete"}
    assert change.before is not None
    assert (change.before.get("b"), change.state.get("b")) == (2, None)


@pytest.mark.parametrize("sentinel", sorted(SENTINELS))
def test_every_kind_of_unknown_value_is_known_as_one(sentinel: str) -> None:
    assert shown({"a": [sentinel, "x"]}) == {"a": [UNKNOWN, "x"]}


SIGNED: dict[str, tuple[str, dict[str, Any], Any]] = {
    "a secret of an export": ("1b47061264138c4ac30d75fd1eb44270", {"ciphertext": "v1:x"}, SECRET),
    "an output": ("d0e6a833031e9bbcd3f4e8bde6ca49a4", {"value": 3}, 3),
    "an output not known": ("d0e6a833031e9bbcd3f4e8bde6ca49a4", {}, UNKNOWN),
    "a secret output": ("d0e6a833031e9bbcd3f4e8bde6ca49a4", {"value": 3, "secret": True}, SECRET),
    "a resource": ("5cf8f73096256a8f31e491e813e4eb8e", {"urn": NET, "id": "vpc-1"}, "vpc-1"),
    "an asset": ("c44067f5952c0a294b673a41bacd8c17", {"text": "x"}, {"text": "x"}),
}


@pytest.mark.parametrize(("kind", "value", "meaning"), SIGNED.values(), ids=SIGNED)
def test_a_map_that_stands_for_another_value_is_that_value(
    kind: str, value: dict[str, Any], meaning: Any
) -> None:
    assert shown({SIGNATURE: kind, **value}) == meaning


# --- events ---------------------------------------------------------------------------------------

EVENTS: list[dict[str, Any]] = [
    {"preludeEvent": {"config": {"aws:region": "eu-west-1"}}},
    {"resourcePreEvent": {"metadata": {
        "op": "update", "urn": NET, "type": "aws:ec2/vpc:Vpc", "keys": [], "diffs": ["a"],
        "old": step("update")["oldState"], "new": step("update")["newState"],
        "detailedDiff": {"a": {"diffKind": "update", "inputDiff": True}}}}},
    {"diagnosticEvent": {"severity": "info", "message": "hello\n"}},
    {"summaryEvent": {"resourceChanges": {"update": 1, "same": 4}}},
]  # fmt: skip


def log(*events: dict[str, Any]) -> bytes:
    return "\n".join(map(json.dumps, events)).encode()


def test_events_tell_what_a_document_tells() -> None:
    found = read(log(*EVENTS), "f")
    assert (found.kind, found.incomplete, found.unlisted) == ("events", None, 4)
    assert found.config == {"aws:region": "eu-west-1"}
    assert found.changes[NET].changed == {"a": "update"}
    assert found.diagnostics[0].message == "hello"


def test_events_that_end_early_are_an_interrupted_preview() -> None:
    assert "it was interrupted" in (read(log(*EVENTS[:-1]), "f").incomplete or "")
    cut = log(*EVENTS)[:-20]
    assert "it was interrupted" in (read(cut, "f").incomplete or "")


@pytest.mark.parametrize(("level", "fails"), [("mandatory", True), ("advisory", False)])
def test_a_policy_that_does_not_allow_it_fails_the_preview(level: str, fails: bool) -> None:
    told = {"policyEvent": {"resourceUrn": NET, "message": "no", "policyName": "owner-tag",
                            "policyPackName": "ours", "enforcementLevel": level}}  # fmt: skip
    found = read(log(*EVENTS, told), "f")
    assert [v.policy for v in found.violations] == ["owner-tag"]
    assert bool(found.incomplete) is fails


# --- exports and bases ----------------------------------------------------------------------------


def export(*names: str, **more: Any) -> bytes:
    resources = [
        {"urn": NET.replace("::net", f"::{name}"), "type": "aws:ec2/vpc:Vpc", "id": name,
         "inputs": {"a": 1}, "outputs": {"a": 1}} for name in names
    ]  # fmt: skip
    return document(version=3, deployment={"resources": resources, **more})


def test_an_export_is_a_stack_in_which_nothing_changes() -> None:
    found = read(export("net", "other"), "f")
    assert [change.op for change in found.changes.values()] == ["same", "same"]
    assert (found.kind, found.incomplete) == ("export", None)


def test_what_waits_to_be_deleted_is_gone_and_what_is_pending_is_said() -> None:
    raw = json.loads(export("net", "other"))
    raw["deployment"]["resources"][1]["delete"] = True
    raw["deployment"]["pending_operations"] = [{"type": "creating"}]
    found = read(json.dumps(raw).encode(), "f")
    assert list(found.changes) == [NET]
    assert "pulumi refresh" in (found.incomplete or "")


BASES: dict[str, tuple[str, list[str], str | None]] = {
    "changed, and there": ("update", ["net"], "update"),
    "changed, and not there": ("update", [], "create"),
    "made, and there": ("create", ["net"], "update"),
    "made, and not there": ("create", [], "create"),
    "deleted, and there": ("delete", ["net"], "delete"),
    "deleted, and not there": ("delete", [], None),
    "replaced, and there": ("replace", ["net"], "replace"),
}


@pytest.mark.parametrize(("op", "there", "becomes"), BASES.values(), ids=BASES)
def test_a_base_says_what_was_there(op: str, there: list[str], becomes: str | None) -> None:
    preview = read(document(steps=[step(op)], changeSummary={op: 1, "same": 7}), "f")
    found = with_base(preview, read(export("kept", *there), "base"))
    change = found.changes.get(NET)
    assert (change.op if change else None) == becomes
    kept = found.changes[NET.replace("::net", "::kept")]
    assert (kept.op, found.unlisted) == ("same", 0), "everything is known now"


def test_a_base_of_another_stack_is_refused() -> None:
    other = read(export("net").replace(b"sample", b"prod"), "base")
    with pytest.raises(InvalidInput, match=r"base is of fleet/prod, and the preview of fleet/sam"):
        with_base(sample("update"), other)


# --- worlds ---------------------------------------------------------------------------------------


def test_both_sides_are_worlds_with_the_stacks_discounts() -> None:
    discount = {"cloud": "aws", "families": ["p5"], "percent": 20, "reason": "ours"}
    given_ = json.dumps([discount])
    found = read(document(steps=[step("create")], config={"gputier:discounts": given_}), "f")
    before, after = before_and_after(found, catalog())
    assert (len(before.states), len(after.states)) == (0, 1)
    assert after.discounts[0].percent == 20


@pytest.mark.parametrize("value", ["[secret]", "no json", '[{"cloud": "x"}]', "3"])
def test_discounts_that_cannot_be_read_are_refused(value: str) -> None:
    found = read(document(steps=[step("create")], config={"gputier:discounts": value}), "f")
    with pytest.raises(InvalidInput, match="gputier:discounts"):
        before_and_after(found, catalog())


# --- what is none ---------------------------------------------------------------------------------

NONE: dict[str, tuple[bytes, str]] = {
    "nothing": (b"", "is empty | did the preview run?"),
    "blank": (b" \n", "is empty"),
    "a list": (b"[]", "is JSON, and no preview"),
    "a number": (b"3", "is JSON, and no preview"),
    "another document": (b'{"a": 1}', "no preview, plan, event log or export"),
    "what people read": (b"Previewing update (dev):\n", "prints for people"),
    "cut off": (b'{"steps": [', "ends in the middle"),
    "bytes": (b"\xff\xfe\xfa", "no text in UTF-8"),
    "bytes that are no text": (b"\x80abc", "no text in UTF-8"),
    "another shape inside": (b'{"steps": [3]}', "has no shape of a preview"),
    "no step at all": (b'{"steps": []}', ""),
}


@pytest.mark.parametrize(("data", "words"), NONE.values(), ids=NONE)
def test_what_is_no_preview_is_refused_with_the_way_to_make_one(data: bytes, words: str) -> None:
    if not words:
        assert "has no step" in (read(data, "f").incomplete or "")
        return
    told = refusal(data)
    assert words in told
    assert "`pulumi preview --json > preview.json`" in told


@pytest.mark.parametrize("coding", ["utf-8", "utf-8-sig", "utf-16", "utf-16-le"])
def test_a_file_may_come_from_any_shell(coding: str) -> None:
    text = (SAMPLES / "noop.json").read_text("utf-8")
    mark = "\ufeff" if coding == "utf-16-le" else ""
    assert read(f"{mark}{text}".encode(coding), "f") == sample("noop")


JUNK = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3)
    | st.dictionaries(
        st.sampled_from(["steps", "op", "urn", "oldState", "newState", "inputs", "deployment",
                         "resources", "resourcePlans", "goal", "changeSummary", "diagnostics",
                         "summaryEvent", "resourcePreEvent", "metadata", "detailedDiff", "type",
                         SIGNATURE]),
        inner, max_size=4,
    ),
    max_leaves=20,
)  # fmt: skip


@given(JUNK)
def test_junk_is_read_or_refused_and_nothing_else(junk: Any) -> None:
    with contextlib.suppress(InvalidInput):
        read(json.dumps(junk).encode(), "f")
