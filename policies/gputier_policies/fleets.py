"""The fleets of a stack: what runs machines, joined with what they start from and with the clock
and the autoscaler that change how many there are."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from gputier_policies import hours
from gputier_policies.links import Links
from gputier_policies.machine import (
    AWS_TEMPLATES,
    EC2_FLEET,
    GCP_FROM_TEMPLATE,
    GCP_GROUP,
    GCP_INSTANCE,
    GCP_REGION_GROUP,
    GCP_TEMPLATES,
    GROUP,
    INSTANCE,
    NODE_GROUP,
    NODE_POOL,
    ON_DEMAND,
    POLICY,
    SPOT,
    SPOT_FLEET,
    SPOT_INSTANCE,
    Machine,
    amount,
    machines,
    market_of,
    region_of,
)
from gputier_policies.values import UNKNOWN, Resource, Stack, at, items, yes

GROUP_SCHEDULE = "aws:autoscaling/schedule:Schedule"
SCHEDULE = "aws:scheduler/schedule:Schedule"
SCALING_POLICY = "aws:autoscaling/policy:Policy"
SCALERS = ("gcp:compute/autoscaler:Autoscaler", "gcp:compute/regionAutoscaler:RegionAutoscaler")
RESOURCE_POLICY = "gcp:compute/resourcePolicy:ResourcePolicy"

LONE = (INSTANCE, SPOT_INSTANCE, GCP_INSTANCE, GCP_FROM_TEMPLATE)
#: What runs machines.
RUN_MACHINES = (
    *LONE, GROUP, EC2_FLEET, SPOT_FLEET, NODE_GROUP, GCP_GROUP, GCP_REGION_GROUP, NODE_POOL
)  # fmt: skip
_MIXED = f"{POLICY}.launchTemplate.launchTemplateSpecification"
#: Where a resource says what it starts machines from.
_STARTS: Mapping[str, tuple[str, ...]] = {
    GROUP: ("launchTemplate.id", "launchTemplate.name", "launchConfiguration",
            f"{_MIXED}.launchTemplateId", f"{_MIXED}.launchTemplateName"),
    INSTANCE: ("launchTemplate.id", "launchTemplate.name"),
    SPOT_INSTANCE: ("launchTemplate.id", "launchTemplate.name"),
    NODE_GROUP: ("launchTemplate.id", "launchTemplate.name"),
    GCP_FROM_TEMPLATE: ("sourceInstanceTemplate",),
}  # fmt: skip


class Fleet(NamedTuple):
    """What one resource runs. `machines` are the kinds that it may start, any of them. Where that
    cannot be told, `waits` is the property that will, or `elsewhere` the one that points at
    something that is not in this stack.

    `most` is how many there may be (None: nothing says, UNKNOWN: not known yet), `hours` how many
    a month all of them may run, `zero` how they come to none: `schedule`, `scales` or nothing.
    The first `base` and `percent` of the rest are bought as the machines say, what remains on spot.
    """

    runner: Resource
    templates: tuple[Resource, ...]
    machines: tuple[Machine, ...]
    region: Any
    least: Any
    most: Any
    sized: str  # the property that says how many
    hours: float = hours.MONTH
    zero: str = ""
    base: Any = 0
    percent: Any = 100
    waits: str = ""
    elsewhere: str = ""
    notes: tuple[str, ...] = ()

    @property
    def gpu(self) -> Any:
        """Whether a machine of it may have a GPU: True, False, or UNKNOWN."""
        found = [machine.gpu for machine in self.machines]
        if True in found:
            return True
        return UNKNOWN if self.waits or self.elsewhere or UNKNOWN in found else False

    @property
    def waiting(self) -> str:
        """The property that will say whether it has one; empty where it is known, or never is."""
        unknown = (m.path for m in self.machines if m.gpu is UNKNOWN)
        return self.waits or next(unknown, "")

    @property
    def source(self) -> Resource:
        """What names its machines: itself, or what it starts them from."""
        return next((one for one in (self.runner, *self.templates) if machines(one)), self.runner)


def fleets(stack: Stack, links: Links | None = None) -> list[Fleet]:
    """Everything in a stack that runs machines, with or without GPUs."""
    found = links or Links(stack)
    return [fleet_of(one, found) for one in found.stack.of(*RUN_MACHINES)]


def fleet_of(runner: Resource, links: Links) -> Fleet:
    """What a resource runs, joined."""
    templates, missing = _templates(runner, links)
    kinds = _kinds(runner, templates)
    base, percent, kinds = _mix(runner, kinds)
    here = kinds or not missing
    fleet = Fleet(
        runner=runner,
        templates=tuple(templates),
        machines=tuple(kinds),
        region=region_of(templates[0], runner) if templates else region_of(runner),
        least=None,
        most=1,
        sized="",
        base=base,
        percent=percent,
        waits="" if here or runner.at(missing) is not UNKNOWN else missing,
        elsewhere="" if here or runner.at(missing) is UNKNOWN else missing,
    )
    return _sized(fleet, links)


# --- what it starts -------------------------------------------------------------------------------


def _starts(runner: Resource) -> tuple[str, ...]:
    if runner.type in (GCP_GROUP, GCP_REGION_GROUP):
        count = len(runner.each("versions"))
        return tuple(f"versions[{n}].instanceTemplate" for n in range(count))
    if runner.type in (EC2_FLEET, SPOT_FLEET):
        configs = [f"launchTemplateConfigs[{n}].launchTemplateSpecification"
                   for n in range(len(runner.each("launchTemplateConfigs")))]  # fmt: skip
        spot = runner.type == SPOT_FLEET
        words = ("id", "name") if spot else ("launchTemplateId", "launchTemplateName")
        return tuple(f"{config}.{word}" for config in configs for word in words)
    return _STARTS.get(runner.type, ())


def _templates(runner: Resource, links: Links) -> tuple[list[Resource], str]:
    """What a runner starts machines from, and the first property that points at something else."""
    found: list[Resource] = []
    missing = ""
    for path in _starts(runner):
        one = links.follow(runner, path, *AWS_TEMPLATES, *GCP_TEMPLATES)
        if one is not None:
            found += [] if one in found else [one]
        elif not missing and (runner.at(path) or runner.at(path) is UNKNOWN):
            missing = path
    return found, "" if found else missing


def _kinds(runner: Resource, templates: Sequence[Resource]) -> list[Machine]:
    """Of a runner that names its own machines these, else those of what it starts from."""
    theirs = [machine for one in templates for machine in machines(one)]
    own = machines(runner)
    if not own:
        return theirs
    market = next((one.capacity for one in theirs), None)
    if market is None and templates:
        market = market_of(templates[0])
    if market in (None, ON_DEMAND) or runner.type in LONE:
        return own
    return [m._replace(capacity=market) if m.capacity == ON_DEMAND else m for m in own]


def _mix(runner: Resource, kinds: list[Machine]) -> tuple[Any, Any, list[Machine]]:
    """How many are not on spot: a number and the percentage of the rest (Auto Scaling API
    2011-01-01, InstancesDistribution: 100 is the default)."""
    within = f"{POLICY}.instancesDistribution"
    if runner.type == GROUP and runner.at(POLICY) is not None:
        base = runner.at(f"{within}.onDemandBaseCapacity")
        percent = runner.at(f"{within}.onDemandPercentageAboveBaseCapacity")
        return _or(base, 0.0), _or(percent, 100.0), kinds
    firm = None
    if runner.type == SPOT_FLEET:
        firm = _or(runner.at("onDemandTargetCapacity"), 0.0)
    elif runner.type == EC2_FLEET and any(one.capacity == SPOT for one in kinds):
        firm = _or(runner.at("targetCapacitySpecification.onDemandTargetCapacity"), 0.0)
    if firm is not None:
        return firm, 0, [one._replace(capacity=ON_DEMAND) for one in kinds]
    return 0, 100, kinds


# --- how many, and when ---------------------------------------------------------------------------


def _sized(fleet: Fleet, links: Links) -> Fleet:
    kind = fleet.runner.type
    if kind == GROUP:
        return _auto_scaling(fleet, links)
    if kind in (GCP_GROUP, GCP_REGION_GROUP):
        return _managed(fleet, links)
    if kind in (INSTANCE, SPOT_INSTANCE):
        return _by_scheduler(fleet, links)
    if kind in (GCP_INSTANCE, GCP_FROM_TEMPLATE):
        return _by_policy(fleet, links)
    if kind == NODE_POOL:
        return _pool(fleet)
    runner = fleet.runner
    if kind == NODE_GROUP:
        least = runner.at("scalingConfig.minSize")
        return _replaced(fleet, least, runner.at("scalingConfig.maxSize"), "scalingConfig.maxSize")
    path = "targetCapacity"
    if kind == EC2_FLEET:
        path = "targetCapacitySpecification.totalTargetCapacity"
    return _replaced(fleet, runner.at(path), runner.at(path), path)


def _replaced(fleet: Fleet, least: Any, most: Any, sized: str) -> Fleet:
    """One whose size an autoscaler keeps between two numbers scales to zero where the lower is."""
    zero = "scales" if amount(least) == 0 else ""
    return fleet._replace(least=_count(least), most=_count(most), sized=sized, zero=zero)


def _auto_scaling(fleet: Fleet, links: Links) -> Fleet:
    runner = fleet.runner
    most, least = _count(runner.at("maxSize")), _count(runner.at("minSize"))
    fleet = fleet._replace(least=least, most=most, sized="maxSize")
    schedules = list(links.pointing_at(runner, "autoscalingGroupName", GROUP_SCHEDULE))
    actions = list(_actions(schedules))
    scaled = any(True for _ in links.pointing_at(runner, "autoscalingGroupName", SCALING_POLICY))
    # Without a size of its own, something outside of the program says how many there are.
    if amount(least) == 0 and (scaled or not amount(runner.at("desiredCapacity"))):
        fleet = fleet._replace(zero="scales")
    return _by_actions(fleet, actions) if actions and isinstance(most, float) else fleet


def _by_actions(fleet: Fleet, actions: Sequence[hours.Action]) -> Fleet:
    found = hours.at_most(fleet.most, actions)
    if found is None:
        stops = any(action.desired == 0 for action in actions)
        said = "a scheduled action cannot be read: it counts as running all month"
        return _said(fleet._replace(zero="schedule" if stops else fleet.zero), said)
    if not found.peak:
        return fleet._replace(hours=0.0, zero="schedule")
    return fleet._replace(
        most=found.peak,
        hours=hours.hours_of(found),
        zero="schedule" if found.zero else fleet.zero,
    )


def _actions(schedules: Iterable[Resource]) -> Iterator[hours.Action]:
    """Those that recur: a single date is no part of an average month. -1 leaves a size as it is,
    and one that is not named is 0 (pulumi_aws, autoscaling.Schedule); a most of 0 that nobody named
    is left out, as no group takes it."""
    for one in schedules:
        if not one.at("recurrence"):
            continue
        least, desired, most = (
            amount(one.at(name)) for name in ("minSize", "desiredCapacity", "maxSize")
        )
        named = [0.0 if size is None else size for size in (least, desired)]
        left = [None if size < 0 else size for size in (*named, -1.0 if most is None else most)]
        zone = _text(one.at("timeZone")) or "UTC"
        yield hours.Action(_text(one.at("recurrence")), zone, *left)


def _by_scheduler(fleet: Fleet, links: Links) -> Fleet:
    """A lone machine that EventBridge Scheduler starts and stops."""
    calls: dict[str, list[tuple[str, str]]] = {"start": [], "stop": []}
    machine = fleet.runner
    for one in links.stack.of(SCHEDULE):
        meant = machine.urn in one.sources.get("target", ()) or (
            bool(_text(machine.at("id"))) and machine.at("id") in _dumped(one.at("target.input"))
        )
        call = _text(one.at("target.arn"))
        for word, found in calls.items():
            if meant and call.endswith(f"{word}Instances"):
                cron = hours.five_fields(_text(one.at("scheduleExpression"))) or ""
                found.append((cron, _text(one.at("scheduleExpressionTimezone")) or "UTC"))
    return _between(fleet, calls["start"], calls["stop"])


def _by_policy(fleet: Fleet, links: Links) -> Fleet:
    """A machine of Google's that a resource policy starts and stops."""
    if fleet.runner.at("desiredStatus") in ("TERMINATED", "SUSPENDED"):
        return fleet._replace(hours=0.0, zero="schedule")
    policy = links.follow(fleet.runner, "resourcePolicies[0]", RESOURCE_POLICY)
    policy = policy or links.follow(fleet.runner, "resourcePolicies", RESOURCE_POLICY)
    when = policy.at("instanceSchedulePolicy") if policy else None
    zone = _text(at(when, "timeZone")) or "UTC"
    starts = [(_text(at(when, "vmStartSchedule.schedule")), zone)]
    stops = [(_text(at(when, "vmStopSchedule.schedule")), zone)]
    return _between(fleet, [s for s in starts if s[0]], [s for s in stops if s[0]])


