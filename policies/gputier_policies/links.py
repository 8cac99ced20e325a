"""How the resources of a stack point at each other."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from gputier_policies.machine import (
    GCP_FROM_TEMPLATE,
    GCP_GROUP,
    GCP_INSTANCE,
    GCP_REGION_GROUP,
    GROUP,
    INSTANCE,
    NODE_GROUP,
    NODE_POOL,
    SPOT_INSTANCE,
)
from gputier_policies.values import UNKNOWN, Resource, Stack

#: Properties by which another resource may name one.
_NAMES = ("id", "name", "arn", "selfLink", "selfLinkUnique", "instanceGroup")

#: What a provider fills in where a program says nothing, of what fleets are read from. A preview
#: does not know it yet; but what a program gave and is not known was made from something.
_PLACE = ("availabilityZone", "availabilityZones", "location", "region", "zone")
_FILLED_IN: Mapping[str, tuple[str, ...]] = {
    INSTANCE: (
        "capacityReservationSpecification",
        "instanceLifecycle",
        "instanceMarketOptions",
    ),
    SPOT_INSTANCE: ("capacityReservationSpecification", "instanceLifecycle"),
    GROUP: ("desiredCapacity",),
    NODE_GROUP: ("capacityType", "instanceTypes"),
    GCP_INSTANCE: ("guestAccelerators", "reservationAffinity", "scheduling"),
    GCP_FROM_TEMPLATE: ("guestAccelerators", "reservationAffinity", "scheduling"),
    GCP_GROUP: ("targetSize",),
    GCP_REGION_GROUP: ("targetSize",),
    NODE_POOL: ("initialNodeCount", "nodeCount", "nodeLocations"),
}
_POLICY, _EITHER = "mixedInstancesPolicy", ("launchTemplate", "launchConfiguration")


def given(stack: Stack) -> Stack:
    """The stack without what nobody gave and the provider will say."""
    return replace(stack, resources=tuple(map(_given, stack.resources)))


def _given(one: Resource) -> Resource:
    names = (*_PLACE, *_FILLED_IN.get(one.type, ()))
    # A group has one or the other.
    if one.type == GROUP and any(one.props.get(word) for word in _EITHER):
        names = (*names, _POLICY)
    blank = {n for n in names if one.props.get(n) is UNKNOWN and not one.sources.get(n)}
    if not blank:
        return one
    return replace(one, props={k: v for k, v in one.props.items() if k not in blank})


class Links:
    """By what a property was made from, which a preview knows even where its value is not, and by
    names and ids. `stack` has what the program gave, and what is known of the rest."""

    def __init__(self, stack: Stack) -> None:
        self.stack = stack = given(stack)
        self._named: dict[str, list[Resource]] = {}
        self._by_urn = {one.urn: one for one in stack.resources if one.urn}
        for one in stack.resources:
            said = (one.props.get(word) for word in _NAMES)
            for name in dict.fromkeys(name for name in said if isinstance(name, str) and name):
                self._named.setdefault(name, []).append(one)

    def follow(self, resource: Resource, path: str, *types: str) -> Resource | None:
        """The resource of one of these types that a property points at; None when it is not here,
        or when several may be meant."""
        value = resource.at(path)
        if isinstance(value, str) and value:
            for key in (value, value.rsplit("/", 1)[-1], value.rsplit(":", 1)[-1]):
                for found in self._named.get(key, ()):
                    if found.type in types:
                        return found
        if value is UNKNOWN or value:
            top = path.split(".")[0].split("[")[0]
            made = [self._by_urn.get(urn) for urn in resource.sources.get(top, ())]
            fitting = [found for found in made if found and found.type in types]
            return fitting[0] if len(fitting) == 1 else None
        return None

    def pointing_at(self, target: Resource, path: str, *types: str) -> Iterator[Resource]:
        """The resources of these types whose property points at `target`."""
        for one in self.stack.of(*types):
            found = self.follow(one, path, target.type)
            if found is not None and found.urn == target.urn:
                yield one
