"""Alerts, dashboard and budget on Google."""

from __future__ import annotations

import json
from typing import Any

import pytest
from tests.gcp import world
from tests.gcp.world import alone, planned

from gputier.gcp import Given
from gputier.gcp.budget import amount

L4: dict[str, Any] = {"gpu": {"models": ["L4"]}, "purpose": "inference"}
PAID: dict[str, Any] = {
    "usd_per_month": 900, "alerts": [50, 90], "billing_account": "012345-6789AB-CDEF01",
}  # fmt: skip
OWN = 'metadata.user_labels."gputier-fleet" = "gputier-test-job"'


def test_each_alert_reads_this_fleets_machines_and_says_why() -> None:
    made = alone(**L4).of_type("AlertPolicy")
    assert {r.name for r in made} == {"job-hot", "job-idle", "job-ecc"}
    for one in made:
        (condition,) = one.inputs["conditions"]
        assert OWN in condition["conditionThreshold"]["filter"]
        assert one.inputs["documentation"]["content"]


def test_heat_is_each_cards_own_and_idleness_that_of_all() -> None:
    run = alone(**L4)
    told = {
        key: run.find(f"AlertPolicy job-{key}").inputs["conditions"][0]["conditionThreshold"]
        for key in ("hot", "idle")
    }
    assert (told["hot"]["thresholdValue"], told["hot"]["comparison"]) == (85, "COMPARISON_GT")
    assert "crossSeriesReducer" not in told["hot"]["aggregations"][0]
    assert (told["idle"]["thresholdValue"], told["idle"]["duration"]) == (5, "7200s")
    assert told["idle"]["aggregations"][0]["crossSeriesReducer"] == "REDUCE_MEAN"


def test_alerts_and_budget_tell_the_channels_that_are_given() -> None:
    plan = planned(**L4, budget=PAID)
    run = world.fleet(plan, given=Given(channels=("projects/p/notificationChannels/1",)))
    for one in run.of_type("AlertPolicy"):
        assert one.inputs["notificationChannels"] == ["projects/p/notificationChannels/1"]
    (budget,) = run.of_type("gcp:billing/budget:Budget")
    told = budget.inputs["allUpdatesRule"]["monitoringNotificationChannels"]
    assert told == ["projects/p/notificationChannels/1"]


def test_the_dashboard_shows_the_fleets_cards_side_by_side() -> None:
    run = alone(**L4)
    told = json.loads(run.find("Dashboard job-dashboard").inputs["dashboardJson"])
    tiles = told["mosaicLayout"]["tiles"]
    assert len({(t["xPos"], t["yPos"]) for t in tiles}) == len(tiles)
    assert all(t["xPos"] + t["width"] <= told["mosaicLayout"]["columns"] for t in tiles)
    assert json.dumps(told).count("gputier-test-job") == len(tiles) + 1
    assert "project=acme-gpu" in run.outputs["fleet"]["dashboard_url"]


def test_a_budget_counts_the_fleets_label_in_this_project_alone() -> None:
    run = alone(**L4, budget=PAID)
    (budget,) = run.of_type("gcp:billing/budget:Budget")
    told = budget.inputs
    assert told["billingAccount"] == "012345-6789AB-CDEF01"
    assert told["budgetFilter"]["labels"] == {"gputier-fleet": "gputier-test-job"}
    assert told["budgetFilter"]["projects"] == [f"projects/{world.NUMBER}"]
    rules = [(r["thresholdPercent"], r["spendBasis"]) for r in told["thresholdRules"]]
    assert rules == [
        (0.5, "CURRENT_SPEND"), (0.9, "CURRENT_SPEND"), (1, "FORECASTED_SPEND"),
    ]  # fmt: skip
    assert "allUpdatesRule" not in told


def test_without_a_budget_none_is_made() -> None:
    assert alone(**L4).of_type("gcp:billing/budget:Budget") == []


@pytest.mark.parametrize(
    ("usd", "units", "nanos"), [(900.0, "900", None), (12.5, "12", 500_000_000), (0.1, "0", 10**8)]
)
def test_money_is_whole_dollars_and_billionths(usd: float, units: str, nanos: int | None) -> None:
    assert amount(usd) == {"currency_code": "USD", "units": units, "nanos": nanos}
