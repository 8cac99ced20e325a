"""AWS: the launch hook hears one verdict, after the report, whatever gets lost on the way."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.node.clouds import CONFIG, HEALTHY, INCONCLUSIVE, INSTANCE, REBOOT, REPLACE, STATE, World
from tests.node.clouds import world as started
from tests.standins.autoscaling import IN_SERVICE, TERMINATING, WAITING
from tests.standins.server import Fault

from gputier.node import gate
from gputier.node.gates import Gate, of
from gputier.node.gates.steps import Step
from gputier.node.result import EXIT

pytestmark = pytest.mark.allow_hosts(["127.0.0.1"])
BAD = [REPLACE, REBOOT, CONFIG, INCONCLUSIVE]
COMPLETE = "Action=CompleteLifecycleAction"


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    with started(tmp_path, "aws") as made:
        yield made


def hook(world: World, mode: str = "enforce", **more: Any) -> Gate:
    return world.gate("lifecycle-hook", mode, **more)


def state(world: World, instance: str = INSTANCE) -> str:
    return world.autoscaling.nodes[instance].state


def reports(world: World) -> list[str]:
    return world.store.keys("reports/tuner/")


def test_a_healthy_node_comes_in_and_its_report_is_there(world: World) -> None:
    settled = hook(world).settle(HEALTHY)
    assert (settled.open, settled.exit, settled.failed, settled.notes) == (True, 0, (), ())
    assert state(world) == IN_SERVICE
    assert gate.read(world.host).open
    (key,) = reports(world)
    assert key.startswith(f"reports/tuner/{INSTANCE}/2")
    assert key.endswith("Z-healthy.json")
    assert world.store.json(key)["outcome"] == "healthy"


def test_who_joined_is_kept_for_the_fetcher_and_for_ourselves(world: World) -> None:
    hook(world).settle(HEALTHY)
    kept = json.loads(world.host.read("/var/lib/gputier/joined.json") or "")
    assert kept == {"machine": "machine-1", "instance": INSTANCE}


@pytest.mark.parametrize("report", BAD, ids=lambda r: r["outcome"])
def test_a_bad_node_is_given_up_after_its_report(world: World, report: dict[str, Any]) -> None:
    settled = hook(world).settle(report)
    assert (settled.open, settled.exit) == (False, EXIT[report["outcome"]])
    assert state(world) == TERMINATING
    assert not gate.read(world.host).open
    assert gate.read(world.host).outcome == report["outcome"]
    (key,) = reports(world)
    put = next(asked.at for asked in world.store.requests(key, "PUT") if asked.status == 200)
    assert put < world.autoscaling.seen[-1].at, "ABANDON ends the machine: nothing comes after it"


@pytest.mark.parametrize("mode", ["report", "off"])
@pytest.mark.parametrize("report", [HEALTHY, *BAD], ids=lambda r: r["outcome"])
@pytest.mark.parametrize("verb", ["settle", "refuse"])
def test_nobody_is_kept_out_where_the_gate_does_not_enforce(
    world: World, mode: str, report: dict[str, Any], verb: str
) -> None:
    settled = getattr(hook(world, mode), verb)(report)
    assert (settled.open, settled.exit) == (True, 0)
    assert state(world) == IN_SERVICE
    assert len(reports(world)) == (1 if mode == "report" else 0)
    assert world.store.keys("breaker/") == [], "nothing is replaced, so nothing loops"
    told = gate.read(world.host)
    assert told.outcome == ("unchecked" if mode == "off" else report["outcome"])
    assert bool(told.reasons) == (report is not HEALTHY)


@pytest.mark.parametrize("report", [HEALTHY, REPLACE], ids=["CONTINUE", "ABANDON"])
@pytest.mark.parametrize(
    "fault",
    [Fault(body=COMPLETE, status=500, times=4), Fault(body=COMPLETE, drop=True, times=2),
     Fault(body=COMPLETE, lost=True, times=1), Fault(body=COMPLETE, lost=True, times=3),
     Fault(body=COMPLETE, status=400, text="<Code>Throttling</Code>", times=5)],
    ids=["down", "dropped", "lost", "lost again", "throttled"],
)  # fmt: skip
def test_incident_68_a_completion_is_tried_until_it_is_heard(
    world: World, report: dict[str, Any], fault: Fault
) -> None:
    """github.com/PrairieLearn/PrairieLearn/issues/15586: one failure and the node hung."""
    world.autoscaling.faults.append(fault)
    # What the node is on its way to may be told late: then it does not help.
    world.autoscaling.targets = lambda _instance, _target: None
    settled = hook(world).settle(report)
    assert (settled.failed, settled.notes) == ((), ())
    assert settled.open == (report is HEALTHY)
    assert world.autoscaling.nodes[INSTANCE].results == (
        ("CONTINUE",) if report is HEALTHY else ("ABANDON",)
    )
    assert not world.autoscaling.nodes[INSTANCE].unhealthy


def test_a_completion_that_is_never_heard_leaves_the_gate_shut(world: World) -> None:
    """The hook's default then ends the node; work that it took would be lost."""
    world.autoscaling.faults.append(Fault(status=500))
    settled = hook(world).settle(HEALTHY)
    assert (settled.open, settled.failed, settled.exit) == (
        False,
        (Step.ENTER,),
        EXIT["inconclusive"],
    )
    assert not gate.read(world.host).open
    assert state(world) == WAITING


