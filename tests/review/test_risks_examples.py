"""What is ordinary is not warned of: the example stacks as they are made, and what nobody knows."""

from __future__ import annotations

import json
from base64 import b64encode
from pathlib import Path
from typing import Any

import pytest

from gputier.review.preview import UNKNOWN, Change, Preview
from gputier.review.risk import Risk
from gputier.review.risks import risks
from gputier.review.risks_money import lock_risks
from tests.review.test_risks import locked
from tests.review.worlds import known, state, world

VOLUME = "aws:ebs/volume:Volume"
NODES = "gcp:container/nodePool:NodePool"
TEMPLATE = "gcp:compute/instanceTemplate:InstanceTemplate"


def said(*changes: Change) -> tuple[Risk, ...]:
    preview = Preview("p", "s", "digest", {c.urn: c for c in changes}, {}, (), (), None, 0)
    before = world(*(c.before for c in changes if c.before), config={})
    return risks(preview, before, world(*(c.after for c in changes if c.after), config={}))


def edited(type_: str, was: dict[str, Any], is_: dict[str, Any], op: str = "update") -> Change:
    before, after = known(state(type_, **was), "id-1"), state(type_, **is_)
    return Change(after.urn, type_, op, before, after, {}, ())


@pytest.mark.parametrize("stack", ["dev", "staging", "prod"])
def test_an_example_stack_that_is_made_warns_of_nothing(root: Path, stack: str) -> None:
    golden = root / f"tests/golden/aws/{stack}.json"
    made = [
        state(block["type"], block["name"])._replace(inputs=block["inputs"])
        for block in json.loads(golden.read_text(encoding="utf-8"))
    ]
    assert made
    assert said(*(Change(s.urn, s.type, "create", None, s, {}, ()) for s in made)) == ()


def test_a_disk_whose_encryption_nobody_knows_yet_is_no_alarm() -> None:
    assert not said(edited(VOLUME, {"encrypted": True}, {"encrypted": UNKNOWN}))


def test_a_disk_that_is_no_longer_asked_to_be_encrypted_is_one() -> None:
    step = edited(VOLUME, {"encrypted": True}, {})
    assert step.before is not None
    assert step.after is not None
    answered = step.after._replace(outputs=step.before.outputs)
    (risk,) = said(step._replace(after=answered))
    assert (risk.rule, risk.property) == ("encryption-lost", "encrypted")


SPOT: dict[str, tuple[str, dict[str, Any], dict[str, Any]]] = {
    "a template": (
        TEMPLATE,
        {"scheduling": {"provisioningModel": "STANDARD"}},
        {"scheduling": {"provisioningModel": "SPOT"}},
    ),
    "a preemptible one": (TEMPLATE, {"scheduling": {}}, {"scheduling": {"preemptible": True}}),
    "a node pool": (NODES, {"nodeConfig": {"spot": False}}, {"nodeConfig": {"spot": True}}),
}


@pytest.mark.parametrize(("type_", "was", "is_"), SPOT.values(), ids=SPOT.keys())
def test_google_s_machines_that_go_to_spot_are_said(
    type_: str, was: dict[str, Any], is_: dict[str, Any]
) -> None:
    assert "on-demand-to-spot" in {risk.rule for risk in said(edited(type_, was, is_))}
    assert not said(edited(type_, is_, is_))


@pytest.mark.parametrize(("whole", "found"), [(True, 1), (False, 0)])
def test_a_fleet_is_missed_only_in_a_preview_that_lists_everything(whole: bool, found: int) -> None:
    lock = locked(chat="g6.xlarge", other="g6.xlarge")
    sides = world(state("gputier:aws:GpuFleet", "chat"))
    assert len(list(lock_risks(lock, sides, whole=whole))) == found


def boots(mode: str) -> dict[str, Any]:
    script = Path(__file__).parents[1] / "golden/boot/staging-images.sh"
    text = script.read_text(encoding="utf-8")
    assert '"mode":"report"' in text
    return {"userData": b64encode(text.replace('"mode":"report"', mode).encode()).decode()}


@pytest.mark.parametrize(
    ("was", "is_", "found"),
    [("enforce", "report", ["gate-weakened"]), ("report", "enforce", []), ("report", "report", [])],
)
def test_a_gate_that_only_reports_from_now_on_is_said(was: str, is_: str, found: list[str]) -> None:
    before, after = (boots(f'"mode":"{mode}"') for mode in (was, is_))
    step = edited("aws:ec2/launchTemplate:LaunchTemplate", before, after)
    assert [risk.rule for risk in said(step)] == found
