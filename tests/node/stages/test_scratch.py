"""Scratch from what is on the disks now; the incidents are those of clouds and other tools."""

from __future__ import annotations

import re

import pytest
from tests.node.stages.box import AWS_DISK, EBS, Box, Point, changes, done, work

from gputier.node import fstab
from gputier.node.stages import StageResult, scratch

SCRATCH = {"mount": "/scratch", "filesystem": "xfs", "count": 4}


def run(box: Box, **changed: object) -> StageResult:
    return done(scratch.run, work(box, 180.0, scratch={**SCRATCH, **changed}))


def bare(count: int = 4) -> Box:
    box = Box()
    box.attach(count)
    return box


def entry(box: Box) -> str:
    lines = [line for line in box.files["/etc/fstab"].splitlines() if "/scratch" in line]
    assert len(lines) == 1
    return lines[0]


def mounted(box: Box) -> Point | None:
    return next((m for m in box.mounts if m.point == "/scratch"), None)


def test_blank_disks_become_one_stripe_that_is_mounted_by_uuid() -> None:
    box = bare()
    result = run(box)
    assert result.ok
    assert result.changed
    (create,) = (call for call in box.calls if call.startswith("mdadm --create"))
    assert "--level=0 --raid-devices=4" in create
    assert create.endswith("/dev/nvme1n1 /dev/nvme2n1 /dev/nvme3n1 /dev/nvme4n1")
    (make,) = (call for call in box.calls if call.startswith("mkfs"))
    assert make.startswith("mkfs.xfs -f -K -l su=8b -m uuid=")
    assert "nvme0n1" not in " ".join(box.calls), "the root volume is never touched"
    uuid = box.devices["/dev/md127"].uuid
    assert entry(box) == (
        f"UUID={uuid} /scratch xfs "
        "defaults,noatime,nofail,x-systemd.device-timeout=10s,x-gputier 0 0"
    )
    assert mounted(box) == Point("/scratch", "/dev/md127", "xfs")
    assert box.calls.index("systemctl daemon-reload") < box.calls.index("mount /scratch")
    assert "chmod 1777 /scratch" in box.calls


def test_one_disk_needs_no_array() -> None:
    box = bare(1)
    assert run(box, count=1).ok
    assert not any(call.startswith("mdadm") for call in box.calls)
    assert mounted(box) == Point("/scratch", "/dev/nvme1n1", "xfs")


def test_ext4_where_it_is_asked() -> None:
    box = bare(2)
    assert run(box, count=2, filesystem="ext4").ok
    assert any(call.startswith("mkfs.ext4 -F -q -m 0") for call in box.calls)


@pytest.mark.parametrize("count", [1, 4])
def test_a_reboot_keeps_what_is_on_the_disks(count: int) -> None:
    box = bare(count)
    run(box, count=count)
    uuid = entry(box)
    box.reboot()
    since = len(box.calls)
    result = run(box, count=count)
    assert result.ok
    assert not result.changed
    assert changes(box, since) == []
    assert entry(box) == uuid


def test_an_array_that_nobody_assembled_is_assembled_and_keeps_its_data() -> None:
    box = bare()
    run(box)
    uuid = entry(box)
    box.files["/etc/fstab"] = box.files["/etc/fstab"].replace("/scratch", "/elsewhere")
    box.reboot()
    box.run(("mdadm", "--stop", "/dev/md127"), 1.0)
    inside = next(iter(box.kept.values()))
    assert inside.kind == "xfs"
    box.files["/etc/fstab"] = box.files["/etc/fstab"].replace("/elsewhere", "/scratch")
    since = len(box.calls)
    assert run(box).ok
    after = changes(box, since)
    assert any(call.startswith("mdadm --assemble") for call in after)
    assert not any("mkfs" in call or "--create" in call for call in after)
    assert entry(box) == uuid


