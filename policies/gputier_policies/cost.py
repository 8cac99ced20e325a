"""What machines cost: an hour of one, a month of a fleet, a month of the stack.

A month is the most that a fleet may come to: every machine that it may have, for the hours in which
its schedule lets it run. What has no price is said, and never counts as nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from math import ceil
from typing import Any, NamedTuple

from gputier_policies import facts
from gputier_policies.facts import Discount, Price
from gputier_policies.fleets import Fleet, fleets
from gputier_policies.hours import MONTH
from gputier_policies.links import Links, given
from gputier_policies.machine import (
    NAME_MACHINES,
    RESERVATION,
    SPOT,
    Machine,
    amount,
    machines,
    region_of,
)
from gputier_policies.rule import SIZING, Config, Findings, Rule, Undecided, Violation
from gputier_policies.values import UNKNOWN, Resource, Stack
from gputier_policies.words import UNPRICED, bought, money, number

HELD = "capacityReservationSpecification.capacityReservationTarget.capacityReservationId"
AWS_RESERVATION = "aws:ec2/capacityReservation:CapacityReservation"


def ceiling(what: str) -> dict[str, Any]:
    return {"type": "number", "minimum": 0, "default": 0, "description": f"{what}; 0: no ceiling."}


# --- a machine ------------------------------------------------------------------------------------


def machine_limits_price(stack: Stack, config: Config) -> Findings:
    """What a fleet buys its machines as counts, and a template that nothing starts here as it says.
    Where a part is not known yet, the lowest price that it can have is held against the ceiling."""
    most, declared = config["usd_per_hour"], facts.discounts(stack.surroundings.config)
    if not most:
        return
    for named, one, region in asked(stack):
        if one.gpu is False:
            continue
        low, waits = facts.at_least(one, region, declared), _unknown_part(one, region)
        if low is not None and low > most:
            yield Violation(_dear(one, region, low, most, declared), named.urn)
        elif waits:
            yield Undecided(waits, named.urn)
        elif low is None and config["unpriced"] == "refuse":
            why = str(facts.price(one, region, declared))
            yield Violation(f"{one.path}: {why}. {_UNPRICED}", named.urn)


def asked(stack: Stack) -> Iterator[tuple[Resource, Machine, Any]]:
    """Every machine that a stack asks for, as it is bought and where, with what names it."""
    used: set[str] = set()
    stack = given(stack)
    for fleet in (*fleets(stack), *reservations(stack)):
        used |= {one.urn for one in (fleet.runner, *fleet.templates)}
        for one in fleet.machines:
            if fleet.base or fleet.percent or UNKNOWN in (fleet.base, fleet.percent):
                yield fleet.source, one, fleet.region
            if fleet.percent != 100 and fleet.percent is not UNKNOWN:
                yield fleet.source, one._replace(capacity=SPOT), fleet.region
    for alone in stack.of(*NAME_MACHINES):
        if alone.urn not in used:
            yield from ((alone, one, region_of(alone)) for one in machines(alone))


def _unknown_part(machine: Machine, region: Any) -> str:
    if machine.type is UNKNOWN:
        return machine.path
    if UNKNOWN in (machine.guest, machine.guests):
        return "guestAccelerators"
    if machine.capacity is UNKNOWN:
        return "how it is bought"
    return "" if isinstance(region, str) or machine.type is None else "region"


def _dear(one: Machine, region: Any, usd: float, most: float, declared: Sequence[Discount]) -> str:
    sure = not _unknown_part(one, region)
    price = facts.price(one, region, declared) if sure else Price(usd)
    note = f"; {price.note}" if isinstance(price, Price) and price.note else ""
    where = f"in {region}" if isinstance(region, str) else "in any region"
    way = "at the least" if one.capacity is UNKNOWN else bought(one.capacity)
    return (
        f"{one.path} is {one}: {money(usd)} an hour {way} {where} (prices of {facts.as_of()}{note})"
        f"; it must be no more than {money(most)}. Name a smaller machine, or raise `usd_per_hour`"
    )


#: What a machine without a price is told.
_UNPRICED = "It is not free: name a machine that has a price, or say `unpriced: allow`"

PRICE = Rule(
    check_stack=machine_limits_price,
    description="No machine with a GPU costs more an hour than the configuration allows.",
    remediation="Name a smaller machine, or raise `usd_per_hour`.",
    severity="high",
    url=SIZING,
    settings={"usd_per_hour": ceiling("The most USD an hour of one machine"), "unpriced": UNPRICED},
)


# --- a fleet --------------------------------------------------------------------------------------


class Month(NamedTuple):
    """The most that a fleet may cost a month. `usd` is of what is known; `waits` the property that
    the rest waits for, `unpriced` why a part has no price."""

    usd: float
    machine: str
    machines: float
    hours: float
    usd_per_hour: float
    note: str
    waits: str = ""
    unpriced: str = ""


def month(fleet: Fleet, links: Links, declared: Sequence[Discount]) -> Month | None:
    """Of the kinds that a fleet may start the dearest counts, as any of them may be all that it
    gets. None where none of its machines has a GPU."""
    if fleet.gpu is False:
        return None
    waits = fleet.waits
    size, least = fleet.most, fleet.least
    if not isinstance(size, int | float):
        waits = waits or (fleet.sized if size is UNKNOWN else "")
        size = least if isinstance(least, int | float) else 0
    found = [_of(one, fleet, float(size), declared) for one in fleet.machines]
    if not found:
        unpriced = (
            f"{fleet.elsewhere} points at nothing in this stack, and what it starts is not known"
        )
        return Month(0.0, "a machine", size, fleet.hours, 0.0, "", waits,
                     unpriced if fleet.elsewhere else "")  # fmt: skip
    dearest = max(found, key=lambda each: each.usd)
    if _in_reservation(fleet, links):
        return dearest._replace(usd=0.0, note="in a reservation that is counted itself")
    first = next((each.unpriced for each in found if each.unpriced), "")
    waits = waits or next((each.waits for each in found if each.waits), "")
    return dearest._replace(waits=waits, unpriced=first)


def _of(one: Machine, fleet: Fleet, size: float, declared: Sequence[Discount]) -> Month:
    """So many machines of one kind, for the fleet's hours."""
    count = float(ceil(size / one.weight))
    base, percent = (
        0 if value is UNKNOWN else float(value) for value in (fleet.base, fleet.percent)
    )
    firm = min(base, count)
    firm += (count - firm) * percent / 100
    parts = [(firm, one), (count - firm, one._replace(capacity=SPOT))]
    total, notes, unpriced = 0.0, list[str](), ""
    waits = _unknown_part(one, fleet.region)
    for share, machine in parts:
        if not share:
            continue
        if waits:
            total += share * (facts.at_least(machine, fleet.region, declared) or 0.0)
            continue
        price = facts.price(machine, fleet.region, declared)
        if isinstance(price, Price):
            total += share * price.usd
            notes += [price.note] if price.note else []
        else:
            unpriced = price
    way = bought(SPOT if not firm and count else one.capacity)
    return Month(
        usd=total * fleet.hours,
        machine=f"{one} {way}",
        machines=count,
        hours=fleet.hours,
        usd_per_hour=total / count if count else 0.0,
        note="; ".join([*notes, *fleet.notes]),
        waits=waits,
        unpriced=unpriced,
    )


