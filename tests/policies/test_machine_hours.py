"""Hours of a schedule are those that plan and review count."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gputier.review import hours as theirs
from gputier_policies import hours

ZONES = st.sampled_from(["UTC", "Europe/Berlin", "America/New_York", "Asia/Kolkata",
                         "Australia/Lord_Howe", "America/Havana"])  # fmt: skip
DAYS = st.sampled_from(["*", "mon-fri", "1-5", "sat-sun", "0,6", "7", "*/2"])
DATES = st.sampled_from(["*", "1", "1-7", "*/3", "29-31"])


MONTHS = st.sampled_from(["*", "1-6", "mar,oct"])
CRONS = st.builds(
    "{} {} {} {} {}".format, st.integers(0, 59), st.integers(0, 23), DATES, MONTHS, DAYS
)
FEW = settings(max_examples=25)


@FEW
@given(CRONS, ZONES)
def test_an_expression_comes_when_the_plan_says(cron: str, zone: str) -> None:
    found = hours.moments(cron, zone)
    assert found is not None
    years = [datetime.fromtimestamp(moment * 60, UTC).year for moment in found]
    inside = [year for year in years if 2025 <= year <= 2028]
    assert theirs.fires(cron, zone) == pytest.approx(len(inside) / 48)


@FEW
@given(st.integers(0, 23), st.integers(0, 23), st.integers(0, 59), ZONES)
def test_a_machine_runs_as_long_as_the_plan_says(on: int, off: int, minute: int, zone: str) -> None:
    start, stop = f"{minute} {on} * * *", f"{(minute + 30) % 60} {off} * * mon-fri"
    found = hours.running([(start, zone)], [(stop, zone)])
    assert found == pytest.approx(theirs.hours_of([(start, stop, zone)]))


@FEW
@given(st.integers(0, 22), ZONES)
def test_a_group_has_as_many_machines_as_the_review_says(hour: int, zone: str) -> None:
    up, down = f"0 {hour} * * 1-5", f"30 {hour + 1} * * 1-5"
    mine = hours.at_most(3, [hours.Action(up, zone, 1, 1, 3), hours.Action(down, zone, 0, 0, 0)])
    review = theirs.by_actions(
        [theirs.Action(up, zone, theirs.Sizes(1, 1, 3)),
         theirs.Action(down, zone, theirs.Sizes(0, 0, 0))],
        theirs.Sizes(1, 1, 3),
    )  # fmt: skip
    assert mine
    assert review
    assert mine.peak * hours.hours_of(mine) == pytest.approx((review.most or 0.0) * hours.MONTH)
    assert mine.peak == 3
    assert mine.zero


@pytest.mark.parametrize("cron", [
    "0 8 * *", "0 25 * * *", "0 8 L * *", "0 8 * * 1#2", "x 8 * * *", "0 9-8 * * *", "",
])  # fmt: skip
def test_what_cannot_be_read_is_none(cron: str) -> None:
    assert hours.moments(cron, "UTC") is None
    assert hours.at_most(1, [hours.Action(cron, "UTC", 0, 0, 0)]) is None
    assert hours.running([(cron, "UTC")], [("0 20 * * *", "UTC")]) is None
    assert hours.asked_for([(cron, "UTC", 3600)]) is None


@pytest.mark.parametrize("zone", ["Nowhere", "CET+1", "../etc", "America"])
def test_a_time_zone_that_is_none_cannot_be_read(zone: str) -> None:
    assert hours.moments("0 8 * * *", zone) is None


def test_nothing_starts_or_stops_it() -> None:
    assert hours.running([], [("0 20 * * *", "UTC")]) is None
    assert hours.running([("0 8 * * *", "UTC")], []) is None
    assert hours.at_most(2, []) == hours.Ceiling(2, 2, False)


def test_a_size_that_is_left_alone_stays() -> None:
    only_wanted = [hours.Action("0 0 * * 6", "UTC", 0, 0, None),
                   hours.Action("0 0 * * 1", "UTC", 0, 2, None)]  # fmt: skip
    found = hours.at_most(7, only_wanted)
    assert found
    assert found.peak == 7
    assert found.average == pytest.approx(5, abs=0.01)
    left = [action._replace(desired=None) for action in only_wanted]
    assert hours.at_most(7, left) == hours.Ceiling(7, 7, False)


@pytest.mark.parametrize(("expression", "fields"), [
    ("cron(0 7 ? * MON-FRI *)", "0 7 * * MON-FRI"), ("cron(0 7 ? * 2-6 *)", "0 7 * * 1-5"),
    ("cron(0 7 1 * ? *)", "0 7 1 * *"), ("rate(5 minutes)", None), ("cron(0 7 ? * MON 2026)", None),
])  # fmt: skip
def test_an_expression_of_eventbridge_is_read(expression: str, fields: str | None) -> None:
    assert hours.five_fields(expression) == fields


def test_hours_that_overlap_count_once() -> None:
    day = ("0 8 * * *", "UTC", 4 * 3600.0)
    late = ("0 10 * * *", "UTC", 4 * 3600.0)
    both = hours.asked_for([day, late])
    assert both == pytest.approx(6 * 1461 / 48)
