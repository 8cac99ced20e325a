"""The fleet: one machine by itself or a group, how it is bought, and how a change reaches it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

from gputier.catalog import Catalog, Interface
from gputier.errors import Problem
from gputier.plan import combinations
from gputier.plan.boot import is_lone
from gputier.plan.combinations import Decision, Situation
from gputier.plan.need import Need, scales
from gputier.plan.select import Ask
from gputier.plan.verdict import Verdict
from gputier.workload import Workload

#: The one interface of a machine that takes part in no fabric.
PLAIN = Interface(0, 0, "interface")
#: Purposes whose machines are replaced one after the other when something changes: a service goes
#: on meanwhile. What trains, renders or holds somebody's desk is not ended by a change.
ROLLS = frozenset({"inference"})
#: AWS places at most so many machines of a spread group in one zone (EC2 user guide, placement
#: strategies, 2026-04).
SPREAD_PER_ZONE = 7
#: Machines of a block are taken 30 minutes before its end (EC2 user guide, Capacity Blocks); what
#: they do before they stop comes first.
BLOCK_TAKEN = timedelta(minutes=30)
BLOCK_ROOM = timedelta(minutes=15)
#: Recommended by AWS; the API's own default, lowest-price, is interrupted more (botocore,
#: InstancesDistribution).
SPOT_ALLOCATION = "price-capacity-optimized"


class RefreshPlan(NamedTuple):
    """How machines are replaced in turns. `max_healthy_percent` None: the old machine goes first
    (its absence and 100 differ: botocore, RefreshPreferences)."""

    min_healthy_percent: int
    max_healthy_percent: int | None
    rollback: bool


class FleetPlan(NamedTuple):
    """`shape` lone or group; `market` on_demand, spot, reservation, capacity_block or flex_start.

    `starts` and `ends` are when what is reserved begins and when machines must be gone, UTC.
    `interruption`: what a spot machine does when it is taken, None for others.
    `manages_desired`: whether a deployment sets the number of machines; not where they come and go
    by themselves. `resources` is the name that everything is made under: the workload's first.
    """

    shape: str
    market: str
    reservation_id: str | None
    starts: str | None
    ends: str | None
    on_demand_base: int
    spot_allocation: str | None
    interruption: str | None
    placement: str
    rollout: str
    refresh: RefreshPlan | None
    capacity_rebalance: bool
    manages_desired: bool
    tags: Mapping[str, str]
    was: str | None
    resources: str
    notes: tuple[str, ...]


def settle(ask: Ask, chosen: Verdict) -> Decision:
    """What may be combined of what was asked for, and what is left of it."""
    need, w = ask.need, ask.need.workload
    lone = is_lone(need)
    asked = Situation(
        placement=_placement(need, chosen),
        market=chosen.use,
        zones=combinations.ONE if len(chosen.zones) == 1 else combinations.SEVERAL,
        fabric=combinations.YES if fabric_of(need, chosen) != "none" else combinations.NO,
        shape="lone" if lone else "group",
        rollout=w.rollout or rollout_of(need.purpose),
        egress=w.network.egress,
        interfaces=(
            combinations.SEVERAL
            if len(interfaces_of(ask.catalog, need, chosen)) > 1
            else combinations.ONE
        ),
        rebalance=combinations.YES if chosen.use == "spot" and not lone else combinations.NO,
    )
    return combinations.decide(chosen.type.cloud, asked)


def fabric_of(need: Need, chosen: Verdict) -> str:
    """The fabric that machines are joined by: that of the type, where several work together."""
    if chosen.machine.nodes == 1 or need.workload.fabric == "none":
        return "none"
    return chosen.type.interconnect


def interfaces_of(catalog: Catalog, need: Need, chosen: Verdict) -> tuple[Interface, ...]:
    """The network interfaces of a machine: every card of the fabric has its own (AWS)."""
    layout = catalog.card_layout(chosen.type.name) if chosen.type.cloud == "aws" else None
    if layout is None or fabric_of(need, chosen) == "none":
        return (PLAIN,)
    return layout.fabric


def rollout_of(purpose: str) -> str:
    """How a change reaches running machines when nobody said."""
    return "rolling" if purpose in ROLLS else "new-machines"


def _placement(need: Need, chosen: Verdict) -> str:
    floor = need.floors.get("placement")
    if floor is None or (floor.when_nodes and chosen.machine.nodes == 1):
        return combinations.NONE
    return str(floor.value)


def plan_fleet(ask: Ask, settled: Decision, most: int) -> FleetPlan:
    """The fleet of a workload of `most` machines at most."""
    w, now, choice = ask.need.workload, settled.situation, ask.choice
    group, spot = now.shape == "group", now.market == "spot"
    held = now.market in ("reservation", "capacity_block")
    return FleetPlan(
        shape=now.shape,
        market=now.market,
        reservation_id=choice.id if held else None,
        starts=choice.start if held else None,
        ends=_gone_by(now.market, choice.end),
        on_demand_base=(choice.on_demand_base or 0) if spot and group else 0,
        spot_allocation=SPOT_ALLOCATION if spot and group else None,
        interruption=("terminate" if group else "stop") if spot else None,
        placement=now.placement,
        rollout=now.rollout,
        refresh=_refresh(now, most),
        capacity_rebalance=now.rebalance == combinations.YES,
        manages_desired=not (scales(w) or w.schedule or (held and choice.start)),
        tags=w.tags or {},
        was=w.was,
        resources=w.was or ask.need.name,
        notes=tuple(_notes(ask, settled)),
    )


def _refresh(now: Situation, most: int) -> RefreshPlan | None:
    """Launch first where there is room, else one machine of `most` goes at a time."""
    if now.rollout != "rolling" or now.shape != "group":
        return None
    if now.order == combinations.LAUNCH_FIRST:
        return RefreshPlan(100, 100, rollback=True)
    return RefreshPlan(min(90, 100 * (most - 1) // most), None, rollback=True)


def _gone_by(market: str, end: str | None) -> str | None:
    """When machines must be gone. A reservation that ends leaves them, billed on demand."""
    if end is None or market != "capacity_block":
        return None
    at = datetime.strptime(end, "%Y-%m-%dT%H:%M:%SZ").replace(tzinfo=UTC)
    return (at - BLOCK_TAKEN - BLOCK_ROOM).strftime("%Y-%m-%dT%H:%M:%SZ")


def _notes(ask: Ask, settled: Decision) -> Iterator[str]:
    w, choice = ask.need.workload, ask.choice
    # Which zone of how many is the network's to say.
    yield from (row.why for row in settled.warnings if row.change != ("zones", combinations.ONE))
    if settled.situation.shape == "lone":
        yield "one machine by itself: it is stopped and started, not replaced, and its gate reports"
    if choice.use == "reservation" and choice.end:
        yield f"when the reservation ends ({choice.end}) machines run on and are billed on demand"
    if len(w.capacity) > 1:
        yield "the ways of buying are tried when planning, not when a machine cannot be had"


def fleet_problems(chosen: Verdict, settled: Decision, most: int) -> Iterator[Problem]:
    """What cannot be combined, at its field of the workload."""
    for row in settled.refusals:
        yield Problem(row.field, row.why, row.way_out)
    zones = len(chosen.zones) or 1
    room = SPREAD_PER_ZONE * zones
    spread = settled.situation.placement == combinations.SPREAD
    if chosen.type.cloud == "aws" and spread and most > room:
        yield Problem(
            "network.placement",
            f"{most} machines are to be spread, and a spread group takes {SPREAD_PER_ZONE} in a"
            f" zone: {room} in {zones}",
            "`placement: none`, or fewer machines",
        )


def former_problems(workloads: Mapping[str, Workload]) -> Iterator[Problem]:
    """Former names that are somebody else's: two workloads cannot own the same machines."""
    owners: dict[str, str] = {}
    for name, workload in workloads.items():
        was = workload.was
        if was is None:
            continue
        at = f"workloads.{name}.was"
        if was in workloads:
            own = "its own name" if was == name else "a workload that is declared"
            yield Problem(at, f"`{was}` is {own}", "remove `was`, or name what it was called")
        elif was in owners:
            message = f"`{was}` is also what `{owners[was]}` was called"
            yield Problem(at, message, "one workload has its machines; remove `was` of the other")
        owners.setdefault(was, name)


def deploy_problems(fleet: FleetPlan, path: str) -> Iterator[Problem]:
    """What can be planned for and not deployed: a block is launched into by its id."""
    if fleet.market == "capacity_block" and fleet.reservation_id is None:
        message = "a capacity block is launched into by its id, and none is named"
        yield Problem(f"{path}.capacity.id", message, "`id: cr-…`, as the purchase says")
