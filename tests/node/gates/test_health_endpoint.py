"""Google: the endpoint tells, the node replaces itself early, and a fleet's own fault ends it."""

from __future__ import annotations

import json
import threading
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.node.clouds import CONFIG, HEALTHY, INCONCLUSIVE, REBOOT, REPLACE, World, report
from tests.node.clouds import world as started
from tests.standins.server import Fault

from gputier.node import gate
from gputier.node.cloud import identity
from gputier.node.gates import of
from gputier.node.gates.steps import Step
from gputier.node.result import EXIT
from gputier.node.verbs import serve

pytestmark = pytest.mark.allow_hosts(["127.0.0.1"])
NAME = "tuner-x1k2"
BAD = [REPLACE, REBOOT, CONFIG, INCONCLUSIVE]
KNOWN = report("replace", ("known-host", "preparation"))


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    with started(tmp_path, "gcp") as made:
        yield made


@pytest.fixture
def health(world: World) -> Iterator[str]:
    served = serve.server(world.host, "127.0.0.1", 0)
    threading.Thread(target=served.serve_forever, args=(0.02,), daemon=True).start()
    yield f"http://127.0.0.1:{served.server_address[1]}/healthz"
    served.shutdown()
    served.server_close()


def asked(url: str) -> int:
    try:
        with urllib.request.urlopen(url, timeout=5) as answer:  # noqa: S310 (ours)
            return int(answer.status)
    except urllib.error.HTTPError as error:
        with error:
            return error.code


def test_the_endpoint_is_503_until_the_node_is_proved_and_again_after_a_fault(
    world: World, health: str
) -> None:
    found = world.gate("health-endpoint")
    assert asked(health) == 503
    assert found.heartbeat() is None
    settled = found.settle(HEALTHY)
    assert (settled.open, settled.exit, settled.failed) == (True, 0, ())
    assert asked(health) == 200
    assert world.compute.seen == []
    found.revoke("replace", ["Xid 79"])
    assert asked(health) == 503


@pytest.mark.parametrize("bad", BAD, ids=lambda r: r["outcome"])
def test_a_bad_node_has_itself_made_anew_after_its_report(
    world: World, health: str, bad: dict[str, Any]
) -> None:
    settled = world.gate("health-endpoint").settle(bad)
    assert (settled.open, settled.exit) == (False, EXIT[bad["outcome"]])
    assert asked(health) == 503
    assert world.compute.done == [("recreateInstances", NAME)]
    (key,) = world.store.keys("reports/tuner/4815162342108151623/")
    assert world.store.json(key)["outcome"] == bad["outcome"]
    assert world.store.seen[0].at < world.compute.seen[0].at


@pytest.mark.parametrize("mode", ["report", "off"])
@pytest.mark.parametrize("bad", BAD, ids=lambda r: r["outcome"])
def test_nobody_is_kept_out_where_the_gate_does_not_enforce(
    world: World, health: str, mode: str, bad: dict[str, Any]
) -> None:
    assert world.gate("health-endpoint", mode).settle(bad).open
    assert asked(health) == 200
    assert world.compute.seen == []


@pytest.mark.parametrize(
    "fault",
    [Fault(status=503, times=4), Fault(drop=True, times=2), Fault(lost=True, times=1)],
    ids=["down", "dropped", "lost"],
)
def test_the_call_is_tried_until_it_is_heard(world: World, fault: Fault) -> None:
    world.compute.faults.append(fault)
    assert world.gate("health-endpoint").settle(REPLACE).failed == ()
    assert set(world.compute.done) == {("recreateInstances", NAME)}


def test_a_node_that_may_not_is_left_to_the_health_check(world: World, health: str) -> None:
    world.compute.denied.add("recreateInstances")
    settled = world.gate("health-endpoint").settle(REPLACE)
    assert settled.failed == ()
    assert "left to the health check" in " ".join(settled.notes)
    assert asked(health) == 503


def test_a_regional_group_has_the_same_methods(world: World) -> None:
    world.compute.group = "regions/us-central1/instanceGroupManagers/tuner"
    world.compute.place = "regions/us-central1"
    world.metadata.set(
        "instance/attributes/created-by", f"projects/123456789012/{world.compute.group}"
    )
    world.gate("health-endpoint").settle(CONFIG)
    world.new_node("2")
    world.gate("health-endpoint").settle(CONFIG)
    assert world.compute.done == [("recreateInstances", NAME), ("deleteInstances", "tuner-2")]
    assert world.compute.policy["mode"] == "OFF"


