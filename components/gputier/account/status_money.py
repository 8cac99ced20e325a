"""Hours of machines this month and what they cost at the lock's price. What is not known is not
counted, and said; it is never zero."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from typing import NamedTuple

from gputier.account.status_facts import LONE, STOPPED, Ask, Facts, Life, Live
from gputier.lock import Entry

HOUR = 3600.0
#: What is paid for whether a machine runs in it or not.
HELD = ("reservation", "capacity_block")


class Spend(NamedTuple):
    """Machine hours since the month began. `usd` is of what has a price, None where nothing has;
    `usd_per_hour` is what runs now costs. `not_counted` says what is missing."""

    since: float
    hours: float
    usd: float | None
    usd_per_hour: float | None
    not_counted: tuple[str, ...]


class Run(NamedTuple):
    """Hours of one machine this month, None where its start or its end is not known."""

    hours: float | None
    usd: float | None


def month_of(now: float) -> float:
    """When the month began, UTC: what clouds bill by."""
    at = datetime.fromtimestamp(now, UTC)
    return datetime(at.year, at.month, 1, tzinfo=UTC).timestamp()


def price_of(entry: Entry) -> float | None:
    """One machine an hour."""
    if entry.usd_per_hour is None or not entry.machines:
        return None
    return entry.usd_per_hour / entry.machines


def run(ask: Ask, started: float | None, ended: float | None, type_: str | None) -> Run:
    """A machine's hours in the month. A type that is not the lock's has no price here."""
    if started is None or ended is None:
        return Run(None, None)
    hours = max(0.0, min(ended, ask.now) - max(started, ask.month)) / HOUR
    price = price_of(ask.entry)
    known = price is not None and type_ in (None, ask.entry.instance_type)
    return Run(hours, hours * price if known and price is not None else None)


def run_of(ask: Ask, machine: Live | Life) -> Run:
    """Of a machine that is there, or that has gone."""
    if isinstance(machine, Live):
        ended = None if machine.stage == STOPPED else ask.now
        return run(ask, machine.started, ended, machine.type)
    return run(ask, machine.started, machine.ended, None)


def spend(ask: Ask, facts: Facts) -> Spend:
    """The month's hours and money of a fleet, and money an hour now."""
    gone = [life for life in facts.gone if life.ended is None or life.ended > ask.month]
    runs = [run_of(ask, machine) for machine in (*facts.live, *gone)]
    priced = [one.usd for one in runs if one.usd is not None]
    nothing_ran = not runs and facts.known and facts.whole
    now = [_hourly(ask, machine) for machine in facts.live if machine.stage != STOPPED]
    return Spend(
        ask.month,
        sum(one.hours for one in runs if one.hours is not None),
        sum(priced) if priced or nothing_ran else None,
        sum(one for one in now if one is not None) if facts.known and None not in now else None,
        tuple(_missing(ask, facts, gone)),
    )


def _hourly(ask: Ask, machine: Live) -> float | None:
    if machine.type not in (None, ask.entry.instance_type):
        return None
    return price_of(ask.entry)


def _missing(ask: Ask, facts: Facts, gone: Sequence[Life]) -> Iterator[str]:
    if not facts.known:
        yield "its machines: they could not be asked for"
        return
    if price_of(ask.entry) is None and (facts.live or gone):
        yield f"money: {ask.entry.instance_type} has no known price"
    others = sorted({m.type for m in facts.live if m.type not in (None, ask.entry.instance_type)})
    if others:
        yield f"the money of {', '.join(others)}: the lock has the price of another type"
    if any(life.started is None or life.ended is None for life in gone):
        count = sum(1 for life in gone if life.started is None or life.ended is None)
        yield f"{count} that went this month: when they came, or went, is not known"
    if not facts.whole:
        yield "machines that have gone this month, as far as the cloud does not list them"
    runs = [m for m in facts.live if m.stage != STOPPED]
    if facts.shape == LONE and any(m.started is None or m.started > ask.month for m in runs):
        yield "hours before it was started last"
    if len(runs) < len(facts.live):
        yield "hours before it was stopped"
    if ask.entry.capacity in HELD:
        yield "what of the reservation stands empty, which is paid for all the same"