def test_a_store_that_is_down_delays_the_verdict_and_does_not_stop_it(world: World) -> None:
    world.store.faults.append(Fault(status=503))
    settled = hook(world).settle(REPLACE)
    assert Step.REPORT in settled.failed
    assert state(world) == TERMINATING
    assert len(world.store.requests("reports", "PUT")) > 5


def test_a_store_that_is_slow_to_come_gets_its_report(world: World) -> None:
    world.store.faults.append(Fault(status=503, times=6))
    assert hook(world).settle(REPLACE).failed == ()
    assert len(reports(world)) == 1


def test_a_healthy_node_comes_in_without_a_store(world: World) -> None:
    world.store.faults.append(Fault(status=503))
    settled = hook(world).settle(HEALTHY)
    assert settled.open
    assert settled.failed == (Step.REPORT, Step.CLEAR)


def test_a_second_boot_finds_the_hook_answered_and_is_right(world: World) -> None:
    hook(world).settle(HEALTHY)
    settled = hook(world).settle(HEALTHY)
    assert settled.open
    assert "the node is in already" in settled.notes[0]


def test_a_node_in_service_that_fails_is_replaced_by_its_health(world: World) -> None:
    hook(world).settle(HEALTHY)
    settled = hook(world).settle(REPLACE)
    assert not settled.open
    assert world.autoscaling.nodes[INSTANCE].unhealthy
    assert world.autoscaling.calls("SetInstanceHealth")[0]["ShouldRespectGracePeriod"] == "false"


def test_a_node_that_breaks_later_is_taken_out(world: World) -> None:
    found = hook(world)
    found.settle(HEALTHY)
    settled = found.revoke("replace", ["Xid 79"])
    assert (settled.open, settled.done) == (False, (Step.SHUT, Step.GIVE_UP))
    assert world.autoscaling.nodes[INSTANCE].unhealthy
    assert gate.read(world.host).reasons == ("Xid 79",)


def test_a_node_that_breaks_later_stays_where_the_gate_only_reports(world: World) -> None:
    found = hook(world, "report")
    found.settle(HEALTHY)
    settled = found.revoke("replace", ["Xid 79"])
    assert (settled.open, settled.done) == (True, (Step.SHUT,))
    assert not world.autoscaling.nodes[INSTANCE].unhealthy


@pytest.mark.parametrize("report", [HEALTHY, REPLACE], ids=["healthy", "replace"])
def test_a_hook_that_ran_out_has_ended_the_node(world: World, report: dict[str, Any]) -> None:
    world.autoscaling.nodes[INSTANCE].until = 0.0
    world.autoscaling.faults.append(Fault(status=500, body="nothing"))
    hook(world).heartbeat()
    settled = hook(world).settle(report)
    assert not settled.open
    assert not world.autoscaling.nodes[INSTANCE].unhealthy
    words = " ".join(settled.notes)
    assert "terminating this node" in words


