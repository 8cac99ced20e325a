"""Data: the volume that outlives the machine. Mounted as it is, formatted only when all blank.

It is found by what the cloud says it is, never by its kernel name: those are given in the order
in which devices answer (github.com/hashicorp/terraform-provider-aws/issues/4864).
"""

from __future__ import annotations

import re
from typing import NamedTuple

from gputier.node import blocks, disks, filesystems, fstab
from gputier.node.stages import Halt, StageResult, Work, config, inconclusive, ok

LABEL = "gputier-data"
# A volume is attached by a call of its own, which may come after the machine's start.
LATE_SECONDS, STEP_SECONDS = 180.0, 3.0
# Mounted whatever made it; anything else (LVM, RAID, encryption) is its owner's to open.
MOUNTABLE = ("xfs", "ext4", "ext3", "ext2", "btrfs")
GIB_ROOM = 1.0


class Cloud(NamedTuple):
    """How a cloud tells a volume: links that name it (folder, name), models that it may have."""

    links: tuple[tuple[str, str], ...]
    models: tuple[str, ...]
    source: str


CLOUDS = {
    "aws": Cloud((), ("Amazon Elastic Block Store",),
                 "github.com/amazonlinux/amazon-ec2-utils 70-ec2-nvme-devices.rules"),
    "gcp": Cloud((("/dev/disk/by-id", r"google-data(?:-.*)?"),), ("nvme_card-pd", "PersistentDisk"),
                 "github.com/GoogleCloudPlatform/guest-configs 65-gce-disk-naming.rules"),
    # The temporary disk has the model of a volume there: only the link tells them apart.
    "azure": Cloud((("/dev/disk/azure/scsi1", r"lun\d+"),
                    ("/dev/disk/azure/data/by-lun", r"\d+")), (),
                   "github.com/Azure/azure-vm-utils 80-azure-disk.rules"),
    "alibaba": Cloud((), ("Alibaba Cloud Elastic Block Storage",),
                     "NVMe model of an ESSD volume"),
}  # fmt: skip


class Volume(NamedTuple):
    """The volume: kernel name, bytes, and what names it to its owner."""

    name: str
    size: int
    known: str

    @property
    def device(self) -> str:
        return f"/dev/{self.name}"


def run(work: Work) -> StageResult:
    """The planned mount on the data volume; nothing that is on it is ever lost."""
    point = work.settings.text("data.mount") or "/data"
    volume = _volume(work, point)
    _free(work, point, volume)
    try:
        kind, uuid, made = _file_system(work, volume)
    except blocks.Unreadable as error:
        return inconclusive(
            f"the data volume cannot be read: {error}", "see the volume's state in the cloud"
        )
    # Longer than for scratch: what stands on it is why the machine exists.
    changed = filesystems.mount(work, fstab.Entry(uuid, point, kind, wait=30))
    grown = filesystems.grow(work, kind, volume.device, point)
    words = f"{point}: {kind} on {volume.known}, {volume.size / 2**30:.0f} GiB"
    words += ", new" if made else ", grown" if grown else ""
    return ok(f"{words}, by UUID {uuid}", changed or made or grown)


# --- which volume -------------------------------------------------------------------------------


def _volume(work: Work, point: str) -> Volume:
    """The data volume, waited for. Raises Halt where there is none, or more than one."""
    found: list[Volume] = []

    def absent() -> str | None:
        work.memory.pop("disks", None)
        found[:] = _candidates(work, point)
        return None if found else "no data volume is attached"

    trouble = work.wait(absent, STEP_SECONDS, min(LATE_SECONDS, work.left() - 60.0))
    if trouble:
        shown = ", ".join(f"{d.name} ({d.model or 'no model'})" for d in disks.all_disks(work))
        raise Halt(
            config(
                f"{trouble} after {LATE_SECONDS:.0f} s; disks: {shown or 'none'}",
                "attach the volume of `disk.data` to the machine, in the machine's own zone",
            )
        )
    return _one(work, found)


def _one(work: Work, found: list[Volume]) -> Volume:
    """The one that the plan means. Two that fit are not guessed between. Raises Halt."""
    gib = work.settings.number("data.gib")
    shown = ", ".join(f"{v.known} ({v.size / 2**30:.0f} GiB)" for v in found)
    if len(found) > 1:
        same = [v for v in found if gib and abs(v.size / 2**30 - gib) < GIB_ROOM]
        if len(same) != 1:
            raise Halt(
                config(
                    f"{len(found)} volumes may be the data volume: {shown}",
                    "leave one volume attached beside the root, or give it a size of its own",
                )
            )
        return same[0]
    if gib and found[0].size / 2**30 < gib - GIB_ROOM:
        raise Halt(
            config(
                f"the data volume is smaller than the planned {gib:.0f} GiB: {shown}",
                "see which volume is attached; the plan's has not been",
            )
        )
    return found[0]


