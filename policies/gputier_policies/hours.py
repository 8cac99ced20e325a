"""How much of a month machines may run, where the clock starts and stops them.

Counted over a fixed calendar, 2025 to 2028, so that a figure does not change with the day on which
it is asked for. What cannot be read is None, and then the machines count as running throughout.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, timedelta, tzinfo
from functools import lru_cache
from typing import NamedTuple

MONTH = 730.0  # hours: 365 x 24 / 12
MONTHS = 48
# A year before the first that counts: by then every yearly action has come once.
_WARM_UP = datetime(2024, 1, 1)
_DAY = 24 * 60
_DAYS = (datetime(2029, 1, 1) - _WARM_UP).days
_EPOCH = datetime(1970, 1, 1)
_FIRST, _END = (int((datetime(y, 1, 1) - _EPOCH).total_seconds()) // 60 for y in (2025, 2029))
_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_WEEK = ("sun", "mon", "tue", "wed", "thu", "fri", "sat")
#: Sunday is 1 in a schedule of AWS (EventBridge scheduler user guide, cron expressions), and 0 for
#: everybody else.
_AWS_DAY = re.compile(r"(?<![#L\d])([1-7])(?![\dL])")


class Action(NamedTuple):
    """What a group is set to whenever a cron expression comes. None is left as it is."""

    cron: str
    zone: str
    least: float | None
    desired: float | None
    most: float | None


class Ceiling(NamedTuple):
    """The most machines that a group may have, on average over a month and at its highest; `zero`:
    the clock brings it to none for a part of the time."""

    average: float
    peak: float
    zero: bool


def at_most(most: float, actions: Sequence[Action]) -> Ceiling | None:
    """The ceiling of a group that may have `most` machines. While an action has set what is wanted
    to zero it has none, however many it might have. None where an action cannot be read."""
    if not actions:
        return Ceiling(most, most, False)
    events: list[tuple[int, int]] = []
    for order, action in enumerate(actions):
        found = moments(action.cron, action.zone)
        if found is None:
            return None
        events += [(moment, order) for moment in found]
    spans: list[tuple[float, float]] = []
    top, wanted, since = most, most, _FIRST
    for moment, order in sorted(events):
        until = min(max(moment, _FIRST), _END)
        spans.append((top if wanted else 0.0, until - since))
        since = until
        one = actions[order]
        top = top if one.most is None else one.most
        least = one.least or 0.0
        wanted = wanted if one.desired is None else max(one.desired, least)
    spans.append((top if wanted else 0.0, _END - since))
    counted = [(size, span) for size, span in spans if span]
    total = sum(size * span for size, span in counted)
    peak = max(size for size, _ in counted)
    return Ceiling(total / (_END - _FIRST), peak, any(not size for size, _ in counted))


def running(starts: Iterable[tuple[str, str]], stops: Iterable[tuple[str, str]]) -> float | None:
    """Hours a month of a machine that (cron, time zone) start and stop; None where one of them
    cannot be read, or where nothing stops it."""
    actions = [Action(cron, zone, 1.0, 1.0, 1.0) for cron, zone in starts]
    off = [Action(cron, zone, 0.0, 0.0, 0.0) for cron, zone in stops]
    found = at_most(1.0, [*off, *actions]) if actions and off else None
    return None if found is None else hours_of(found)


def asked_for(spans: Iterable[tuple[str, str, float]]) -> float | None:
    """Hours a month in which a (cron, time zone, seconds) asks for machines; None where one cannot
    be read."""
    minutes: list[tuple[int, int]] = []
    for cron, zone, seconds in spans:
        found = moments(cron, zone)
        if found is None:
            return None
        minutes += [(moment, moment + round(seconds / 60)) for moment in found]
    total, reached = 0, _FIRST
    for begin, end in sorted(minutes):
        begin, end = max(begin, reached), min(end, _END)
        if end > begin:
            total, reached = total + end - begin, end
    return total / 60 / MONTHS


def hours_of(ceiling: Ceiling) -> float:
    """Hours a month in which all machines of a ceiling would come to the same. What never stops
    runs for a month as it is billed; else hours are those of the calendar, as in `gputier plan`."""
    if not ceiling.peak or ceiling.average == ceiling.peak:
        return MONTH if ceiling.peak else 0.0
    return ceiling.average / ceiling.peak * (_END - _FIRST) / 60 / MONTHS


def five_fields(expression: str) -> str | None:
    """`cron(0 7 ? * MON-FRI *)` as five fields; None for what those cannot say."""
    found = re.fullmatch(r"cron\((.+)\)", expression)
    fields = found[1].split() if found else []
    if len(fields) != 6 or fields[5] != "*":
        return None
    minute, hour, day, month, weekday = (field.replace("?", "*") for field in fields[:5])
    weekday = _AWS_DAY.sub(lambda m: str(int(m[1]) - 1), weekday)
    return f"{minute} {hour} {day} {month} {weekday}"


@lru_cache(maxsize=256)
def moments(cron: str, zone: str) -> tuple[int, ...] | None:
    """Every moment an expression of five fields comes, in minutes since 1970; None where the
    expression or the time zone cannot be read."""
    fields, place = _fields(cron), _zone(zone)
    if fields is None or place is None:
        return None
    minutes, hours, days, months, week, both = fields
    times = [hour * 60 + minute for hour in sorted(hours) for minute in sorted(minutes)]
    found: list[int] = []
    for count in range(_DAYS + 1):
        day = _WARM_UP + timedelta(days=count)
        in_month, in_week = day.day in days, day.isoweekday() % 7 in week
        if day.month in months and ((in_month and in_week) if both else (in_month or in_week)):
            found += _of_day(day, times, place)
    return tuple(found)


def _of_day(day: datetime, times: list[int], zone: tzinfo) -> list[int]:
    midnight, next_one = (_utc(day + timedelta(days=n), zone) for n in (0, 1))
    if next_one - midnight == _DAY:
        return [midnight + time for time in times]
    return [_utc(day + timedelta(minutes=time), zone) for time in times]


def _utc(local: datetime, zone: tzinfo) -> int:
    """The minute at which a local time comes: the first of two, and where clocks jump over it the
    moment at which they do."""
    paper = _minutes(local)
    before, after = (_offset(local.replace(tzinfo=zone, fold=fold)) for fold in (0, 1))
    if after <= before:
        return paper - before
    reach = range(paper - after, paper - before + 1)
    return reach[bisect_left(reach, True, key=lambda m: _offset(_at(m, zone)) == after)]


def _at(minute: int, zone: tzinfo) -> datetime:
    return (_EPOCH + timedelta(minutes=minute)).replace(tzinfo=UTC).astimezone(zone)


def _offset(moment: datetime) -> int:
    return round((moment.utcoffset() or timedelta()).total_seconds() / 60)


def _minutes(naive: datetime) -> int:
    return int((naive - _EPOCH).total_seconds()) // 60


@lru_cache(maxsize=64)
def _zone(name: str) -> tzinfo | None:
    import zoneinfo  # only a schedule needs time zones

    try:
        return zoneinfo.ZoneInfo(name)
    except (KeyError, ValueError, OSError):  # not found; a path; a folder such as `America`
        return None


_Fields = tuple[set[int], set[int], set[int], set[int], set[int], bool]


def _fields(cron: str) -> _Fields | None:
    words = cron.lower().split()
    if len(words) != 5:
        return None
    try:
        minutes, hours = _values(words[0], 0, 59), _values(words[1], 0, 23)
        days, months = _values(words[2], 1, 31), _values(words[3], 1, 12, _MONTHS)
        week = {day % 7 for day in _values(words[4], 0, 7, _WEEK)}
    except ValueError:
        return None
    return minutes, hours, days, months, week, words[2][0] == "*" or words[4][0] == "*"


def _values(word: str, low: int, high: int, names: tuple[str, ...] = ()) -> set[int]:
    found: set[int] = set()
    for part in word.split(","):
        body, _, step = part.partition("/")
        first, dash, last = body.partition("-")
        if body == "*":
            begin, end = low, high
        else:
            begin = _number(first, low, names)
            end = _number(last, low, names) if dash else (high if step else begin)
        if dash and not end and high == 7:
            end = 7  # sat-sun: a range that ends on Sunday ends the week
        if not low <= begin <= end <= high:
            raise ValueError(part)
        found |= set(range(begin, end + 1, int(step or 1)))
    return found


def _number(word: str, low: int, names: tuple[str, ...]) -> int:
    return names.index(word) + low if word in names else int(word)
