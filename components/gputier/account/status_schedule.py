"""What the clock does next to a fleet, by its declaration."""

from __future__ import annotations

from typing import NamedTuple

from gputier.plan.actions import START, STOP
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


def clock(workload: Workload | None, now: float) -> Clock:
    """The schedule's part. Its calendar ends with 2028; after that nothing is said."""
    if workload is None or not workload.schedule:
        return Clock(None, None)
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
