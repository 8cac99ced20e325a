"""What stops a workload over its budget, and what watches its cost: what is made, and the function
that AWS runs."""

from __future__ import annotations

import ast
import json
import sys
from collections.abc import Callable, Mapping
from itertools import pairwise
from typing import Any

import pytest
from tests.aws.pages import GROUP, LONE, MONITOR, NIGHTLY, STOPS
from tests.aws.world import alone

from gputier.aws import stop, stop_function
from gputier.aws.anomalies import watches
from gputier.aws.budget import dollars
from gputier.review.prices import PRICERS
from gputier.testing import Run

OF_A_GROUP = {"ACCOUNT": "123456789012", "BUDGET": "b", "TOPIC": "arn:aws:sns:eu-west-2:1:t"} | {
    "AWS_REGION": "us-east-1",
    "GROUP": "g",
}
OF_A_MACHINE = {k: v for k, v in OF_A_GROUP.items() if k != "GROUP"} | {"MACHINE": "i-1"}
KEPT = {"HOURS": "hours", "HALT": "arn:aws:iam::1:policy/halt"}


class Asked:
    """What a function asks AWS for, in order, as (service, region, operation, arguments)."""

    def __init__(self, spent: str = "501", unit: str = "USD", fails: str = "") -> None:
        self.calls: list[tuple[str, str, str, dict[str, Any]]] = []
        self._spent, self._unit, self._fails = spent, unit, fails

    def client(self, service: str, region: str) -> Any:
        return Called(self, service, region)

    def answer(self, service: str, region: str, operation: str, arguments: dict[str, Any]) -> Any:
        if operation == self._fails:
            raise RuntimeError(operation)
        self.calls.append((service, region, operation, arguments))
        spent = {"ActualSpend": {"Amount": self._spent, "Unit": self._unit}}
        limit = {"Amount": "500.0", "Unit": "USD"}
        return {"Budget": {"CalculatedSpend": spent, "BudgetLimit": limit}}

    @property
    def did(self) -> list[str]:
        return [operation for _service, _region, operation, _arguments in self.calls]


class Called:
    """A client: every operation is written down."""

    def __init__(self, asked: Asked, service: str, region: str) -> None:
        self._asked, self._service, self._region = asked, service, region

    def __getattr__(self, operation: str) -> Callable[..., Any]:
        def call(**arguments: Any) -> Any:
            return self._asked.answer(self._service, self._region, operation, arguments)

        return call


def look(asked: Asked, settings: Mapping[str, str] = OF_A_GROUP) -> str:
    return stop_function.look(settings, asked.client)


# ---- the function ------------------------------------------------------------------------------


@pytest.mark.parametrize("spent", ["0", "499.99", "500", "500.00"])
def test_nothing_is_stopped_up_to_the_amount(spent: str) -> None:
    asked = Asked(spent)
    assert look(asked) == f"b: {spent} of 500.0 USD are spent, nothing is stopped"
    assert asked.did == ["describe_budget"]


def test_launches_are_suspended_before_the_group_is_emptied_and_people_are_told_last() -> None:
    asked = Asked("500.01")
    said = look(asked)
    assert asked.calls == [
        (
            "budgets",
            "us-east-1",
            "describe_budget",
            {"AccountId": "123456789012", "BudgetName": "b"},
        ),
        (
            "autoscaling",
            "us-east-1",
            "suspend_processes",
            {"AutoScalingGroupName": "g", "ScalingProcesses": ["Launch"]},
        ),
        (
            "autoscaling",
            "us-east-1",
            "update_auto_scaling_group",
            {"AutoScalingGroupName": "g", "MinSize": 0, "DesiredCapacity": 0},
        ),
        (
            "sns",
            "eu-west-2",
            "publish",
            {
                "TopicArn": OF_A_GROUP["TOPIC"],
                "Subject": "stopped over budget: b",
                "Message": said,
            },
        ),
    ]
    assert "500.01 USD are spent this month, and 500.0 are declared" in said
    assert "the runbook over-budget" in said


