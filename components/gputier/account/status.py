"""What runs of a stack, what it costs, and why something does not appear."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from gputier.account import status_facts, status_money
from gputier.account.status_facts import (
    ASIDE,
    HELD,
    LEAVING,
    LONE,
    STARTING,
    STOPPED,
    Ask,
    Facts,
    Life,
    Live,
    Size,
    Unasked,
)
from gputier.account.status_money import Spend
from gputier.account.status_reports import Count, Reports, Verdict
from gputier.account.status_schedule import Change, Clock
from gputier.account.status_troubles import Trouble, troubles

#: How a machine is. `UNPROVED` works, and no report says that it was proved; `FAILING` works
#: although its report is bad, because its gate lets everybody in, or the cloud calls it unhealthy.
HEALTHY, PROVING, UNPROVED, FAILING, REJECTED = (
    "healthy",
    "proving",
    "unproved",
    "failing",
    "rejected",
)
STATES = (HEALTHY, UNPROVED, FAILING, PROVING, STARTING, REJECTED, LEAVING, ASIDE, STOPPED)
WORKING = (HEALTHY, UNPROVED)
#: A machine of no group serves while it proves itself; after so long without a report it has none.
#: Longer than any boot's limits add up to (docs/boot.md, Deadlines).
PROVES_SECONDS = 7200.0
#: How long a machine that has gone is still shown.
SHOWN_SECONDS = 86400.0

#: How a fleet is, in a word.
WELL, SHORT, EMPTY, NOT_DEPLOYED, DELETED, NOT_LOCKED, UNKNOWN = (
    "well",
    "short",
    "empty",
    "not-deployed",
    "deleted",
    "not-locked",
    "unknown",
)


class Machine(NamedTuple):
    """A machine that is there. `since` is when it came into its state, where that is known, else
    when it was started; money is None where unknown."""

    id: str
    zone: str | None
    type: str | None
    state: str
    started: float | None
    since: float | None
    spot: bool | None
    hours: float | None
    usd: float | None
    verdict: Verdict | None


class Gone(NamedTuple):
    """A machine of the last day that is not there any more."""

    id: str
    zone: str | None
    how: str
    at: float | None
    hours: float | None
    usd: float | None
    said: str
    verdict: Verdict | None


class Fleet(NamedTuple):
    """One workload. `size`, `breaker` and `interruptions` are None where they are not known or
    there are none."""

    name: str
    cloud: str
    region: str
    what: str
    capacity: str
    state: str
    shape: str | None
    group: str
    size: Size | None
    machines: tuple[Machine, ...]
    gone: tuple[Gone, ...]
    interruptions: int | None
    troubles: tuple[Trouble, ...]
    breaker: Count | None
    launches_stopped: str | None
    next: Change | None
    spend: Spend
    look: tuple[str, ...]

    @property
    def working(self) -> int:
        return sum(1 for machine in self.machines if machine.state in WORKING)


class Missing(NamedTuple):
    """A workload of which nothing can be deployed: the lock has no machine for it."""

    name: str
    trouble: Trouble


class Stack(NamedTuple):
    """A stack at a moment. `notes` are about the lock and the settings, `since` is when the month
    began that money counts from."""

    name: str
    at: float
    since: float
    fleets: tuple[Fleet, ...]
    missing: tuple[Missing, ...]
    unasked: tuple[Unasked, ...]
    notes: tuple[str, ...]

    @property
    def answered(self) -> bool:
        """Whether anything could be asked, of what there was to ask."""
        return not self.fleets or any(fleet.state != UNKNOWN for fleet in self.fleets)

    @property
    def working(self) -> int:
        return sum(fleet.working for fleet in self.fleets)

    @property
    def wanted(self) -> int | None:
        """Machines that are asked for; None where it is not known of a fleet."""
        if any(fleet.state == UNKNOWN for fleet in self.fleets):
            return None
        return sum(fleet.size.wanted for fleet in self.fleets if fleet.size)

    @property
    def usd(self) -> float | None:
        """Of what has a price, None where nothing has."""
        return _sum(fleet.spend.usd for fleet in self.fleets)

    @property
    def usd_per_hour(self) -> float | None:
        """The same of what runs now."""
        return _sum(fleet.spend.usd_per_hour for fleet in self.fleets)

    @property
    def counted(self) -> bool:
        """Whether everything that ran is in the money."""
        parts = (fleet.spend for fleet in self.fleets)
        return all(s.usd is not None and not s.not_counted for s in parts)


def _sum(parts: Iterable[float | None]) -> float | None:
    found = list(parts)
    known = [part for part in found if part is not None]
    return sum(known) if known or not found else None


def fleet(ask: Ask, facts: Facts, reports: Reports, count: Count | None, clock: Clock) -> Fleet:
    """A fleet, of what the cloud and the nodes say."""
    facts = _settled(ask, facts, reports, clock)
    machines = tuple(_machine(ask, facts, live, reports) for live in facts.live)
    gone = tuple(_gone(ask, facts, reports))
    size = facts.size
    state = _state(facts, machines, size)
    return Fleet(
        name=ask.workload,
        cloud=ask.entry.cloud,
        region=ask.entry.region,
        what=ask.entry.machine,
        capacity=ask.entry.capacity,
        state=state,
        shape=facts.shape,
        group=ask.names.of("group"),
        size=size,
        machines=tuple(sorted(machines, key=lambda m: (STATES.index(m.state), m.id))),
        gone=gone,
        interruptions=_interruptions(ask, facts),
        troubles=troubles(ask, facts, count, clock),
        breaker=count,
        launches_stopped=facts.stopped,
        next=clock.next,
        spend=status_money.spend(ask, facts),
        look=facts.look,
    )


def _settled(ask: Ask, facts: Facts, reports: Reports, clock: Clock) -> Facts:
    """The facts with what follows of them together."""
    # Reports outlive what made them.
    facts = facts._replace(before=facts.before or bool(reports.newest))
    if facts.whole:
        # All of the month is told, so a machine whose coming is not told came before it.
        came = (one.started or (ask.month if one.ended else None) for one in facts.gone)
        gone = zip(facts.gone, came, strict=True)
        facts = facts._replace(gone=tuple(one._replace(started=at) for one, at in gone))
    stopped = bool(facts.live) and all(live.stage == STOPPED for live in facts.live)
    if facts.shape == LONE and clock.runs is False and stopped:
        # It is stopped by its hours, and nobody wants it now.
        return facts._replace(size=Size(0, 0, 1), failures=())
    return facts


def _state(facts: Facts, machines: Sequence[Machine], size: Size | None) -> str:
    if not facts.known:
        return UNKNOWN
    if facts.shape is None:
        return DELETED if facts.before else NOT_DEPLOYED
    working = sum(1 for machine in machines if machine.state in WORKING)
    wanted = size.wanted if size else 0
    if not wanted and all(machine.state == STOPPED for machine in machines):
        return EMPTY
    return WELL if working >= wanted and all(m.state != FAILING for m in machines) else SHORT


def _machine(ask: Ask, facts: Facts, live: Live, reports: Reports) -> Machine:
    verdict = reports.newest.get(live.reports)
    if verdict is not None and live.started is not None and verdict.at < live.started - 60:
        # Of the boot before: a machine that was started again has not been judged yet.
        verdict = None
    run = status_money.run_of(ask, live)
    young = live.started is not None and ask.now - live.started < PROVES_SECONDS
    state = _how(live, verdict, facts.shape == LONE and young and reports.asked)
    judged = verdict is not None and state in (HEALTHY, FAILING, REJECTED)
    return Machine(
        live.id,
        live.zone,
        live.type,
        state,
        live.started,
        verdict.at if judged and verdict else live.started,
        live.spot,
        run.hours,
        run.usd,
        verdict,
    )


def _how(live: Live, verdict: Verdict | None, may_prove: bool) -> str:
    if live.stage in (STARTING, LEAVING, ASIDE, STOPPED):
        refused = live.stage == LEAVING and verdict is not None and not verdict.healthy
        return REJECTED if refused else live.stage
    if live.stage == HELD:
        return REJECTED if verdict is not None and not verdict.healthy else PROVING
    if live.healthy is False or (verdict is not None and not verdict.healthy):
        return FAILING
    if verdict is None:
        return PROVING if may_prove else UNPROVED
    return HEALTHY


def _gone(ask: Ask, facts: Facts, reports: Reports) -> Iterator[Gone]:
    """Those of the last day, the newest first; a machine that only its report knows too."""
    day = ask.now - SHOWN_SECONDS
    present = {live.id for live in facts.live} | {live.reports for live in facts.live}
    lives = {life.id: life for life in facts.gone}
    found: list[Gone] = []
    for life in lives.values():
        verdict = reports.newest.get(life.id)
        if life.id not in present and (life.ended or ask.now) >= day:
            found.append(_left(ask, life, verdict))
    for who, verdict in reports.newest.items():
        if who not in present and who not in lives and verdict.at >= day and not verdict.healthy:
            unseen = Life(who, None, None, None, status_facts.REJECTED)
            found.append(_left(ask, unseen, verdict)._replace(at=verdict.at))
    yield from sorted(found, key=lambda one: (-(one.at or ask.now), one.id))


def _left(ask: Ask, life: Life, verdict: Verdict | None) -> Gone:
    run = status_money.run_of(ask, life)
    refused = verdict is not None and not verdict.healthy
    # A node says itself that it was given back; the cloud sees only that it ended.
    how = status_facts.REJECTED if refused and life.how in _TOLD_BY_NODE else life.how
    return Gone(
        life.name or life.id, life.zone, how, life.ended, run.hours, run.usd, life.said, verdict
    )


_TOLD_BY_NODE = (
    status_facts.BROKEN,
    status_facts.SILENT,
    status_facts.UNKNOWN,
    status_facts.VANISHED,
)


def _interruptions(ask: Ask, facts: Facts) -> int | None:
    """Spot machines that were taken back this month; None where nobody can say."""
    taken = [
        life
        for life in facts.gone
        if life.how == status_facts.INTERRUPTED and (life.ended or ask.now) >= ask.month
    ]
    if not taken and not (ask.spot and facts.known and facts.whole):
        return None
    return len(taken)