def test_what_the_fetcher_writes_is_enough(world: World) -> None:
    """Name and group are asked for when they are needed."""
    whole = world.identity()
    world.host.write(identity.FILE, json.dumps(dict(list(whole._asdict().items())[:6])))
    known = identity.load(world.host)
    of(world.here().settings, known, world.host).settle(REPLACE)
    assert world.compute.done == [("recreateInstances", NAME)]


def test_a_machine_of_no_group_is_replaced_by_nobody(world: World, health: str) -> None:
    world.metadata.set("instance/attributes/created-by", None)
    settled = world.gate("health-endpoint").settle(REPLACE)
    assert settled.failed == (Step.GIVE_UP,)
    assert "no group made this machine" in " ".join(settled.notes)
    assert asked(health) == 503


def test_a_machine_that_is_taken_away_sends_its_report_only(world: World, health: str) -> None:
    assert not world.gate("health-endpoint").leave(INCONCLUSIVE).open
    assert len(world.store.keys("reports/")) == 1
    assert (world.compute.seen, asked(health)) == ([], 503)


# --- the loop breaker on Google --------------------------------------------------------------


@pytest.mark.parametrize("autoscaler", ["tuner", None])
def test_the_second_node_with_one_configuration_fault_goes_and_nothing_comes_after_it(
    world: World, autoscaler: str | None
) -> None:
    world.compute.autoscaler = autoscaler
    before = world.compute.size
    world.gate("health-endpoint").settle(CONFIG)
    assert world.compute.size == before
    world.new_node("77")
    settled = world.gate("health-endpoint").settle(CONFIG)
    assert settled.done == (Step.SHUT, Step.REPORT, Step.COUNT, Step.STOP, Step.GO)
    assert world.compute.done == [("recreateInstances", NAME), ("deleteInstances", "tuner-77")]
    assert world.compute.size == before - 1, "the target size goes down with it"
    assert world.compute.policy["mode"] == ("OFF" if autoscaler else "ON")
    assert world.compute.policy["maxNumReplicas"] == 8, "the autoscaler's rules stay"


def test_a_departure_whose_answer_got_lost_was_one(world: World) -> None:
    world.gate("health-endpoint").settle(CONFIG)
    world.new_node("77")
    world.compute.faults.append(Fault("deleteInstances", lost=True, times=1))
    assert world.gate("health-endpoint").settle(CONFIG).failed == ()
    assert world.compute.size == 3, "once, not twice"


def test_a_group_that_does_not_know_the_node_says_so(world: World) -> None:
    world.compute.machines.clear()
    settled = world.gate("health-endpoint").settle(REPLACE)
    assert settled.failed == (Step.GIVE_UP,)
    assert "not a member of the group" in " ".join(settled.notes)


def test_a_node_made_anew_under_its_name_is_another_one(world: World) -> None:
    """Recreating keeps the name; the number is new."""
    world.gate("health-endpoint").settle(CONFIG)
    world.host.write("/etc/machine-id", "another\n")
    world.metadata.set("instance/id", "42")
    settled = world.gate("health-endpoint").settle(CONFIG)
    assert Step.STOP in settled.done


def test_an_autoscaler_that_may_not_be_switched_off_does_not_keep_the_node(world: World) -> None:
    world.compute.denied.add("patch")
    world.gate("health-endpoint").settle(CONFIG)
    world.new_node("77")
    settled = world.gate("health-endpoint").settle(CONFIG)
    assert settled.failed == (Step.STOP,)
    assert world.compute.done[-1] == ("deleteInstances", "tuner-77")


# --- the host that comes back ----------------------------------------------------------------


def test_google_is_told_of_a_host_that_came_back_bad(world: World) -> None:
    settled = world.gate("health-endpoint").settle(KNOWN)
    assert world.compute.done == [("reportHostAsFaulty", NAME)]
    assert "moves the machine" in " ".join(settled.notes)


@pytest.mark.parametrize(
    ("change", "instance_type"),
    [({"reserved": False}, "a3-highgpu-8g"), ({"denied": {"reportHostAsFaulty"}}, "a4-highgpu-8g"),
     ({}, "g2-standard-48")],
    ids=["no reservation", "no permission", "another family"],
)  # fmt: skip
def test_where_google_does_not_hear_it_the_node_is_made_anew(
    world: World, change: dict[str, Any], instance_type: str
) -> None:
    for name, value in change.items():
        setattr(world.compute, name, value)
    found = world.gate("health-endpoint", instance_type=instance_type)
    assert found.settle(KNOWN).failed == ()
    assert world.compute.done == [("recreateInstances", NAME)]


def test_a_host_that_is_bad_for_the_first_time_is_not_reported(world: World) -> None:
    world.gate("health-endpoint").settle(REPLACE)
    assert world.compute.done == [("recreateInstances", NAME)]
    assert gate.read(world.host).outcome == "replace"
