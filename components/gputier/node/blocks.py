"""What is on a block device, by looking at it: signatures, zeros, whose it is.

A disk may be written to when it is known to be blank or known to be ours. One that cannot be read
is neither.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from gputier.node.engine import Context

# Names our arrays and file systems, so that they are known again: at most 12 letters for XFS.
LABEL = "gputier"
SECTOR = 512
MIB = 1024 * 1024
# No such disk: what is to be done with it then fails by itself, and writes nothing.
ABSENT = "No such file or directory"
# How many places of a volume are read before it counts as blank, one MiB each.
SAMPLES = 64
SETTLE_SECONDS = 20.0


class Unreadable(Exception):
    """A device could not be looked at; the message says how."""


class Look(NamedTuple):
    """What blkid sees on a device; all empty on a blank one."""

    kind: str = ""
    label: str = ""
    table: str = ""
    uuid: str = ""

    @property
    def blank(self) -> bool:
        return not (self.kind or self.table)

    @property
    def ours(self) -> bool:
        """An array's name has its host in front: `any:gputier`."""
        name = self.label.rsplit(":", 1)[-1]
        return self.kind in ("linux_raid_member", "xfs", "ext4") and name == LABEL

    @property
    def words(self) -> str:
        kind = self.kind or f"{self.table} partition table"
        return "blank" if self.blank else f"{kind} {self.label}".strip()


def look(ctx: Context, device: str) -> Look:
    """What blkid finds on the device itself, its cache not asked. Raises Unreadable."""
    done = ctx.run("blkid", "-p", "-o", "export", device, limit=20.0)
    if done.state == "exited" and done.rc == 2 and not done.text.strip():
        # blkid ends with 2 both for a blank disk and for one that it cannot read.
        read = ctx.run("dd", f"if={device}", "of=/dev/null", "bs=4096", "count=1", limit=20.0)
        if not read.ok and ABSENT not in read.text:
            raise Unreadable(f"{device}: dd: {read.how}: {read.says()}")
        return Look()
    if not done.ok:
        raise Unreadable(f"{device}: blkid: {done.how}: {done.says()}")
    values = {
        key: re.sub(r"\\(.)", r"\1", value)
        for key, _, value in (line.partition("=") for line in done.out.splitlines())
    }
    return Look(
        values.get("TYPE", ""),
        values.get("LABEL", ""),
        values.get("PTTYPE", ""),
        values.get("UUID", ""),
    )


def written_at(ctx: Context, device: str, size: int) -> int | None:
    """Where a device that has no signature holds data all the same, bytes; None when nowhere.

    A database on the raw device has none. Its beginning, its end and places between are read.
    Raises Unreadable.
    """
    if size < MIB:
        raise Unreadable(f"{device}: its size is not told")
    blocks = size // MIB
    places = sorted({blocks * n // SAMPLES for n in range(SAMPLES)} | {blocks - 1})
    for place in places:
        options = ("bs=1M", "count=1", f"skip={place}", "status=none")
        done = ctx.run("dd", f"if={device}", *options, limit=30.0)
        if not done.ok or not done.out:
            raise Unreadable(f"{device} at {place} MiB: {done.how}: {done.err.strip() or 'empty'}")
        if done.out.strip("\0"):
            return place * MIB
    return None


def size_of(ctx: Context, name: str) -> int:
    """Bytes of a block device by its kernel name, 0 when it tells none."""
    text = (ctx.host.read(f"/sys/class/block/{name}/size") or "").strip()
    if not text:
        text = (ctx.host.read(f"/sys/block/{name}/size") or "").strip()
    return int(text) * SECTOR if text.isdigit() else 0


def settle(ctx: Context) -> None:
    """Let udev finish with devices that came or changed; where there is none, nobody has to."""
    ctx.run("udevadm", "settle", f"--timeout={SETTLE_SECONDS:.0f}", limit=SETTLE_SECONDS + 5)


def partitions(ctx: Context, name: str) -> tuple[str, ...]:
    """The partitions of a disk, by kernel name."""
    pattern = re.compile(rf"^{re.escape(name)}p?\d+$")
    return tuple(part for part in ctx.host.names(f"/sys/block/{name}") if pattern.match(part))


def holders(ctx: Context, name: str) -> tuple[str, ...]:
    """What is built on a disk: arrays, device mapper."""
    return ctx.host.names(f"/sys/block/{name}/holders")
