"""What happens to a fleet at fixed times, in the two dialects of cron that AWS has."""

from __future__ import annotations

from typing import Any

import pytest
from tests.plan.world import planned

from gputier.errors import InvalidInput
from gputier.plan import Action, Chosen
from gputier.plan.actions import five_fields, six_fields
from gputier.workload import cron

L4: dict[str, Any] = {"clouds": ["aws"], "gpu": {"models": ["L4"]}}


def chosen(**fields: Any) -> Chosen:
    plan = planned({**L4, **fields})
    assert plan.chosen is not None
    return plan.chosen


CRON: dict[str, tuple[str, tuple[str, ...]]] = {
    "0 20 * * mon-fri": ("0 20 * * 1-5", ("cron(0 20 ? * MON-FRI *)",)),
    "30 6 * * 0": ("30 6 * * 0", ("cron(30 6 ? * SUN *)",)),
    "30 6 * * 7": ("30 6 * * 0", ("cron(30 6 ? * SUN *)",)),
    "0 6 * * sat-sun": ("0 6 * * 0,6", ("cron(0 6 ? * SUN,SAT *)",)),
    "0 8 1 * *": ("0 8 1 * *", ("cron(0 8 1 * ? *)",)),
    "0,30 8-10 * jan,feb,mar,dec *": ("0,30 8-10 * 1-3,12 *", ("cron(0,30 8-10 * 1-3,12 ? *)",)),
    "0 0 * * *": ("0 0 * * *", ("cron(0 0 * * ? *)",)),
    "0 * * * *": ("0 * * * *", ("cron(0 * * * ? *)",)),
    "0 8 */2 * *": ("0 8 1,3,5,7,9,11,13,15,17,19,21,23,25,27,29,31 * *",
                    ("cron(0 8 1,3,5,7,9,11,13,15,17,19,21,23,25,27,29,31 * ? *)",)),
    # Either day will do: Auto Scaling's cron says so in one, EventBridge's in two.
    "0 8 1 * mon": ("0 8 1 * 1", ("cron(0 8 1 * ? *)", "cron(0 8 ? * MON *)")),
}  # fmt: skip


@pytest.mark.parametrize("text", CRON)
def test_a_cron_expression_is_told_in_both_dialects(text: str) -> None:
    fires = cron.parse(text)
    assert (five_fields(fires), six_fields(fires)) == CRON[text]


@pytest.mark.parametrize("text", CRON)
def test_what_auto_scaling_is_told_means_what_was_written(text: str) -> None:
    """Read again by our own reader; the star of a whole field tells it that both days count."""
    fires, again = cron.parse(text), cron.parse(five_fields(cron.parse(text)))
    assert again[:4] == fires[:4]


def test_a_schedule_starts_a_fleet_at_its_size_and_stops_all_of_it() -> None:
    entry = {"start": "0 20 * * mon-fri", "stop": "0 6 * * tue-sat", "timezone": "Europe/Berlin"}
    start, stop = chosen(schedule=[entry], scale={"min": 2, "max": 6}).scaling.actions
    assert (start.what, start.recurrence, start.timezone) == (
        "start", "0 20 * * 1-5", "Europe/Berlin",
    )  # fmt: skip
    assert (start.least, start.most, start.desired) == (2, 6, 2)
    assert (stop.what, stop.recurrence) == ("stop", "0 6 * * 2-6")
    assert (stop.least, stop.most, stop.desired) == (0, 0, 0)


def test_a_fleet_between_bounds_begins_with_its_nodes() -> None:
    found = chosen(nodes=2, scale={"min": 1, "max": 6})
    assert found.scaling.desired == 2
    assert chosen(scale={"min": 0, "max": 6}).scaling.desired == 0


def test_actions_are_named_by_what_they_are_and_not_by_their_place() -> None:
    one = {"start": "0 8 * * *", "stop": "0 12 * * *"}
    two = {"start": "0 14 * * *", "stop": "0 18 * * *"}
    keys = {a.key for a in chosen(schedule=[one, two]).scaling.actions}
    assert keys == {a.key for a in chosen(schedule=[two, one]).scaling.actions}
    assert len(keys) == 4
    assert {a.key for a in chosen(schedule=[one]).scaling.actions} < keys
    assert len(chosen(schedule=[one, one]).scaling.actions) == 2


def test_43_no_machine_is_asked_for_before_a_block_begins() -> None:
    found = planned({
        "clouds": ["aws"], "regions": {"aws": ["us-east-1"]}, "nodes": 4,
        "capacity": {"use": "capacity_block", "id": "cr-0abc", "instance_type": "p5.48xlarge",
                     "zone": "use1-az4", "count": 4, "start": "2026-12-01T11:30:00Z",
                     "end": "2026-12-08T11:30:00Z"},
    }).chosen  # fmt: skip
    assert found is not None
    assert found.scaling.desired == 0
    assert found.scaling.actions == (
        Action("reserved-start", "start", None, (), "2026-12-01T11:30:00Z", "UTC", 4, 4, 4),
        Action("reserved-end", "stop", None, (), "2026-12-08T10:45:00Z", "UTC", 0, 0, 0),
    )
    assert any("before what is reserved begins" in note for note in found.notes)


@pytest.mark.parametrize(
    ("schedule", "message"),
    [
        ([{"start": "0 8 */2 * mon", "stop": "0 18 * * *"}],
         "`0 8 */2 * mon` asks for a day of the month that is also a day of the week"),
        ([{"start": "0 8 * * *", "stop": "0 12 * * *"},
          {"start": "0 11 * * *", "stop": "0 18 * * *"}],
         "the end of one would stop what the other started"),
        ([{"start": "0 8 * * *", "stop": "0 12 * * *"},
          {"start": "0 12 * * *", "stop": "0 18 * * *"}],
         "the end of one would stop what the other started"),
        ([{"start": "0 8 * * *", "stop": "0 12 * * *", "timezone": "Europe/Berlin"},
          {"start": "0 9 * * *", "stop": "0 18 * * *", "timezone": "UTC"}],
         "the end of one would stop what the other started"),
    ],
    ids=["both days", "overlap", "touch", "overlap across zones"],
)  # fmt: skip
def test_what_no_scheduler_can_be_told_is_refused(
    schedule: list[dict[str, str]], message: str
) -> None:
    with pytest.raises(InvalidInput) as caught:
        planned({**L4, "schedule": schedule})
    (problem,) = caught.value.problems
    assert problem.path == "schedule"
    assert message in problem.message
    assert problem.hint


def test_times_that_never_meet_stand_beside_each_other() -> None:
    schedule = [{"start": "0 8 * * *", "stop": "59 11 * * *"},
                {"start": "0 12 * * *", "stop": "0 18 * * *"}]  # fmt: skip
    assert len(chosen(schedule=schedule).scaling.actions) == 4


def test_an_empty_fleet_that_nothing_fills_is_pointed_out() -> None:
    told = "it grows from zero only by hand or by a schedule"
    assert any(told in note for note in chosen(scale={"min": 0, "max": 3}).notes)
    hours = [{"start": "0 8 * * *", "stop": "0 18 * * *"}]
    found = chosen(scale={"min": 0, "max": 3}, schedule=hours)
    assert not any(told in note for note in found.notes)
