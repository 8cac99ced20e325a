"""What AWS takes together, and what of it a fleet has.

Sources: EC2, the user guide's pages on placement strategies and on capacity blocks; AS, the EC2
Auto Scaling user guide's pages on capacity blocks in launch templates, mixed instances groups and
warm pools; botocore, the API models ec2 2016-11-15 and autoscaling 2011-01-01. Read in 2026.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from gputier_policies.fleets import Fleet
from gputier_policies.links import Links
from gputier_policies.machine import GROUP
from gputier_policies.parts import LONE_AWS
from gputier_policies.traits import Combination, Trait, Traits, both, denied, holds_of, some
from gputier_policies.values import UNKNOWN, Resource, items, known, yes

PLACEMENT_GROUP = "aws:ec2/placementGroup:PlacementGroup"
SUBNET = "aws:ec2/subnet:Subnet"

COMBINATIONS: tuple[Combination, ...] = (
    Combination(
        ("cluster group", "several zones"),
        "a cluster placement group lies in one zone, and the group names several: one subnet",
        "EC2 placement strategies; botocore CreateAutoScalingGroup PlacementGroup",
    ),
    Combination(
        ("cluster group", "spot that stops"),
        "a spot machine in a cluster placement group must be terminated when it is interrupted:"
        ' {"instance_interruption_behavior": "terminate"}',
        "EC2 placement groups",
    ),
    Combination(
        ("capacity block", "placement group"),
        "a capacity block takes no placement group; its machines are close to each other already:"
        " leave the group out",
        "EC2 capacity blocks",
    ),
    Combination(
        ("capacity block", "several zones"),
        "a capacity block lies in one zone, and the group names several: the subnet of the block's",
        "AS launch templates for capacity blocks",
    ),
    Combination(
        ("capacity block", "mixed policy"),
        "a template that asks for a capacity block cannot be in a mixed instances policy:"
        " launch_template=… instead",
        "AS create a group with a capacity reservation",
    ),
    Combination(
        ("capacity block", "warm pool"),
        "a group of a capacity block has no warm pool: leave warm_pool out",
        "AS launch templates for capacity blocks",
    ),
    Combination(
        ("capacity block", "no target"),
        "a capacity block must be named: capacity_reservation_specification={"
        '"capacity_reservation_target": {"capacity_reservation_id": "cr-…"}}',
        "AS launch templates for capacity blocks",
    ),
    Combination(
        ("capacity block", "moving version"),
        "a group of a capacity block names a version of its template, not $Latest or $Default:"
        " version=template.latest_version",
        "AS launch templates for capacity blocks",
    ),
    Combination(
        ("spot template", "mixed policy"),
        "a template in a mixed instances policy must not ask for spot itself; the policy's"
        " on_demand_percentage_above_base_capacity does",
        "AS mixed instances groups",
    ),
    Combination(
        ("warm pool", "spot template"),
        "a group of spot machines has no warm pool: leave warm_pool out",
        "AS warm pools",
    ),
    Combination(
        ("warm pool", "mixed with spot"),
        "a mixed instances policy has a warm pool only without spot:"
        " on_demand_percentage_above_base_capacity=100",
        "AS warm pools",
    ),
    Combination(
        ("hibernated pool", "gpu"),
        "no machine with a GPU can hibernate: pool_state=\"Stopped\"",
        "botocore DescribeInstanceTypes HibernationSupported, false for the 65 GPU types of 2026",
    ),
    Combination(
        ("hibernation", "gpu"),
        "no machine with a GPU can hibernate: leave hibernation out",
        "botocore DescribeInstanceTypes HibernationSupported, false for the 65 GPU types of 2026",
    ),
    Combination(
        ("preference", "target"),
        "a reservation is preferred or named, not both, but for"
        ' "capacity_reservation_preference": "capacity-reservations-only"',
        "botocore CapacityReservationSpecification",
    ),
    Combination(
        ("group preference", "group target"),
        "a group that names a reservation prefers capacity-reservations-only or"
        " capacity-reservations-first",
        "botocore autoscaling CapacityReservationSpecification",
    ),
    Combination(
        ("several targets",),
        "a group takes one reservation or one resource group of them",
        "AS capacity reservations",
    ),
)  # fmt: skip

_RESERVED = "capacityReservationSpecification"
_WITHIN = "mixedInstancesPolicy"


def traits(fleet: Fleet, links: Links) -> Traits:
    """What a fleet has of the table's words."""
    runner = fleet.runner
    starts = [*fleet.templates, *([runner] if runner.type in LONE_AWS else [])]
    group = runner.type == GROUP
    late = fleet.waits or (_WITHIN if runner.at(_WITHIN) is UNKNOWN else "")

    def each(path: str, holds: Callable[[Any], object]) -> Trait:
        if not starts and late:
            return (UNKNOWN, late)
        return some(((holds_of(one.at(path), holds), path) for one in starts), path)

    def its(path: str, holds: Callable[[Any], object]) -> Trait:
        return (holds_of(runner.at(path), holds), path) if group else (False, path)

    placed = _placed(runner, starts)
    spot = each("instanceMarketOptions.marketType", lambda kind: kind == "spot")
    block = each("instanceMarketOptions.marketType", lambda kind: kind == "capacity-block")
    target = each(f"{_RESERVED}.capacityReservationTarget", _given)
    mixed = its(_WITHIN, _given)
    share = f"{_WITHIN}.instancesDistribution.onDemandPercentageAboveBaseCapacity"
    warm = its("warmPool", _given)
    own_target = its(f"{_RESERVED}.capacityReservationTarget", _given)
    firm = ("capacity-reservations-only", "capacity-reservations-first")
    return {
        "gpu": (fleet.gpu, fleet.waits or "instanceType"),
        "placement group": placed,
        "cluster group": _cluster(placed, runner, starts, links),
        "several zones": _zones(runner, links) if group else (False, "vpcZoneIdentifiers"),
        "capacity block": block,
        "spot template": spot,
        "spot that stops": both(
            spot, each(_INTERRUPTED, lambda what: what in ("stop", "hibernate"))
        ),
        "mixed policy": mixed,
        "mixed with spot": both(mixed, its(share, lambda n: _below(n, 100))),
        "warm pool": warm,
        "hibernated pool": both(warm, its("warmPool.poolState", lambda s: s == "Hibernated")),
        "hibernation": _hibernates(starts),
        "no target": denied(target if target[0] is not False else own_target),
        "target": target,
        "preference": each(
            f"{_RESERVED}.capacityReservationPreference",
            lambda word: word is not None and word != "capacity-reservations-only",
        ),
        "group target": own_target,
        "group preference": its(
            f"{_RESERVED}.capacityReservationPreference",
            lambda word: word is not None and word not in firm,
        ),
        "several targets": its(
            f"{_RESERVED}.capacityReservationTarget.capacityReservationIds",
            lambda ids: len(items(ids)) > 1,
        ),
        "moving version": _moving(runner),
    }


