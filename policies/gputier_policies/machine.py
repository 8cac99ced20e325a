"""What machines a resource asks for: their type, what is attached, how they are bought, and where.

`machines` reads any resource of either cloud that names a machine, as a program gives it and as an
existing state has it. What is not known yet is UNKNOWN in each of its parts.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

from gputier_policies.values import UNKNOWN, Resource, at, is_map, items, yes

INSTANCE = "aws:ec2/instance:Instance"
SPOT_INSTANCE = "aws:ec2/spotInstanceRequest:SpotInstanceRequest"
TEMPLATE = "aws:ec2/launchTemplate:LaunchTemplate"
CONFIGURATION = "aws:ec2/launchConfiguration:LaunchConfiguration"
GROUP = "aws:autoscaling/group:Group"
EC2_FLEET = "aws:ec2/fleet:Fleet"
SPOT_FLEET = "aws:ec2/spotFleetRequest:SpotFleetRequest"
NODE_GROUP = "aws:eks/nodeGroup:NodeGroup"

GCP_INSTANCE = "gcp:compute/instance:Instance"
GCP_FROM_TEMPLATE = "gcp:compute/instanceFromTemplate:InstanceFromTemplate"
GCP_TEMPLATE = "gcp:compute/instanceTemplate:InstanceTemplate"
GCP_REGION_TEMPLATE = "gcp:compute/regionInstanceTemplate:RegionInstanceTemplate"
GCP_GROUP = "gcp:compute/instanceGroupManager:InstanceGroupManager"
GCP_REGION_GROUP = "gcp:compute/regionInstanceGroupManager:RegionInstanceGroupManager"
NODE_POOL = "gcp:container/nodePool:NodePool"

AWS_TEMPLATES = (TEMPLATE, CONFIGURATION)
GCP_TEMPLATES = (GCP_TEMPLATE, GCP_REGION_TEMPLATE)
POLICY = "mixedInstancesPolicy"

ON_DEMAND, SPOT, RESERVATION = "on_demand", "spot", "reservation"
BLOCK, FLEX = "capacity_block", "flex_start"

#: Families of machines with a GPU in them, so that one that the prices do not know is still seen:
#: AWS's P and G (EC2 instance type naming conventions), Google's A and G (accelerator-optimized
#: machine family). An N1 machine has one where it is attached.
_FAMILIES: Mapping[str, re.Pattern[str]] = {
    "aws": re.compile(r"(?:p|gr?)\d"),
    "gcp": re.compile(r"[ag]\d+[a-z]*-"),
}
_MODELS = {"SPOT": SPOT, "FLEX_START": FLEX, "RESERVATION_BOUND": RESERVATION}


class Machine(NamedTuple):
    """A machine that a resource asks for. `path` is the property that names its type; a type of
    None is chosen by the cloud when it starts, by traits. `guest` is an accelerator that is
    attached, and `guests` how many; where it is part of the type, as in `a2-highgpu-1g`, the type
    tells. `weight`: how much of a group's size one counts for."""

    cloud: str
    type: Any
    path: str
    capacity: Any = ON_DEMAND
    guest: Any = ""
    guests: Any = 0
    weight: float = 1.0

    @property
    def gpu(self) -> Any:
        """Whether it has a GPU: True, False, or UNKNOWN."""
        if self.type is None or (isinstance(self.guest, str) and self.guest):
            return True
        if isinstance(self.type, str) and _FAMILIES[self.cloud].match(self.type):
            return True
        return UNKNOWN if UNKNOWN in (self.type, self.guest) else False

    def __str__(self) -> str:
        if self.type is None:
            return "a machine that is chosen by its traits"
        with_ = f" with {self.guests} × {self.guest}" if self.guest else ""
        return f"{'a machine' if self.type is UNKNOWN else self.type}{with_}"


def machines(resource: Resource) -> list[Machine]:
    """The machines that a resource names itself, in its own order; one that names none, and starts
    what a template says, has none here."""
    read = _READERS.get(resource.type)
    return list(read(resource)) if read else []


def amount(value: Any) -> float | None:
    """A number, also one that is spelt as a text; None where it is none that can be counted."""
    if not isinstance(value, int | float | str) or isinstance(value, bool):
        return None
    try:
        found = float(value)
    except (ValueError, OverflowError):
        return None
    return found if math.isfinite(found) else None