def test_incident_1_a_stop_that_wiped_the_disks_makes_the_array_again() -> None:
    """amazon-eks-ami#2755: a note on the root disk said that the array exists."""
    box = bare()
    run(box)
    old = entry(box)
    box.stop_and_start()
    assert mounted(box) is None
    result = run(box)
    assert result.ok
    assert mounted(box)
    assert entry(box) != old
    assert box.devices["/dev/md127"].uuid in entry(box)


def test_incident_2_a_hanging_tool_ends_with_the_stage_and_is_named() -> None:
    """amazon-eks-ami#2386: node creation hung for ever."""
    box = bare()
    box.hangs("mdadm --create")
    result = run(box)
    assert result.outcome == "inconclusive"
    assert "mdadm --create" in result.evidence
    assert box.clock <= 180.0


def test_incident_3_nothing_is_guarded_by_a_marker() -> None:
    """scylladb#6184: a one-shot setup service did not run again after a reboot."""
    box = bare()
    before = set(box.files)
    run(box)
    made = {path for path in set(box.files) - before if not path.startswith("/sys/")}
    assert made == set(), "no file but a line of fstab says that it was done"


def test_incident_4_the_array_comes_back_under_another_number_and_is_found() -> None:
    """opsworks-cookbooks#188: /dev/md127 instead of the name that was given."""
    box = bare()
    run(box)
    box.reboot()
    assert "/dev/md" not in entry(box)
    assert mounted(box)


def test_incident_5_a_missing_mdadm_is_installed_else_named() -> None:
    """elastic-cloud-enterprise#105: the image lacked mdadm and data went to the root disk."""
    box = bare()
    box.commands.discard("mdadm")
    assert run(box).ok
    assert "mdadm" in box.installed
    box = bare()
    box.commands.discard("mdadm")
    del box.offers["mdadm"]
    result = run(box)
    assert result.outcome == "config"
    assert "mdadm is not in the image" in result.evidence
    assert result.remedy == "put mdadm into the image"
    assert mounted(box) is None


def test_incident_5_a_mount_that_did_not_happen_is_a_failure() -> None:
    box = bare()
    box.says("mount /scratch", 0)
    result = run(box)
    assert result.outcome == "config"
    assert "/scratch is a mount" in result.evidence


@pytest.mark.parametrize("name", ["mkfs.xfs", "mkfs.ext4"])
def test_a_missing_mkfs_is_named(name: str) -> None:
    box = bare()
    box.commands.discard(name)
    box.offers.clear()
    result = run(box, filesystem=name.rsplit(".", 1)[-1])
    assert result.outcome == "config"
    assert name in result.evidence


FOREIGN = {
    "a file system": ("ext4", "data", ""),
    "somebody's array": ("linux_raid_member", "host:0", ""),
    "LVM": ("LVM2_member", "", ""),
    "a partition table": ("", "", "gpt"),
    "XFS of another label": ("xfs", "gputier2", ""),
}


@pytest.mark.parametrize("sign", FOREIGN.values(), ids=FOREIGN)
@pytest.mark.parametrize("disks", [1, 4])
def test_incident_6_a_foreign_signature_on_one_disk_stops_everything(
    sign: tuple[str, str, str], disks: int
) -> None:
    """container-storage-setup#278: the wrong disk was wiped, as names had moved."""
    box = bare(disks)
    device = box.devices[f"/dev/nvme{disks}n1"]
    device.kind, device.label, device.table = sign
    result = run(box, count=disks)
    assert result.outcome == "config"
    assert f"/dev/nvme{disks}n1" in result.evidence
    assert "wipe the disk yourself" in result.remedy
    assert changes(box) == []


def test_incident_7_names_that_changed_places_change_nothing() -> None:
    """nixops-aws#45: data volumes swapped their names at a reboot."""
    box = bare()
    run(box)
    first, fourth = box.devices["/dev/nvme1n1"], box.devices["/dev/nvme4n1"]
    box.devices["/dev/nvme1n1"], box.devices["/dev/nvme4n1"] = fourth, first
    since = len(box.calls)
    box.reboot()
    assert run(box).ok
    assert not any("mkfs" in call or "create" in call for call in changes(box, since))