@pytest.mark.parametrize(
    ("settings", "did"),
    [
        (OF_A_MACHINE, ["stop_instances"]),
        ({**OF_A_MACHINE, **KEPT}, ["attach_role_policy", "stop_instances"]),
    ],
)
def test_a_schedule_loses_its_right_before_its_machine_is_stopped(
    settings: Mapping[str, str], did: list[str]
) -> None:
    asked = Asked()
    look(asked, settings)
    assert asked.did == ["describe_budget", *did, "publish"]
    arguments = {operation: arguments for _s, _r, operation, arguments in asked.calls}
    assert arguments["stop_instances"] == {"InstanceIds": ["i-1"]}
    if "HOURS" in settings:
        assert arguments["attach_role_policy"] == {
            "RoleName": "hours",
            "PolicyArn": "arn:aws:iam::1:policy/halt",
        }


@pytest.mark.parametrize(
    "fails",
    ["describe_budget", "suspend_processes", "update_auto_scaling_group", "publish"],
)
def test_what_fails_is_raised_and_nothing_is_said_to_be_done(fails: str) -> None:
    asked = Asked(fails=fails)
    with pytest.raises(RuntimeError, match=fails):
        look(asked)
    assert "publish" not in asked.did


def test_a_budget_in_another_currency_is_not_compared() -> None:
    asked = Asked(unit="CNY")
    with pytest.raises(ValueError, match="spent in CNY and declared in USD"):
        look(asked)
    assert asked.did == ["describe_budget"]


def test_a_long_name_makes_a_subject_that_sns_takes() -> None:
    asked = Asked()
    look(asked, {**OF_A_GROUP, "BUDGET": "b" * 100})
    assert len(asked.calls[-1][3]["Subject"]) == 99


def test_the_entry_believes_no_message(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name, value in OF_A_GROUP.items():
        monkeypatch.setenv(name, value)
    said = stop_function.handler(Asked("1").client)("over, over, over!", None)
    assert "nothing is stopped" in said
    assert capsys.readouterr().out == f"{said}\n"


def imported(text: str) -> set[str]:
    found: set[str] = set()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import):
            found |= {name.name.split(".")[0] for name in node.names}
        elif isinstance(node, ast.ImportFrom):
            found.add((node.module or "").split(".")[0])
    return found


def test_the_function_needs_nothing_but_what_lambda_has() -> None:
    files = stop.code()
    known = {*sys.stdlib_module_names, "boto3", *(name.removesuffix(".py") for name in files)}
    assert {name for text in files.values() for name in imported(text)} <= known
    assert "gputier" in imported("from gputier.units import x"), "one of ours would be found"


# ---- what is made ------------------------------------------------------------------------------


def rights(run: Run, label: str = "RolePolicy job-stop") -> dict[str, dict[str, Any]]:
    statements = json.loads(run.find(label).inputs["policy"])["Statement"]
    return {action: one for one in statements for action in one["Action"]}


def test_the_function_is_called_by_more_than_the_amount_that_was_spent_and_by_nothing_else() -> (
    None
):
    run = alone(**GROUP, budget=STOPS)
    notices = run.find("Budget job-budget").inputs["notifications"]
    (over,) = [n for n in notices if n["subscriberSnsTopicArns"] == ["arn:of:job-stop"]]
    del over["subscriberSnsTopicArns"]
    assert over == {
        "notificationType": "ACTUAL",
        "comparisonOperator": "GREATER_THAN",
        "threshold": 100,
        "thresholdType": "PERCENTAGE",
    }
    assert len(notices) == 5, "people hear of everything else as before"
    policy = json.loads(run.find("TopicPolicy job-stop").inputs["policy"])["Statement"]
    assert [one["Principal"] for one in policy] == [{"Service": ["budgets.amazonaws.com"]}]
    assert policy[0]["Condition"] == {"StringEquals": {"aws:SourceAccount": "123456789012"}}
    permission = run.find("Permission job-stop").inputs
    assert permission["sourceArn"] == "arn:of:job-stop"
    assert permission["principal"] == "sns.amazonaws.com"
    assert run.find("TopicSubscription job-stop").inputs["endpoint"] == "arn:of:job-stop"


