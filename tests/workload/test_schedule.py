"""Hours a month of a schedule: by hand where it is simple, by a slow oracle everywhere else.

The oracle walks UTC minute by minute, asks the time zone what the clocks show, and fires whenever
an expression matches: the first time a local minute comes, and at a jump for every minute skipped.
"""

from __future__ import annotations

import datetime
import re
import time
import zoneinfo

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gputier import errors
from gputier.workload import ScheduleEntry, cron, hours_per_month, schedule

UTC = datetime.UTC
MINUTE = datetime.timedelta(minutes=1)
EPOCH = datetime.datetime(1970, 1, 1, tzinfo=UTC)
DAYS = 1461


def entry(start: str, stop: str, timezone: str = "UTC") -> ScheduleEntry:
    return ScheduleEntry(start=start, stop=stop, timezone=timezone)


OFFICE = entry("0 8 * * mon-fri", "0 20 * * mon-fri")
NIGHTS = entry("0 20 * * mon-fri", "0 6 * * tue-sat", "Europe/Berlin")
WEEKENDS = entry("0 6 * * sat", "0 20 * * sun", "Europe/Berlin")
WEEKDAYS = sum(
    (datetime.date(2025, 1, 1) + datetime.timedelta(days=n)).weekday() < 5 for n in range(DAYS)
)


@pytest.mark.parametrize(
    ("entries", "hours"),
    [
        ((), 730.0),
        ((OFFICE,), WEEKDAYS * 12 / 48),
        ((OFFICE, OFFICE), WEEKDAYS * 12 / 48),
        ((entry("0 12 * * *", "0 13 * * *"),), DAYS / 48),
        # The same hour in two zones an hour apart: together two hours, never the sum of clocks.
        (
            (entry("0 12 * * *", "0 14 * * *"), entry("0 13 * * *", "0 15 * * *")),
            DAYS * 3 / 48,
        ),
        # Open from the first start to the last stop of four years: nearly always.
        ((entry("0 0 1 * *", "1 0 1 * *"),), 48 / 60 / 48),
        ((entry("0 0 1 1 *", "0 0 1 7 *"),), (181 + 181 + 181 + 182) * 24 / 48),
        ((entry("0 0 1 7 *", "0 0 1 1 *"),), 184 * 4 * 24 / 48),
        ((entry("0 0 29 2 *", "0 0 1 3 *"),), 24 / 48),
        # 30 minutes an hour.
        ((entry("0 * * * *", "30 * * * *"),), DAYS * 12 / 48),
        # A second start while running changes nothing; nor does a second stop.
        ((entry("0 8,10 * * *", "0 12,14 * * *"),), DAYS * 4 / 48),
    ],
)
def test_hours_that_can_be_counted_by_hand(
    entries: tuple[ScheduleEntry, ...], hours: float
) -> None:
    assert hours_per_month(entries) == pytest.approx(hours, abs=1e-9)


def test_the_months_of_the_examples_are_about_what_people_expect() -> None:
    assert hours_per_month((OFFICE,)) == pytest.approx(261, abs=0.5)
    assert hours_per_month((NIGHTS,)) == pytest.approx(217, abs=0.5)
    both = hours_per_month((NIGHTS, WEEKENDS))
    assert both == pytest.approx(217.4 + 38 * 1461 / 7 / 48, abs=1)


def utc(text: str) -> int:
    moment = datetime.datetime.fromisoformat(text).replace(tzinfo=UTC)
    return int((moment - EPOCH).total_seconds()) // 60


def windows_near(start: str, stop: str, zone: str, day: str) -> list[tuple[int, int]]:
    """Windows of an entry that begin within a day of noon UTC of `day`."""
    noon = utc(f"{day}T12:00")
    return [w for w in schedule.windows(start, stop, zone) if abs(w[0] - noon) < 24 * 60]


