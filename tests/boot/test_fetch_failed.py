"""What follows when stage 0's fetcher fails: the report, the gate, the count that stops a fleet."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests.boot.conftest import Make
from tests.boot.machine import INSTANCE, PINNED, Machine, gate, spoil
from tests.cli.schemas import Schemas
from tests.standins.object_store import S3
from tests.standins.server import Fault
from tests.standins.signature import Credentials

from gputier.boot.stage0 import PROGRAMS
from gputier.node import breaker

pytestmark = pytest.mark.allow_hosts(["127.0.0.1"])


def told(machine: Machine) -> list[str]:
    """The requests after the fetch, in order: report, breaker, group."""
    words: list[tuple[float, str]] = []
    for asked in machine.store.seen:
        if "reports/" in asked.path or "reports%2F" in asked.query:
            words.append((asked.at, "report"))
        elif asked.method != "GET":
            words.append((asked.at, "breaker"))
    words += [(asked.at, asked.form["Action"]) for asked in machine.groups.seen]
    return [word for _at, word in sorted(words)]


def test_the_report_is_kept_before_the_machine_is_given_up(aws: Machine) -> None:
    spoil(aws)
    aws.boot()
    assert told(aws) == ["report", "breaker", "CompleteLifecycleAction"]
    (call,) = aws.groups.calls("CompleteLifecycleAction")
    assert call["LifecycleActionResult"] == "ABANDON"
    assert call["InstanceId"] == INSTANCE
    (key,) = aws.store.keys("reports/")
    assert key.startswith(f"reports/tuner/{INSTANCE}/")
    assert key.endswith("Z-config.json")
    assert aws.store.json(key) == aws.report


def test_the_report_has_the_schema_of_every_other(aws: Machine, root: Path) -> None:
    spoil(aws)
    aws.boot()
    schemas = Schemas(root / "docs" / "schemas.json")
    assert not list(schemas.problems(aws.report, schemas.documents["gputier/node/1"]))


def test_the_same_fault_on_a_second_new_machine_stops_the_fleet(aws: Machine) -> None:
    spoil(aws)
    before = {
        "instance": "i-1",
        "outcome": "config",
        "reason": "bundle@bundle",
        "at": aws.store.now(),
    }
    aws.store.objects["breaker/tuner.json"] = json.dumps({"nodes": [before]}).encode()
    aws.boot()
    assert told(aws)[-2:] == ["SuspendProcesses", "CompleteLifecycleAction"]
    assert aws.groups.suspended == {"Launch"}
    assert aws.store.json("breaker/tuner.json")["tripped"]["instance"] == INSTANCE


OTHERS: dict[str, dict[str, Any]] = {
    "long ago": {"at": 0.0},
    "for another reason": {"reason": "mig@prepare"},
    "on bad hardware": {"outcome": "replace"},
    "on this very machine": {"instance": INSTANCE},
}


@pytest.mark.parametrize("name", OTHERS)
def test_a_fault_that_came_otherwise_does_not_count(aws: Machine, name: str) -> None:
    spoil(aws)
    before = {"instance": "i-1", "outcome": "config", "reason": "bundle@bundle",
              "at": aws.store.now()} | OTHERS[name]  # fmt: skip
    aws.store.objects["breaker/tuner.json"] = json.dumps({"nodes": [before]}).encode()
    aws.boot()
    assert not aws.groups.suspended
    assert aws.groups.calls("CompleteLifecycleAction")


def test_what_proves_nothing_stops_no_fleet_whatever_came_before(aws: Machine) -> None:
    aws.store.faults = [Fault(path=PINNED, status=503)]
    before = [
        {
            "instance": f"i-{n}",
            "outcome": "config",
            "reason": "bundle@bundle",
            "at": aws.store.now(),
        }
        for n in range(3)
    ]
    aws.store.objects["breaker/tuner.json"] = json.dumps({"nodes": before}).encode()
    aws.boot()
    assert aws.report["outcome"] == "inconclusive"
    assert not aws.groups.suspended


def test_the_breakers_state_is_one_that_the_bundle_reads_on(aws: Machine) -> None:
    spoil(aws)
    aws.boot()
    state = aws.store.json("breaker/tuner.json")
    assert state["schema"] == breaker.SCHEMA
    (entry,) = breaker.entries(state)
    assert entry[:3] == (INSTANCE, "config", breaker.reason(aws.report))


def test_two_machines_that_count_at_once_both_count(aws: Machine) -> None:
    spoil(aws)
    aws.store.faults = [Fault(path="breaker/", method="PUT", status=412, times=2)]
    aws.boot()
    assert told(aws).count("breaker") == 3
    assert len(aws.store.json("breaker/tuner.json")["nodes"]) == 1


@pytest.mark.parametrize("cloud", PROGRAMS)
def test_a_store_that_refuses_us_altogether_stops_the_fleet_at_once(make: Make, cloud: str) -> None:
    """Nobody could count: every next machine would be refused like this one."""
    machine = make(cloud)
    machine.store.denied = {(method, "") for method in ("GET", "PUT", "POST")}
    machine.boot()
    if cloud == "aws":
        assert machine.groups.suspended == {"Launch"}
        assert machine.groups.calls("CompleteLifecycleAction")
    else:
        assert machine.compute.policy["mode"] == "OFF"


def test_a_count_that_may_not_be_written_stops_the_fleet_whatever_the_fault_of_ours(
    aws: Machine,
) -> None:
    """As the node's gate does: equal faults could never be added up."""
    spoil(aws)
    aws.store.denied = {("PUT", "breaker/")}
    aws.boot()
    assert aws.groups.suspended == {"Launch"}


