"""The plan screen: the answer first, then one block per workload."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from gputier.cli import plan_words as words
from gputier.cli.console import Paint
from gputier.cli.floors import floor_text
from gputier.cli.money import UNKNOWN, amount, per_hour
from gputier.cli.text import (
    Column,
    columns_of,
    flow,
    labelled,
    left,
    listed,
    plural,
    right,
    table,
    table_widths,
)
from gputier.plan import AROUND, Chosen, StackPlan, Verdict, WorkloadPlan, title
from gputier.plan.price import LISTED

HANG = 14
#: Floors that bind are listed up to here; `--explain` has them all.
MOST_FLOORS = 5
MOST_ALTERNATIVES = 3
#: How sure a size is goes without saying unless it is not.
DOUBTFUL = frozenset({"fair", "weak"})


@dataclass(frozen=True, slots=True)
class Screen:
    """How to lay out: columns, colour, and what the reader typed to get more."""

    width: int
    paint: Paint
    command: str = "gputier plan"


def plan_screen(plan: StackPlan, screen: Screen) -> list[str]:
    """A whole stack: the header, a block per workload, and where more is to be had."""
    heads = _Heads(plan.workloads, screen)
    lines = _header(plan, screen)
    for w in plan.workloads:
        lines += ["", *block(w, heads.lines(w), screen)]
    return [*lines, "", f"`{screen.command} --explain` has the reason for each machine"]


def _header(plan: StackPlan, screen: Screen) -> list[str]:
    """The first line: how much a month, and what that rests on."""
    placed = [w.chosen for w in plan.workloads if w.chosen]
    unplaced = len(plan.workloads) - len(placed)
    known = [c.usd_per_month for c in placed if c.usd_per_month is not None]
    unknown = len(placed) - len(known)
    total = f"{amount(sum(known))} a month" if known else UNKNOWN if placed else ""
    parts_around = [part for c in placed for part in c.around_usd_per_month.values()]
    around = sum(part or 0.0 for part in parts_around)
    partly = ", partly unknown" if None in parts_around else ""
    borrowed = sum(_rests_on_borrowed(w) for w in plan.workloads)
    parts = (
        screen.paint.bold(plan.name),
        plural(len(plan.workloads), "workload"),
        screen.paint.red(f"{unplaced} fits nowhere" if unplaced == 1 else f"{unplaced} fit nowhere")
        if unplaced
        else "",
        screen.paint.bold(total),
        f"{plural(unknown, 'price')} unknown" if unknown and known else "",
        f"+ {amount(around)} around them{partly}" if around else "",
        f"{plural(borrowed, 'price')} borrowed" if borrowed else "",
        f"environment {plan.environment}" if plan.environment != plan.name else "",
        f"catalogue {plan.catalog_id[:8]} of {plan.catalog_as_of}",
    )
    return flow(parts, screen.width, 0)


def _rests_on_borrowed(w: WorkloadPlan) -> bool:
    """Whether clouds were compared, and the winner's price is another region's."""
    cost = w.chosen.verdict.cost if w.chosen else None
    return bool(cost and cost.borrowed and len(w.market.clouds) > 1)


class _Heads:
    """First lines of all blocks, in common columns where they fit, else in two lines each."""

    def __init__(self, workloads: Sequence[WorkloadPlan], screen: Screen) -> None:
        self._cells = {w.name: _head_cells(w) for w in workloads}
        self._widths = [max(map(len, column)) for column in zip(*self._cells.values(), strict=True)]
        self._screen = screen
        # The right end of the longest machine line would be ideal; the terminal's is enough.
        self._room = sum(self._widths) + 2 * (len(self._widths) - 1)

    def lines(self, w: WorkloadPlan) -> list[str]:
        name, what, where, hourly, monthly, extra = self._cells[w.name]
        paint = self._screen.paint
        n, k, p, h, m, _x = self._widths
        money = f"{right(hourly, h)}  {right(monthly, m)}"
        if self._room <= self._screen.width:
            line = f"{paint.bold(left(name, n))}  {left(what, k)}  {left(where, p)}  {money}"
            return [f"{line}  {paint.yellow(extra)}".rstrip()]
        first = f"{paint.bold(left(name, n))}  {left(where, p)}  {money}".rstrip()
        if columns_of(first) > self._screen.width:
            first = f"{paint.bold(name)}  {hourly}  {monthly}  {where}"
        return [first, *flow([f"  {what}", paint.yellow(extra)], self._screen.width, 2)]


def _head_cells(w: WorkloadPlan) -> list[str]:
    if w.chosen is None:
        return [w.name, words.kind(w), "fits nowhere", "", f"0 of {len(w.verdicts)}", ""]
    v = w.chosen.verdict
    extra = ""
    if _rests_on_borrowed(w) and v.cost:
        extra = f"price {v.cost.basis}"
    elif v.cost and v.cost.total is not None and v.cost.basis != LISTED:
        extra = "price estimated" if v.use == "spot" else f"price {v.cost.basis}"
    if v.plan_only:
        extra = "plan only"
    elif v.unconfirmed:
        extra = "availability unconfirmed"
    hourly = per_hour(v.total)
    monthly = "" if w.chosen.usd_per_month is None else words.month(w.chosen)
    return [w.name, words.kind(w), words.place(v, w.chosen.zones), hourly, monthly, extra]


def block(w: WorkloadPlan, head: Sequence[str], screen: Screen) -> list[str]:
    """One workload: what was chosen, why, and what would change it."""
    lines = list(head)
    body = _placed(w, w.chosen, screen) if w.chosen else _unplaced(w, screen)
    lines += body
    accepted = plural(len(w.order), "fits", "fit")
    lines += _labelled(
        "considered",
        [f"{plural(len(w.verdicts), 'type')}: {accepted}, {len(w.rejected)} rejected"],
        screen,
    )
    return lines


def _labelled(label: str, parts: Iterable[str], screen: Screen) -> list[str]:
    found = labelled(f"  {label}", parts, screen.width, HANG)
    if found and label:
        found[0] = found[0].replace(label, screen.paint.dim(label), 1)
    return found


def _placed(w: WorkloadPlan, c: Chosen, screen: Screen) -> list[str]:
    lines = _labelled("machine", words.machine_parts(c), screen)
    lines += _labelled("needs", _needs(w, c), screen)
    lines += _labelled("hours", _hours(c), screen)
    lines += _labelled("scale", _scale(c), screen)
    lines += _labelled("budget", _budget(c), screen)
    lines += _labelled("around", _around(c), screen)
    lines += _floor_costs(w, screen)
    lines += _labelled("prefers", _leanings(w, c), screen)
    lines += _labelled("cheaper if", _cheaper(w), screen)
    lines += _labelled("committed", _commitments(c), screen)
    lines += _labelled("next best", _alternatives(w), screen)
    lines += _each("skipped", w.skipped, screen)
    warnings = c.sizing.warnings if c.sizing else ()
    return lines + _each("note", (*warnings, *c.notes), screen)


def _each(label: str, texts: Sequence[str], screen: Screen) -> list[str]:
    """One text a line, the label once."""
    lines: list[str] = []
    for n, text in enumerate(texts):
        lines += _labelled(label if n == 0 else "", [text], screen)
    return lines


def _needs(w: WorkloadPlan, c: Chosen) -> Iterator[str]:
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
    """What is asked where no model says how much memory: the floors, but for our own defaults."""
    for rule, floor in w.need.floors.items():
        if floor.origin != "default":
            yield floor_of(w, rule)


def floor_of(w: WorkloadPlan, rule: str) -> str:
    """A floor in words; GPU names as the workload wrote them, not every variant they mean."""
    gpu = w.need.workload.gpu
    own = {"gpu_model": gpu.models, "gpu_exclude": gpu.exclude}.get(rule)
    floor = w.need.floors[rule]
    return floor_text(replace(floor, value=own) if own else floor)


def _hours(c: Chosen) -> Iterator[str]:
    s = c.scaling
    if s.hours_basis == "always on":
        return
    saves = ""
    if s.saved_usd_per_month:
        saves = f", saves {amount(s.saved_usd_per_month)} a month against 730 h"
    yield f"{s.hours_per_month:,.1f} a month, {'from the schedule' if s.schedule else s.hours_basis}{saves}"


def _scale(c: Chosen) -> Iterator[str]:
    s = c.scaling
    if s.min == s.max:
        return
    low, high = c.usd_per_month, c.usd_per_month_at_max
    yield f"{s.min}–{s.max} machines: {words.money_range(low, high)}"
    if s.min == 0 and c.usd_per_month_of_one is not None:
        yield f"{amount(c.usd_per_month_of_one)} a month for each that runs"
    if s.metric:
        yield f"target {s.target:g} % {s.metric.replace('gpu_', 'GPU ')}"


def _budget(c: Chosen) -> Iterator[str]:
    b = c.budget
    if b is None:
        return
    used = "use unknown" if b.used is None else f"the plan takes {100 * b.used:.0f} %"
    over = ", over it" if b.exceeded else ""
    yield f"{amount(b.usd_per_month)} a month: {used}{over}"
    if b.alerts_usd:
        yield f"alerts at {', '.join(amount(a) for a in b.alerts_usd)}"
    if b.action != "none":
        yield f"at 100 %: {b.action}"


def _around(c: Chosen) -> Iterator[str]:
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


def _floor_costs(w: WorkloadPlan, screen: Screen) -> list[str]:
    """What each floor that binds costs, and what would be picked without it."""
    if not w.floor_costs:
        return []
    rows = [
        [
            floor_of(w, cost.rule),
            f"({cost.origin})",
            per_hour(cost.usd_per_hour),
            f"{amount(cost.usd_per_month)}/month",
            f"else {words.machine_name(cost.instead)}",
        ]
        for cost in w.floor_costs[:MOST_FLOORS]
    ]
    columns = (
        Column(wraps=True),
        Column(drop=1),
        Column(right=True),
        Column(right=True),
        Column(drop=2),
    )
    sizes = table_widths(columns, rows, screen.width - HANG)
    lines = table(columns, rows, screen.width, " " * HANG, sizes)
    lines[0] = f"  {screen.paint.dim(left('floors cost', HANG - 2))}{lines[0][HANG:]}"
    more = len(w.floor_costs) - MOST_FLOORS
    if more > 0:
        lines.append(f"{'':{HANG}}and {plural(more, 'more floor')}, with --explain")
    return lines


def _leanings(w: WorkloadPlan, c: Chosen) -> Iterator[str]:
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


def _cheaper(w: WorkloadPlan) -> Iterator[str]:
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
            f" {v.region}, but no source lists it in any region"
        )


def _commitments(c: Chosen) -> Iterator[str]:
    """From how many hours a month a commitment pays, or that nobody knows."""
    terms = {"1y": "1 year", "3y": "3 years"}
    unknown = [terms[x.term] for x in c.commitments if x.break_even_hours is None]
    for one in c.commitments:
        if one.usd_per_hour is None or one.break_even_hours is None:
            continue
        hours = one.break_even_hours
        pays = f"pays from {hours:,.0f} h a month" if hours < 730 else "never pays"
        yield f"{terms[one.term]} at {per_hour(one.usd_per_hour)} {pays}"
    if unknown:
        yield f"{listed(unknown)}: {UNKNOWN}"


def _alternatives(w: WorkloadPlan) -> Iterator[str]:
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
        yield f"{words.offer(v)} in {v.region}{doubt}{only}{borrowed}"


def _unplaced(w: WorkloadPlan, screen: Screen) -> list[str]:
    """Nothing fits: what is asked, what is nearest, what to let go."""
    lines = _labelled("asks", _asked(w), screen)
    lines += _each("skipped", w.skipped, screen)
    lines += reasons_table("nearest", w.misses, screen)
    return lines + reasons_table("to fit", w.relaxations, screen)


def _asked(w: WorkloadPlan) -> Iterator[str]:
    yield from floor_words(w)
    model = w.need.workload.model
    if model is not None:
        yield words.model_words(model)


def reasons_table(label: str, verdicts: Sequence[Verdict], screen: Screen) -> list[str]:
    """Machines with what they lack and what to relax, one reason a line."""
    if not verdicts:
        return []
    rows: list[list[str]] = []
    for v in verdicts:
        for n, reason in enumerate(v.reasons):
            lead = ["", "", ""] if n else [v.type.name, words.place(v), per_hour(v.total)]
            rows.append(
                [
                    *lead,
                    f"{title(reason.rule)}: needs {reason.needed}, has {reason.has}",
                    f"→ {reason.relax}",
                ]
            )
    columns = (
        Column(),
        Column(drop=1),
        Column(right=True),
        Column(wraps=True),
        Column(wraps=True),
    )
    lines = table(columns, rows, screen.width, " " * HANG)
    lines[0] = f"  {screen.paint.dim(left(label, HANG - 2))}{lines[0][HANG:]}"
    return lines
