"""What the clock does next to a fleet, by its declaration."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import NamedTuple

from gputier.plan.actions import START, STOP
from gputier.plan.fleet import BLOCK_ROOM, BLOCK_TAKEN
from gputier.workload import Workload, schedule

MINUTE = 60


class Change(NamedTuple):
    """`what` is start or stop, `at` when."""

    what: str
    at: float


class Clock(NamedTuple):
    """Whether the schedule wants machines now (None without one), and its next change."""

    runs: bool | None
    next: Change | None


def clock(workload: Workload | None, capacity: str, now: float) -> Clock:
    """The schedule's part, else that of what is reserved. A schedule's calendar ends with 2028;
    after that nothing is said."""
    if workload is None or not workload.schedule:
        return Clock(None, _reserved(workload, capacity, now))
    minute = int(now // MINUTE)
    entries = dict.fromkeys((e.start, e.stop, e.timezone) for e in workload.schedule)
    spans = [window for entry in entries for window in schedule.windows(*entry)]
    runs = any(begin <= minute < end for begin, end in spans)
    ahead = [(begin, START) for begin, _ in spans if begin > minute]
    ahead += [(end, STOP) for _, end in spans if end > minute]
    if not ahead:
        return Clock(None, None)
    at, what = min(ahead)
    return Clock(runs, Change(what, float(at * MINUTE)))


def _reserved(workload: Workload | None, capacity: str, now: float) -> Change | None:
    """Machines come when what is reserved begins, and go before a block ends."""
    uses = [c for c in (workload.capacity if workload else ()) if c.use == capacity]
    if not uses:
        return None
    starts, ends = _moment(uses[0].start), _moment(uses[0].end)
    if starts is not None and starts > now:
        return Change(START, starts)
    if ends is None or capacity != "capacity_block":
        return None
    gone = ends - (BLOCK_TAKEN + BLOCK_ROOM).total_seconds()
    return Change(STOP, gone) if gone > now else None


def _moment(text: str | None) -> float | None:
    if text is None:
        return None
    return datetime.strptime(text, "%Y-%m-%dT%H:%M:%SZ").replace(tzinfo=UTC).timestamp()