# zone, day of the change, start, stop, what the clocks make of it (UTC)
CHANGES = """
Europe/Berlin        2025-03-29  0 20 29 3 *   0 6 30 3 *    2025-03-29T19:00  2025-03-30T04:00
Europe/Berlin        2025-03-30  30 2 30 3 *   0 5 30 3 *    2025-03-30T01:00  2025-03-30T03:00
Europe/Berlin        2025-03-30  0 1 30 3 *    30 2 30 3 *   2025-03-30T00:00  2025-03-30T01:00
Europe/Berlin        2025-10-25  0 20 25 10 *  0 6 26 10 *   2025-10-25T18:00  2025-10-26T05:00
Europe/Berlin        2025-10-26  30 2 26 10 *  0 5 26 10 *   2025-10-26T00:30  2025-10-26T04:00
Europe/Berlin        2025-10-26  0 1 26 10 *   30 2 26 10 *  2025-10-25T23:00  2025-10-26T00:30
America/New_York     2025-03-09  0 1 9 3 *     0 4 9 3 *     2025-03-09T06:00  2025-03-09T08:00
America/New_York     2025-03-09  0 1 9 3 *     59 2 9 3 *    2025-03-09T06:00  2025-03-09T07:00
America/New_York     2025-11-02  0 1 2 11 *    0 4 2 11 *    2025-11-02T05:00  2025-11-02T09:00
Australia/Lord_Howe  2025-10-04  0 1 5 10 *    0 4 5 10 *    2025-10-04T14:30  2025-10-04T17:00
Australia/Lord_Howe  2025-10-04  15 2 5 10 *   0 4 5 10 *    2025-10-04T15:30  2025-10-04T17:00
Australia/Lord_Howe  2025-04-05  0 1 6 4 *     0 4 6 4 *     2025-04-05T14:00  2025-04-05T17:30
Australia/Lord_Howe  2025-04-05  45 1 6 4 *    0 4 6 4 *     2025-04-05T14:45  2025-04-05T17:30
Asia/Kolkata         2025-03-30  0 8 30 3 *    0 9 30 3 *    2025-03-30T02:30  2025-03-30T03:30
UTC                  2025-03-30  30 2 30 3 *   0 5 30 3 *    2025-03-30T02:30  2025-03-30T05:00
Asia/Beirut          2025-03-29  0 0 30 3 *    0 5 30 3 *    2025-03-29T22:00  2025-03-30T02:00
America/Santiago     2025-09-07  0 0 7 9 *     0 5 7 9 *     2025-09-07T04:00  2025-09-07T08:00
Atlantic/Azores      2025-10-26  30 0 26 10 *  0 5 26 10 *   2025-10-26T00:30  2025-10-26T06:00
Asia/Tokyo           2028-12-31  0 6 1 1 *     0 7 1 1 *     2028-12-31T21:00  2028-12-31T22:00
"""
"""Zone, day, start, stop, and from when to when (UTC) machines run.

Berlin's clocks skip 02:00 to 03:00 in spring (the night is an hour short; 02:30 counts at the jump,
01:00 UTC) and show it twice in autumn (an hour long; 02:30 counts the first time). New York does
the same in its own weeks. Lord Howe moves by half an hour. Kolkata and UTC never move. Beirut and
Santiago skip midnight itself, the Azores have it twice. In Tokyo the calendar's last UTC day is
already the next year.
"""


@pytest.mark.parametrize("line", CHANGES.strip().splitlines())
def test_where_clocks_change_the_hours_that_pass_are_counted(line: str) -> None:
    row = re.match(r"(\S+) +(\S+) +(.*?)  +(.*?)  +(\S+)  (\S+)$", line)
    assert row is not None
    zone, day, start, stop, begin, end = row.groups()
    assert windows_near(start, stop, zone, day) == [(utc(begin), utc(end))]


