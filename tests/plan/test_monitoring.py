"""What is watched: every figure that is read is published, and alarms go off when they should."""

from __future__ import annotations

import ast
import operator
import re
from collections.abc import Iterator, Mapping
from typing import Any

import pytest
from tests.plan.world import Doctored, planned

from gputier.boot.metrics import metrics as agent
from gputier.plan import Alarm, Chosen, Metric
from gputier.plan import metrics as names

GROUP: dict[str, Any] = {
    "clouds": ["aws"],
    "regions": {"aws": ["us-east-1"]},
    "capacity": {"use": "on_demand", "instance_type": "g6.12xlarge"},
}
FLEETS: dict[str, dict[str, Any]] = {
    "a group": GROUP,
    "a fleet that scales": {**GROUP, "scale": {"min": 1, "max": 4}},
    "a lone machine": {**GROUP, "purpose": "development"},
    "with a budget": {**GROUP, "budget": {"usd_per_month": 7300}},
}


def chosen(**fields: Any) -> Chosen:
    plan = planned({**GROUP, **fields})
    assert plan.chosen is not None
    return plan.chosen


def alarm(key: str, **fields: Any) -> Alarm:
    return next(a for a in chosen(**fields).monitoring.alarms if a.key == key)


#: Names in CloudWatch of what the agent calls `used_percent` of a section (agent configuration).
SECTIONS = {"mem": "mem_", "disk": "disk_"}


def published(grouped: bool) -> Mapping[str, set[frozenset[str]]]:
    """Name → the sets of dimensions under which the rendered agent configuration sends it."""
    sent: Any = agent("aws", grouped)["config"]["metrics"]
    machine = set(sent["append_dimensions"])
    rolled = [frozenset(group) for group in sent["aggregation_dimensions"]]
    gpu = {"nvidia_smi_" + m for m in sent["metrics_collected"]["nvidia_gpu"]["measurement"]}
    found = {name: {frozenset(machine | {"index", "name", "arch"}), *rolled} for name in gpu}
    for section, prefix in SECTIONS.items():
        for measurement in sent["metrics_collected"][section]["measurement"]:
            found[prefix + measurement] = {frozenset(machine), *rolled}
    return found


def read(found: Chosen) -> Iterator[Metric]:
    for one in found.monitoring.alarms:
        yield from one.metrics
    for widget in found.monitoring.widgets:
        yield from widget.metrics
    if found.scaling.tracking:
        yield found.scaling.tracking.metric


@pytest.mark.parametrize("fleet", FLEETS)
def test_every_figure_that_is_read_is_published_with_its_dimensions(fleet: str) -> None:
    found = chosen(**FLEETS[fleet])
    grouped = found.fleet.shape == "group"
    for metric in read(found):
        dimensions = frozenset(name for name, _ in metric.dimensions)
        if metric.namespace == "AWS/AutoScaling":
            assert metric.name in found.monitoring.group_metrics
            assert metric.dimensions == (("AutoScalingGroupName", "{group}"),)
            continue
        assert metric.namespace == "CWAgent"
        assert dimensions in published(grouped)[metric.name], metric


@pytest.mark.parametrize("fleet", FLEETS)
def test_every_search_names_the_dimensions_of_one_gpus_series_and_no_other(fleet: str) -> None:
    found = chosen(**FLEETS[fleet])
    grouped = found.fleet.shape == "group"
    searches = [w.search for w in found.monitoring.widgets if w.search]
    assert len(searches) == 4
    for search in searches:
        match = re.fullmatch(
            r"""SEARCH\('\{CWAgent,([\w,]+)\} MetricName="(\w+)" (\w+)="(\{\w+\})"',"""
            r" 'Average', 60\)",
            search,
        )
        assert match, search
        assert frozenset(match[1].split(",")) in published(grouped)[match[2]]
        assert match[3] == ("AutoScalingGroupName" if grouped else "InstanceId")
        assert match[4] == ("{group}" if grouped else "{instance}")


def test_19_utilisation_temperature_memory_and_power_of_each_gpu_are_shown() -> None:
    shown = " ".join(w.search or "" for w in chosen().monitoring.widgets)
    for name in ("utilization_gpu", "temperature_gpu", "memory_used", "power_draw"):
        assert f"nvidia_smi_{name}" in shown


def test_what_is_sent_is_what_is_paid_for() -> None:
    """Series of four GPUs, of the machine, and rolled up, counted from the configuration."""
    found = chosen(nodes=3)
    sent: Any = agent("aws", grouped=True)["config"]["metrics"]["metrics_collected"]
    gpu = len(sent["nvidia_gpu"]["measurement"])
    machine = len(sent["mem"]["measurement"]) + len(sent["disk"]["measurement"])
    assert found.monitoring.metrics == 3 * (4 * gpu + machine) + gpu + machine
    assert (gpu, machine) == (len(names.GPU), len(names.MACHINE))


COMPARE = {"LessThanThreshold": operator.lt, "GreaterThanThreshold": operator.gt}


def goes_off(found: Alarm, **figures: float) -> bool:
    """What CloudWatch would decide of one period; the expression is plain arithmetic."""
    if found.expression is None:
        (value,) = figures.values()
    else:
        assert {m.key for m in found.metrics} == set(figures)
        tree = ast.parse(found.expression, mode="eval")
        value = eval(compile(tree, "", "eval"), {"__builtins__": {}}, figures)  # noqa: S307
    return COMPARE[found.comparison](value, found.threshold)


