"""Five-field cron, read strictly."""

from __future__ import annotations

import datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic_core import PydanticCustomError

from gputier.workload import cron

EVERY_DAY = frozenset(range(1, 32))
EVERY_MONTH = frozenset(range(1, 13))
WEEK = frozenset(range(7))


def minutes(*times: str) -> tuple[int, ...]:
    return tuple(int(t[:2]) * 60 + int(t[3:]) for t in times)


PARSED: dict[str, cron.Cron] = {
    "0 20 * * mon-fri": cron.Cron(
        minutes("20:00"), EVERY_DAY, EVERY_MONTH, frozenset({1, 2, 3, 4, 5}), True
    ),
    "30 6,18 * * *": cron.Cron(minutes("06:30", "18:30"), EVERY_DAY, EVERY_MONTH, WEEK, True),
    "0 0 1 jan,jul *": cron.Cron(minutes("00:00"), frozenset({1}), frozenset({1, 7}), WEEK, True),
    "0 0 13 * fri": cron.Cron(
        minutes("00:00"), frozenset({13}), EVERY_MONTH, frozenset({5}), False
    ),
    "0 */6 * * *": cron.Cron(
        minutes("00:00", "06:00", "12:00", "18:00"), EVERY_DAY, EVERY_MONTH, WEEK, True
    ),
    "0 */23 */1 * *": cron.Cron(minutes("00:00", "23:00"), EVERY_DAY, EVERY_MONTH, WEEK, True),
    "0-30/15 8 * * *": cron.Cron(
        minutes("08:00", "08:15", "08:30"), EVERY_DAY, EVERY_MONTH, WEEK, True
    ),
    "0 8 * * 0": cron.Cron(minutes("08:00"), EVERY_DAY, EVERY_MONTH, frozenset({0}), True),
    "0 8 * * 7": cron.Cron(minutes("08:00"), EVERY_DAY, EVERY_MONTH, frozenset({0}), True),
    "0 8 * * sat-sun": cron.Cron(minutes("08:00"), EVERY_DAY, EVERY_MONTH, frozenset({0, 6}), True),
    "0 8 * * 5-7": cron.Cron(minutes("08:00"), EVERY_DAY, EVERY_MONTH, frozenset({0, 5, 6}), True),
    "0 8 * * sun-tue": cron.Cron(
        minutes("08:00"), EVERY_DAY, EVERY_MONTH, frozenset({0, 1, 2}), True
    ),
    "0 8 */10 * MON": cron.Cron(
        minutes("08:00"), frozenset({1, 11, 21, 31}), EVERY_MONTH, frozenset({1}), True
    ),
}


@pytest.mark.parametrize(("text", "parsed"), PARSED.items())
def test_expressions_mean_what_cron_means(text: str, parsed: cron.Cron) -> None:
    assert cron.parse(text) == parsed


@pytest.mark.parametrize(
    ("text", "first"),
    [
        # Either day field, as neither begins with `*`: the 13th, and every Friday.
        ("0 0 13 * fri", ["2025-06-06", "2025-06-13", "2025-06-20", "2025-06-27"]),
        # Both, as one begins with `*`: Mondays among the 1st, 11th, 21st and 31st.
        ("0 0 */10 * mon", []),
        ("0 0 */3 * fri", ["2025-06-13"]),
        ("0 0 1,15 * *", ["2025-06-01", "2025-06-15"]),
        ("0 0 * * sun", ["2025-06-01", "2025-06-08", "2025-06-15", "2025-06-22", "2025-06-29"]),
        ("0 0 * jul *", []),
    ],
)
def test_the_two_day_fields_join_as_in_cron(text: str, first: list[str]) -> None:
    fires = cron.parse(text)
    june = [datetime.date(2025, 6, day) for day in range(1, 31)]
    assert [str(day) for day in june if fires.matches(day)] == first