def _in_reservation(fleet: Fleet, links: Links) -> bool:
    """Whether its machines run in a reservation of this stack, which is paid for itself."""
    sources = (fleet.runner, *fleet.templates)
    return any(links.follow(one, HELD, AWS_RESERVATION) is not None for one in sources)


def shown(found: Month) -> str:
    """`4 × p5en.48xlarge on demand at $63.30 for 730 hours: $184,824 a month`"""
    note = f", {found.note}" if found.note else ""
    return (
        f"{number(found.machines)} × {found.machine} at {money(found.usd_per_hour)} for"
        f" {number(found.hours)} hours: {money(found.usd)} a month"
        f" (prices of {facts.as_of()}{note})"
    )


def fleet_limits_cost(stack: Stack, config: Config) -> Findings:
    most = config["usd_per_month"]
    if not most:
        return
    for fleet, found in months(stack):
        urn = fleet.runner.urn
        if found.usd > most:
            sized = f"{fleet.sized} allows " if fleet.sized else ""
            yield Violation(
                f"{sized}{shown(found)}; it must be no more than {money(most)}."
                f" {_less(fleet, found)}",
                urn,
            )
        elif found.waits:
            yield Undecided(found.waits, urn)
        elif found.unpriced and config["unpriced"] == "refuse":
            yield Violation(f"{found.unpriced}. {_UNPRICED}", urn)


