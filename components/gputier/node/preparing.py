"""Makes the machine what the plan says: scratch array and mount, MIG layout, limits, persistence.

Disks are taken by model, and never one that carries a signature which is not ours: the wrong disk
wiped is worse than a node that does not start. Safe to run at every boot: what is there is kept,
what a stop wiped is made again, by what is on the disks and not by a marker.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from gputier.node import disks, smi
from gputier.node.engine import Context

LABEL = "gputier"
ARRAY = f"/dev/md/{LABEL}"
LIMITS = "/etc/security/limits.d/99-gputier.conf"
LIMITS_TEXT = "* - memlock unlimited\n* - nofile 1048576\nroot - memlock unlimited\n"
FSTAB = "/etc/fstab"
# Who holds a GPU while its MIG mode should change (github.com/NVIDIA/mig-parted/issues/181).
HOLDERS = ("nvidia-dcgm", "dcgm-exporter", "nvidia-persistenced")

# No such disk: what is to be done with it then fails by itself, and writes nothing.
ABSENT = "No such file or directory"


class Refused(Exception):
    """Going on could destroy something; the message says what is in the way."""


class Step(NamedTuple):
    """One thing to do: a command, or a file to write."""

    words: str
    argv: tuple[str, ...] = ()
    path: str = ""
    text: str = ""
    limit: float = 120.0
    optional: bool = False


class Prepared(NamedTuple):
    """What was done (or would be), what failed, and whether a reboot is needed."""

    steps: tuple[Step, ...]
    failed: tuple[str, ...]
    reboot: bool


class Signature(NamedTuple):
    """What blkid sees on a disk; all empty on a blank one."""

    kind: str
    label: str
    table: str

    @property
    def blank(self) -> bool:
        return not (self.kind or self.table)

    @property
    def ours(self) -> bool:
        name = self.label.rsplit(":", 1)[-1]
        return self.kind in ("linux_raid_member", "xfs") and name == LABEL


def prepare(ctx: Context, dry: bool) -> Prepared:
    """Every step in order; stops at the first that fails. Raises Refused."""
    done: list[Step] = []
    failed: list[str] = []
    makers: tuple[Callable[[Context], list[Step]], ...] = (limits, persistence, scratch, mig)
    for make in makers:
        for step in make(ctx):
            done.append(step)
            trouble = None if dry else perform(ctx, step)
            if trouble and not step.optional:
                failed.append(trouble)
                return Prepared(tuple(done), tuple(failed), False)
    pending = not dry and bool(ctx.expect.text("gpu.mig.profile")) and mig_pending(ctx)
    return Prepared(tuple(done), tuple(failed), pending)


def perform(ctx: Context, step: Step) -> str | None:
    """Do one step; what went wrong in words, None when nothing did."""
    if step.argv:
        done = ctx.run(*step.argv, limit=step.limit)
        return None if done.ok else f"{step.words}: {done.how}: {done.says()}"
    try:
        ctx.host.write(step.path, step.text)
    except OSError as error:
        return f"{step.words}: {error}"
    return None


# --- limits, persistence ------------------------------------------------------------------------


def limits(ctx: Context) -> list[Step]:
    """Locked memory without limit, where a fabric pins it."""
    if not ctx.expect.fabric or ctx.host.read(LIMITS) == LIMITS_TEXT:
        return []
    return [Step("lift the limit of locked memory", path=LIMITS, text=LIMITS_TEXT)]


def persistence(_: Context) -> list[Step]:
    """Persistence mode on; a driver without it is no reason to stop."""
    return [Step("persistence mode on", (smi.SMI, "-pm", "1"), optional=True)]


# --- disks --------------------------------------------------------------------------------------


def scratch(ctx: Context) -> list[Step]:
    """The steps that lead to the planned mount from what is on the disks now. Raises Refused."""
    point, wanted = ctx.expect.text("scratch.mount"), ctx.expect.count("scratch.count")
    if not point or wanted == 0:
        return []
    found = disks.local(ctx)
    names = [disk.name for disk in found]
    if wanted is not None and len(found) < wanted:
        raise Refused(f"{len(found)} local disks instead of {wanted}: {', '.join(names) or 'none'}")
    if not found:
        raise Refused("no local disk to be seen")
    strange = [disk for disk in found if not disks.is_local(disk.model)]
    if strange:
        shown = ", ".join(f"{disk.name} ({disk.model or 'none'})" for disk in strange)
        raise Refused(f"not known to be the machine's own, by model: {shown}")
    mounts = disks.mounts(ctx.host)
    here = disks.at(mounts, point)
    if here and disks.members(ctx.host, here) & set(names):
        return []
    if here:
        raise Refused(f"{point} is already a mount, of {here.source}")
    other = next(
        (m for m in mounts if set(names) <= disks.members(ctx.host, m) and m.point != "/"), None
    )
    if other:
        # The image made an array of them itself (DLAMI: /opt/dlami/nvme); it is used as it is.
        return [
            _folder(point),
            Step(f"bind {other.point}", ("mount", "--bind", other.point, point)),
        ]
    _unused(ctx, names, mounts)
    return _make(ctx, names, point)


def _folder(point: str) -> Step:
    return Step(f"make {point}", ("mkdir", "-p", point))


def _unused(ctx: Context, names: list[str], mounts: list[disks.Mount]) -> None:
    """No partition, no holder, nothing mounted from any of them. Raises Refused."""
    busy = {name for mount in mounts for name in disks.members(ctx.host, mount)}
    for name in names:
        if name in busy:
            raise Refused(f"/dev/{name} is in use by a mount")
        if any(part.startswith(f"{name}p") for part in ctx.host.names(f"/sys/block/{name}")):
            raise Refused(f"/dev/{name} has partitions")


def _make(ctx: Context, names: list[str], point: str) -> list[Step]:
    devices = tuple(f"/dev/{name}" for name in names)
    signs = {device: signature(ctx, device) for device in devices}
    foreign = [device for device, sign in signs.items() if not (sign.blank or sign.ours)]
    if foreign:
        words = ", ".join(f"{d} ({signs[d].kind or signs[d].table})" for d in foreign)
        raise Refused(f"a signature that is not ours on {words}; wipe it yourself if it may go")
    mixed = {sign.blank for sign in signs.values()}
    if len(mixed) > 1:
        raise Refused(
            f"some of {', '.join(devices)} are ours and some are blank: an array is broken"
        )
    new, target = mixed == {True}, devices[0] if len(devices) == 1 else ARRAY
    steps: list[Step] = []
    if len(devices) > 1:
        steps.append(_create(devices) if new else _assemble(ctx, devices))
    if new:
        # Disks come trimmed (-K), and su=8b keeps mkfs from warning about the stripe.
        log = ("-l", "su=8b") if len(devices) > 1 else ()
        argv = ("mkfs.xfs", "-K", *log, "-L", LABEL, target)
        steps.append(Step(f"make XFS on {target}", argv))
    return [*(step for step in steps if step.words), *_mount(ctx, point)]


def _create(devices: tuple[str, ...]) -> Step:
    argv = ("mdadm", "--create", ARRAY, "--run", "--level=0", f"--raid-devices={len(devices)}",
            "--homehost=any", f"--name={LABEL}", *devices)  # fmt: skip
    return Step(f"make RAID 0 of {len(devices)} disks", argv)


def _assemble(ctx: Context, devices: tuple[str, ...]) -> Step:
    names = {device.rsplit("/", 1)[-1] for device in devices}
    for block in ctx.host.names("/sys/block"):
        if block.startswith("md") and names <= set(ctx.host.names(f"/sys/block/{block}/slaves")):
            return Step("")
    return Step("assemble the array again", ("mdadm", "--assemble", ARRAY, *devices))


def _mount(ctx: Context, point: str) -> list[Step]:
    """By label, never by md number, and without holding up a boot that lost the disks."""
    line = f"LABEL={LABEL} {point} xfs defaults,noatime,nofail,x-systemd.device-timeout=10s 0 0\n"
    text = ctx.host.read(FSTAB) or ""
    kept = "".join(
        row for row in text.splitlines(keepends=True) if not row.startswith(f"LABEL={LABEL} ")
    )
    kept += "" if kept.endswith("\n") or not kept else "\n"
    steps = [_folder(point)]
    if kept + line != text:
        steps.append(Step(f"{point} in fstab", path=FSTAB, text=kept + line))
    return [*steps, Step(f"mount {point}", ("mount", point))]


def signature(ctx: Context, device: str) -> Signature:
    """What blkid finds by looking at the disk itself. Raises Refused when it cannot look."""
    done = ctx.run("blkid", "-p", "-o", "export", device, limit=20.0)
    if done.state == "exited" and done.rc == 2 and not done.text.strip():
        # blkid ends with 2 both for a blank disk and for one that it cannot read.
        read = ctx.run("dd", f"if={device}", "of=/dev/null", "bs=4096", "count=1", limit=20.0)
        if not read.ok and read.state != "missing" and ABSENT not in read.text:
            raise Refused(f"{device} cannot be read: {read.how}: {read.says()}")
        return Signature("", "", "")
    if not done.ok:
        raise Refused(f"blkid {device}: {done.how}: {done.says()}")
    values = dict(line.split("=", 1) for line in done.out.splitlines() if "=" in line)
    return Signature(values.get("TYPE", ""), values.get("LABEL", ""), values.get("PTTYPE", ""))


# --- MIG ----------------------------------------------------------------------------------------


def mig(ctx: Context) -> list[Step]:
    """MIG mode and instances per GPU; nothing where the layout is there already."""
    profile, wanted = ctx.expect.text("gpu.mig.profile"), ctx.expect.count("gpu.mig.count") or 1
    if not profile:
        return []
    listed = {gpu.number: [name for name, _ in gpu.mig] for gpu in smi.gpus(ctx)}
    modes = {
        int(row["index"]): smi.yes(row.get("mig.mode.current"))
        for row in smi.query(ctx, ("index", "mig.mode.current"))
    }
    steps: list[Step] = []
    if not all(modes.values()):
        steps += [
            Step(f"stop {name}", ("systemctl", "stop", name), optional=True) for name in HOLDERS
        ]
        steps.append(Step("unload nvidia_drm", ("modprobe", "-r", "nvidia_drm"), optional=True))
    for index, on in modes.items():
        gpu = ("-i", str(index))
        if not on:
            steps.append(Step(f"MIG on, GPU {index}", (smi.SMI, *gpu, "-mig", "1")))
        if listed.get(index, []) == [profile] * wanted:
            continue
        if listed.get(index):
            steps.append(
                Step(f"old instances, GPU {index}", (smi.SMI, "mig", *gpu, "-dci"), optional=True)
            )
            steps.append(Step(f"old instances, GPU {index}", (smi.SMI, "mig", *gpu, "-dgi")))
        layout = ",".join([profile] * wanted)
        argv = (smi.SMI, "mig", *gpu, "-cgi", layout, "-C")
        # Where the mode waits for a reset this fails, and the run after the reboot makes it.
        steps.append(Step(f"{wanted} × {profile}, GPU {index}", argv, optional=not on))
    return steps


def mig_pending(ctx: Context) -> bool:
    """Whether a GPU's MIG mode waits for a reset."""
    ctx.memory.clear()
    rows = smi.query(ctx, ("index", "mig.mode.current", "mig.mode.pending"))
    return any(row.get("mig.mode.current") != row.get("mig.mode.pending") for row in rows)