def test_incident_8_an_nvme_that_is_a_volume_is_never_scratch() -> None:
    """toil#2252: the root was reformatted, as every NVMe was taken for an ephemeral one."""
    box = Box()
    box.add("nvme1n1", EBS, 500)
    result = run(box, count=1)
    assert result.outcome == "replace"
    assert "0 local disks of 1" in result.evidence
    assert changes(box) == []


def test_a_local_disk_that_carries_the_system_is_never_taken_nor_shown_as_scratch() -> None:
    box = bare(1)
    box.mounts[0] = Point("/", "/dev/nvme1n1", "ext4")
    result = run(box, count=1)
    assert result.outcome == "config"
    assert "in use by a mount" in result.evidence
    assert changes(box) == []


def test_incident_9_disks_in_another_order_are_the_same_disks() -> None:
    """terraform-provider-aws#4864: the order of devices differs from machine to machine."""
    box = Box()
    box.add("nvme1n1", EBS, 500)
    box.devices["/dev/nvme1n1"].kind = "ext4"
    for n in (2, 3, 4, 5):
        box.add(f"nvme{n}n1", AWS_DISK, 900)
    assert run(box).ok
    assert "/dev/nvme1n1" not in " ".join(box.calls)


def test_a_disk_of_an_unknown_model_is_not_taken() -> None:
    box = Box()
    box.add("nvme1n1", "Some New Disk", 900)
    result = run(box, count=1)
    assert result.outcome == "config"
    assert "Some New Disk" in result.evidence
    assert changes(box) == []


def test_too_few_disks_are_a_bad_host_and_never_a_smaller_array() -> None:
    box = bare(3)
    result = run(box)
    assert result.outcome == "replace"
    assert "3 local disks of 4" in result.evidence
    assert changes(box) == []


def test_a_disk_that_comes_late_is_waited_for() -> None:
    box = bare(3)
    box.after(7.0, lambda: box.attach(4))
    assert run(box).ok
    assert 7.0 <= box.clock < 20.0


def test_a_disk_that_cannot_be_read_is_a_bad_host_and_is_not_written() -> None:
    box = bare()
    box.devices["/dev/nvme2n1"].broken = True
    result = run(box)
    assert result.outcome == "replace"
    assert "Input/output error" in result.evidence
    assert changes(box) == []


def test_a_disk_with_partitions_in_use_or_held_is_refused() -> None:
    box = bare()
    box.files["/sys/block/nvme2n1/nvme2n1p1/size"] = "1"
    assert "partitions" in run(box).evidence
    box = bare()
    box.mounts.append(Point("/data", "/dev/nvme1n1", "ext4"))
    assert "in use" in run(box).evidence
    box = bare()
    box.files["/sys/block/nvme3n1/holders/dm-0"] = ""
    result = run(box)
    assert "held by dm-0" in result.evidence
    assert result.outcome == "config"
    assert changes(box) == []


def test_a_preparation_cut_off_in_the_middle_is_finished_by_the_next() -> None:
    """Power went between the array and the file system, or between two superblocks."""
    box = bare()
    box.run(("mdadm", "--create", *(f"/dev/nvme{n}n1" for n in range(1, 5))), 1.0)
    assert run(box).ok
    assert mounted(box)
    box = bare()
    box.devices["/dev/nvme1n1"].kind, box.devices["/dev/nvme1n1"].label = (
        "linux_raid_member",
        "any:gputier",
    )
    box.files["/sys/block/md127/slaves/nvme1n1"] = ""
    result = run(box)
    assert result.ok
    assert box.calls.index("mdadm --stop /dev/md127") < next(
        n for n, call in enumerate(box.calls) if call.startswith("mdadm --create")
    ), "what udev began to assemble holds the disk"