def _less(fleet: Fleet, found: Month) -> str:
    """The way out, with what it saves."""
    if fleet.zero or found.hours < MONTH:
        return "Lower the size or the hours, take a smaller machine, or raise `usd_per_month`"
    saved = found.usd * (1 - WORKING_HOURS / MONTH)
    return (
        f"A schedule of 12 hours on weekdays saves {money(saved)} a month; else lower the size,"
        " take a smaller machine, or raise `usd_per_month`"
    )


#: 12 hours from Monday to Friday, a month.
WORKING_HOURS = 260.75


def months(stack: Stack) -> Iterator[tuple[Fleet, Month]]:
    """What each fleet of a stack with GPUs costs, and each reservation."""
    links, declared = Links(stack), facts.discounts(stack.surroundings.config)
    for fleet in (*fleets(stack, links), *reservations(links.stack)):
        found = month(fleet, links, declared)
        if found is not None:
            yield fleet, found


def reservations(stack: Stack) -> Iterator[Fleet]:
    """Capacity that is held is paid for whether machines run in it or not."""
    for one in stack.of(AWS_RESERVATION):
        named = one.at("instanceType")
        machine = Machine("aws", named, "instanceType", RESERVATION)
        if named is UNKNOWN or (isinstance(named, str) and named):
            told = one.at("instanceCount")
            count = UNKNOWN if told is UNKNOWN else amount(told)
            yield Fleet(one, (), (machine,), region_of(one), count, count, "instanceCount")


FLEET = Rule(
    check_stack=fleet_limits_cost,
    description="No fleet can cost more a month than the configuration allows, at its largest.",
    remediation="Lower the largest size, give the fleet a schedule, or raise `usd_per_month`.",
    severity="high",
    url=SIZING,
    settings={"usd_per_month": ceiling("The most USD a month of a fleet"), "unpriced": UNPRICED},
)


# --- the stack ------------------------------------------------------------------------------------


def stack_limits_cost(stack: Stack, config: Config) -> Findings:
    most = config["usd_per_month"]
    if not most:
        return
    found = list(months(stack))
    total = sum(each.usd for _, each in found)
    without = [fleet.runner.name for fleet, each in found if each.unpriced]
    waiting = [(each.waits, fleet.runner.urn) for fleet, each in found if each.waits]
    if total > most:
        more = f", without {_listed(without)}, which has no price" if without else ""
        yield Violation(
            f"the machines can cost {money(total)} a month{more} (prices of {facts.as_of()});"
            f" it must be no more than {money(most)}. {_largest(found)}. Lower the largest sizes,"
            " give the fleets schedules, or raise `usd_per_month`"
        )
    elif waiting:
        yield from (Undecided(path, urn) for path, urn in waiting)
    elif without and config["unpriced"] == "refuse":
        yield Violation(
            f"{_listed(without)} has no price, and is not free: what the stack costs a month nobody"
            " can say here. Name machines that have a price, or say `unpriced: allow`"
        )


def _largest(found: Iterable[tuple[Fleet, Month]]) -> str:
    dearest = sorted(found, key=lambda each: -each[1].usd)[:3]
    return ", ".join(f"{fleet.runner.name} {money(each.usd)}" for fleet, each in dearest)


def _listed(names: Sequence[str]) -> str:
    return ", ".join(names)


STACK = Rule(
    check_stack=stack_limits_cost,
    description="The machines of a stack cannot cost more a month than the configuration allows.",
    remediation="Lower the largest sizes, give the fleets schedules, or raise `usd_per_month`.",
    severity="high",
    url=SIZING,
    settings={
        "usd_per_month": ceiling("The most USD a month of all machines of the stack"),
        "unpriced": UNPRICED,
    },
)

RULES = (PRICE, FLEET, STACK)
