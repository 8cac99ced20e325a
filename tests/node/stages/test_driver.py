"""The driver: proved by what it does, installed in one exact version, never guessed at."""

from __future__ import annotations

from typing import Any

import pytest
from tests.node.machines import KINDS
from tests.node.stages.gpu_box import KERNEL, GpuBox

from gputier.node import driver_install
from gputier.node.result import CONFIG, HEALTHY, REBOOT, REPLACE
from gputier.node.stages import StageResult

SECURE_BOOT = "2026-11-30T10:00:08+0000 host kernel: Loading of unsigned module is rejected"
PREBAKED = {"source": "prebaked"}
VERSION = "580.95.05"


def prebaked(box: GpuBox, **driver: Any) -> StageResult:
    return box.stage("driver", driver={**PREBAKED, **driver})


def bare(kind: str = "g6.12xlarge", family: str = "apt") -> GpuBox:
    box = GpuBox(kind, family)
    box.without_driver()
    tail = "-0ubuntu1" if family == "apt" else "-1.el9"
    for name in ("nvidia-driver-580-server-open", "nvidia-fabricmanager-580", "nvidia-open",
                 "nvidia-driver-580-server", "nvidia-imex", "nvidia-fabricmanager"):  # fmt: skip
        box.offers[name] = (f"580.126.09{tail}", f"{VERSION}{tail}")
    box.says("curl -fsSL", 0)
    return box


def installed(box: GpuBox, **driver: Any) -> StageResult:
    planned = {"source": "install", "branch": "580", "version": VERSION, "module": "open"}
    return box.stage("driver", seconds=1195.0, driver={**planned, **driver})


def test_no_part_of_the_driver_comes_in_a_newer_version() -> None:
    """`nvidia-open` of a version asks for `nvidia-driver-open` of it or newer: apt takes 610."""
    box = bare()
    installed(box)
    text = box.read(driver_install.PIN) or ""
    assert "Pin: version 580.95.05-*\nPin-Priority: 1001\n" in text
    assert text.startswith("Package: *nvidia* ")


def test_dnf_has_no_such_file() -> None:
    box = bare(family="dnf")
    installed(box)
    assert box.read(driver_install.PIN) is None


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


@pytest.mark.parametrize(
    ("kind", "module"), [("p3.16xlarge", "open"), ("p6-b200.48xlarge", "proprietary")]
)
def test_incident_24_the_other_flavour_is_refused_before_anything_is_installed(
    kind: str, module: str
) -> None:
    """skypilot#9639: one image cannot serve V100 and B200."""
    box = bare(kind)
    found = installed(box, module=module)
    assert found.outcome == CONFIG
    assert not any("install" in call for call in box.changes())


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


# --- installed ----------------------------------------------------------------------------------


@pytest.mark.parametrize("family", ["apt", "dnf"])
def test_the_exact_version_is_installed_loaded_and_held(family: str) -> None:
    box = bare(family=family)
    found = installed(box)
    assert found.outcome == HEALTHY, found
    assert found.changed
    name = "nvidia-driver-580-server-open" if family == "apt" else "nvidia-open"
    assert box.installed[name].startswith(VERSION), "the newer one of the branch is not taken"
    if family == "apt":
        assert name in box.held


def test_a_second_run_installs_nothing() -> None:
    box = bare()
    installed(box)
    box.calls.clear()
    found = installed(box)
    assert (found.outcome, found.changed) == (HEALTHY, False)
    assert box.changes() == []


def test_incidents_26_27_31_32_all_parts_are_of_one_version_and_no_pattern_is_used() -> None:
    """pytorch#35710, gpu-operator#544, gpu-driver-container#735."""
    box = bare("p5.48xlarge")
    found = installed(box, fabric_manager=True, imex=True)
    assert found.outcome == HEALTHY, found
    assert {name: v.split("-")[0] for name, v in box.installed.items()} == {
        "nvidia-driver-580-server-open": VERSION,
        "nvidia-fabricmanager-580": VERSION,
        "nvidia-imex": VERSION,
    }
    (call,) = [call for call in box.changes() if " install " in call]
    assert "*" not in call


def test_the_new_name_of_the_fabric_manager_is_found_too() -> None:
    """The package lost its branch with 580."""
    box = bare("p5.48xlarge")
    del box.offers["nvidia-fabricmanager-580"]
    assert installed(box, fabric_manager=True).outcome == HEALTHY
    assert "nvidia-fabricmanager" in box.installed


def test_a_version_that_the_archive_dropped_comes_from_nvidias_repository() -> None:
    box = bare()
    box.files["/etc/os-release"] = 'ID=ubuntu\nVERSION_ID="24.04"\n'
    kept = dict(box.offers)
    box.offers = {name: versions[:1] for name, versions in kept.items()}
    box.do_dpkg, plain = None, box.do_dpkg  # type: ignore[method-assign, assignment]

    def dpkg(rest: list[str]) -> tuple[int, str, str]:
        if rest[0] == "-i":
            box.offers = kept
        return plain(rest)

    box.do_dpkg = dpkg  # type: ignore[method-assign]
    assert installed(box).outcome == HEALTHY
    (call,) = [call for call in box.changes() if call.startswith("curl")]
    assert "/repos/ubuntu2404/x86_64/cuda-keyring" in call


