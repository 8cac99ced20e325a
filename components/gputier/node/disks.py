"""Local NVMe disks and what is mounted where, from /sys and /proc.

Disks are told apart by model, never by name: names move between boots, and `nvme0n1` may be the
root volume. A disk whose model says network volume is never scratch.
"""

from __future__ import annotations

import re
import shlex
from typing import NamedTuple

from gputier.node.engine import Context
from gputier.node.host import Host

# Model strings of disks that are the host's own, and of volumes that come over the network.
LOCAL = (
    "Amazon EC2 NVMe Instance Storage",
    "nvme_card",
    "EphemeralDisk",
    "Microsoft NVMe Direct Disk",
)
REMOTE = (
    "Amazon Elastic Block Store",
    "nvme_card-pd",
    "PersistentDisk",
    "MSFT NVMe Accelerator",
    "Virtual_Disk",
    "Alibaba Cloud Elastic Block Storage",
)
SECTOR = 512
_DISK = re.compile(r"^(?:nvme\d+n\d+|sd[a-z]+)$")


class Disk(NamedTuple):
    """A whole disk: kernel name, model, size in bytes."""

    name: str
    model: str
    size: int

    @property
    def gib(self) -> float:
        return self.size / 2**30


class Mount(NamedTuple):
    point: str
    kind: str
    source: str
    number: str


def all_disks(ctx: Context) -> list[Disk]:
    """Every disk of /sys/block, else of lsblk."""
    return ctx.once("disks", lambda: _sysfs(ctx.host) or _lsblk(ctx))


def _sysfs(host: Host) -> list[Disk]:
    found: list[Disk] = []
    for name in host.names("/sys/block"):
        size = (host.read(f"/sys/block/{name}/size") or "").strip()
        if _DISK.match(name) and size.isdigit():
            model = (host.read(f"/sys/block/{name}/device/model") or "").strip()
            found.append(Disk(name, model, int(size) * SECTOR))
    return found


def _lsblk(ctx: Context) -> list[Disk]:
    done = ctx.run("lsblk", "-b", "-d", "-n", "-P", "-o", "NAME,SIZE,MODEL,TYPE", limit=10.0)
    found: list[Disk] = []
    for line in done.out.splitlines():
        values = dict(part.split("=", 1) for part in shlex.split(line) if "=" in part)
        if _DISK.match(values.get("NAME", "")) and values.get("SIZE", "").isdigit():
            found.append(Disk(values["NAME"], values.get("MODEL", ""), int(values["SIZE"])))
    return found


def local(ctx: Context) -> list[Disk]:
    """The machine's own NVMe disks: by model; an unknown model counts unless it holds the root."""
    disks = all_disks(ctx)
    known = [disk for disk in disks if is_local(disk.model)]
    if known:
        return known
    root = members(ctx.host, root_mount(mounts(ctx.host)))
    return [
        disk
        for disk in disks
        if disk.name.startswith("nvme") and not is_remote(disk.model) and disk.name not in root
    ]


def is_local(model: str) -> bool:
    return not is_remote(model) and any(model.startswith(name) for name in LOCAL)


def is_remote(model: str) -> bool:
    return any(model.startswith(name) for name in REMOTE)


def mounts(host: Host) -> list[Mount]:
    """What is mounted, in order of mounting: /proc/self/mountinfo, else /proc/mounts."""
    found: list[Mount] = []
    for line in (host.read("/proc/self/mountinfo") or "").splitlines():
        left, _, right = line.partition(" - ")
        head, tail = left.split(), right.split()
        if len(head) >= 5 and len(tail) >= 2:
            found.append(Mount(_plain(head[4]), tail[0], tail[1], head[2]))
    if found:
        return found
    for line in (host.read("/proc/mounts") or "").splitlines():
        cells = line.split()
        if len(cells) >= 3:
            found.append(Mount(_plain(cells[1]), cells[2], cells[0], ""))
    return found


def _plain(text: str) -> str:
    return re.sub(r"\\([0-7]{3})", lambda found: chr(int(found[1], 8)), text)


def at(found: list[Mount], point: str) -> Mount | None:
    """What is mounted exactly there (the last one wins), None for a plain folder."""
    wanted = point.rstrip("/") or "/"
    return next((mount for mount in reversed(found) if mount.point == wanted), None)


def root_mount(found: list[Mount]) -> Mount | None:
    return at(found, "/")


def members(host: Host, mount: Mount | None) -> set[str]:
    """The whole disks below a mount: through partitions, md arrays and device mapper."""
    if mount is None:
        return set()
    name = ""
    if mount.number:
        name = (host.link(f"/sys/dev/block/{mount.number}") or "").rsplit("/", 1)[-1]
    if not name and mount.source.startswith("/dev/"):
        target = host.link(mount.source) or mount.source
        name = target.rsplit("/", 1)[-1]
        if mount.source.startswith("/dev/mapper/") and not target.startswith(".."):
            name = _mapped(host, name) or name
    return _whole(host, name) if name else set()


def _mapped(host: Host, name: str) -> str | None:
    for block in host.names("/sys/block"):
        if (host.read(f"/sys/block/{block}/dm/name") or "").strip() == name:
            return block
    return None


def _whole(host: Host, name: str) -> set[str]:
    below = host.names(f"/sys/block/{name}/slaves")
    if below:
        return {disk for slave in below for disk in _whole(host, slave)}
    partition = re.match(r"^(nvme\d+n\d+)p\d+$", name) or re.match(r"^([a-z]d[a-z]+)\d+$", name)
    return {partition[1] if partition else name}
