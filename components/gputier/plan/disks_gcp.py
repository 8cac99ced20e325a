"""Which volume on Google gives what is asked of it, what it is set to, and what none can give."""

from __future__ import annotations

from collections.abc import Iterator
from math import ceil
from typing import NamedTuple

from gputier.catalog import Catalog
from gputier.catalog.disks import DiskKind, Most, limits_of, meets
from gputier.errors import Problem
from gputier.plan.machine import Machine

#: What is taken, the cheapest first: the catalogue's prices of a GiB, and what a Hyperdisk's limits
#: on a machine are is known for no type yet.
ORDER = ("pd-balanced", "pd-ssd", "hyperdisk-balanced")
NOTHING = Most(0.0, 0.0)
#: Root volume of a machine, GiB. Our own default (unverified): an image with driver and CUDA
#: toolkits, containers and wheels beside it.
ROOT_GIB = 100.0


class _Candidate(NamedTuple):
    """A kind that a machine boots from, and what the machine takes of it."""

    kind: DiskKind
    limit: Most | None


def best_of(catalog: Catalog, machine: Machine, data_gib: float | None) -> Most | None:
    """The most that the volume which gives the speed can give at its size: the data volume, or the
    root without one. None where it is not known."""
    if machine.type.cloud != "gcp":
        return None
    gib = ceil(data_gib or ROOT_GIB)
    known = [c for c in _candidates(catalog, machine) if c.limit is not None]
    most = [one.kind.gives(gib, one.limit) for one in known if one.kind.gib_min <= gib]
    if not most:
        return None
    return Most(max(m.throughput for m in most), max(m.iops for m in most))


def kind_of(catalog: Catalog, machine: Machine, gib: int, wanted: Most) -> str:
    """The cheapest kind that gives it at this size, else the one that needs the smallest. A kind
    whose limit on this machine nobody knows is not counted on."""
    found = _candidates(catalog, machine)
    if not found:
        return "unknown"
    if wanted == NOTHING:
        return found[0].kind.name
    known = [c for c in found if c.limit is not None] or found
    for one in known:
        if one.kind.gib_min <= gib and meets(one.kind.gives(gib, one.limit), wanted):
            return one.kind.name
    sized = [(c.kind.gib_for(wanted, c.limit), c.kind.name) for c in known]
    return min(((gib, name) for gib, name in sized if gib), default=(0, known[0].kind.name))[1]


def _candidates(catalog: Catalog, machine: Machine) -> list[_Candidate]:
    of, vcpus = (machine.type.name, 0) if machine.host is None else ("n1", machine.host.vcpus)
    limits = limits_of(catalog.disk_limits, of, vcpus)
    return [
        _Candidate(catalog.disk_kinds[name], limits.get(name))
        for name in ORDER
        if name in machine.type.boot_volumes and name in catalog.disk_kinds
    ]


def settings_of(catalog: Catalog, kind: str, wanted: Most) -> tuple[int | None, int | None]:
    """IOPS and MiB/s that it is set to: no less than what is in its price, which is said, since
    Google sets more by itself and bills it."""
    found = catalog.disk_kinds.get(kind)
    return (found.settings(wanted) if found else None) or (None, None)


def parts_of(
    catalog: Catalog, kind: str, gib: int, settings: tuple[int | None, int | None]
) -> Iterator[tuple[str, float]]:
    """What a volume is billed as: items of the catalogue and how much of each."""
    yield kind, gib
    found = catalog.disk_kinds.get(kind)
    iops, speed = settings
    if found and iops is not None and speed is not None:
        yield f"{kind}-iops", iops - found.base.iops
        yield f"{kind}-throughput", speed - found.base.throughput


def disk_problems(
    catalog: Catalog, machine: Machine, volume: tuple[str, int], wanted: Most
) -> Iterator[Problem]:
    """What no volume of this kind and size can be, at its field of the workload."""
    name, gib = volume
    found = {c.kind.name: c for c in _candidates(catalog, machine)}.get(name)
    if found is None:
        return
    kind, limit = found
    if gib > kind.gib_max:
        message = f"a {name} volume is {kind.gib_max:,} GiB at most, and this is {gib:,}"
        yield Problem("disk.data", message, "less, or `disk.scratch` for local NVMe")
    elif gib < kind.gib_min:
        message = f"a {name} volume is {kind.gib_min} GiB at least, and this is {gib}"
        yield Problem("disk.data", message, f"`disk.data: {kind.gib_min}GiB`")
    elif not meets(has := kind.gives(gib, limit), wanted):
        gives = f"{has.throughput:,.0f} MiB/s and {has.iops:,.0f} IOPS"
        asked = f"{wanted.throughput:,.0f} MiB/s and {wanted.iops:,.0f} IOPS are asked for"
        on = machine.instance_type
        message = f"a {name} volume of {gib:,} GiB gives {gives} on {on}, and {asked}"
        need = kind.gib_for(wanted, limit)
        hint = f"`disk.data: {need}GiB`, or less speed" if need else "less speed, or `disk.scratch`"
        yield Problem("disk.data", message, hint)