def test_a_machine_outside_a_group_opens_and_shuts_for_itself(world: World) -> None:
    world.metadata.set(STATE, None)
    world.autoscaling.nodes.clear()
    assert hook(world).settle(HEALTHY).open
    settled = hook(world).settle(REPLACE)
    assert not settled.open
    assert "no group replaces this node" in " ".join(settled.notes)


def test_a_state_that_comes_late_is_waited_for(world: World) -> None:
    world.metadata.faults.append(Fault("target-lifecycle-state", status=404, times=3))
    assert hook(world).settle(HEALTHY).open
    assert state(world) == IN_SERVICE


@pytest.mark.parametrize("target", ["Warmed:Stopped", "Warmed:Running", "Warmed:Hibernated"])
def test_a_node_of_the_warm_pool_is_proved_and_kept_aside(world: World, target: str) -> None:
    world.autoscaling.launch(INSTANCE, target)
    settled = hook(world).settle(HEALTHY)
    assert (settled.open, settled.exit) == (False, 0)
    assert "warm pool" in settled.notes[0]
    assert state(world) == target
    assert gate.read(world.host).reasons == (f"kept in the warm pool ({target})",)
    world.autoscaling.launch(INSTANCE, IN_SERVICE)
    assert hook(world).settle(HEALTHY).open, "it is proved again when it comes out"


def test_a_bad_node_does_not_stay_in_the_warm_pool(world: World) -> None:
    world.autoscaling.launch(INSTANCE, "Warmed:Stopped")
    assert not hook(world).settle(REPLACE).open
    assert state(world) == TERMINATING


def test_incident_67_heartbeats_keep_the_hook_waiting(world: World) -> None:
    world.autoscaling.nodes[INSTANCE].until -= 3000
    before = world.autoscaling.nodes[INSTANCE].until
    assert hook(world).heartbeat() is None
    assert world.autoscaling.nodes[INSTANCE].heartbeats == 1
    assert world.autoscaling.nodes[INSTANCE].until > before


def test_a_heartbeat_never_raises_and_never_takes_long(world: World) -> None:
    world.autoscaling.faults.append(Fault(status=500))
    found = hook(world)
    before = world.host.monotonic()
    assert "RecordLifecycleActionHeartbeat" in (found.heartbeat() or "")
    assert world.host.monotonic() - before < 20
    world.autoscaling.faults.clear()
    found.settle(HEALTHY)
    assert found.heartbeat() == "the launch hook does not wait for this node"


def test_a_machine_that_is_taken_away_sends_its_report_and_no_verdict(world: World) -> None:
    settled = hook(world).leave(INCONCLUSIVE)
    assert (settled.open, settled.exit) == (False, EXIT["inconclusive"])
    assert len(reports(world)) == 1
    assert world.autoscaling.calls() == []
    assert world.store.keys("breaker/") == []


def test_a_machine_that_does_not_know_who_it_is_opens_for_nobody(world: World) -> None:
    settings = world.here().settings
    settled = of(settings, None, world.host).settle(HEALTHY)
    assert not settled.open
    assert of(settings, None, world.host).heartbeat() == "the machine does not know who it is"


def test_missing_permissions_are_named(world: World) -> None:
    world.autoscaling.denied.add("CompleteLifecycleAction")
    settled = hook(world).settle(REPLACE)
    assert settled.failed == (Step.GIVE_UP,)
    assert "not authorized: autoscaling:CompleteLifecycleAction" in " ".join(settled.notes)
    assert len(world.autoscaling.requests()) == 1


# --- the loop breaker on AWS -----------------------------------------------------------------


