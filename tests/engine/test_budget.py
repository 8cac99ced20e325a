"""A workload over its budget, on a real engine: it is stopped, stays stopped, and is resumed.

What Lambda would run is run: the code and the settings of the deployed function, against the same
stand-in for AWS as the deployment.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Generator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from tests.engine import ours
from tests.engine.aws.functions import unzipped
from tests.engine.aws.session import ACCOUNT, REGION, Session
from tests.engine.stack import Engine, Stack
from tests.engine.test_runbooks import aws

_budgets: Any = import_module("moto.budgets.models").budgets_backends
_sns: Any = import_module("moto.sns.models").sns_backends
BUDGET = {"usd_per_month": 500, "action": "scale-to-zero"}
NIGHTS = [{"start": "0 20 * * *", "stop": "0 6 * * *", "timezone": "UTC"}]
MONITOR = f"arn:aws:ce::{ACCOUNT}:anomalymonitor/1ab2c3d4"
OF_JOB = {"AutoScalingGroupName": "gputier-dev-job"}
Fleet = Callable[..., Stack]


@pytest.fixture
def fleet(engine: Engine, tmp_path: Path) -> Fleet:
    def made(**fields: Any) -> Stack:
        folder = ours.project(tmp_path, {"dev": {"workloads": {"job": fields}}})
        return ours.locked(engine, folder)

    return made


def spend(usd: float, name: str = "gputier-dev-job") -> None:
    """What the bill says was spent: nobody but AWS can."""
    budget = _budgets[ACCOUNT]["aws"].budgets[ACCOUNT][name]
    budget.budget["CalculatedSpend"] = {"ActualSpend": {"Amount": str(usd), "Unit": "USD"}}


@contextmanager
def started(engine: Engine, function: str) -> Generator[Callable[[object, object], str]]:
    """A deployed function's handler in a process with its settings, as Lambda starts it."""
    found = engine.aws.client("lambda").get_function(FunctionName=function)["Configuration"]
    settings: dict[str, str] = found["Environment"]["Variables"]
    texts = unzipped(found["FunctionName"], Session(engine.aws, REGION))
    file, name = found["Handler"].split(".")
    with pytest.MonkeyPatch.context() as patch:
        for key, value in {**settings, "AWS_REGION": REGION}.items():
            patch.setenv(key, value)
        modules = {file_.removesuffix(".py"): text for file_, text in texts.items()}
        for module in sorted(modules, key=lambda module: module == file):
            patch.setitem(sys.modules, module, ModuleType(module))
            code = compile(modules[module], f"{module}.py", "exec")
            exec(code, sys.modules[module].__dict__)  # noqa: S102 - it is ours
        yield getattr(sys.modules[file], name)


def alarm(engine: Engine, message: str = "AWS Budget Notification") -> str:
    """Budgets tells its topic, and SNS calls what is subscribed to it."""
    budgets = engine.aws.client("budgets")
    named = {"AccountId": ACCOUNT, "BudgetName": "gputier-dev-job"}
    over = {
        "NotificationType": "ACTUAL",
        "ComparisonOperator": "GREATER_THAN",
        "Threshold": 100.0,
        "ThresholdType": "PERCENTAGE",
    }
    known = budgets.describe_notifications_for_budget(**named)["Notifications"]
    assert over in known
    calls = engine.aws.client("sns").list_subscriptions()["Subscriptions"]
    (called,) = [to for to in calls if to["Protocol"] == "lambda"]
    with started(engine, called["Endpoint"]) as handler:
        return handler({"Records": [{"Sns": {"Message": message}}]}, None)


def told() -> list[str]:
    """What people were told in the fleet's topic: subjects."""
    topic = _sns[ACCOUNT][REGION].topics[f"arn:aws:sns:{REGION}:{ACCOUNT}:gputier-dev-job"]
    return [subject for _id, _message, subject, *_ in topic.sent_notifications]


def group(engine: Engine) -> Any:
    return ours.group_of(engine, "gputier-dev-job")


def size(engine: Engine) -> tuple[int, int, int, list[str]]:
    """Machines there are, at least and asked for; what is suspended."""
    found = group(engine)
    suspended = [process["ProcessName"] for process in found["SuspendedProcesses"]]
    return len(found["Instances"]), found["MinSize"], found["DesiredCapacity"], suspended


def test_a_group_over_its_budget_is_emptied_stays_empty_and_is_resumed_by_the_runbook(
    engine: Engine, fleet: Fleet
) -> None:
    stack = fleet(**ours.JOB, budget=BUDGET)
    planned = stack.preview()
    assert planned.changed["Function job-stop"] == "create"
    assert stack.up().changed == planned.changed
    assert stack.up().changed == {}
    assert stack.refresh().changed == {}, "what is read back is what was written"

    for spent in (0, 499.99, 500):
        spend(spent)
        assert "nothing is stopped" in alarm(engine), "a message alone stops nothing"
    assert size(engine) == (1, 1, 1, [])
    assert told() == []

    spend(500.01)
    for _ in range(2):
        said = alarm(engine)
        assert "500.01 USD are spent this month, and 500 are declared" in said
        assert size(engine) == (0, 0, 0, ["Launch"])
    assert told() == ["stopped over budget: gputier-dev-job"] * 2

    assert stack.up().changed == {}
    assert size(engine) == (0, 0, 0, ["Launch"])
    stack.up("--refresh")
    engine.aws.client("autoscaling").set_desired_capacity(**OF_JOB, DesiredCapacity=3)
    assert size(engine) == (0, 1, 3, ["Launch"]), "whoever asks for machines gets none"
    engine.aws.client("autoscaling").set_desired_capacity(**OF_JOB, DesiredCapacity=1)

    aws(engine, "over-budget", "ResumeProcesses", **OF_JOB)
    assert size(engine) == (1, 1, 1, [])
    assert stack.up().changed == {}