@pytest.mark.parametrize(
    ("start", "stop", "minutes"),
    [
        # Both fall on the jump: on paper the start comes first, so nothing runs.
        ("15 2 30 3 *", "45 2 30 3 *", 0),
        # On paper the stop comes first: the machines go on running until the next stop.
        ("45 2 30 3 *", "15 2 30 3 *", None),
    ],
)
def test_what_a_jump_makes_fall_together_keeps_its_order(
    start: str, stop: str, minutes: int | None
) -> None:
    found = [e - b for b, e in windows_near(start, stop, "Europe/Berlin", "2025-03-30")]
    if minutes is None:
        assert found == [utc("2026-03-30T00:15") - utc("2025-03-30T01:00")]
    else:
        assert sum(found) == minutes


ZONES = [
    "UTC",
    "Europe/Berlin",
    "America/New_York",
    "Australia/Lord_Howe",
    "Asia/Kolkata",
    "Asia/Beirut",
    "America/Santiago",
    "America/Havana",
    "Atlantic/Azores",
    "Africa/Casablanca",
    "Pacific/Apia",
    "America/St_Johns",
    "Pacific/Chatham",
]
CHANGE_DAYS = [
    datetime.date(*day)
    for day in [
        (2024, 3, 30), (2025, 3, 8), (2025, 3, 29), (2025, 4, 5), (2025, 9, 6), (2025, 10, 4),
        (2025, 10, 25), (2025, 11, 1), (2026, 2, 14), (2026, 3, 21), (2027, 6, 1), (2028, 2, 27),
        (2028, 12, 28),
    ]
]  # fmt: skip


