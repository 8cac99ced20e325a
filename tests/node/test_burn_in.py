"""The burn-in: after a node has joined, before its workload, once; a bad machine is given back."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.node.booting import Booting, Killed, passes
from tests.node.clouds import HEALTHY as PROVED
from tests.node.clouds import INSTANCE, World
from tests.node.clouds import world as started
from tests.standins.server import Fault

from gputier.node import gate, gates, report, stages, timeline
from gputier.node.cloud import endpoints, identity
from gputier.node.engine import Context
from gputier.node.result import CONFIG, HEALTHY, INCONCLUSIVE, REBOOT, REPLACE
from gputier.node.stages import Work, burn_in, ok
from gputier.node.verbs import common
from gputier.node.verbs.stage import perform

pytestmark = pytest.mark.allow_hosts(["127.0.0.1"])
HOOK = {"kind": "lifecycle-hook", "group": "tuner", "hook": "tuner-launch", "depth": "standard"}
ALONE: dict[str, Any] = {"gate": {"depth": "standard"}, "run": "true"}


class Burning(Booting):
    """A machine whose plan asks for a burn-in."""

    depth = "burn-in"

    def expectation(self) -> dict[str, Any]:
        return {**super().expectation(), "depth": self.depth}


def found(monkeypatch: pytest.MonkeyPatch, outcome: str) -> None:
    """What the long tests find: `outcome`, by one check of them."""
    check = {"name": "dcgm", "outcome": outcome, "evidence": "memory: failed", "stage": "load"}
    said: dict[str, Any] = {
        "schema": report.SCHEMA, "outcome": outcome, "checks": [check], "causes": ["dcgm"],
        "warnings": [], "seconds": 5000.0, "remedy": "see", "depth": "burn-in",
        "host": {"gpus": ["a1"], "placement": {}},
    }  # fmt: skip

    def judged(ctx: Context, depth: str, **_: Any) -> common.Run:
        assert depth == "burn-in"
        assert not report.save(ctx.host, said)
        return common.Run(ctx, said)

    monkeypatch.setattr("gputier.node.stages.burn_in.common.judge_in", judged)


def last(machine: Booting) -> timeline.Boot:
    return timeline.read(machine).last


def test_it_comes_behind_the_gate_and_before_the_workload() -> None:
    machine = Burning(**ALONE)
    assert machine.boot() == 0
    assert machine.began[-4:] == ["validate", "gate", "burn-in", "workload"]
    entry = next(entry for entry in last(machine).stages if entry.name == "burn-in")
    assert entry.outcome == HEALTHY
    assert last(machine).end == timeline.ADMITTED
    found = report.load(machine)
    assert found
    assert found["depth"] == "burn-in"
    assert "burn-in" in timeline.text(timeline.read(machine))


@pytest.mark.parametrize("depth", ["quick", "standard"])
def test_only_where_the_expectation_asks_for_it(depth: str) -> None:
    machine = Burning(**ALONE)
    machine.depth = depth
    assert machine.boot() == 0
    assert "burn-in" not in machine.began


def test_a_gate_that_is_off_has_no_burn_in_either() -> None:
    machine = Burning(gate={"mode": "off", "depth": "standard"}, run="true")
    assert machine.boot() == 0
    assert machine.began[-2:] == ["gate", "workload"]


def test_no_deadline_of_the_gate_is_spent_on_it() -> None:
    machine = Burning(gate={"depth": "standard", "deadline_seconds": 3600}, run="true")
    machine.scripts["burn-in"] = passes(5400)
    assert machine.boot() == 0
    assert machine.began[-1] == "workload"
    entry = next(entry for entry in last(machine).stages if entry.name == "burn-in")
    assert entry.seconds > 3600


def test_one_that_hangs_is_ended_by_its_own_limit_and_the_workload_starts() -> None:
    machine = Burning(**ALONE)
    limit = stages.BY_NAME["burn-in"].seconds(machine.settings)
    machine.scripts["burn-in"] = passes(limit + 100)
    assert machine.boot() == 0
    entry = next(entry for entry in last(machine).stages if entry.name == "burn-in")
    assert (entry.outcome, entry.seconds) == (INCONCLUSIVE, limit)
    assert machine.began[-1] == "workload"
    machine.began.clear()
    assert machine.boot() == 0
    assert machine.began == ["workload"], "not under a workload that runs"


def test_a_machine_that_is_proven_is_not_burnt_in_at_its_next_boots() -> None:
    machine = Burning(**ALONE)
    assert machine.boot() == 0
    for _ in range(2):
        machine.power_cycle()
        machine.began.clear()
        assert machine.boot() == 0
        assert "burn-in" not in machine.began
        assert machine.began[-1] == "workload"


def test_another_instance_of_a_disk_that_was_copied_is_burnt_in_itself() -> None:
    machine = Burning(**ALONE)
    assert machine.boot() == 0
    machine.files["/var/lib/cloud/data/instance-id"] = "i-another\n"
    machine.power_cycle()
    machine.began.clear()
    assert machine.boot() == 0
    assert "burn-in" in machine.began


@pytest.mark.parametrize("when", ["kill_before", "kill_after"])
def test_one_that_was_cut_off_is_done_at_the_next_boot(when: str) -> None:
    machine = Burning(**ALONE)
    setattr(machine, when, "burn-in")
    machine.scripts["burn-in"] = ok("said, and the machine went down before it was kept")
    with pytest.raises(Killed):
        machine.boot()
    assert "workload" not in machine.began
    machine.power_cycle()
    machine.scripts.clear()
    machine.began.clear()
    assert machine.boot() == 0
    assert machine.began[-2:] == ["burn-in", "workload"]


def test_a_run_that_was_cut_off_goes_on_in_the_same_boot() -> None:
    machine = Burning(**ALONE)
    machine.kill_before = "burn-in"
    with pytest.raises(Killed):
        machine.boot()
    machine.began.clear()
    assert machine.boot() == 0
    assert machine.began == ["burn-in", "workload"]


def test_one_that_proved_nothing_is_not_repeated_under_a_workload_but_at_the_next_boot(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    machine = Burning(**ALONE)
    found(monkeypatch, INCONCLUSIVE)
    machine.scripts["validate"] = ok("healthy")
    machine.write(report.FILE, json.dumps(PROVED))
    assert machine.boot() == 0
    assert machine.began[-2:] == ["burn-in", "workload"]
    machine.began.clear()
    assert machine.boot() == 0
    assert machine.began == ["workload"]
    machine.power_cycle()
    machine.began.clear()
    machine.boot()
    assert machine.began[-2:] == ["burn-in", "workload"]


@pytest.mark.parametrize("text", ["", "{", "[]", '{"machine": 7}'])
def test_a_record_that_cannot_be_read_proves_nothing(text: str) -> None:
    machine = Burning(**ALONE)
    machine.write(burn_in.FILE, text)
    assert not burn_in.done(machine)


# --- what is told --------------------------------------------------------------------------------


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    with started(tmp_path, "aws") as made:
        yield made


def joined(world: World, mode: str = "enforce") -> Burning:
    """A machine of a group that came in on its standard validation."""
    machine = Burning("p5.48xlarge", workload="tuner", cloud="aws", run="true",
                      gate={**HOOK, "mode": mode})  # fmt: skip
    urls = {name: service.url for name, service in world.services.items()}
    machine.files[endpoints.FILE] = json.dumps(urls)
    machine.files[identity.FILE] = world.identity().to_json()
    told = gates.of(machine.settings, identity.load(machine), machine)
    assert told.settle(PROVED).open
    world.store.objects.clear()
    return machine


def burnt(machine: Burning) -> stages.StageResult:
    work = Work(machine, machine.wanted, machine.settings, 5700.0)
    return perform(stages.BY_NAME["burn-in"], work)


def uploaded(world: World) -> list[str]:
    return [key for key in world.store.objects if key.startswith("reports/")]


@pytest.mark.parametrize("outcome", [REPLACE, REBOOT])
def test_a_machine_that_fails_it_is_shut_told_remembered_and_given_back(
    world: World, monkeypatch: pytest.MonkeyPatch, outcome: str
) -> None:
    machine = joined(world)
    found(monkeypatch, outcome)
    result = burnt(machine)
    assert (result.outcome, result.warnings) == (outcome, ())
    assert not gate.read(machine).open
    assert "dcgm: memory: failed" in gate.read(machine).reasons
    (key,) = uploaded(world)
    assert key.endswith(f"-{outcome}.json")
    assert "bad-hosts/tuner.json" in world.store.objects
    assert world.autoscaling.nodes[INSTANCE].unhealthy
    assert not any(key.startswith("breaker/") for key in world.store.objects)


def test_a_real_fault_is_found_at_the_depth_of_the_burn_in(world: World) -> None:
    machine = joined(world)
    machine.gpus[0].visible = False
    assert burnt(machine).outcome == REPLACE
    said = report.load(machine)
    assert said
    assert said["depth"] == "burn-in"
    assert world.autoscaling.nodes[INSTANCE].unhealthy


def test_its_workload_is_not_started(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    machine = joined(world)
    found(monkeypatch, REPLACE)
    assert machine.boot() == 20
    assert machine.began == ["burn-in"]
    assert last(machine).end == timeline.REFUSED


def test_where_the_gate_only_reports_it_is_told_and_the_workload_starts(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    machine = joined(world, "report")
    found(monkeypatch, REPLACE)
    assert machine.boot() == 0
    assert machine.began == ["burn-in", "workload"]
    assert gate.read(machine).open
    assert len(uploaded(world)) == 1
    assert not world.autoscaling.nodes[INSTANCE].unhealthy


@pytest.mark.parametrize("outcome", [INCONCLUSIVE, CONFIG])
def test_what_proves_nothing_of_the_machine_is_a_warning_of_the_report_and_it_stays(
    world: World, monkeypatch: pytest.MonkeyPatch, outcome: str
) -> None:
    """A fault of ours would be the same on its replacement, which would be burnt in for as long."""
    machine = joined(world)
    found(monkeypatch, outcome)
    assert machine.boot() == 0
    assert machine.began == ["burn-in", "workload"]
    assert gate.read(machine).open
    assert not world.autoscaling.nodes[INSTANCE].unhealthy
    (key,) = uploaded(world)
    said = json.loads(world.store.objects[key])
    words = f"the burn-in is {outcome}; the workload starts all the same"
    assert said["warnings"] == [words]
    kept = report.load(machine)
    assert kept
    assert kept["warnings"] == [words]


def test_a_report_that_cannot_be_put_does_not_keep_a_bad_machine(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    machine = joined(world)
    found(monkeypatch, REPLACE)
    world.store.faults += [Fault(status=403, times=99)]
    result = burnt(machine)
    assert any("report" in warning for warning in result.warnings)
    assert not gate.read(machine).open
    assert world.autoscaling.nodes[INSTANCE].unhealthy
