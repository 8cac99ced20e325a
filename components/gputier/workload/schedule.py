"""When machines run, and how many hours a month that is.

Hours are counted over a fixed calendar, 2025-01-01 to 2028-12-31 UTC (48 months, one leap year), so
that a cost does not change with the day it is asked for. They are hours that really pass: a night
in which the clocks go back is an hour longer. Each entry runs from a start to its next stop;
several entries together run whenever one of them does.

Where clocks change: a local time that does not exist (skipped in spring) fires at the moment the
clocks jump; one that comes twice (autumn) fires the first time only. cron(8) does the same.
"""

from __future__ import annotations

import bisect
import datetime
import functools
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Protocol

from gputier import errors
from gputier.units import HOURS_PER_MONTH
from gputier.workload import cron
from gputier.workload.complaints import complaint, shown

if TYPE_CHECKING:
    import zoneinfo

"""What a workload without a schedule is billed for (365 × 24 / 12)."""

MONTHS = 48
# A leap year before the first: by 2025 every yearly window is in its true state.
_WARM_UP = datetime.date(2024, 1, 1)
_FIRST = datetime.date(2025, 1, 1)
_LAST = datetime.date(2028, 12, 31)
_EPOCH = datetime.datetime(1970, 1, 1)
_DAY = 24 * 60

_ABBREVIATIONS = {
    "cest": "Europe/Berlin", "mez": "Europe/Berlin", "bst": "Europe/London",
    "pst": "America/Los_Angeles", "pdt": "America/Los_Angeles", "pt": "America/Los_Angeles",
    "edt": "America/New_York", "et": "America/New_York", "cst": "America/Chicago",
    "cdt": "America/Chicago",
    "mdt": "America/Denver", "ist": "Asia/Kolkata", "jst": "Asia/Tokyo", "sgt": "Asia/Singapore",
    "aest": "Australia/Sydney", "aedt": "Australia/Sydney", "z": "UTC",
}  # fmt: skip


class Entry(Protocol):
    """What `hours_per_month` reads of a schedule entry (`running.ScheduleEntry`)."""

    @property
    def start(self) -> str: ...
    @property
    def stop(self) -> str: ...
    @property
    def timezone(self) -> str: ...


def checked_cron(value: object) -> str:
    """five cron fields: minute hour day month weekday"""
    if not isinstance(value, str):
        raise complaint(f" must be five cron fields in quotes, not {shown(value)}")
    if len(value) > 200:
        raise complaint(" must be five cron fields, not a text this long")
    fires = cron.parse(value)
    if not _days(fires):
        raise complaint(
            f" never comes: no date from {_FIRST.year} to {_LAST.year} matches {shown(value)}"
        )
    return " ".join(value.lower().split())


def checked_timezone(value: object) -> str:
    """an IANA time zone such as Europe/Berlin"""
    if isinstance(value, str) and _zone(value) is not None:
        return value
    hint = "an IANA name such as Europe/Berlin, America/New_York or UTC"
    if isinstance(value, str) and 0 < len(value) <= 60:
        hint = _zone_hint(value) or hint
    raise complaint(f" is no time zone: {shown(value)}", hint)


def same_minute(start: str, stop: str) -> datetime.datetime | None:
    """The first local minute at which both fire, which would leave open what is meant."""
    first, second = cron.parse(start), cron.parse(stop)
    times = set(first.times) & set(second.times)
    days = set(_days(first)) & set(_days(second)) if times else set[int]()
    if not days:
        return None
    return datetime.datetime.combine(
        _WARM_UP + datetime.timedelta(days=min(days)), datetime.time()
    ) + datetime.timedelta(minutes=min(times))


def hours_per_month(schedule: Sequence[Entry]) -> float:
    """Average hours a month in which at least one entry is running; 730 without entries."""
    if not schedule:
        return HOURS_PER_MONTH
    return _hours(tuple(dict.fromkeys((e.start, e.stop, e.timezone) for e in schedule)))


@functools.lru_cache(maxsize=256)
def _hours(entries: tuple[tuple[str, str, str], ...]) -> float:
    low, high = _utc_minute(_FIRST), _utc_minute(_LAST) + _DAY
    return _covered((w for e in entries for w in windows(*e)), low, high) / 60 / MONTHS


def _covered(spans: Iterable[tuple[int, int]], low: int, high: int) -> int:
    """Minutes between `low` and `high` that lie in at least one span."""
    total, reached = 0, low
    for begin, end in sorted(spans):
        begin, end = max(begin, reached), min(end, high)
        if end > begin:
            total += end - begin
            reached = end
    return total


