"""Volumes of one machine and what they cost a month.

AWS volumes are gp3: 3,000 IOPS and 125 MB/s are in the price, more is billed. What GCP volumes are
follows from what the family boots from, and from the speed (`disks_gcp`).
"""

from __future__ import annotations

from collections.abc import Iterator
from math import ceil
from typing import NamedTuple

from gputier.catalog import Catalog
from gputier.catalog.disks import Most
from gputier.errors import Problem
from gputier.plan.disks_gcp import (
    ROOT_GIB,
    best_of,
    disk_problems,
    kind_of,
    parts_of,
    settings_of,
)
from gputier.plan.machine import Machine
from gputier.plan.need import Need, scales
from gputier.plan.reasons import bound
from gputier.plan.rules_machine import disk_speeds
from gputier.units import HOURS_PER_MONTH
from gputier.workload.declare import PRODUCTION

GP3_FREE_IOPS, GP3_FREE_MB_S = 3000, 125
#: gp3 is 65,536 GiB at most (EC2 API 2016-11-15, CreateVolume); 500 IOPS per GiB, and a quarter of
#: a MiB/s per IOPS (EBS user guide, General Purpose SSD volumes).
GP3_GIB = 65_536
GP3_IOPS_PER_GIB, GP3_IOPS_PER_MB_S = 500, 4
#: Root device by the image's family (AWS): a volume under another name is a second disk.
ROOT_DEVICES = {"amazon-linux": "/dev/xvda"}
ROOT_DEVICE, DATA_DEVICE = "/dev/sda1", "/dev/sdf"
#: `disk.kms_key` that asks for a key to be made.
CREATE = "create"
#: Purposes that keep a lone machine's data volume while it is stopped.
KEEPS_DATA = frozenset({"development", "vdi"})


class Volume(NamedTuple):
    """A volume of one machine, always encrypted. `iops` and `throughput_mb_s` (MiB/s) are what it
    is set to, None where the kind has no such settings. `stays`: it outlives its machine.
    `protected`: as a resource of its own it is deleted only once somebody says so twice."""

    kind: str
    gib: int
    iops: int | None
    throughput_mb_s: int | None
    device: str
    snapshot: str | None
    stays: bool
    protected: bool = False


class KeyPlan(NamedTuple):
    """The key that encrypts: `id` of one's own, or one to `create`. `grant`: the service that
    launches a group's machines must be allowed to use it, or they vanish as they start."""

    id: str | None
    create: bool
    grant: bool


class StoragePlan(NamedTuple):
    """Disks of one machine. `throughput_mb_s` and `iops` are what the data volume is set to;
    `usd_per_month` is for all machines, None when a price is unknown."""

    root_gib: float
    data_gib: float
    kind: str
    throughput_mb_s: float | None
    iops: int | None
    scratch_gib: float | None
    attached_ssds: int
    persist: bool
    usd_per_month: float | None
    borrowed: bool
    root: Volume
    data: Volume | None
    key: KeyPlan | None
    notes: tuple[str, ...]


class Site(NamedTuple):
    """Where volumes are: of which machine, in which region, under which system, in which shape."""

    machine: Machine
    region: str
    os: str
    shape: str


def plan_storage(
    catalog: Catalog, need: Need, site: Site, running: tuple[int, float]
) -> StoragePlan:
    """Volumes for `running` = (machines, hours a month each)."""
    machine, region = site.machine, site.region
    disk = need.workload.disk
    alone = not scales(need.workload) and machine.nodes == 1 and need.purpose in KEEPS_DATA
    persist = alone if disk.persist is None else disk.persist
    speed = _volume_speed(catalog, need, machine)
    volumes = _volumes(catalog, need, site, (alone, persist))
    machines, hours = running
    total, borrowed = 0.0, False
    known = True
    for volume in volumes:
        usd, lent = _volume_price(catalog, machine, region, volume)
        known, borrowed = known and usd is not None, borrowed or lent
        # What stays is paid for while no machine runs; the rest comes and goes with its machine.
        total += machines * (usd or 0.0) * (1.0 if volume.stays else hours / HOURS_PER_MONTH)
    key, key_usd, key_lent = _key(catalog, need, site)
    return StoragePlan(
        ROOT_GIB,
        disk.data or 0.0,
        volumes[0].kind,
        speed,
        disk.iops,
        machine.scratch_gib,
        machine.ssd_count,
        persist,
        None if not known or key_usd is None else total + key_usd,
        borrowed or key_lent,
        volumes[0],
        volumes[1] if len(volumes) > 1 else None,
        key,
        tuple(_notes(volumes, site, key)),
    )


def _volumes(
    catalog: Catalog, need: Need, site: Site, stay: tuple[bool, bool]
) -> tuple[Volume, ...]:
    """The root volume, and the data volume where one is asked for. Without one it is the root
    volume that gives the speed a machine was taken for."""
    disk, (alone, persist) = need.workload.disk, stay
    wanted = Most(_volume_speed(catalog, need, site.machine) or 0.0, disk.iops or 0.0)
    root_gib, none = ceil(ROOT_GIB), Most(0.0, 0.0)
    of_root = none if disk.data else wanted
    device = next((d for os, d in ROOT_DEVICES.items() if site.os.startswith(os)), ROOT_DEVICE)
    kind = _kind(catalog, site.machine, root_gib, of_root)
    root = Volume(kind, root_gib, *_settings(catalog, kind, of_root), device, None, alone)
    if not disk.data:
        return (root,)
    kept = need.environment in PRODUCTION
    gib = ceil(disk.data)
    kind = _kind(catalog, site.machine, gib, wanted)
    fast = _settings(catalog, kind, wanted)
    data = Volume(kind, gib, *fast, DATA_DEVICE, disk.snapshot, persist, kept)
    return root, data


