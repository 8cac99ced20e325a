"""Azure's application health, and the machine that is alone."""

from __future__ import annotations

import http.client
import json
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.node.clouds import (
    CONFIG,
    HEALTHY,
    INCONCLUSIVE,
    REBOOT,
    REPLACE,
    Quick,
    World,
    settings,
)
from tests.node.clouds import world as started
from tests.standins.server import Fault

from gputier.node import gate, gates, health
from gputier.node.cloud.identity import Identity
from gputier.node.gates.steps import Step
from gputier.node.host import Host
from gputier.node.result import EXIT
from gputier.node.verbs import serve

pytestmark = pytest.mark.allow_hosts(["127.0.0.1"])
AZURE = Identity("azure", "sub", "eastus", "1", "vm-1", name="tuner_3", group="tuner")
BAD = [REPLACE, REBOOT, CONFIG, INCONCLUSIVE]


@pytest.fixture
def extension(tmp_path: Path) -> Iterator[tuple[Host, Any]]:
    """What Azure's extension hears on the node."""
    host = Quick(tmp_path)
    served = serve.server(host, "127.0.0.1", 0, health.application)
    threading.Thread(target=served.serve_forever, args=(0.02,), daemon=True).start()

    def ask() -> tuple[int, str | None]:
        connection = http.client.HTTPConnection("127.0.0.1", served.server_address[1], timeout=5)
        connection.request("GET", "/healthz")
        answer = connection.getresponse()
        body = json.loads(answer.read())
        connection.close()
        return answer.status, body.get("ApplicationHealthState")

    yield host, ask
    served.shutdown()
    served.server_close()


def azure(host: Host, mode: str = "enforce") -> gates.Gate:
    return gates.of(settings("azure", "application-health", mode), AZURE, host)


def test_azure_hears_nothing_valid_until_the_node_is_proved(extension: tuple[Host, Any]) -> None:
    host, ask = extension
    assert ask() == (503, None), "Initializing, within the extension's grace period"
    settled = azure(host).settle(HEALTHY)
    assert (settled.open, settled.exit, ask()) == (True, 0, (200, "Healthy"))
    azure(host).revoke("replace", ["Xid 79"])
    assert ask() == (200, "Unhealthy")


@pytest.mark.parametrize(
    ("bad", "said"),
    [(REPLACE, (200, "Unhealthy")), (REBOOT, (200, "Unhealthy")),
     (INCONCLUSIVE, (200, "Unhealthy")), (CONFIG, (503, None))],
    ids=["replace", "reboot", "inconclusive", "config"],
)  # fmt: skip
def test_azure_repairs_what_another_machine_may_cure(
    extension: tuple[Host, Any], bad: dict[str, Any], said: tuple[int, str | None]
) -> None:
    host, ask = extension
    settled = azure(host).settle(bad)
    assert (settled.open, settled.exit) == (False, EXIT[bad["outcome"]])
    assert ask() == said


@pytest.mark.parametrize("mode", ["report", "off"])
@pytest.mark.parametrize("bad", BAD, ids=lambda r: r["outcome"])
def test_azure_hears_healthy_where_the_gate_does_not_enforce(
    extension: tuple[Host, Any], mode: str, bad: dict[str, Any]
) -> None:
    host, ask = extension
    assert azure(host, mode).refuse(bad).open
    assert ask() == (200, "Healthy")


def test_nothing_is_asked_of_a_cloud_without_a_bucket(extension: tuple[Host, Any]) -> None:
    host, _ = extension
    settled = azure(host).settle(REPLACE)
    assert (settled.done, settled.failed, settled.notes) == ((Step.SHUT,), (), ())
    assert azure(host).known_bad(REPLACE["host"]) is None


# --- a lone machine --------------------------------------------------------------------------


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    with started(tmp_path, "aws") as made:
        yield made


@pytest.mark.parametrize("bad", BAD, ids=lambda r: r["outcome"])
def test_a_lone_machine_tells_by_its_file_and_its_exit_status(
    world: World, bad: dict[str, Any]
) -> None:
    settled = world.gate("file").settle(bad)
    assert (settled.open, settled.exit) == (False, EXIT[bad["outcome"]])
    assert not world.host.exists(gate.READY)
    assert len(world.store.keys("reports/")) == 1
    assert world.store.keys("breaker/") == [], "nothing comes after it, so nothing loops"
    assert world.autoscaling.seen == []


def test_a_lone_machine_that_is_healthy_is_ready(world: World) -> None:
    settled = world.gate("file").settle(HEALTHY)
    assert (settled.open, settled.exit) == (True, 0)
    assert world.host.exists(gate.READY)


@pytest.mark.parametrize("mode", ["report", "off"])
def test_a_lone_machine_that_only_reports_is_ready_whatever_it_is(world: World, mode: str) -> None:
    settled = world.gate("file", mode).settle(REPLACE)
    assert (settled.open, settled.exit) == (True, 0)
    assert gate.read(world.host).mode == mode


def test_a_lone_machine_without_a_bucket_keeps_its_report(tmp_path: Path) -> None:
    settled = gates.of(settings("aws", "file"), None, Quick(tmp_path)).settle(HEALTHY)
    assert settled.open
    assert settled.failed == (Step.REPORT,)


def test_a_gate_whose_file_cannot_be_written_is_not_open(world: World) -> None:
    world.host.write("/run/gputier/gate.json/in-the-way", "")
    settled = world.gate("file").settle(HEALTHY)
    assert (settled.open, settled.failed) == (False, (Step.OPEN,))
    assert settled.exit == EXIT["inconclusive"]


def test_that_a_node_joined_is_worth_a_note_only(world: World) -> None:
    world.host.write("/var/lib/gputier/joined.json/in-the-way", "")
    settled = world.gate("file").settle(HEALTHY)
    assert settled.open
    assert "that it joined is not kept" in settled.notes[0]


def test_admitting_against_the_verdict_is_somebodys_own_word(world: World) -> None:
    settled = world.gate("lifecycle-hook").admit(REPLACE)
    assert settled.open
    assert gate.read(world.host).outcome == "replace"
    assert world.autoscaling.calls()[-1]["LifecycleActionResult"] == "CONTINUE"


def test_a_report_that_says_nothing_is_not_healthy(world: World) -> None:
    world.autoscaling.faults.append(Fault(status=400, text="x"))
    settled = world.gate("file").settle({})
    assert (settled.open, settled.exit) == (False, EXIT["inconclusive"])
