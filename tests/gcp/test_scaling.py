"""Autoscalers and schedules on Google."""

from __future__ import annotations

from typing import Any

from tests.gcp import world
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
