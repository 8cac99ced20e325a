"""Placement, zones and the way out to the internet, with what they cost a month.

Data that flows is never in the figures: nobody has declared it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from gputier.catalog import Catalog, Interface
from gputier.plan.combinations import ONE, Decision
from gputier.plan.fleet import fabric_of, interfaces_of
from gputier.plan.rails import Rail, rails_of
from gputier.plan.select import Ask
from gputier.plan.verdict import Verdict
from gputier.units import HOURS_PER_MONTH
from gputier.workload.declare import PRODUCTION

#: Interface endpoints a fleet without internet access needs on AWS: session access, logs,
#: metrics, its own group, and the instance API. S3 is a gateway endpoint without charge.
AWS_ENDPOINTS = (
    "ssm",
    "ssmmessages",
    "ec2messages",
    "logs",
    "monitoring",
    "autoscaling",
    "ec2",
)
#: Cloud NAT is billed per assigned VM for the first 32, then a flat rate.
GCP_NAT_VMS = 32
#: Ways out that the workloads of a region share, and what to call them.
SHARED = {"nat": "NAT", "endpoints": "endpoints"}
#: Zones a new network is spread over when nothing pins it to one.
NETWORK_ZONES = 3


class NetworkPlan(NamedTuple):
    """Where machines stand and how they get out. Costs are USD a month; None is unknown.

    `vpc` and `subnets` are what is adopted, by id or name; `zones` empty is not known. A network of
    our own has `nat_gateways` gateways, in the first so many zones, and `endpoints`, the cloud's
    services that are reached inside it. `interfaces` are a machine's, by card and device (AWS);
    `rails` are those that a machine has beside its first for the fabric (Google).
    """

    zones: tuple[str, ...]
    placement: str  # cluster, spread, none
    fabric: str
    egress: str  # nat, public, endpoints
    adopted: bool
    nat_usd: float | None
    endpoints_usd: float | None
    ipv4_usd: float | None
    borrowed: bool
    vpc: str | None
    subnets: tuple[str, ...]
    interfaces: tuple[Interface, ...]
    public_ip: bool
    nat_gateways: int
    endpoints: tuple[str, ...]
    notes: tuple[str, ...]
    rails: tuple[Rail, ...] = ()


def plan_network(
    ask: Ask, chosen: Verdict, settled: Decision, running: tuple[int, float], sharing: int
) -> NetworkPlan:
    """The network of a workload; `sharing` workloads of the stack share one NAT per region."""
    catalog, need, w = ask.catalog, ask.need, ask.need.workload
    cloud, region = chosen.type.cloud, chosen.region
    fabric, interfaces = fabric_of(need, chosen), interfaces_of(catalog, need, chosen)
    notes = tuple(_notes(chosen, settled, interfaces))
    zones = chosen.zones[:1] if settled.situation.zones == ONE else chosen.zones
    egress, adopted = w.network.egress, w.network.vpc is not None
    count = 1 if len(zones) == 1 else min(len(zones) or NETWORK_ZONES, NETWORK_ZONES)
    gateways = count if need.environment in PRODUCTION else 1
    places = _Places(0 if adopted else gateways, count, sharing)
    money = _money(ask, chosen, places, running)
    if egress in SHARED and not adopted and sharing > 1:
        notes = (*notes, f"{SHARED[egress]} shared by {sharing} workloads of {region}")
    own = egress == "endpoints" and not adopted and cloud == "aws"
    return NetworkPlan(
        zones=zones,
        placement=settled.situation.placement,
        fabric=fabric,
        egress=egress,
        adopted=adopted,
        nat_usd=money.nat,
        endpoints_usd=money.endpoints,
        ipv4_usd=money.ipv4,
        borrowed=money.borrowed,
        vpc=w.network.vpc,
        subnets=w.network.subnets or (),
        interfaces=interfaces,
        public_ip=egress == "public",
        nat_gateways=places.gateways if egress == "nat" else 0,
        endpoints=AWS_ENDPOINTS if own else (),
        notes=notes,
        rails=rails_of(catalog, chosen, fabric, zones),
    )


def _notes(chosen: Verdict, settled: Decision, interfaces: tuple[Interface, ...]) -> Iterator[str]:
    why = [row.why for row in settled.rows if row.change == ("zones", ONE)]
    if why and len(chosen.zones) > 1:
        yield f"one zone of {len(chosen.zones)}: {why[0]}"
    if len(interfaces) > 1:
        yield f"{len(interfaces)} network interfaces a machine, one of them with an address"


class _Places(NamedTuple):
    """Gateways of our own (none in an adopted network), zones, and workloads that share them."""

    gateways: int
    zones: int
    sharing: int


class _Money(NamedTuple):
    """USD a month."""

    nat: float | None
    endpoints: float | None
    ipv4: float | None
    borrowed: bool


def _money(ask: Ask, chosen: Verdict, places: _Places, running: tuple[int, float]) -> _Money:
    catalog, egress = ask.catalog, ask.need.workload.network.egress
    cloud, region = chosen.type.cloud, chosen.region
    nat: float | None = 0.0
    endpoints: float | None = 0.0
    borrowed = False
    if places.gateways:
        counts = (places.gateways, places.zones, *running)
        (nat, endpoints), borrowed = _way_out(catalog, cloud, region, egress, counts)
    gateways = places.gateways if cloud == "aws" else min(1, places.gateways)
    addresses = _addresses(egress, running, gateways)
    # Google halves the price of an address that a spot machine holds.
    of_spot = cloud == "gcp" and egress == "public" and chosen.use == "spot"
    each = catalog.item(cloud, "public-ipv4-spot-hour" if of_spot else "public-ipv4-hour", region)
    ipv4 = None if each is None or each.usd is None else each.usd * addresses
    if addresses == 0:
        ipv4 = 0.0
    elif each is not None:
        borrowed = borrowed or each.borrowed
    if cloud == "aws":  # Google bills its gateway by the machines behind it
        nat, endpoints = (_part(usd, places.sharing) for usd in (nat, endpoints))
    if egress == "nat":
        ipv4 = _part(ipv4, places.sharing)
    return _Money(nat, endpoints, ipv4, borrowed)


def _part(usd: float | None, sharing: int) -> float | None:
    return None if usd is None else usd / sharing


def _way_out(
    catalog: Catalog, cloud: str, region: str, egress: str, counts: tuple[int, int, int, float]
) -> tuple[tuple[float | None, float | None], bool]:
    """(NAT, endpoints) USD a month, and whether a figure is borrowed."""
    gateways, zones, machines, hours = counts
    if egress == "nat":
        price = catalog.item(cloud, "nat-hour", region)
        if price is None or price.usd is None:
            return (None, 0.0), False
        # AWS bills a gateway by the hour; Google its machines, by the hours they are assigned.
        billed = (
            gateways * HOURS_PER_MONTH if cloud == "aws" else min(machines, GCP_NAT_VMS) * hours
        )
        return (price.usd * billed, 0.0), price.borrowed
    if egress == "endpoints" and cloud == "aws":
        price = catalog.item(cloud, "endpoint-hour", region)
        if price is None or price.usd is None:
            return (0.0, None), False
        monthly = price.usd * len(AWS_ENDPOINTS) * zones * HOURS_PER_MONTH
        return (0.0, monthly), price.borrowed
    return (0.0, 0.0), False


def _addresses(egress: str, running: tuple[int, float], gateways: int) -> float:
    """Public IPv4 address hours a month."""
    machines, hours = running
    if egress == "public":
        return machines * hours
    return gateways * HOURS_PER_MONTH if egress == "nat" else 0.0
