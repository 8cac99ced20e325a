"""The driver where the image has none: one exact version, all its parts, never guessed at."""

from __future__ import annotations

from typing import Any

import pytest
from tests.node.stages.gpu_box import KERNEL, GpuBox

from gputier.node import driver_install
from gputier.node.result import CONFIG, HEALTHY, REBOOT
from gputier.node.stages import StageResult

VERSION = "580.95.05"


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
