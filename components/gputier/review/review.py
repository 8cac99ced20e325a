"""A whole review: what each changed resource costs before and after, the totals, and the risks."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from gputier.catalog import Catalog
from gputier.lock import Lock
from gputier.review.cost import BILLED_BY_USE, Cost, Priced, Unpriced
from gputier.review.merge import before_and_after, with_base
from gputier.review.preview import Change, Preview, Violation
from gputier.review.prices import price
from gputier.review.risk import Risk, Scene
from gputier.review.risks import in_order, risks
from gputier.review.risks_machines import machines_replaced
from gputier.review.risks_money import lock_risks, over_budget
from gputier.review.world import World
from gputier.workload import Discount

#: What is looked up and not made is somebody else's cost.
NOT_OURS = ("read",)
#: Properties that cost nothing.
_TAGS = ("tags", "tagsAll", "labels", "effectiveLabels", "pulumiLabels")


class Row(NamedTuple):
    """A resource whose cost is known on a side; None where it is not there, or has no price."""

    change: Change
    before: Priced | None
    after: Priced | None

    @property
    def delta(self) -> float:
        """USD a month more than before."""
        return _usd(self.after) - _usd(self.before)

    @property
    def priced(self) -> Priced:
        """The later side that has a price."""
        found = self.after or self.before
        if found is None:
            raise ValueError(f"{self.change.urn} has no price on either side")
        return found


class NoPrice(NamedTuple):
    """A resource that costs what nobody here knows, or more than is said (`partly`). `open` where
    this change may make a difference that nobody sees; what is billed by use makes its own."""

    urn: str
    type: str
    why: str
    partly: bool
    open: bool


class Totals(NamedTuple):
    """USD a month of everything that has a price. `low` and `high` bound `after` where a machine is
    open; `least` and `most` are the ends of all scaling ranges."""

    before: float
    after: float
    low: float
    high: float
    least: float
    most: float

    @property
    def delta(self) -> float:
        return self.after - self.before


class Review(NamedTuple):
    """What a reviewer is told. `rows` are changed resources with a price, the largest difference
    first; `unpriced` those that the totals leave out. `replaced` machines go and come again; None
    is an unknown number. `incomplete` is why it is no review of a whole deployment."""

    project: str
    stack: str
    catalog: str
    catalog_as_of: str
    rows: tuple[Row, ...]
    totals: Totals
    unpriced: tuple[NoPrice, ...]
    risks: tuple[Risk, ...]
    violations: tuple[Violation, ...]
    replaced: float | None
    changes: int
    unlisted: int
    incomplete: str | None


class Beside(NamedTuple):
    """What a review is made beside: an earlier preview or export, the stack's lock, and discounts
    that a person named (the preview's own config has them else)."""

    base: Preview | None = None
    lock: Lock | None = None
    discounts: tuple[Discount, ...] = ()


def review(preview: Preview, catalog: Catalog, beside: Beside | None = None) -> Review:
    """The review of a preview. Raises `InvalidInput` for a base of another stack, and for discounts
    that cannot be read."""
    beside = beside or Beside()
    whole = preview if beside.base is None else with_base(preview, beside.base)
    before, after = before_and_after(whole, catalog)
    if beside.discounts:
        before, after = (
            World(one.states, one.config, catalog, beside.discounts) for one in (before, after)
        )
    rows, unpriced = _priced(whole, before, after)
    changed = [row for row in rows if row.change.op != "same"]
    totals = _totals(rows)
    found = [
        *risks(whole, before, after),
        *over_budget(after, {r.change.urn: _usd(r.after) for r in rows if r.after}),
        *(lock_risks(beside.lock, after, whole=_lists_all(whole)) if beside.lock else ()),
    ]
    return Review(
        project=whole.project,
        stack=whole.stack,
        catalog=catalog.id,
        catalog_as_of=catalog.as_of,
        rows=tuple(sorted(changed, key=lambda r: (-abs(r.delta), r.change.urn))),
        totals=totals,
        unpriced=tuple(unpriced),
        risks=in_order(found),
        violations=whole.violations,
        replaced=machines_replaced(Scene(whole, before, after)),
        changes=sum(_changes(change) for change in whole.changes.values()),
        unlisted=whole.unlisted,
        incomplete=whole.incomplete,
    )


def _lists_all(preview: Preview) -> bool:
    return preview.incomplete is None and preview.unlisted == 0


def _changes(change: Change) -> bool:
    return change.op not in ("same", *NOT_OURS) and change.state.custom


def _priced(preview: Preview, before: World, after: World) -> tuple[list[Row], list[NoPrice]]:
    rows: list[Row] = []
    missing: list[NoPrice] = []
    for urn in sorted(preview.changes):
        change = preview.changes[urn]
        if not change.state.custom or change.op in NOT_OURS or _of_the_engine(change):
            continue
        old = price(before, change.before) if change.before is not None else None
        new = price(after, change.after) if change.after is not None else None
        if isinstance(old, Priced) or isinstance(new, Priced):
            rows.append(Row(change, _known(old), _known(new)))
        if change.op != "same":
            missing += _missing(change, old, new)
    return rows, missing


def _of_the_engine(change: Change) -> bool:
    return change.type.startswith("pulumi:")


def _known(cost: Cost | None) -> Priced | None:
    return cost if isinstance(cost, Priced) else None


def _missing(change: Change, old: Cost | None, new: Cost | None) -> Iterator[NoPrice]:
    """What of a resource has no price; of the side that stays, else of the one that goes."""
    lacks = [(_lack(side), when) for side, when in ((new, ""), (old, "before: ")) if side]
    same = len({lack for lack, _when in lacks}) < len(lacks)
    for (why, partly), when in lacks[:1] if same else lacks:
        if why:
            shown = f"{when}{why}" if len(lacks) > 1 else why
            open_ = not same or (not partly and _beyond_tags(change))
            open_ = open_ and not why.startswith(BILLED_BY_USE)
            yield NoPrice(change.urn, change.type, shown, partly, open_)


def _beyond_tags(change: Change) -> bool:
    """Whether more than names for people changes: a size may be in it."""
    return any(re.split(r"[.\[]", path)[0] not in _TAGS for path in change.changed)


def _lack(cost: Cost) -> tuple[str, bool]:
    """What of a cost has no price, in words, and whether other parts have one."""
    if isinstance(cost, Unpriced):
        return cost.why, False
    return ("; ".join(cost.gaps), True) if isinstance(cost, Priced) else ("", False)


def _usd(cost: Priced | None) -> float:
    return cost.usd_per_month if cost else 0.0


def _totals(rows: Iterable[Row]) -> Totals:
    known = list(rows)
    after = [row.after for row in known if row.after]
    return Totals(
        before=sum(_usd(row.before) for row in known),
        after=sum(_usd(one) for one in after),
        low=sum(one.low for one in after),
        high=sum(one.high for one in after),
        least=sum(_usd(one) if one.least is None else one.least for one in after),
        most=sum(_usd(one) if one.most is None else one.most for one in after),
    )
