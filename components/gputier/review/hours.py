"""How long machines run a month, and how many, where something starts and stops them.

Everything is counted over the calendar of `gputier.workload.schedule`, 2025 to 2028, so that a
figure does not change with the day of the review. What cannot be read is None: the reader is told,
and the machines count as running throughout.
"""

from __future__ import annotations

import datetime
from collections.abc import Sequence
from typing import NamedTuple

from gputier.units import HOURS_PER_MONTH
from gputier.workload.schedule import (
    MONTHS,
    checked_cron,
    checked_timezone,
    hours_per_month,
    windows,
)

_EPOCH = datetime.datetime(1970, 1, 1)
_FIRST, _END = (
    int((datetime.datetime(year, 1, 1) - _EPOCH).total_seconds()) // 60 for year in (2025, 2029)
)


class _Entry(NamedTuple):
    start: str
    stop: str
    timezone: str


class Sizes(NamedTuple):
    """Machines of a group: the least, what is wanted, the most. None is left as it is."""

    least: float | None
    desired: float | None
    most: float | None


class Action(NamedTuple):
    """What a group is set to whenever five cron fields come, in a time zone (IANA)."""

    cron: str
    timezone: str
    sizes: Sizes


def hours_of(entries: Sequence[tuple[str, str, str]]) -> float | None:
    """Hours a month in which at least one (start, stop, time zone) runs, each a five-field cron
    expression; 730 without entries, None where one cannot be read."""
    try:
        return hours_per_month(
            [
                _Entry(checked_cron(start), checked_cron(stop), checked_timezone(zone))
                for start, stop, zone in entries
            ]
        )
    except ValueError:  # a complaint, which says what is wrong with a workload's own field
        return None


def by_actions(actions: Sequence[Action], counts: Sizes) -> Sizes | None:
    """The average sizes over a month of a group that begins with `counts` and whose actions set
    them; None where one cannot be read.

    As Auto Scaling does, what is wanted moves into the bounds where an action moves these.
    """
    try:
        moments = sorted(
            (moment, order)
            for order, action in enumerate(actions)
            for moment in _moments(checked_cron(action.cron), checked_timezone(action.timezone))
        )
    except ValueError:
        return None
    sizes, since = _settled(counts), _FIRST
    sums, peaks = [0.0, 0.0, 0.0], [0.0, 0.0, 0.0]
    for moment, order in [*moments, (_END, None)]:
        until = min(max(moment, _FIRST), _END)
        _add(sums, peaks, sizes, until - since)
        since = until
        if order is not None:
            sizes = _settled(_changed(sizes, actions[order].sizes))
    least, desired, most = map(_average, sums, peaks)
    return Sizes(least, desired, None if counts.most is None else most)


def _moments(cron: str, timezone: str) -> list[int]:
    """Every moment an expression comes, in minutes since 1970: what stops as it starts again."""
    return [begin for begin, _ in windows(cron, cron, timezone)]


def fires(cron: str, timezone: str) -> float | None:
    """How often a month an expression comes, on average; None where it cannot be read."""
    try:
        moments = _moments(checked_cron(cron), checked_timezone(timezone))
    except ValueError:
        return None
    return sum(_FIRST <= moment < _END for moment in moments) / MONTHS


def _changed(sizes: Sizes, new: Sizes) -> Sizes:
    pairs = zip(new, sizes, strict=True)
    return Sizes(*(old if value is None else value for value, old in pairs))


def _settled(sizes: Sizes) -> Sizes:
    least = sizes.least or 0.0
    desired = max(least, least if sizes.desired is None else sizes.desired)
    return Sizes(least, desired if sizes.most is None else min(desired, sizes.most), sizes.most)


def _add(sums: list[float], peaks: list[float], sizes: Sizes, minutes: int) -> None:
    for place, size in enumerate(sizes):
        sums[place] += (size or 0.0) * minutes
        peaks[place] = max(peaks[place], size or 0.0) if minutes else peaks[place]


def _average(total: float, peak: float) -> float:
    """What never changes runs for a month as it is billed, 730 hours. The hours of what does are
    those of the calendar, a little more, so that the figure is the plan's."""
    found = total / (_END - _FIRST)
    return found if found == peak else found * (_END - _FIRST) / 60 / MONTHS / HOURS_PER_MONTH
