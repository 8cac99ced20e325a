"""Scratch: the machine's own disks as one file system, made again when a stop wiped them.

What to do follows from what is on the disks now, never from a marker: the root disk outlives a
stop, the local disks do not (github.com/awslabs/amazon-eks-ami/pull/2755). A disk is taken by its
model, never by its name (github.com/projectatomic/container-storage-setup/issues/278), and never
with a signature that is not ours: the wrong disk wiped is worse than a node that does not start.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from gputier.node import blocks, disks, filesystems, fstab
from gputier.node.blocks import LABEL, Look
from gputier.node.stages import Halt, StageResult, Work, config, ok, replace

ARRAY = f"/dev/md/{LABEL}"
# A disk may appear after the machine is up; EBS-less types enumerate theirs in seconds.
LATE_SECONDS, STEP_SECONDS = 30.0, 3.0
# The Deep Learning AMI's own unit, which makes one volume of the disks and mounts it.
IMAGE_UNIT = "dlami-nvme.service"
IMAGE_SECONDS = 90.0
DAMAGED = re.compile(r"structure needs cleaning|bad superblock|wrong fs type, bad option", re.I)
WIPE = "wipe the disk yourself if its content may go, or take it out of the image"


class Target(NamedTuple):
    """The device that carries the file system; `fresh`: nothing on it is to be kept."""

    device: str
    fresh: bool
    words: str


def run(work: Work) -> StageResult:
    """The planned mount on the local disks, whatever state they are in."""
    point = work.settings.text("scratch.mount") or "/scratch"
    names = [disk.name for disk in _disks(work)]
    try:
        done = _mounted(work, names, point) or _image_mount(work, names, point)
        return done or _made(work, names, point)
    except blocks.Unreadable as error:
        return replace(f"a local disk cannot be read: {error}")


# --- which disks --------------------------------------------------------------------------------


def _disks(work: Work) -> list[disks.Disk]:
    """The machine's own disks, late ones waited for. Raises Halt."""
    wanted = work.settings.count("scratch.count")
    need = 1 if wanted is None else wanted

    def too_few() -> str | None:
        work.memory.pop("disks", None)
        found = disks.local(work)
        shown = ", ".join(f"{disk.name} ({disk.model or 'no model'})" for disk in found) or "none"
        return None if len(found) >= need else f"{len(found)} local disks of {need}: {shown}"

    if too_few():
        blocks.settle(work)
    trouble = work.wait(too_few, STEP_SECONDS, LATE_SECONDS)
    if trouble:
        raise Halt(replace(f"{trouble}, after {LATE_SECONDS:.0f} s"))
    found = disks.local(work)
    strange = [disk for disk in found if not disks.is_local(disk.model)]
    if strange:
        shown = ", ".join(f"{disk.name} ({disk.model or 'none'})" for disk in strange)
        raise Halt(
            config(
                f"not known to be the machine's own, by model: {shown}",
                "take `disk.scratch` out of the declaration, or tell us the model of these disks",
            )
        )
    return found


# --- mounted already ----------------------------------------------------------------------------


def _mounted(work: Work, names: list[str], point: str) -> StageResult | None:
    """What there is when the mount point is one already, None when it is not."""
    here = disks.at(disks.mounts(work.host), point)
    if here is None:
        return None
    below = disks.members(work.host, here) & set(names)
    if not below:
        raise Halt(
            config(
                f"{point} is already a mount, of {here.source}",
                "name another mount point, or take that mount out of the image",
            )
        )
    changed = False
    if here.source.startswith("/dev/"):
        look = blocks.look(work, here.source)
        if look.ours and look.uuid:
            changed = filesystems.listed(work, fstab.Entry(look.uuid, point, look.kind))
    return ok(f"{point}: {here.kind} on {', '.join(sorted(below))}", changed)


def _image_mount(work: Work, names: list[str], point: str) -> StageResult | None:
    """The image made one volume of the disks itself: it is used where it is, and not fought."""
    if _image_makes(work):
        work.wait(
            lambda: None if _covering(work, names) or not _image_makes(work) else IMAGE_UNIT,
            STEP_SECONDS,
            IMAGE_SECONDS,
        )
    other = _covering(work, names)
    if other is None:
        return None
    work.must(f"make {point}", "mkdir", "-p", point, limit=10.0)
    work.must(f"bind {other.point}", "mount", "--bind", other.point, point, limit=30.0)
    return ok(f"{point}: {other.point} of the image, {other.kind} on {', '.join(names)}", True)


def _covering(work: Work, names: list[str]) -> disks.Mount | None:
    """A mount that lies on all of the disks, the root's excepted."""
    return next(
        (
            mount
            for mount in disks.mounts(work.host)
            if mount.point != "/" and set(names) <= disks.members(work.host, mount)
        ),
        None,
    )


def _image_makes(work: Work) -> bool:
    """Whether the image's own unit is still about to mount the disks."""
    asked = "LoadState,ActiveState,UnitFileState,ExecMainExitTimestampMonotonic"
    done = work.run("systemctl", "show", "-p", asked, IMAGE_UNIT, limit=10.0)
    says = dict(line.split("=", 1) for line in done.out.splitlines() if "=" in line)
    if says.get("LoadState") != "loaded" or says.get("UnitFileState") in ("disabled", "masked"):
        return False
    ended = says.get("ExecMainExitTimestampMonotonic", "0") not in ("", "0")
    return says.get("ActiveState") in ("activating", "inactive") and not ended