def test_what_fails_is_told_where_people_hear_of_it() -> None:
    run = alone(**GROUP, budget=STOPS)
    config = run.find("FunctionEventInvokeConfig job-stop").inputs
    assert config["destinationConfig"] == {"onFailure": {"destination": "arn:of:job-alerts"}}
    assert config["maximumRetryAttempts"] == 2


def test_it_may_do_what_it_does_to_its_own_group_and_no_more() -> None:
    found = rights(alone(**GROUP, budget=STOPS))
    group = (
        "arn:aws:autoscaling:us-east-1:123456789012:autoScalingGroup:*"
        ":autoScalingGroupName/gputier-test-job"
    )
    log = "arn:aws:logs:us-east-1:123456789012:log-group:/aws/lambda/gputier-test-job-stop:*"
    assert {action: one["Resource"] for action, one in found.items()} == {
        "autoscaling:UpdateAutoScalingGroup": [group],
        "autoscaling:SuspendProcesses": [group],
        "budgets:ViewBudget": ["arn:aws:budgets::123456789012:budget/gputier-test-job"],
        "sns:Publish": ["arn:of:job-alerts"],
        "logs:CreateLogStream": [log],
        "logs:PutLogEvents": [log],
    }
    assert found["autoscaling:UpdateAutoScalingGroup"]["Condition"] == {
        "NumericEqualsIfExists": {"autoscaling:MinSize": "0"}
    }


def test_it_may_attach_one_policy_to_one_role_of_a_lone_machine() -> None:
    run = alone(**NIGHTLY, budget=STOPS)
    found = rights(run)
    assert found["ec2:StopInstances"]["Resource"] == ["arn:of:job-machine"]
    attach = found["iam:AttachRolePolicy"]
    assert attach["Resource"] == ["arn:of:job-hours"]
    assert attach["Condition"] == {"ArnEquals": {"iam:PolicyARN": "arn:of:job-halt"}}
    assert not [action for action in found if action.startswith("autoscaling:")]
    denied = json.loads(run.find("Policy job-halt").inputs["policy"])["Statement"]
    assert [(one["Effect"], one["Action"], one["Resource"]) for one in denied] == [
        ("Deny", "ec2:StartInstances", "arn:of:job-machine")
    ]
    assert "iam:AttachRolePolicy" not in rights(alone(**LONE, budget=STOPS))


def test_the_function_knows_what_it_stops() -> None:
    def settings(base: Mapping[str, Any]) -> dict[str, str]:
        run = alone(**base, budget=STOPS)
        return run.find("Function job-stop").inputs["environment"]["variables"]

    common = {"ACCOUNT": "123456789012", "BUDGET": "gputier-test-job", "TOPIC": "arn:of:job-alerts"}
    assert settings(GROUP) == {**common, "GROUP": "gputier-test-job"}
    machine = {**common, "MACHINE": "i-job-machine"}
    assert settings(LONE) == machine
    # The role's name is Pulumi's, which there is none of here: tests/engine/test_budget.py has it.
    assert settings(NIGHTLY) == {**machine, "HALT": "arn:of:job-halt"}


def test_its_log_is_there_first_and_kept_for_a_month() -> None:
    run = alone(**GROUP, budget=STOPS)
    log, function = run.find("LogGroup job-stop"), run.find("Function job-stop")
    assert log.inputs["name"] == f"/aws/lambda/{function.inputs['name']}"
    assert log.inputs["retentionInDays"] == 30
    assert {log.label, "RolePolicy job-stop"} <= set(function.options.depends_on)


