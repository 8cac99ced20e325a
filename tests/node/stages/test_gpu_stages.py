"""Persistence, Fabric Manager, MIG, limits: made so, and asked afterwards whether it is so."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from tests.node.stages.gpu_box import GpuBox

from gputier.node.result import CONFIG, HEALTHY, INCONCLUSIVE, REBOOT, REPLACE
from gputier.node.stages import StageResult, limits

PREBAKED = {"source": "prebaked"}
SWITCHED = {**PREBAKED, "fabric_manager": True}


# --- persistence --------------------------------------------------------------------------------


def off(box: GpuBox) -> GpuBox:
    for gpu in box.gpus:
        gpu.fields["persistence_mode"] = "Disabled"
    return box


def test_persistence_mode_is_switched_on_by_its_daemon() -> None:
    box = off(GpuBox())
    box.units["nvidia-persistenced"] = "disabled"
    found = box.stage("persistence", driver=PREBAKED)
    assert (found.outcome, found.changed) == (HEALTHY, True)
    assert box.changes() == ["systemctl enable --now nvidia-persistenced"]
    assert not box.stage("persistence", driver=PREBAKED).changed


def test_persistence_mode_without_a_daemon_is_switched_on_by_the_driver() -> None:
    box = off(GpuBox())
    box.says("systemctl enable", 1, "", "Unit nvidia-persistenced.service does not exist")
    found = box.stage("persistence", driver=PREBAKED)
    assert (found.outcome, found.changed) == (HEALTHY, True)
    assert box.changes()[-1] == "nvidia-smi -pm 1"


def test_a_driver_without_persistence_mode_is_a_warning() -> None:
    box = off(GpuBox())
    box.says("systemctl enable", 1)
    box.says("nvidia-smi -pm", 3, "not supported")
    found = box.stage("persistence", driver=PREBAKED)
    assert found.outcome == HEALTHY
    assert "persistence mode stays off" in found.warnings[0]


def test_a_driver_that_hangs_here_asks_for_a_reboot() -> None:
    box = GpuBox()
    box.hangs("nvidia-smi")
    assert box.stage("persistence", driver=PREBAKED).outcome == REBOOT


# --- Fabric Manager -----------------------------------------------------------------------------


def fabric(
    change: Callable[[GpuBox], object], kind: str = "p5.48xlarge"
) -> tuple[StageResult, GpuBox]:
    box = GpuBox(kind)
    box.units["nvidia-fabricmanager"] = "enabled"
    change(box)
    return box.stage("fabric-manager", seconds=235.0, driver=SWITCHED), box


def test_a_fabric_that_is_up_is_left_alone() -> None:
    found, box = fabric(lambda _: None)
    assert (found.outcome, found.changed) == (HEALTHY, False)
    assert box.changes() == []


def test_incidents_26_30_a_fabric_manager_that_does_not_run_is_started_and_named() -> None:
    """pytorch#35710, jax#34113: the message names the service."""
    down, _ = fabric(lambda box: setattr(box, "service", "inactive"))
    assert down.outcome == REBOOT
    assert "nvidia-fabricmanager is inactive" in down.evidence

    class Starts(GpuBox):
        def started(self, name: str) -> None:
            if name == "nvidia-fabricmanager":
                self.service = "active"

    box = Starts("p5.48xlarge")
    box.service = "inactive"
    box.units["nvidia-fabricmanager"] = "disabled"
    found = box.stage("fabric-manager", driver=SWITCHED)
    assert (found.outcome, found.changed) == (HEALTHY, True)
    assert "systemctl enable --now nvidia-fabricmanager" in box.changes()


def test_incident_34_a_start_that_lost_a_race_is_tried_again() -> None:
    """azhpc-images#86, #334, #365."""

    class Third(GpuBox):
        starts = 0

        def started(self, name: str) -> None:
            self.starts += name == "nvidia-fabricmanager"
            self.service = "active" if self.starts == 2 else "failed"

    box = Third("p5.48xlarge")
    box.service = "failed"
    box.units["nvidia-fabricmanager"] = "enabled"
    found = box.stage("fabric-manager", driver=SWITCHED)
    assert (found.outcome, found.changed) == (HEALTHY, True)
    assert box.changes().count("systemctl restart nvidia-fabricmanager") == 2


def test_incident_28_a_fabric_that_does_not_come_up_is_the_hosts() -> None:
    """huggingface_hub#4128: reboot once, then the machine is replaced."""
    found, box = fabric(lambda box: setattr(box, "fabric_state", ("In Progress", "N/A")))
    assert (found.outcome, found.then) == (REBOOT, REPLACE)
    assert box.clock < 235


