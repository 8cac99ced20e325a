"""`load()`: the packaged catalogue, or that and a person's own overlay, ready for look-ups."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from types import MappingProxyType

from gputier.catalog import build, build_offers, disks, names
from gputier.catalog.disks import DiskKind, DiskLimit
from gputier.catalog.interfaces import CardLayout, card_layouts
from gputier.catalog.records import (
    CLOUDS,
    Gpu,
    HostMachine,
    InstanceType,
    ItemPrice,
    Price,
    SpotAdvice,
)
from gputier.catalog.software import SoftwareFacts, software_facts
from gputier.catalog.tables import Row, Source, Table, read

#: The regions whose prices of things around a machine stand in where a region has none of its own,
#: and where an unconfirmed type without any price is shown.
HOME_REGIONS: dict[str, str] = {"aws": "us-east-1", "gcp": "us-central1"}
EVERYWHERE = "all"

_NO_PRICES: Mapping[str, Price] = MappingProxyType({})
_NO_ZONES: Mapping[str, tuple[str, ...]] = MappingProxyType({})


class Catalog:
    """Everything that is known, behind pure look-ups. It never changes after `load()`.

    `id` is 16 hex digits over the data's bytes; `as_of` the newest price's date (YYYY-MM-DD);
    `gpus` by model; `types` by (cloud, name); `disk_kinds` and `disk_limits` are Google's volumes.
    """

    def __init__(self, source: Source) -> None:
        tables = source.tables
        self.id: str = source.id
        self.gpus: Mapping[str, Gpu] = MappingProxyType(build.gpus(tables["gpus"]))
        limits = disks.limits(tables["gcp_disk_limits"])
        facts = build.Facts(
            gpus=self.gpus,
            volumes=build.volumes(tables["aws_ebs"]),
            interfaces=build.interfaces(tables["aws_interfaces"]),
            local_disks=build.local_disks(tables["gcp_machines"]),
            zone_caps=build.zone_caps(tables["gcp_zone_caps"]),
            disk_limits=limits,
        )
        self._rows: dict[str, tuple[InstanceType, ...]] = {
            cloud: tuple(
                sorted(build.instance_types(cloud, tables[cloud], facts), key=lambda one: one.name)
            )
            for cloud in CLOUDS
        }
        self.types: Mapping[tuple[str, str], InstanceType] = MappingProxyType(
            {(one.cloud, one.name): one for rows in self._rows.values() for one in rows}
        )
        self._price_rows = build_offers.prices(tables["prices"])
        self.as_of: str = self._price_rows.newest
        self._offers = build_offers.offerings(tables["offerings"])
        self._advice = build_offers.advice(tables["spot_advisor_aws"])
        self._items = build_offers.items(tables["items"])
        self.disk_limits: tuple[DiskLimit, ...] = limits
        self.disk_kinds: Mapping[str, DiskKind] = MappingProxyType(
            disks.kinds(tables["gcp_disk_types"])
        )
        self._hosts = build_offers.hosts(tables["gcp_hosts"], limits)
        self._source = source
        self._software: SoftwareFacts | None = None
        self._layouts: Mapping[str, CardLayout] | None = None
        self._prices: dict[tuple[str, str, str], Mapping[str, Price]] = {}
        self._regions: dict[str, tuple[str, ...]] = {}

    def rows(self, clouds: Iterable[str]) -> tuple[InstanceType, ...]:
        """Every instance type of these clouds, sorted by cloud and name."""
        return tuple(one for cloud in sorted(set(clouds)) for one in self._rows.get(cloud, ()))

    def find_type(self, name: str, clouds: Iterable[str] | None = None) -> tuple[InstanceType, ...]:
        """The types called `name`; several only if clouds share a name."""
        among = CLOUDS if clouds is None else tuple(clouds)
        found = (self.types.get((cloud, name)) for cloud in sorted(set(among)))
        return tuple(one for one in found if one is not None)

    def price(self, cloud: str, name: str, region: str, purchase: str) -> Price | None:
        """One region's price, or None when it is unknown there. `accelerator:NAME` is one GPU."""
        return self.prices(cloud, name, purchase).get(region)

    def prices(self, cloud: str, name: str, purchase: str) -> Mapping[str, Price]:
        """Region → price, sorted by region; empty when the data has none anywhere."""
        key = (cloud, name, purchase)
        known = self._prices.get(key)
        if known is None:
            rows = self._price_rows.regional.get(key)
            if rows is None:
                return _NO_PRICES
            found = {one.region: one for one in self._built(rows)}
            known = self._prices[key] = MappingProxyType(dict(sorted(found.items())))
        return known

    def zone_prices(self, cloud: str, name: str, region: str, purchase: str) -> Mapping[str, Price]:
        """Zone → price where an overlay keeps prices by zone (AWS spot); mostly empty."""
        rows = self._price_rows.zonal.get((cloud, name, purchase), [])
        return {one.zone: one for one in self._built(rows) if one.region == region}

    def _built(self, rows: list[list[str]]) -> list[Price]:
        cursor = Row(Table("", self._price_rows.columns, []))
        built: list[Price] = []
        for cells in rows:
            cursor.cells = cells
            built.append(build_offers.price(cursor))
        return built

    def priced(self) -> tuple[tuple[str, str, str], ...]:
        """Every (cloud, name, purchase) that has a price somewhere, sorted."""
        return tuple(sorted(self._price_rows.regional))

    def zones(self, cloud: str, name: str) -> Mapping[str, tuple[str, ...]]:
        """Region → zones that were seen to offer the type; empty when no source lists it."""
        return self._offers.zones.get((cloud, name), _NO_ZONES)

    def regions(self, cloud: str) -> tuple[str, ...]:
        """Every region that a price or an offering names, sorted."""
        known = self._regions.get(cloud)
        if known is None:
            found = {region for owner, region in self._offers.region_zones if owner == cloud}
            for owner, name, purchase in self._price_rows.regional:
                if owner == cloud:
                    found.update(self.prices(cloud, name, purchase))
            known = self._regions[cloud] = tuple(sorted(found))
        return known

    def region_zones(self, cloud: str, region: str) -> frozenset[str]:
        """The zones in which some GPU type was seen."""
        return self._offers.region_zones.get((cloud, region), frozenset())

    def spot_advice(self, region: str, name: str) -> SpotAdvice | None:
        """AWS only: the advisor's saving and interruption band."""
        return self._advice.get((region, name))

    def item(self, cloud: str, item: str, region: str) -> ItemPrice | None:
        """The price of something around a machine; `borrowed` where another region's stands in."""
        by_region = self._items.get((cloud, item))
        if by_region is None:
            return None
        own = by_region.get(region) or by_region.get(EVERYWHERE)
        if own is not None:
            return own
        home = by_region.get(HOME_REGIONS.get(cloud, ""))
        return (home or by_region[min(by_region)])._replace(borrowed=True)

    def items(self, cloud: str) -> tuple[str, ...]:
        """The names that `item` knows for a cloud, sorted."""
        return tuple(sorted(item for owner, item in self._items if owner == cloud))

    def hosts(self) -> tuple[HostMachine, ...]:
        """The predefined N1 machines, sorted by name."""
        return self._hosts

    def hosts_of(self, row: InstanceType) -> tuple[HostMachine, ...]:
        """The predefined N1 machines that may carry this row's GPUs; none of any other row."""
        cpu, memory = row.vcpu_range, row.memory_range
        if cpu is None or memory is None:
            return ()
        return tuple(
            host
            for host in self._hosts
            if cpu[0] <= host.vcpus <= cpu[1] and memory[0] <= host.memory_gib <= memory[1]
        )

    @property
    def software(self) -> SoftwareFacts:
        """What software asks of cards and drivers. Raises InvalidInput for a malformed overlay."""
        if self._software is None:
            self._software = software_facts(self._source)
        return self._software

    def card_layout(self, name: str) -> CardLayout | None:
        """How an AWS type with EFA lays its interfaces over its cards; None for one without.
        Raises InvalidInput for a malformed overlay."""
        if self._layouts is None:
            self._layouts = card_layouts(self._source)
        return self._layouts.get(name)

    def match_gpus(self, text: str) -> tuple[str, ...]:
        """The models `text` names: `H100` is every H100 variant, `A10` never A10G."""
        return names.match_gpus(text, self.gpus)

    def columns(self, table: str) -> tuple[str, ...]:
        """The names of a table's columns, in their order. Raises KeyError."""
        return tuple(self._source.tables[table][0].columns)

    def facts(self, table: str) -> tuple[Mapping[str, str], ...]:
        """A table's rows as they are printed, source columns included. Raises KeyError.

        For what has no record of its own, or not all of it: `aws_network`, `aws_ebs`, `aws_quotas`,
        `gcp_machines`, `gcp_quotas`.
        """
        return tuple(
            dict(zip(one.columns, row, strict=True))
            for one in self._source.tables[table]
            for row in one.rows
        )


_packaged: list[Catalog] = []


def load(overlay: Path | None = None) -> Catalog:
    """The catalogue; with `overlay`, a directory of the same CSV files whose rows win by key.

    The packaged one is read once per process. Raises InvalidInput for an overlay that is missing,
    empty or malformed.
    """
    if overlay is not None:
        return Catalog(read(overlay))
    if not _packaged:
        _packaged.append(Catalog(read(None)))
    return _packaged[0]