@pytest.mark.parametrize("base", [GROUP, LONE, NIGHTLY])
def test_without_the_action_nothing_of_it_is_made(base: Mapping[str, Any]) -> None:
    run = alone(**base, budget={"usd_per_month": 500})
    kinds = {record.type.rsplit(":", 1)[-1] for record in run.records}
    assert kinds.isdisjoint(
        {"Stop", "Function", "Permission", "FunctionEventInvokeConfig", "TopicSubscription"}
    )
    assert kinds.isdisjoint({"Anomalies", "AnomalyMonitor", "AnomalySubscription", "LogGroup"})
    assert "Policy job-halt" not in [record.label for record in run.records]
    assert "costalerts" not in run.find("TopicPolicy job-alerts").inputs["policy"]


@pytest.mark.parametrize("base", [GROUP, NIGHTLY])
def test_a_review_knows_what_each_part_of_it_costs(base: Mapping[str, Any]) -> None:
    run = alone(**base, budget={**STOPS, "anomalies": "create"})
    known = {record.type for record in run.records if not record.component} & PRICERS.keys()
    made = {t for t in (r.type for r in run.records) if "/function" in t or "anomaly" in t}
    assert made <= known
    assert {"aws:lambda/permission:Permission", "aws:cloudwatch/logGroup:LogGroup"} <= known


# ---- anomalies ---------------------------------------------------------------------------------


def test_a_monitor_of_its_own_watches_the_tag_and_is_no_dimension_of_the_account() -> None:
    run = alone(**GROUP, budget={"usd_per_month": 5000, "anomalies": "create"})
    monitor = run.find("AnomalyMonitor job-anomalies").inputs
    assert monitor["monitorType"] == "CUSTOM"
    assert "monitorDimension" not in monitor
    assert json.loads(monitor["monitorSpecification"])["Tags"] == {
        "Key": "gputier:fleet",
        "MatchOptions": None,
        "Values": ["gputier-test-job"],
    }
    told = run.find("AnomalySubscription job-anomalies").inputs
    assert told["monitorArnLists"] == ["arn:of:job-anomalies"]
    assert told["thresholdExpression"]["dimension"]["values"] == ["500"]
    assert told["frequency"] == "IMMEDIATE"
    assert told["subscribers"] == [{"type": "SNS", "address": "arn:of:job-alerts"}]


def test_a_monitor_that_the_account_has_is_taken_and_none_is_made() -> None:
    run = alone(**GROUP, budget={"usd_per_month": 500, "anomalies": MONITOR})
    assert run.of_type("AnomalyMonitor") == []
    assert run.find("AnomalySubscription job-anomalies").inputs["monitorArnLists"] == [MONITOR]
    policy = json.loads(run.find("TopicPolicy job-alerts").inputs["policy"])["Statement"]
    assert policy[0]["Principal"]["Service"] == [
        "cloudwatch.amazonaws.com",
        "budgets.amazonaws.com",
        "costalerts.amazonaws.com",
    ]


def test_what_is_left_out_of_a_monitors_filter_is_told_as_nothing() -> None:
    found = json.loads(watches("x"))
    assert [key for key, value in found.items() if value is None] == [
        "And",
        "CostCategories",
        "Dimensions",
        "Not",
        "Or",
    ]


@pytest.mark.parametrize(
    ("usd", "text"),
    [
        (500, "500"),
        (99.5, "99.5"),
        (1_000_000, "1000000"),
        (1_234_567.89, "1234567.89"),
        (100, "100"),
    ],
)
def test_an_amount_is_digits_alone_however_large(usd: float, text: str) -> None:
    assert dollars(usd) == text
    many = [dollars(10.0**power) for power in range(9)]
    assert all(float(less) < float(more) for less, more in pairwise(many))
