"""Fewer machines, fewer zones, another way of buying them."""

from __future__ import annotations

from collections.abc import Iterator

from gputier.review.aws_start import market_of, mix_of
from gputier.review.pool import Mix
from gputier.review.preview import Hidden, State, Value
from gputier.review.risk import NOTE, WARNING, Finder, Risk, Rule, Scene, called, count, sentence
from gputier.review.risks_sizes import (
    ASG,
    AWS_INSTANCES,
    AWS_TEMPLATES,
    GCP_INSTANCES,
    GCP_TEMPLATES,
    GKE_NODES,
    SIZED,
    asked,
    has_now,
)
from gputier.review.values import fields, items, yes
from gputier.review.world import at

SHRINKS = Rule("capacity-shrinks", WARNING, "A group may have fewer machines than run in it now.")
CROSSED = Rule("bounds-crossed", WARNING, "A group's minimum is above its maximum.")
ZONE = Rule("zone-lost", WARNING, "Machines may start in fewer zones than before.")
SPOT = Rule("on-demand-to-spot", WARNING, "Machines that stayed may be taken at any time.")
BASE = Rule("on-demand-base-lowered", NOTE, "Fewer machines are sure to stay.")
RULES = (SHRINKS, CROSSED, ZONE, SPOT, BASE)

#: Where a group says in which zones its machines are.
_ZONES = {
    ASG: ("vpcZoneIdentifiers", "availabilityZones"),
    "aws:eks/nodeGroup:NodeGroup": ("subnetIds",),
    "gcp:container/nodePool:NodePool": ("nodeLocations",),
    "gcp:compute/regionInstanceGroupManager:RegionInstanceGroupManager": (
        "distributionPolicyZones",
    ),
}


def _shrinks(scene: Scene) -> Iterator[Risk]:
    for change, before, after in scene.edited(SIZED):
        sizes, was, now = asked(after), asked(before), has_now(before, scene.before)
        least, most = sizes.least, sizes.most
        if least is not None and most is not None and least > most:
            text = f"{sentence(called(after))}: a minimum of {least:g}, a maximum of {most:g}."
            yield CROSSED.at(change.urn, sizes.paths[0], text)
        lowered = most is not None and was.most is not None and most < was.most
        if lowered and now is not None and most is not None and most < now:
            text = f"{sentence(called(after))} {_fewer(most, now)}."
            yield SHRINKS.at(change.urn, sizes.paths[1], text)
        wish = sizes.desired
        fewer = wish is not None and was.desired is not None and wish < was.desired
        if fewer and now is not None and wish is not None and wish < now:
            text = f"{sentence(called(after))} goes from {now:g} machines to {wish:g}."
            yield SHRINKS.at(change.urn, sizes.paths[2], text)


def _fewer(most: float, now: float) -> str:
    return f"may have {most:g} machines, and {now:g} run: {count(now - most, 'machine')} must go"


def _base(is_: Mix, was: Mix) -> str:
    return f"keeps {count(is_.base, 'machine')} on demand, and not {was.base:g}"


def _zones(scene: Scene) -> Iterator[Risk]:
    for change, before, after in scene.edited(_ZONES):
        for name in _ZONES[change.type]:
            was, is_ = _known(before.inputs.get(name)), _known(after.inputs.get(name))
            if was is None or is_ is None or len(is_) >= len(was) or not is_:
                continue
            gone = ", ".join(f"`{one}`" for one in was if one not in is_)
            text = f"{sentence(called(after))} loses {gone}: fewer zones to find machines in."
            yield ZONE.at(change.urn, name, text)


def _known(value: Value) -> list[str] | None:
    found = items(value)
    if isinstance(value, Hidden) or any(not isinstance(one, str) for one in found):
        return None
    return [str(one) for one in found]


def _spot(scene: Scene) -> Iterator[Risk]:
    for change, before, after in scene.edited((*AWS_TEMPLATES, *AWS_INSTANCES)):
        if market_of(after) == "spot" and market_of(before) != "spot":
            text = f"{sentence(called(after))} is bought on spot now: AWS may take it at any time."
            yield SPOT.at(change.urn, "instanceMarketOptions.marketType", text)
    for change, before, after in scene.edited(("aws:eks/nodeGroup:NodeGroup",)):
        if after.get("capacityType") == "SPOT" and before.get("capacityType") != "SPOT":
            text = f"{sentence(called(after))} is bought on spot now: AWS may take it at any time."
            yield SPOT.at(change.urn, "capacityType", text)
    for change, before, after in scene.edited(_GCP_SPOT):
        path, was, is_ = _GCP_SPOT[change.type], _gcp_spot(before), _gcp_spot(after)
        if is_ and not was:
            text = f"{sentence(called(after))} is bought on spot now: Google may take it any time."
            yield SPOT.at(change.urn, path, text)
    for change, before, after in scene.edited((ASG,)):
        yield from _mixed(change.urn, before, after)


#: Where Google's resources say how their machines are bought.
_GCP_SPOT = {
    **dict.fromkeys((*GCP_INSTANCES, *GCP_TEMPLATES), "scheduling"),
    GKE_NODES: "nodeConfig",
}


def _gcp_spot(state: State) -> bool:
    """Spot, or preemptible as it was called before."""
    given = fields(state.inputs.get(_GCP_SPOT[state.type]))
    return given.get("provisioningModel") == "SPOT" or any(
        yes(given.get(name)) for name in ("preemptible", "spot")
    )


def _mixed(urn: str, before: State, after: State) -> Iterator[Risk]:
    path = "mixedInstancesPolicy.instancesDistribution"
    new, old = at(after.inputs, path), at(before.inputs, path)
    is_, was = mix_of(new, "on_demand"), mix_of(old, "on_demand")
    if is_.percent < 100 <= was.percent:
        text = f"{sentence(called(after))} buys on spot now: AWS may take machines at any time."
        yield SPOT.at(urn, f"{path}.onDemandPercentageAboveBaseCapacity", text)
    elif is_.percent < 100 and is_.base < was.base:
        text = f"{sentence(called(after))} {_base(is_, was)}."
        yield BASE.at(urn, f"{path}.onDemandBaseCapacity", text)


FINDERS: tuple[Finder, ...] = (_shrinks, _zones, _spot)
