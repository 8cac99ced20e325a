"""Reboots are counted across boots: the second one that is asked for becomes a replacement.

Those that preparation needs (a driver, a MIG mode) have a count and a limit of their own: a machine
that was rebooted for its driver may still be rebooted once for its health.

The count lies in /var/lib on the root volume, bound to this instance: an image baked from a used
machine starts at zero, a healthy verdict sets it back, and two runs in one boot count once. It is
never kept on a disk that a stop or a host change wipes.
"""

from __future__ import annotations

import json
import re
from typing import Any, NamedTuple

from gputier.node import disks, plain
from gputier.node.engine import Context, Verdict
from gputier.node.host import Host
from gputier.node.result import HEALTHY, REBOOT, REPLACE

FILE = "/var/lib/gputier/boots.json"
BOOT_ID = "/proc/sys/kernel/random/boot_id"
VOLATILE = ("tmpfs", "ramfs")
KEPT = 16


class Boots(NamedTuple):
    """This boot, and the earlier boots of this instance that asked for a reboot."""

    now: str | None
    machine: str
    asked: tuple[str, ...]
    prepared: tuple[str, ...] = ()

    @property
    def earlier(self) -> tuple[str, ...]:
        return tuple(boot for boot in self.asked if boot != self.now)


def boot_id(host: Host) -> str | None:
    """What tells this boot from the last; the boot time where there is no id."""
    text = (host.read(BOOT_ID) or "").strip()
    if text:
        return text
    found = re.search(r"^btime (\d+)$", host.read("/proc/stat") or "", re.M)
    return f"btime-{found[1]}" if found else None


def machine_id(host: Host) -> str:
    """What tells this instance from another made of the same image."""
    for path in (
        "/var/lib/cloud/data/instance-id",
        "/sys/class/dmi/id/product_uuid",
        "/etc/machine-id",
    ):
        text = (host.read(path) or "").strip()
        if text:
            return text
    return "unknown"


def read(host: Host) -> Boots:
    """The count so far; another instance's does not count, nor what cannot be read."""
    machine = machine_id(host)
    try:
        data = plain.mapping(json.loads(host.read(FILE) or "{}")) or {}
    except ValueError:
        data = {}
    if data.get("machine") != machine:
        data = {}
    asked, prepared = (
        tuple(str(boot) for boot in plain.sequence(data.get(key)) or ())
        for key in ("asked", "prepared")
    )
    return Boots(boot_id(host), machine, asked, prepared)


def prepare(ctx: Context, allowed: int) -> str | None:
    """Count a reboot that preparation needs; why it may not be, None when it may.

    A reboot that cannot be counted is not done: it could be the first of very many.
    """
    found = read(ctx.host)
    before = len([boot for boot in found.prepared if boot != found.now])
    if before >= allowed:
        return f"{before} of {allowed} reboot(s) for preparation are used up"
    if found.now is None:
        return "this boot cannot be told from the next, so the reboot cannot be counted"
    if found.now not in found.prepared:
        found = found._replace(prepared=(*found.prepared, found.now)[-KEPT:])
    return next(iter(_write(ctx, found)), None)


def arrived(ctx: Context) -> None:
    """The node has its verdict: what it is rebooted for from now on is counted from zero."""
    found = read(ctx.host)
    if found.prepared:
        _write(ctx, found._replace(prepared=()))


def settle(ctx: Context, verdict: Verdict, keep: bool = True) -> Verdict:
    """The verdict with the second reboot turned into a replacement, and the count written."""
    found = read(ctx.host)
    warnings = list(verdict.warnings)
    if verdict.outcome == REBOOT:
        if found.earlier:
            verdict = _replaced(verdict, len(found.earlier))
        if found.now is None:
            warnings.append("this boot cannot be told from the next: the reboot is not counted")
        elif found.now not in found.asked:
            found = found._replace(asked=(*found.asked, found.now)[-KEPT:])
    elif verdict.outcome == HEALTHY:
        found = found._replace(asked=())
    if keep:
        warnings += _write(ctx, found)
    return verdict._replace(warnings=tuple(warnings))


def _replaced(verdict: Verdict, before: int) -> Verdict:
    results = tuple(
        result._replace(
            outcome=REPLACE,
            evidence=f"{result.evidence} (a reboot was asked for in {before} earlier boot(s))",
            remedy="a reboot did not help: give the machine back",
        )
        if result.counts and result.outcome == REBOOT
        else result
        for result in verdict.results
    )
    return verdict._replace(outcome=REPLACE, results=results)


def _write(ctx: Context, found: Boots) -> list[str]:
    why = _volatile(ctx)
    counted = found.asked or found.prepared
    if why and counted:
        return [f"reboots cannot be counted: {why}"]
    if not counted and ctx.host.read(FILE) is None:
        return []
    data: dict[str, Any] = {"machine": found.machine, "asked": list(found.asked)}
    if found.prepared:
        data["prepared"] = list(found.prepared)
    text = json.dumps(data) + "\n"
    try:
        ctx.host.write(FILE, text)
    except OSError as error:
        return [f"reboots cannot be counted: {FILE}: {error}"]
    return []


def _volatile(ctx: Context) -> str | None:
    """Why what is written now may be gone after a boot, None when it stays."""
    mounts = disks.mounts(ctx.host)
    folder = FILE.rsplit("/", 1)[0]
    under = [m for m in mounts if (folder + "/").startswith(m.point.rstrip("/") + "/")]
    if not under:
        return None
    mount = max(enumerate(under), key=lambda pair: (len(pair[1].point), pair[0]))[1]
    if mount.kind in VOLATILE:
        return f"{mount.point} is {mount.kind}"
    local = {disk.name for disk in disks.local(ctx) if disks.is_local(disk.model)}
    if disks.members(ctx.host, mount) & local:
        return f"{mount.point} is on a local disk, which a stop wipes"
    return None
