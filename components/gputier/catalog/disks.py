"""Volumes on Google: what one of each kind gives by its size, and how much a machine takes in all.

A Persistent Disk is as fast as it is large; a Hyperdisk is set to its speed. A machine has a limit
of its own for each kind (N1 by its vCPUs). Where Google's figure was not to be read it is not
known, and nothing is counted on. Throughput is MiB/s.
"""

from __future__ import annotations

from math import ceil
from typing import NamedTuple

from gputier.catalog.tables import Row, Table, records

#: What a volume's speed follows from.
SIZE, VALUE = "size", "value"


class Most(NamedTuple):
    """The most throughput and IOPS of something."""

    throughput: float
    iops: float


class DiskLimit(NamedTuple):
    """What all volumes of a kind give together on a machine, from `vcpus_min` vCPUs on (N1)."""

    machine_type: str
    vcpus_min: int
    kind: str
    most: Most


class DiskKind(NamedTuple):
    """A kind of volume. `set_by` SIZE: it gives `base` and so much for each GiB; VALUE: it is set,
    `base` is in its price, and it takes so many IOPS at most for each GiB."""

    name: str
    gib_min: int
    gib_max: int
    set_by: str
    base: Most
    per_gib: Most
    most: Most
    iops_per_mib_s: float
    source: str

    def gives(self, gib: int, machine: Most | None) -> Most:
        """The most that a volume of this size gives on a machine."""
        base = self.base if self.set_by == SIZE else Most(self.most.throughput, 0.0)
        own = (base.throughput + gib * self.per_gib.throughput, base.iops + gib * self.per_gib.iops)
        limits = [Most(*own), self.most, *([machine] if machine else [])]
        return Most(min(m.throughput for m in limits), min(m.iops for m in limits))

    def settings(self, wanted: Most) -> tuple[int, int] | None:
        """IOPS and MiB/s to set; None where they follow from the size."""
        if self.set_by == SIZE:
            return None
        speed = max(self.base.throughput, ceil(wanted.throughput))
        iops = max(self.base.iops, wanted.iops, self.iops_per_mib_s * speed)
        return ceil(iops), ceil(speed)

    def gib_for(self, wanted: Most, machine: Most | None) -> int | None:
        """The smallest size that gives it; None where no size does."""
        if not meets(self.gives(self.gib_max, machine), wanted):
            return None
        low, high = self.gib_min, self.gib_max
        while low < high:
            middle = (low + high) // 2
            if meets(self.gives(middle, machine), wanted):
                high = middle
            else:
                low = middle + 1
        return low


def meets(has: Most, wanted: Most) -> bool:
    return has.throughput >= wanted.throughput and has.iops >= wanted.iops


def kinds(tables: tuple[Table, ...]) -> dict[str, DiskKind]:
    def make(row: Row) -> DiskKind:
        return DiskKind(
            name=row.text("disk_type"),
            gib_min=int(row.required("gib_min")),
            gib_max=int(row.required("gib_max")),
            set_by=_one_of(row.text("set_by")),
            base=Most(row.required("throughput_base_mib_s"), row.required("iops_base")),
            per_gib=Most(row.number("throughput_per_gib_mib_s") or 0, row.required("iops_per_gib")),
            most=Most(row.required("throughput_max_mib_s"), row.required("iops_max")),
            iops_per_mib_s=row.number("iops_per_mib_s_min") or 0.0,
            source=row.text("source"),
        )

    return {kind.name: kind for kind in records(tables, make)}


def _one_of(word: str) -> str:
    if word not in (SIZE, VALUE):
        raise ValueError(f"set_by is `{word}`, neither {SIZE} nor {VALUE}")
    return word


def limits(tables: tuple[Table, ...]) -> tuple[DiskLimit, ...]:
    def make(row: Row) -> DiskLimit:
        return DiskLimit(
            row.text("machine_type"),
            row.whole("vcpus_min") or 0,
            row.text("disk_type"),
            Most(row.required("throughput_mib_s"), row.required("iops")),
        )

    return tuple(sorted(records(tables, make)))


def limits_of(every: tuple[DiskLimit, ...], machine_type: str, vcpus: int = 0) -> dict[str, Most]:
    """Kind of volume → what this machine takes of it. Later rows are of more vCPUs."""
    return {
        limit.kind: limit.most
        for limit in every
        if limit.machine_type == machine_type and limit.vcpus_min <= vcpus
    }


def fastest(by_kind: dict[str, Most]) -> Most | None:
    """The most of any kind; None where nothing is known."""
    if not by_kind:
        return None
    every = by_kind.values()
    return Most(max(m.throughput for m in every), max(m.iops for m in every))
