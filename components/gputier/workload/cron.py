"""Five-field cron expressions, read strictly: `minute hour day-of-month month day-of-week`.

Fields take numbers, names (jan-dec, mon-sun), lists, ranges, steps and `*`; 0 and 7 are Sunday. As
in cron(8), a day matches when *either* day field does, unless one of them begins with `*`: then
both must. What other schedulers add (`?`, `L`, `W`, `#`, seconds, `@daily`) is refused.
"""

from __future__ import annotations

import datetime
import functools
import re
from typing import NamedTuple, NoReturn

from gputier.workload.complaints import complaint, shown

MOST_STARTS_A_DAY = 24

_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_DAYS = ("sun", "mon", "tue", "wed", "thu", "fri", "sat")


class _Field(NamedTuple):
    """One of the five: what people call it, its range, and the names it takes."""

    one: str
    many: str
    low: int
    high: int
    names: tuple[str, ...] = ()

    def number(self, word: str) -> int | None:
        if word.isascii() and word.isdigit() and len(word) < 10:
            return int(word)
        if word.lower() in self.names:
            return self.names.index(word.lower()) + self.low
        return None


_FIELDS = (
    _Field("minute", "minutes", 0, 59),
    _Field("hour", "hours", 0, 23),
    _Field("day", "days of the month", 1, 31),
    _Field("month", "months", 1, 12, _MONTHS),
    _Field("weekday", "weekdays", 0, 7, _DAYS),
)


class Cron(NamedTuple):
    """A parsed expression. `weekdays` are 0 (Sunday) to 6; `times` are minutes of the day."""

    times: tuple[int, ...]
    days: frozenset[int]
    months: frozenset[int]
    weekdays: frozenset[int]
    both_days: bool

    def matches(self, day: datetime.date) -> bool:
        """Whether it fires on `day`."""
        if day.month not in self.months:
            return False
        in_month, in_week = day.day in self.days, day.isoweekday() % 7 in self.weekdays
        return (in_month and in_week) if self.both_days else (in_month or in_week)


@functools.lru_cache(maxsize=256)
def parse(text: str) -> Cron:
    """The expression, or a complaint (`PydanticCustomError`, a ValueError) on what is wrong."""
    words = text.split()
    if len(words) != len(_FIELDS):
        _refuse_form(text, len(words))
    minutes, hours, days, months, weekdays = (
        _values(word, field, text) for word, field in zip(words, _FIELDS, strict=True)
    )
    if len(minutes) * len(hours) > MOST_STARTS_A_DAY:
        times = len(minutes) * len(hours)
        hint = f"did you mean `{' '.join(['0', *words[1:]])}`?" if words[0].startswith("*") else ""
        raise complaint(
            f" fires {times:,} times a day; machines come and go at most {MOST_STARTS_A_DAY} times",
            hint,
        )
    return Cron(
        times=tuple(hour * 60 + minute for hour in sorted(hours) for minute in sorted(minutes)),
        days=days,
        months=months,
        weekdays=frozenset(day % 7 for day in weekdays),
        both_days=words[2].startswith("*") or words[4].startswith("*"),
    )


def _refuse_form(text: str, count: int) -> NoReturn:
    example = '"0 20 * * mon-fri" is 20:00 from Monday to Friday'
    if text.strip().startswith("@"):
        raise complaint(f" must be five cron fields, not {shown(text)}", f"spell it out: {example}")
    raise complaint(
        f" must be five cron fields (minute hour day month weekday), not {count}: {shown(text)}",
        example,
    )


def _values(word: str, field: _Field, text: str) -> frozenset[int]:
    found: set[int] = set()
    for part in word.split(","):
        found |= _part(part, field, text)
    return frozenset(found)


def _part(part: str, field: _Field, text: str) -> set[int]:
    body, slash, step_text = part.partition("/")
    step = 1
    if slash:
        step = int(step_text) if re.fullmatch(r"[0-9]{1,9}", step_text) else 0
        if not 1 <= step <= field.high:
            _refuse(
                f"step `{step_text}` of {field.many}",
                f"steps go from 1 to {field.high}",
                step_text,
                text,
            )
        if body != "*" and "-" not in body:
            _refuse(
                f"`{part}`",
                f"a step needs `*` or a range, such as `{body}-{field.high}/{step}`",
                part,
                text,
            )
    if body == "*":
        low, high = field.low, min(field.high, 6) if field.one == "weekday" else field.high
    else:
        first, dash, last = body.partition("-")
        low = _number(first, field, text)
        high = _number(last, field, text) if dash else low
        if dash and high == 0 and field.one == "weekday":
            high = 7  # sat-sun: a range that ends on Sunday ends the week
        if high < low:
            _refuse(
                f"range `{body}` of {field.many}",
                f"it runs backwards; write `{first}-{field.high},{field.low}-{last}`",
                body,
                text,
            )
    return set(range(low, high + 1, step))


def _number(word: str, field: _Field, text: str) -> int:
    number = field.number(word)
    names = f", or {field.names[0]} to {field.names[-1]}" if field.names else ""
    rule = f"{field.many} go from {field.low} to {field.high}{names}"
    if number is None:
        _refuse(f"`{word}` as {field.one}", rule, word, text)
    if not field.low <= number <= field.high:
        _refuse(f"{field.one} {number}", rule, word, text)
    return number


def _refuse(what: str, rule: str, word: str, text: str) -> NoReturn:
    raise complaint(
        f": {rule}", before=f"{what} in ", short=True, place=(text.find(word), len(word))
    )
