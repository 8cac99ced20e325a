"""What a candidate costs, with where the figure comes from and how old it is.

A price has a basis: `listed` (the catalogue has it for this region), `borrowed from REGION`,
`estimated from …` (AWS spot where only the advisor's saving is known), or `unknown`. Unknown is
None all the way: it ranks after every known price and is never 0.

Discounts apply to what savings plans and committed use cover: machines and attached GPUs bought
on demand or held by a reservation. Spot, capacity blocks and flex-start are never discounted
(AWS: "Savings Plans and RIs do not apply" to capacity blocks, ec2 capacity-blocks pricing page).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import date
from functools import lru_cache
from typing import NamedTuple

from gputier.catalog import Catalog, InstanceType, Price, is_commercial
from gputier.plan.machine import Machine
from gputier.units import HOURS_PER_MONTH
from gputier.workload import CapacityChoice, Discount

#: Purchases a discount covers.
DISCOUNTED = frozenset({"on_demand", "reservation"})
#: Purchases priced by quotation: no list price exists (AWS DescribeCapacityBlockOfferings,
#: Google's Dynamic Workload Scheduler).
QUOTED = frozenset({"capacity_block", "flex_start"})
UNKNOWN_BASIS = "unknown"
LISTED = "listed"


class UnitPrice(NamedTuple):
    """USD per hour of one thing; None when unknown. `as_of` is the oldest date it rests on."""

    usd: float | None
    basis: str
    as_of: str | None
    borrowed: bool = False

    def plus(self, other: UnitPrice, times: int = 1) -> UnitPrice:
        """The sum with `times` of another; unknown if either is."""
        if self.usd is None or other.usd is None:
            return NOTHING_KNOWN
        dates = [d for d in (self.as_of, other.as_of) if d]
        bases = list(dict.fromkeys((self.basis, other.basis)))
        basis = " + ".join(b for b in bases if b != LISTED) or LISTED
        borrowed = self.borrowed or other.borrowed
        total = self.usd + times * other.usd
        return UnitPrice(total, basis, min(dates) if dates else None, borrowed)


NOTHING_KNOWN = UnitPrice(None, UNKNOWN_BASIS, None)


class Cost(NamedTuple):
    """What `machines` of one candidate cost, USD per hour; None is unknown.

    `per_machine` is machine + attached GPUs + attached scratch, after discounts; `listed` the
    same before them. `total` ranks: it is for all machines.
    """

    per_machine: float | None
    listed: float | None
    scratch: float
    machines: int
    total: float | None
    listed_total: float | None
    basis: str
    as_of: str | None
    borrowed: bool
    discount: Discount | None


def machine_price(catalog: Catalog, machine: Machine, region: str, use: str) -> UnitPrice:
    """One machine with its attached GPUs in a region, before discounts, without scratch."""
    if use in QUOTED:
        return NOTHING_KNOWN
    purchase = "spot" if use == "spot" else "on_demand"
    cloud = machine.type.cloud
    base = _one(catalog, cloud, machine.instance_type, region, purchase)
    if machine.host is None:
        return base
    accelerator = f"accelerator:{machine.type.accelerator}"
    each = _one(catalog, cloud, accelerator, region, purchase)
    return base.plus(each, machine.type.attached_count)


def _one(catalog: Catalog, cloud: str, name: str, region: str, purchase: str) -> UnitPrice:
    price = catalog.price(cloud, name, region, purchase)
    if price is not None:
        return UnitPrice(price.usd_per_hour, LISTED, price.as_of)
    if purchase == "spot":
        return _estimated_spot(catalog, cloud, name, region)
    lender = _lender(catalog.prices(cloud, name, purchase).values(), cloud, region)
    if lender is None:
        return NOTHING_KNOWN
    return UnitPrice(lender.usd_per_hour, f"borrowed from {lender.region}", lender.as_of, True)


def _estimated_spot(catalog: Catalog, cloud: str, name: str, region: str) -> UnitPrice:
    advice = catalog.spot_advice(region, name) if cloud == "aws" else None
    if advice is None:
        return NOTHING_KNOWN
    full = _one(catalog, cloud, name, region, "on_demand")
    if full.usd is None:
        return NOTHING_KNOWN
    usd = full.usd * (1 - advice.savings_percent / 100)
    basis = f"estimated from the spot advisor's saving of {advice.savings_percent:g} %"
    return UnitPrice(usd, basis, min(advice.as_of, full.as_of or advice.as_of), full.borrowed)


def _lender(prices: Iterable[Price], cloud: str, region: str) -> Price | None:
    """The dearest price of the same part of the world, else the dearest anywhere: a borrowed
    price should not flatter. GovCloud and China lend only to themselves."""
    kind = is_commercial(cloud, region)
    pool = [p for p in prices if is_commercial(cloud, p.region) == kind]
    part = region.split("-")[0]
    near = [p for p in pool if p.region.split("-")[0] == part]
    best = near or pool
    return max(best, key=lambda p: (p.usd_per_hour, p.region)) if best else None


def scratch_price(catalog: Catalog, machine: Machine, region: str, use: str) -> UnitPrice:
    """Attached local SSD of one machine, USD per hour. Google bills it by GiB-month."""
    if not machine.ssd_count:
        return UnitPrice(0.0, LISTED, None)
    item = catalog.item(
        machine.type.cloud, "local-ssd-spot" if use == "spot" else "local-ssd", region
    )
    if item is None or item.usd is None:
        return NOTHING_KNOWN
    hourly = item.usd * machine.attached_ssd_gib / HOURS_PER_MONTH
    basis = f"local SSD borrowed from {item.region}" if item.borrowed else LISTED
    return UnitPrice(hourly, basis, item.as_of[:10] or None, item.borrowed)


def discount_for(discounts: Sequence[Discount], type_: InstanceType, use: str) -> Discount | None:
    """The largest discount that covers this family; discounts do not add up."""
    if use not in DISCOUNTED:
        return None
    fitting = [d for d in discounts if d.cloud == type_.cloud and type_.family in d.families]
    return max(fitting, key=lambda d: d.percent, default=None)


def cost_of(
    catalog: Catalog,
    machine: Machine,
    region: str,
    choice: CapacityChoice,
    discounts: Sequence[Discount],
    machines: int,
) -> Cost:
    """The whole cost of a candidate in a region. `choice.on_demand_base` machines of a spot
    fleet are priced on demand."""
    price = machine_price(catalog, machine, region, choice.use)
    scratch = scratch_price(catalog, machine, region, choice.use)
    discount = discount_for(discounts, machine.type, choice.use)
    factor = 1 - (discount.percent / 100 if discount else 0.0)
    whole = price.plus(scratch) if machine.ssd_count else price
    if price.usd is None or scratch.usd is None:
        return Cost(None, None, 0.0, machines, None, None, UNKNOWN_BASIS, None, False, discount)
    each = price.usd * factor + scratch.usd
    listed = price.usd + scratch.usd
    base = min(choice.on_demand_base or 0, machines) if choice.use == "spot" else 0
    total: float | None = each * machines
    listed_total: float | None = listed * machines
    if base:
        on_demand = CapacityChoice(use="on_demand")
        firm = cost_of(catalog, machine, region, on_demand, discounts, 1)
        if firm.total is None or firm.listed is None:
            total = listed_total = None
            whole = NOTHING_KNOWN
        else:
            total = each * (machines - base) + firm.total * base
            listed_total = listed * (machines - base) + firm.listed * base
            whole = whole.plus(UnitPrice(firm.total, firm.basis, firm.as_of, firm.borrowed))
    return Cost(
        each,
        listed,
        scratch.usd,
        machines,
        total,
        listed_total,
        whole.basis,
        whole.as_of,
        whole.borrowed,
        discount,
    )


@lru_cache(maxsize=256)
def _day(text: str) -> date:
    """A catalogue date; `2026-08` and `2023` count from their first day."""
    year, month, day = [*text.split("-"), "1", "1"][:3]
    return date(int(year), int(month), int(day))


def age_days(as_of: str, today: str) -> int:
    """Days between a price's date and the catalogue's; never negative."""
    return max(0, (_day(today) - _day(as_of)).days)


class Commitment(NamedTuple):
    """A one- or three-year commitment: what it costs and from how many hours it pays.

    `break_even_hours` is hours per month above which committing is cheaper than paying by the
    hour: the commitment bills all 730. None: the data has no price for it here.
    """

    term: str
    usd_per_hour: float | None
    break_even_hours: float | None
    as_of: str | None


def commitments(
    catalog: Catalog, machine: Machine, region: str, hourly: float | None
) -> tuple[Commitment, ...]:
    """Both terms for one machine against its hourly price `hourly` after discounts, without what
    is attached: a commitment to the machine leaves the scratch disks as they are."""
    found: list[Commitment] = []
    for term, purchase in (("1y", "reserved_1y"), ("3y", "reserved_3y")):
        cloud, name = machine.type.cloud, machine.instance_type
        price = None if machine.host else catalog.price(cloud, name, region, purchase)
        if price is None:
            found.append(Commitment(term, None, None, None))
            continue
        hours = price.usd_per_hour * HOURS_PER_MONTH / hourly if hourly else None
        found.append(Commitment(term, price.usd_per_hour, hours, price.as_of))
    return tuple(found)
