"""What happens to a fleet at fixed times: starts and stops by schedule, and a reserved span.

AWS has two dialects of cron. Auto Scaling reads five fields (weekdays 0 to 6, Sunday 0);
EventBridge Scheduler, which starts and stops a lone machine, reads six and wants `?` in one of the
day fields.
Both know time zones and daylight saving.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from itertools import combinations, pairwise
from typing import NamedTuple

from gputier.errors import Problem
from gputier.workload import ScheduleEntry, cron, schedule

START, STOP = "start", "stop"
_WEEKDAYS = ("SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT")
_EVERY = {"days": range(1, 32), "months": range(1, 13), "weekdays": range(7)}
DIGITS = 8


class Action(NamedTuple):
    """A change of a fleet's size at a time. `key` names it, and never holds its place in a list.

    `recurrence` is Auto Scaling's cron; `expressions` are EventBridge Scheduler's for the same (two
    where a day of the month or one of the week will do); `at` is one moment in UTC instead.
    `least`, `most` and `desired` are machines from then on.
    """

    key: str
    what: str
    recurrence: str | None
    expressions: tuple[str, ...]
    at: str | None
    timezone: str
    least: int
    most: int
    desired: int


class Sizes(NamedTuple):
    """Machines of a fleet that runs."""

    least: int
    most: int
    desired: int


def recurring(entries: Iterable[ScheduleEntry], sizes: Sizes) -> Iterator[Action]:
    """Two actions for each entry of a schedule; an entry told twice is told once."""
    for entry in dict.fromkeys((e.start, e.stop, e.timezone) for e in entries):
        start, stop, timezone = entry
        tag = hashlib.sha256(" | ".join(entry).encode()).hexdigest()[:DIGITS]
        yield _recurring(START, tag, start, timezone, sizes)
        yield _recurring(STOP, tag, stop, timezone, Sizes(0, 0, 0))


def _recurring(what: str, tag: str, text: str, timezone: str, sizes: Sizes) -> Action:
    fires = cron.parse(text)
    key = f"{what}-{tag}"
    return Action(key, what, five_fields(fires), six_fields(fires), None, timezone, *sizes)


def once(starts: str | None, ends: str | None, sizes: Sizes) -> Iterator[Action]:
    """What is reserved begins, and the machines go before it ends."""
    if starts:
        yield Action("reserved-start", START, None, (), starts, "UTC", *sizes)
    if ends:
        yield Action("reserved-end", STOP, None, (), ends, "UTC", 0, 0, 0)


def five_fields(fires: cron.Cron) -> str:
    """Auto Scaling's cron."""
    minutes, hours = _clock(fires)
    days, months, weekdays = (
        _listed(sorted(getattr(fires, name)), every) for name, every in _EVERY.items()
    )
    return f"{minutes} {hours} {days} {months} {weekdays}"


def six_fields(fires: cron.Cron) -> tuple[str, ...]:
    """EventBridge Scheduler's cron, which takes a day of the month or of the week."""
    minutes, hours = _clock(fires)
    month = _listed(sorted(fires.months), _EVERY["months"])
    days = _listed(sorted(fires.days), _EVERY["days"])
    week = _listed(sorted(fires.weekdays), _EVERY["weekdays"], _WEEKDAYS)
    if week == "*":
        found = [(days, "?")]
    elif days == "*":
        found = [("?", week)]
    else:
        found = [(days, "?"), ("?", week)]
    return tuple(f"cron({minutes} {hours} {day} {month} {of_week} *)" for day, of_week in found)


def _clock(fires: cron.Cron) -> tuple[str, str]:
    """Minutes and hours: an expression fires at each pair of them."""
    minutes = sorted({time % 60 for time in fires.times})
    hours = sorted({time // 60 for time in fires.times})
    return _listed(minutes, range(60)), _listed(hours, range(24))


def _listed(values: Sequence[int], every: range, names: Sequence[str] = ()) -> str:
    """Values of a field as numbers, or names, with runs of three and more as ranges."""
    if len(values) == len(every):
        return "*"
    runs: list[list[int]] = []
    for value in values:
        if runs and runs[-1][-1] == value - 1:
            runs[-1].append(value)
        else:
            runs.append([value])

    def said(value: int) -> str:
        return names[value] if names else str(value)

    parts: list[str] = []
    for run in runs:
        parts += [f"{said(run[0])}-{said(run[-1])}"] if len(run) > 2 else map(said, run)
    return ",".join(parts)


def schedule_problems(entries: Sequence[ScheduleEntry]) -> Iterator[Problem]:
    """What no scheduler of AWS can be told, at the schedule's field."""
    for entry in entries:
        for field in (START, STOP):
            text = getattr(entry, field)
            fires = cron.parse(text)
            narrow = len(fires.days) < 31 and len(fires.weekdays) < 7
            if fires.both_days and narrow:
                message = (
                    f"`{text}` asks for a day of the month that is also a day of the week, which"
                    " AWS's schedulers cannot be told"
                )
                yield Problem("schedule", message, "restrict one of the two day fields")
    told = tuple(dict.fromkeys(entries))
    # Years of minutes: looked up once an entry, and not at all for one that has nobody to meet.
    spans = {e: schedule.windows(e.start, e.stop, e.timezone) for e in told if len(told) > 1}
    for one, other in combinations(spans, 2):
        if _meet(spans[one], spans[other]):
            yield Problem(
                "schedule",
                f"`{one.start}` to `{one.stop}` and `{other.start}` to `{other.stop}` meet: the end"
                " of one would stop what the other started",
                "make one entry of the two, or leave a minute between them",
            )


def _meet(one: list[tuple[int, int]], other: list[tuple[int, int]]) -> bool:
    """Whether the times of two entries overlap, or one begins in the minute the other ends."""
    return any(begin <= end for (_, end), (begin, _) in pairwise(sorted(one + other)))
