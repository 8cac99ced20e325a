"""Each fault of a machine or of its cloud ends in its right outcome, in time."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest
from tests.rehearsal.cloud import Cloud
from tests.rehearsal.container import Container, boots_of
from tests.rehearsal.image import Image
from tests.rehearsal.layer import Layer
from tests.rehearsal.scene import Part, Scene, in_container
from tests.standins.metadata import Metadata
from tests.standins.server import Fault

pytestmark = pytest.mark.enable_socket
GOOGLE = "tuner-a1"


@dataclass(frozen=True, slots=True)
class Case:
    """`part` ends as `outcome` and `gate` within `seconds`; `evidence` is in a cause of the report.

    `seconds` bounds a machine that others slow down; what a stage may take is in its settings.
    """

    words: str
    part: Part
    outcome: str
    gate: str
    evidence: str = ""
    seconds: float = 120.0
    meanwhile: Callable[[Scene[Container]], None] | None = None
    reboots: int = 0


def aws(*faults: str, then: tuple[str, ...] | None = None) -> Part:
    return Part("group", boots=(faults,) if then is None else (faults, then))


def google(*faults: str, then: tuple[str, ...] | None = None) -> Part:
    boots = (faults,) if then is None else (faults, then)
    return Part("autohealed", boots=boots, instance=GOOGLE)


# --- trouble in the cloud ------------------------------------------------------------------------


def another_bundle(cloud: Cloud, _: Metadata) -> None:
    cloud.put_bundle(b"#!/usr/bin/env python3\nprint('not ours')\n")


def store_is_down(cloud: Cloud, _: Metadata) -> None:
    cloud.store.faults.append(Fault(status=503))


def store_comes_back(scene: Scene[Container]) -> None:
    """Once the machine has given its bundle up, so that the report can be put at last."""
    assert scene.machine.wait(lambda: scene.machine.read(REPORT) is not None, 40), scene.account()
    scene.cloud.store.faults.clear()


def clocks_differ(cloud: Cloud, _: Metadata) -> None:
    """A container has its host's clock, so it is the cloud's that is three days ahead."""
    assert cloud.autoscaling
    cloud.store.ahead = cloud.autoscaling.ahead = 3 * 86400.0


def clock_is_set(scene: Scene[Container]) -> None:
    """The machine's first requests were refused for their time; then its clock is set."""
    store = scene.cloud.store
    assert scene.machine.wait(lambda: any(asked.status == 403 for asked in store.seen), 40)
    assert scene.cloud.autoscaling
    store.ahead = scene.cloud.autoscaling.ahead = 0.0


def notice_while_it_is_judged(scene: Scene[Container]) -> None:
    assert scene.machine.wait(lambda: "stage persistence" in scene.machine.console(), 40)
    scene.own.set("meta-data/spot/instance-action", '{"action": "terminate", "time": "soon"}')


# --- what an image brings ------------------------------------------------------------------------


def unattended_upgrade(layer: Layer) -> None:
    """Somebody holds dpkg's lock for the first twenty seconds, as unattended upgrades do."""
    hold = "import fcntl, time; f = open('/var/lib/dpkg/lock-frontend', 'w'); "
    hold += "fcntl.lockf(f, fcntl.LOCK_EX); time.sleep(20)"
    unit = "[Unit]\nDefaultDependencies=no\nBefore=sysinit.target\n[Service]\n"
    unit += f'ExecStart=/usr/bin/python3 -c "{hold}"\n[Install]\nWantedBy=sysinit.target\n'
    layer.put("/etc/systemd/system/upgrading.service", unit)
    layer.enable("upgrading.service", "sysinit.target")


REPORT = "/var/lib/gputier/report.json"
CASES = (
    Case("a GPU is missing from the bus", google("a GPU is missing"), "replace",
         "recreateInstances", "7"),
    Case("a GPU has half its memory", google("a GPU has half its memory"), "replace",
         "recreateInstances", "20480"),
    Case("Xid 79 is in the kernel log", aws("Xid 79 in the kernel log"), "replace", "ABANDON",
         "Xid 79"),
    Case("an Xid of an earlier boot does not count", aws("Xid 79 in an earlier boot's log"),
         "healthy", "CONTINUE"),
    Case("row remapping failed", google("row remapping failed"), "replace", "recreateInstances",
         "remap"),
    Case("memory errors that cannot be corrected", google("uncorrectable memory errors"),
         "replace", "recreateInstances"),
    Case("driver and library differ until a reboot", aws("driver and library differ", then=()),
         "healthy", "CONTINUE", reboots=1),
    Case("driver and library differ after a reboot too", aws("driver and library differ"),
         "config", "ABANDON", "mismatch", reboots=1),
    Case("Fabric Manager is down until a reboot", google("Fabric Manager down", then=()),
         "healthy", "", reboots=1),
    Case("Fabric Manager stays down", google("Fabric Manager down"), "replace",
         "recreateInstances", "nvidia-fabricmanager is failed", reboots=1),
    Case("MIG waits for a reset", Part("divided", instance=GOOGLE, by="startup-script",
         boots=(("MIG mode is pending",), ())), "healthy", "", reboots=1),
    Case("the metadata service comes up late", Part("group", late=15.0), "healthy", "CONTINUE"),
    Case("the bundle is another one than the plan pinned", Part("group", trouble=another_bundle),
         "config", "ABANDON", "SHA-256"),
    Case("the object store is down", Part("group", trouble=store_is_down, bundle_seconds=20),
         "inconclusive", "ABANDON", "503", meanwhile=store_comes_back),
    Case("somebody holds the package lock", Part("group", image=unattended_upgrade), "healthy",
         "CONTINUE"),
    Case("the clock is far off, and set after a while", Part("group", trouble=clocks_differ),
         "healthy", "CONTINUE", meanwhile=clock_is_set),
    Case("a spot notice while it is judged", aws(), "inconclusive", "", "spot",
         meanwhile=notice_while_it_is_judged),
)  # fmt: skip


@pytest.mark.rehearsal(seconds=8)
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.words)
def test_a_fault_ends_in_its_outcome(case: Case, image: Image, tmp_path: Path) -> None:
    with in_container(image, tmp_path, case.part) as scene:
        if case.meanwhile:
            case.meanwhile(scene)
        found = scene.ends(case.outcome, case.gate, case.seconds)
        causes = [c for c in found.report["checks"] if c["name"] in found.report["causes"]]
        told = "; ".join(f"{c['name']}: {c['evidence']}" for c in causes)
        assert case.evidence in told, f"{case.evidence!r} is no part of what was told: {told}"
        assert boots_of(scene.machine) - 1 == case.reboots, scene.account()


@pytest.mark.rehearsal(seconds=30)
def test_a_clock_that_stays_far_off_is_no_verdict_on_the_machine(
    image: Image, tmp_path: Path
) -> None:
    """Nothing that it signs is taken, so nobody hears of it: the hook's default result acts."""
    part = Part("group", trouble=clocks_differ, bundle_seconds=15)
    with in_container(image, tmp_path, part) as scene:
        assert scene.machine.wait(lambda: scene.machine.read(REPORT) is not None, 60)
        report = json.loads(scene.machine.read(REPORT) or "")
        assert report["outcome"] == "inconclusive", scene.account()
        assert "RequestTimeTooSkewed" in report["checks"][0]["evidence"]
        assert scene.verdict() is None
