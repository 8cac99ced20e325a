"""Where a machine is sold, how it may be bought, and the rules that follow from that.

Availability has three values. *confirmed*: a source lists the type in this region (and zone).
*absent*: the source lists the type elsewhere but not here. *unconfirmed*: no row for the type
anywhere, or the source does not cover the region. A price alone is not an offer.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, NamedTuple

from gputier.catalog import Catalog, InstanceType, is_commercial, region_of_zone
from gputier.errors import Problem, spelling_hint
from gputier.plan.reasons import Reason
from gputier.workload import CapacityChoice, Workload

CONFIRMED, ABSENT, UNCONFIRMED = "confirmed", "absent", "unconfirmed"
#: Clouds that this product deploys; the others are plan only: shown, never locked.
DEPLOYABLE = ("aws", "gcp")
#: Capacity that is already held: its type, zone and count are given.
HELD = frozenset({"reservation", "capacity_block"})
#: Lifecycles that are rejected unless the type is named, with what they mean.
CLOSED_LIFECYCLES: Mapping[str, str] = {
    "retired": "no longer sold",
    "retiring": "being withdrawn by the cloud",
    "invite-only": "sold by invitation",
    "limited": "limited to existing customers or on request",
    "preview": "in preview: no service level, may change",
}


@dataclass(frozen=True, slots=True)
class Market:
    """Where a workload may go: regions and zones per cloud, and what was assumed.

    `memo` keeps what depends on the catalogue and the market alone (where a type is sold, its
    best region): several workloads and the prices of floors ask it again and again.
    """

    clouds: tuple[str, ...]
    regions: Mapping[str, tuple[str, ...]]
    zones: tuple[str, ...]
    open_regions: frozenset[str]  # clouds whose regions nobody declared
    memo: dict[tuple[object, ...], Any] = field(
        default_factory=dict[tuple[object, ...], Any], compare=False, repr=False
    )


def market_of(catalog: Catalog, workload: Workload) -> Market:
    """Clouds and regions allowed: declared, else aws and gcp in every commercial region."""
    declared = tuple(sorted((workload.regions or {}).items()))
    return _market(catalog, workload.clouds or DEPLOYABLE, declared, workload.zones or ())


@lru_cache(maxsize=32)
def _market(
    catalog: Catalog,
    clouds: tuple[str, ...],
    declared_regions: tuple[tuple[str, tuple[str, ...]], ...],
    zones: tuple[str, ...],
) -> Market:
    declared = dict(declared_regions)
    regions: dict[str, tuple[str, ...]] = {}
    for cloud in clouds:
        own = declared.get(cloud)
        if own:
            regions[cloud] = own
        else:
            regions[cloud] = tuple(r for r in catalog.regions(cloud) if is_commercial(cloud, r))
    open_regions = frozenset(c for c in clouds if not declared.get(c))
    return Market(clouds, regions, zones, open_regions)


def market_problems(catalog: Catalog, workload: Workload, path: str) -> Iterable[Problem]:
    """Regions, zones and instance types nobody has heard of."""
    for cloud, names in (workload.regions or {}).items():
        known = catalog.regions(cloud)
        for name in names or ():
            if name not in known:
                hint = spelling_hint(
                    name, known, otherwise=f"`gputier catalog regions {cloud}` lists them"
                )
                yield Problem(
                    f"{path}.regions.{cloud}", f"`{name}` is not a region of {cloud} we know", hint
                )
    clouds = workload.clouds or DEPLOYABLE
    for zone in workload.zones or ():
        if not any(region_of_zone(cloud, zone) for cloud in clouds):
            hint = "names (us-east-1a, us-central1-a) and AWS zone ids (use1-az4) are understood"
            yield Problem(f"{path}.zones", f"`{zone}` is not a zone of {', '.join(clouds)}", hint)
    for place, choice in enumerate(workload.capacity):
        # Positions know an entry of a list by its place, and a map by itself.
        where = f"capacity[{place}]" if len(workload.capacity) > 1 else "capacity"
        name = choice.instance_type
        if name and not catalog.find_type(name, clouds):
            names = [t.name for t in catalog.rows(clouds)]
            hint = spelling_hint(name, names, otherwise="see `gputier catalog`")
            message = f"`{name}` is not an instance type of {', '.join(clouds)} in the catalogue"
            yield Problem(f"{path}.{where}.instance_type", message, hint)


class Places(NamedTuple):
    """Regions where a type may be had: region → zone ids (empty: zones not known)."""

    availability: str
    regions: Mapping[str, tuple[str, ...]]
    elsewhere: tuple[str, ...] = ()


def places(catalog: Catalog, type_: InstanceType, market: Market, choice: CapacityChoice) -> Places:
    """Where the type may go under this market and this way of buying, which may pin a zone."""
    zone = choice.zone or ""
    key = ("places", type_.cloud, type_.name, zone, choice.use)
    known = market.memo.get(key)
    if known is None:
        known = _places(catalog, type_, market, zone)
        region = region_of_zone(type_.cloud, zone) if zone else None
        if known.availability == ABSENT and choice.use in HELD and region is not None:
            # Who holds a reservation there knows better than a list that does not name the zone.
            known = Places(UNCONFIRMED, {region: (zone,)})
        market.memo[key] = known
    found: Places = known
    return found


def _places(catalog: Catalog, type_: InstanceType, market: Market, zone: str) -> Places:
    allowed = market.regions[type_.cloud]
    wanted = (zone,) if zone else market.zones
    listed = catalog.zones(type_.cloud, type_.name)
    if not listed:
        anywhere = _unlisted(type_.cloud, allowed, wanted)
        return Places(UNCONFIRMED if anywhere else ABSENT, anywhere)
    confirmed: dict[str, tuple[str, ...]] = {}
    uncertain: dict[str, tuple[str, ...]] = {}
    for region in allowed:
        here = listed.get(region, ())
        if not here:
            if not catalog.region_zones(type_.cloud, region):
                uncertain.update(_unlisted(type_.cloud, (region,), wanted))
            continue
        ids, unsure = _zones_here(catalog, type_.cloud, region, here, wanted)
        if ids:
            (uncertain if unsure else confirmed)[region] = ids
    if confirmed:
        return Places(CONFIRMED, confirmed)
    if uncertain:
        return Places(UNCONFIRMED, uncertain)
    return Places(ABSENT, {}, tuple(sorted(listed)))


def _unlisted(
    cloud: str, allowed: Iterable[str], wanted: tuple[str, ...]
) -> dict[str, tuple[str, ...]]:
    if not wanted:
        return dict.fromkeys(allowed, ())
    found: dict[str, tuple[str, ...]] = {}
    for region in allowed:
        zones = tuple(z for z in wanted if region_of_zone(cloud, z) == region)
        if zones:
            found[region] = zones
    return found


def _zones_here(
    catalog: Catalog, cloud: str, region: str, here: tuple[str, ...], wanted: tuple[str, ...]
) -> tuple[tuple[str, ...], bool]:
    """Zones of the region that are wanted and sold, and whether that is uncertain.

    AWS zone names mean another zone in each account, so a name is certain only where every zone
    of the region sells the type.
    """
    if not wanted:
        return here, False
    ids = tuple(z for z in here if z in wanted)
    if ids:
        return ids, False
    names = tuple(
        z
        for z in wanted
        if region_of_zone(cloud, z) == region and z not in catalog.region_zones(cloud, region)
    )
    names = tuple(z for z in names if "-az" not in z)
    if cloud != "aws" or not names:
        return (), False
    return names, set(here) != set(catalog.region_zones(cloud, region))


def lifecycle_reason(type_: InstanceType, named: str) -> Reason | None:
    """Closed lifecycles, unless the type is named in the capacity."""
    meaning = CLOSED_LIFECYCLES.get(type_.lifecycle)
    if meaning is None or type_.name == named:
        return None
    relax = f"name it: capacity: {{use: …, instance_type: {type_.name}}}"
    return Reason("lifecycle", "on sale", f"{type_.lifecycle}: {meaning}", relax)


def availability_reason(
    catalog: Catalog, type_: InstanceType, market: Market, asked: tuple[Places, str]
) -> Reason | None:
    """A type that its source lists elsewhere but not here; `asked` is what was found, and the
    zone that the capacity pins ("" for none)."""
    found, zone = asked
    if found.availability != ABSENT:
        return None
    count = len(found.elsewhere)
    shown = ", ".join(found.elsewhere[:4]) + (", …" if count > 4 else "")
    zones = (zone,) if zone else market.zones
    allowed = market.regions[type_.cloud]
    where = ", ".join(zones or allowed)
    if not zones and len(allowed) > 3:
        where = "the allowed regions"
    if not count:
        has = f"no allowed region of {type_.cloud} has these zones"
        return Reason("availability", where, has, f"zones: add one of {type_.cloud}")
    has = f"sold in {count} region{'s' if count != 1 else ''}: {shown}"
    if zones:
        listed = catalog.zones(type_.cloud, type_.name)
        meant = [r for r in allowed if r in {region_of_zone(type_.cloud, z) for z in zones}]
        # The zone's own region first: who asks for use1-az4 is not helped by one in Tokyo.
        near = [z for region in meant for z in listed.get(region, ())]
        near = near or [z for region in allowed for z in listed.get(region, ())]
        if near:
            has = f"sold in {', '.join(near[:6])}{', …' if len(near) > 6 else ''}"
        field = "capacity.zone" if zone else "zones"
        way = f"{field}: one of these" if near else f"no {field}, and one of these regions"
        return Reason("availability", where, has, way)
    return Reason("availability", where, has, f"regions.{type_.cloud}: add one of them")


def capacity_reason(type_: InstanceType, choice: CapacityChoice, named: str) -> Reason | None:
    """Whether this type is sold the way the workload wants to buy it."""
    if named and type_.name != named:
        relax = "capacity.instance_type: another, or none"
        return Reason("capacity", f"{choice.use} of {named}", type_.name, relax)
    sold = sold_as(type_)
    if choice.on_demand_base and choice.use in sold and "on_demand" not in sold:
        has = "sold as " + ", ".join(sold)
        return Reason("capacity", "on_demand for its base", has, "capacity.on_demand_base: 0")
    if choice.use in sold:
        return None
    has = "sold as " + ", ".join(sold) if sold else "not sold in any way we know"
    relax = f"capacity: {sold[0]}" if sold else "another type"
    if sold and sold[0] in HELD:
        relax = f"capacity: {{use: {sold[0]}, instance_type: {type_.name}, zone: …, count: …}}"
    return Reason("capacity", choice.use, has, relax)


def sold_as(type_: InstanceType) -> tuple[str, ...]:
    """Every capacity of our vocabulary that this type is sold as."""
    other = type_.other_purchase
    ways: list[str] = []
    if type_.on_demand:
        ways.append("on_demand")
    if type_.spot:
        ways.append("spot")
    # What is sold on demand can be reserved (AWS ODCR, GCP reservations); Google lists
    # `reservation` and `calendar` for families without on-demand supply.
    if type_.on_demand or "reservation" in other or "calendar" in other:
        ways.append("reservation")
    if any(o.startswith("capacity-block") for o in other):
        ways.append("capacity_block")
    if "flex-start" in other:
        ways.append("flex_start")
    return tuple(ways)
