"""`--explain`: the plan with everything behind it."""

from __future__ import annotations

from collections.abc import Sequence

from gputier.cli import plan_words as words
from gputier.cli.money import per_hour
from gputier.cli.plan_lines import floor_of, instead
from gputier.cli.plan_text import SIDE_BY_SIDE, Screen, plan_blocks, reasons_below
from gputier.cli.text import Column, flow, plural, table
from gputier.plan import StackPlan, Verdict, WorkloadPlan, title
from gputier.sizing import Sizing


def explain_screen(plan: StackPlan, screen: Screen) -> list[str]:
    """The plan screen, then per workload: floors, size, accepted machines, every rejection."""
    lines = plan_blocks(plan, screen)
    for w in plan.workloads:
        lines += ["", screen.paint.bold(f"{w.name}: why")]
        lines += _floors(w, screen)
        lines += _size(w, screen)
        lines += _accepted(w, screen)
        lines += _rejected(w, screen)
    return lines


_FLOOR_COLUMNS = (
    Column("floor", wraps=True),
    Column("asked by"),
    Column("why", wraps=True),
    Column("no."),
)


def _floors(w: WorkloadPlan, screen: Screen) -> list[str]:
    rows = [
        [floor_of(w, rule), floor.origin, floor.why, floor.requirement]
        for rule, floor in w.need.floors.items()
    ]
    lines = ["", f"  {plural(len(rows), 'floor')}"]
    lines += table(_FLOOR_COLUMNS, rows, screen.width, "    ") if rows else []
    costs = [
        f"without {floor_of(w, c.rule)}: {instead(w, c.instead)}, {per_hour(c.usd_per_hour)} less"
        for c in w.floor_costs
    ]
    return lines + [f"    {text}" for text in costs]


def _size(w: WorkloadPlan, screen: Screen) -> list[str]:
    sizing = w.chosen.sizing if w.chosen else None
    if sizing is None:
        return []
    limit = f"at most {100 * sizing.limit_fraction:g} % of the usable memory"
    head = f"  size: {sizing.per_gpu_gib:.1f} GiB per GPU on {plural(sizing.gpus, 'GPU')}, {limit}"
    return ["", *flow([head], screen.width, 4), *formula_table(sizing, screen.width, "    ")]


def formula_table(sizing: Sizing, width: int, indent: str) -> list[str]:
    """Each part with its figure and its arithmetic."""
    rows = [[words.part_name(p.name), f"{p.gib:.2f}", p.formula] for p in sizing.parts]
    columns = (Column("part"), Column("GiB", right=True), Column("formula", wraps=True))
    return table(columns, rows, width, indent)


_ACCEPTED_COLUMNS = (
    Column("type"),
    Column("place"),
    Column("$/h", right=True),
    Column("price", wraps=True, drop=2),
    Column("as of", drop=3),
    Column("availability", drop=1),
)


def _accepted(w: WorkloadPlan, screen: Screen) -> list[str]:
    rows = [_accepted_cells(v) for v in w.order]
    lines = ["", f"  {plural(len(rows), 'type fits', 'types fit')}, best first"]
    return lines + (table(_ACCEPTED_COLUMNS, rows, screen.width, "    ") if rows else [])


def _accepted_cells(v: Verdict) -> list[str]:
    return [
        words.machine_name(v),
        words.place(v),
        per_hour(v.total),
        v.cost.basis if v.cost else "",
        (v.cost.as_of if v.cost else None) or "",
        "plan only" if v.plan_only else v.availability,
    ]


_REJECTED_COLUMNS = (
    Column("type"),
    Column("cloud", drop=2),
    Column("$/h", right=True, drop=1),
    Column("rule"),
    Column("needs", wraps=True),
    Column("has", wraps=True),
    Column("relax", wraps=True, drop=3),
)


def _rejected(w: WorkloadPlan, screen: Screen) -> list[str]:
    """Every rejected row with all its reasons, the nearest first."""
    order = sorted(
        w.rejected,
        key=lambda v: (len(v.reasons), v.total is None, v.total or 0.0, v.type.cloud, v.type.name),
    )
    lines = ["", f"  {plural(len(order), 'type')} rejected, the nearest first"]
    if screen.width < SIDE_BY_SIDE:
        for v in order:
            lines += [f"    {v.type.name} {per_hour(v.total)}", *reasons_below(v, screen.width, 6)]
        return lines
    rows = [row for v in order for row in _rejected_cells(v)]
    return lines + (table(_REJECTED_COLUMNS, rows, screen.width, "    ") if rows else [])


def _rejected_cells(v: Verdict) -> Sequence[list[str]]:
    found: list[list[str]] = []
    for n, reason in enumerate(v.reasons):
        lead = ["", "", ""] if n else [v.type.name, v.type.cloud, per_hour(v.total)]
        found.append([*lead, title(reason.rule), reason.needed, reason.has, reason.relax])
    return found