def _between(
    fleet: Fleet, starts: Sequence[tuple[str, str]], stops: Sequence[tuple[str, str]]
) -> Fleet:
    if not stops:
        return fleet
    if not starts:
        # It stops each time and somebody starts it by hand: how long it runs nobody can say.
        return fleet._replace(zero="schedule")
    found = hours.running(starts, stops)
    if found is None:
        said = "its schedule cannot be read: it counts as running all month"
        return _said(fleet._replace(zero="schedule"), said)
    return fleet._replace(hours=found, zero="schedule")


def _said(fleet: Fleet, note: str) -> Fleet:
    return fleet._replace(notes=(*fleet.notes, note))


def _managed(fleet: Fleet, links: Links) -> Fleet:
    """A managed group of Google's: its target size, or its autoscaler's bounds."""
    scaler = next(links.pointing_at(fleet.runner, "target", *SCALERS), None)
    size = _count(fleet.runner.at("targetSize"))
    if scaler is None:
        return fleet._replace(least=size, most=size, sized="targetSize")
    policy = scaler.at("autoscalingPolicy")
    least, most = _count(at(policy, "minReplicas")), _count(at(policy, "maxReplicas"))
    fleet = fleet._replace(least=least, most=most, sized="autoscalingPolicy.maxReplicas")
    spans = [one for one in items(at(policy, "scalingSchedules")) if not yes(at(one, "disabled"))]
    signals = ("cpuUtilization", "loadBalancingUtilization", "metrics")
    if amount(least) != 0:
        return fleet
    if not spans or any(at(policy, word) for word in signals):
        return fleet._replace(zero="scales")
    # Nothing but the clock asks for machines.
    asked = hours.asked_for(
        (_text(at(one, "schedule")), _text(at(one, "timeZone")) or "UTC",
         amount(at(one, "durationSec")) or 0.0)
        for one in spans
    )  # fmt: skip
    if asked is None:
        said = "a scaling schedule cannot be read: it counts as running all month"
        return _said(fleet._replace(zero="schedule"), said)
    return fleet._replace(hours=asked, zero="schedule")


