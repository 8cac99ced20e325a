"""Autoscalers and schedules on Google."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest
from tests.engine.gcp import documents
from tests.gcp import world
from tests.gcp.workflow import allowed
from tests.gcp.world import alone

L4: dict[str, Any] = {"gpu": {"models": ["L4"]}, "purpose": "inference"}
NIGHTS: dict[str, Any] = {
    "start": "0 20 * * mon-fri", "stop": "0 6 * * tue-sat", "timezone": "Europe/Berlin",
}  # fmt: skip


def test_a_group_of_fixed_size_has_no_autoscaler() -> None:
    run = alone(**L4)
    assert run.of_type("RegionAutoscaler") == run.of_type("Autoscaler") == []


def test_an_autoscaler_holds_to_its_group_and_waits_as_long_as_a_boot_takes() -> None:
    run = alone(**L4, scale={"min": 1, "max": 4, "target": 60})
    found = run.find("RegionAutoscaler job-autoscaler").inputs
    assert found["target"].endswith("RegionInstanceGroupManager/job-group")
    policy = found["autoscalingPolicy"]
    assert (policy["minReplicas"], policy["maxReplicas"], policy["mode"]) == (1, 4, "ON")
    assert policy["cooldownPeriod"] > 900
    (metric,) = policy["metrics"]
    assert (metric["name"], metric["type"]) == ("agent.googleapis.com/gpu/utilization", "GAUGE")
    assert metric["target"] == 60
    assert "scalingSchedules" not in policy
    group = run.find("RegionInstanceGroupManager job-group").inputs
    assert group["distributionPolicyTargetShape"] == "EVEN"
    assert group["updatePolicy"]["instanceRedistributionType"] == "PROACTIVE"


def test_a_schedule_raises_the_least_for_its_length() -> None:
    run = alone(**L4, zones=["us-central1-a"], schedule=[NIGHTS])
    policy = run.find("Autoscaler job-autoscaler").inputs["autoscalingPolicy"]
    (hours,) = policy["scalingSchedules"]
    assert (hours["durationSec"], hours["minRequiredReplicas"]) == (36000, 1)
    assert (hours["schedule"], hours["timeZone"]) == ("0 20 * * 1-5", "Europe/Berlin")
    assert policy["minReplicas"] == 0
    group = run.find("InstanceGroupManager job-group")
    assert "targetSize" not in group.inputs
    assert group.options.ignore_changes == ("targetSize",)


BUSY: dict[str, Any] = {**L4, "scale": {"min": 1, "max": 4}, "schedule": [NIGHTS]}


@pytest.mark.parametrize("zones", [None, ["us-central1-a"]], ids=["region", "zone"])
def test_the_clock_takes_what_a_figure_would_keep(zones: list[str] | None) -> None:
    fields: dict[str, Any] = {**BUSY, "zones": zones} if zones else BUSY
    run = alone(**fields)
    made = {job.name.split("-")[1]: job.inputs for job in run.of_type("Job")}
    assert {word: (job["schedule"], job["timeZone"]) for word, job in made.items()} == {
        "start": ("0 20 * * 1-5", "Europe/Berlin"),
        "stop": ("0 6 * * 2-6", "Europe/Berlin"),
    }
    where = "zones/us-central1-a" if zones else "regions/us-central1"
    for word, most in (("start", 4), ("stop", 0)):
        target = made[word]["httpTarget"]
        at, _, query = target["uri"].partition("?")
        assert at.endswith(f"/compute/v1/projects/{world.PROJECT}/{where}/autoscalers")
        assert query == "autoscaler=gputier-test-job"
        body = json.loads(base64.b64decode(target["body"]))
        assert body == {"autoscalingPolicy": {"maxNumReplicas": most}}, "its mode stays as it is"
        place = {"zone" if zones else "region": where.partition("/")[2]}
        kind = "autoscalers" if zones else "regionAutoscalers"
        asked = {"project": "p", **place, "autoscaler": "a", "body": body}
        assert target["httpMethod"] == "PATCH"
        path = documents.method(f"compute.{kind}.patch").url({"project": world.PROJECT, **place})
        assert at.endswith(f"/compute/v1/{path}")
        allowed(f"compute.{kind}.patch", asked)


def test_those_jobs_may_change_autoscalers_and_nothing_else() -> None:
    run = alone(**BUSY)
    email = f"gputier-test-job-hours@{world.PROJECT}.iam.gserviceaccount.com"
    assert {j.inputs["httpTarget"]["oauthToken"]["serviceAccountEmail"] for j in run.of_type("Job")
            } == {email}  # fmt: skip
    role = run.find("IAMCustomRole job-hours").inputs
    assert role["permissions"] == ["compute.autoscalers.get", "compute.autoscalers.update"]
    assert run.find("IAMMember job-hours").inputs["member"] == f"serviceAccount:{email}"
    assert all("IAMMember job-hours" in j.options.depends_on for j in run.of_type("Job"))
    (condition,) = run.find("AlertPolicy job-clock").inputs["conditions"]
    assert '"gputier-test-job-"' in condition["conditionMatchedLog"]["filter"]


@pytest.mark.parametrize("fields", [{**L4, "schedule": [NIGHTS]}, {**BUSY, "schedule": []}])
def test_what_the_clock_or_a_figure_sets_alone_needs_no_jobs(fields: dict[str, Any]) -> None:
    run = alone(**fields)
    assert run.of_type("Job") == []
    assert "job-clock" not in {r.name for r in run.of_type("AlertPolicy")}


def test_a_lone_machine_holds_to_a_schedule_that_google_may_keep() -> None:
    run = alone(gpu={"models": ["L4"]}, purpose="development", schedule=[NIGHTS])
    (policy,) = run.of_type("ResourcePolicy")
    told = policy.inputs["instanceSchedulePolicy"]
    assert told == {
        "vmStartSchedule": {"schedule": "0 20 * * 1-5"},
        "vmStopSchedule": {"schedule": "0 6 * * 2-6"},
        "timeZone": "Europe/Berlin",
    }
    machine = run.find("Instance job-machine").inputs
    assert machine["resourcePolicies"].endswith(f"ResourcePolicy/{policy.name}")
    role = run.find("IAMCustomRole job-hours").inputs
    assert role["permissions"] == ["compute.instances.start", "compute.instances.stop"]
    member = run.find("IAMMember job-hours").inputs["member"]
    assert f"service-{world.NUMBER}@" in member
    assert "IAMMember job-hours" in policy.options.depends_on