def oracle(start: str, stop: str, zone: str, first: int, last: int) -> list[tuple[int, int, bool]]:
    """What fires between two UTC minutes, in order: (minute, local minute meant, is it a start)."""
    crons = ((cron.parse(start), True), (cron.parse(stop), False))
    tz = zoneinfo.ZoneInfo(zone)
    fired: list[tuple[int, int, bool]] = []
    shown = (EPOCH + (first - 1) * MINUTE).astimezone(tz).replace(tzinfo=None)
    seen = {shown}
    for minute in range(first, last):
        local = (EPOCH + minute * MINUTE).astimezone(tz).replace(tzinfo=None)
        due = [shown + n * MINUTE for n in range(1, max(1, (local - shown) // MINUTE) + 1)]
        for wall in due if local > shown else [local]:
            if wall not in seen:
                seen.add(wall)
                day, time_of_day = wall.date(), wall.hour * 60 + wall.minute
                fired += [
                    (minute, int((wall - datetime.datetime(1970, 1, 1)).total_seconds()), starts)
                    for fires, starts in crons
                    if time_of_day in fires.times and fires.matches(day)
                ]
        shown = local
    return fired


def expression(parts: tuple[int, list[int], str]) -> str:
    minute, hours, week = parts
    return f"{minute} {','.join(map(str, hours))} * * {week}"


EXPRESSIONS = st.tuples(
    st.sampled_from([0, 15, 30, 59]),
    st.lists(st.integers(0, 23), min_size=1, max_size=2, unique=True)
    | st.lists(st.integers(0, 3), min_size=1, max_size=3, unique=True),
    st.sampled_from(["*", "mon-fri", "sat,sun", "0,3", "sun"]),
).map(expression)


@settings(max_examples=60)
@given(EXPRESSIONS, EXPRESSIONS, st.sampled_from(ZONES), st.sampled_from(CHANGE_DAYS))
def test_windows_are_those_of_a_minute_by_minute_walk(
    start: str, stop: str, zone: str, day: datetime.date
) -> None:
    if schedule.same_minute(start, stop):
        return
    first = utc(f"{day}T00:00")
    last = first + 3 * 24 * 60
    fired = sorted(oracle(start, stop, zone, first, last))
    if not fired:
        return
    # What ran before the walk began is not its business: compare from the first thing that fires.
    began, running = fired[0][0], False
    expected = [False] * (last - began)
    moments: dict[int, list[bool]] = {}
    for minute, _, starts in fired:
        moments.setdefault(minute, []).append(starts)
    ours = schedule.windows(start, stop, zone)
    running = any(b < began < e for b, e in ours) or any(e == began for _, e in ours)
    for minute in range(began, last):
        for starts in moments.get(minute, []):
            running = starts
        expected[minute - began] = running
    found = [False] * (last - began)
    for begin, end in ours:
        for minute in range(max(begin, began), min(end, last)):
            found[minute - began] = True
    assert found == expected


@settings(max_examples=50)
@given(
    st.lists(
        st.tuples(st.integers(0, 23), st.integers(0, 23), st.sampled_from(ZONES)),
        min_size=1,
        max_size=3,
    )
)
def test_together_entries_run_at_least_as_long_as_each_and_at_most_as_all(
    given_entries: list[tuple[int, int, str]],
) -> None:
    entries = [entry(f"0 {a} * * mon-fri", f"30 {b} * * *", zone) for a, b, zone in given_entries]
    alone = [hours_per_month((one,)) for one in entries]
    together = hours_per_month(entries)
    assert max(alone) - 1e-9 <= together <= min(sum(alone), 730.5) + 1e-9
    assert together == hours_per_month(list(reversed(entries)))


def test_counting_is_quick_and_remembered() -> None:
    schedule.hours_per_month((OFFICE,))  # imports and the calendar, once a process
    fresh = entry("17 7 * * mon-sat", "43 19 * * *", "America/Denver")
    began = time.process_time()
    hours_per_month((fresh,))
    first = time.process_time() - began
    began = time.process_time()
    for _ in range(100):
        hours_per_month((fresh,))
    assert first < 0.1, "measured 4 ms; a machine under load may take longer"
    assert time.process_time() - began < first, "a hundred more cost less than the first"


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("Berlin", "Europe/Berlin"),
        ("new york", "America/New_York"),
        ("europe/berlin", "Europe/Berlin"),
        ("Europe/Berlln", "Europe/Berlin"),
        ("PST", "America/Los_Angeles"),
        ("CEST", "Europe/Berlin"),
        ("IST", "Asia/Kolkata"),
    ],
)
def test_a_zone_that_is_none_is_met_with_the_one_that_was_meant(name: str, hint: str) -> None:
    with pytest.raises(errors.InvalidInput) as caught:
        entry("0 8 * * *", "0 9 * * *", name)
    assert caught.value.problems[0].hint == f"did you mean `{hint}`?"


@pytest.mark.parametrize(
    "name",
    [
        *("", "x" * 500, "../etc/passwd", "/etc/localtime", "localtime", "posix/UTC", "right/UTC"),
        *("America", "Factory", "posixrules", "Ünited/Kingdom", "UTC\0", "+02:00"),
    ],
)
def test_names_of_files_and_of_one_machine_are_no_zones(name: str) -> None:
    with pytest.raises(errors.InvalidInput, match="is no time zone"):
        entry("0 8 * * *", "0 9 * * *", name)


@pytest.mark.parametrize("zone", ["UTC", "Europe/Berlin", "EST5EDT", "Etc/GMT+5", "CET"])
def test_names_of_the_iana_list_are_zones(zone: str) -> None:
    assert entry("0 8 * * *", "0 9 * * *", zone).timezone == zone


def test_expressions_are_kept_in_one_spelling() -> None:
    made = entry(" 0   20 * * MON-Fri ", "0 6 * * tue-sat")
    assert made.start == "0 20 * * mon-fri"


@pytest.mark.parametrize("value", [5, None, ["0 8 * * *"], {"a": 1}, True, "0 " * 500])
def test_what_is_no_text_is_no_expression(value: object) -> None:
    with pytest.raises(errors.InvalidInput):
        ScheduleEntry.model_validate({"start": value, "stop": "0 9 * * *"})