def test_a_count_that_others_overtake_every_time_is_no_refusal(aws: Machine) -> None:
    spoil(aws)
    aws.store.faults = [Fault(path="breaker/", method="PUT", status=412)]
    aws.boot()
    assert told(aws).count("breaker") == 9
    assert not aws.groups.suspended


def test_a_breaker_that_may_not_be_listed_is_a_new_one(aws: Machine) -> None:
    spoil(aws)
    assert isinstance(aws.store, S3)
    aws.store.may_list = False
    aws.boot()
    assert not aws.groups.suspended
    assert len(aws.store.json("breaker/tuner.json")["nodes"]) == 1


def test_a_store_that_is_down_does_not_keep_the_machine(aws: Machine) -> None:
    aws.store.faults = [Fault(status=500)]
    aws.boot()
    assert not aws.groups.suspended
    assert aws.groups.calls("CompleteLifecycleAction")


@pytest.mark.parametrize("mode", ["report", "off"])
@pytest.mark.parametrize("cloud", PROGRAMS)
def test_only_an_enforced_gate_gives_a_machine_up(make: Make, cloud: str, mode: str) -> None:
    machine = make(cloud)
    gate(machine, mode)
    spoil(machine)
    assert machine.boot() == 1
    assert machine.store.keys("reports/")
    assert not machine.store.keys("breaker/")
    assert not machine.compute.seen
    # A hook that hears nothing refuses, and the next machine comes to the same end.
    ended = [call["LifecycleActionResult"] for call in machine.groups.calls()]
    assert ended == (["CONTINUE"] if cloud == "aws" else [])


@pytest.mark.parametrize("mode", ["enforce", "report"])
def test_a_machine_that_was_in_service_is_not_given_up(aws: Machine, mode: str) -> None:
    joined_as(aws, INSTANCE)
    gate(aws, mode)
    spoil(aws)
    assert aws.boot() == 1
    assert aws.store.keys("reports/")
    assert not aws.groups.seen


@pytest.mark.parametrize("who", ["i-0aaaaaaaaaaaaaaaa", "", None])
def test_a_machine_of_an_image_of_one_that_was_in_service_is_a_new_one(
    aws: Machine, who: str | None
) -> None:
    joined_as(aws, who)
    spoil(aws)
    assert aws.boot() == 1
    assert told(aws) == ["report", "breaker", "CompleteLifecycleAction"]


def joined_as(machine: Machine, who: str | None) -> None:
    path = machine.disk / "var/lib/gputier/joined.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("{}" if who is None else json.dumps({"instance": who}), encoding="utf-8")


def test_a_group_that_throttles_hears_it_all_the_same(aws: Machine) -> None:
    spoil(aws)
    text = "<ErrorResponse><Error><Code>Throttling</Code></Error></ErrorResponse>"
    aws.groups.faults = [Fault(status=400, text=text, times=3)]
    aws.boot()
    assert aws.groups.nodes[INSTANCE].results == ("ABANDON",)


def test_a_lone_machine_tells_no_group(aws: Machine) -> None:
    aws.settings["gate"]["kind"] = "file"
    spoil(aws)
    aws.boot()
    assert not aws.groups.seen


def test_a_hook_that_does_not_wait_any_more_is_not_asked_for_long(aws: Machine) -> None:
    spoil(aws)
    aws.groups.nodes[INSTANCE].state = "InService"
    aws.boot()
    assert len(aws.groups.seen) == 1


def test_on_google_the_group_makes_the_machine_anew(make: Make) -> None:
    machine = make("gcp")
    spoil(machine)
    machine.boot()
    assert machine.compute.done == [("recreateInstances", "tuner-x1k2")]
    assert machine.compute.policy["mode"] == "ON"


def test_on_google_a_stopped_fleet_loses_the_machine_for_good(make: Make) -> None:
    machine = make("gcp", breaker={"after": 1, "window_seconds": 86400})
    spoil(machine)
    machine.boot()
    assert machine.compute.policy["mode"] == "OFF"
    assert machine.compute.done == [("deleteInstances", "tuner-x1k2")]
    assert machine.compute.size == 3


@pytest.mark.parametrize("cloud", PROGRAMS)
def test_no_secret_is_printed_or_kept(
    make: Make, cloud: str, capsys: pytest.CaptureFixture[str]
) -> None:
    machine = make(cloud)
    spoil(machine)
    machine.boot()
    said = capsys.readouterr()
    kept = [path.read_text("utf-8") for path in machine.disk.rglob("*") if path.is_file()]
    kept += [body.decode("utf-8", "replace") for body in machine.store.objects.values()]
    secrets = (Credentials.access, Credentials.secret, Credentials.token, "stand-in-bearer-token",
               "TOKEN-")  # fmt: skip
    for text in (said.out, said.err, *kept):
        assert not [secret for secret in secrets if secret in text]
