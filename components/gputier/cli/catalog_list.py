"""The list of machines: `gputier catalog` with filters, as rows and as JSON."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from gputier.catalog import CLOUDS, Catalog, InstanceType
from gputier.cli import catalog_words as words
from gputier.cli.catalog_filters import Filters, matches, regions_for
from gputier.cli.catalog_prices import Listed, cheapest, listed_prices
from gputier.cli.money import per_hour
from gputier.cli.text import Column, flow, labelled, plural, table, table_widths

SCHEMA = "gputier/catalog-list/1"
SORTS = ("price", "memory", "name")


@dataclass(frozen=True, slots=True)
class Found:
    """A machine of the search with its cheapest listed price, None when it has none."""

    row: InstanceType
    price: Listed | None


def search(catalog: Catalog, filters: Filters, sort: str) -> tuple[Found, ...]:
    """Every machine that meets the filters, in order."""
    found: list[Found] = []
    models = frozenset(model for name in filters.gpu for model in catalog.match_gpus(name))
    for row in catalog.rows(filters.cloud or CLOUDS):
        if not matches(catalog, row, filters, models):
            continue
        prices = listed_prices(catalog, row, filters.purchase)
        price = cheapest(row, prices, regions_for(row, filters))
        limit = filters.max_price
        if limit is None or (price is not None and price.usd_per_hour <= limit):
            found.append(Found(row, price))
    return tuple(sorted(found, key=lambda one: _order(one, sort)))


def _order(found: Found, sort: str) -> tuple[object, ...]:
    row, price = found.row, found.price
    money = (price is None, price.usd_per_hour if price else 0.0)
    name = (row.cloud, row.name)
    if sort == "name":
        return name
    if sort == "memory":
        return (-row.memory_class_gb, -row.gpu_devices, *money, *name)
    return (*money, *name)


_COLUMNS = (
    Column("type"),
    Column("cloud"),
    Column("GPUs"),
    Column("memory", right=True, drop=1),
    Column("vCPU", right=True, drop=5),
    Column("host", right=True, drop=6),
    Column("NVMe", right=True, drop=7),
    Column("network", right=True, drop=8),
    Column("fabric", drop=11),
    Column("$/h", right=True),
    Column("in", drop=3),
    Column("as of", drop=4),
    Column("offered in", drop=9),
    Column("lifecycle", drop=2),
    Column("source", drop=10),
)
#: A filter that is set keeps the column it is about on a narrow terminal.
_SHOWN_BY = {"vcpu": 4, "host_memory": 5, "scratch": 6, "network": 7, "fabric": 8, "region": 10}
_SOURCE = len(_COLUMNS) - 1


def screen(catalog: Catalog, found: Sequence[Found], filters: Filters, width: int) -> list[str]:
    """The answer, then a row per machine. Narrow terminals lose the least needed columns."""
    how = "spot" if filters.spot else "on-demand"
    parts = (
        f"{len(found)} of {plural(len(catalog.types), 'type')}",
        f"cheapest listed {how} price of a machine",
        words.catalogue(catalog),
    )
    lines = flow(parts, width, 0)
    if not found:
        return [*lines, "nothing matches; loosen a filter, or see `gputier catalog gpus`"]
    wanted = {place for name, place in _SHOWN_BY.items() if getattr(filters, name)}
    columns = [c._replace(drop=0) if n in wanted else c for n, c in enumerate(_COLUMNS)]
    rows = [_cells(catalog, one) for one in found]
    sizes = table_widths(columns, rows, width)
    lines += ["", *table(columns, rows, width, sizes=sizes)]
    if _SOURCE not in sizes:
        sources = Counter(words.sources(row[_SOURCE]) for row in rows)
        named = [f"{name} ({count})" for name, count in sources.most_common()]
        lines += ["", *labelled("sources  ", [", ".join(named)], width, 9)]
    return lines


def _cells(catalog: Catalog, found: Found) -> list[str]:
    row, price = found.row, found.price
    return [
        row.name,
        row.cloud,
        words.gpus(row),
        f"{row.memory_class_gb:g} GB",
        words.vcpu(row),
        words.host_memory(row),
        words.scratch(row),
        words.network(row),
        words.fabric(row),
        per_hour(price.usd_per_hour).removesuffix("/h") if price else "unknown",
        price.region if price else "",
        price.as_of if price else row.as_of,
        words.offered(catalog, row),
        "" if row.lifecycle == "current" else row.lifecycle,
        price.source if price else row.source,
    ]


def document(catalog: Catalog, found: Sequence[Found], filters: Filters) -> dict[str, object]:
    """Schema `gputier/catalog-list/1`."""
    return {
        "schema": SCHEMA,
        "catalog": {"id": catalog.id, "as_of": catalog.as_of},
        "purchase": filters.purchase,
        "count": len(found),
        "types": [
            {**type_document(catalog, one.row), "cheapest": _price(one.price)} for one in found
        ],
    }


def type_document(catalog: Catalog, row: InstanceType) -> dict[str, object]:
    """What a list says of a machine; `null` is unknown."""
    return {
        "cloud": row.cloud,
        "instance_type": row.name,
        "family": row.family,
        "gpu_model": row.gpu_model,
        "gpus": row.gpu_devices,
        "gpu_count": row.gpu_count,
        "gpu_memory_gb": row.memory_class_gb,
        "gpu_usable_gib": round(row.usable_gib, 6),
        "vcpus": row.vcpus,
        "vcpu_range": list(row.vcpu_range) if row.vcpu_range else None,
        "memory_gib": row.memory_gib,
        "memory_range_gib": list(row.memory_range) if row.memory_range else None,
        "cpu_architecture": row.cpu_arch,
        "local_nvme_gib": row.local_nvme_gib,
        "network_gbps": row.network_sustained_gbps,
        "interconnect": row.interconnect,
        "interconnect_gbps": row.interconnect_gbps,
        "lifecycle": row.lifecycle,
        "regions": sorted(catalog.zones(row.cloud, row.name)),
        "as_of": row.as_of,
        "source": row.source,
    }


def _price(price: Listed | None) -> dict[str, object] | None:
    if price is None:
        return None
    return {
        "region": price.region,
        "usd_per_hour": round(price.usd_per_hour, 6),
        "host": price.host or None,
        "as_of": price.as_of,
        "source": price.source,
    }