# --- made ---------------------------------------------------------------------------------------


def _made(work: Work, names: list[str], point: str) -> StageResult:
    _unused(work, names)
    target = _single(work, names[0]) if len(names) == 1 else _striped(work, names)
    look = Look() if target.fresh else blocks.look(work, target.device)
    if not (look.blank or look.ours):
        raise Halt(config(f"on our own array there is {look.words}, which is not ours", WIPE))
    words, kind, uuid = target.words, look.kind, look.uuid
    if look.blank:
        kind = work.settings.text("scratch.filesystem") or "xfs"
        new = filesystems.New(kind, LABEL, striped=len(names) > 1, force=target.fresh)
        uuid = filesystems.make(work, target.device, new)
        blocks.settle(work)
        words = f"new {kind} on {words}"
    try:
        filesystems.mount(work, fstab.Entry(uuid, point, kind))
    except Halt as halt:
        if not DAMAGED.search(halt.result.evidence):
            raise
        # It may hold what somebody still wants; another machine starts with blank disks.
        return replace(f"our file system of an earlier boot is damaged: {halt.result.evidence}")
    if look.blank:
        work.must("let every user write there", "chmod", "1777", point, limit=10.0)
    return ok(f"{point}: {words}, by UUID {uuid}", True)


def _unused(work: Work, names: list[str]) -> None:
    """No partition, nothing of theirs mounted elsewhere, no holder but an array. Raises Halt."""
    busy = {name for mount in disks.mounts(work.host) for name in disks.members(work.host, mount)}
    for name in names:
        if name in busy:
            raise Halt(config(f"/dev/{name} is in use by a mount", WIPE))
        parts = blocks.partitions(work, name)
        if parts:
            raise Halt(config(f"/dev/{name} has partitions: {', '.join(parts)}", WIPE))
        held = [one for one in blocks.holders(work, name) if not one.startswith("md")]
        if held:
            raise Halt(config(f"/dev/{name} is held by {', '.join(held)}", WIPE))


def _single(work: Work, name: str) -> Target:
    look = blocks.look(work, f"/dev/{name}")
    if not (look.blank or look.ours):
        raise Halt(config(f"a signature that is not ours on /dev/{name}: {look.words}", WIPE))
    # A member of an array of ours that is now alone holds nothing that can be read.
    fresh = look.kind == "linux_raid_member"
    return Target(f"/dev/{name}", fresh, f"one disk, {name}")


def _striped(work: Work, names: list[str]) -> Target:
    """Our array of these disks: as it runs, assembled again, or made anew."""
    devices = [f"/dev/{name}" for name in names]
    looks = {device: blocks.look(work, device) for device in devices}
    foreign = [f"{d} ({look.words})" for d, look in looks.items() if not (look.blank or look.ours)]
    if foreign:
        raise Halt(config(f"a signature that is not ours on {', '.join(foreign)}", WIPE))
    words = f"RAID 0 of {len(names)} disks"
    filesystems.tool(work, "mdadm")
    ours = [d for d, look in looks.items() if look.kind == "linux_raid_member"]
    if len(ours) == len(devices):
        running = _array(work, names)
        if running is None and _assembled(work, devices):
            running = _array(work, names) or ARRAY
        if running:
            return Target(running, False, words)
    # A stripe without one of its disks has lost everything: stopped, wiped, or cut off while it
    # was being made. All that is left on these disks is ours.
    _stop_parts(work, names)
    work.must(
        f"make {words}", "mdadm", "--create", ARRAY, "--run", "--level=0",
        f"--raid-devices={len(devices)}", "--homehost=any", f"--name={LABEL}", *devices,
    )  # fmt: skip
    blocks.settle(work)
    return Target(_array(work, names) or ARRAY, True, words)


def _array(work: Work, names: list[str]) -> str | None:
    """The device of the running array of exactly these disks; its number is never the same."""
    for block in work.host.names("/sys/block"):
        slaves = set(work.host.names(f"/sys/block/{block}/slaves"))
        size = (work.host.read(f"/sys/block/{block}/size") or "0").strip()
        if block.startswith("md") and slaves == set(names) and size != "0":
            return f"/dev/{block}"
    return None


def _assembled(work: Work, devices: list[str]) -> bool:
    _stop_parts(work, [device.rsplit("/", 1)[-1] for device in devices])
    done = work.run("mdadm", "--assemble", ARRAY, *devices, limit=60.0)
    if done.ok:
        blocks.settle(work)
    return done.ok


def _stop_parts(work: Work, names: list[str]) -> None:
    """Stop what udev began to assemble of some of the disks; it would hold them."""
    for block in work.host.names("/sys/block"):
        slaves = set(work.host.names(f"/sys/block/{block}/slaves"))
        if block.startswith("md") and slaves and slaves <= set(names):
            work.must(f"stop {block}", "mdadm", "--stop", f"/dev/{block}", limit=60.0)
