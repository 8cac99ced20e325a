"""The driver: proved by what it does, installed in one exact version, never guessed at."""

from __future__ import annotations

from typing import Any

import pytest
from tests.node.machines import KINDS
from tests.node.stages.gpu_box import KERNEL, GpuBox

from gputier.node.result import CONFIG, HEALTHY, REBOOT, REPLACE
from gputier.node.stages import StageResult

PREBAKED = {"source": "prebaked"}


def prebaked(box: GpuBox, **driver: Any) -> StageResult:
    return box.stage("driver", driver={**PREBAKED, **driver})


# --- of the image -------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [name for name, kind in KINDS.items() if not kind.arm])
def test_a_driver_of_the_image_is_verified_and_nothing_is_touched(kind: str) -> None:
    box = GpuBox(kind)
    found = prebaked(box)
    assert found.outcome == HEALTHY, found
    assert KINDS[kind].driver in found.evidence
    assert not found.changed
    assert box.changes() == []


def test_a_module_that_nobody_loaded_yet_is_loaded() -> None:
    box = GpuBox()
    box.unloaded()
    found = prebaked(box)
    assert (found.outcome, found.changed) == (HEALTHY, True)
    assert box.changes() == ["modprobe nvidia"]


def test_incident_17_a_driver_is_there_when_it_works_and_not_when_its_file_exists() -> None:
    """compute-gpu-installation#10, #18, #25."""
    box = GpuBox()
    said = "NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver."
    box.says("nvidia-smi", 9, said)
    found = prebaked(box)
    assert found.outcome == CONFIG
    assert "couldn't communicate" in found.evidence


def test_incident_17_an_exit_status_of_0_without_a_uuid_is_no_driver() -> None:
    box = GpuBox()
    box.says("nvidia-smi -L", 0, "GPU 0: NVIDIA L4\n")
    assert prebaked(box).outcome != HEALTHY


def test_incident_14_a_half_done_upgrade_is_rebooted_once_then_it_is_the_images() -> None:
    """shine-cluster#30: Driver/library version mismatch."""
    box = GpuBox()
    box.files["/proc/driver/nvidia/version"] = (
        "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.82.07  Release\n"
    )
    found = prebaked(box)
    assert (found.outcome, found.then) == (REBOOT, CONFIG)
    assert "580.82.07" in found.evidence


def test_a_library_that_refuses_the_loaded_module_is_the_images_when_a_reboot_does_not_help() -> (
    None
):
    """nvidia-smi says so itself, before the versions can be compared."""
    box = GpuBox()
    box.says("nvidia-smi", 18, "Failed to initialize NVML: Driver/library version mismatch\n")
    found = prebaked(box)
    assert (found.outcome, found.then) == (REBOOT, CONFIG)


def test_incident_19_nouveau_that_has_the_gpu_is_our_own_fault() -> None:
    """nvidia-docker#137: Could not load UVM."""
    box = GpuBox()
    box.files["/proc/modules"] = "nouveau 1 1 - Live 0x0\n"
    found = prebaked(box)
    assert found.outcome == CONFIG
    assert "nouveau" in found.evidence
    assert "blacklist" in found.remedy
    assert box.changes() == [], "nothing is loaded over it"


@pytest.mark.parametrize(
    "line", ["kernel: nvidia: Key was rejected by service", "kernel: Loading of unsigned module"]
)
def test_incidents_20_21_secure_boot_is_named_with_the_kernels_own_words(line: str) -> None:
    """gpu-driver-container#44, linux-surface#906, siderolabs/extensions#227."""
    box = GpuBox()
    box.unloaded()
    box.refused["nvidia"] = "modprobe: ERROR: could not insert 'nvidia': Key was rejected"
    box.log.append(f"2026-11-30T10:00:08+0000 host {line}")
    found = prebaked(box)
    assert found.outcome == CONFIG
    assert line in found.evidence
    assert "Secure Boot" in found.evidence


def test_incident_22_the_open_module_on_a_card_before_turing_is_named() -> None:
    """negativo17/nvidia-driver#158."""
    box = GpuBox("p3.16xlarge")
    box.files["/proc/driver/nvidia/version"] = (
        "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  570.172.08  Release\n"
    )
    found = prebaked(box)
    assert found.outcome == CONFIG
    assert "V100" in found.evidence


