"""AWS: what runs machines — instances, groups, fleets — and what they are started from."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

from gputier.review.aws_start import (
    SCHEDULE,
    Start,
    counts_of,
    five_fields,
    kinds_of,
    mix_of,
    start_of,
)
from gputier.review.aws_storage import devices
from gputier.review.bill import Bill, hidden
from gputier.review.cost import Cost, Elsewhere, Pricer, Unpriced
from gputier.review.hours import Sizes, hours_of
from gputier.review.pool import (
    Counts,
    Kind,
    Mix,
    bill_machines,
    in_reservation,
    pool_cost,
)
from gputier.review.preview import State
from gputier.review.values import items, maps, number, text
from gputier.review.world import World, at
from gputier.units import HOURS_PER_MONTH

NO_REGION = Unpriced("nothing says which region it is in")
POLICY = "mixedInstancesPolicy"


def extras_of(start: Start, hours: float = HOURS_PER_MONTH) -> Callable[[Bill, float], None]:
    """The disks and the public address of so many machines; an address while they run."""

    def extras(bill: Bill, times: float) -> None:
        devices(bill, start.devices, times)
        if not start.devices and times:
            bill.gaps.append("disk: its image says how large the root is")
        if start.public_ip:
            bill.hours("public IPv4", "public-ipv4-hour", times, hours)

    return extras


def instance(world: World, state: State) -> Cost:
    """One machine. One that a schedule starts and stops keeps its disks."""
    region = world.region(state)
    if region is None:
        return NO_REGION
    start = start_of(world, state, "launchTemplate.id", "launchTemplate.name")
    if start.instance_type is None:
        return Unpriced(start.why or "no instance type is named")
    bill = Bill(world, "aws", region)
    hours = _running(world, state, bill)
    share = hours / HOURS_PER_MONTH
    if text(state.get("tenancy")) in ("dedicated", "host"):
        bill.gaps.append(f"{state.get('tenancy')} tenancy costs more than the shared machine")
    pool = bill_machines(
        bill, [Kind(start.instance_type)], Mix(start.market), Counts(Sizes(None, share, None), 1.0)
    )
    if start.held:
        pool = in_reservation(bill, pool)
    whole = pool if pool is None else pool._replace(average=1.0)
    return pool_cost(bill, whole, extras_of(start, hours))


def _running(world: World, state: State, bill: Bill) -> float:
    """Hours a month, by the schedules of AWS that start and stop this instance."""
    starts: list[tuple[str | None, str]] = []
    stops: list[str | None] = []
    for one in world.of_type(SCHEDULE):
        target = one.get("target")
        meant = state.urn in one.dependencies.get("target", ()) or (
            state.id is not None and state.id in json.dumps(at(target, "input"), default=str)
        )
        call = text(at(target, "arn")) or ""
        if meant and call.endswith(("startInstances", "stopInstances")):
            cron = five_fields(one.get("scheduleExpression"))
            zone = text(one.get("scheduleExpressionTimezone")) or "UTC"
            if call.endswith("startInstances"):
                starts.append((cron, zone))
            else:
                stops.append(cron)
    if not starts or len(starts) != len(stops):
        return HOURS_PER_MONTH
    entries = [(s, e, z) for (s, z), e in zip(starts, stops, strict=True) if s and e]
    hours = hours_of(entries) if len(entries) == len(starts) else None
    if hours is None:
        bill.notes.append("its schedule cannot be read: it counts as running all month")
        return HOURS_PER_MONTH
    bill.notes.append("hours by its schedule")
    return hours


def group(world: World, state: State) -> Cost:
    """An Auto Scaling group: its template's machine, or a mixed policy as a range."""
    region = world.region(state)
    if region is None:
        return NO_REGION
    within = f"{POLICY}.launchTemplate.launchTemplateSpecification"
    paths = ("launchTemplate.id", "launchTemplate.name", "launchConfiguration",
             f"{within}.launchTemplateId", f"{within}.launchTemplateName")  # fmt: skip
    start = start_of(world, state, *paths)
    policy = state.get(POLICY)
    bill = Bill(world, "aws", region)
    overrides = items(at(policy, "launchTemplate.overrides"))
    kinds, gaps = kinds_of(overrides, start.instance_type)
    bill.gaps += gaps
    if not kinds:
        return Unpriced("; ".join(gaps) or start.why or "no instance type is named")
    mix = mix_of(at(policy, "instancesDistribution"), "on_demand") if policy else Mix(start.market)
    sizing = "minSize" if state.get("desiredCapacity") is None else "desiredCapacity"
    if why := hidden(state, sizing):
        return Unpriced(why)
    counts, note = counts_of(world, state)
    if note:
        bill.notes.append(note)
    if state.get("warmPool"):
        bill.gaps.append("its warm pool's machines")
    pool = bill_machines(bill, kinds, _firm(mix), counts)
    if start.held and not policy:
        pool = in_reservation(bill, pool)
    return pool_cost(bill, pool, extras_of(start))


