"""The package manager: quiet, unlocked, whole, with kernel and driver held."""

from __future__ import annotations

import fnmatch

import pytest
from tests.node.stages.gpu_box import GpuBox

from gputier.node import distro, expect, settings
from gputier.node.result import CONFIG, HEALTHY, INCONCLUSIVE
from gputier.node.stages import Halt, Work
from gputier.node.stages import packages as stage

SCHEMA = '{"schema": "gputier/boot/1"}'


def installed() -> GpuBox:
    box = GpuBox()
    box.units = {"apt-daily.timer": "enabled", "unattended-upgrades.service": "enabled"}
    box.installed = {
        "linux-image-6.8.0-1021-aws": "6.8.0-1021.23",
        "linux-aws": "6.8.0.1021.23",
        "nvidia-driver-580-server-open": "580.95.05-0ubuntu0.24.04.2",
        "libnvidia-compute-580-server": "580.95.05-0ubuntu0.24.04.2",
        "git": "2.43",
    }
    return box


def work(box: GpuBox, seconds: float = 900.0) -> Work:
    return Work(box, expect.read("{}"), settings.read(SCHEMA), seconds)


def test_upgraders_that_are_there_are_stopped_and_masked() -> None:
    box = installed()
    assert box.stage("packages").outcome == HEALTHY
    assert "systemctl stop --no-block apt-daily.timer unattended-upgrades.service" in box.changes()
    assert set(box.units.values()) == {"masked"}
    assert "packagekit.service" not in box.units, "what is not there is not masked"


def test_a_unit_that_cannot_be_masked_is_a_warning() -> None:
    box = installed()
    box.says("systemctl mask", 1, "", "Failed to mask unit: File apt-daily.timer already exists.")
    found = box.stage("packages")
    assert found.outcome == HEALTHY
    assert "already exists" in found.warnings[0]


def test_a_second_run_changes_nothing() -> None:
    box = installed()
    assert box.stage("packages").changed
    box.calls.clear()
    again = box.stage("packages")
    assert (again.outcome, again.changed) == (HEALTHY, False)
    assert box.changes() == []


@pytest.mark.parametrize("process", ["unattended-upgr", "apt-get", "dpkg", "cloud-init"])
def test_incidents_10_to_13_a_held_lock_is_waited_for_and_not_raced(process: str) -> None:
    """mapsnap#443, aks-engine#1538, skypilot#554, terraform-google-forseti#286."""
    box = installed()
    box.locked_by(process, until=400.0)
    found = box.stage("packages")
    assert found.outcome == HEALTHY
    assert box.clock > 400


def test_incident_10_a_lock_that_stays_is_inconclusive_and_names_its_holder() -> None:
    box = installed()
    box.locked_by("unattended-upgr", until=1e9)
    found = box.stage("packages", seconds=655.0)
    assert found.outcome == INCONCLUSIVE
    assert "unattended-upgr (process 4321) holds /var/lib/dpkg/lock-frontend" in found.evidence
    assert box.clock < 655
    assert box.held == set()


def test_incident_10_an_installation_waits_too_and_tells_apt_to() -> None:
    box = installed()
    box.locked_by("apt-get", until=120.0)
    box.offers["jq"] = ("1.7",)
    distro.install(work(box), "jq")
    assert box.installed["jq"] == "1.7"
    (call,) = [c for c in box.changes() if "install jq" in c]
    assert "DPkg::Lock::Timeout=" in call
    assert box.clock > 120


def test_incidents_14_15_18_kernel_and_driver_are_held_and_blacklisted() -> None:
    """shine-cluster#30, homelab#4110, cloudypad#179."""
    box = installed()
    box.stage("packages")
    assert box.held == set(box.installed) - {"git"}
    conf = box.written[stage.APT_CONF]
    for pattern in ("nvidia-.*", "libnvidia-.*", "cuda-.*"):
        assert f'"{pattern}";' in conf
    assert 'APT::Periodic::Unattended-Upgrade "0";' in conf


