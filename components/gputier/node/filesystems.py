"""File systems: made, mounted by UUID, grown. The one home of how, for scratch and for data."""

from __future__ import annotations

import re
import uuid
from typing import NamedTuple

from gputier.node import blocks, disks, fstab, having, units
from gputier.node.stages import Halt, Work, config

# What has to be installed for a command that an image may lack.
PACKAGES = {
    "mkfs.xfs": "xfsprogs",
    "xfs_growfs": "xfsprogs",
    "mkfs.ext4": "e2fsprogs",
    "resize2fs": "e2fsprogs",
    "mdadm": "mdadm",
}
MAKE_SECONDS = 120.0
# ext4 leaves out a last group that is too small (128 MiB), XFS a last part of 64 blocks.
SLACK_BYTES = 256 * blocks.MIB


class New(NamedTuple):
    """A file system to be made: its kind, its label, and whether a RAID is below it."""

    kind: str
    label: str
    striped: bool = False
    force: bool = False


def tool(work: Work, command: str) -> None:
    """Have a command, installed where the image lacks it. Raises Halt that names it."""
    having.command(work, command, PACKAGES[command])


def make(work: Work, device: str, new: New) -> str:
    """Make a file system; its UUID, chosen here so that nobody has to guess which one it is."""
    chosen = str(uuid.uuid4())
    command = f"mkfs.{new.kind}"
    tool(work, command)
    if new.kind == "xfs":
        # Local disks come trimmed and volumes are thin (-K); su=8b keeps mkfs from warning about
        # the stripe (github.com/awslabs/amazon-eks-ami setup-local-disks).
        options = ("-K", *(("-l", "su=8b") if new.striped else ()), "-m", f"uuid={chosen}")
        force = ("-f",) if new.force else ()
    else:
        options = ("-q", "-m", "0", "-E", "nodiscard", "-U", chosen)
        # A whole disk is no partition, and nobody is there to be asked.
        force = ("-F",)
    argv = (command, *force, *options, "-L", new.label, device)
    work.must(f"make {new.kind} on {device}", *argv, limit=MAKE_SECONDS)
    return chosen


def mount(work: Work, entry: fstab.Entry) -> bool:
    """Have it in fstab and mounted; whether anything had to be done. Raises Halt."""
    changed = listed(work, entry)
    if disks.at(disks.mounts(work.host), entry.point):
        return changed
    if changed:
        # systemd unmounts at once what an old line of fstab, with a device that is gone, put there
        # (github.com/systemd/systemd/issues/1741).
        units.reload(work)
    work.must(f"make {entry.point}", "mkdir", "-p", entry.point, limit=10.0)
    work.must(f"mount {entry.point}", "mount", entry.point, limit=120.0)
    # Data for a mount that did not happen goes to the root disk
    # (github.com/elastic/ansible-elastic-cloud-enterprise/issues/105).
    work.must(f"{entry.point} is a mount", "mountpoint", "-q", entry.point, limit=10.0)
    return True


def listed(work: Work, entry: fstab.Entry) -> bool:
    """Have the line in fstab; whether it had to be written. Raises Halt (config)."""
    content = work.host.read(fstab.PATH) or ""
    try:
        return work.put(fstab.PATH, fstab.with_entry(content, entry))
    except fstab.Taken as line:
        raise Halt(
            config(
                f"{entry.point} is claimed in {fstab.PATH} already: {line}",
                "take that line out of the image, or name another mount point",
            )
        ) from None


def size(work: Work, kind: str, device: str, point: str) -> int | None:
    """Bytes of a mounted file system, None when its tool does not tell."""
    if kind == "xfs":
        done = work.run("xfs_info", point, limit=20.0)
        found = re.search(r"^data\s+=.*?bsize=(\d+)\s+blocks=(\d+)", done.out, re.M)
    elif kind.startswith("ext"):
        done = work.run("dumpe2fs", "-h", device, limit=20.0)
        count = re.search(r"^Block count:\s+(\d+)", done.out, re.M)
        found = count and re.search(r"^Block size:\s+(\d+)", done.out, re.M)
        return int(count[1]) * int(found[1]) if count and found else None
    else:
        return None
    return int(found[1]) * int(found[2]) if found else None


def grow(work: Work, kind: str, device: str, point: str) -> bool:
    """Fill a volume that has become larger than its file system; whether it was grown."""
    name = device.rsplit("/", 1)[-1]
    have, room = size(work, kind, device, point), blocks.size_of(work, name)
    if have is None or room - have <= SLACK_BYTES:
        return False
    command = ("xfs_growfs", point) if kind == "xfs" else ("resize2fs", device)
    done = work.run(*command, limit=120.0)
    if not done.ok:
        # The data is there and usable: a smaller file system than the volume stops nobody.
        work.warnings.append(
            f"{point} was not grown to the {room / 2**30:.0f} GiB of its volume: "
            f"{command[0]}: {done.how}: {having.last(done)}"
        )
        return False
    return True
