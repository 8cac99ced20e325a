"""Alerts, dashboard and budget on Google."""

from __future__ import annotations

import json
from typing import Any

import pytest
from tests.gcp import world
from tests.gcp.world import alone, planned

from gputier.errors import InvalidInput
from gputier.gcp import Given
from gputier.gcp.budget import amount
from gputier.plan.monitoring_gcp import UNTOLD

L4: dict[str, Any] = {"gpu": {"models": ["L4"]}, "purpose": "inference"}
PAID: dict[str, Any] = {
    "usd_per_month": 900, "alerts": [50, 90], "billing_account": "012345-6789AB-CDEF01",
}  # fmt: skip
OWN = 'metadata.user_labels."gputier-fleet" = "gputier-test-job"'


OF_LABEL = 'metadata_user_gputier_fleet="gputier-test-job"'
GROUP = 'resource.labels.instance_group_name = "gputier-test-job"'
SEVERAL: dict[str, Any] = {"gpu": {"models": ["L4"], "count": 2}, "purpose": "inference"}
LONE: dict[str, Any] = {"gpu": {"models": ["L4"], "count": 2}, "purpose": "development"}


def found_by(policy: Any) -> str:
    """The filter of an alert's one condition."""
    (condition,) = policy.inputs["conditions"]
    if asked := condition.get("conditionPrometheusQueryLanguage"):
        return asked["query"]
    either = condition.get("conditionThreshold") or condition["conditionMatchedLog"]
    return either["filter"]


def test_each_alert_reads_this_fleet_s_own_and_says_why() -> None:
    for one in alone(**SEVERAL).of_type("AlertPolicy"):
        own = found_by(one)
        assert any(part in own for part in (OWN, GROUP, OF_LABEL, "/instances/gputier-test-job-"))
        assert one.inputs["documentation"]["content"]


@pytest.mark.parametrize("fields", [L4, SEVERAL, LONE], ids=["one card", "several", "lone"])
def test_what_amazon_s_alarms_tell_google_s_tell_by_the_same_names(fields: dict[str, Any]) -> None:
    where: dict[str, Any] = {"clouds": ["aws"], "regions": {"aws": ["us-east-1"]}}
    theirs = planned(**fields, **where).chosen
    assert theirs
    alarms = {f"job-{alarm.key}": alarm.title for alarm in theirs.monitoring.alarms}
    made = {
        r.name: r.inputs["displayName"].partition(": ")[2]
        for r in alone(**fields).of_type("AlertPolicy")
    }
    left = {f"job-{key}" for key in UNTOLD} if fields is L4 else set[str]()
    assert set(made) == {*alarms} - left | {"job-ecc"}
    assert all(made[name] == title for name, title in alarms.items() if name not in left)


def test_a_card_of_several_that_sends_nothing_is_counted_by_machine() -> None:
    run = alone(**SEVERAL)
    (condition,) = run.find("AlertPolicy job-dead-gpu").inputs["conditions"]
    told = condition["conditionThreshold"]
    assert (told["thresholdValue"], told["comparison"]) == (1.5, "COMPARISON_LT")
    (how,) = told["aggregations"]
    assert how["crossSeriesReducer"] == "REDUCE_COUNT"
    assert how["groupByFields"] == ["resource.labels.instance_id"]


def test_a_group_s_size_is_held_against_its_budget_or_its_largest() -> None:
    def threshold(**more: Any) -> float:
        policy = alone(**L4, **more).find("AlertPolicy job-cost")
        return policy.inputs["conditions"][0]["conditionThreshold"]["thresholdValue"]

    assert threshold(scale={"min": 1, "max": 4}) == 4.5
    chosen = planned(**L4).chosen
    assert chosen
    price = chosen.verdict.per_machine
    assert price
    assert threshold(budget=PAID) == pytest.approx(900 / 730 / price, abs=1e-5)


def test_machines_that_are_refused_or_not_to_be_had_are_read_from_the_log() -> None:
    told = found_by(alone(**L4).find("AlertPolicy job-short"))
    assert "repair.recreateInstance" in told
    assert '"/instanceGroupManagers/gputier-test-job"' in told
    spot = alone(**L4, capacity="spot").find("AlertPolicy job-short")
    assert "repair.recreateInstance" not in found_by(spot), "it is made anew when it is taken"
    assert spot.inputs["alertStrategy"]["notificationRateLimit"]


def test_idleness_is_that_of_all_cards() -> None:
    policy = alone(**L4).find("AlertPolicy job-idle")
    told = policy.inputs["conditions"][0]["conditionThreshold"]
    assert (told["thresholdValue"], told["duration"]) == (5, "7200s")
    assert told["aggregations"][0]["crossSeriesReducer"] == "REDUCE_MEAN"


def test_what_a_machine_has_to_send_first_is_asked_for_before_it_did() -> None:
    """Google refuses an alert over a metric that a project does not know yet."""
    run = alone(**SEVERAL)
    asked = {
        r.name: c
        for r in run.of_type("AlertPolicy")
        for one in r.inputs["conditions"]
        if (c := one.get("conditionPrometheusQueryLanguage"))
    }
    of = f'monitored_resource="gce_instance", {OF_LABEL}'
    dcgm = "workload.googleapis.com/gpu.dcgm"
    assert {name: c["query"] for name, c in asked.items()} == {
        "job-hot": f'max_over_time({{"{dcgm}.temperature", {of}}}[300s]) > 85',
        "job-ecc": f'increase({{"{dcgm}.ecc_errors", {of}, error_type="dbe"}}[300s]) > 0',
    }
    assert all(c["disableMetricValidation"] is True for c in asked.values())
    others = [r for r in run.of_type("AlertPolicy") if r.name not in asked]
    assert not any("workload.googleapis.com" in found_by(r) for r in others)


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


def test_a_budget_tells_five_channels_and_says_so_of_more() -> None:
    plan, many = planned(**L4, budget=PAID), tuple(f"projects/p/c/{n}" for n in range(6))
    world.fleet(plan, given=Given(channels=many[:5]))
    with pytest.raises(InvalidInput, match="5 channels at most, not 6"):
        world.fleet(plan, given=Given(channels=many))