def _named(value: Any) -> bool:
    """Whether it is a type, or one that is not known yet."""
    return value is UNKNOWN or (isinstance(value, str) and bool(value))


def region_of(resource: Resource, *others: Resource) -> Any:
    """Where a resource is: its own region, that of its zone or ARN, of `others` such as the group
    that starts it, of its provider, of the stack's config. None where nothing says."""
    config = {key.split(":", 1)[-1]: value for key, value in _configured(resource).items()}
    cloud = resource.type.split(":", 1)[0]
    for place in (*(one.props for one in (*others, resource)), resource.provider, config):
        found = _place(place, cloud)
        if found is not None:
            return found
    return None


def _configured(resource: Resource) -> Mapping[str, str]:
    cloud = resource.type.split(":", 1)[0]
    return {k: v for k, v in resource.stack.config.items() if k.startswith(f"{cloud}:")}


def _place(props: Mapping[str, Any], cloud: str) -> Any:
    """A zone of AWS that is not known yet is in the region of its provider all the same."""
    words = ("region", "zone", "location", "availabilityZone", "availabilityZones[0]")
    for word in words:
        value = at(props, word)
        if value is UNKNOWN and (cloud != "aws" or word == "region"):
            return UNKNOWN
        if isinstance(value, str) and value:
            return region_of_zone(value)
    parts = str(props.get("arn") or "").split(":")
    return parts[3] if len(parts) > 5 and parts[3] else None


def region_of_zone(place: str) -> str:
    """`us-east-1a`, `us-west-2-lax-1a`, `us-central1-a`, and a region as it is."""
    name = place.rsplit("/", 1)[-1]
    aws = re.match(r"[a-z]{2}(?:-[a-z]+)+-\d", name)
    return aws[0] if aws else re.sub(r"-[a-z]$", "", name)


# --- AWS ------------------------------------------------------------------------------------------


def market_of(resource: Resource, default: Any = ON_DEMAND) -> Any:
    """How a machine of AWS is bought, by what an instance or a template says."""
    kind = resource.at("instanceMarketOptions.marketType")
    if kind is UNKNOWN:
        return UNKNOWN
    if kind == "capacity-block":
        return BLOCK
    bid = resource.at("spotPrice") if resource.type == CONFIGURATION else None
    if SPOT in (kind, resource.at("instanceLifecycle")) or bid:
        return SPOT
    within = "capacityReservationSpecification"
    only = resource.at(f"{within}.capacityReservationPreference") == "capacity-reservations-only"
    target = resource.at(f"{within}.capacityReservationTarget")
    if target or only:
        return RESERVATION
    return UNKNOWN if bid is UNKNOWN or target is UNKNOWN else default


def _aws(resource: Resource) -> Iterator[Machine]:
    market = SPOT if resource.type == SPOT_INSTANCE else market_of(resource)
    named = resource.at("instanceType")
    if _named(named):
        yield Machine("aws", named, "instanceType", market)
    elif _wants_gpu(resource.at("instanceRequirements")):
        yield Machine("aws", None, "instanceRequirements", market)


def _wants_gpu(requirements: Any) -> bool:
    """Whether a choice by traits asks for a GPU; of another kind of accelerator it says so."""
    if not is_map(requirements):
        return False
    least = at(requirements, "acceleratorCount.min")
    types = items(requirements.get("acceleratorTypes"))
    makers = items(requirements.get("acceleratorManufacturers"))
    if (types and "gpu" not in types) or (makers and "nvidia" not in makers):
        return False
    names = items(requirements.get("acceleratorNames"))
    return bool(types or makers or names or (isinstance(least, int | float) and least > 0))


def _overridden(overrides: str, market: Any) -> Callable[[Resource], Iterator[Machine]]:
    def read(resource: Resource) -> Iterator[Machine]:
        for count, one in enumerate(resource.each(overrides)):
            yield from _override(one, f"{overrides}[{count}]", market)

    return read


def _override(one: Any, path: str, market: Any) -> Iterator[Machine]:
    named = at(one, "instanceType")
    weight = at(one, "weightedCapacity")
    per = max(amount(weight) or 1.0, 1.0)
    if _named(named):
        yield Machine("aws", named, f"{path}.instanceType", market, weight=per)
    elif _wants_gpu(at(one, "instanceRequirements")):
        yield Machine("aws", None, f"{path}.instanceRequirements", market, weight=per)