def test_an_installation_that_was_cut_off_is_finished() -> None:
    box = installed()
    box.half_installed = True
    found = box.stage("packages")
    assert "an interrupted dpkg was finished" in found.evidence
    assert not box.half_installed


def test_a_dpkg_that_cannot_be_finished_is_our_own_fault() -> None:
    box = installed()
    box.half_installed = True
    box.says("dpkg --force-confold", 1, "", "dpkg: error processing package nvidia-dkms-580")
    found = box.stage("packages")
    assert found.outcome == CONFIG
    assert "nvidia-dkms-580" in found.evidence


def test_dnf_excludes_kernel_and_driver_and_nothing_that_a_workload_adds() -> None:
    box = GpuBox(family="dnf")
    box.files[stage.DNF_CONF] = "[main]\ngpgcheck=1\nexcludepkgs=mine, other\n"
    assert box.stage("packages").changed
    (line,) = [r for r in box.written[stage.DNF_CONF].splitlines() if r.startswith("exclude")]
    names = line.partition("=")[2].split(",")
    assert names[:2] == ["mine", "other"]
    assert set(stage.DNF_HELD) <= set(names)
    for package in ("nvidia-container-toolkit", "libnvidia-container1", "cuda-toolkit-12-8"):
        assert not any(fnmatch.fnmatchcase(package, name) for name in names)
    assert not box.stage("packages").changed


@pytest.mark.parametrize("text", ["", "[main]\n", "# nothing\n", "[other]\nx=1\n"])
def test_a_dnf_configuration_of_any_shape_gets_the_exclusion_once(text: str) -> None:
    box = GpuBox(family="dnf")
    box.files[stage.DNF_CONF] = text
    box.stage("packages")
    rows = box.written[stage.DNF_CONF].splitlines()
    at = next(i for i, row in enumerate(rows) if row.startswith("excludepkgs="))
    assert "[main]" in rows[:at]
    assert not box.stage("packages").changed


def test_dnf_locks_are_told_by_their_pid_file() -> None:
    box = GpuBox(family="dnf")
    box.files["/var/cache/dnf/metadata_lock.pid"] = "77"
    box.files["/proc/77/comm"] = "dnf\n"
    assert distro.holder(work(box)) == "dnf (process 77) holds /var/cache/dnf/metadata_lock.pid"
    box.files["/proc/77/comm"] = "sshd\n"
    assert distro.holder(work(box)) is None, "the file outlived its process"


REFUSALS = {
    "E: Unable to locate package nonsense": CONFIG,
    "E: Version '9' for 'jq' was not found": CONFIG,
    "E: Failed to fetch http://x/jq.deb  404  Not Found": CONFIG,
    "Err:1 http://archive.ubuntu.com\n  Temporary failure resolving": INCONCLUSIVE,
    "E: Failed to fetch http://x  Connection timed out": INCONCLUSIVE,
    "Curl error (28): Timeout was reached for https://x": INCONCLUSIVE,
    "Cannot initiate the connection to security.ubuntu.com:80": INCONCLUSIVE,
}


@pytest.mark.parametrize(("said", "outcome"), REFUSALS.items())
def test_a_network_that_fails_is_not_a_package_that_is_not_there(said: str, outcome: str) -> None:
    box = installed()
    box.says("apt-get", 100, "Reading package lists...", said)
    with pytest.raises(Halt) as caught:
        distro.install(work(box), "jq")
    assert caught.value.result.outcome == outcome


def test_a_machine_without_a_package_manager_is_named() -> None:
    box = GpuBox()
    box.absent |= {"apt-get", "dnf"}
    assert box.stage("packages").outcome == CONFIG


@pytest.mark.parametrize(
    ("text", "plain"),
    [
        ("580.95.05-0ubuntu0.24.04.2", "580.95.05"),
        ("3:580.95.05-1.el9", "580.95.05"),
        ("580.95.05", "580.95.05"),
        ("", ""),
    ],
)
def test_the_drivers_version_in_a_packages(text: str, plain: str) -> None:
    assert distro.upstream(text) == plain
