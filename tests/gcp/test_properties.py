"""Every property that is set is one that the SDK knows, with a value of its kind, at any depth: a
misspelt key of a map passes everything else."""

from __future__ import annotations

from typing import Any

import pytest
from tests.engine import schema
from tests.gcp import world

from gputier import testing

KEY = "projects/p/locations/us-central1/keyRings/r/cryptoKeys/k"
L4: dict[str, Any] = dict(world.L4)
#: What the stacks of the examples leave out.
MORE: dict[str, dict[str, Any]] = {
    "tcpxo": {"gpu": {"models": ["H100"], "count": 8}, "nodes": 2, "fabric": "any"},
    "disks": {**L4, "disk": {"kms_key": KEY, "data": "1TiB", "scratch": "300GiB", "persist": True}},
    "cards": {"gpu": {"models": ["T4"], "count": 2}, "network": {"egress": "public"}},
    "close": {
        "gpu": {"models": ["A100-40GB"]}, "nodes": 2, "fabric": "none", "purpose": "training",
        "network": {"placement": "cluster"},
    },
    "held": {**L4, "capacity": {
        "use": "reservation", "id": "my-l4", "instance_type": "g2-standard-8",
        "zone": "us-central1-a", "count": 1}},
    "hours": {**L4, "zones": ["us-central1-a"], "schedule": [world.NIGHTS]},
    "desk": {
        "gpu": {"models": ["T4"]}, "purpose": "development", "capacity": "spot",
        "disk": {"kms_key": KEY, "data": "1TiB"},
    },
}  # fmt: skip


def wrong(run: testing.Run) -> list[tuple[str, Any]]:
    made = (record for record in run.records if not record.component)
    return [(r.label, problem) for r in made for problem in schema.check(r.type, r.inputs)]


@pytest.mark.parametrize("stack", world.STACKS)
def test_a_stack_sets_what_there_is(stack: str) -> None:
    assert wrong(world.example(stack)) == []


@pytest.mark.parametrize("name", MORE)
def test_a_fleet_sets_what_there_is(name: str) -> None:
    assert wrong(world.alone(**MORE[name])) == []


def test_what_is_misspelt_is_found() -> None:
    run = world.alone(**L4)
    template = run.find("RegionInstanceTemplate job-template")
    template.inputs["scheduling"]["onHostMaintenence"] = "TERMINATE"
    ((label, (where, _why)),) = wrong(run)
    assert label == template.label
    assert "onHostMaintenence" in where
