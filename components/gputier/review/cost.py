"""What one resource costs a month, and how that was reckoned.

USD per month throughout. Low and high are one figure unless the machine itself is open (a mixed
policy's overrides, an unknown type); the age of a price is labelled and widens nothing. What is not
known is None and stays so in sums: it is listed, and never 0.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

from gputier.review.preview import State
from gputier.review.world import World


class Part(NamedTuple):
    """One thing on the bill: `text` is its arithmetic, such as `2 × $0.98 × 730 h`. `basis` and
    `as_of` are those of its price, as in `gputier.plan.price`."""

    usd_per_month: float
    text: str
    basis: str
    as_of: str | None


class Priced(NamedTuple):
    """A resource on one side. `parts` adds up to its cost by name: machines, root disks, IOPS.

    `low` and `high` bound the machines' part where their type is open, and equal the sum where it
    is not. `quantity` is how many machines (the desired count, the minimum where there is none),
    `machine` their instance type, `capacity` on_demand, spot, reservation and so on; None for what
    is no machine. `least` and `most` are the cost at the ends of the scaling range, where it has
    one. `notes` say what a reader has to know: hours from a schedule, a price that is borrowed.
    `gaps` says what of it has no price: the cost is more than is said.
    """

    parts: Mapping[str, Part]
    low: float
    high: float
    machine: str | None = None
    capacity: str | None = None
    quantity: float | None = None
    hours: float | None = None
    least: float | None = None
    most: float | None = None
    notes: tuple[str, ...] = ()
    gaps: tuple[str, ...] = ()

    @property
    def usd_per_month(self) -> float:
        """What is most likely: the sum of its parts."""
        return sum(part.usd_per_month for part in self.parts.values())


#: How a reason begins where what is used decides, and no declaration could say how much.
BILLED_BY_USE = "billed by use"


class Unpriced(NamedTuple):
    """A resource that costs something, nobody here knows how much."""

    why: str


class Elsewhere(NamedTuple):
    """A resource that costs nothing by itself. `why` says so in words: it is free, or its cost
    stands on the resource that decides how many there are."""

    why: str


Cost = Priced | Unpriced | Elsewhere
Pricer = Callable[[World, State], Cost]
"""What a resource of one type costs in one world. Raises nothing for values that are not there."""
