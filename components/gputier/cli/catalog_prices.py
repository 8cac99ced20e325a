"""A machine's listed prices, a composed offering's added up. Nothing is borrowed or estimated."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from gputier.catalog import Catalog, InstanceType, is_commercial


@dataclass(frozen=True, slots=True)
class Listed:
    """A price of one machine in one region. `host` is the N1 machine it is composed with."""

    region: str
    usd_per_hour: float
    as_of: str
    source: str
    note: str = ""
    host: str = ""


def listed_prices(catalog: Catalog, row: InstanceType, purchase: str) -> Mapping[str, Listed]:
    """Region → price, sorted by region; for N1 with attached GPUs the cheapest host there."""
    if row.vcpu_range is None:
        return {
            region: Listed(region, p.usd_per_hour, p.as_of, p.source, p.note)
            for region, p in catalog.prices(row.cloud, row.name, purchase).items()
        }
    each = catalog.prices(row.cloud, f"accelerator:{row.accelerator}", purchase)
    found: dict[str, Listed] = {}
    for host in catalog.hosts_of(row):
        for region, p in catalog.prices(row.cloud, host.name, purchase).items():
            if region not in each:
                continue
            usd = p.usd_per_hour + row.attached_count * each[region].usd_per_hour
            if region not in found or usd < found[region].usd_per_hour:
                as_of = min(p.as_of, each[region].as_of)
                found[region] = Listed(region, usd, as_of, p.source, "", host.name)
    return dict(sorted(found.items()))


def cheapest(
    row: InstanceType, prices: Mapping[str, Listed], regions: frozenset[str] | None
) -> Listed | None:
    """The cheapest of the allowed regions (None: every commercial one); ties go by name."""
    allowed = [
        p
        for region, p in prices.items()
        if (is_commercial(row.cloud, region) if regions is None else region in regions)
    ]
    return min(allowed, key=lambda p: (p.usd_per_hour, p.region), default=None)
