"""Machines of one kind or another, bought in one way or two: what so many of them cost.

Shared by everything that runs a number of machines: groups, node pools, fleets, single instances.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import ceil
from typing import NamedTuple

from gputier.review.bill import Bill
from gputier.review.cost import Cost, Part
from gputier.review.hours import Sizes
from gputier.review.machines import Hourly, hourly
from gputier.units import HOURS_PER_MONTH


class Kind(NamedTuple):
    """A machine that may be started: its type, what is attached, and how much of the asked size one
    counts for (`weight`, 1 where machines are counted)."""

    instance_type: str
    attached: tuple[str, int] | None = None
    weight: float = 1.0


class Mix(NamedTuple):
    """How machines are bought: the first `base` and `percent` of the rest by `firm`, what remains
    on spot. Only one capacity: percent 100."""

    firm: str = "on_demand"
    base: float = 0.0
    percent: float = 100.0

    def firmly(self, count: float) -> float:
        """How many of so many are not on spot; parts of machines where a percentage says so."""
        base = min(self.base, count)
        return base + (count - base) * self.percent / 100

    @property
    def capacity(self) -> str:
        """In one word; on_demand with a part on spot is spot with a base."""
        return self.firm if self.percent >= 100 else "spot"


class Counts(NamedTuple):
    """How many run on average (`now`), at the least and at the most; `peak` is how many there are
    when they run. None: there is no scaling range."""

    now: Sizes
    peak: float


class Pool(NamedTuple):
    """What a pool of machines came to. `below` and `above` are how far its cost may be from the
    likely one, where several types may be started; `average` is how many run."""

    machine: str
    capacity: str
    quantity: float
    hours: float
    average: float
    below: float
    above: float
    least: float | None
    least_count: float
    most: float | None
    most_count: float


def bill_machines(bill: Bill, kinds: Sequence[Kind], mix: Mix, counts: Counts) -> Pool | None:
    """Add the machines to a bill. The likely price is the first kind's, which is asked for first;
    the others make it a range. None where no kind has a price, and then the bill says why."""
    priced: list[tuple[Kind, float, list[tuple[float, Hourly]]]] = []
    average = counts.now.desired or 0.0
    for kind in kinds:
        found = _priced(bill, kind, mix, average)
        if isinstance(found, str):
            bill.gaps.append(found)
        else:
            priced.append((kind, _usd(found), found))
    if not priced:
        return None
    kind, likely, shares = priced[0]
    for share, price in shares:
        bill.notes += [price.note] if price.note else []
        if share or len(shares) == 1:
            bill.add("machines", _part(share, price, counts))
    sums = [usd for _, usd, _ in priced]
    names = " or ".join(dict.fromkeys(kind.instance_type for kind, _, _ in priced))
    return Pool(
        machine=names,
        capacity=mix.capacity,
        quantity=machines(counts.peak, kind),
        hours=HOURS_PER_MONTH * average / counts.peak if counts.peak else 0.0,
        average=machines(average, kind),
        below=likely - min(sums),
        above=max(sums) - likely,
        least=_at(bill, kind, mix, counts.now.least),
        least_count=machines(counts.now.least or 0.0, kind),
        most=_at(bill, kind, mix, counts.now.most),
        most_count=machines(counts.now.most or 0.0, kind),
    )


def machines(size: float, kind: Kind) -> float:
    """How many machines a size is: a whole one more where a weight does not divide it. An average
    over a schedule is no size that was asked for, and stays as it is."""
    count = size / kind.weight
    return float(ceil(count)) if size == int(size) else count


def in_reservation(bill: Bill, pool: Pool | None) -> Pool | None:
    """The same machines where another resource is the reservation that they run in."""
    if pool is None:
        return None
    part = bill.parts["machines"]
    bill.parts["machines"] = part._replace(usd_per_month=0.0, text="in a reservation counted here")
    return pool._replace(capacity="reservation", below=0.0, above=0.0,
                         least=pool.least and 0.0, most=pool.most and 0.0)  # fmt: skip


def _priced(bill: Bill, kind: Kind, mix: Mix, size: float) -> list[tuple[float, Hourly]] | str:
    """How many by each price; a text is why there is none."""
    count = machines(size, kind)
    firm = mix.firmly(count)
    ways = [(firm, mix.firm)] if firm or mix.percent >= 100 else []
    if mix.percent < 100 and (count > firm or not ways):
        ways.append((count - firm, "spot"))
    found: list[tuple[float, Hourly]] = []
    for share, capacity in ways:
        price = hourly(
            bill.world, bill.cloud, kind.instance_type, bill.region, capacity,
            attached=kind.attached,
        )  # fmt: skip
        if isinstance(price, str):
            return price
        found.append((share, price))
    return found


def _usd(shares: Sequence[tuple[float, Hourly]]) -> float:
    return sum(share * price.usd for share, price in shares) * HOURS_PER_MONTH


def _at(bill: Bill, kind: Kind, mix: Mix, size: float | None) -> float | None:
    if size is None:
        return None
    found = _priced(bill, kind, mix, size)
    return None if isinstance(found, str) else _usd(found)


def pool_cost(bill: Bill, pool: Pool | None, extras: Callable[[Bill, float], None]) -> Cost:
    """The bill of a pool with what each of its machines has beside it: `extras(bill, times)` adds
    disks and addresses of so many machines."""
    if pool is None:
        return bill.cost()
    one = Bill(bill.world, bill.cloud, bill.region)
    extras(one, 1.0)
    beside = sum(part.usd_per_month for part in one.parts.values())
    extras(bill, pool.average)
    bill.gaps += [gap for gap in one.gaps if gap not in bill.gaps]
    total = sum(part.usd_per_month for part in bill.parts.values())
    ends = [
        None if usd is None else usd + beside * count
        for usd, count in ((pool.least, pool.least_count), (pool.most, pool.most_count))
    ]
    return bill.cost(
        low=total - pool.below,
        high=total + pool.above,
        machine=pool.machine,
        capacity=pool.capacity,
        quantity=pool.quantity,
        hours=pool.hours,
        least=ends[0],
        most=ends[1],
    )


def _part(share: float, price: Hourly, counts: Counts) -> Part:
    hours = HOURS_PER_MONTH
    if counts.peak and counts.now.desired and counts.now.desired < counts.peak:
        share, hours = (
            share * counts.peak / counts.now.desired,
            (HOURS_PER_MONTH * counts.now.desired / counts.peak),
        )
    usd = share * price.usd * hours
    return Part(usd, f"{share:g} × ${price.usd:.4f} × {hours:.0f} h", price.basis, price.as_of)