FIVE = " must be five cron fields (minute hour day month weekday)"
REFUSED: dict[str, str] = {
    "0 25 * * *": "hour 25 in : hours go from 0 to 23",
    "60 1 * * *": "minute 60 in : minutes go from 0 to 59",
    "0 1 32 * *": "day 32 in : days of the month go from 1 to 31",
    "0 1 0 * *": "day 0 in : days of the month go from 1 to 31",
    "0 1 * 13 *": "month 13 in : months go from 1 to 12, or jan to dec",
    "0 1 * * 8": "weekday 8 in : weekdays go from 0 to 7, or sun to sat",
    "0 1 * * monday": "`monday` as weekday in : weekdays go from 0 to 7, or sun to sat",
    "0 8h * * *": "`8h` as hour in : hours go from 0 to 23",
    "0 1 ? * *": "`?` as day in : days of the month go from 1 to 31",
    "0 1 L * *": "`L` as day in : days of the month go from 1 to 31",
    "0 1 * * 5#2": "`5#2` as weekday in : weekdays go from 0 to 7, or sun to sat",
    "0 22-6 * * *": "range `22-6` of hours in : it runs backwards; write `22-23,0-6`",
    "0 8 * * fri-mon": "range `fri-mon` of weekdays in : it runs backwards; write `fri-7,0-mon`",
    "5/15 1 * * *": "`5/15` in : a step needs `*` or a range, such as `5-59/15`",
    "*/0 1 * * *": "step `0` of minutes in : steps go from 1 to 59",
    "0 */24 * * *": "step `24` of hours in : steps go from 1 to 23",
    "*/90 1 * * *": "step `90` of minutes in : steps go from 1 to 59",
    "*/x 1 * * *": "step `x` of minutes in : steps go from 1 to 59",
    "0 , * * *": "`` as hour in : hours go from 0 to 23",
    "0 1, * * *": "`` as hour in : hours go from 0 to 23",
    "0 -1 * * *": "`` as hour in : hours go from 0 to 23",
    "0 1-2-3 * * *": "`2-3` as hour in : hours go from 0 to 23",
    "٣ 1 * * *": "`٣` as minute in : minutes go from 0 to 59",
    "0 1 * *": f"{FIVE}, not 4: `0 1 * *`",
    "0 0 1 * * *": f"{FIVE}, not 6: `0 0 1 * * *`",
    "": f"{FIVE}, not 0: ``",
    "@daily": " must be five cron fields, not `@daily`",
    "* 8 * * *": " fires 60 times a day; machines come and go at most 24 times",
    "*/30 * * * *": " fires 48 times a day; machines come and go at most 24 times",
}


@pytest.mark.parametrize(("text", "message"), REFUSED.items())
def test_what_cron_does_not_take_is_refused_with_the_rule(text: str, message: str) -> None:
    with pytest.raises(PydanticCustomError) as caught:
        cron.parse(text)
    context = caught.value.context or {}
    assert f"{context['before']}{context['after']}" == message


def test_a_star_for_the_minute_is_met_with_what_was_meant() -> None:
    with pytest.raises(PydanticCustomError) as caught:
        cron.parse("* 8 * * mon-fri")
    assert (caught.value.context or {})["hint"] == "did you mean `0 8 * * mon-fri`?"


def test_the_part_at_fault_is_pointed_at() -> None:
    with pytest.raises(PydanticCustomError) as caught:
        cron.parse("0 25 * * mon-fri")
    assert (caught.value.context or {})["place"] == (2, 2)


FIELD_RANGES = ((0, 59), (0, 23), (1, 31), (1, 12), (0, 7))


@given(st.data())
def test_lists_of_numbers_are_taken_as_they_are(data: st.DataObject) -> None:
    chosen = [
        data.draw(st.lists(st.integers(low, high), min_size=1, max_size=4, unique=True))
        for low, high in FIELD_RANGES
    ]
    parsed = cron.parse(" ".join(",".join(map(str, numbers)) for numbers in chosen))
    assert set(parsed.times) == {h * 60 + m for m in chosen[0] for h in chosen[1]}
    assert parsed.times == tuple(sorted(parsed.times))
    assert (parsed.days, parsed.months) == (frozenset(chosen[2]), frozenset(chosen[3]))
    assert parsed.weekdays == {day % 7 for day in chosen[4]}


@given(st.text(alphabet="0123456789*/,- monfrisJAN?LW#@\t\n", max_size=30) | st.text(max_size=20))
def test_any_text_is_an_expression_or_a_complaint(text: str) -> None:
    try:
        parsed = cron.parse(text)
    except PydanticCustomError:
        return
    assert parsed.times
    assert len(parsed.times) <= cron.MOST_STARTS_A_DAY
