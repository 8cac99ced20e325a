"""The networks of a stack on Google: what the fleets of a region share, and the addresses in it.

A network of Google's spans regions, and its subnets span the zones of one. One network of our own
for each region all the same: what its fleets need comes and goes with them. An address range
follows from the way out, or from an interface's place on the machine, never from their number.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from gputier.errors import InvalidInput, Problem
from gputier.plan.model import WorkloadPlan
from gputier.plan.rails import Rail
from gputier.plan.region import BLOCKS, NAT, network_name


class SubnetPlan(NamedTuple):
    """A subnet of our own for machines that go out by `way`."""

    way: str
    cidr: str


class RegionNetwork(NamedTuple):
    """A network that fleets of a region share: one of our own with `subnets`, or the adopted `vpc`
    with its `adopted` subnet (None: the only one of the region). `nat` says whether a subnet goes
    out by a gateway; `rails` are the networks beside it that fabrics need; `asked_by` is the
    workload whose declaration it is first in."""

    name: str
    region: str
    vpc: str | None
    adopted: str | None
    subnets: tuple[SubnetPlan, ...]
    nat: bool
    rails: tuple[Rail, ...]
    asked_by: str


def networks(plans: Iterable[WorkloadPlan]) -> dict[str, RegionNetwork]:
    """The networks that planned fleets need, by name. Raises `InvalidInput` for a fleet whose zone
    nobody knows, or that names several subnets, and `ValueError` for one without a machine."""
    fleets: dict[str, list[WorkloadPlan]] = {}
    for plan in plans:
        if plan.chosen is None:
            raise ValueError(f"no machine was chosen for {plan.name}")
        fleets.setdefault(network_name(plan.chosen), []).append(plan)
    problems = [problem for several in fleets.values() for p in several for problem in _problems(p)]
    if problems:
        raise InvalidInput(problems)
    return {name: _network(name, fleets[name]) for name in sorted(fleets)}


def _network(name: str, fleets: list[WorkloadPlan]) -> RegionNetwork:
    chosen = [plan.chosen for plan in fleets if plan.chosen]
    asked = [one.network for one in chosen]
    first, own = asked[0], asked[0].vpc is None
    ways = sorted({network.egress for network in asked}) if own else []
    return RegionNetwork(
        name=name,
        region=chosen[0].verdict.region,
        vpc=first.vpc,
        adopted=next(iter(first.subnets), None),
        subnets=tuple(SubnetPlan(way, BLOCKS[way]) for way in ways),
        nat=NAT in ways,
        rails=tuple(sorted({rail for network in asked for rail in network.rails})),
        asked_by=fleets[0].name,
    )


def _problems(plan: WorkloadPlan) -> Iterator[Problem]:
    network = plan.chosen.network if plan.chosen else None
    if network is None:
        return
    at = f"workloads.{plan.name}"
    if not network.zones:
        message = "no source says which zones sell the machine, and a group is told its zones"
        yield Problem(f"{at}.zones", message, "name one: `zones: [us-central1-a]`")
    if len(network.subnets) > 1:
        message = f"{len(network.subnets)} subnets are named, and a subnet of gcp spans all zones"
        yield Problem(f"{at}.network.subnets", message, "name the one of the machine's region")