def test_a_version_that_nobody_offers_is_our_own_fault_and_names_what_was_looked_for() -> None:
    box = bare()
    box.files["/etc/os-release"] = 'ID=ubuntu\nVERSION_ID="24.04"\n'
    found = installed(box, version="580.1.1")
    assert found.outcome == CONFIG
    assert "580.1.1" in found.evidence
    assert "nvidia-driver-580-server-open" in found.evidence
    assert "nvidia-smi" in box.absent, "nothing else was installed instead"


def test_incident_20_secure_boot_is_seen_before_ten_minutes_are_spent() -> None:
    box = bare()
    box.says("mokutil", 0, "SecureBoot enabled\n")
    found = installed(box)
    assert found.outcome == CONFIG
    assert "SecureBoot enabled" in found.evidence
    assert not any(" install " in call for call in box.changes())


def test_incident_19_nouveau_is_blacklisted_and_unloaded_before_the_driver_comes() -> None:
    box = bare()
    box.files["/proc/modules"] += "nouveau 1 0 - Live 0x0\n"
    assert installed(box).outcome == HEALTHY
    assert box.written[driver_install.BLACKLIST] == driver_install.BLACKLIST_TEXT
    assert "modprobe -r nouveau" in box.changes()


@pytest.mark.parametrize(("family", "tool"), [("apt", "update-initramfs"), ("dnf", "dracut")])
def test_incident_19_nouveau_that_does_not_go_is_left_out_of_the_next_boot(
    family: str, tool: str
) -> None:
    box = bare(family=family)
    box.files["/proc/modules"] += "nouveau 1 1 - Live 0x0\n"
    box.refused["nouveau"] = "in use"
    found = installed(box)
    assert (found.outcome, found.then) == (REBOOT, CONFIG)
    assert any(call.startswith(tool) for call in box.changes())


def test_incidents_16_17_the_module_is_built_for_the_kernel_that_runs() -> None:
    box = bare()
    assert installed(box).outcome == HEALTHY
    assert KERNEL in box.module_for
    assert f"dkms autoinstall -k {KERNEL}" in box.changes()


def test_incident_17_a_kernel_without_headers_gets_them() -> None:
    box = bare()
    del box.files[f"/lib/modules/{KERNEL}/build/Makefile"]
    installed(box)
    assert f"linux-headers-{KERNEL}" in box.installed
    box = bare(family="dnf")
    del box.files[f"/lib/modules/{KERNEL}/build/Makefile"]
    installed(box)
    assert f"kernel-devel-{KERNEL}" in box.installed


def test_a_module_that_cannot_be_built_is_our_own_fault_with_dkms_words() -> None:
    box = bare()
    box.buildable = False
    found = installed(box)
    assert found.outcome == CONFIG
    assert "Bad return status for module build" in found.evidence


def test_an_old_module_that_is_in_use_needs_a_reboot() -> None:
    box = bare()
    box.module_version = "570.1.1"
    box.loads()
    box.refused["nvidia"] = "in use"
    found = installed(box)
    assert (found.outcome, found.then) == (REBOOT, CONFIG)


def test_an_old_module_that_nobody_uses_is_exchanged() -> None:
    box = bare()
    box.module_version = "570.1.1"
    box.loads()
    assert installed(box).outcome == HEALTHY
    assert "modprobe -r nvidia" in box.changes()


FLAVOURS = {
    "p3.16xlarge": "proprietary",
    "g4dn.xlarge": "proprietary",
    "g5.48xlarge": "proprietary",
    "p4d.24xlarge": "open",
    "g6.12xlarge": "open",
    "p5.48xlarge": "open",
    "p6-b200.48xlarge": "open",
    "g7e.2xlarge": "open",
}


@pytest.mark.parametrize(("kind", "flavour"), FLAVOURS.items())
def test_without_the_plans_word_the_card_decides_the_flavour(kind: str, flavour: str) -> None:
    """As eks-ami does: proprietary on g4dn and g5, whose cards are run without GSP."""
    box = bare(kind)
    installed(box, module=None)
    names = [name for name in box.installed if name.startswith("nvidia-driver")]
    assert names == ["nvidia-driver-580-server" + ("-open" if flavour == "open" else "")]


@pytest.mark.parametrize(
    ("release", "folder"),
    [
        ('ID=ubuntu\nVERSION_ID="22.04"\n', "ubuntu2204"),
        ('ID=debian\nVERSION_ID="12"\n', "debian12"),
        ('ID="amzn"\nVERSION_ID="2023"\n', "amzn2023"),
        ('ID="rocky"\nVERSION_ID="9.5"\n', "rhel9"),
    ],
)
def test_nvidias_repository_has_a_folder_per_distribution(release: str, folder: str) -> None:
    box = bare(family="apt" if folder[0] in "ud" else "dnf")
    box.files["/etc/os-release"] = release
    box.offers.clear()
    assert installed(box).outcome == CONFIG
    told = " ".join([*box.changes(), *box.written.values()])
    assert f"/repos/{folder}/x86_64" in told


def test_a_distribution_without_a_repository_is_named() -> None:
    box = bare()
    box.files["/etc/os-release"] = "ID=gentoo\nVERSION_ID=1\n"
    box.offers.clear()
    found = installed(box)
    assert found.outcome == CONFIG
    assert "gentoo" in found.evidence
