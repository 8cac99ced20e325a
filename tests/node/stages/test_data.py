"""The data volume: found by what the cloud says, mounted as it is, formatted only when blank."""

from __future__ import annotations

import pytest
from tests.node.stages.box import AWS_DISK, EBS, GIB, Box, Device, Point, changes, done, work

from gputier.node.stages import StageResult, data

DATA = {"mount": "/data", "filesystem": "ext4", "gib": 500}


def run(box: Box, cloud: str = "aws", **changed: object) -> StageResult:
    return done(data.run, work(box, 300.0, cloud=cloud, data={**DATA, **changed}))


def attached(**signature: str) -> tuple[Box, Device]:
    box = Box()
    volume = box.add("nvme1n1", EBS, 500, "vol0123456789abcdef0")
    for name, value in signature.items():
        setattr(volume, name, value)
    if volume.kind:
        volume.filled = volume.size
    return box, volume


def mounted(box: Box) -> Point | None:
    return next((m for m in box.mounts if m.point == "/data"), None)


def test_a_volume_that_is_blank_all_over_is_formatted_and_mounted_by_uuid() -> None:
    box, volume = attached()
    result = run(box)
    assert result.ok
    assert result.changed
    assert volume.kind == "ext4"
    assert f"UUID={volume.uuid} /data ext4 defaults,noatime,nofail" in box.files["/etc/fstab"]
    assert mounted(box) == Point("/data", "/dev/nvme1n1", "ext4")
    assert "vol-0123456789abcdef0" in result.evidence, "its owner knows it by that name"


@pytest.mark.parametrize("kind", ["xfs", "ext4", "ext3", "btrfs"])
def test_a_volume_with_a_file_system_is_mounted_and_never_formatted(kind: str) -> None:
    box, volume = attached(kind=kind, uuid="5e1f", label="anything")
    result = run(box)
    assert result.ok
    assert not any("mkfs" in call for call in box.calls)
    assert f"UUID=5e1f /data {kind}" in box.files["/etc/fstab"]
    assert (volume.kind, volume.uuid) == (kind, "5e1f")


@pytest.mark.parametrize(
    ("kind", "table"),
    [
        ("LVM2_member", ""),
        ("crypto_LUKS", ""),
        ("linux_raid_member", ""),
        ("swap", ""),
        ("", "gpt"),
    ],
)
def test_any_other_signature_is_left_to_its_owner(kind: str, table: str) -> None:
    box, volume = attached(kind=kind, table=table, uuid="u")
    result = run(box)
    assert result.outcome == "config"
    assert (kind or "partition table") in result.evidence
    assert changes(box) == []
    assert (volume.kind, volume.table) == (kind, table)


