"""How AWS starts a machine: the types, the disks and the purchase that a resource comes to."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from gputier.review.bill import first
from gputier.review.hours import Action, Sizes, by_actions
from gputier.review.pool import Counts, Kind, Mix
from gputier.review.preview import Hidden, State, Value
from gputier.review.values import maps, number, text, yes
from gputier.review.world import World, at

TEMPLATE = "aws:ec2/launchTemplate:LaunchTemplate"
CONFIGURATION = "aws:ec2/launchConfiguration:LaunchConfiguration"
RESERVATION = "aws:ec2/capacityReservation:CapacityReservation"
HELD = "capacityReservationSpecification.capacityReservationTarget.capacityReservationId"
GROUP_SCHEDULE = "aws:autoscaling/schedule:Schedule"
SCHEDULE = "aws:scheduler/schedule:Schedule"
#: Sunday is 1 in a schedule of AWS (EventBridge scheduler user guide, cron expressions), and 0 for
#: everybody else.
_DAY = re.compile(r"(?<![#L\d])([1-7])(?![\dL])")


class Start(NamedTuple):
    """What one machine is started from: `why` says why its type is not known. `held`: it runs in a
    reservation that is a resource here, and is paid for there."""

    instance_type: str | None
    market: str
    devices: tuple[Mapping[str, Any], ...]
    public_ip: bool
    why: str | None
    held: bool = False


def start_of(world: World, state: State, *paths: str) -> Start:
    """What a resource starts machines from: the template or configuration that one of the paths
    points at, with what it says itself on top."""
    source = next(
        (found for path in paths if (found := world.follow(state, path, TEMPLATE, CONFIGURATION))),
        None,
    )
    own, theirs = _reads(state), _reads(source) if source else Start(None, "", (), False, None)
    told = own.instance_type or theirs.instance_type
    why = own.why or theirs.why
    if source is None and told is None and why is None:
        named = any(at({n: state.get(n)}, n) for n in {p.split(".")[0] for p in paths})
        why = "the template that it starts from is not in the preview" if named else None
    return Start(
        told,
        own.market or theirs.market or "on_demand",
        own.devices or theirs.devices,
        own.public_ip or theirs.public_ip,
        None if told else why or "no instance type is named",
        any(world.follow(one, HELD, RESERVATION) for one in (state, source) if one is not None),
    )


def _reads(state: State) -> Start:
    type_ = state.get("instanceType")
    why = (
        f"its instance type is {type_.value} in the preview" if isinstance(type_, Hidden) else None
    )
    nets = maps(state.get("networkInterfaces"))
    public = yes(state.get("associatePublicIpAddress")) or any(
        yes(net.get("associatePublicIpAddress")) for net in nets
    )
    blocks = [
        *maps(state.get("rootBlockDevice")),
        *maps(state.get("ebsBlockDevices")),
        *maps(state.get("blockDeviceMappings")),
    ]
    return Start(text(type_), market_of(state), tuple(blocks), public, why)


def market_of(state: State) -> str:
    """How it is bought, in the product's words; empty where nothing says."""
    market = text(at({"m": state.get("instanceMarketOptions")}, "m.marketType"))
    if market == "capacity-block":
        return "capacity_block"
    if market == "spot" or number(state.get("spotPrice")) is not None:
        return "spot"
    held = state.get("capacityReservationSpecification")
    target = at({"h": held}, "h.capacityReservationTarget")
    only = text(at({"h": held}, "h.capacityReservationPreference")) == "capacity-reservations-only"
    return "reservation" if target or only else ""


def kinds_of(overrides: Sequence[Any], default: str | None) -> tuple[list[Kind], list[str]]:
    """The types of a list of overrides, in its order, and why some of them are none."""
    kinds: list[Kind] = []
    gaps: list[str] = []
    for one in overrides:
        given = next(iter(maps(one)), {"instanceType": one})
        weight = number(given.get("weightedCapacity")) or 1.0
        name = first((given.get("instanceType"),))
        if name:
            kinds.append(Kind(name, weight=weight))
        elif given.get("instanceRequirements"):
            gaps.append("machines are chosen by their traits when they start: any price may come")
        elif isinstance(given.get("instanceType"), Hidden):
            gaps.append("an instance type is not in the preview")
    if not kinds and not gaps and default:
        kinds.append(Kind(default))
    return kinds, gaps


def mix_of(distribution: Value, firm: str) -> Mix:
    """On-demand base and share of a mixed policy (Auto Scaling API 2011-01-01,
    InstancesDistribution: 100 % above the base is the default)."""
    base = number(at({"d": distribution}, "d.onDemandBaseCapacity")) or 0.0
    percent = number(at({"d": distribution}, "d.onDemandPercentageAboveBaseCapacity"))
    return Mix(firm, base, 100.0 if percent is None else percent)


def counts_of(world: World, group: State) -> tuple[Counts, str | None]:
    """How many machines a group has: on average over a month where actions are scheduled, which a
    note says. Desired, else the minimum."""
    least, most = number(group.get("minSize")), number(group.get("maxSize"))
    sizes = Sizes(least, number(group.get("desiredCapacity")), most)
    actions = [
        Action(
            text(one.get("recurrence")) or "",
            text(one.get("timeZone")) or "UTC",
            _sets(one),
        )
        for one in world.pointing_at(group, "autoscalingGroupName", GROUP_SCHEDULE)
        if one.get("recurrence") is not None  # a single date is no part of an average month
    ]
    return scheduled(sizes, actions)


def _sets(action: State) -> Sizes:
    """What an action sets: -1 leaves a size as it is, and one that is not named is 0 (pulumi_aws,
    autoscaling.Schedule). A most of 0 that nobody named is left out: no group takes it."""
    least, desired, most = (
        _size(action.get(name)) for name in ("minSize", "desiredCapacity", "maxSize")
    )
    return Sizes(least, desired, most if action.get("maxSize") is not None else None)


def _size(value: Value) -> float | None:
    found = 0.0 if value is None else number(value)
    return None if found is None or found < 0 else found


def scheduled(sizes: Sizes, actions: Sequence[Action]) -> tuple[Counts, str | None]:
    """Sizes with their schedule."""
    from_start = max(sizes.desired if sizes.desired is not None else sizes.least or 0.0, 0.0)
    plain = Counts(Sizes(sizes.least, from_start, sizes.most), from_start)
    if not actions:
        return plain, None
    found = by_actions(actions, sizes)
    if found is None:
        return plain, "a scheduled action cannot be read: it counts as running all month"
    sets = [a.sizes.desired or a.sizes.least or 0.0 for a in actions]
    return Counts(found, max(*sets, found.desired or 0.0)), "hours by its scheduled actions"


def five_fields(expression: Value) -> str | None:
    """`cron(0 7 ? * MON-FRI *)` as five fields; None for what cron cannot say."""
    found = re.fullmatch(r"cron\((.+)\)", text(expression) or "")
    fields = found[1].split() if found else []
    if (
        len(fields) != 6
        or fields[5] != "*"
        or re.search(r"[LW#]", fields[2] + fields[4].upper().replace("WED", ""))
    ):
        return None
    minute, hour, day, month, weekday = (field.replace("?", "*") for field in fields[:5])
    weekday = _DAY.sub(lambda m: str(int(m[1]) - 1), weekday)
    return f"{minute} {hour} {day} {month} {weekday}"