_INTERRUPTED = "instanceMarketOptions.spotOptions.instanceInterruptionBehavior"
_NAMES = ("placementGroup", "placementGroupId", "placement.groupName", "placement.groupId")


def _given(value: Any) -> bool:
    return value not in (None, "", {}, [])


def _below(value: Any, most: float) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and value < most


def _placed(runner: Resource, starts: list[Resource]) -> Trait:
    found = ((holds_of(one.at(path), _given), path) for one in [runner, *starts] for path in _NAMES)
    return some(found, "placementGroup")


def _cluster(placed: Trait, runner: Resource, starts: list[Resource], links: Links) -> Trait:
    """Whether the group keeps machines close; of one that is not in the program nobody knows, and
    nothing is said."""
    for one in (runner, *starts):
        for path in _NAMES:
            group = links.follow(one, path, PLACEMENT_GROUP)
            if group:
                return (holds_of(group.at("strategy"), lambda word: word == "cluster"), path)
    return (UNKNOWN if placed[0] is UNKNOWN else False, placed[1])


def _zones(group: Resource, links: Links) -> Trait:
    """Whether a group names several zones: by itself, or by its subnets as far as they are in the
    program."""
    named = group.at("availabilityZones")
    if items(named) and len({str(zone) for zone in items(named)}) > 1:
        return (True, "availabilityZones")
    found: set[str] = set()
    path = "vpcZoneIdentifiers"
    waits = UNKNOWN in (named, group.at(path))
    for subnet in _subnets(group, links):
        zone = subnet.at("availabilityZone") or subnet.at("availabilityZoneId")
        if isinstance(zone, str):
            found.add(zone)
        waits = waits or zone is UNKNOWN
    if len(found) > 1:
        return (True, path)
    return (UNKNOWN if waits else False, path)


def _subnets(group: Resource, links: Links) -> list[Resource]:
    path = "vpcZoneIdentifiers"
    count = len(group.each(path))
    named = [links.follow(group, f"{path}[{n}]", SUBNET) for n in range(count)]
    made = [links.stack.by_urn(urn) for urn in group.sources.get(path, ())]
    return [one for one in [*named, *made] if one and one.type == SUBNET]


def _hibernates(starts: list[Resource]) -> Trait:
    paths = ("hibernation", "hibernationOptions.configured")
    found = ((holds_of(one.at(path), yes), path) for one in starts for path in paths)
    return some(found, "hibernation")


def _moving(runner: Resource) -> Trait:
    """A group's template without a version is the default one (botocore,
    LaunchTemplateSpecification)."""
    path = "launchTemplate.version"
    box, version = runner.at("launchTemplate"), runner.at(path)
    if runner.type != GROUP or (box is None and known(box)):
        return (False, path)
    return (holds_of(version, lambda word: word in (None, "", "$Latest", "$Default")), path)
