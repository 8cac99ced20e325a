"""What only a machine with a kernel and disks of its own can show: a p5 with its eight disks."""

from __future__ import annotations

import dataclasses
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.rehearsal.image import Image
from tests.rehearsal.needs import PATH
from tests.rehearsal.plans import given
from tests.rehearsal.scene import Part, Scene, hardware_of, in_vm, plain
from tests.rehearsal.timeline import Timeline, measure
from tests.rehearsal.vm import Disk, VirtualMachine

pytestmark = [pytest.mark.rehearsal(seconds=150), pytest.mark.enable_socket]
#: An emulated boot takes two minutes on a quiet machine, and five on one whose cores are shared.
LIMIT = 600.0
P5 = "hopper"


def says(scene: Scene[VirtualMachine], words: str, limit: float = LIMIT) -> None:
    """Wait for these words on the console."""
    assert scene.machine.wait(lambda: words in plain(scene.machine.console()), limit), (
        f"{words!r} did not come within {limit:.0f} s\n{scene.account()}"
    )


def stage_outcomes(scene: Scene[VirtualMachine], name: str) -> list[str]:
    return [stage.outcome for stage in scene.stages() if stage.name == name]


@pytest.mark.parametrize("by", ["ec2", pytest.param("nocloud", marks=pytest.mark.thorough)])
def test_a_whole_life_formats_once_and_finds_its_disks_again(
    by: str, image: Image, tmp_path: Path, measured: Callable[[Timeline], None]
) -> None:
    """First boot, service, power off, second boot that makes nothing."""
    hardware = hardware_of(given(P5), cloud="aws" if by == "ec2" else None)
    with in_vm(image, tmp_path, Part(P5, by=by), hardware) as scene:
        first = scene.ends("healthy", "CONTINUE", LIMIT)
        assert first.report["machine"]["instance_id"] == scene.part.instance
        says(scene, "workload: scratch knows 1 boots", 60)
        if by == "ec2":
            measured(measure(scene, scene.machine))
        scene.machine.press_power()
        assert scene.machine.wait(lambda: not scene.machine.runs, 120), scene.account()
        scene.machine.start_again()
        says(scene, "workload: scratch knows 2 boots")
        assert stage_outcomes(scene, "scratch") == ["healthy", "healthy"]
        reports = scene.cloud.reports(scene.part.instance)
        assert len(reports) == 2
        assert all(key.endswith("-healthy.json") for key in reports)
        assert scene.cloud.told(scene.part.instance) == "CONTINUE", "said once, at its launch"
        requests = [asked.path for asked in scene.own.seen if asked.path.endswith("/user-data")]
        assert bool(requests) == (by == "ec2"), "cloud-init took it where it was told to"


@pytest.mark.thorough
def test_a_machine_with_a_disk_missing_is_replaced(image: Image, tmp_path: Path) -> None:
    """An Xid in the real kernel log of a real kernel is found beside it."""
    whole = hardware_of(given(P5))
    hardware = dataclasses.replace(whole, disks=whole.disks[:-1])
    part = Part(P5, boots=(("Xid 79 in the kernel log",),))
    with in_vm(image, tmp_path, part, hardware) as scene:
        found = scene.ends("replace", "ABANDON", LIMIT)
        by_name = {check["name"]: check for check in found.report["checks"]}
        assert "7 local disks of 8" in by_name["stage-scratch"]["evidence"]
        assert by_name["xid"]["outcome"] == "replace"


@pytest.mark.thorough
def test_a_disk_with_somebodys_file_system_is_not_touched(image: Image, tmp_path: Path) -> None:
    foreign = tmp_path / "foreign.ext4"
    command = ["mke2fs", "-q", "-t", "ext4", "-L", "precious", str(foreign), "16M"]
    subprocess.run(command, env={"PATH": PATH}, check=True, capture_output=True)
    whole = hardware_of(given(P5))
    disk = Disk(whole.disks[3].serial, whole.disks[3].gib, foreign)
    hardware = dataclasses.replace(whole, disks=(*whole.disks[:3], disk, *whole.disks[4:]))
    with in_vm(image, tmp_path, Part(P5), hardware) as scene:
        found = scene.ends("config", "ABANDON", LIMIT)
        assert found.report["causes"][0] == "stage-scratch"
        with (scene.machine.place / "nvme3.raw").open("rb") as raw:
            assert raw.read(foreign.stat().st_size) == foreign.read_bytes()
        for number in (0, 7):
            with (scene.machine.place / f"nvme{number}.raw").open("rb") as raw:
                assert not raw.read(1 << 20).strip(b"\0"), "nothing was written to the others"


@pytest.mark.thorough
def test_a_machine_in_a_network_that_swallows_all_gives_no_verdict(
    image: Image, tmp_path: Path
) -> None:
    """It has an address, and nothing beyond answers: nobody can be told, so the hook's default
    result acts; the machine itself says why."""
    hardware = hardware_of(given(P5), black_hole=True)
    with in_vm(image, tmp_path, Part(P5, bundle_seconds=30), hardware) as scene:
        says(scene, "gputier: inconclusive: no answer in time from http://169.254.169.254")
        assert scene.verdict() is None
        assert scene.cloud.told(scene.part.instance) == ""
        assert not stage_outcomes(scene, "workload")


@pytest.mark.thorough
def test_a_power_cut_in_the_middle_of_preparation_changes_nothing_of_the_verdict(
    image: Image, tmp_path: Path
) -> None:
    """The plug is pulled while the scratch disks are made; the Xid before it is of another boot."""
    hardware = hardware_of(given(P5))
    part = Part(P5, boots=(("Xid 79 in the kernel log",), ()))
    with in_vm(image, tmp_path, part, hardware) as scene:
        says(scene, "stage fabric-manager: healthy")
        scene.machine.reset()
        scene.ends("healthy", "CONTINUE", LIMIT)
        says(scene, "workload: scratch knows 1 boots", 60)