def test_the_same_configuration_fault_on_two_new_nodes_stops_launches(world: World) -> None:
    first = hook(world).settle(CONFIG)
    assert Step.STOP not in first.done
    assert world.autoscaling.suspended == set()
    world.new_node("i-2")
    second = hook(world).settle(CONFIG)
    assert second.done == (Step.SHUT, Step.REPORT, Step.COUNT, Step.STOP, Step.GO)
    assert world.autoscaling.suspended == {"Launch"}
    calls = [call["Action"] for call in world.autoscaling.calls()]
    assert calls[-2:] == ["SuspendProcesses", "CompleteLifecycleAction"], "stop first, then go"
    assert world.store.json("breaker/tuner.json")["tripped"]["instance"] == "i-2"
    assert "2 of 2 nodes in a row with driver-version@driver" in " ".join(second.notes)


def test_a_bucket_that_is_not_there_is_not_there_for_any_node(world: World) -> None:
    world.store.faults.append(Fault(status=404))
    hook(world).settle(CONFIG)
    assert world.autoscaling.suspended == {"Launch"}


@pytest.mark.parametrize("status", [412, 503])
def test_a_store_that_is_down_or_written_by_others_each_time_stops_nothing(
    world: World, status: int
) -> None:
    world.store.faults.append(Fault(path="breaker/", method="PUT", status=status))
    hook(world).settle(CONFIG)
    assert world.autoscaling.suspended == set()
    assert state(world) == TERMINATING


@pytest.mark.parametrize("verdict", [INCONCLUSIVE, REPLACE], ids=["inconclusive", "replace"])
def test_a_store_that_refuses_stops_nothing_for_an_outcome_that_does_not_count(
    world: World, verdict: dict[str, Any]
) -> None:
    world.store.denied = {("PUT", "")}
    hook(world).settle(verdict)
    assert world.autoscaling.suspended == set()


def test_a_node_that_may_not_stop_launches_is_still_given_up(world: World) -> None:
    world.autoscaling.denied.add("SuspendProcesses")
    hook(world).settle(CONFIG)
    world.new_node("i-2")
    settled = hook(world).settle(CONFIG)
    assert settled.failed == (Step.STOP,)
    assert state(world, "i-2") == TERMINATING


def test_a_breaker_that_cannot_be_reached_stops_nothing(world: World) -> None:
    world.store.faults.append(Fault("breaker", status=503))
    settled = hook(world).settle(CONFIG)
    assert settled.failed == (Step.COUNT,)
    assert state(world) == TERMINATING
    assert world.autoscaling.suspended == set()


@pytest.mark.parametrize(("report", "stops"), [(CONFIG, True), (INCONCLUSIVE, False)])
def test_a_breaker_that_may_not_be_written_is_refused_to_every_node_and_stops_the_fleet(
    world: World, report: dict[str, Any], stops: bool
) -> None:
    world.store.denied = {("PUT", "breaker/")}
    hook(world).settle(report)
    assert world.autoscaling.suspended == ({"Launch"} if stops else set())
    assert state(world) == TERMINATING


def test_hardware_faults_keep_replacing(world: World) -> None:
    for number in range(4):
        hook(world).settle(REPLACE)
        world.new_node(f"i-{number}")
    assert world.autoscaling.suspended == set()


def test_an_old_node_says_nothing_about_new_ones(world: World) -> None:
    """A reboot of a node that works neither clears nor adds to what new nodes count."""
    hook(world).settle(HEALTHY)
    world.store.objects["breaker/tuner.json"] = json.dumps(
        {"schema": "gputier/breaker/1",
         "nodes": [{"instance": "i-9", "outcome": "config", "reason": "driver-version@driver",
                    "at": world.host.now()}]}
    ).encode()  # fmt: skip
    hook(world).settle(HEALTHY)
    hook(world).settle(CONFIG)
    assert [node["instance"] for node in world.store.json("breaker/tuner.json")["nodes"]] == ["i-9"]
    assert world.autoscaling.suspended == set()


def test_the_host_that_comes_back_is_known(world: World) -> None:
    found = hook(world)
    assert found.known_bad(REPLACE["host"]) is None
    found.settle(REPLACE)
    world.new_node("i-2")
    words = hook(world).known_bad({"gpus": ["b2", "a1"], "placement": {}}) or ""
    assert INSTANCE in words
    assert "gpu-count" in words
    world.store.faults.append(Fault(status=503))
    assert hook(world).known_bad(REPLACE["host"]) is None, "not known is not bad"
