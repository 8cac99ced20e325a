"""Every rule of money that judges a stack, on both clouds: what passes, what does not, and what is
decided while a preview knows next to nothing else."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, NamedTuple

import pytest
from tests.engine import schema
from tests.policies import programs
from tests.policies.cases import found, resource, stack, unknown, violations, waits
from tests.policies.programs import program

from gputier_policies import budget, cost, environment, fleet, scaling, tags
from gputier_policies.machine import GCP_INSTANCE, INSTANCE
from gputier_policies.rule import Rule
from gputier_policies.values import UNKNOWN

MIXED = {
    "launchTemplate": {"launchTemplateSpecification": {"launchTemplateId": "lt-1"}},
    "instancesDistribution": {"onDemandPercentageAboveBaseCapacity": 0},
}
ALWAYS: dict[str, Any] = {"start.desiredCapacity": 2, "stop.desiredCapacity": 2, "stop.minSize": 1,
                          "stop.maxSize": 2, "group.minSize": 1}  # fmt: skip
NEVER_ZERO = {"scaler.autoscalingPolicy.minReplicas": 1}


class Case(NamedTuple):
    """A change that breaks a rule, in whose configuration; `known` are the properties that decide,
    and `says` parts of the message."""

    rule: Rule
    cloud: str
    config: Mapping[str, Any]
    changes: Mapping[str, Any]
    known: tuple[str, ...]
    says: tuple[str, ...]
    without: tuple[str, ...] = ()


DEV = {"environment": "dev"}
CASES = [
    Case(cost.PRICE, "aws", {"usd_per_hour": 2}, {"template.instanceType": "p4d.24xlarge"},
         ("template.instanceType",),
         ("instanceType is p4d.24xlarge: $21.96 an hour on demand in us-east-1", "2026-08-26")),
    Case(cost.PRICE, "gcp", {"usd_per_hour": 2}, {"template.machineType": "a2-highgpu-8g"},
         ("template.machineType", "group.zone"), ("machineType is a2-highgpu-8g: $29.3",)),
    Case(cost.FLEET, "aws", {"usd_per_month": 1000}, {"start.maxSize": 10},
         ("template.instanceType", "group.maxSize", "start", "stop"),
         ("10 × g6.xlarge on demand at $0.80 for", "no more than $1,000")),
    Case(cost.FLEET, "gcp", {"usd_per_month": 1000},
         {"scaler.autoscalingPolicy.maxReplicas": 10},
         ("template.machineType", "group.zone", "scaler.autoscalingPolicy"),
         ("10 × g2-standard-8 on demand at $0.85 for 260.8 hours",)),
    Case(cost.STACK, "aws", {"usd_per_month": 1000}, {"start.maxSize": 10},
         ("template.instanceType", "group.maxSize", "start", "stop"), ("group $2,099",)),
    Case(cost.STACK, "gcp", {"usd_per_month": 1000},
         {"scaler.autoscalingPolicy.maxReplicas": 10},
         ("template.machineType", "group.zone", "scaler.autoscalingPolicy"), ("group $2,2",)),
    Case(fleet.REQUIRES_SPOT, "aws", {"required": True}, {},
         ("template.instanceType", "group.mixedInstancesPolicy"), ("must be spot", "100 %")),
    Case(fleet.REQUIRES_SPOT, "gcp", {"required": True}, {},
         ("template.machineType", "template.scheduling"), ("on demand", "SPOT")),
    Case(fleet.FORBIDS_SPOT, "aws", {"forbidden": True},
         {"group.launchTemplate": None, "group.mixedInstancesPolicy": MIXED},
         ("template.instanceType", "group.mixedInstancesPolicy"), ("is 0 %", "on demand")),
    Case(fleet.FORBIDS_SPOT, "gcp", {"forbidden": True},
         {"template.scheduling.provisioningModel": "SPOT"},
         ("template.machineType", "template.scheduling"), ("is spot; it must be on demand",)),
    Case(fleet.SIZE, "aws", {"machines": 4}, {"group.maxSize": 5, "start.maxSize": 5},
         ("template.instanceType", "group.maxSize"), ("maxSize allows 5", "no more than 4")),
    Case(fleet.SIZE, "gcp", {"machines": 4}, {"scaler.autoscalingPolicy.maxReplicas": 5},
         ("template.machineType", "scaler.autoscalingPolicy.maxReplicas"),
         ("autoscalingPolicy.maxReplicas allows 5",)),
    Case(scaling.SCHEDULE, "aws", DEV, ALWAYS,
         ("template.instanceType", "group.minSize", "group.maxSize", "start", "stop"),
         ("day and night in dev", "would save $755 a month", "aws.autoscaling.Schedule")),
    Case(scaling.SCHEDULE, "gcp", DEV, NEVER_ZERO,
         ("template.machineType", "group.zone", "scaler.autoscalingPolicy"),
         ("day and night", "min_replicas")),
    Case(budget.BUDGET, "aws", {}, {}, ("template.instanceType",),
         ("GPU machines on AWS and no budget", "aws.budgets.Budget"), ("budget",)),
    Case(budget.BUDGET, "aws", {},
         {"budget.notifications[0].subscriberEmailAddresses": []},
         ("template.instanceType", "budget.budgetType", "budget.notifications"),
         ("the budget budget tells nobody",)),
    Case(budget.BUDGET, "aws", {}, {"budget.budgetType": "USAGE"},
         ("template.instanceType", "budget.budgetType"), ("tells nobody",)),
    Case(budget.BUDGET, "gcp", {}, {}, ("template.machineType",),
         ("GPU machines on Google Cloud and no budget", "gcp.billing.Budget"), ("budget",)),
    Case(budget.BUDGET, "gcp", {}, {"budget.thresholdRules": []},
         ("template.machineType", "budget.thresholdRules"), ("tells nobody",)),
    Case(budget.BUDGET, "gcp", {},
         {"budget.allUpdatesRule": {"disableDefaultIamRecipients": True}},
         ("template.machineType", "budget.thresholdRules", "budget.allUpdatesRule"),
         ("tells nobody",)),
    Case(tags.FLEET, "aws", {},
         {"group.tags[0].propagateAtLaunch": False, "template.tagSpecifications": None},
         ("template.instanceType", "template.tagSpecifications", "group.tags"),
         ("owner", '"propagate_at_launch": True')),
    Case(tags.FLEET, "aws", {},
         {"group.tags[1].value": " ", "template.tagSpecifications": None},
         ("template.instanceType", "template.tagSpecifications", "group.tags"),
         ("cost centre",)),
]  # fmt: skip
NAMES = [f"{case.rule.name} on {case.cloud} {n}" for n, case in enumerate(CASES)]


@pytest.mark.parametrize("case", CASES, ids=NAMES)
def test_the_program_passes_until_it_is_broken(case: Case) -> None:
    if case.rule is not fleet.REQUIRES_SPOT:
        assert found(case.rule, program(case.cloud), **case.config) == []
    broken = program(case.cloud, case.changes, without=case.without)
    (message,) = violations(case.rule, broken, **case.config)
    assert all(part in message for part in case.says), message


@pytest.mark.parametrize("case", CASES, ids=NAMES)
def test_nothing_else_need_be_known(case: Case) -> None:
    preview = program(case.cloud, case.changes, known=case.known, without=case.without)
    assert len(violations(case.rule, preview, **case.config)) >= 1


@pytest.mark.parametrize("case", CASES, ids=NAMES)
def test_nothing_is_broken_as_long_as_nothing_is_known(case: Case) -> None:
    preview = program(case.cloud, case.changes, known=(), without=case.without)
    assert violations(case.rule, preview, **case.config) == []
    assert waits(case.rule, preview, **case.config)


@pytest.mark.parametrize("case", [c for c in CASES if c.rule is not cost.PRICE])
def test_machines_without_gpus_are_left_alone(case: Case) -> None:
    small = {"template.instanceType": "m7i.large"}
    if case.cloud == "gcp":
        small = {"template.machineType": "e2-standard-4"}
    broken = program(case.cloud, {**case.changes, **small}, without=case.without)
    assert found(case.rule, broken, **case.config) == []


@pytest.mark.parametrize("case", CASES, ids=NAMES)
def test_the_cases_are_programs_that_the_sdk_takes(case: Case) -> None:
    for one in program(case.cloud, case.changes, without=case.without).resources:
        given = {k: v for k, v in one.props.items() if k not in ("id", "selfLink")}
        unfit = [p for p in schema.check(one.type, given) if not p[1].startswith("missing")]
        assert unfit == [], (one.name, unfit)


OFF: list[tuple[Rule, dict[str, Any]]] = [
    (cost.PRICE, {}), (cost.FLEET, {}), (cost.STACK, {}), (fleet.SIZE, {}),
    (fleet.REQUIRES_SPOT, {}), (fleet.FORBIDS_SPOT, {}), (scaling.SCHEDULE, {}),
    (scaling.SCHEDULE, {"environment": "production"}), (budget.BUDGET, {"elsewhere": "finance"}),
]  # fmt: skip


@pytest.mark.parametrize(("rule", "config"), OFF)
@pytest.mark.parametrize("cloud", ["aws", "gcp"])
def test_a_rule_whose_configuration_asks_for_nothing_is_silent(
    rule: Rule, config: Mapping[str, Any], cloud: str
) -> None:
    broken = {"aws": ALWAYS, "gcp": NEVER_ZERO}[cloud]
    assert found(rule, program(cloud, broken, without=("budget",)), **config) == []


def test_a_machine_without_a_price_is_refused_and_can_be_allowed() -> None:
    where = program("aws", {"template.instanceType": "p9.48xlarge"})
    for rule, config in ((cost.PRICE, {"usd_per_hour": 1}), (cost.FLEET, {"usd_per_month": 1}),
                         (cost.STACK, {"usd_per_month": 1})):  # fmt: skip
        (said,) = violations(rule, where, **config)
        assert "not free" in said
        assert found(rule, where, **config, unpriced="allow") == []


def test_a_machine_that_its_region_does_not_have_says_where_there_is_one() -> None:
    where = program("aws", {"template.instanceType": "p5e.48xlarge"},
                    config={"aws:region": "af-south-1"})  # fmt: skip
    (said,) = violations(cost.PRICE, where, usd_per_hour=500)
    assert "no price is known in af-south-1" in said or "no price of it is known" in said


def test_a_part_without_a_price_does_not_hide_what_the_rest_costs() -> None:
    odd = resource(INSTANCE, "odd", instanceType="p9.48xlarge")
    where = program("aws", more=[odd])
    (said,) = violations(cost.STACK, where, usd_per_month=100)
    assert "without odd, which has no price" in said


@pytest.mark.parametrize("use", ["capacity-block", "spot"])
def test_what_is_quoted_has_no_price_and_spot_has_its_own(use: str) -> None:
    market = {"template.instanceMarketOptions": {"marketType": use}}
    said = violations(cost.PRICE, program("aws", market), usd_per_hour=0.6)
    expected = {"capacity-block": ["quotation"], "spot": []}[use]
    assert [any(word in one for one in said) for word in expected] == [True] * len(expected)
    assert bool(said) is bool(expected)


def test_a_group_that_buys_spot_is_priced_at_spot() -> None:
    bought = {"group.launchTemplate": None, "group.mixedInstancesPolicy": MIXED}
    (mixed, plain) = (
        next(iter(cost.months(program("aws", changes))))[1] for changes in (bought, {})
    )
    assert mixed.machine == "g6.xlarge spot"
    assert 0 < mixed.usd < plain.usd
    assert violations(cost.PRICE, program("aws", bought), usd_per_hour=0.6) == []
    assert violations(cost.PRICE, program("aws"), usd_per_hour=0.6)


def test_the_dearest_of_several_types_counts() -> None:
    several = {**MIXED, "launchTemplate": {**MIXED["launchTemplate"], "overrides": [
        {"instanceType": "g6.xlarge"}, {"instanceType": "g6.12xlarge"}]},
        "instancesDistribution": {"onDemandBaseCapacity": 2}}  # fmt: skip
    changes = {"group.launchTemplate": None, "group.mixedInstancesPolicy": several}
    ((_, month),) = cost.months(program("aws", changes))
    assert month.machine == "g6.12xlarge on demand"
    (said,) = violations(cost.PRICE, program("aws", changes), usd_per_hour=3)
    assert said.startswith("mixedInstancesPolicy.launchTemplate.overrides[1].instanceType is g6.12")


def test_weights_divide_the_size_into_machines() -> None:
    weighted = {**MIXED, "launchTemplate": {**MIXED["launchTemplate"], "overrides": [
        {"instanceType": "g6.xlarge", "weightedCapacity": "4"}]},
        "instancesDistribution": {}}  # fmt: skip
    changes = {"group.launchTemplate": None, "group.mixedInstancesPolicy": weighted,
               "start.maxSize": 9}  # fmt: skip
    ((_, month),) = cost.months(program("aws", changes))
    assert month.machines == 3


def test_a_fleet_in_a_reservation_of_the_stack_is_paid_for_there() -> None:
    held = resource(cost.AWS_RESERVATION, "held", instanceType="g6.xlarge", instanceCount=2,
                    id="cr-1")  # fmt: skip
    target = {"capacityReservationTarget": {"capacityReservationId": "cr-1"}}
    stack_ = program("aws", {"template.capacityReservationSpecification": target}, more=[held])
    costs = {fleet.runner.name: month.usd for fleet, month in cost.months(stack_)}
    assert costs["group"] == 0
    assert costs["held"] == pytest.approx(2 * 0.8048 * 730)


DISCOUNT = '[{"cloud": "aws", "families": ["g6"], "percent": 50, "reason": "savings plan"}]'


def test_discounts_of_the_config_count() -> None:
    where = {"gputier:discounts": DISCOUNT}
    ((_, less),) = cost.months(program("aws", config=where))
    ((_, full),) = cost.months(program("aws"))
    assert less.usd == pytest.approx(full.usd / 2)
    assert "50 % off: savings plan" in cost.shown(less)
    assert violations(cost.PRICE, program("aws", config=where), usd_per_hour=0.5) == []
    assert violations(cost.PRICE, program("aws"), usd_per_hour=0.5)


def test_discounts_do_not_add_up() -> None:
    several = [
        {"cloud": cloud, "families": ["g6"], "percent": percent, "reason": "plan"}
        for cloud, percent in (("aws", 10), ("aws", 30), ("gcp", 90))
    ]
    where = {"gputier:discounts": json.dumps(several)}
    ((_, less),) = cost.months(program("aws", config=where))
    ((_, full),) = cost.months(program("aws"))
    assert less.usd == pytest.approx(full.usd * 0.7)


@pytest.mark.parametrize("text", ["no JSON", "{}", '["g6"]', '[{"percent": "50"}]'])
def test_what_is_no_discount_is_none(text: str) -> None:
    ((_, month),) = cost.months(program("aws", config={"gputier:discounts": text}))
    assert "off" not in month.note


def test_a_template_of_another_stack_is_not_waited_for() -> None:
    away = program(
        "aws", {**ALWAYS, "group.launchTemplate.id": "lt-elsewhere"}, without=("template",)
    )
    for rule, config in ((fleet.SIZE, {"machines": 1}), (scaling.SCHEDULE, DEV),
                         (fleet.REQUIRES_SPOT, {"required": True}), (tags.FLEET, {})):  # fmt: skip
        assert found(rule, away, **config) == [], rule.name
    (said,) = violations(cost.FLEET, away, usd_per_month=1)
    assert "launchTemplate.id points at nothing in this stack" in said


def test_a_schedule_that_is_not_known_yet_is_waited_for() -> None:
    always = {**ALWAYS, "stop.recurrence": UNKNOWN}
    assert waits(scaling.SCHEDULE, program("aws", always), **DEV) == ["recurrence"]
    bounds = {"scaler.autoscalingPolicy": UNKNOWN}
    assert waits(scaling.SCHEDULE, program("gcp", bounds), **DEV) == ["autoscalingPolicy"]


def test_a_fleet_that_may_have_no_machine_needs_no_schedule() -> None:
    empty = {**ALWAYS, **dict.fromkeys(("group.maxSize", "group.minSize"), 0)}
    none = program("aws", {**empty, "group.desiredCapacity": 0}, without=("start", "stop"))
    assert found(scaling.SCHEDULE, none, **DEV) == []
    no_target = program("gcp", {"group.targetSize": 0}, without=("scaler",))
    assert found(scaling.SCHEDULE, no_target, **DEV) == []
    assert found(
        scaling.SCHEDULE, program("gcp", {"group.targetSize": 1}, without=("scaler",)), **DEV
    )


def test_fleets_can_be_named_as_exceptions() -> None:
    assert found(scaling.SCHEDULE, program("aws", ALWAYS), **DEV, **{"except": ["group"]}) == []
    spot = {"required": True, "except": ["group"]}
    assert found(fleet.REQUIRES_SPOT, program("aws"), **spot) == []


def test_a_base_on_demand_may_be_allowed() -> None:
    base = {**MIXED, "instancesDistribution": {"onDemandBaseCapacity": 1,
            "onDemandPercentageAboveBaseCapacity": 0}}  # fmt: skip
    where = program("aws", {"group.launchTemplate": None, "group.mixedInstancesPolicy": base})
    assert found(fleet.REQUIRES_SPOT, where, required=True, on_demand_base=1) == []
    (said,) = violations(fleet.REQUIRES_SPOT, where, required=True)
    assert "onDemandBaseCapacity is 1" in said


def test_a_fleet_on_spot_is_what_is_asked_for() -> None:
    on_spot = {"template.scheduling.provisioningModel": "SPOT"}
    assert found(fleet.REQUIRES_SPOT, program("gcp", on_spot), required=True) == []
    mixed = {"group.launchTemplate": None, "group.mixedInstancesPolicy": MIXED}
    assert found(fleet.REQUIRES_SPOT, program("aws", mixed), required=True) == []


@pytest.mark.parametrize(("type_", "props"), [
    (INSTANCE, {"instanceType": "g6.xlarge"}),
    (GCP_INSTANCE, {"machineType": "g2-standard-8", "zone": "us-central1-a"}),
])  # fmt: skip
def test_a_lone_machine_runs_day_and_night_as_well(type_: str, props: Mapping[str, Any]) -> None:
    (said,) = violations(scaling.SCHEDULE, stack(resource(type_, **props)), **DEV)
    assert "day and night in dev; 12 hours on weekdays would save" in said


def test_a_stack_is_judged_by_the_numbers_of_its_environment() -> None:
    rule = environment.ENVIRONMENT_OF_STACK
    dev = program("aws", config={"gputier:environment": "dev"})
    assert found(rule, dev, environment="dev") == []
    (said,) = violations(rule, dev)
    assert "of this stack is dev, and these rules are configured for prod" in said
    assert "policies/config.dev.json" in said
    assert found(rule, program("aws")) == []


def test_everything_unknown_breaks_nothing() -> None:
    for cloud in ("aws", "gcp"):
        base = {"aws": programs.AWS, "gcp": programs.GCP}[cloud]
        made = [resource(programs.TYPES[cloud][n], n, **unknown(p)) for n, p in base.items()]
        for case in CASES:
            assert violations(case.rule, stack(*made), **case.config) == [], case.rule.name
    assert UNKNOWN is not None
