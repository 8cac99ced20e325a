"""`boot` cut off anywhere, and started again: it ends the same."""

from __future__ import annotations

from typing import Any

import pytest
from tests.node.booting import EVERYTHING, Booting, Killed, last, opened, said

from gputier.node import stages, timeline
from gputier.node.stages import config

DRIVER: dict[str, Any] = {"driver": {"source": "prebaked"}, "run": "true"}


# The burn-in has the same in test_burn_in.py.
NAMES = [stage.name for stage in stages.STAGES if stage.name != stages.BURN_IN]


def end_of(machine: Booting) -> tuple[Any, ...]:
    """What a boot comes to, without times."""
    found = said(machine)
    return (
        opened(machine)._replace(since=0),
        found["outcome"],
        [(check["name"], check["outcome"]) for check in found["checks"]],
        last(machine).end,
    )


@pytest.fixture(scope="module")
def undisturbed() -> tuple[Any, ...]:
    machine = Booting("a2-highgpu-1g", **EVERYTHING)
    assert machine.boot() == 0
    return end_of(machine)


@pytest.mark.parametrize("moment", ["before", "after"])
@pytest.mark.parametrize("name", NAMES)
def test_a_boot_killed_at_any_stage_and_started_again_ends_the_same(
    name: str, moment: str, undisturbed: tuple[Any, ...]
) -> None:
    machine = Booting("a2-highgpu-1g", **EVERYTHING)
    setattr(machine, f"kill_{moment}", name)
    with pytest.raises(Killed):
        machine.boot()
    (cut,) = [entry for entry in last(machine).stages if entry.outcome == timeline.RUNNING]
    assert cut.name == name
    assert machine.boot() == 0
    assert end_of(machine) == undisturbed
    told = [e for e in last(machine).stages if e.outcome == timeline.INTERRUPTED]
    assert [entry.name for entry in told] == [name]


@pytest.mark.parametrize("name", NAMES)
def test_a_machine_that_loses_power_at_any_stage_ends_the_same(
    name: str, undisturbed: tuple[Any, ...]
) -> None:
    machine = Booting("a2-highgpu-1g", **EVERYTHING)
    machine.kill_before = name
    with pytest.raises(Killed):
        machine.boot()
    machine.power_cycle()
    assert machine.boot() == 0
    assert end_of(machine) == undisturbed


def test_a_second_run_in_a_boot_that_joined_touches_nothing_but_the_workload() -> None:
    machine = Booting(**DRIVER)
    machine.boot()
    machine.began.clear()
    assert machine.boot() == 0
    assert machine.began == ["workload"]


def test_a_workload_that_does_not_start_is_told_by_the_exit_status() -> None:
    machine = Booting(**DRIVER)
    machine.scripts["workload"] = config("the image cannot be pulled")
    assert machine.boot() == 30
    assert opened(machine).open