def test_a_file_system_of_somebody_else_on_our_array_is_kept() -> None:
    box = bare()
    box.run(("mdadm", "--create", *(f"/dev/nvme{n}n1" for n in range(1, 5))), 1.0)
    inside = box.devices["/dev/md127"]
    inside.kind, inside.label = "ext4", "mine"
    result = run(box)
    assert result.outcome == "config"
    assert inside.label == "mine"


def test_a_damaged_file_system_is_not_wiped() -> None:
    box = bare(1)
    run(box, count=1)
    box.mounts = box.mounts[:1]
    box.says("mount /scratch", 32, "", "mount: /scratch: mount(2): Structure needs cleaning.")
    since = len(box.calls)
    result = run(box, count=1)
    assert result.outcome == "replace"
    assert not any("mkfs" in call for call in changes(box, since))


def test_an_image_that_mounts_the_disks_itself_is_used_and_not_fought() -> None:
    """DLAMIs make one LVM volume of the instance store and mount it at /opt/dlami/nvme."""
    box = bare()
    dlami(box)
    result = run(box)
    assert result.ok
    assert mounted(box) == Point("/scratch", "/dev/dm-0", "ext4")
    assert changes(box) == ["mkdir -p /scratch", "mount --bind /opt/dlami/nvme /scratch"]
    assert not run(box).changed
    assert "/scratch" not in box.files["/etc/fstab"]


def dlami(box: Box) -> None:
    for n in range(1, 5):
        box.devices[f"/dev/nvme{n}n1"].kind = "LVM2_member"
        box.files[f"/sys/block/dm-0/slaves/nvme{n}n1"] = ""
        box.files[f"/sys/block/nvme{n}n1/holders/dm-0"] = ""
    box.devices["/dev/dm-0"] = box.devices["/dev/nvme1n1"]
    box.mounts.append(Point("/opt/dlami/nvme", "/dev/dm-0", "ext4"))


def test_an_image_that_is_still_mounting_them_is_waited_for() -> None:
    box = bare()
    unit = {"LoadState": "loaded", "ActiveState": "activating", "UnitFileState": "enabled"}
    box.units[scratch.IMAGE_UNIT] = unit
    box.after(20.0, lambda: dlami(box))
    assert run(box).ok
    assert "mount --bind /opt/dlami/nvme /scratch" in box.calls


def test_an_image_whose_own_unit_failed_does_not_hold_us_up() -> None:
    box = bare()
    unit = {"LoadState": "loaded", "ActiveState": "failed", "UnitFileState": "enabled"}
    box.units[scratch.IMAGE_UNIT] = unit
    assert run(box).ok
    assert mounted(box) == Point("/scratch", "/dev/md127", "xfs")
    assert box.clock < 10.0


def test_a_mount_point_that_is_another_mount_is_refused() -> None:
    box = bare()
    box.mounts.append(Point("/scratch", "server:/share", "nfs4"))
    result = run(box)
    assert result.outcome == "config"
    assert "server:/share" in result.evidence


def test_a_line_of_fstab_by_label_becomes_one_by_uuid() -> None:
    """The form of earlier versions; two file systems of one label would be mounted by chance."""
    box = bare(1)
    run(box, count=1)
    old = "LABEL=gputier /scratch xfs defaults,noatime,nofail,x-systemd.device-timeout=10s 0 0\n"
    box.files["/etc/fstab"] = re.sub(r"UUID=.*\n", old, box.files["/etc/fstab"])
    result = run(box, count=1)
    assert result.changed
    assert entry(box).startswith(f"UUID={box.devices['/dev/nvme1n1'].uuid} ")
    assert fstab.OLD_SOURCE not in box.files["/etc/fstab"]


def test_a_mount_point_that_fstab_gives_to_another_is_refused() -> None:
    box = bare(1)
    box.files["/etc/fstab"] += "/dev/sdz /scratch ext4 defaults 0 2\n"
    result = run(box, count=1)
    assert result.outcome == "config"
    assert "/dev/sdz /scratch" in result.evidence
    assert mounted(box) is None
