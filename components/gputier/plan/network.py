"""Placement, zones and the way out to the internet, with what they cost a month.

Data that flows is never in the figures: nobody has declared it.
"""

from __future__ import annotations

from typing import NamedTuple

from gputier.catalog import Catalog
from gputier.plan.need import Need
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
#: Zones a new network is spread over when nothing pins it to one.
NETWORK_ZONES = 3


class NetworkPlan(NamedTuple):
    """Where machines stand and how they get out. Costs are USD a month; None is unknown."""

    zones: tuple[str, ...]
    placement: str  # cluster, spread, none
    fabric: str
    egress: str  # nat, public, endpoints
    adopted: bool
    nat_usd: float | None
    endpoints_usd: float | None
    ipv4_usd: float | None
    borrowed: bool
    notes: tuple[str, ...]


def plan_network(
    catalog: Catalog, need: Need, chosen: Verdict, running: tuple[int, float], sharing: int
) -> NetworkPlan:
    """The network of a workload; `sharing` workloads of the stack share one NAT per region."""
    w = need.workload
    cloud, region = chosen.type.cloud, chosen.region
    placement, notes = _placement(need, chosen)
    fabric = chosen.type.interconnect if chosen.machine.nodes > 1 else "none"
    zones = chosen.zones
    if zones and (placement == "cluster" or fabric != "none"):
        if len(zones) > 1:
            notes = (*notes, f"one zone of {len(zones)}: placement and fabric stay in one")
        zones = zones[:1]
    egress = w.network.egress
    adopted = w.network.vpc is not None
    count = 1 if len(zones) == 1 else min(len(zones) or NETWORK_ZONES, NETWORK_ZONES)
    if adopted:
        costs: tuple[float | None, float | None] = (0.0, 0.0)
        addresses = _addresses(egress, running, 0)
        borrowed = False
    else:
        gateways = count if need.environment in PRODUCTION else 1
        costs, borrowed = _way_out(catalog, cloud, region, egress, (gateways, count, *running))
        addresses = _addresses(egress, running, gateways if cloud == "aws" else 1)
    # Google halves the price of an address that a spot machine holds.
    of_spot = cloud == "gcp" and egress == "public" and chosen.use == "spot"
    each = catalog.item(cloud, "public-ipv4-spot-hour" if of_spot else "public-ipv4-hour", region)
    ipv4 = None if each is None or each.usd is None else each.usd * addresses
    if addresses == 0:
        ipv4 = 0.0
    elif each is not None:
        borrowed = borrowed or each.borrowed
    nat, endpoints = costs
    if egress == "nat" and not adopted:
        if cloud == "aws":  # Google bills its gateway by the machines behind it
            nat = None if nat is None else nat / sharing
        ipv4 = None if ipv4 is None else ipv4 / sharing
        if sharing > 1:
            notes = (*notes, f"NAT shared by {sharing} workloads of {region}")
    return NetworkPlan(
        zones, placement, fabric, egress, adopted, nat, endpoints, ipv4, borrowed, notes
    )


def _placement(need: Need, chosen: Verdict) -> tuple[str, tuple[str, ...]]:
    floor = need.floors.get("placement")
    if floor is None:
        return "none", ()
    if chosen.use == "capacity_block":
        return "none", ("capacity blocks are placed close together already",)
    if floor.when_nodes and chosen.machine.nodes == 1:
        return "none", ()
    return str(floor.value), ()


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
