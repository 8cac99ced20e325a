"""The lines of a workload's block, as parts that flow: each function is one label of the screen."""

from __future__ import annotations

from collections.abc import Iterator

from gputier.cli import plan_words as words
from gputier.cli.floors import floor_text
from gputier.cli.money import UNKNOWN, amount, per_hour
from gputier.cli.text import listed
from gputier.plan import AROUND, Chosen, DriverPlan, Verdict, WorkloadPlan
from gputier.plan.budget import CREATE
from gputier.plan.price import LISTED
from gputier.units import HOURS_PER_MONTH

MOST_ALTERNATIVES = 3
#: How sure a size is goes without saying unless it is not.
DOUBTFUL = frozenset({"fair", "weak"})


def needs(w: WorkloadPlan, c: Chosen) -> Iterator[str]:
    sizing, v = c.sizing, c.verdict
    model = w.need.workload.model
    if sizing is None:
        yield from floor_words(w)
        return
    yield f"{sizing.per_gpu_gib:.1f} of {v.type.usable_gib:.1f} GiB{_each_gpu(sizing.gpus)}"
    yield words.size_parts(sizing)
    if model is not None:
        yield words.model_words(model)
    if sizing.confidence in DOUBTFUL:
        yield f"confidence {sizing.confidence}"


def _each_gpu(gpus: int) -> str:
    return f" on each of {gpus} GPUs" if gpus > 1 else ""


def floor_words(w: WorkloadPlan) -> Iterator[str]:
    """What is asked where no model says how much memory: the workload's own words first, then
    those of its tier and purpose; our own defaults go without saying."""
    own = [rule for rule, floor in w.need.floors.items() if floor.origin == "workload"]
    given = [r for r, f in w.need.floors.items() if f.origin.startswith(("tier ", "purpose "))]
    for rule in (*own, *given):
        yield floor_of(w, rule)


def floor_of(w: WorkloadPlan, rule: str) -> str:
    """A floor in words; GPU names as the workload wrote them, not every variant they mean."""
    gpu = w.need.workload.gpu
    own = {"gpu_model": gpu.models, "gpu_exclude": gpu.exclude}.get(rule)
    floor = w.need.floors[rule]
    return floor_text(floor._replace(value=own) if own else floor)


def instead(w: WorkloadPlan, v: Verdict) -> str:
    """Another machine, with how it is bought where that differs from the choice."""
    chosen = w.chosen.verdict.use if w.chosen else v.use
    return words.machine_name(v) + ("" if v.use == chosen else f" {words.USES[v.use]}")


def software(c: Chosen) -> Iterator[str]:
    """What the machine boots with, and how it proves itself."""
    boot = c.boot
    yield f"{boot.image.os}{'' if boot.image.pinned else ', image not pinned'}"
    yield _driver(boot.driver)
    if boot.framework is not None:
        yield f"{boot.framework.name} {boot.framework.version} for CUDA {boot.framework.cuda}"
    if boot.container is not None:
        yield boot.container.image
    gate = boot.gate
    yield f"gate {gate.mode}" + ("" if gate.mode == "off" else f", {gate.depth}")


def _driver(driver: DriverPlan) -> str:
    if not driver.branch:
        return "driver of the image"
    how = "installed at boot" if driver.source == "install" else "in the image"
    return f"driver {driver.version or driver.branch} {how}"


def hours(c: Chosen) -> Iterator[str]:
    s = c.scaling
    if s.hours_basis == "always on":
        return
    saves = ""
    if s.saved_usd_per_month:
        saves = f", saves {amount(s.saved_usd_per_month)} a month against 730 h"
    basis = "from the schedule" if s.hours_basis == "schedule" else s.hours_basis
    if s.schedule and s.hours_basis == "declared":
        basis += "; the schedule is not counted"
    yield f"{s.hours_per_month:,.1f} a month, {basis}{saves}"


def scale(c: Chosen) -> Iterator[str]:
    s = c.scaling
    if s.min == s.max:
        return
    low, high = c.usd_per_month_at_min, c.usd_per_month_at_max
    yield f"{s.min}–{s.max} machines: {words.money_range(low, high)}"
    if s.min == 0 and c.usd_per_month_of_one is not None:
        yield f"{amount(c.usd_per_month_of_one)} a month for each that runs"
    if s.metric:
        yield f"target {s.target:g} % {s.metric.replace('gpu_', 'GPU ')}"