def _candidates(work: Work, point: str) -> list[Volume]:
    """Volumes that are not the root's and that nothing but our own mount uses."""
    cloud = CLOUDS.get(work.settings.text("cloud") or "", CLOUDS["aws"])
    named = _linked(work, cloud)
    found = named or [
        Volume(disk.name, disk.size, f"{_serial(work, disk.name)}{disk.name}")
        for disk in disks.all_disks(work)
        if any(disk.model.startswith(model) for model in cloud.models)
    ]
    if not found and work.settings.text("cloud") == "aws":
        found = _xen(work)
    used = {
        name
        for mount in disks.mounts(work.host)
        if mount.point != point
        for name in disks.members(work.host, mount)
    }
    return [volume for volume in found if volume.name not in used]


def _linked(work: Work, cloud: Cloud) -> list[Volume]:
    found: dict[str, Volume] = {}
    for folder, pattern in cloud.links:
        for entry in work.host.names(folder):
            if re.match(rf"^(?:{pattern})$", entry) and not re.search(r"-part\d+$", entry):
                name = (work.host.link(f"{folder}/{entry}") or "").rsplit("/", 1)[-1]
                if name:
                    found.setdefault(name, Volume(name, blocks.size_of(work, name), entry))
    return list(found.values())


def _xen(work: Work) -> list[Volume]:
    """Older types (p3, g3) have no NVMe; there the name is the attachment's own: /dev/sdf, xvdf."""
    return [
        Volume(name, blocks.size_of(work, name), name)
        for name in work.host.names("/sys/block")
        if re.match(r"^xvd[a-z]+$", name)
    ]


def _serial(work: Work, name: str) -> str:
    """`vol-0123… as ` from the serial of an EBS volume, whose dash NVMe leaves out."""
    text = (work.host.read(f"/sys/block/{name}/device/serial") or "").strip()
    return f"{re.sub('^vol(?=[0-9a-f])', 'vol-', text)} as " if text else ""


def _free(work: Work, point: str, volume: Volume) -> None:
    """The mount point is the volume's, or nobody's: on another disk there, one that a stop wipes
    maybe, the data would be taken for kept. Raises Halt."""
    here = disks.at(disks.mounts(work.host), point)
    if here is not None and volume.name not in disks.members(work.host, here):
        raise Halt(
            config(
                f"{point} is already a mount, of {here.source}, and not of {volume.known}",
                "take that mount out of the image",
            )
        )


# --- what is on it ------------------------------------------------------------------------------


def _file_system(work: Work, volume: Volume) -> tuple[str, str, bool]:
    """Kind and UUID of the file system, and whether it was made now. Raises Halt, Unreadable."""
    parts = blocks.partitions(work, volume.name)
    look = blocks.look(work, volume.device)
    if parts or look.table:
        raise Halt(
            config(
                f"{volume.known} has a partition table: {', '.join(parts) or look.table}",
                "mount it yourself, or give us a volume with one file system on the whole of it",
            )
        )
    if look.blank:
        return _new(work, volume)
    if look.kind not in MOUNTABLE or not look.uuid:
        raise Halt(
            config(
                f"{volume.known} holds {look.words}, which is not mounted by itself",
                "nothing was touched; open it yourself, or attach another volume",
            )
        )
    return look.kind, look.uuid, False


def _new(work: Work, volume: Volume) -> tuple[str, str, bool]:
    """A file system on a volume that holds nothing anywhere. Raises Halt."""
    held = blocks.holders(work, volume.name)
    place = blocks.written_at(work, volume.device, volume.size)
    if held or place is not None:
        words = f"is held by {', '.join(held)}" if held else f"has data at byte {place}"
        raise Halt(
            config(
                f"{volume.known} has no file system but {words}",
                "nothing was touched; make a file system yourself if its content may go",
            )
        )
    kind = work.settings.text("data.filesystem") or "xfs"
    uuid = filesystems.make(work, volume.device, filesystems.New(kind, LABEL))
    blocks.settle(work)
    return kind, uuid, True