@pytest.mark.parametrize(
    ("samples", "machines", "off"),
    [
        (40, 2, False),
        (39, 2, False),
        (35, 2, True),
        (0, 2, True),
        (20, 1, False),
        (15, 1, True),
        (2000, 100, False),
        (1995, 100, True),
        (0, 0, False),
    ],
)
def test_a_gpu_that_sends_nothing_is_noticed(samples: int, machines: int, off: bool) -> None:
    """Four GPUs, one sample a minute, five minutes: twenty samples a machine."""
    found = alarm("dead-gpu")
    assert goes_off(found, samples=samples, machines=machines) == off
    assert found.period_seconds == 300
    assert found.metrics[0].statistic == "SampleCount"


def test_a_lone_machine_counts_its_own_gpus() -> None:
    found = alarm("dead-gpu", purpose="development")
    assert not goes_off(found, samples=20)
    assert goes_off(found, samples=15)


def test_one_hot_gpu_among_many_is_noticed() -> None:
    found = alarm("hot")
    assert found.metrics[0].statistic == "Maximum"
    assert [goes_off(found, temperature=c) for c in (85, 86)] == [False, True]


def test_gpus_that_are_idle_for_two_hours_are_noticed() -> None:
    found = alarm("idle")
    assert found.periods * found.period_seconds == 2 * 3600
    assert [goes_off(found, utilization=p) for p in (4.9, 5)] == [True, False]


def test_a_gate_that_rejects_what_is_launched_is_noticed() -> None:
    found = alarm("short")
    assert goes_off(found, wanted=2, machines=1)
    assert not goes_off(found, wanted=2, machines=2)
    assert not goes_off(found, wanted=0, machines=0)
    assert not any(a.key == "short" for a in chosen(purpose="development").monitoring.alarms)


@pytest.mark.parametrize(("machines", "off"), [(3, False), (4, False), (5, True)])
def test_more_machines_than_planned_are_noticed_by_what_they_cost(machines: int, off: bool) -> None:
    found = alarm("cost", scale={"min": 1, "max": 4})
    assert goes_off(found, machines=machines) == off


def cost_alarm(found: Chosen) -> Alarm | None:
    return next((alarm for alarm in found.monitoring.alarms if alarm.key == "cost"), None)


def test_a_budget_is_watched_at_the_rate_that_would_use_it_up() -> None:
    found = chosen(budget={"usd_per_month": 7300}, scale={"min": 1, "max": 4})
    cost, price = cost_alarm(found), found.verdict.per_machine
    assert cost is not None
    assert price is not None
    assert cost.threshold == pytest.approx(10)  # 7,300 over 730 hours
    assert goes_off(cost, machines=3) == (3 * price > 10)
    assert cost in found.monitoring.alarms


def test_machines_of_a_schedule_may_cost_more_while_they_run() -> None:
    hours = [{"start": "0 8 * * *", "stop": "0 18 * * *"}]
    found = cost_alarm(chosen(budget={"usd_per_month": 1000}, schedule=hours))
    assert found is not None
    assert found.threshold == pytest.approx(1000 / (10 * 1461 / 48))


def test_without_a_price_no_alarm_watches_the_cost_and_that_is_said() -> None:
    catalog = Doctored(prices={("aws", "g6.12xlarge", "on_demand"): {}})
    plan = planned(GROUP, catalog=catalog)
    assert plan.chosen is not None
    assert cost_alarm(plan.chosen) is None
    assert any("no alarm watches what the machines cost" in note for note in plan.chosen.notes)
    assert not any(widget.key == "cost" for widget in plan.chosen.monitoring.widgets)


@pytest.mark.parametrize("fleet", FLEETS)
def test_a_fleet_that_is_stopped_sets_off_nothing(fleet: str) -> None:
    for one in chosen(**FLEETS[fleet]).monitoring.alarms:
        assert one.missing == "notBreaching"
        assert one.periods * one.period_seconds <= 86400  # CloudWatch looks back a day at most
        assert all(metric.period_seconds == one.period_seconds for metric in one.metrics)


@pytest.mark.parametrize("fleet", FLEETS)
def test_alarms_and_panels_have_names_of_their_own(fleet: str) -> None:
    found = chosen(**FLEETS[fleet]).monitoring
    for things in (found.alarms, found.widgets):
        assert len({thing.key for thing in things}) == len(things)


def test_a_fleet_is_scaled_by_exactly_the_series_of_its_group() -> None:
    tracking = chosen(scale={"min": 1, "max": 4, "target": 60}).scaling.tracking
    assert tracking is not None
    assert tracking.metric == Metric(
        "utilization", "CWAgent", "nvidia_smi_utilization_gpu",
        (("AutoScalingGroupName", "{group}"),), "Average", 60,
    )  # fmt: skip
    assert (tracking.target, tracking.warmup_seconds) == (60, 300)
    assert chosen().scaling.tracking is None


def test_google_is_watched_by_nothing_of_amazons() -> None:
    plan = planned({"clouds": ["gcp"], "scale": {"min": 1, "max": 2}})
    assert plan.chosen is not None
    monitoring = plan.chosen.monitoring
    assert (monitoring.alarms, monitoring.widgets, monitoring.group_metrics) == ((), (), ())
    assert plan.chosen.scaling.tracking is None