def budget(c: Chosen) -> Iterator[str]:
    b = c.budget
    if b is None:
        return
    known = f"{100 * b.used_at_least:.0f} %"
    used = f"the plan takes {known if b.used is not None else f'at least {known}'}"
    over = ", over it" if b.exceeded else ""
    yield f"{amount(b.usd_per_month)} a month: {used}{over}"
    if b.alerts_usd:
        yield f"alerts at {', '.join(amount(a) for a in b.alerts_usd)}"
    if b.action != "none":
        yield f"above 100 %: {b.action}"
    if b.anomalies:
        whose = "a monitor of its own" if b.anomalies == CREATE else "the account's monitor"
        yield f"unusual cost from {amount(b.anomaly_usd)}: {whose}"


def around(c: Chosen) -> Iterator[str]:
    """What comes on top of the machines a month; an unknown part is named, never 0."""
    parts: list[str] = []
    unknown: list[str] = []
    for name in AROUND:
        value = c.around_usd_per_month[name]
        if value is None:
            unknown.append(name)
        elif value:
            parts.append(f"{name} {amount(value)}")
    total = sum(v or 0.0 for v in c.around_usd_per_month.values())
    if not parts and not unknown:
        return
    yield f"{amount(total)} a month on top" if parts else "on top"
    yield " · ".join(parts)
    if unknown:
        yield f"{', '.join(unknown)}: {UNKNOWN}"
    if c.around_borrowed:
        yield "prices partly of another region"


def leanings(w: WorkloadPlan, c: Chosen) -> Iterator[str]:
    """Leanings that the choice does not meet, with the price of meeting them."""
    floors = {(f.rule, f.origin): f for f in w.need.leanings}
    for leaning in w.leanings:
        if leaning.met:
            continue
        text = floor_text(floors[leaning.rule, leaning.origin])
        state = "not known here" if leaning.met is None else "not met"
        yield f"{text}: {state}{_price_of_meeting(leaning.instead, c)}"


def _price_of_meeting(instead: Verdict | None, c: Chosen) -> str:
    if instead is None:
        return "; no machine that fits has it"
    total, now = instead.total, c.verdict.total
    if total is None or now is None:
        return f"; {words.machine_name(instead)} has it, {UNKNOWN}"
    return f"; {words.machine_name(instead)} has it for {words.difference(total - now)}"


def cheaper(w: WorkloadPlan) -> Iterator[str]:
    way = w.other_way
    if way is not None:
        dated = f", {way.as_of}" if way.as_of else ""
        yield (
            f"{way.use} in {way.region}: {per_hour(way.usd_per_hour)}, −{way.saving_percent:.0f} %"
            f" ({way.basis}{dated})"
        )
    v = w.cheaper_unconfirmed
    if v is not None:
        yield (
            f"{words.machine_name(v)} can be had: {per_hour(v.total)} in {v.type.cloud}"
            f" {v.region}, but no source lists it in any region{_resting_on(v)}"
        )


def _resting_on(v: Verdict) -> str:
    """Where a price comes from that the catalogue does not list for the place."""
    return "" if v.cost is None or v.cost.basis == LISTED else f" (price {v.cost.basis})"


def commitments(c: Chosen) -> Iterator[str]:
    """From how many hours a month a commitment pays, or that nobody knows."""
    terms = {"1y": "1 year", "3y": "3 years"}
    unknown = [terms[x.term] for x in c.commitments if x.break_even_hours is None]
    for one in c.commitments:
        if one.usd_per_hour is None or one.break_even_hours is None:
            continue
        hours = one.break_even_hours
        pays = f"pays from {hours:,.0f} h a month" if hours < HOURS_PER_MONTH else "never pays"
        yield f"{terms[one.term]} at {per_hour(one.usd_per_hour)} {pays}"
    if unknown:
        yield f"{listed(unknown)}: {UNKNOWN}"


def alternatives(w: WorkloadPlan) -> Iterator[str]:
    """The next machines of the same cloud's order, and the best of each other cloud."""
    rest = list(w.order[1:])
    shown = rest[:MOST_ALTERNATIVES]
    seen = {w.order[0].type.cloud, *(v.type.cloud for v in shown)} if w.order else set[str]()
    for v in rest[MOST_ALTERNATIVES:]:
        if v.type.cloud not in seen:
            seen.add(v.type.cloud)
            shown.append(v)
    for v in shown:
        doubt = "" if v.confirmed else ", unconfirmed"
        only = ", plan only" if v.plan_only else ""
        borrowed = ", price borrowed" if v.cost and v.cost.borrowed else ""
        where = f" in {v.region}" if v.region != w.order[0].region else ""
        offer = words.offer(v, cloud=len(w.market.clouds) > 1)
        yield f"{offer}{where}{doubt}{only}{borrowed}"


def asked(w: WorkloadPlan) -> Iterator[str]:
    yield from floor_words(w)
    model = w.need.workload.model
    if model is not None:
        yield words.model_words(model)
