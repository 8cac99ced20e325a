"""A review as JSON: schema `gputier/review/1`, a contract (docs/json.md)."""

from __future__ import annotations

from typing import Any

from gputier.review.cost import Priced
from gputier.review.review import Review, Row

SCHEMA = "gputier/review/1"


def document(found: Review) -> dict[str, Any]:
    """What scripts read. USD a month, to the cent; None is not known, or not there."""
    totals = found.totals
    return {
        "schema": SCHEMA,
        "project": found.project,
        "stack": found.stack,
        "incomplete": found.incomplete,
        "catalog": {"id": found.catalog, "as_of": found.catalog_as_of},
        "totals": {
            "before_usd_per_month": _cents(totals.before),
            "after_usd_per_month": _cents(totals.after),
            "delta_usd_per_month": _cents(totals.delta),
            "low_usd_per_month": _cents(totals.low),
            "high_usd_per_month": _cents(totals.high),
            "min_usd_per_month": _cents(totals.least),
            "max_usd_per_month": _cents(totals.most),
        },
        "machines_replaced": found.replaced,
        "unlisted": found.unlisted,
        "resources": [_row(row) for row in found.rows],
        "unpriced": [
            {"urn": one.urn, "type": one.type, "why": one.why, "partly": one.partly}
            for one in found.unpriced
        ],
        "risks": [
            {
                "rule": one.rule,
                "level": one.level,
                "urn": one.urn,
                "property": one.property,
                "text": one.text,
            }
            for one in found.risks
        ],
        "violations": [
            {
                "policy": one.policy,
                "pack": one.pack,
                "level": one.level,
                "urn": one.urn,
                "message": one.message,
            }
            for one in found.violations
        ],
    }


def _row(row: Row) -> dict[str, Any]:
    shown, after = row.priced, row.after
    bases = list(dict.fromkeys(part.basis for part in shown.parts.values()))
    dates = [part.as_of for part in shown.parts.values() if part.as_of]
    return {
        "urn": row.change.urn,
        "type": row.change.type,
        "op": row.change.op,
        "before_usd_per_month": _side(row.before),
        "after_usd_per_month": _side(row.after),
        "low": _cents(after.low) if after else None,
        "high": _cents(after.high) if after else None,
        "min": _maybe(after.least) if after else None,
        "max": _maybe(after.most) if after else None,
        "quantity": shown.quantity,
        "hours_per_month": None if shown.hours is None else round(shown.hours, 2),
        "machine": shown.machine,
        "capacity": shown.capacity,
        "price_basis": ", ".join(bases) or None,
        "price_as_of": min(dates) if dates else None,
        "parts": {
            name: {"usd_per_month": _cents(part.usd_per_month), "text": part.text}
            for name, part in shown.parts.items()
        },
        "notes": list(shown.notes),
    }


def _side(cost: Priced | None) -> float | None:
    return None if cost is None else _cents(cost.usd_per_month)


def _maybe(usd: float | None) -> float | None:
    return None if usd is None else _cents(usd)


def _cents(usd: float) -> float:
    return round(usd, 2) + 0.0  # no minus before a zero
