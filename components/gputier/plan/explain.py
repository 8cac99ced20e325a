"""Why this machine: what each floor costs, the nearest misses, the smallest relaxation."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

from gputier.plan import rank, rules
from gputier.plan.select import Active, Ask, active_checks, verdict
from gputier.plan.verdict import Verdict

#: Floors whose `needed` other floors are computed from: dropping one can lift the others.
_LIFTS = {
    "kept_free": frozenset({"model_fit", "vcpu", "host_memory"}),
    "gpu_memory": frozenset({"vcpu", "host_memory"}),
}
#: Floors that decide what is attached or composed: every composed row may change with them.
_COMPOSING = frozenset({"vcpu", "host_memory", "network", "scratch", "disk_throughput"})
#: Rules about the price and the place of what is composed or attached.
_OF_COMPOSITION = frozenset({"price_ceiling", "price_age", "spot_saving", "availability"})
#: A ceiling never costs money: without it the choice is no cheaper.
_NOT_DROPPED = frozenset({"price_ceiling"})


class FloorCost(NamedTuple):
    """A floor that binds: without it the same selection picks `instead` and pays less."""

    rule: str
    origin: str
    usd_per_hour: float
    usd_per_month: float
    instead: Verdict


Tried = Sequence[tuple[Ask, Sequence[Verdict]]]


def floor_costs(tried: Tried, chosen: Verdict | None, hours: float) -> tuple[FloorCost, ...]:
    """Every floor that binds, dearest first. Each figure is chosen minus a real selection
    without that floor; only rows that the floor can change are judged again. `tried` holds the
    ways of buying in the order tried: without a floor an earlier one may fit."""
    if chosen is None or chosen.total is None:
        return ()
    found: list[FloorCost] = []
    for rule, floor in tried[0][0].need.floors.items():
        if rule in _NOT_DROPPED:
            continue
        instead = rank.first_choice(_without(ask, rule, verdicts) for ask, verdicts in tried)
        if instead is None or instead.total is None:
            continue
        saved = chosen.total - instead.total
        if saved > 1e-9:
            found.append(FloorCost(rule, floor.origin, saved, saved * hours, instead))
    return tuple(sorted(found, key=lambda c: (-c.usd_per_hour, c.rule)))


def _without(ask: Ask, rule: str, verdicts: Sequence[Verdict]) -> tuple[Verdict, ...]:
    """The accepted rows without one floor, best first."""
    relaxed = ask.without(rule)
    active: Active = active_checks(relaxed.need)
    now = [verdict(relaxed, v.type, active) if _may_change(ask, v, rule) else v for v in verdicts]
    return rank.ranked(relaxed.need, ask.catalog, now)


def _may_change(ask: Ask, v: Verdict, rule: str) -> bool:
    if rule == "kept_free" and ask.need.spreads:
        return True  # with more room on each card, fewer machines may do
    composed = v.type.vcpu_range is not None or v.machine.ssd_count > 0
    recomposed = composed and (rule in _COMPOSING or rule in _LIFTS)
    if not v.reasons:
        return recomposed
    lifted = _LIFTS.get(rule, frozenset[str]()) | {rule}
    if recomposed:
        lifted |= _COMPOSING | _OF_COMPOSITION
    return {r.rule for r in v.reasons} <= lifted


def _meant(verdicts: Sequence[Verdict]) -> Sequence[Verdict]:
    """Where the capacity names a type, only that row: to name another is no near miss."""
    named = [v for v in verdicts if v.named]
    return named or verdicts


def nearest_misses(verdicts: Sequence[Verdict], count: int = 3) -> tuple[Verdict, ...]:
    """The cheapest rejected machines that fail by one rule; unknown prices last."""
    single = [v for v in _meant(verdicts) if len(v.reasons) == 1 and not v.plan_only]
    single.sort(key=lambda v: (v.total is None, v.total or 0.0, v.type.cloud, v.type.name))
    return tuple(single[:count])


def relaxations(verdicts: Sequence[Verdict]) -> tuple[Verdict, ...]:
    """Per cloud, the rejected row with the smallest relaxation: fewest rules, then the smallest
    gap between what was needed and what it has, then the cheapest. Relaxing all its reasons makes
    it fit, because they are all it was rejected for."""
    best: dict[str, tuple[tuple[object, ...], Verdict]] = {}
    for v in _meant(verdicts):
        if not v.reasons:
            continue
        gap = sum(r.gap for r in v.reasons)
        key = (len(v.reasons), gap, v.total is None, v.total or 0.0, v.type.name)
        standing = best.get(v.type.cloud)
        if standing is None or key < standing[0]:
            best[v.type.cloud] = (key, v)
    return tuple(best[cloud][1] for cloud in sorted(best))


class OtherWay(NamedTuple):
    """The chosen machine bought another way, cheaper: a suggestion, never taken by itself."""

    use: str
    region: str
    usd_per_hour: float
    saving_percent: float
    basis: str
    as_of: str | None


def cheaper_as_spot(ask: Ask, chosen: Verdict | None) -> OtherWay | None:
    """The chosen row on spot, when that is known to be cheaper."""
    if chosen is None or chosen.total is None or chosen.use != "on_demand":
        return None
    # A copy and not a new one: a locked machine may be named as nobody could declare it (an N1
    # machine with what is attached to it).
    on_spot = replace(ask, choice=ask.choice.model_copy(update={"use": "spot"}))
    found = verdict(on_spot, chosen.type, active_checks(ask.need))
    if not found.accepted or found.total is None or found.cost is None:
        return None
    if found.total >= chosen.total:
        return None
    saving = 100 * (1 - found.total / chosen.total)
    return OtherWay("spot", found.region, found.total, saving, found.cost.basis, found.cost.as_of)


def cheaper_unconfirmed(order: Sequence[Verdict]) -> Verdict | None:
    """The cheapest accepted machine whose availability nobody confirmed, if it undercuts."""
    if not order or order[0].total is None:
        return None
    best = order[0].total
    doubtful = [v for v in order if v.unconfirmed and not v.plan_only and v.total is not None]
    cheapest = min(doubtful, key=lambda v: (v.total or 0.0, v.type.name), default=None)
    return cheapest if cheapest and (cheapest.total or 0.0) < best else None


class Leaning(NamedTuple):
    """A preference of the tier or purpose: whether the choice meets it, and what it would cost."""

    rule: str
    origin: str
    why: str
    met: bool | None  # None: the catalogue does not say
    instead: Verdict | None


def leanings(ask: Ask, order: Sequence[Verdict]) -> tuple[Leaning, ...]:
    """Each leaning judged on the choice; with the cheapest accepted machine that meets it."""
    if not order:
        return ()
    found: list[Leaning] = []
    for floor in ask.need.leanings:
        met = rules.meets_leaning(floor, order[0].machine, ask.catalog)
        instead = None
        if not met:
            meeting = [v for v in order if rules.meets_leaning(floor, v.machine, ask.catalog)]
            instead = meeting[0] if meeting else None
        found.append(Leaning(floor.rule, floor.origin, floor.why, met, instead))
    return tuple(found)