def test_incident_23_the_proprietary_module_on_blackwell_is_named() -> None:
    """start-technologies#3465, #3693."""
    box = GpuBox("p6-b200.48xlarge")
    box.files["/proc/driver/nvidia/version"] = (
        "NVRM version: NVIDIA UNIX x86_64 Kernel Module  580.95.05  Tue\n"
    )
    found = prebaked(box)
    assert found.outcome == CONFIG
    assert "B200" in found.evidence


def test_incident_25_a_branch_that_forgot_the_card_is_named() -> None:
    """proxmox-vgpu-installer#29."""
    box = GpuBox("p3.16xlarge")
    box.driver = box.module_version = "595.58.03"
    box.files["/proc/driver/nvidia/version"] = (
        "NVRM version: NVIDIA UNIX x86_64 Kernel Module  595.58.03  Tue\n"
    )
    found = prebaked(box)
    assert found.outcome == CONFIG
    assert "595.58.03 no longer knows V100" in found.evidence


@pytest.mark.parametrize(
    "driver", [{"branch": "570"}, {"version": "580.126.09"}, {"branch": "580", "version": "580.1"}]
)
def test_an_image_with_another_driver_than_the_locks_is_our_own_fault(
    driver: dict[str, str],
) -> None:
    found = prebaked(GpuBox(), **driver)
    assert found.outcome == CONFIG
    assert "580.95.05, and the plan has" in found.evidence


def test_the_locked_driver_is_the_images() -> None:
    assert prebaked(GpuBox(), branch="580", version="580.95.05").outcome == HEALTHY


def test_incident_32_a_fabric_manager_of_another_branch_is_named() -> None:
    """gpu-driver-container#735: the image ships 590.48.01 to a driver 580.126.09."""
    box = GpuBox("p5.48xlarge")
    box.manager = "590.48.01"
    found = prebaked(box, fabric_manager=True)
    assert found.outcome == CONFIG
    assert "590.48.01" in found.evidence
    assert prebaked(box).outcome == HEALTHY, "where no NVSwitch is, nobody asks"


def test_incident_27_a_missing_fabric_manager_is_named() -> None:
    """aws-deep-learning-ami-ubuntu-dcv-desktop#33."""
    box = GpuBox("p5.48xlarge")
    box.absent.add("nv-fabricmanager")
    found = prebaked(box, fabric_manager=True)
    assert found.outcome == CONFIG
    assert "nv-fabricmanager is needed on this machine: not installed" in found.evidence


def test_imex_and_the_persistence_daemon_have_to_be_of_the_drivers_version() -> None:
    box = GpuBox()
    assert prebaked(box, imex=True).outcome == CONFIG
    box.programs["nvidia-imex"] = "580.126.09"
    assert prebaked(box, imex=True).outcome == CONFIG
    box.programs["nvidia-imex"] = "580.95.05"
    assert prebaked(box, imex=True).outcome == HEALTHY
    box.programs["nvidia-persistenced"] = "570.1.1"
    found = prebaked(box)
    assert found.outcome == HEALTHY
    assert any("nvidia-persistenced is 570.1.1" in warning for warning in found.warnings)


def test_a_gpu_that_is_not_on_the_bus_is_a_bad_host_whatever_the_driver() -> None:
    box = GpuBox()
    box.gpus[2].on_bus = False
    found = prebaked(box)
    assert found.outcome == REPLACE


def test_incident_50_a_driver_that_hangs_is_rebooted_then_the_host_is_bad() -> None:
    """open-gpu-kernel-modules#446, #1230: GSP timeouts."""
    box = GpuBox()
    box.hangs("nvidia-smi")
    found = prebaked(box)
    assert (found.outcome, found.then) == (REBOOT, REPLACE)


def test_incident_16_a_next_kernel_without_the_module_is_told_before_any_reboot() -> None:
    """nvidia-docker#804."""
    box = GpuBox()
    box.files["/boot/vmlinuz-6.8.0-1022-aws"] = box.files[f"/boot/vmlinuz-{KERNEL}"] = ""
    box.buildable = False
    found = prebaked(box)
    assert found.outcome == HEALTHY
    assert any("6.8.0-1022-aws, which has no nvidia module" in text for text in found.warnings)
    box.buildable = True
    assert prebaked(box).warnings == ()
    assert "6.8.0-1022-aws" in box.module_for
