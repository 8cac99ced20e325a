"""A review in words that every rendering shares."""

from __future__ import annotations

from typing import NamedTuple

from gputier.review.cost import Priced
from gputier.review.review import Review, Row
from gputier.review.risk import WARNING, Risk
from gputier.units import usd

#: What of a difference in cost nobody needs to see.
NOTHING = 0.005
#: Said of a preview that is not the whole of a deployment.
NOT_WHOLE = "The preview is not whole, so neither its cost nor its risk is known."
#: A difference below both is small: USD a month, and its part of the largest one. A few of them are
#: shown like others.
SMALL_USD, SMALL, SMALL_ROWS = 5.0, 0.01, 3


class Line(NamedTuple):
    """A row of the table of costs, as text. `why` is what of the machines made the difference."""

    name: str
    what: str
    before: str
    after: str
    change: str
    why: str = ""


def plain(text: str) -> str:
    """Text of anybody in one line, without what a terminal or a reader obeys instead of showing."""
    return shown(" ".join(text.split()))


def shown(line: str) -> str:
    """A line with a mark for every character that has no shape: controls, turns of direction."""
    return "".join(c if c.isprintable() else "�" for c in line)


def headline(found: Review) -> str:
    """One sentence, with the difference first."""
    if found.incomplete:
        return f"no review: {found.incomplete}"
    if not found.changes:
        return "nothing changes"
    totals = found.totals
    least = "at least " if found.unpriced else ""
    parts = [
        f"{difference(totals.delta)} ({least}{money(totals.before)} → {money(totals.after)})"
        if abs(totals.delta) >= NOTHING
        else f"no known cost changes ({least}{money(totals.after)} a month)"
    ]
    if found.replaced is None:
        parts.append("machines replaced")
    elif found.replaced:
        plural = "" if found.replaced == 1 else "s"
        parts.append(f"{found.replaced:g} machine{plural} replaced")
    return ", ".join(parts)


def difference(delta: float) -> str:
    """`+$3,120 a month`."""
    sign = "+" if delta > 0 else ""
    return f"{sign}{money(delta)} a month"


def money(amount: float) -> str:
    return usd(amount) if abs(amount) >= NOTHING else "$0"


def lines(found: Review) -> list[Line]:
    """What changed in cost, the largest difference first; what is small beside it in one line."""
    large, small = by_size(found)
    return [*map(_line, large), *([_sum(small)] if small else [])]


def by_size(found: Review) -> tuple[list[Row], list[Row]]:
    """The rows that a person wants one by one, and those that one line is enough for."""
    changed = [row for row in found.rows if abs(row.delta) >= NOTHING or _moved(row)]
    most = max((abs(row.delta) for row in changed), default=0.0)
    small = [
        row for row in changed if abs(row.delta) < min(SMALL_USD, SMALL * most) and not _moved(row)
    ]
    if len(small) < SMALL_ROWS:
        return changed, []
    urns = {row.change.urn for row in small}
    return [row for row in changed if row.change.urn not in urns], small


def _sum(rows: list[Row]) -> Line:
    before, after, delta = (
        sum(row.before.usd_per_month for row in rows if row.before),
        sum(row.after.usd_per_month for row in rows if row.after),
        sum(row.delta for row in rows),
    )
    sign = "+" if delta > 0 else ""
    change = f"{sign}{money(delta)}" if abs(delta) >= NOTHING else "±$0"
    return Line("", f"{len(rows)} smaller", money(before), money(after), change)


def _moved(row: Row) -> bool:
    """Another machine for the same money is worth a line, and so is a fleet that may grow more."""
    if row.before is None or row.after is None:
        return False
    machines = [(side.machine, side.quantity) for side in (row.before, row.after)]
    return machines[0] != machines[1] or bool(_most(row.before, row.after))


def _most(old: Priced, new: Priced) -> str:
    """What a scaling range can come to, where that changes."""
    if old.most is None or new.most is None or abs(new.most - old.most) < SMALL_USD:
        return ""
    return f"at most {money(old.most)} → {money(new.most)}"


def _line(row: Row) -> Line:
    delta = row.delta
    return Line(
        name=row.change.state.name,
        what=_what(row.priced) or row.change.type.rsplit(":", 1)[-1],
        before=_side(row.before),
        after=_side(row.after),
        change="±$0" if abs(delta) < NOTHING else f"{'+' if delta > 0 else ''}{money(delta)}",
        why=_why(row),
    )


def _what(cost: Priced) -> str:
    if cost.machine is None:
        return ""
    count = "" if cost.quantity in (None, 1) else f"{cost.quantity:g} × "
    capacity = "" if cost.capacity in (None, "on_demand") else f" {cost.capacity.replace('_', ' ')}"
    return f"{count}{cost.machine}{capacity}"


def _side(cost: Priced | None) -> str:
    if cost is None:
        return "–"
    return money(cost.usd_per_month)


def _why(row: Row) -> str:
    """What of the machines made the difference, and how far off it can be."""
    old, new = row.before, row.after
    spread = ""
    if new is not None and new.high - new.low >= NOTHING:
        spread = f"{money(new.low)} to {money(new.high)} by the machine that starts"
    if old is None or new is None:
        told = {"delete": "deleted", "create": "new"}.get(row.change.op, "")
        return ", ".join(filter(None, [told, spread]))
    parts: list[str] = []
    if old.machine != new.machine:
        parts.append(f"{old.machine} → {new.machine}")
    if old.quantity != new.quantity and old.quantity is not None and new.quantity is not None:
        parts.append(f"{old.quantity:g} → {new.quantity:g} machines")
    if old.capacity != new.capacity and old.capacity and new.capacity:
        parts.append(f"{old.capacity} → {new.capacity}".replace("_", " "))
    hours = (old.hours, new.hours)
    if None not in hours and abs((old.hours or 0) - (new.hours or 0)) >= 0.5:
        parts.append(f"{old.hours:.0f} → {new.hours:.0f} h")
    if not parts:
        parts.append(_most(old, new))
    return ", ".join(filter(None, [*parts, spread]))


def warnings(found: Review) -> list[Risk]:
    return [risk for risk in found.risks if risk.level == WARNING]


def remarks(found: Review) -> list[Risk]:
    return [risk for risk in found.risks if risk.level != WARNING]


def left_out(found: Review) -> list[str]:
    """What the totals do not hold, in sentences."""
    said: list[str] = []
    whole = [one for one in found.unpriced if not one.partly]
    if whole:
        said.append(f"{_count(len(whole), 'changed resource')} without a price")
    partly = len(found.unpriced) - len(whole)
    if partly:
        said.append(f"{_count(partly, 'changed resource')} priced in part")
    if found.unlisted:
        said.append(
            f"{_count(found.unlisted, 'unchanged resource')} that the preview does not list"
            " (`--show-sames`, or `--base` with an export, would)"
        )
    return said


def range_of(found: Review) -> str | None:
    """The ends of all scaling ranges, where they differ from what is planned."""
    totals = found.totals
    if totals.most - totals.least < NOTHING:
        return None
    return f"scaling ranges: {money(totals.least)} to {money(totals.most)} a month"


def summary(found: Review) -> str:
    """What the details hold."""
    notes, priced = len(remarks(found)), found.catalog_as_of
    parts = [_count(len(found.unpriced), "unpriced resource") if found.unpriced else ""]
    parts += [_count(notes, "note") if notes else "", f"prices of {priced}"]
    return ", ".join(filter(None, parts))


def _count(n: int, noun: str) -> str:
    return f"{n} {noun}{'' if n == 1 else 's'}"
