"""`--why-not TYPE`: one machine against the choice of each workload."""

from __future__ import annotations

from collections.abc import Sequence

from gputier.catalog import Catalog, InstanceType
from gputier.cli import plan_words as words
from gputier.cli.catalog_show import find
from gputier.cli.money import per_hour
from gputier.cli.plan_text import SIDE_BY_SIDE, Screen, reasons_below
from gputier.cli.text import Column, flow, listed, plural, table
from gputier.errors import InvalidInput, Problem
from gputier.plan import StackPlan, Verdict, WorkloadPlan, money, title

SCHEMA = "gputier/why-not/1"


def types_of(catalog: Catalog, name: str) -> Sequence[InstanceType]:
    """The rows a name means. Raises InvalidInput with the nearest names."""
    carried = [row.name for row in catalog.rows(["gcp"]) if row.vcpu_range]
    if name in {host.name for host in catalog.hosts()}:
        hint = f"name what it would carry: {', '.join(carried[:4])}, …"
        raise InvalidInput(Problem("--why-not", f"`{name}` carries GPUs only when attached", hint))
    return catalog.find_type(name) or (find(catalog, name),)


def why_not_screen(plan: StackPlan, catalog: Catalog, name: str, screen: Screen) -> list[str]:
    """An answer per workload: the pick itself, dearer, rejected with all reasons, or outside."""
    rows = types_of(catalog, name)
    lines: list[str] = []
    for w in plan.workloads:
        for row in rows:
            lines += _answer(w, row, screen)
    return lines


def _answer(w: WorkloadPlan, row: InstanceType, screen: Screen) -> list[str]:
    subject = f"{w.name} on {row.name}"
    v = _verdict(w, row)
    if v is None:
        clouds = listed(w.market.clouds)
        text = f"{subject}: is sold by {row.cloud}, and this workload allows {clouds} only"
        return flow([text, f"→ clouds: add {row.cloud}"], screen.width, 2)
    if v.accepted:
        return flow([f"{subject}: {_accepted(w, v)}"], screen.width, 2)
    price = "" if v.total is None else f" (it costs {per_hour(v.total)} in {v.region})"
    head = f"{subject}: rejected by {plural(len(v.reasons), 'rule')}{price}"
    if screen.width < SIDE_BY_SIDE:
        return [*flow([head], screen.width, 2), *reasons_below(v, screen.width, 2)]
    cells = [
        [title(r.rule), f"needs {r.needed}", f"has {r.has}", f"→ {r.relax}"] for r in v.reasons
    ]
    columns = (Column(), Column(wraps=True), Column(wraps=True), Column(wraps=True))
    return [*flow([head], screen.width, 2), *table(columns, cells, screen.width, "  ")]


def _verdict(w: WorkloadPlan, row: InstanceType) -> Verdict | None:
    same = (v for v in w.verdicts if (v.type.cloud, v.type.name) == (row.cloud, row.name))
    return next(same, None)


def _accepted(w: WorkloadPlan, v: Verdict) -> str:
    best = w.order[0]
    if v is best:
        return f"this is the pick, {per_hour(v.total)} in {v.region}"
    pick = f"the pick ({words.machine_name(best)}, {per_hour(best.total)})"
    place = f"place {w.order.index(v) + 1} of {len(w.order)}"
    if v.plan_only and not best.plan_only:
        return f"fits, but {v.type.cloud} is plan only: shown, never locked; {pick} can be deployed"
    if v.unconfirmed and best.confirmed:
        return f"fits for {per_hour(v.total)}, but no source confirms where it is sold; see {pick}"
    if v.total is None:
        return f"fits, but its price is unknown, and priced machines come first; see {pick}"
    if best.total and v.total > best.total:
        ratio = v.total / best.total
        times = f"{ratio:.1f} ×" if ratio >= 1.05 else f"{100 * (ratio - 1):.1f} % more than"
        return f"fits, but costs {per_hour(v.total)}, {times} {pick}; {place}"
    prefer = w.need.workload.prefer
    if prefer != "price":
        return f"fits for {per_hour(v.total)}, but comes after {pick} by {prefer}; {place}"
    return f"fits and costs as much as {pick}, which wins the tie; {place}"


def why_not_document(plan: StackPlan, catalog: Catalog, name: str) -> dict[str, object]:
    """Schema `gputier/why-not/1`."""
    rows = types_of(catalog, name)
    return {
        "schema": SCHEMA,
        "name": plan.name,
        "catalog": {"id": plan.catalog_id, "as_of": plan.catalog_as_of},
        "instance_type": name,
        "workloads": [_document(w, row) for w in plan.workloads for row in rows],
    }


def _document(w: WorkloadPlan, row: InstanceType) -> dict[str, object]:
    v = _verdict(w, row)
    best = w.order[0] if w.order else None
    verdict = "outside" if v is None else "accepted" if v.accepted else "rejected"
    total, least = v.total if v else None, best.total if best else None
    return {
        "name": w.name,
        "cloud": row.cloud,
        "verdict": "chosen" if v is not None and v is best else verdict,
        "place": w.order.index(v) + 1 if v is not None and v.accepted else None,
        "region": (v.region if v else "") or None,
        "availability": v.availability if v else None,
        "usd_per_hour": money(total),
        "times_the_pick": round(total / least, 6) if total is not None and least else None,
        "pick": best.machine.instance_type if best else None,
        "reasons": [
            {
                "rule": r.rule,
                "title": title(r.rule),
                "needed": r.needed,
                "has": r.has,
                "relax": r.relax,
            }
            for r in (v.reasons if v else ())
        ],
    }