def windows(start: str, stop: str, timezone: str) -> list[tuple[int, int]]:
    """All windows of one entry, warm-up year included, in minutes since 1970-01-01 UTC.

    The last one is left open to the end of the calendar when its stop lies beyond.
    """
    events = _events(cron.parse(start), timezone, True) + _events(cron.parse(stop), timezone, False)
    # Sorted by moment and then by the local time meant: where a clock change makes both fall
    # together, the earlier on paper still comes first.
    events.sort()
    found: list[tuple[int, int]] = []
    began: int | None = None
    for moment, _, starts in events:
        if starts and began is None:
            began = moment
        elif not starts and began is not None:
            found.append((began, moment))
            began = None
    if began is not None:
        found.append((began, _utc_minute(_LAST) + 2 * _DAY))
    return found


def _events(fires: cron.Cron, timezone: str, starts: bool) -> list[tuple[int, int, bool]]:
    midnights = _midnights(timezone)
    found: list[tuple[int, int, bool]] = []
    for day in _days(fires):
        midnight, paper = midnights[day], day * _DAY
        if midnights[day + 1] - midnight == _DAY:
            found += [(midnight + time, paper + time, starts) for time in fires.times]
        else:
            found += [(_moment(day, time, timezone), paper + time, starts) for time in fires.times]
    return found


@functools.lru_cache(maxsize=1)
def _calendar() -> tuple[datetime.date, ...]:
    """Every day from the warm-up's first to two after the last.

    One after, because east of Greenwich it begins before the last one ends in UTC; and another to
    tell how long that one is.
    """
    first = _WARM_UP.toordinal()
    return tuple(map(datetime.date.fromordinal, range(first, _LAST.toordinal() + 3)))


@functools.lru_cache(maxsize=256)
def _days(fires: cron.Cron) -> tuple[int, ...]:
    """Days on which it fires, counted from the warm-up's first."""
    return tuple(n for n, day in enumerate(_calendar()[:-1]) if fires.matches(day))


@functools.lru_cache(maxsize=64)
def _midnights(timezone: str) -> tuple[int, ...]:
    """Each day's first moment, as UTC minutes."""
    zone = _zone(timezone)
    midnight = datetime.time(tzinfo=zone)
    offsets = [
        _whole_minutes(datetime.datetime.combine(day, midnight).utcoffset()) for day in _calendar()
    ]
    first = _utc_minute(_WARM_UP)
    found = [first + day * _DAY - offset for day, offset in enumerate(offsets)]
    for day in range(1, len(offsets)):
        if offsets[day] != offsets[day - 1]:  # the clocks may have changed at midnight itself
            found[day - 1 : day + 1] = (_moment(n, 0, timezone) for n in (day - 1, day))
    return tuple(found)


def _moment(day: int, time: int, timezone: str) -> int:
    """The UTC minute at which a local time of a day comes."""
    zone = _zone(timezone)
    local = datetime.datetime.combine(_WARM_UP, datetime.time()) + datetime.timedelta(
        days=day, minutes=time
    )
    naive = _minutes(local)
    before, after = (_offset(local.replace(fold=fold), zone) for fold in (0, 1))
    if after <= before:  # not in a gap: with fold 0 the first of two
        return naive - before
    # In a gap `before` is the offset until the jump: look for the jump between the two readings.
    reach = range(naive - after, naive - before + 1)
    jumped = bisect.bisect_left(reach, True, key=lambda minute: _utc_offset(minute, zone) == after)
    return reach[jumped]


def _offset(local: datetime.datetime, zone: zoneinfo.ZoneInfo | None) -> int:
    return _whole_minutes(local.replace(tzinfo=zone).utcoffset())


def _utc_offset(minute: int, zone: zoneinfo.ZoneInfo | None) -> int:
    utc = (_EPOCH + datetime.timedelta(minutes=minute)).replace(tzinfo=datetime.UTC)
    return _whole_minutes(utc.astimezone(zone).utcoffset())


def _whole_minutes(offset: datetime.timedelta | None) -> int:
    return 0 if offset is None else round(offset.total_seconds() / 60)


def _minutes(naive: datetime.datetime) -> int:
    return int((naive - _EPOCH).total_seconds()) // 60


def _utc_minute(day: datetime.date) -> int:
    return _minutes(datetime.datetime.combine(day, datetime.time()))


@functools.lru_cache(maxsize=64)
def _zone(name: str) -> zoneinfo.ZoneInfo | None:
    import zoneinfo  # only a schedule needs time zones

    # Zones of one machine only, and those that count leap seconds, are no common ground.
    if (
        not name
        or name.startswith(("posix", "right/", "localtime", "Factory"))
        or not name.isascii()
    ):
        return None
    try:
        return zoneinfo.ZoneInfo(name)
    except (KeyError, ValueError, OSError):  # not found; a path; a folder such as `America`
        return None


def _zone_hint(name: str) -> str:
    import zoneinfo

    if known := _ABBREVIATIONS.get(name.lower()):
        return f"did you mean `{known}`?"
    zones = sorted(zoneinfo.available_timezones())
    city = name.rpartition("/")[2].replace(" ", "_").lower()
    for zone in zones:
        if "/" in zone and zone.rpartition("/")[2].lower() == city:
            return f"did you mean `{zone}`?"
    return errors.spelling_hint(name, zones)
