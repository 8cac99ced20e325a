"""A workload's month: hours that run, machines at least and at most, and its budget."""

from __future__ import annotations

import math
from typing import Any

import pytest
from tests.plan.world import in_file, planned

from gputier.catalog import load
from gputier.errors import InvalidInput
from gputier.plan import Chosen, plan_workload
from gputier.workload import Workload

HERE = {"clouds": ["aws"], "regions": {"aws": ["us-east-1"]}}
NIGHTS = [{"start": "0 20 * * *", "stop": "0 6 * * *", "timezone": "UTC"}]  # 10 hours a day
HOURS_OF_NIGHTS = 10 * 1461 / 48  # over four years of 48 months


def g6(**fields: Any) -> Chosen:
    capacity = {"use": "on_demand", "instance_type": "g6.xlarge"}
    plan = planned({"capacity": capacity, **HERE, **fields})
    assert plan.chosen is not None
    return plan.chosen


@pytest.fixture(scope="module")
def price() -> float:
    return in_file("aws", "us-east-1", "g6.xlarge", "on_demand")


# ---- hours ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("fields", "hours", "basis"),
    [
        ({}, 730, "always on"),
        ({"hours_per_month": 100}, 100, "declared"),
        ({"schedule": NIGHTS}, HOURS_OF_NIGHTS, "schedule"),
        ({"schedule": NIGHTS, "hours_per_month": 100}, 100, "declared"),
    ],
    ids=str,
)
def test_hours_are_declared_or_the_schedules_or_all_730(
    fields: dict[str, Any], hours: float, basis: str, price: float
) -> None:
    found = g6(**fields)
    assert found.scaling.hours_per_month == pytest.approx(hours)
    assert found.scaling.hours_basis == basis
    assert found.usd_per_month == pytest.approx(price * hours)


def test_hours_never_change_the_choice_or_what_ranks(price: float) -> None:
    assert g6(hours_per_month=10).usd_per_hour == g6().usd_per_hour == price


def test_a_schedule_says_what_it_saves_against_running_always(price: float) -> None:
    assert g6().scaling.saved_usd_per_month is None
    found = g6(schedule=NIGHTS, nodes=2).scaling
    assert found.saved_usd_per_month == pytest.approx(2 * price * (730 - HOURS_OF_NIGHTS))
    assert found.schedule == (("0 20 * * *", "0 6 * * *", "UTC"),)


# ---- machines ------------------------------------------------------------------------------

SCALES: dict[str, tuple[dict[str, Any], tuple[int, int], int, int]] = {
    # fields: (min, max), machines in usd_per_hour, machines in usd_per_month
    "one machine": ({}, (1, 1), 1, 1),
    "nodes": ({"nodes": 3}, (3, 3), 3, 3),
    "a minimum": ({"scale": {"min": 2}}, (2, 2), 2, 2),
    "a range": ({"scale": {"min": 2, "max": 5}}, (2, 5), 2, 2),
    "a maximum": ({"scale": {"max": 5}}, (1, 5), 1, 1),
    "nodes and a maximum": ({"nodes": 2, "scale": {"max": 5}}, (2, 5), 2, 2),
    "may be empty": ({"scale": {"min": 0, "max": 5}}, (0, 5), 1, 0),
}


@pytest.mark.parametrize("name", SCALES)
def test_the_minimum_is_paid_and_the_maximum_is_told(name: str, price: float) -> None:
    fields, bounds, hourly, monthly = SCALES[name]
    found = g6(**fields)
    assert (found.scaling.min, found.scaling.max) == bounds
    assert found.usd_per_hour == pytest.approx(hourly * price)
    assert found.usd_per_month == pytest.approx(monthly * price * 730)
    assert found.usd_per_month_at_max == pytest.approx(bounds[1] * price * 730)
    assert found.usd_per_month_of_one == pytest.approx(price * 730)


@pytest.mark.parametrize(
    ("scale", "metric", "target"),
    [
        ({}, None, None),
        ({"min": 2, "max": 2}, None, None),
        ({"min": 1, "max": 2}, "gpu_utilization", 70),
        ({"min": 1, "max": 2, "target": 55}, "gpu_utilization", 55),
    ],
    ids=str,
)
def test_only_a_fleet_that_can_grow_has_something_it_grows_by(
    scale: dict[str, Any], metric: str | None, target: int | None
) -> None:
    found = g6(scale=scale).scaling
    assert (found.metric, found.target) == (metric, target)


def test_an_empty_fleet_pays_only_for_its_network_and_its_schedule_saves_nothing() -> None:
    found = g6(scale={"min": 0, "max": 4}, disk={"data": "500GiB"}, schedule=NIGHTS)
    around = found.around_usd_per_month
    assert (found.usd_per_month, around["disk"]) == (0, 0)
    # Nobody sends anything; the alarms, the policy's two and the dashboard stay.
    assert around["metrics"] == pytest.approx((7 + 2) * 0.1 + 3.0)
    assert around["nat"] == pytest.approx(0.045 * 730)
    assert found.scaling.saved_usd_per_month == 0


