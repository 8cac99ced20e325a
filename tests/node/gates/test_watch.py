"""A node that joined and breaks is shut and, where a group would replace it, given back."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.node.clouds import HEALTHY, INSTANCE, World
from tests.node.clouds import world as started
from tests.node.machines import Machine
from tests.standins.server import Fault

from gputier.node import expect, gate, gates, settings
from gputier.node.cloud import endpoints, identity
from gputier.node.verbs import watch

pytestmark = pytest.mark.allow_hosts(["127.0.0.1"])
XID = "kernel: NVRM: Xid (PCI:0000:1b:00): 79, pid=1, GPU has fallen off the bus"


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    with started(tmp_path, "aws") as made:
        yield made


def joined(world: World, mode: str) -> Machine:
    """A healthy machine of the group that came in."""
    machine = Machine("p5.48xlarge")
    urls = {name: service.url for name, service in world.services.items()}
    kind = {"kind": "lifecycle-hook", "mode": mode, "group": "tuner", "hook": "tuner-launch"}
    boot = {"schema": settings.SCHEMA, "workload": "tuner", "cloud": "aws", "gate": kind}
    machine.files[endpoints.FILE] = json.dumps(urls)
    machine.files[identity.FILE] = world.identity().to_json()
    machine.files[settings.FILE] = json.dumps(boot)
    found = gates.of(settings.read(json.dumps(boot)), identity.load(machine), machine)
    assert found.settle(HEALTHY).open
    return machine


def watched(machine: Machine, log: list[str]) -> None:
    wanted = expect.read(json.dumps(machine.expectation()))
    machine.late = log
    assert watch.loop(machine, wanted, 10, machine.monotonic() + 65, as_json=True) == 0


def test_a_joined_node_that_breaks_is_shut_and_given_back(world: World) -> None:
    machine = joined(world, "enforce")
    watched(machine, [XID])
    assert not gate.read(machine).open
    assert world.autoscaling.nodes[INSTANCE].unhealthy


def test_where_the_gate_only_reports_it_stays(world: World) -> None:
    machine = joined(world, "report")
    watched(machine, [XID])
    assert gate.read(machine).open
    assert "Xid 79" in gate.read(machine).reasons[0]
    assert not world.autoscaling.nodes[INSTANCE].unhealthy


def test_a_cloud_that_does_not_hear_it_is_told_of_in_the_journal(
    world: World, capsys: pytest.CaptureFixture[str]
) -> None:
    machine = joined(world, "enforce")
    world.autoscaling.faults.append(Fault(status=403))
    watched(machine, [XID])
    assert not gate.read(machine).open
    assert "give up: CompleteLifecycleAction" in capsys.readouterr().err


def test_a_machine_without_settings_is_shut_for_itself(world: World) -> None:
    machine = joined(world, "enforce")
    del machine.files[settings.FILE]
    watched(machine, [XID])
    assert not gate.read(machine).open
    assert not world.autoscaling.nodes[INSTANCE].unhealthy


def test_a_machine_that_the_provider_takes_is_not_given_back_too(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    machine = joined(world, "enforce")

    def noticed(*_: Any) -> str:
        return "spot notice: the machine is preempted"

    monkeypatch.setattr("gputier.node.watching.notice", noticed)
    watched(machine, [])
    assert not gate.read(machine).open
    assert not world.autoscaling.nodes[INSTANCE].unhealthy