def test_incidents_29_31_33_another_version_is_our_own_fault_and_is_not_restarted() -> None:
    """gpu-burn#92, gpu-operator#544, gpu-driver-container#908."""
    found, box = fabric(lambda box: setattr(box, "manager", "530.30.02"))
    assert found.outcome == CONFIG
    assert "fabric manager 530.30.02, driver 580.95.05" in found.evidence
    assert box.changes() == []


def test_incident_35_without_an_nvswitch_it_is_left_alone() -> None:
    """gpu-operator#610, #356, cube-studio#29: NV_WARN_NOTHING_TO_DO."""
    found, _ = fabric(lambda box: setattr(box, "service", "inactive"), "g6e.12xlarge")
    assert found.outcome == HEALTHY
    assert "not needed" in found.evidence


# --- MIG ----------------------------------------------------------------------------------------


class Divided(GpuBox):
    """One A100: `sticks`: the mode waits for a reset; `wrong`: nothing comes of making them."""

    def __init__(self, mode: str = "Disabled", layout: bool = False) -> None:
        super().__init__("a2-highgpu-1g")
        self.sticks = self.wrong = False
        self.layout = layout
        self.gpus[0].fields.update({"mig.mode.current": mode, "mig.mode.pending": mode})
        self.active = {"nvidia-dcgm", "nvidia-persistenced"}

    def _listing(self) -> str:
        text = super()._listing()
        return text if self.layout else text.splitlines()[0] + "\n"

    def _smi(self, rest: list[str]) -> tuple[int, str]:
        fields = self.gpus[0].fields
        if rest[2:3] == ["-mig"]:
            if "nvidia_drm" in self.files["/proc/modules"] or self.active & {"nvidia-dcgm"}:
                return 3, "Unable to enable MIG Mode for GPU: In use by another client"
            fields["mig.mode.pending"] = "Enabled"
            if not self.sticks:
                fields["mig.mode.current"] = "Enabled"
            return 0, "Enabled MIG Mode for GPU 00000000:10:00.0"
        if rest[:1] == ["mig"]:
            if "-cgi" in rest and not self.wrong:
                self.layout = True
            if "-dgi" in rest:
                self.layout = False
            return 0, ""
        return super()._smi(rest)


def divide(box: GpuBox, profile: str = "1g.5gb", count: int = 7) -> StageResult:
    return box.stage("mig", mig={"profile": profile, "count": count})


def test_a_layout_that_is_there_is_left_alone() -> None:
    box = Divided("Enabled", layout=True)
    found = divide(box)
    assert (found.outcome, found.changed) == (HEALTHY, False)
    assert box.changes() == []


def test_incidents_36_37_who_holds_the_gpu_is_stopped_first_and_started_again() -> None:
    """mig-parted#181, #182, gpu-operator#118: in use by another client."""
    box = Divided()
    box.files["/proc/modules"] += "nvidia_drm 1 0 - Live 0x0\n"
    found = divide(box)
    assert (found.outcome, found.changed) == (HEALTHY, True), found
    done = box.changes()
    for name in ("nvidia-dcgm", "nvidia-persistenced"):
        assert done.index(f"systemctl stop {name}") < done.index("nvidia-smi -i 0 -mig 1")
        assert name in box.active
    assert done.index("modprobe -r nvidia_drm") < done.index("nvidia-smi -i 0 -mig 1")
    assert not divide(box).changed


def test_incident_38_a_mode_that_waits_for_a_reset_is_rebooted_once_then_given_back() -> None:
    """mig-parted#9, #18: applied successfully, but nothing changed."""
    box = Divided()
    box.sticks = True
    found = divide(box)
    assert (found.outcome, found.then) == (REBOOT, REPLACE)
    assert "GPU 0 waits for a reset" in found.evidence
    assert not any("-cgi" in call for call in box.changes())
    box.gpus[0].fields["mig.mode.current"] = "Enabled"
    assert divide(box).outcome == HEALTHY, "after the reboot the instances are made"


def test_incident_39_a_layout_that_is_not_there_afterwards_is_a_failure() -> None:
    """AgentBaker#2508: provisioning said OK."""
    box = Divided("Enabled")
    box.wrong = True
    found = divide(box)
    assert found.outcome == CONFIG
    assert "GPU 0 has no instance" in found.evidence


def test_another_layout_is_taken_down_first() -> None:
    box = Divided("Enabled", layout=True)
    box.says("nvidia-smi mig -i 0 -cgi", 0)
    found = divide(box, "3g.20gb", 2)
    done = box.changes()
    assert done.index("nvidia-smi mig -i 0 -dci") < done.index("nvidia-smi mig -i 0 -dgi")
    assert "nvidia-smi mig -i 0 -cgi 3g.20gb,3g.20gb -C" in done
    assert found.outcome == CONFIG, "the stand-in makes nothing of it, and that is seen"


