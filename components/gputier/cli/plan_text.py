"""The plan screen: the answer first, then one block per workload."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from gputier.cli import plan_lines as lines_of
from gputier.cli import plan_words as words
from gputier.cli.console import Paint
from gputier.cli.money import UNKNOWN, amount, per_hour
from gputier.cli.text import (
    Column,
    columns_of,
    flow,
    labelled,
    left,
    plural,
    right,
    table,
    wrap,
)
from gputier.plan import Chosen, StackPlan, Verdict, WorkloadPlan, title
from gputier.plan.price import LISTED

HANG = 15
#: Terminals narrower than this get what a machine lacks below it and not beside it.
SIDE_BY_SIDE = 80
#: Floors that bind are listed up to here; `--explain` has them all.
MOST_FLOORS = 5


class Screen(NamedTuple):
    """How to lay out: columns, colour, and what the reader typed to get more."""

    width: int
    paint: Paint
    command: str = "gputier plan"


def plan_screen(plan: StackPlan, screen: Screen) -> list[str]:
    """A whole stack: the header, a block per workload, and where more is to be had."""
    return [*plan_blocks(plan, screen), "", *_more(screen)]


def plan_blocks(plan: StackPlan, screen: Screen) -> list[str]:
    """The header and a block per workload."""
    heads = _Heads(plan.workloads, screen)
    lines = _header(plan, screen)
    for w in plan.workloads:
        lines += ["", *block(w, heads.lines(w), screen)]
    return lines


def pick_screen(plan: StackPlan, screen: Screen) -> list[str]:
    """One workload without a stack around it: the machine and its price are the first line."""
    (w,) = plan.workloads
    _name, what, where, hourly, monthly, extra = _head_cells(w)
    machine = words.machine_name(w.chosen.verdict) if w.chosen else ""
    paint = screen.paint
    parts = (
        *(paint.bold(part) for part in (machine, where, hourly, monthly)),
        paint.yellow(extra),
        what,
        f"catalogue {plan.catalog_id[:8]} of {plan.catalog_as_of}",
    )
    lines = block(w, flow(parts, screen.width, 0), screen)
    return [*lines, "", *_more(screen)]


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
    borrowed = sum(w.rests_on_borrowed_price for w in plan.workloads)
    parts = (
        screen.paint.bold(plan.name),
        plural(len(plan.workloads), "workload"),
        screen.paint.red(f"{unplaced} fits nowhere" if unplaced == 1 else f"{unplaced} fit nowhere")
        if unplaced
        else "",
        screen.paint.bold(total),
        f"{plural(unknown, 'price')} unknown" if unknown and known else "",
        f"+ {amount(around)} around them{partly}" if around else "",
        f"{plural(borrowed, 'choice rests', 'choices rest')} on a borrowed price"
        if borrowed
        else "",
        f"environment {plan.environment}" if plan.environment != plan.name else "",
        f"catalogue {plan.catalog_id[:8]} of {plan.catalog_as_of}",
    )
    return flow(parts, screen.width, 0)


def _more(screen: Screen) -> list[str]:
    typed = f"{screen.command} --explain".lstrip()
    return wrap(f"`{typed}` has the reason for each machine", screen.width)


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
        first = f"{paint.bold(left(name, n))}  {left(where, p)}  {money}  {paint.yellow(extra)}"
        first = first.rstrip()
        if columns_of(first) > self._screen.width:
            parts = (paint.bold(name), hourly, monthly, paint.yellow(extra), where)
            first, *more = flow(parts, self._screen.width, 2, gap="  ")
            return [first, *more, *([f"  {what}"] if what else [])]
        return [first, *([f"  {what}"] if what else [])]


def _head_cells(w: WorkloadPlan) -> list[str]:
    if w.chosen is None:
        return [w.name, words.kind(w), "fits nowhere", "", f"0 of {len(w.verdicts)}", ""]
    v = w.chosen.verdict
    hourly = per_hour(v.total)
    monthly = "" if w.chosen.usd_per_month is None else words.month(w.chosen)
    doubts = ", ".join(_doubts(w, v))
    return [w.name, words.kind(w), words.place(v, w.chosen.zones), hourly, monthly, doubts]


def _doubts(w: WorkloadPlan, v: Verdict) -> Iterator[str]:
    """What the first line must say of a choice that is not simply listed and confirmed."""
    cost = v.cost
    if v.plan_only:
        yield "plan only"
    elif v.unconfirmed:
        yield "unconfirmed"
    if cost is not None and cost.total is not None and cost.basis != LISTED:
        yield "price borrowed" if cost.borrowed else "price estimated"
    if w.rests_on_borrowed_price and not (cost and cost.borrowed):
        yield "compared with a borrowed price"
    if w.chosen and w.chosen.budget and w.chosen.budget.exceeded:
        yield "over budget"


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
    lines += _labelled("needs", lines_of.needs(w, c), screen)
    lines += _labelled("software", lines_of.software(c), screen)
    lines += _labelled("hours", lines_of.hours(c), screen)
    lines += _labelled("scale", lines_of.scale(c), screen)
    lines += _labelled("budget", lines_of.budget(c), screen)
    lines += _labelled("around", lines_of.around(c), screen)
    lines += _floor_costs(w, screen)
    lines += _labelled("prefers", lines_of.leanings(w, c), screen)
    lines += _labelled("cheaper if", lines_of.cheaper(w), screen)
    lines += _labelled("committed", lines_of.commitments(c), screen)
    lines += _labelled("next best", lines_of.alternatives(w), screen)
    lines += _each("skipped", w.skipped, screen)
    warnings = c.sizing.warnings if c.sizing else ()
    return lines + _each("note", (*warnings, *c.notes, *c.boot.notes), screen)


def _each(label: str, texts: Sequence[str], screen: Screen) -> list[str]:
    """One text a line, the label once."""
    lines: list[str] = []
    for n, text in enumerate(texts):
        lines += _labelled(label if n == 0 else "", [text], screen)
    return lines


def _floor_costs(w: WorkloadPlan, screen: Screen) -> list[str]:
    """What each floor that binds costs, and what would be picked without it."""
    if not w.floor_costs:
        return []
    rows = [
        [
            lines_of.floor_of(w, cost.rule),
            f"({cost.origin})",
            per_hour(cost.usd_per_hour),
            f"{amount(cost.usd_per_month)}/month",
            f"else {lines_of.instead(w, cost.instead)}",
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
    lines = table(columns, rows, screen.width, " " * HANG)
    lines[0] = f"  {screen.paint.dim(left('floors cost', HANG - 2))}{lines[0][HANG:]}"
    more = len(w.floor_costs) - MOST_FLOORS
    if more > 0:
        lines.append(f"{'':{HANG}}and {plural(more, 'more floor')}, with --explain")
    return lines


def _unplaced(w: WorkloadPlan, screen: Screen) -> list[str]:
    """Nothing fits: what is asked, what is nearest, what to let go."""
    lines = _labelled("asks", lines_of.asked(w), screen)
    lines += _each("skipped", w.skipped, screen)
    lines += reasons_table("nearest", w.misses, screen)
    return lines + reasons_table("to fit", w.relaxations, screen)


def reasons_table(label: str, verdicts: Sequence[Verdict], screen: Screen) -> list[str]:
    """Machines with what they lack and what to relax, one reason a line."""
    if not verdicts:
        return []
    if screen.width < SIDE_BY_SIDE:
        return _reasons_below(label, verdicts, screen)
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


def _reasons_below(label: str, verdicts: Sequence[Verdict], screen: Screen) -> list[str]:
    lines: list[str] = []
    for n, v in enumerate(verdicts):
        head = f"{v.type.name} {per_hour(v.total)}"
        lines += _labelled("" if n else label, [head], screen)
        lines += reasons_below(v, screen.width, HANG)
    return lines


def reasons_below(v: Verdict, width: int, hang: int) -> list[str]:
    """A machine's reasons one below the other, for terminals too narrow for a table."""
    lines: list[str] = []
    for reason in v.reasons:
        needed = f"{title(reason.rule)}: needs {reason.needed}, has {reason.has}"
        lines += labelled("", [needed, f"→ {reason.relax}"], width, hang)
    return lines