def test_a_group_that_is_resumed_before_a_deployment_looked_gets_its_sizes_by_the_runbook(
    engine: Engine, fleet: Fleet
) -> None:
    stack = fleet(**ours.JOB, budget=BUDGET)
    stack.up()
    spend(501)
    alarm(engine)
    aws(engine, "over-budget", "ResumeProcesses", **OF_JOB)
    assert size(engine)[0] == 0
    stack.up("--refresh")
    assert size(engine) == (1, 1, 1, [])


def test_a_schedule_raises_no_group_that_is_over_its_budget(engine: Engine, fleet: Fleet) -> None:
    stack = fleet(**ours.JOB, budget=BUDGET, schedule=NIGHTS)
    stack.up()
    scaling = engine.aws.client("autoscaling")
    actions = scaling.describe_scheduled_actions(**OF_JOB)["ScheduledUpdateGroupActions"]
    (start,) = [action for action in actions if action["DesiredCapacity"]]
    sizes = {name: start[name] for name in ("MinSize", "MaxSize", "DesiredCapacity")}
    spend(501)
    alarm(engine)
    scaling.update_auto_scaling_group(**OF_JOB, **sizes)  # as the clock does it
    assert size(engine) == (0, 1, 1, ["Launch"])
    assert stack.up("--refresh").changed == {}
    assert size(engine) == (0, 1, 1, ["Launch"])
    aws(engine, "over-budget", "ResumeProcesses", **OF_JOB)
    assert size(engine) == (1, 1, 1, [])


def test_a_lone_machine_over_its_budget_is_stopped_and_its_schedule_may_not_start_it(
    engine: Engine, fleet: Fleet
) -> None:
    stack = fleet(**ours.DESK, budget=BUDGET, schedule=NIGHTS)
    stack.up()
    assert stack.refresh().changed == {}
    machine, role, policy = (
        id_of(stack, n) for n in ("job-machine", "Role::job-hours", "job-halt")
    )

    spend(501)
    for _ in range(2):
        assert policy in alarm(engine)
        assert state(engine, machine) == "stopped"
        assert attached(engine, role) == [policy]
    assert stack.up().changed == {}
    stack.up("--refresh")
    assert state(engine, machine) == "stopped"
    assert attached(engine, role) == [policy], "a deployment leaves it as it finds it"

    where = {"RoleName": role, "PolicyArn": policy}
    found = aws(engine, "over-budget", "ListEntitiesForPolicy", PolicyArn=policy)
    assert [one["RoleName"] for one in found["PolicyRoles"]] == [role]
    aws(engine, "over-budget", "DetachRolePolicy", **where)
    aws(engine, "over-budget", "StartInstances", InstanceIds=[machine])
    assert state(engine, machine) == "running"
    assert attached(engine, role) == []
    assert stack.up().changed == {}


def id_of(stack: Stack, name: str) -> str:
    (found,) = [r["id"] for r in stack.state() if r["urn"].endswith(f":{name}")]
    return found


def state(engine: Engine, machine: str) -> str:
    found = engine.aws.client("ec2").describe_instances(InstanceIds=[machine])
    return found["Reservations"][0]["Instances"][0]["State"]["Name"]


def attached(engine: Engine, role: str) -> list[str]:
    found = engine.aws.client("iam").list_attached_role_policies(RoleName=role)
    return [policy["PolicyArn"] for policy in found["AttachedPolicies"]]


@pytest.mark.parametrize("fields", [ours.JOB, {**ours.DESK, "schedule": NIGHTS}])
def test_nothing_is_left_of_a_stack_that_is_destroyed_while_it_is_stopped(
    engine: Engine, fleet: Fleet, fields: dict[str, Any]
) -> None:
    stack = fleet(
        **fields, budget={**BUDGET, "anomalies": "create"}, identity={"reports": "remove"}
    )
    stack.up()
    assert any(found.startswith("anomalymonitor ") for found in engine.aws.inventory())
    spend(501)
    alarm(engine)
    stack.destroy()
    assert [found for found in engine.aws.inventory() if not found.startswith("volume")] == []


def test_the_action_and_the_watch_come_and_go_in_place(engine: Engine, fleet: Fleet) -> None:
    plain: dict[str, Any] = {**ours.JOB, "budget": {"usd_per_month": 500}}
    stack = fleet(**plain)
    stack.up()
    for watch in ("create", MONITOR):
        ours.declare(stack, {"job": {**plain, "budget": {**BUDGET, "anomalies": watch}}})
        stack.up()
        assert stack.up().changed == {}
        assert stack.refresh().changed == {}
        kept = engine.aws.kept("anomalysubscription", REGION)
        ((_, subscription),) = kept.items()
        (monitor,) = subscription["asked"]["AnomalySubscription"]["MonitorArnList"]
        own = list(engine.aws.kept("anomalymonitor", REGION))
        assert own == ([monitor] if watch == "create" else [])
        assert watch in ("create", monitor), "the account's own is taken, and none is made"
    ours.declare(stack, {"job": plain})
    gone = stack.up().changed
    assert {gone[f"{kind} job-stop"] for kind in ("Function", "Topic", "Role", "LogGroup")} == {
        "delete"
    }
    assert "Group job-group" not in gone
    assert size(engine) == (1, 1, 1, [])
