"""Tables → prices, offerings and what is around a machine."""

from __future__ import annotations

import datetime
import math
import re
from typing import NamedTuple

from gputier.catalog.disks import DiskLimit, fastest, limits_of
from gputier.catalog.records import CLOUDS, PURCHASES, HostMachine, ItemPrice, Price, SpotAdvice
from gputier.catalog.tables import Row, Table, records

_DATE = re.compile(r"\d{4}-\d\d-\d\d")


def hosts(tables: tuple[Table, ...], limits: tuple[DiskLimit, ...]) -> tuple[HostMachine, ...]:
    def make(row: Row) -> HostMachine:
        vcpus = int(row.required("vcpus"))
        most = fastest(limits_of(limits, "n1", vcpus))
        return HostMachine(
            row.text("name"),
            vcpus,
            row.required("memory_gib"),
            row.text("source"),
            *(most or (None, None)),
        )

    return tuple(sorted(records(tables, make), key=lambda host: host.name))


def advice(tables: tuple[Table, ...]) -> dict[tuple[str, str], SpotAdvice]:
    def make(row: Row) -> SpotAdvice:
        return SpotAdvice(
            row.text("region"),
            row.text("instance_type"),
            row.required("savings_over_on_demand_pct"),
            row.text("interruption_frequency"),
            row.text("as_of"),
            row.text("source"),
        )

    return {(one.region, one.instance_type): one for one in records(tables, make)}


def items(tables: tuple[Table, ...]) -> dict[tuple[str, str], dict[str, ItemPrice]]:
    def make(row: Row) -> ItemPrice:
        return ItemPrice(
            cloud=row.text("provider"),
            item=row.text("item"),
            region=row.text("region"),
            usd=row.number("usd"),
            unit=row.text("unit"),
            source=row.text("source"),
            as_of=row.text("as_of"),
            status=row.text("status"),
            borrowed=False,
            note=row.text("note"),
        )

    found: dict[tuple[str, str], dict[str, ItemPrice]] = {}
    for one in records(tables, make):
        found.setdefault((one.cloud, one.item), {})[one.region] = one
    return found


class PriceIndex(NamedTuple):
    """Price rows by (cloud, type, purchase), still as text: most are never asked for."""

    regional: dict[tuple[str, str, str], list[list[str]]]
    zonal: dict[tuple[str, str, str], list[list[str]]]
    columns: dict[str, int]
    newest: str  # the newest full date, YYYY-MM-DD


def prices(tables: tuple[Table, ...]) -> PriceIndex:
    """A row with an empty price says that what it replaces is no longer known."""
    columns = tables[0].columns
    cloud, name, purchase, zone, as_of, usd = (
        columns[column]
        for column in ("provider", "instance_type", "purchase", "zone", "as_of", "usd_per_hour")
    )
    regional: dict[tuple[str, str, str], list[list[str]]] = {}
    zonal: dict[tuple[str, str, str], list[list[str]]] = {}
    dates: set[str] = set()
    for table in tables:
        for row in table.rows:
            if not row[usd]:
                continue
            index = zonal if row[zone] else regional
            index.setdefault((row[cloud], row[name], row[purchase]), []).append(row)
            dates.add(row[as_of])
    for own in tables[1:]:  # a person's file is checked at once; ours is checked by the tests
        for _ in records((own,), _checked_price):
            pass
    newest = max((date for date in dates if _DATE.fullmatch(date)), default="")
    return PriceIndex(regional, zonal, columns, newest)


def _checked_price(row: Row) -> None:
    if not row.maybe("usd_per_hour"):
        return
    as_of = price(row).as_of
    if _DATE.fullmatch(as_of):
        try:
            datetime.date.fromisoformat(as_of)
        except ValueError as error:
            raise ValueError(f"as_of is `{as_of}`: {error}") from None


def price(row: Row) -> Price:
    usd = row.required("usd_per_hour")
    if not 0 < usd < math.inf:
        raise ValueError(f"usd_per_hour is {usd:g}; a price is more than 0, and unknown is no row")
    cloud, purchase = row.text("provider"), row.text("purchase")
    if cloud not in CLOUDS:
        raise ValueError(f"provider is `{cloud}`, none of {', '.join(CLOUDS)}")
    if purchase not in PURCHASES:
        raise ValueError(f"purchase is `{purchase}`, none of {', '.join(PURCHASES)}")
    return Price(
        cloud=cloud,
        region=row.text("region"),
        instance_type=row.text("instance_type"),
        purchase=purchase,
        usd_per_hour=usd,
        as_of=row.text("as_of"),
        source=row.text("source"),
        note=row.text("note"),
        zone=row.text("zone"),
    )


class Offers(NamedTuple):
    """Where types are seen: (cloud, type) → region → zones, and every zone by (cloud, region)."""

    zones: dict[tuple[str, str], dict[str, tuple[str, ...]]]
    region_zones: dict[tuple[str, str], frozenset[str]]


def offerings(tables: tuple[Table, ...]) -> Offers:
    """A row with an empty zone says that the type has left the region."""
    columns = tables[0].columns
    cloud, region, zone, name = (
        columns[column] for column in ("provider", "region", "zone", "instance_type")
    )
    found: dict[tuple[str, str], dict[str, list[str]]] = {}
    seen: dict[tuple[str, str], set[str]] = {}
    for table in tables:
        for row in table.rows:
            if row[zone]:
                by_region = found.setdefault((row[cloud], row[name]), {})
                by_region.setdefault(row[region], []).append(row[zone])
                seen.setdefault((row[cloud], row[region]), set()).add(row[zone])
    return Offers(
        {
            key: {where: tuple(sorted(zones)) for where, zones in sorted(by_region.items())}
            for key, by_region in found.items()
        },
        {key: frozenset(zones) for key, zones in seen.items()},
    )
