"""docs/gcp.md says what the catalogue knows of Google's machine families and volumes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from itertools import groupby

from gputier.catalog import Catalog, load
from gputier.catalog.disks import SIZE, DiskKind, limits_of
from gputier.plan.rails import kinds

Generated = Callable[[str, str, str], None]
Row = Mapping[str, str]


def family_lines(catalog: Catalog) -> Iterator[str]:
    yield (
        "| family | GPUs | cards | local SSD | interfaces for all bandwidth | MTU | Gbps | Tier_1"
        " | bought as | disks |"
    )
    yield "|---|---|---|---|---|---|---|---|---|---|"
    rows = catalog.facts("gcp_machines")
    for family, found in groupby(rows, key=lambda row: row["family"]):
        some = list(found)
        cells = [
            family,
            _each(some, _gpus),
            _each(some, lambda row: row["gpu_attach"]),
            _each(some, _ssds),
            _each(some, _interfaces),
            _each(some, lambda row: row["mtu_recommended"] or "1460"),
            _each(some, lambda row: row["egress_max_gbps"]),
            _each(some, lambda row: row["egress_tier1_gbps"]),
            _each(some, lambda row: row["provisioning_models"].replace("|", ", ")),
            _each(some, lambda row: row["disk_types_accepted"].replace("|", ", ")),
        ]
        yield f"| {' | '.join(cells)} |"


def _each(rows: list[Row], of: Callable[[Row], str]) -> str:
    """What they all are, or what the first and the last of them are."""
    every = list(dict.fromkeys(of(row) for row in rows))
    return every[0] if len(every) == 1 else f"{every[0]} … {every[-1]}"


def _gpus(row: Row) -> str:
    return f"{row['gpu_count']} × {row['accelerator_type'].split(' (')[0]}"


def _ssds(row: Row) -> str:
    bundled = int(row["bundled_local_ssd_count"])
    if bundled:
        return f"{bundled} with it"
    return f"to add: {row['optional_local_ssd_counts'].split(' (')[0].replace('|', ', ')}"


def _interfaces(row: Row) -> str:
    every = list(kinds(row))
    return " + ".join(f"{every.count(kind)} {kind}" for kind in dict.fromkeys(every))


def volume_lines(catalog: Catalog) -> Iterator[str]:
    yield "| kind | GiB | gives | at most |"
    yield "|---|---|---|---|"
    for kind in catalog.disk_kinds.values():
        most = f"{kind.most.throughput:,.0f} MiB/s, {kind.most.iops:,.0f} IOPS"
        yield f"| `{kind.name}` | {kind.gib_min:,} to {kind.gib_max:,} | {_gives(kind)} | {most} |"
    yield ""
    yield "| machine | volumes of all kinds together, MiB/s and IOPS at most |"
    yield "|---|---|"
    for name in dict.fromkeys(limit.machine_type for limit in catalog.disk_limits):
        if name != "n1":
            yield f"| `{name}` | {_limits(catalog, name, 0)} |"
    for vcpus in sorted({one.vcpus_min for one in catalog.disk_limits if one.vcpus_min}):
        yield f"| N1 with {vcpus} vCPUs or more | {_limits(catalog, 'n1', vcpus)} |"


def _gives(kind: DiskKind) -> str:
    base, each = kind.base, kind.per_gib
    if kind.set_by == SIZE:
        speed = f"{base.throughput:g} MiB/s and {each.throughput:g} a GiB"
        return f"{speed}; {base.iops:,.0f} IOPS and {each.iops:g} a GiB"
    free = f"{base.throughput:g} MiB/s and {base.iops:,.0f} IOPS in its price"
    return f"what it is set to: {free}; {each.iops:g} IOPS a GiB at most"


def _limits(catalog: Catalog, name: str, vcpus: int) -> str:
    found = limits_of(catalog.disk_limits, name, vcpus)
    return "; ".join(
        f"`{kind}` {most.throughput:,.0f}, {most.iops:,.0f}" for kind, most in found.items()
    )


def test_the_page_has_every_family(generated: Generated) -> None:
    generated("docs/gcp.md", "families", "\n".join(family_lines(load())))


def test_the_page_has_what_volumes_give(generated: Generated) -> None:
    generated("docs/gcp.md", "volumes", "\n".join(volume_lines(load())))