def test_a_spot_fleets_maximum_keeps_its_base_on_demand(price: float) -> None:
    capacity = {"use": "spot", "instance_type": "g6.xlarge", "on_demand_base": 2}
    plan = planned({"capacity": capacity, **HERE, "scale": {"min": 3, "max": 10}})
    assert plan.chosen is not None
    spot = in_file("aws", "us-east-1", "g6.xlarge", "spot")
    assert plan.chosen.usd_per_month == pytest.approx((2 * price + spot) * 730)
    assert plan.chosen.usd_per_month_at_max == pytest.approx((2 * price + 8 * spot) * 730)


# ---- budget --------------------------------------------------------------------------------


def test_without_a_budget_there_is_none() -> None:
    assert g6().budget is None


def test_a_budget_counts_the_machines_and_everything_around_them(price: float) -> None:
    found = g6(budget={"usd_per_month": 1000})
    assert found.budget is not None
    watching = (4 + 2 + 6) * 0.3 + 7 * 0.1 + 3.0
    around = 100 * 0.08 + 0.045 * 730 + 0.005 * 730 + watching
    assert found.around_total == pytest.approx(around)
    assert found.budget.used == pytest.approx((price * 730 + around) / 1000)


@pytest.mark.parametrize(("usd", "exceeded"), [(10_000, False), (500, True)])
def test_a_plan_above_its_budget_says_so(usd: float, exceeded: bool) -> None:
    found = g6(budget={"usd_per_month": usd})
    assert found.budget is not None
    assert found.budget.exceeded == exceeded


def test_alerts_are_told_in_money_with_what_then_happens() -> None:
    budget = {
        "usd_per_month": 800, "alerts": [90, 25], "action": "scale-to-zero",
        "billing_account": "01AB-23",
    }  # fmt: skip
    found = g6(budget=budget).budget
    assert found is not None
    assert found.alerts_usd == (200, 720)
    assert (found.action, found.billing_account) == ("scale-to-zero", "01AB-23")
    assert found.usd_per_month == 800


def test_a_budget_that_empties_the_fleet_says_how_late_it_is_and_when_it_will() -> None:
    budget = {"usd_per_month": 100, "action": "scale-to-zero"}
    found = g6(budget=budget, scale={"min": 1, "max": 4})
    assert found.usd_per_month_at_max is not None
    late = 12 * found.usd_per_month_at_max / 730
    day = math.ceil(730 / 24 * 100 / (found.usd_per_month or 0))
    assert any(
        note.endswith(f"12 hours of its largest size are ${late:,.0f}") for note in told(found)
    )
    assert f"scale-to-zero ends them by day {day}" in told(found)[-1]
    assert told(g6(budget={**budget, "usd_per_month": 10_000}))[-1].startswith("scale-to-zero acts")
    assert told(g6(budget={"usd_per_month": 100})) == []


def test_on_google_the_bill_knows_later() -> None:
    budget = {"usd_per_month": 10_000, "action": "scale-to-zero"}
    fields = {"gpu": {"models": ["L4"]}, "clouds": ["gcp"], "budget": budget}
    found = planned(fields).chosen
    assert found is not None
    assert found.usd_per_month_at_max is not None
    late = 24 * found.usd_per_month_at_max / 730
    (note,) = told(found)
    assert "hours to a day late or more" in note
    assert note.endswith(f"24 hours of its largest size are ${late:,.0f}")


def told(found: Chosen) -> list[str]:
    return [note for note in found.notes if "scale-to-zero" in note]


ENDS = {"budget": {"usd_per_month": 9, "action": "scale-to-zero"}}


@pytest.mark.parametrize(
    ("environment", "fields", "path"),
    [
        ("prod", ENDS, "budget.action"),
        ("production", ENDS, "budget.action"),
        (
            "dev",
            {
                "capacity": {
                    "use": "capacity_block", "instance_type": "p5.48xlarge", "zone": "use1-az4",
                },
                **ENDS,
            },
            "budget.action",
        ),
        (
            "dev",
            {"clouds": ["gcp"], "budget": {"usd_per_month": 9, "anomalies": "create"}},
            "budget.anomalies",
        ),
    ],
)  # fmt: skip
def test_what_a_budget_cannot_do_is_refused_when_planning(
    environment: str, fields: dict[str, Any], path: str
) -> None:
    where: dict[str, Any] = {"clouds": ["aws"], "gpu": {"memory": "16GB"}}
    with pytest.raises(InvalidInput) as refused:
        plan_workload("job", Workload(**{**where, **fields}), load(), environment)
    (problem,) = refused.value.problems
    assert problem.path == path
    assert problem.hint


def test_a_plan_of_unknown_cost_leaves_the_budgets_use_unknown() -> None:
    plan = planned({
        "capacity": {"use": "reservation", "instance_type": "p5e.48xlarge", "zone": "use2-az1"},
        "budget": {"usd_per_month": 100},
    })  # fmt: skip
    assert plan.chosen is not None
    assert plan.chosen.budget is not None
    assert plan.chosen.budget.used is None
    assert not plan.chosen.budget.exceeded
