"""What stops a workload over its budget on Google: what is made, and the workflow that it runs."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

import pytest
from tests.engine import schema
from tests.gcp.workflow import Workflow, allowed, message
from tests.gcp.world import NIGHTS, NUMBER, PROJECT, alone

from gputier.gcp import stop_workflow
from gputier.testing import Run

L4: dict[str, Any] = {"gpu": {"models": ["L4"]}, "purpose": "inference"}
DESK: dict[str, Any] = {"gpu": {"models": ["L4"]}, "purpose": "development"}
ACCOUNT = "012345-6789AB-CDEF01"
BUDGET: dict[str, Any] = {
    "usd_per_month": 500, "action": "scale-to-zero", "billing_account": ACCOUNT,
}  # fmt: skip
NOW = datetime(2026, 12, 15, 12, tzinfo=UTC)
SETTINGS = {
    "PROJECT": "p", "NAME": "g", "WHERE": "us-central1", "AUTOSCALER": "g-scaler",
    "BUDGET": "b-1", "BILLING_ACCOUNT": ACCOUNT,
}  # fmt: skip
SCALED = stop_workflow.group_source(scaled=True, regional=True)
RUNNING: dict[str, Any] = {
    "compute.regionInstanceGroupManagers.get": {"targetSize": 3},
    "compute.regionAutoscalers.get": {"autoscalingPolicy": {"mode": "ON"}},
    "compute.instances.get": {"status": "RUNNING", "resourcePolicies": ["hours"]},
}


class Asked:
    """What a workflow asks of Google, in order; `fails` is a method that does."""

    def __init__(self, found: Mapping[str, Any] = RUNNING, fails: str = "") -> None:
        self.calls: list[tuple[str, Mapping[str, Any]]] = []
        self._found, self._fails = found, fails

    def __call__(self, method: str, args: Mapping[str, Any]) -> Any:
        if method == self._fails:
            raise RuntimeError(method)
        self.calls.append((method, args))
        return self._found.get(method)

    @property
    def did(self) -> list[str]:
        return [method for method, _ in self.calls if not method.endswith(".get")]


def run(
    asked: Asked, spent: float = 501.0, source: str = SCALED, **more: Any
) -> tuple[str, list[tuple[str, str]]]:
    now: datetime = more.pop("now", NOW)
    names: dict[str, Any] = {"budget": "b-1", "account": ACCOUNT, **more}
    told = message(spent, **names)
    workflow = Workflow(source, SETTINGS, asked, now)
    return workflow.run(told), workflow.said


# ---- the workflow ------------------------------------------------------------------------------


@pytest.mark.parametrize("spent", [0.0, 499.99, 500.0])
def test_nothing_is_looked_at_up_to_the_amount(spent: float) -> None:
    asked = Asked()
    assert run(asked, spent) == ("no more is spent than declared", [])
    assert asked.calls == []


def test_the_autoscaler_is_off_before_the_group_is_emptied_and_people_are_told_last() -> None:
    asked = Asked()
    done, said = run(asked, 500.01)
    at = {"project": "p", "region": "us-central1"}
    assert asked.calls[2:] == [
        (
            "compute.regionAutoscalers.patch",
            {**at, "autoscaler": "g-scaler", "body": {"autoscalingPolicy": {"mode": "OFF"}}},
        ),
        (
            "compute.regionInstanceGroupManagers.resize",
            {**at, "instanceGroupManager": "g", "size": 0},
        ),
    ]
    assert done == "it is stopped"
    ((severity, text),) = said
    assert severity == stop_workflow.SEVERITY
    assert "g is stopped, 500.01 USD are spent this month, and 500.0 are declared" in text


@pytest.mark.parametrize("regional", [True, False])
@pytest.mark.parametrize("scaled", [True, False])
def test_each_kind_of_group_is_asked_where_it_is(regional: bool, scaled: bool) -> None:
    asked = Asked({"compute.instanceGroupManagers.get": {"targetSize": 2},
                   "compute.autoscalers.get": {"autoscalingPolicy": {}}, **RUNNING})  # fmt: skip
    run(asked, source=stop_workflow.group_source(scaled=scaled, regional=regional))
    scaler, group = (
        ("compute.regionAutoscalers", "compute.regionInstanceGroupManagers")
        if regional
        else ("compute.autoscalers", "compute.instanceGroupManagers")
    )
    assert asked.did == [*([f"{scaler}.patch"] if scaled else []), f"{group}.resize"]
    where = "region" if regional else "zone"
    assert {args[where] for _, args in asked.calls} == {"us-central1"}


@pytest.mark.parametrize(
    ("size", "mode", "stops"),
    [(0, "OFF", False), (None, "OFF", False), (0, "ON", True), (1, "OFF", True)],
)
def test_what_is_stopped_already_is_not_stopped_again_and_nobody_is_told(
    size: int | None, mode: str, stops: bool
) -> None:
    asked = Asked({
        "compute.regionInstanceGroupManagers.get": {} if size is None else {"targetSize": size},
        "compute.regionAutoscalers.get": {"autoscalingPolicy": {"mode": mode}},
    })  # fmt: skip
    done, said = run(asked)
    assert bool(asked.did) is bool(said) is stops
    assert done == ("it is stopped" if stops else "it is stopped already")


@pytest.mark.parametrize("more", [{"budget": "b-2"}, {"account": "012345-6789AB-CDEF02"}])
def test_a_message_of_another_budget_does_nothing(more: dict[str, Any]) -> None:
    asked = Asked()
    assert run(asked, **more) == ("a message of another budget", [])
    assert asked.calls == []


@pytest.mark.parametrize(
    ("month", "now", "counts"),
    [
        ("2026-12-01T08:00:00Z", datetime(2026, 12, 1, 9, tzinfo=UTC), True),
        ("2026-12-01T00:00:00Z", datetime(2026, 12, 31, 23, tzinfo=UTC), True),
        # In Pacific time it is still December.
        ("2026-12-01T08:00:00Z", datetime(2027, 1, 1, 7, tzinfo=UTC), True),
        ("2026-12-01T08:00:00Z", datetime(2027, 1, 1, 9, tzinfo=UTC), False),
        ("2026-12-01T00:00:00Z", datetime(2027, 1, 2, tzinfo=UTC), False),
        ("2026-07-01T07:00:00Z", datetime(2026, 7, 31, tzinfo=UTC), True),
        ("2025-12-01T08:00:00Z", NOW, False),
    ],
)
def test_a_message_of_another_month_does_nothing(month: str, now: datetime, counts: bool) -> None:
    asked = Asked()
    done, _ = run(asked, month=month, now=now)
    assert bool(asked.calls) is counts
    assert done == ("it is stopped" if counts else "a message of another month")


@pytest.mark.parametrize(
    ("found", "did"),
    [
        (
            {"status": "RUNNING", "resourcePolicies": ["hours"]},
            ["compute.instances.removeResourcePolicies", "compute.instances.stop"],
        ),
        ({"status": "RUNNING"}, ["compute.instances.stop"]),
        (
            {"status": "TERMINATED", "resourcePolicies": ["hours"]},
            ["compute.instances.removeResourcePolicies", "compute.instances.stop"],
        ),
        ({"status": "TERMINATED"}, []),
        ({"status": "TERMINATED", "resourcePolicies": []}, []),
    ],
)
def test_a_machine_loses_its_schedule_before_it_is_stopped(
    found: dict[str, Any], did: list[str]
) -> None:
    asked = Asked({"compute.instances.get": found})
    run(asked, source=stop_workflow.machine_source())
    assert asked.did == did
    arguments = dict(asked.calls)
    if "compute.instances.removeResourcePolicies" in did:
        body = arguments["compute.instances.removeResourcePolicies"]["body"]
        assert body == {"resourcePolicies": ["hours"]}
    if did:
        assert arguments["compute.instances.stop"]["discardLocalSsd"] is True


@pytest.mark.parametrize(
    "fails",
    ["compute.regionInstanceGroupManagers.get", "compute.regionAutoscalers.patch",
     "compute.regionInstanceGroupManagers.resize"],
)  # fmt: skip
def test_what_fails_is_raised_and_nothing_is_said_to_be_done(fails: str) -> None:
    asked = Asked(fails=fails)
    workflow = Workflow(SCALED, SETTINGS, asked, NOW)
    with pytest.raises(RuntimeError, match=fails):
        workflow.run(message(501.0, budget="b-1", account=ACCOUNT))
    assert workflow.said == []


def test_a_call_that_google_does_not_have_would_be_found() -> None:
    with pytest.raises(KeyError, match="regionAutoscalers"):
        allowed("compute.regionAutoscalers.stop", {})
    with pytest.raises(ValueError, match="no parameter 'sise'"):
        allowed("compute.instanceGroupManagers.resize", {"sise": 0})
    body = {"autoscalingPolicy": {"mode": "STOP"}}
    with pytest.raises(ValueError, match="not one of"):
        allowed("compute.autoscalers.patch", {"project": "p", "zone": "z", "body": body})


# ---- what is made ------------------------------------------------------------------------------


def of(found: Run, label: str) -> Mapping[str, Any]:
    return found.find(label).inputs


def permissions(found: Run) -> dict[str, list[str]]:
    return {r.name: r.inputs["permissions"] for r in found.of_type("IAMCustomRole")}


def test_the_budget_tells_a_topic_that_budgets_alone_may_tell() -> None:
    found = alone(**L4, budget=BUDGET)
    (budget,) = found.of_type("gcp:billing/budget:Budget")
    assert budget.inputs["allUpdatesRule"]["schemaVersion"] == "1.0"
    assert of(found, "Topic job-stop")["name"] == "gputier-test-job-stop"
    assert budget.inputs["allUpdatesRule"]["pubsubTopic"] == "job-stop-id"
    (allowed_,) = found.of_type("TopicIAMMember")
    assert allowed_.inputs["role"] == "roles/pubsub.publisher"
    assert allowed_.inputs["member"].startswith("serviceAccount:billing-budget-alert@system.")


def test_a_message_starts_the_workflow_in_the_name_of_an_account_of_its_own() -> None:
    found = alone(**L4, budget=BUDGET, scale={"min": 1, "max": 4})
    workflow, trigger = found.find("Workflow job-stop"), of(found, "Trigger job-stop")
    email = f"gputier-test-job-stop@{PROJECT}.iam.gserviceaccount.com"
    assert workflow.inputs["serviceAccount"] == trigger["serviceAccount"] == email
    assert trigger["destination"] == {"workflow": "job-stop-id"}
    assert trigger["transport"]["pubsub"]["topic"] == "job-stop-id"
    assert workflow.inputs["userEnvVars"] == {
        "PROJECT": PROJECT,
        "NAME": "gputier-test-job",
        "WHERE": "us-central1",
        "AUTOSCALER": "gputier-test-job",
        "BUDGET": "job-budget-id",
        "BILLING_ACCOUNT": ACCOUNT,
    }
    assert workflow.inputs["deletionProtection"] is False, "it would outlive its stack"
    assert {"IAMMember job-stop", "IAMMember job-stop-start"} <= set(workflow.options.depends_on)
    own = {r.name: r.inputs["role"] for r in found.of_type("IAMMember")}
    assert own["job-stop-start"] == "roles/workflows.invoker"
    assert own["job-stop-log"] == "roles/logging.logWriter"


@pytest.mark.parametrize(
    ("fields", "text", "rights"),
    [
        (
            {**L4, "scale": {"min": 1, "max": 4}},
            stop_workflow.group_source(scaled=True, regional=True),
            {"autoscalers", "instanceGroupManagers", "regionOperations"},
        ),
        (
            {**L4, "zones": ["us-central1-a"]},
            stop_workflow.group_source(scaled=False, regional=False),
            {"instanceGroupManagers", "zoneOperations"},
        ),
        (
            {**L4, "schedule": [NIGHTS]},
            stop_workflow.group_source(scaled=True, regional=True),
            {"autoscalers", "instanceGroupManagers", "regionOperations"},
        ),
        (DESK, stop_workflow.machine_source(), {"zoneOperations"}),
    ],
    ids=["scaled", "fixed", "hours", "lone"],
)
def test_the_workflow_and_its_rights_are_for_what_the_fleet_is(
    fields: dict[str, Any], text: str, rights: set[str]
) -> None:
    found = alone(**fields, budget=BUDGET)
    assert of(found, "Workflow job-stop")["sourceContents"] == text
    assert {name.split(".")[1] for name in permissions(found)["job-stop"]} == rights


def test_of_machines_the_account_may_stop_the_one_that_is_declared() -> None:
    found = alone(**DESK, budget=BUDGET, schedule=[NIGHTS])
    (on_machine,) = found.of_type("InstanceIAMMember")
    assert on_machine.inputs["instanceName"] == of(found, "Instance job-machine")["name"]
    assert on_machine.inputs["zone"] == "us-central1-a"
    assert on_machine.inputs["role"].endswith("_halt")
    assert permissions(found)["job-halt"] == [
        "compute.instances.get",
        "compute.instances.removeResourcePolicies",
        "compute.instances.stop",
    ]


def test_people_are_told_that_it_was_stopped_and_that_it_was_not() -> None:
    found = alone(**L4, budget=BUDGET)
    own = 'resource.labels.workflow_id="gputier-test-job-stop"'
    (told,) = of(found, "AlertPolicy job-stopped")["conditions"]
    assert own in told["conditionMatchedLog"]["filter"]
    assert f"severity={stop_workflow.SEVERITY}" in told["conditionMatchedLog"]["filter"]
    assert of(found, "AlertPolicy job-stopped")["alertStrategy"]["notificationRateLimit"]
    (failed,) = of(found, "AlertPolicy job-not-stopped")["conditions"]
    assert own in failed["conditionThreshold"]["filter"]
    assert 'metric.labels.status="FAILED"' in failed["conditionThreshold"]["filter"]


def test_without_the_action_nothing_of_it_is_made() -> None:
    found = alone(**L4, budget={**BUDGET, "action": "none"})
    for kind in ("Workflow", "Trigger", "gcp:pubsub/topic:Topic", "TopicIAMMember"):
        assert found.of_type(kind) == []
    (budget,) = found.of_type("gcp:billing/budget:Budget")
    assert budget.inputs["budgetFilter"]["projects"] == [f"projects/{NUMBER}"]
    assert "allUpdatesRule" not in budget.inputs


@pytest.mark.parametrize("fields", [{**L4, "scale": {"min": 1, "max": 4}}, DESK])
def test_everything_that_is_set_is_there_to_be_set(fields: dict[str, Any]) -> None:
    made = [r for r in alone(**fields, budget=BUDGET).records if not r.component]
    assert [(r.label, bad) for r in made for bad in schema.check(r.type, r.inputs)] == []