def test_a_profile_that_the_card_has_not_is_our_own_fault() -> None:
    box = Divided("Enabled")
    box.says("nvidia-smi mig -i 0 -cgi", 6, "Unable to create a GPU instance: Invalid Argument")
    found = divide(box, "9g.99gb", 1)
    assert found.outcome == CONFIG
    assert "Invalid Argument" in found.evidence
    assert "-lgip" in found.remedy


def test_a_card_without_mig_is_our_own_fault() -> None:
    assert divide(GpuBox("g4dn.xlarge")).outcome == CONFIG


# --- limits -------------------------------------------------------------------------------------


def test_a_fabric_gets_its_memory_locked_at_logins_and_in_units() -> None:
    box = GpuBox("p5.48xlarge")
    found = box.stage("limits", fabric={"kind": "efa", "interfaces": 32})
    assert (found.outcome, found.changed) == (HEALTHY, True)
    assert "* - memlock unlimited" in box.written[limits.LOGINS]
    assert "DefaultLimitMEMLOCK=infinity" in box.written[limits.UNITS]
    assert "systemctl daemon-reexec" in box.changes()
    box.calls.clear()
    assert not box.stage("limits", fabric={"kind": "efa"}).changed
    assert box.changes() == [], "incident 40: units are not read again under a workload"


def test_huge_pages_are_reserved_now_and_at_every_boot() -> None:
    box = GpuBox()
    found = box.stage("limits", hugepages=512)
    assert (found.outcome, found.changed) == (HEALTHY, True)
    assert box.written[limits.SYSCTL] == "vm.nr_hugepages = 512\n"
    assert limits.LOGINS not in box.written
    assert not box.stage("limits", hugepages=512).changed


def test_memory_that_does_not_hold_them_is_our_own_fault() -> None:
    box = GpuBox()
    box.pages = 300
    found = box.stage("limits", hugepages=512)
    assert found.outcome == CONFIG
    assert "300 of 512" in found.evidence


def of_efa(reserved: int = 0, size: str = "2048") -> GpuBox:
    box = GpuBox("p5.48xlarge")
    box.files["/proc/meminfo"] = f"MemTotal: 2000000000 kB\nHugepagesize:       {size} kB\n"
    box.files["/sys/devices/system/cpu/online"] = "0-191\n"
    box.files[limits.PAGES] = f"{reserved}\n"
    return box


def test_efa_has_the_huge_pages_that_its_own_package_reserves() -> None:
    box = of_efa()
    found = box.stage("limits", fabric={"kind": "efa"})
    assert (found.outcome, found.changed) == (HEALTHY, True)
    assert box.written[limits.SYSCTL] == "vm.nr_hugepages = 21121\n"
    assert "; 21121 huge pages" in found.evidence
    assert not box.stage("limits", fabric={"kind": "efa"}).changed


def test_an_image_that_reserves_them_itself_is_left_alone() -> None:
    box = of_efa(reserved=30000)
    box.stage("limits", fabric={"kind": "efa"})
    assert limits.SYSCTL not in box.written


@pytest.mark.parametrize("kind", ["roce", "infiniband"])
def test_no_other_fabric_is_given_huge_pages(kind: str) -> None:
    box = of_efa()
    box.stage("limits", fabric={"kind": kind})
    assert limits.SYSCTL not in box.written


def test_huge_pages_of_another_size_are_not_reserved_by_themselves() -> None:
    box = of_efa(size="524288")
    box.stage("limits", fabric={"kind": "efa"})
    assert limits.SYSCTL not in box.written


def test_too_few_that_nobody_declared_refuse_nobody() -> None:
    box = of_efa()
    box.pages = 300
    found = box.stage("limits", fabric={"kind": "efa"})
    assert found.outcome == HEALTHY
    assert "300 of 21121" in found.evidence


def test_a_disk_that_cannot_be_written_is_named() -> None:
    class ReadOnly(GpuBox):
        def write(self, path: str, text: str, mode: int = 0o644) -> None:
            raise OSError(30, f"Read-only file system: {len(text)} bytes, mode {mode:o}", path)

    found = ReadOnly().stage("limits", hugepages=1)
    assert found.outcome == CONFIG
    assert "Read-only file system" in found.evidence


def test_a_tool_out_of_time_is_inconclusive() -> None:
    box = GpuBox()
    box.hangs("sysctl")
    assert box.stage("limits", seconds=20.0, hugepages=1).outcome == INCONCLUSIVE
