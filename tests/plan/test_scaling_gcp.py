"""An autoscaler of Google's: between which bounds, by what, and when."""

from __future__ import annotations

from typing import Any

import pytest
from tests.gcp.world import planned

from gputier.plan.scaling_gcp import Autoscaling, autoscaling, hours_of, hours_problems

L4: dict[str, Any] = {"gpu": {"models": ["L4"]}, "purpose": "inference"}
NIGHTS: dict[str, Any] = {
    "start": "0 20 * * mon-fri", "stop": "0 6 * * tue-sat", "timezone": "Europe/Berlin",
}  # fmt: skip


def of(**fields: Any) -> Autoscaling | None:
    chosen = planned(**{**L4, **fields}).chosen
    assert chosen
    return autoscaling(chosen, 1501)


def test_a_group_of_fixed_size_has_no_autoscaler() -> None:
    assert of() is None


def test_a_group_is_kept_at_the_declared_figure_of_one_series_a_machine() -> None:
    found = of(scale={"min": 1, "max": 4, "target": 60})
    assert found
    assert (found.least, found.most, found.warmup_seconds) == (1, 4, 1800)
    assert found.signal
    assert found.signal.target == 60
    assert found.signal.filter.count("gpu_number") == 1
    assert found.hours == ()


def test_a_schedule_has_none_outside_its_hours_and_the_declared_number_inside() -> None:
    found = of(schedule=[NIGHTS], nodes=2)
    assert found
    assert (found.least, found.most, found.signal) == (0, 2, None)
    (hours,) = found.hours
    assert (hours.cron, hours.ends) == ("0 20 * * 1-5", "0 6 * * 2-6")
    assert (hours.timezone, hours.seconds, hours.machines) == ("Europe/Berlin", 10 * 3600, 2)
    assert hours.key.startswith("start-")


def test_what_grows_is_bounded_by_the_clock_too() -> None:
    found = of(schedule=[NIGHTS], scale={"min": 1, "max": 4})
    assert found
    (hours,) = found.hours
    start, stop = found.bounds
    assert (start.key, start.cron, start.most) == (hours.key, hours.cron, 4)
    assert (stop.key, stop.cron, stop.most) == (hours.key.replace("start", "stop"), hours.ends, 0)
    assert stop.timezone == "Europe/Berlin"
    fixed, always = of(schedule=[NIGHTS]), of(scale={"min": 1, "max": 4})
    assert fixed
    assert always
    assert fixed.bounds == always.bounds == ()


@pytest.mark.parametrize(("boot", "warmup"), [(1500, 1500), (1501, 1800), (3537, 3600)])
def test_a_machine_does_not_count_until_its_boot_is_over(boot: int, warmup: int) -> None:
    chosen = planned(**L4, scale={"min": 1, "max": 2}).chosen
    assert chosen
    found = autoscaling(chosen, boot)
    assert found
    assert found.warmup_seconds == warmup


def test_hours_keep_their_names_when_another_entry_comes_before_them() -> None:
    days = {"start": "0 8 * * mon-fri", "stop": "0 9 * * mon-fri", "timezone": "Europe/Berlin"}
    one, both = of(schedule=[NIGHTS]), of(schedule=[days, NIGHTS])
    assert one
    assert both
    assert one.hours[0] in both.hours
    assert len({h.key for h in both.hours}) == 2


def problems(*entries: tuple[str, str, str], lone: bool = False) -> list[str]:
    return [p.message for p in hours_problems(entries, lone=lone)]


GOOD = ("0 20 * * mon-fri", "0 6 * * tue-sat", "Europe/Berlin")


def test_the_hours_of_the_examples_can_be_told_whatever_clocks_do() -> None:
    assert problems(GOOD) == []
    assert problems(GOOD, lone=True) == []


def test_a_lone_machine_is_told_its_stop_and_needs_no_length() -> None:
    assert problems(("0 20 * * mon-fri", "0 6 * * mon,wed", "UTC"), lone=True) == []


@pytest.mark.parametrize(
    ("entry", "words"),
    [
        (("0 20 * * mon-fri", "0 6 * * mon,wed", "UTC"), "is not always as long"),
        (("0 20 1 * mon", "0 22 * * *", "UTC"), "how gcp joins them is not known"),
    ],
)
def test_what_has_no_length_or_no_known_meaning_is_refused(
    entry: tuple[str, str, str], words: str
) -> None:
    assert any(words in message for message in problems(entry))


@pytest.mark.parametrize(
    ("other", "meet"),
    [
        (("0 4 * * *", "0 7 * * *", "Europe/Berlin"), True),
        (("0 6 * * *", "0 7 * * *", "Europe/Berlin"), True),
        (("1 6 * * *", "0 7 * * *", "Europe/Berlin"), False),
    ],
)
def test_entries_of_a_group_that_is_bounded_do_not_meet(
    other: tuple[str, str, str], meet: bool
) -> None:
    found = [p.message for p in hours_problems((GOOD, other), lone=False, bounded=True)]
    assert any("meet" in message for message in found) is meet
    assert problems(GOOD, other) == [], "the greatest number of several counts"


def test_a_lone_machine_takes_one_schedule() -> None:
    other = ("0 8 * * *", "0 9 * * *", "UTC")
    assert problems(GOOD, other) == []
    (message,) = problems(GOOD, other, lone=True)
    assert "takes one schedule" in message


def test_a_lone_machines_hours_are_its_schedule() -> None:
    plan = planned(gpu={"models": ["L4"]}, purpose="development", schedule=[NIGHTS])
    assert plan.chosen
    (hours,) = hours_of(plan.chosen)
    assert hours.ends == "0 6 * * 2-6"