@pytest.mark.parametrize("place", [0, 500 * 1024 - 1, 500 * 1024 // 64 * 7])
def test_data_without_any_signature_is_data(place: int) -> None:
    """A database on the raw device: blkid knows nothing of it."""
    box, volume = attached()
    volume.written.add(place)
    result = run(box)
    assert result.outcome == "config"
    assert f"has data at byte {place * 2**20}" in result.evidence
    assert not any("mkfs" in call for call in box.calls)


def test_a_volume_that_cannot_be_read_is_not_blank() -> None:
    box, volume = attached()
    volume.broken = True
    result = run(box)
    assert result.outcome == "inconclusive"
    assert "Input/output error" in result.evidence
    assert changes(box) == []


def test_a_volume_whose_size_is_not_told_is_not_formatted() -> None:
    box, _ = attached()
    box.files["/sys/block/nvme1n1/size"] = "0\n"
    result = run(box, gib=0)
    assert result.outcome == "inconclusive"
    assert not any("mkfs" in call for call in box.calls)


@pytest.mark.parametrize("kind", ["xfs", "ext4"])
def test_a_volume_that_was_enlarged_is_filled_once(kind: str) -> None:
    box, volume = attached(kind=kind, uuid="u")
    volume.filled = 400 * GIB
    result = run(box)
    assert "grown" in result.evidence
    assert volume.filled == volume.size
    since = len(box.calls)
    assert not run(box).changed
    assert changes(box, since) == []


def test_a_volume_that_cannot_be_grown_is_used_all_the_same() -> None:
    box, volume = attached(kind="xfs", uuid="u")
    volume.filled = 400 * GIB
    box.says("xfs_growfs", 1, "", "xfs_growfs: cannot grow")
    job = work(box, 300.0, data=DATA)
    result = done(data.run, job)
    assert result.ok
    assert "was not grown to the 500 GiB" in job.warnings[0]


def test_the_root_and_scratch_are_never_the_data_volume() -> None:
    box = Box()
    box.add("nvme1n1", AWS_DISK, 500)
    result = run(box)
    assert result.outcome == "config"
    assert "no data volume is attached" in result.evidence
    assert "attach the volume" in result.remedy
    assert changes(box) == []


def test_a_volume_that_is_attached_late_is_waited_for() -> None:
    box = Box()
    box.after(90.0, lambda: box.attach(1, EBS, 500))
    assert run(box).ok
    assert 90.0 <= box.clock < 110.0


def test_of_two_volumes_the_one_of_the_planned_size_is_taken() -> None:
    box, volume = attached(kind="ext4", uuid="u")
    box.add("nvme2n1", EBS, 200)
    assert run(box).ok
    assert mounted(box) == Point("/data", "/dev/nvme1n1", "ext4")
    assert volume.uuid == "u"


def test_two_volumes_that_both_fit_are_not_guessed_between() -> None:
    box, _ = attached()
    box.add("nvme2n1", EBS, 500)
    result = run(box)
    assert result.outcome == "config"
    assert "2 volumes may be the data volume" in result.evidence
    assert changes(box) == []


def test_a_volume_smaller_than_planned_is_another_volume() -> None:
    box = Box()
    box.add("nvme1n1", EBS, 50)
    result = run(box)
    assert result.outcome == "config"
    assert "smaller than the planned 500 GiB" in result.evidence
    assert changes(box) == []


def test_a_volume_that_something_else_mounts_is_not_taken() -> None:
    box, _ = attached(kind="ext4", uuid="u")
    box.mounts.append(Point("/var/lib/docker", "/dev/nvme1n1", "ext4"))
    assert "no data volume" in run(box).evidence


def test_a_mount_of_another_disk_in_its_place_is_not_taken_for_the_volume() -> None:
    """The data would lie on a disk that a stop wipes, and the stage say that all is well."""
    box, _ = attached()
    box.add("nvme9n1", AWS_DISK, 900)
    box.mounts.append(Point("/data", "/dev/nvme9n1", "xfs"))
    result = run(box)
    assert result.outcome == "config"
    assert "/data is already a mount, of /dev/nvme9n1" in result.evidence
    assert changes(box) == []


def test_on_gcp_the_link_of_the_device_name_tells_the_volume() -> None:
    box = Box()
    box.devices.clear()
    box.add("nvme0n2", "nvme_card-pd", 500)
    box.add("nvme0n3", "nvme_card-pd", 500)
    box.links["/dev/disk/by-id/google-data"] = "../../nvme0n3"
    box.links["/dev/disk/by-id/google-other"] = "../../nvme0n2"
    box.files["/sys/class/block/nvme0n3/size"] = box.files["/sys/block/nvme0n3/size"]
    result = run(box, cloud="gcp")
    assert result.ok
    assert mounted(box) == Point("/data", "/dev/nvme0n3", "ext4")
    assert "google-data" in result.evidence


def test_on_azure_a_volume_is_known_by_its_link_alone() -> None:
    """The temporary disk has the same model there."""
    box = Box()
    box.add("sdb", "Virtual_Disk", 500)
    result = run(box, cloud="azure")
    assert result.outcome == "config"
    assert changes(box) == []
    box.links["/dev/disk/azure/scsi1/lun0"] = "../../../sdb"
    assert run(box, cloud="azure").ok


def test_on_a_xen_type_the_name_is_the_attachments_own() -> None:
    box = Box()
    box.detach("nvme0n1")
    box.add("xvda", "", 100)
    box.add("xvdf", "", 500)
    box.mounts[0] = Point("/", "/dev/xvda1", "ext4")
    assert run(box).ok
    assert mounted(box) == Point("/data", "/dev/xvdf", "ext4")


def test_a_stop_and_start_mounts_the_same_file_system_again() -> None:
    box, volume = attached()
    run(box)
    uuid = volume.uuid
    box.stop_and_start()
    since = len(box.calls)
    result = run(box)
    assert result.ok
    assert not any("mkfs" in call for call in changes(box, since))
    assert volume.uuid == uuid