def _settings(catalog: Catalog, kind: str, wanted: Most) -> tuple[int | None, int | None]:
    """IOPS and MB/s that a volume is set to: what is in the price is the least."""
    if kind != "gp3":
        return settings_of(catalog, kind, wanted)
    throughput = max(GP3_FREE_MB_S, ceil(wanted.throughput))
    return max(GP3_FREE_IOPS, ceil(wanted.iops), GP3_IOPS_PER_MB_S * throughput), throughput


def _key(catalog: Catalog, need: Need, site: Site) -> tuple[KeyPlan | None, float | None, bool]:
    """One's own key, its cost a month (None: not known) and whether that is borrowed."""
    asked = need.workload.disk.kms_key
    if asked is None:
        return None, 0.0, False
    grant = site.machine.type.cloud == "aws" and site.shape == "group"
    if asked != CREATE:
        return KeyPlan(asked, False, grant), 0.0, False
    price = catalog.item(site.machine.type.cloud, "kms-key-month", site.region)
    usd = None if price is None else price.usd
    return KeyPlan(None, True, grant), usd, bool(price and price.borrowed)


def _notes(volumes: tuple[Volume, ...], site: Site, key: KeyPlan | None) -> Iterator[str]:
    data = volumes[1] if len(volumes) > 1 else None
    if data and data.stays:
        yield "data volume stays when the machine stops"
    if data and site.shape == "group":
        start = f"starts as {data.snapshot}" if data.snapshot else "starts blank"
        yield f"each machine of the group has a data volume of its own, which {start}"
    if key and key.id and key.grant:
        yield f"Auto Scaling is granted the use of {key.id}"


def storage_problems(catalog: Catalog, machine: Machine, storage: StoragePlan) -> Iterator[Problem]:
    """What no volume of its size can be, at its field of the workload. What none can be at all, the
    rules of selection know."""
    if machine.type.cloud == "gcp":
        fast = storage.data or storage.root
        wanted = Most(storage.throughput_mb_s or 0.0, storage.iops or 0.0)
        yield from disk_problems(catalog, machine, (fast.kind, fast.gib), wanted)
        return
    for volume in filter(None, (storage.root, storage.data)):
        if volume.iops is None:
            continue
        if volume.gib > GP3_GIB:
            message = f"a gp3 volume is {GP3_GIB:,} GiB at most, and this is {volume.gib:,}"
            yield Problem("disk.data", message, "less, or `disk.scratch` for local NVMe")
        most = GP3_IOPS_PER_GIB * volume.gib
        if volume.iops > most:
            has = f"{GP3_IOPS_PER_GIB} IOPS a GiB, {most:,} of {volume.gib:,}"
            message = f"a gp3 volume gives {has}, and {volume.iops:,} are asked for"
            need = ceil(volume.iops / GP3_IOPS_PER_GIB)
            yield Problem("disk.data", message, f"`disk.data: {need}GiB`, or less speed")


def _volume_speed(catalog: Catalog, need: Need, machine: Machine) -> float | None:
    """MB/s the volume must be set to. What a tier asks for, local NVMe may give already; an own
    word is for a data volume where the machine can drive one that fast."""
    floor = need.floors.get("disk_throughput")
    wanted = bound(floor, machine) if floor else None
    nvme, volume = disk_speeds(machine, best_of(catalog, machine, need.workload.disk.data))
    if floor is not None and wanted is not None and (nvme or 0) >= wanted:
        own = floor.origin == "workload" and need.workload.disk.data is not None
        wanted = wanted if own and (volume or 0) >= wanted else None
    return wanted


def _kind(catalog: Catalog, machine: Machine, gib: int, wanted: Most) -> str:
    if machine.type.cloud == "aws":
        return "gp3"
    if machine.type.cloud == "gcp":
        return kind_of(catalog, machine, gib, wanted)
    return "unknown"


def _volume_price(
    catalog: Catalog, machine: Machine, region: str, volume: Volume
) -> tuple[float | None, bool]:
    """USD a month of one volume, and whether a figure is borrowed from the reference region."""
    settings = (volume.iops, volume.throughput_mb_s)
    parts = tuple(parts_of(catalog, volume.kind, volume.gib, settings))
    if volume.kind == "gp3":
        extra_speed = (volume.throughput_mb_s or 0) - GP3_FREE_MB_S
        extra_iops = (volume.iops or 0) - GP3_FREE_IOPS
        parts = (
            ("gp3-storage", volume.gib),
            ("gp3-throughput", extra_speed),
            ("gp3-iops", extra_iops),
        )
    total, borrowed = 0.0, False
    for item, amount in parts:
        if not amount:
            continue
        price = catalog.item(machine.type.cloud, item, region)
        if price is None or price.usd is None:
            return None, False
        total += price.usd * amount
        borrowed = borrowed or price.borrowed
    return total, borrowed
