"""From a declaration to a plan: size, select, and everything that follows from the choice."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import takewhile
from typing import NamedTuple

from gputier.catalog import Catalog, InstanceType
from gputier.errors import InvalidInput, Problem, spelling_hint
from gputier.plan import explain, rank
from gputier.plan.fleet import former_problems
from gputier.plan.follow import chosen_of
from gputier.plan.market import market_of, market_problems
from gputier.plan.model import StackPlan, WorkloadPlan
from gputier.plan.need import Need, need_of
from gputier.plan.network import SHARED
from gputier.plan.scaling import hours_of
from gputier.plan.select import Ask, select
from gputier.plan.software import software_problems
from gputier.plan.verdict import Verdict
from gputier.workload import Declaration, Discount, Workload


class _Stack(NamedTuple):
    """What all workloads of a declaration share."""

    catalog: Catalog
    environment: str
    discounts: tuple[Discount, ...]
    max_price_age_days: int | None


def plan_declaration(declaration: Declaration, catalog: Catalog) -> StackPlan:
    """Every workload planned. Raises `InvalidInput` with every mistake the catalogue can tell;
    a workload that fits nowhere is in the plan with `chosen` None."""
    stack = _Stack(
        catalog,
        declaration.environment,
        tuple(declaration.discounts),
        declaration.max_price_age_days,
    )
    problems = list(_discount_problems(declaration.discounts, catalog))
    problems += former_problems(declaration.workloads)
    picks: list[_Pick] = []
    for name, workload in declaration.workloads.items():
        path = f"workloads.{name}"
        found = _workload_problems(catalog, workload, path)
        problems += found
        if found:
            continue
        try:
            picks.append(_pick(stack, name, workload))
        except InvalidInput as error:
            problems += _below(path, error.problems)
    if problems:
        raise InvalidInput([_placed(p, declaration) for p in problems])
    sharing = Counter(place for pick in picks for place in _way_out_shared(pick))
    plans: list[WorkloadPlan] = []
    for pick in picks:
        try:
            plans.append(_finish(pick, sharing))
        except InvalidInput as error:
            problems += _below(f"workloads.{pick.taken.ask.need.name}", error.problems)
    if problems:
        raise InvalidInput([_placed(p, declaration) for p in problems])
    return StackPlan(
        declaration.name,
        declaration.source,
        declaration.environment,
        catalog.id,
        catalog.as_of,
        tuple(plans),
        tuple(declaration.warnings),
    )


def plan_workload(
    name: str,
    workload: Workload,
    catalog: Catalog,
    environment: str = "dev",
    discounts: tuple[Discount, ...] = (),
) -> WorkloadPlan:
    """One workload without a declaration around it. Raises as `plan_declaration` does."""
    problems = [
        *_discount_problems(discounts, catalog),
        *_workload_problems(catalog, workload, name),
    ]
    if problems:
        raise InvalidInput(problems)
    stack = _Stack(catalog, environment, discounts, None)
    return _finish(_pick(stack, name, workload), Counter())


def _below(path: str, problems: Iterable[Problem]) -> Iterator[Problem]:
    """Problems of a workload at their place in the declaration."""
    for problem in problems:
        yield replace(problem, path=f"{path}.{problem.path}" if problem.path else path)


def _placed(problem: Problem, declaration: Declaration) -> Problem:
    if problem.position is not None:
        return problem
    return replace(problem, position=declaration.positions.at(problem.path))


def _discount_problems(discounts: Iterable[Discount], catalog: Catalog) -> Iterator[Problem]:
    for index, discount in enumerate(discounts):
        known = {t.family for t in catalog.rows([discount.cloud])}
        for family in discount.families:
            if family not in known:
                hint = spelling_hint(
                    family,
                    known,
                    otherwise=f"families of {discount.cloud}: {', '.join(sorted(known)[:12])}",
                )
                message = f"`{family}` is not a machine family of {discount.cloud} in the catalogue"
                yield Problem(f"discounts[{index}].families", message, hint)


def _workload_problems(catalog: Catalog, workload: Workload, path: str) -> list[Problem]:
    """Names and versions that the catalogue does not have."""
    return [
        *market_problems(catalog, workload, path),
        *_gpu_problems(catalog, workload, path),
        *software_problems(catalog, workload, path),
    ]


def _gpu_problems(catalog: Catalog, workload: Workload, path: str) -> Iterator[Problem]:
    for field in ("models", "exclude"):
        for name in getattr(workload.gpu, field):
            if not catalog.match_gpus(name):
                hint = spelling_hint(
                    name, catalog.gpus, otherwise="`gputier catalog gpus` lists the models"
                )
                message = f"`{name}` is not a GPU model in the catalogue"
                yield Problem(f"{path}.gpu.{field}", message, hint)


class _Try(NamedTuple):
    """One way of buying, judged: every row's verdict, and the rows that fit, best first."""

    ask: Ask
    verdicts: tuple[Verdict, ...]
    order: tuple[Verdict, ...]


