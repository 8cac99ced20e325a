"""Volumes of one machine and what they cost a month.

AWS volumes are gp3: 3,000 IOPS and 125 MB/s are in the price, more is billed. GCP volumes are
pd-balanced, or hyperdisk-balanced on families that refuse Persistent Disk.
"""

from __future__ import annotations

from typing import NamedTuple

from gputier.catalog import Catalog
from gputier.plan.machine import Machine
from gputier.plan.need import Need, scales
from gputier.plan.reasons import bound
from gputier.plan.rules_machine import disk_speeds
from gputier.units import HOURS_PER_MONTH

#: Root volume of a machine, GiB. Our own default (unverified): an image with driver and CUDA
#: toolkits, containers and wheels beside it.
ROOT_GIB = 100.0
GP3_FREE_IOPS, GP3_FREE_MB_S = 3000, 125
#: Purposes that keep a lone machine's data volume while it is stopped.
KEEPS_DATA = frozenset({"development", "vdi"})


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
    notes: tuple[str, ...]


def plan_storage(
    catalog: Catalog, need: Need, machine: Machine, region: str, running: tuple[int, float]
) -> StoragePlan:
    """Volumes for `running` = (machines, hours a month each)."""
    disk = need.workload.disk
    data = disk.data or 0.0
    alone = not scales(need.workload) and machine.nodes == 1 and need.purpose in KEEPS_DATA
    persist = alone if disk.persist is None else disk.persist
    speed, kind = _volume_speed(need, machine), _kind(machine)
    iops = disk.iops
    monthly, borrowed = _volume_price(catalog, machine, region, kind, (data, speed, iops))
    # Without a data volume it is the root volume that gives the speed a machine was taken for.
    asked = (ROOT_GIB, None, None) if data else (ROOT_GIB, speed, iops)
    root, root_borrowed = _volume_price(catalog, machine, region, kind, asked)
    machines, hours = running
    part = hours / HOURS_PER_MONTH
    total = None
    if monthly is not None and root is not None:
        # A lone machine's volumes stay while it is stopped; a group's go with the machine.
        total = machines * (
            monthly * (1.0 if persist and data else part) + root * (1.0 if alone else part)
        )
    notes = ("data volume stays when the machine stops",) if persist and data else ()
    return StoragePlan(
        ROOT_GIB,
        data,
        kind,
        speed,
        iops,
        machine.scratch_gib,
        machine.ssd_count,
        persist,
        total,
        borrowed or root_borrowed,
        notes,
    )


def _volume_speed(need: Need, machine: Machine) -> float | None:
    """MB/s the volume must be set to. What a tier asks for, local NVMe may give already; an own
    word is for a data volume where the machine can drive one that fast."""
    floor = need.floors.get("disk_throughput")
    wanted = bound(floor, machine) if floor else None
    nvme, volume = disk_speeds(machine)
    if floor is not None and wanted is not None and (nvme or 0) >= wanted:
        own = floor.origin == "workload" and need.workload.disk.data is not None
        wanted = wanted if own and (volume or 0) >= wanted else None
    return wanted


def _kind(machine: Machine) -> str:
    if machine.type.cloud == "aws":
        return "gp3"
    if machine.type.cloud == "gcp":
        boots = machine.type.boot_volumes
        return "pd-balanced" if "pd-balanced" in boots else boots[0] if boots else "unknown"
    return "unknown"


def _volume_price(
    catalog: Catalog,
    machine: Machine,
    region: str,
    kind: str,
    asked: tuple[float, float | None, int | None],
) -> tuple[float | None, bool]:
    """USD a month of one volume, and whether a figure is borrowed from the reference region."""
    gib, speed, iops = asked
    if not gib:
        return 0.0, False
    if kind == "gp3":
        extra_speed = max(0.0, (speed or 0) - GP3_FREE_MB_S)
        extra_iops = max(0, (iops or 0) - GP3_FREE_IOPS)
        parts = (("gp3-storage", gib), ("gp3-throughput", extra_speed), ("gp3-iops", extra_iops))
    else:
        parts = ((kind, gib),)
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