def _pool(fleet: Fleet) -> Fleet:
    """Of a node pool sizes are by zone, but for the totals; a regional one without a list of zones
    has three."""
    runner = fleet.runner
    place = _text(runner.at("location"))
    zonal = place.count("-") > 1
    zones = len(runner.each("nodeLocations")) or (1 if zonal or not place else 3)
    if runner.at("autoscaling") is None:
        asked = runner.at("nodeCount")
        path = "initialNodeCount" if asked is None else "nodeCount"
        size = _times(runner.at(path), zones)
        return fleet._replace(least=size, most=size, sized=path)
    bounds: list[Any] = []
    for word in ("Min", "Max"):
        total = runner.at(f"autoscaling.total{word}NodeCount")
        each = runner.at(f"autoscaling.{word.lower()}NodeCount")
        bounds.append(_count(total) if total or total is UNKNOWN else _times(each, zones))
    total = runner.at("autoscaling.totalMaxNodeCount")
    path = "autoscaling.totalMaxNodeCount" if total else "autoscaling.maxNodeCount"
    return _replaced(fleet, 0 if bounds[0] is None else bounds[0], bounds[1], path)


def _times(value: Any, zones: int) -> Any:
    found = _count(value)
    return found * zones if isinstance(found, float) else found


# --- values ---------------------------------------------------------------------------------------


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""


def _or(value: Any, default: float) -> Any:
    found = _count(value)
    return default if found is None else found


def _count(value: Any) -> Any:
    """A number, None where there is none, UNKNOWN where it is not known."""
    return UNKNOWN if value is UNKNOWN else amount(value)


def _dumped(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, default=str)
