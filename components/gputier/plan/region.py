"""The networks of a stack: what the fleets of a region share, and the addresses in it.

One network of our own in each region, and one for each network that is adopted. An address range
follows from a zone's id and the way out alone, never from how many zones or fleets there are: a
fleet that comes or goes moves no other's subnet.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from gputier.errors import InvalidInput, Problem
from gputier.plan.model import Chosen, WorkloadPlan
from gputier.plan.network import NetworkPlan

PUBLIC, NAT, ENDPOINTS = "public", "nat", "endpoints"
#: Of a /16, the largest that AWS takes (EC2 user guide, VPC CIDR blocks): half for machines behind
#: a gateway, a quarter each for those with endpoints alone and for public addresses.
CIDR = "10.0.0.0/16"
BLOCKS = {NAT: "10.0.0.0/17", ENDPOINTS: "10.0.128.0/18", PUBLIC: "10.0.192.0/18"}
#: Places for zones in a block. No region has more than six zones today.
PLACES = 8
#: `use1-az4`, and `use1-dfw2-az1` for a local zone, which has the last place.
_ZONE = re.compile(r"[a-z]+\d+-(?P<local>[a-z]+\d+-)?az(?P<number>\d+)")


class SubnetPlan(NamedTuple):
    """A subnet of our own. `gateway` is the zone whose NAT gateway it goes out by, None where it
    does not."""

    zone: str
    way: str
    cidr: str
    gateway: str | None


class RegionNetwork(NamedTuple):
    """A network that fleets of a region share: one of our own with `subnets`, or the adopted `vpc`
    with `adopted` subnets (empty: all). `gateways` are the zones with a NAT gateway; `asked_by`
    is the workload whose declaration it is first in."""

    name: str
    region: str
    vpc: str | None
    adopted: tuple[str, ...]
    subnets: tuple[SubnetPlan, ...]
    gateways: tuple[str, ...]
    endpoints: tuple[str, ...]
    asked_by: str


def network_name(chosen: Chosen) -> str:
    """Which network a fleet stands in: the region's own, or an adopted one."""
    parts = (chosen.network.vpc, *chosen.network.subnets) if chosen.network.vpc else ()
    return "-".join((chosen.verdict.region, *parts))


def networks(plans: Iterable[WorkloadPlan]) -> dict[str, RegionNetwork]:
    """The networks that planned fleets need, by name. Raises `InvalidInput` for a fleet whose zone
    nobody knows, and `ValueError` for one without a machine."""
    fleets: dict[str, list[WorkloadPlan]] = {}
    for plan in plans:
        if plan.chosen is None:
            raise ValueError(f"no machine was chosen for {plan.name}")
        fleets.setdefault(network_name(plan.chosen), []).append(plan)
    problems = [problem for plan in _all(fleets) for problem in _problems(plan)]
    if problems:
        raise InvalidInput(problems)
    return {name: _network(name, fleets[name]) for name in sorted(fleets)}


def _all(fleets: dict[str, list[WorkloadPlan]]) -> Iterator[WorkloadPlan]:
    for several in fleets.values():
        yield from several


def _network(name: str, fleets: list[WorkloadPlan]) -> RegionNetwork:
    chosen = [plan.chosen for plan in fleets if plan.chosen]
    region, asked = chosen[0].verdict.region, [one.network for one in chosen]
    first = fleets[0].name
    if asked[0].vpc:
        return RegionNetwork(name, region, asked[0].vpc, asked[0].subnets, (), (), (), first)
    gateways = _gateways(asked)
    wanted = {(zone, network.egress) for network in asked for zone in network.zones}
    # A gateway stands in a public subnet of its own zone.
    wanted |= {(zone, PUBLIC) for zone in gateways}
    subnets = tuple(_subnet(zone, way, gateways) for zone, way in sorted(wanted))
    endpoints = sorted({service for network in asked for service in network.endpoints})
    return RegionNetwork(name, region, None, (), subnets, gateways, tuple(endpoints), first)


def _gateways(asked: list[NetworkPlan]) -> tuple[str, ...]:
    """The zones of the fleet that has most gateways: the others go out by the same."""
    most = max((network.nat_gateways for network in asked), default=0)
    firsts = sorted(n.zones[:most] for n in asked if n.nat_gateways == most)
    return firsts[0] if most else ()


def _subnet(zone: str, way: str, gateways: tuple[str, ...]) -> SubnetPlan:
    near = zone if zone in gateways else next(iter(gateways), None)
    return SubnetPlan(zone, way, cidr_of(zone, way), near if way == NAT else None)


def cidr_of(zone: str, way: str) -> str:
    """The range of a zone's subnet. Raises `ValueError` for what is no zone's id."""
    found = _ZONE.fullmatch(zone)
    if found is None:
        raise ValueError(f"{zone} is no zone's id")
    place = PLACES - 1 if found["local"] else (int(found["number"]) - 1) % (PLACES - 1)
    block = ipaddress.ip_network(BLOCKS[way])
    return str(list(block.subnets(prefixlen_diff=(PLACES - 1).bit_length()))[place])


def _problems(plan: WorkloadPlan) -> Iterator[Problem]:
    network = plan.chosen.network if plan.chosen else None
    if network is None or network.vpc:
        return
    where = f"workloads.{plan.name}.zones"
    if not network.zones:
        message = "no source says which zones sell the machine, and a network of ours needs one"
        yield Problem(where, message, "name one: `zones: [use1-az1]`, or adopt `network.vpc`")
    for zone in network.zones:
        if not _ZONE.fullmatch(zone):
            message = f"`{zone}` is a zone's name, which is another zone in another account"
            yield Problem(where, message, "name it by id, such as use1-az1")
