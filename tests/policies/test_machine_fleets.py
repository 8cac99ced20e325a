"""Fleets: groups joined with what they start, the clock and the autoscaler that size them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from tests.conftest import ROOT
from tests.policies import cases
from tests.policies.programs import program
from tests.policies.tables import misspelt

from gputier_policies import machine
from gputier_policies.fleets import (
    GROUP_SCHEDULE,
    RESOURCE_POLICY,
    SCALERS,
    SCALING_POLICY,
    SCHEDULE,
    Fleet,
    fleets,
)
from gputier_policies.values import UNKNOWN, Stack

SAMPLE = ROOT / "tests" / "review" / "samples" / "prod-export.json"
WEEKDAYS = 260.75  # 8 to 20 from Monday to Friday, a month


def only_fleet(stack: Stack) -> Fleet:
    (found,) = fleets(stack)
    return found


def test_an_existing_state_has_the_fleets_that_were_deployed() -> None:
    """Outputs of `pulumi stack export`, where templates are found by their ids."""
    found = {f.runner.name: f for f in fleets(cases.exported(SAMPLE))}
    assert {name: (str(f.machines[0]), f.region, f.most) for name, f in found.items()} == {
        "desktops-machine": ("g6e.xlarge", "us-east-1", 1),
        "foundation-group": ("p5en.48xlarge", "us-east-1", 4),
        "render-group": ("g6e.2xlarge", "us-east-1", 1),
        "simulation-group": ("p4de.24xlarge", "us-east-1", 1),
    }
    assert {name: f.hours for name, f in found.items() if f.zero} == pytest.approx(
        {"desktops-machine": WEEKDAYS, "render-group": 365.25}
    )


def test_an_existing_state_needs_no_memory_of_what_was_made_from_what() -> None:
    whole = cases.exported(SAMPLE)
    bare = cases.stack(*(cases.resource(r.type, r.name, **r.props) for r in whole.resources))
    for one in fleets(bare):
        assert [template.type for template in one.templates] == (
            [] if one.runner.type == machine.INSTANCE else [machine.TEMPLATE]
        )
        assert one.machines
    assert {f.runner.name for f in fleets(bare) if f.zero} == {"desktops-machine", "render-group"}


@pytest.mark.parametrize("cloud", ["aws", "gcp"])
def test_a_preview_knows_what_is_made_from_what(cloud: str) -> None:
    known = {"aws": ("template.instanceType", "group.maxSize", "start", "stop"),
             "gcp": ("template.machineType", "scaler.autoscalingPolicy")}[cloud]  # fmt: skip
    found = only_fleet(program(cloud, known=known))
    assert len(found.machines) == 1
    assert found.most == 2
    assert found.zero == "schedule"
    assert found.hours == pytest.approx(WEEKDAYS)
    assert not found.waits


@pytest.mark.parametrize("cloud", ["aws", "gcp"])
def test_what_is_not_known_is_waited_for(cloud: str) -> None:
    found = only_fleet(program(cloud, known=(), without=("template",)))
    path = {"aws": "launchTemplate.id", "gcp": "versions[0].instanceTemplate"}[cloud]
    if cloud == "gcp":
        found = only_fleet(
            program(cloud, known=("group.zone",), without=("template",),
                    changes={"group.versions": [{"instanceTemplate": UNKNOWN}]})
        )  # fmt: skip
    assert found.gpu is UNKNOWN
    assert found.waits in (path, path.split(".")[0])


ASG: dict[str, Any] = {"name": "group", "maxSize": 4, "minSize": 0,
                       "launchTemplate": {"id": "lt-1", "version": "1"}}  # fmt: skip
LT = cases.resource(machine.TEMPLATE, "template", instanceType="g6.xlarge", id="lt-1")


def group(*others: Any, **changes: Any) -> Fleet:
    return only_fleet(cases.stack(LT, cases.resource(machine.GROUP, **{**ASG, **changes}), *others))


def test_a_group_that_an_autoscaler_may_empty_scales_to_zero() -> None:
    policy = cases.resource(SCALING_POLICY, "policy", name="policy", autoscalingGroupName="group")
    assert group(policy, desiredCapacity=2).zero == "scales"
    assert group(policy, desiredCapacity=2, minSize=1).zero == ""
    assert group(desiredCapacity=2).zero == ""
    assert group().zero == "scales"  # something outside of the program says how many


def test_a_schedule_that_cannot_be_read_counts_as_running_all_month() -> None:
    odd = cases.resource(GROUP_SCHEDULE, "odd", autoscalingGroupName="group",
                         recurrence="0 20 L * *", minSize=0, desiredCapacity=0)  # fmt: skip
    found = group(odd, desiredCapacity=2, minSize=1)
    assert found.hours == 730
    assert found.zero == "schedule"
    assert "cannot be read" in found.notes[0]


def test_a_single_date_is_no_part_of_a_month() -> None:
    once = cases.resource(GROUP_SCHEDULE, "once", autoscalingGroupName="group",
                          startTime="2030-01-01T00:00:00Z", desiredCapacity=0)  # fmt: skip
    assert group(once, desiredCapacity=2).zero == ""


def test_a_template_that_asks_for_spot_makes_the_overrides_spot() -> None:
    spot = cases.resource(machine.TEMPLATE, "template", id="lt-1",
                          instanceMarketOptions={"marketType": "spot"})  # fmt: skip
    mixed = {"launchTemplate": {"launchTemplateSpecification": {"launchTemplateId": "lt-1"},
                                "overrides": [{"instanceType": "g6.xlarge"}]}}  # fmt: skip
    props = {k: v for k, v in ASG.items() if k != "launchTemplate"}
    made = cases.resource(machine.GROUP, **props, mixedInstancesPolicy=mixed)
    assert [m.capacity for m in only_fleet(cases.stack(spot, made)).machines] == ["spot"]


SCALED = {"minReplicas": 0, "maxReplicas": 5}
DAY = {"name": "d", "schedule": "0 8 * * 1-5", "durationSec": 43200, "minRequiredReplicas": 5}


@pytest.mark.parametrize(("policy", "zero", "hours"), [
    (SCALED, "scales", 730), ({**SCALED, "minReplicas": 1}, "", 730),
    ({**SCALED, "scalingSchedules": [DAY]}, "schedule", WEEKDAYS),
    ({**SCALED, "scalingSchedules": [DAY], "cpuUtilization": {"target": 0.6}}, "scales", 730),
    ({**SCALED, "scalingSchedules": [{**DAY, "disabled": True}]}, "scales", 730),
    ({**SCALED, "scalingSchedules": [{**DAY, "schedule": "0 8 L * *"}]}, "schedule", 730),
])  # fmt: skip
@pytest.mark.parametrize("regional", [False, True])
def test_an_autoscaler_of_google_sizes_a_group(
    policy: Mapping[str, Any], zero: str, hours: float, regional: bool
) -> None:
    kind = machine.GCP_REGION_GROUP if regional else machine.GCP_GROUP
    made = cases.resource(kind, "group", selfLink="links/group", targetSize=1, versions=[
        {"instanceTemplate": "links/template"}])  # fmt: skip
    template = cases.resource(machine.GCP_REGION_TEMPLATE, "template", selfLink="links/template",
                              machineType="g2-standard-4")  # fmt: skip
    scaler = cases.resource(SCALERS[regional], "scaler", target="links/group",
                            autoscalingPolicy=policy)  # fmt: skip
    assert misspelt(scaler.type, dict(scaler.props)) == []
    found = only_fleet(cases.stack(template, made, scaler))
    assert (found.most, found.zero) == (5, zero)
    assert found.hours == pytest.approx(hours, abs=0.01)
    alone = only_fleet(cases.stack(template, made))
    assert (alone.most, alone.zero, alone.sized) == (1, "", "targetSize")


def test_a_machine_of_google_keeps_the_hours_of_its_policy() -> None:
    when = {"timeZone": "Europe/Berlin", "vmStartSchedule": {"schedule": "0 8 * * 1-5"},
            "vmStopSchedule": {"schedule": "0 20 * * 1-5"}}  # fmt: skip
    policy = cases.resource(RESOURCE_POLICY, "hours", name="hours", selfLink="links/hours",
                            instanceSchedulePolicy=when)  # fmt: skip
    assert misspelt(policy.type, {"name": "hours", "instanceSchedulePolicy": when}) == []
    props: dict[str, Any] = {"machineType": "g2-standard-4", "zone": "us-central1-a"}
    told = cases.resource(machine.GCP_INSTANCE, **props, resourcePolicies="links/hours")
    found = only_fleet(cases.stack(policy, told))
    assert found.hours == pytest.approx(WEEKDAYS)
    made_from = cases.resource(machine.GCP_INSTANCE, **props, resourcePolicies=UNKNOWN,
                               sources={"resourcePolicies": [policy]})  # fmt: skip
    assert only_fleet(cases.stack(policy, made_from)).zero == "schedule"
    off = cases.resource(machine.GCP_INSTANCE, **props, desiredStatus="TERMINATED")
    assert only_fleet(cases.stack(off)).hours == 0


def test_a_machine_of_aws_keeps_the_hours_of_eventbridge() -> None:
    lone = cases.resource(machine.INSTANCE, "lone", instanceType="g6.xlarge")

    def when(word: str, hour: int) -> Any:
        target = {"arn": f"arn:aws:scheduler:::aws-sdk:ec2:{word}Instances", "input": UNKNOWN}
        return cases.resource(SCHEDULE, word, target=target, sources={"target": [lone]},
                              scheduleExpression=f"cron(0 {hour} ? * MON-FRI *)",
                              scheduleExpressionTimezone="Europe/Berlin")  # fmt: skip

    found = only_fleet(cases.stack(lone, when("start", 8), when("stop", 20)))
    assert found.hours == pytest.approx(WEEKDAYS)
    assert only_fleet(cases.stack(lone, when("stop", 20))).zero == "schedule"
    assert only_fleet(cases.stack(lone, when("start", 8))).zero == ""
    other = cases.resource(machine.INSTANCE, "other", instanceType="g6.xlarge")
    both = {f.runner.name: f.zero for f in fleets(cases.stack(lone, other, when("stop", 20)))}
    assert both == {"lone": "schedule", "other": ""}


@pytest.mark.parametrize(("props", "most", "zero"), [
    ({"location": "us-central1-a", "nodeCount": 2}, 2, ""),
    ({"location": "us-central1", "nodeCount": 2}, 6, ""),
    ({"location": "us-central1", "nodeCount": 2, "nodeLocations": ["a", "b"]}, 4, ""),
    ({"location": "us-central1-a", "autoscaling": {"minNodeCount": 0, "maxNodeCount": 3}}, 3,
     "scales"),
    ({"location": "us-central1-a", "autoscaling": {"minNodeCount": 1, "maxNodeCount": 3}}, 3, ""),
    ({"location": "us-central1", "autoscaling": {"totalMinNodeCount": 0,
                                                 "totalMaxNodeCount": 5}}, 5, "scales"),
    ({"location": "us-central1-a", "nodeCount": UNKNOWN}, None, ""),  # the provider will say
])  # fmt: skip
def test_node_pools_have_a_size_in_each_zone(
    props: Mapping[str, Any], most: Any, zero: str
) -> None:
    config = {"machineType": "g2-standard-4"}
    pool = cases.resource(machine.NODE_POOL, nodeConfig=config, **props)
    found = only_fleet(cases.stack(pool))
    assert (found.most, found.zero) == (most, zero)


@pytest.mark.parametrize(("type_", "props", "most", "spot"), [
    (machine.NODE_GROUP, {"instanceTypes": ["g6.xlarge"],
                          "scalingConfig": {"minSize": 0, "maxSize": 3, "desiredSize": 0}}, 3, 100),
    (machine.EC2_FLEET, {"launchTemplateConfigs": [{"overrides": [{"instanceType": "g6.xlarge"}]}],
        "targetCapacitySpecification": {"totalTargetCapacity": 6, "onDemandTargetCapacity": 1,
                                        "defaultTargetCapacityType": "spot"}}, 6, 0),
    (machine.SPOT_FLEET, {"launchSpecifications": [{"instanceType": "g6.xlarge"}],
                          "targetCapacity": 2, "onDemandTargetCapacity": 1}, 2, 0),
])  # fmt: skip
def test_other_ways_to_run_many(type_: str, props: dict[str, Any], most: int, spot: int) -> None:
    assert misspelt(type_, props) == []
    found = only_fleet(cases.stack(cases.resource(type_, **props)))
    assert (found.most, found.percent) == (most, spot)
    assert found.base == (0 if spot else 1)


def test_a_fleet_of_ec2_starts_what_its_template_says() -> None:
    within = [{"launchTemplateSpecification": {"launchTemplateId": "lt-1", "version": "1"}}]
    made = cases.resource(machine.EC2_FLEET, launchTemplateConfigs=within,
                          targetCapacitySpecification={"totalTargetCapacity": 2})  # fmt: skip
    found = only_fleet(cases.stack(LT, made))
    assert [str(one) for one in found.machines] == ["g6.xlarge"]
    assert found.source.urn == LT.urn


def test_of_several_things_that_may_be_meant_none_is() -> None:
    second = cases.resource(machine.TEMPLATE, "second", instanceType="p5.48xlarge")
    made = cases.resource(machine.GROUP, maxSize=1, minSize=1, launchTemplate={"id": UNKNOWN},
                          sources={"launchTemplate": [LT, second]})  # fmt: skip
    found = only_fleet(cases.stack(LT, second, made))
    assert found.templates == ()
    assert found.waits == "launchTemplate.id"


def test_what_the_provider_fills_in_is_not_what_the_program_gave() -> None:
    """As a preview has a machine: what the program left out and the provider answers is unknown."""
    filled = dict.fromkeys(
        ("instanceMarketOptions", "capacityReservationSpecification", "region"), UNKNOWN
    )
    left_out = cases.resource(machine.INSTANCE, instanceType="g6.xlarge", **filled)
    (found,) = only_fleet(cases.stack(left_out)).machines
    assert found.capacity == "on_demand"
    assert only_fleet(cases.stack(left_out)).region == "us-east-1"
    made_from = {name: [LT] for name in filled}
    given = cases.resource(machine.INSTANCE, instanceType="g6.xlarge", sources=made_from, **filled)
    whole = next(f for f in fleets(cases.stack(LT, given)))
    assert whole.machines[0].capacity is UNKNOWN
    assert whole.region is UNKNOWN


def test_a_group_that_starts_a_template_has_no_mixed_policy_to_wait_for() -> None:
    assert [str(one) for one in group(mixedInstancesPolicy=UNKNOWN).machines] == ["g6.xlarge"]