class _Pick(NamedTuple):
    """The ways of buying in the order tried, and the one taken."""

    tried: tuple[_Try, ...]
    taken: _Try

    @property
    def skipped(self) -> tuple[str, ...]:
        """Why each earlier way of buying was passed over."""
        best = self.taken.order[0].type if self.taken.order else None
        earlier = takewhile(lambda t: t is not self.taken, self.tried)
        return tuple(_why_skipped(t, best) for t in earlier)


def _pick(stack: _Stack, name: str, workload: Workload) -> _Pick:
    """The capacities in order: the first with a confirmed fit, else the first with any fit,
    else the last one's ledger."""
    need = _with_known_gpus(need_of(name, workload, stack.environment), stack.catalog)
    market = market_of(stack.catalog, workload)
    tried: list[_Try] = []
    for choice in workload.capacity:
        ask = Ask(stack.catalog, need, market, choice, stack.discounts, stack.max_price_age_days)
        verdicts = select(ask)
        order = rank.ranked(need, stack.catalog, verdicts)
        tried.append(_Try(ask, verdicts, order))
        if order and order[0].confirmed and not order[0].plan_only:
            break
    first = rank.first_choice(t.order for t in tried)
    taken = next((t for t in tried if t.order and t.order[0] is first), tried[-1])
    return _Pick(tuple(tried), taken)


def _why_skipped(tried: _Try, taken: InstanceType | None) -> str:
    """Why an earlier way of buying was passed over for one that sells `taken`."""
    use, order, verdicts = tried.ask.choice.use, tried.order, tried.verdicts
    if order:
        where = "plan only" if order[0].plan_only else "unconfirmed"
        return f"{use}: {order[0].type.name} fits, but its availability is {where}"
    name = tried.ask.choice.instance_type or (taken.name if taken else "")
    if name:
        why = "; ".join(r.has for v in verdicts if v.type.name == name for r in v.reasons)
        return f"{use}: nothing fits; {name}: {why}"
    only = Counter(r.rule for v in verdicts if len(v.reasons) == 1 for r in v.reasons)
    if not only:
        return f"{use}: nothing fits"
    rule, count = only.most_common(1)[0]
    return f"{use}: nothing fits ({count} machines fail by {rule} alone)"


def _with_known_gpus(need: Need, catalog: Catalog) -> Need:
    """GPU names as the catalogue spells them, every variant of a bare name."""
    floors = dict(need.floors)
    for rule in ("gpu_model", "gpu_exclude"):
        floor = floors.get(rule)
        if floor is not None:
            names = [m for name in floor.names for m in catalog.match_gpus(name)]
            floors[rule] = floor._replace(value=tuple(dict.fromkeys(names)))
    return replace(need, floors=floors)


def _way_out_shared(pick: _Pick) -> Iterator[tuple[str, str, str]]:
    """The cloud and region whose way out this workload shares, when it uses one of ours."""
    network, order = pick.taken.ask.need.workload.network, pick.taken.order
    if order and network.egress in SHARED and network.vpc is None:
        yield order[0].type.cloud, order[0].region, network.egress


def _finish(pick: _Pick, sharing: Counter[tuple[str, str, str]]) -> WorkloadPlan:
    ask, order, verdicts = pick.taken.ask, pick.taken.order, pick.taken.verdicts
    best = order[0] if order else None
    hours, _basis = hours_of(ask.need.workload)
    costs = explain.floor_costs([(t.ask, t.verdicts) for t in pick.tried], best, hours)
    chosen = None
    if best is not None:
        way_out = best.type.cloud, best.region, ask.need.workload.network.egress
        shared = max(1, sharing[way_out])
        chosen = chosen_of(ask, best, shared)
    return WorkloadPlan(
        name=ask.need.name,
        need=ask.need,
        market=ask.market,
        choice=ask.choice,
        chosen=chosen,
        order=order,
        verdicts=verdicts,
        floor_costs=costs,
        leanings=explain.leanings(ask, order),
        misses=explain.nearest_misses(verdicts),
        relaxations=() if order else explain.relaxations(verdicts),
        cheaper_unconfirmed=explain.cheaper_unconfirmed(order),
        other_way=explain.cheaper_as_spot(ask, best),
        skipped=pick.skipped,
    )


def unplaced_problems(plan: StackPlan, declaration: Declaration) -> Iterable[Problem]:
    """One problem per workload that fits nowhere, at its place in the file."""
    for w in plan.unplaced:
        path = f"workloads.{w.name}"
        message = f"no machine fits workload `{w.name}` (0 of {len(w.verdicts)})"
        lines = [
            f"{v.type.cloud} {v.type.name}: "
            + "; ".join(f"{r.relax} ({r.needed}, it has {r.has})" for r in v.reasons)
            for v in w.relaxations
        ]
        yield Problem(
            path,
            message,
            "smallest relaxation per cloud:\n" + "\n".join(lines),
            declaration.positions.at(path),
        )