def _firm(mix: Mix) -> Mix:
    """A template that asks for spot is a pool that is all spot."""
    return Mix("on_demand", 0.0, 0.0) if mix.firm == "spot" else mix


def spot_request(world: World, state: State) -> Cost:
    region = world.region(state)
    if region is None:
        return NO_REGION
    start = start_of(world, state, "launchTemplate.id")
    if start.instance_type is None:
        return Unpriced(start.why or "no instance type is named")
    bill = Bill(world, "aws", region)
    counts = Counts(Sizes(None, 1.0, None), 1.0)
    pool = bill_machines(bill, [Kind(start.instance_type)], Mix("on_demand", 0.0, 0.0), counts)
    return pool_cost(bill, pool, extras_of(start))


def fleet(world: World, state: State) -> Cost:
    """An EC2 fleet: its overrides as a range, its targets as on-demand and spot."""
    target = state.get("targetCapacitySpecification")
    total = number(at(target, "totalTargetCapacity"))
    spot = number(at(target, "spotTargetCapacity"))
    firm = number(at(target, "onDemandTargetCapacity")) or 0.0
    if text(at(target, "defaultTargetCapacityType")) != "spot":
        firm = (total or 0.0) - (spot or 0.0)
    return _requested(world, state, total, firm)


def spot_fleet(world: World, state: State) -> Cost:
    """A spot fleet request: all on spot but what is asked for on demand."""
    firm = number(state.get("onDemandTargetCapacity")) or 0.0
    return _requested(world, state, number(state.get("targetCapacity")), firm)


def _requested(world: World, state: State, total: float | None, firm: float) -> Cost:
    """So many units of what a request starts, the first `firm` of them on demand."""
    region = world.region(state)
    if region is None:
        return NO_REGION
    bill = Bill(world, "aws", region)
    start, overrides = _started(world, state)
    kinds, gaps = kinds_of(overrides, None)
    bill.gaps += gaps
    if not kinds:
        return Unpriced("; ".join(gaps) or start.why or "no instance type is named")
    if total is None:
        return Unpriced("its target capacity is not in the preview")
    mix = Mix("on_demand", firm, 0.0) if firm < total else Mix()
    pool = bill_machines(bill, kinds, mix, Counts(Sizes(None, total, None), total))
    return pool_cost(bill, pool, extras_of(start))


def _started(world: World, state: State) -> tuple[Start, list[Any]]:
    """What a request starts machines from, and every type that it may take."""
    start = Start(None, "", (), False, "no instance type is named")
    overrides: list[Any] = []
    for count, config in enumerate(maps(state.get("launchTemplateConfigs"))):
        within = f"launchTemplateConfigs[{count}].launchTemplateSpecification"
        paths = [f"{within}.{name}" for name in ("launchTemplateId", "id", "launchTemplateName")]
        found = start_of(world, state, *paths)
        start = found if start.instance_type is None else start
        named = [{"instanceType": found.instance_type}] if found.instance_type else []
        overrides += items(config.get("overrides")) or named
    overrides += maps(state.get("launchSpecifications"))
    return start, overrides


def reservation(world: World, state: State) -> Cost:
    """Capacity that is held is paid for whether machines run in it or not."""
    region = world.region(state)
    if region is None:
        return NO_REGION
    type_, count = text(state.get("instanceType")), number(state.get("instanceCount"))
    if type_ is None or count is None:
        return Unpriced("its instance type or count is not in the preview")
    bill = Bill(world, "aws", region)
    bill.notes.append("paid for whether machines run in it or not")
    pool = bill_machines(bill, [Kind(type_)], Mix("reservation"),
                         Counts(Sizes(None, count, None), count))  # fmt: skip
    return pool_cost(bill, pool, lambda _bill, _times: None)


def template(_world: World, _state: State) -> Cost:
    return Elsewhere("counted at what starts machines from it")


def scheduled(_world: World, _state: State) -> Cost:
    return Elsewhere("counted at the machines that it starts and stops")


PRICERS: Mapping[str, Pricer] = {
    "aws:ec2/instance:Instance": instance,
    "aws:ec2/spotInstanceRequest:SpotInstanceRequest": spot_request,
    "aws:autoscaling/group:Group": group,
    "aws:ec2/fleet:Fleet": fleet,
    "aws:ec2/spotFleetRequest:SpotFleetRequest": spot_fleet,
    "aws:ec2/capacityReservation:CapacityReservation": reservation,
    "aws:ec2/launchTemplate:LaunchTemplate": template,
    "aws:ec2/launchConfiguration:LaunchConfiguration": template,
    "aws:autoscaling/schedule:Schedule": scheduled,
    SCHEDULE: scheduled,
}
