"""A bill being written: parts with their arithmetic, and what of them has no price."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from gputier.plan.price import LISTED
from gputier.review.cost import Cost, Part, Priced, Unpriced
from gputier.review.preview import Hidden, State, Value
from gputier.review.values import text
from gputier.review.world import World
from gputier.units import HOURS_PER_MONTH


class Bill:
    """What one resource costs a month, part by part, in one region of one cloud."""

    def __init__(self, world: World, cloud: str, region: str) -> None:
        self.world, self.cloud, self.region = world, cloud, region
        self.parts: dict[str, Part] = {}
        self.gaps: list[str] = []
        self.notes: list[str] = []

    def add(self, name: str, part: Part) -> None:
        """One more part; a second of the same name adds to it."""
        old = self.parts.get(name)
        if old is not None:
            dates = [d for d in (old.as_of, part.as_of) if d]
            part = Part(
                old.usd_per_month + part.usd_per_month,
                f"{old.text} + {part.text}",
                old.basis if old.basis == part.basis else f"{old.basis}, {part.basis}",
                min(dates) if dates else None,
            )
        self.parts[name] = part

    def item(self, name: str, item: str, amount: float, unit: str, times: float = 1.0) -> None:
        """So much of something that is billed by the month, `times` over; a gap without a price."""
        if amount <= 0 or times <= 0:
            return
        price = self.world.catalog.item(self.cloud, item, self.region)
        if price is None or price.usd is None:
            self.gaps.append(f"{name}: no price is known for {item}")
            return
        each = f"{round(times, 3):g} × " if times != 1 else ""
        text = f"{each}{amount:g} {unit} × ${price.usd:g}"
        basis = f"borrowed from {price.region}" if price.borrowed else LISTED
        as_of = price.as_of[:10] if price.as_of[:1].isdigit() else None  # some say `undated`
        self.add(name, Part(price.usd * amount * times, text, basis, as_of))

    def hours(self, name: str, item: str, count: float, hours: float = HOURS_PER_MONTH) -> None:
        """So many of something that is billed by the hour."""
        self.item(name, item, hours, "h", count)

    def cost(self, nothing: str | None = None, **more: Any) -> Cost:
        """The bill as a cost. One with gaps and no part has no price; `nothing` says why one
        without either is unpriced."""
        if not self.parts and (self.gaps or nothing):
            return Unpriced("; ".join(self.gaps) or nothing or "")
        total = sum(part.usd_per_month for part in self.parts.values())
        given: dict[str, Any] = {"low": total, "high": total, **more}
        return Priced(
            parts=self.parts,
            notes=tuple(dict.fromkeys(self.notes)),
            gaps=tuple(dict.fromkeys(self.gaps)),
            **given,
        )


def hidden(state: State, *names: str) -> str | None:
    """Why a resource cannot be priced whose value is not in the preview."""
    for name in names:
        value = state.get(name)
        if isinstance(value, Hidden):
            return f"its {name} is {value.value} in the preview"
    return None


def first(values: Iterable[Value]) -> str | None:
    return next((found for value in values if (found := text(value))), None)
