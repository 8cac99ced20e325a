"""A notice is seen in time, shuts the gate and stops the workload; a judged node asks for it."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.node.clouds import CONFIG, HEALTHY, STATE, Quick, World, settings, world
from tests.node.machines import Machine
from tests.standins import metadata as standins
from tests.standins.server import Fault

from gputier.node import expect, gate, interruption, notices, report
from gputier.node import watching as watching_over
from gputier.node.cloud import identity
from gputier.node.cloud.http import Web
from gputier.node.cloud.identity import Identity
from gputier.node.cloud.metadata import of
from gputier.node.engine import Context
from gputier.node.host import Done
from gputier.node.interruption import Watcher
from gputier.node.notices import Asked
from gputier.node.stages import Work
from gputier.node.stages import gate as gate_stage
from gputier.node.verbs import interruption as verb

pytestmark = pytest.mark.allow_hosts(["127.0.0.1"])
NOW = 1_800_000_000.0
SOON = time.strftime("%d %b %Y %H:%M:%S GMT", time.gmtime(NOW + 600))
LATER = time.strftime("%d %b %Y %H:%M:%S GMT", time.gmtime(NOW + 86400 * 7))


def event(kind: str, *machines: str) -> str:
    return json.dumps({"Events": [{"EventType": kind, "Resources": list(machines)}]})


def planned(start: str, state: str = "active") -> str:
    return json.dumps([{"Code": "system-reboot", "NotBefore": start, "State": state}])


# Cloud, path, text → whether the machine is taken, None for no notice at all.
CASES: dict[str, tuple[str, str, str, bool | None]] = {
    "spot": ("aws", "meta-data/spot/instance-action", '{"action": "terminate"}', True),
    "spot, not json": ("aws", "meta-data/spot/instance-action", "<html>", None),
    "rebalance": (
        "aws",
        "meta-data/events/recommendations/rebalance",
        '{"noticeTime": "x"}',
        False,
    ),
    "event now": ("aws", "meta-data/events/maintenance/scheduled", planned(SOON), True),
    "event in a week": ("aws", "meta-data/events/maintenance/scheduled", planned(LATER), False),
    "event over": (
        "aws",
        "meta-data/events/maintenance/scheduled",
        planned(SOON, "completed"),
        None,
    ),
    "event, no date": ("aws", "meta-data/events/maintenance/scheduled", '[{"Code": "x"}]', True),
    "no events": ("aws", "meta-data/events/maintenance/scheduled", "[]", None),
    "events, not json": ("aws", "meta-data/events/maintenance/scheduled", "[", None),
    "in service": ("aws", STATE, "InService", None),
    "scaled in": ("aws", STATE, "Terminated", True),
    "left the warm pool": ("aws", STATE, "Warmed:Terminated", True),
    "preempted": ("gcp", "instance/preempted", "TRUE", True),
    "not preempted": ("gcp", "instance/preempted", "FALSE", None),
    "terminate": ("gcp", "instance/maintenance-event", "TERMINATE_ON_HOST_MAINTENANCE", True),
    "migrate": ("gcp", "instance/maintenance-event", "MIGRATE_ON_HOST_MAINTENANCE", False),
    "no maintenance": ("gcp", "instance/maintenance-event", "NONE", None),
    "azure preempt": ("azure", "scheduledevents", event("Preempt", "tuner_3"), True),
    "azure freeze": ("azure", "scheduledevents", event("Freeze", "tuner_3"), False),
    "azure, another's": ("azure", "scheduledevents", event("Preempt", "tuner_4"), None),
    "azure, none": ("azure", "scheduledevents", '{"Events": []}', None),
    "azure, not json": ("azure", "scheduledevents", "{", None),
}


@pytest.mark.parametrize(("cloud", "path", "text", "taken"), CASES.values(), ids=CASES)
def test_a_notice_is_told_from_advice(cloud: str, path: str, text: str, taken: bool | None) -> None:
    (read,) = [read for key, read in notices.TABLE[cloud].items() if key.startswith(path)]
    found = read(text, Asked(NOW, "tuner_3"))
    assert (None if found is None else found.taken) == taken


def test_every_path_of_the_table_has_a_notice_and_an_absence() -> None:
    for cloud, table in notices.TABLE.items():
        for path in table:
            said = {c[3] for c in CASES.values() if c[0] == cloud and path.startswith(c[1])}
            assert {True, None} <= said or path.endswith("rebalance")


class Unit(Quick):
    """A host that keeps what it was told to run."""

    def __init__(self, root: Path) -> None:
        super().__init__(root)
        self.ran: list[tuple[str, ...]] = []

    def run(self, argv: Any, *_: Any, **__: Any) -> Done:
        self.ran.append(tuple(argv))
        return Done(tuple(argv), 0, "", "", 0.0, "exited")


@pytest.fixture(params=["aws", "gcp"])
def there(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[World]:
    with world(tmp_path, request.param) as made:
        if isinstance(made.metadata, standins.Gcp):
            made.metadata.longest = 0.05
        yield made


def watching(there: World, host: Quick, said: list[str]) -> Watcher:
    service = of(there.cloud, Web(host), {"metadata": there.metadata.url})
    assert service
    return Watcher(host, service, there.identity(), said.append)


def interrupt(there: World) -> None:
    if there.cloud == "aws":
        there.metadata.set("meta-data/spot/instance-action", '{"action": "terminate"}')
    else:
        there.metadata.set("instance/preempted", "TRUE")


@pytest.mark.parametrize("mode", ["enforce", "report", "off"])
def test_a_node_that_is_taken_gets_no_more_work_and_stops_what_it_has(
    there: World, mode: str
) -> None:
    kind = "lifecycle-hook" if there.cloud == "aws" else "health-endpoint"
    assert there.gate(kind, mode).settle(HEALTHY).open
    host, said = Unit(there.host.root), list[str]()
    watcher = watching(there, host, said)
    assert watcher.step() == interruption.Seen(())
    assert (gate.read(host).open, host.ran) == (True, [])
    interrupt(there)
    assert watcher.step().new[0].taken
    assert not gate.read(host).open
    assert not host.exists(gate.READY)
    assert "spot notice" in gate.read(host).reasons[0]
    assert host.ran == [("systemctl", "stop", "gputier-workload.service")]
    assert watcher.step() == interruption.Seen(()), "told once"
    assert len(host.ran) == 1, "and stopped once"
    assert "stopped" in said[-1]


def test_a_second_notice_is_told_and_stops_nothing_again(tmp_path: Path) -> None:
    with world(tmp_path, "aws") as there:
        interrupt(there)
        host, said = Unit(tmp_path), list[str]()
        watcher = watching(there, host, said)
        watcher.step()
        there.metadata.set(STATE, "Terminated")
        assert len(watcher.step().new) == 1
        assert len(gate.read(host).reasons) == 2, "both stand"
        assert len(host.ran) == 1


def test_a_gate_that_opens_behind_a_notice_is_shut_again(there: World) -> None:
    """The verdict was on its way to the cloud when the notice came."""
    host, said = Unit(there.host.root), list[str]()
    watcher = watching(there, host, said)
    interrupt(there)
    watcher.step()
    gate.write(host, gate.Gate(True, "healthy", "enforce", (), 1))
    watcher.step()
    assert not gate.read(host).open
    assert host.ran == [("systemctl", "stop", "gputier-workload.service")] * 2
    watcher.step()
    assert len(host.ran) == 2


@pytest.mark.parametrize("mode", ["enforce", "report"])
def test_a_notice_behind_the_validation_opens_no_gate(there: World, mode: str) -> None:
    kind = "lifecycle-hook" if there.cloud == "aws" else "health-endpoint"
    there.host.write(report.FILE, json.dumps(HEALTHY))
    interrupt(there)
    given = settings(there.cloud, kind, mode)
    found = gate_stage.run(Work(there.host, expect.Expectation({}), given, 420.0))
    assert found.outcome == "inconclusive"
    assert "spot notice" in found.evidence
    assert not gate.read(there.host).open
    assert there.store.keys("reports/")
    assert not there.autoscaling.calls()
    assert not there.compute.done


def test_advice_shuts_nothing(tmp_path: Path) -> None:
    with world(tmp_path, "aws") as there:
        there.gate("lifecycle-hook").settle(HEALTHY)
        there.metadata.set("meta-data/events/recommendations/rebalance", '{"noticeTime": "x"}')
        host, said = Unit(tmp_path), list[str]()
        watching(there, host, said).step()
        assert "rebalance" in said[0]
        assert (gate.read(host).open, host.ran) == (True, [])


def test_a_preemption_is_noticed_within_a_moment(tmp_path: Path) -> None:
    """Google holds the question; a Spot machine has 30 seconds from there."""
    with world(tmp_path, "gcp") as there:
        watcher = watching(there, Unit(tmp_path), [])
        watcher.step()
        threading.Timer(0.3, interrupt, (there,)).start()
        started = time.monotonic()
        assert watcher.step().new[0].taken
        assert time.monotonic() - started < interruption.HELD_SECONDS, "before the question ends"
        assert any("last_etag" in asked.query for asked in there.metadata.requests("preempted"))


def test_a_silent_service_is_no_notice(there: World) -> None:
    watcher = watching(there, Unit(there.host.root), [])
    there.metadata.faults.append(Fault(drop=True))
    seen = watcher.step()
    assert seen.new == ()
    assert "does not answer" in (seen.trouble or "")
    assert interruption.noticed(there.host, there_identity(there)) is None


def there_identity(there: World) -> Identity:
    there.metadata.faults, kept = [], there.metadata.faults
    found = there.identity()
    there.metadata.faults = kept
    return found


def test_a_workload_that_does_not_stop_is_said(there: World) -> None:
    class Stuck(Unit):
        def run(self, argv: Any, *_: Any, **__: Any) -> Done:
            return Done(tuple(argv), None, "", "", 130.0, "timeout")

    interrupt(there)
    said: list[str] = []
    watching(there, Stuck(there.host.root), said).step()
    assert "could not be stopped: no answer in" in said[-1]


@pytest.mark.parametrize(("mode", "verdict"), [("enforce", HEALTHY), ("report", CONFIG)])
def test_a_node_that_leaves_the_warm_pool_running_is_proved_again_once(
    tmp_path: Path, mode: str, verdict: dict[str, Any]
) -> None:
    with world(tmp_path, "aws") as there:
        there.autoscaling.launch("i-0123456789abcdef0", "Warmed:Running")
        assert not there.gate("lifecycle-hook", mode).settle(verdict).open
        host, said = Unit(tmp_path), list[str]()
        watcher = watching(there, host, said)
        watcher.step()
        assert host.ran == []
        there.autoscaling.launch("i-0123456789abcdef0", "InService")
        watcher.step()
        watcher.step()
        assert host.ran == [("systemctl", "restart", "--no-block", "gputier-boot.service")]


# --- while the node is judged ----------------------------------------------------------------


def test_a_judged_node_can_ask(there: World) -> None:
    who = there.identity()
    assert interruption.noticed(there.host, who) is None
    interrupt(there)
    assert "spot notice" in (interruption.noticed(there.host, who) or "")


def test_advice_is_no_notice_for_a_judged_node(tmp_path: Path) -> None:
    with world(tmp_path, "gcp") as there:
        there.metadata.set("instance/maintenance-event", "MIGRATE_ON_HOST_MAINTENANCE")
        assert interruption.noticed(there.host, there.identity()) is None


def test_azure_can_be_asked_too(tmp_path: Path) -> None:
    host = Quick(tmp_path)
    service = standins.Azure().start()
    host.write("/etc/gputier/endpoints.json", json.dumps({"metadata": service.url}))
    who = Identity("azure", "sub", "eastus", "1", "vm-1", name="tuner_3")
    assert interruption.noticed(host, who) is None
    service.set("scheduledevents", event("Preempt", "tuner_3"))
    assert interruption.noticed(host, who) == "scheduled event: Preempt"
    service.stop()


def test_who_does_not_know_itself_or_has_no_service_asks_nobody(tmp_path: Path) -> None:
    host = Quick(tmp_path)
    assert interruption.noticed(host, None) is None
    assert interruption.noticed(host, Identity("tencent", "1", "r", "z", "i")) is None


def test_a_machine_that_booted_is_asked_without_a_token_among_arguments(there: World) -> None:
    machine = Machine("p5.48xlarge")
    machine.files["/etc/gputier/endpoints.json"] = json.dumps({"metadata": there.metadata.url})
    machine.files[identity.FILE] = there.identity().to_json()
    ctx = Context(machine, expect.read("{}"))
    assert watching_over.notice(ctx, there.cloud) is None
    interrupt(there)
    assert "spot notice" in (watching_over.notice(ctx, there.cloud) or "")
    assert [call for call in machine.calls if call[0] == "curl"] == []


# --- the service -----------------------------------------------------------------------------


def test_the_service_waits_until_the_node_knows_itself_and_watches(
    there: World, capsys: pytest.CaptureFixture[str]
) -> None:
    host = Unit(there.host.root)
    interrupt(there)
    assert verb.loop(host, host.monotonic() + 12) == 0
    assert not gate.read(host).open
    assert capsys.readouterr().err.count("spot notice") == 1


def test_the_service_of_a_machine_that_never_knows_itself_ends(tmp_path: Path) -> None:
    host = Unit(tmp_path)
    assert verb.loop(host, host.monotonic() + 12) == 0
    assert host.ran == []


def test_trouble_is_said_once_and_that_it_is_over(
    there: World, capsys: pytest.CaptureFixture[str]
) -> None:
    host = Unit(there.host.root)
    there.metadata.faults.append(Fault(drop=True, times=6))
    verb.loop(host, host.monotonic() + 40)
    said = capsys.readouterr().err
    assert said.count("does not answer") == 1
    assert said.count("answers again") == 1
