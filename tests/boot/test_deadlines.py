"""Deadline arithmetic: the sum of all limits against what the cloud waits for."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.boot.examples import Example, Stack, examples, planned, rendered

from gputier.boot import deadlines
from gputier.boot.deadlines import Deadline, deadline, table
from gputier.errors import InvalidInput
from gputier.node import settings as node
from gputier.node.stages import AFTER, BURN_IN, BY_NAME, GATE, STAGES, VALIDATE, applying

HOOK = {"kind": "lifecycle-hook", "mode": "enforce", "depth": "quick", "group": "g", "hook": "h"}
ENDPOINT = {"kind": "health-endpoint", "mode": "enforce", "depth": "quick"}
ALONE = {"kind": "file", "mode": "report", "depth": "quick"}
INSTALL = {"source": "install", "branch": "580", "version": "580.95.05"}
FRAMEWORK = {"name": "pytorch", "version": "2.9"}


def read(gate: dict[str, Any], **more: Any) -> node.Settings:
    found = {"schema": node.SCHEMA, "gate": gate, "limits": {"bundle": 300}, "reboots": 0, **more}
    return node.read(json.dumps(found))


def of(gate: dict[str, Any], **more: Any) -> Deadline:
    return deadline(read(gate, **more))


def seconds(found: Deadline, name: str) -> int:
    return next(row.seconds for row in found.rows if row.name == name)


@pytest.mark.parametrize("gate", [HOOK, ENDPOINT, ALONE], ids=lambda g: g["kind"])
def test_every_stage_before_the_verdict_is_in_the_sum_and_none_after(gate: dict[str, Any]) -> None:
    found = of(gate, driver=INSTALL, framework=FRAMEWORK, run="exec true")
    names = [row.name for row in found.rows]
    asked = [stage.name for stage in applying(read(gate, driver=INSTALL, framework=FRAMEWORK))]
    before = [name for name in asked if name not in AFTER]
    assert [name for name in names if name in BY_NAME] == before
    assert BURN_IN in asked
    assert {"power-on", "bundle", "reboots"} <= set(names)
    assert found.total_seconds == sum(row.seconds for row in found.rows)


def test_what_an_installation_costs_is_in_the_sum() -> None:
    prebaked = of(HOOK, driver={**INSTALL, "source": "prebaked"})
    assert of(HOOK, driver=INSTALL).total_seconds - prebaked.total_seconds == 1080
    with_framework = of(HOOK, driver=INSTALL, framework=FRAMEWORK)
    assert seconds(with_framework, "framework") == 900


@pytest.mark.parametrize("reboots", [0, 1, 2])
def test_reboots_are_in_the_sum_with_the_validators_own(reboots: int) -> None:
    found = of(HOOK, reboots=reboots)
    stages = len([row for row in found.rows if row.name in BY_NAME])
    one = 180 + deadlines.AGAIN_SECONDS * (stages + 1)
    assert seconds(found, "reboots") == (reboots + 1) * one


def test_a_gate_that_is_off_validates_nothing() -> None:
    names = [row.name for row in of({**HOOK, "mode": "off"}).rows]
    assert VALIDATE not in names
    assert "validate-again" not in names


def test_a_limit_of_the_settings_counts_instead_of_the_stages_own() -> None:
    assert seconds(of(HOOK, limits={"bundle": 300, "packages": 50}), "packages") == 50


# --- a launch hook -------------------------------------------------------------------------------


def test_the_hook_waits_for_a_machine_that_cannot_speak_yet() -> None:
    """Until the bundle runs nobody sends heartbeats: not while booting, not while fetching."""
    found = of(HOOK)
    assert found.hook_seconds is not None
    quiet = deadlines.POWER_ON_SECONDS + seconds(found, "bundle")
    assert found.hook_seconds >= quiet + 2 * node.HEARTBEAT_SECONDS
    assert found.hook_seconds >= 180 + 2 * node.HEARTBEAT_SECONDS
    low, high = deadlines.HOOK_SECONDS
    assert low <= found.hook_seconds <= high


def test_a_hook_waits_for_the_longest_boot_there_is() -> None:
    found = of({**HOOK, "depth": "burn-in"}, driver=INSTALL, framework=FRAMEWORK, mpi="horovod",
               reboots=3)  # fmt: skip
    assert found.fits
    assert found.allowed_seconds == 100 * (found.hook_seconds or 0)
    assert not found.cut


def test_a_hook_that_hears_nothing_for_too_long_is_refused() -> None:
    with pytest.raises(ValueError, match="7,200"):
        of(HOOK, limits={"bundle": 7200})


@given(st.integers(1, 3000))
def test_the_deadline_of_a_hook_leaves_every_stage_its_time(bundle: int) -> None:
    found = of(HOOK, limits={"bundle": bundle})
    assert found.total_seconds <= found.deadline_seconds
    assert found.deadline_seconds < max(7201, found.total_seconds + 3600)


def test_a_limit_that_a_release_changes_a_little_changes_no_deadline() -> None:
    one, other = (of(HOOK, limits={"bundle": 300, "packages": s}) for s in (660, 900))
    assert one.deadline_seconds == other.deadline_seconds == 7200


# --- an autohealer -------------------------------------------------------------------------------


def test_a_boot_that_fits_into_googles_hour_keeps_its_limits() -> None:
    found = of(ENDPOINT)
    assert found.fits
    assert not found.cut
    assert found.hook_seconds == 3600
    # By its uptime, which begins after the autohealer's clock does.
    assert found.deadline_seconds == 3540 - 120


def test_a_boot_that_would_not_fit_gives_each_stage_less() -> None:
    prebaked = {**INSTALL, "source": "prebaked"}
    found = of({**ENDPOINT, "depth": "standard"}, driver=prebaked, framework=FRAMEWORK)
    assert found.fits
    assert found.cut
    assert "validate-again" not in [row.name for row in found.rows]
    for row in found.rows:
        if row.cut_from is not None:
            least = deadlines.LEAST_PARTS.get(row.name, deadlines.LEAST_PART)
            assert row.cut_from * least <= row.seconds + 1 <= row.cut_from
    assert seconds(found, VALIDATE) == 1230, "checks that are cut short are checks left out"


def test_an_installation_on_google_keeps_the_time_that_it_takes() -> None:
    """The mid tier on a machine whose images have no driver: the tightest boot that there is."""
    found = of({**ENDPOINT, "depth": "standard"}, driver=INSTALL, reboots=1,
               scratch={"mount": "/scratch", "count": 1},
               metrics={"agent": "ops-agent"})  # fmt: skip
    assert found.fits
    assert seconds(found, "driver") >= 780
    assert seconds(found, GATE) >= 180


def test_a_boot_that_cannot_fit_is_not_made_to() -> None:
    found = of({**ENDPOINT, "depth": "standard"}, driver=INSTALL, framework=FRAMEWORK,
               mpi="horovod")  # fmt: skip
    assert not found.fits


def test_cut_limits_reach_the_machine() -> None:
    plan = planned(gpu={"models": ["A100-40GB"]}, clouds=["gcp"], validation={"depth": "standard"})
    found = rendered(Example(plan, Stack("a", "b")))
    limits = json.loads(found.settings)["limits"]
    assert limits == {**{"bundle": 300}, **found.deadline.cut}
    assert limits["packages"] < 660
    stages = applying(node.read(found.settings))
    limited = node.read(found.settings)
    assert {s.name: s.seconds(limited) for s in stages if s.name in limits} == {
        name: one for name, one in limits.items() if name in BY_NAME
    }


def test_incident_66_a_boot_that_takes_longer_than_google_waits_is_refused_with_the_table(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """By the plan already (test_room.py), and here of a plan that somebody made otherwise."""
    monkeypatch.setattr("gputier.plan.patience.WAITS", {})
    plan = planned(
        gpu={"models": ["L4"]}, clouds=["gcp"], validation={"depth": "standard"},
        software={"image": {"driver": "580.95.05"}, "framework": "pytorch==2.9",
                  "mpi": "horovod"},
    )  # fmt: skip
    with pytest.raises(InvalidInput) as refused:
        rendered(Example(plan, Stack("a", "b")))
    (problem,) = refused.value.problems
    assert "autohealing waits 3,600 s at most" in problem.message
    assert "driver" in problem.message
    assert "cut from 1,200 s" in problem.message
    assert "validation.depth" in problem.hint


# --- alone, and shown ----------------------------------------------------------------------------


def test_nobody_waits_for_a_lone_machine() -> None:
    found = of(ALONE, driver=INSTALL)
    assert found.fits
    assert found.allowed_seconds is None
    assert found.hook_seconds is None
    assert found.deadline_seconds >= found.total_seconds


@pytest.mark.parametrize("name", examples())
def test_every_example_shows_a_table_that_adds_up(name: str) -> None:
    found = rendered(examples()[name]).deadline
    lines = table(found)
    rows = [line for line in lines if " s" in line and not line.startswith((" ", "sum"))]
    told = [int(line.split()[1].replace(",", "")) for line in rows]
    total = next(line for line in lines if line.startswith("sum"))
    assert sum(told) == int(total.split()[1].replace(",", "")) == found.total_seconds
    assert found.fits


def test_no_stage_is_forgotten_when_one_is_added() -> None:
    """What is fixed here is named by the node's own words."""
    names = {stage.name for stage in STAGES}
    assert {VALIDATE, GATE, *AFTER} <= names
    assert not names & {"power-on", "bundle", "reboots", "validate-again"}