def _group(resource: Resource) -> Iterator[Machine]:
    yield from _overridden(f"{POLICY}.launchTemplate.overrides", ON_DEMAND)(resource)


def _requested(resource: Resource) -> Iterator[Machine]:
    firm = resource.at("targetCapacitySpecification.defaultTargetCapacityType")
    market = SPOT if resource.type == SPOT_FLEET or firm == SPOT else ON_DEMAND
    for count in range(len(resource.each("launchTemplateConfigs"))):
        yield from _overridden(f"launchTemplateConfigs[{count}].overrides", market)(resource)
    yield from _overridden("launchSpecifications", market)(resource)


def _node_group(resource: Resource) -> Iterator[Machine]:
    kind = resource.at("capacityType")
    words = {"SPOT": SPOT, "CAPACITY_BLOCK": BLOCK}
    market = UNKNOWN if kind is UNKNOWN else words.get(str(kind), ON_DEMAND)
    for count, named in enumerate(resource.each("instanceTypes")):
        if _named(named):
            yield Machine("aws", named, f"instanceTypes[{count}]", market)


# --- Google Cloud ---------------------------------------------------------------------------------


def _gcp(resource: Resource, within: str = "") -> Iterator[Machine]:
    named = resource.at(f"{within}machineType")
    if not _named(named):
        return
    guest, guests = _guest(resource.at(f"{within}guestAccelerators"))
    if isinstance(named, str) and _FAMILIES["gcp"].match(_last(named)):
        guest, guests = "", 0  # those of its type, which the provider lists as well
    capacity = _bought(resource, within)
    yield Machine("gcp", _last(named), f"{within}machineType", capacity, guest, guests)


def _guest(value: Any) -> tuple[Any, Any]:
    for one in items(value):
        label, count = _last(at(one, "type")), at(one, "count")
        if not _named(label) or count == 0:
            continue
        many = amount(count)
        name = label.removesuffix("-vws") if isinstance(label, str) else label
        return name, UNKNOWN if many is None else int(many)
    return "", 0


def _last(value: Any) -> Any:
    """The last part of a link."""
    return value.rsplit("/", 1)[-1] if isinstance(value, str) else value


def _bought(resource: Resource, within: str) -> Any:
    found: Any = ON_DEMAND
    for place in [resource.at(within.rstrip("."))] if within else resource.each("scheduling"):
        model = at(place, "provisioningModel")
        if any(yes(at(place, flag)) for flag in ("preemptible", "spot")):
            return SPOT
        flags = (model, at(place, "preemptible"), at(place, "spot"))
        if isinstance(model, str) and model:
            found = _MODELS.get(model, ON_DEMAND)
        elif any(flag is UNKNOWN for flag in flags):
            found = UNKNOWN
        if yes(at(place, "flexStart")):
            found = FLEX
    held = resource.at(f"{within}reservationAffinity.type")
    if held is None:
        held = resource.at(f"{within}reservationAffinity.consumeReservationType")
    return RESERVATION if found == ON_DEMAND and held == "SPECIFIC_RESERVATION" else found


def _selected(resource: Resource) -> Iterator[Machine]:
    """The types of a flexible group; how they are bought is its template's to say."""
    within = "instanceFlexibilityPolicy.instanceSelections"
    for one, selection in enumerate(resource.each(within)):
        path = f"{within}[{one}].machineTypes"
        for count, named in enumerate(items(at(selection, "machineTypes"))):
            if _named(named):
                yield Machine("gcp", _last(named), f"{path}[{count}]")


def _node_pool(resource: Resource) -> Iterator[Machine]:
    yield from _gcp(resource, "nodeConfig.")


_READERS: Mapping[str, Callable[[Resource], Iterator[Machine]]] = {
    INSTANCE: _aws,
    SPOT_INSTANCE: _aws,
    TEMPLATE: _aws,
    CONFIGURATION: _aws,
    GROUP: _group,
    EC2_FLEET: _requested,
    SPOT_FLEET: _requested,
    NODE_GROUP: _node_group,
    GCP_INSTANCE: _gcp,
    GCP_FROM_TEMPLATE: _gcp,
    GCP_TEMPLATE: _gcp,
    GCP_REGION_TEMPLATE: _gcp,
    GCP_REGION_GROUP: _selected,
    NODE_POOL: _node_pool,
}
#: Every type that `machines` reads.
NAME_MACHINES = frozenset(_READERS)
