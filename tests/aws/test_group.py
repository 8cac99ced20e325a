"""A group: template, hook, sizes, and how a change reaches it."""

from __future__ import annotations

import base64
from typing import Any

import pytest
from tests.aws import world
from tests.aws.world import alone, planned

from gputier import testing
from gputier.boot import Bundle, Stack, render
from gputier.lock import current_bundle

SERVES: dict[str, Any] = {"gpu": {"models": ["L4"]}, "purpose": "inference"}
TRAINS: dict[str, Any] = {
    "tier": "high-end", "purpose": "training", "gpu": {"models": ["H100"], "count": 8}, "nodes": 4,
}  # fmt: skip
HELD: dict[str, Any] = {
    "instance_type": "p5.48xlarge", "zone": "use1-az4", "count": 4, "id": "cr-0123456789abcdef0",
}  # fmt: skip


def group(run: testing.Run) -> testing.Record:
    (found,) = run.of_type("aws:autoscaling/group:Group")
    return found


def template(run: testing.Run) -> testing.Record:
    (found,) = run.of_type("LaunchTemplate")
    return found


def test_user_data_is_what_the_renderer_gives_and_is_known_before_anything_is_made() -> None:
    plan = planned(**SERVES)
    run = world.fleet(plan)
    bundle = current_bundle()
    wanted = render(plan, world.catalog(), Stack("gputier", "test"), Bundle(*bundle)).text
    data = template(run).inputs["userData"]
    assert base64.b64decode(data).decode() == wanted


def test_the_hook_is_in_the_group_at_creation_and_a_resource_of_its_own() -> None:
    run = alone(**SERVES)
    (first,) = group(run).inputs["initialLifecycleHooks"]
    hook = run.find("LifecycleHook job-hook")
    assert first == {
        key: hook.inputs[key]
        for key in ("name", "lifecycleTransition", "defaultResult", "heartbeatTimeout")
    }
    assert first["defaultResult"] == "ABANDON"
    assert 30 <= first["heartbeatTimeout"] <= 7200
    assert "initialLifecycleHooks" in group(run).options.ignore_changes, "an edit would replace it"


def test_the_group_and_the_hook_have_the_names_that_user_data_knows() -> None:
    run = alone(**SERVES)
    data = base64.b64decode(template(run).inputs["userData"]).decode()
    assert f'"group":"{group(run).inputs["name"]}"' in data
    assert f'"hook":"{run.find("LifecycleHook job-hook").inputs["name"]}"' in data


def test_an_up_waits_for_no_machine_and_a_destroy_for_none_either() -> None:
    inputs = group(alone(**SERVES)).inputs
    assert inputs["waitForCapacityTimeout"] == "0"
    assert inputs["forceDelete"] is True


def test_row_134_the_group_names_a_concrete_version_of_its_template() -> None:
    """github.com/pulumi/pulumi-aws/issues/1577: no refresh starts with `$Latest`."""
    assert group(alone(**SERVES)).inputs["launchTemplate"] == {
        "id": "job-template-id",
        "version": "7",
    }


def test_row_133_the_same_plan_gives_the_same_template_twice() -> None:
    """pulumi-aws#4446 and pulumi-eks#980: user-data diffs with no change."""
    one, two = template(alone(**SERVES)), template(alone(**SERVES))
    assert one.inputs == two.inputs


def test_a_service_is_refreshed_in_turns_and_goes_back_when_the_new_machines_fail() -> None:
    refresh = group(alone(**SERVES)).inputs["instanceRefresh"]
    assert refresh == {
        "strategy": "Rolling",
        "preferences": {
            "minHealthyPercentage": 100,
            "maxHealthyPercentage": 100,
            "autoRollback": True,
        },
    }


def test_what_trains_is_not_touched_by_a_change() -> None:
    assert "instanceRefresh" not in group(alone(gpu={"models": ["L4"]}, purpose="training")).inputs


@pytest.mark.parametrize("use", ["reservation", "capacity_block"])
def test_row_46_what_is_reserved_is_freed_before_it_is_taken_again(use: str) -> None:
    """eksctl#7949 and terraform-aws-eks#3661: a placement group beside a reservation."""
    run = alone(capacity={"use": use, **HELD}, nodes=4, rollout="rolling", fabric="any")
    preferences = group(run).inputs["instanceRefresh"]["preferences"]
    assert preferences["minHealthyPercentage"] < 100
    assert "maxHealthyPercentage" not in preferences
    assert run.of_type("PlacementGroup") == []


def test_row_45_a_reservation_is_the_templates_target() -> None:
    """skypilot#3039."""
    inputs = template(alone(capacity={"use": "reservation", **HELD}, nodes=4)).inputs
    assert inputs["capacityReservationSpecification"] == {
        "capacityReservationTarget": {"capacityReservationId": HELD["id"]}
    }
    assert "instanceMarketOptions" not in inputs


def test_a_reservation_without_an_id_is_any_that_is_open() -> None:
    unnamed = {key: value for key, value in HELD.items() if key != "id"}
    inputs = template(alone(capacity={"use": "reservation", **unnamed}, nodes=4)).inputs
    assert inputs["capacityReservationSpecification"] == {"capacityReservationPreference": "open"}


def test_row_50_a_capacity_block_is_a_market_of_its_own() -> None:
    """dstack#1155."""
    inputs = template(alone(capacity={"use": "capacity_block", **HELD}, nodes=4)).inputs
    assert inputs["instanceMarketOptions"] == {"marketType": "capacity-block"}


def test_row_43_a_group_waits_for_its_block_to_begin() -> None:
    """skypilot#4155."""
    span = {"start": "2099-01-01T11:30:00Z", "end": "2099-01-08T11:30:00Z"}
    run = alone(capacity={"use": "capacity_block", **HELD, **span}, nodes=4)
    sizes = group(run).inputs
    assert (sizes["minSize"], sizes["desiredCapacity"], sizes["maxSize"]) == (0, 0, 4)
    start = run.find("Schedule job-reserved-start").inputs
    assert (start["startTime"], start["desiredCapacity"]) == (span["start"], 4)
    assert "timeZone" not in start
    end = run.find("Schedule job-reserved-end").inputs
    assert (end["startTime"], end["desiredCapacity"]) == ("2099-01-08T10:45:00Z", 0)


def test_a_block_that_has_begun_is_asked_for_at_once() -> None:
    """A moment that has passed is refused by AWS, and nobody would ask for machines."""
    span = {"start": "2020-01-01T11:30:00Z", "end": "2099-01-08T11:30:00Z"}
    run = alone(capacity={"use": "capacity_block", **HELD, **span}, nodes=4)
    sizes = group(run).inputs
    assert (sizes["minSize"], sizes["desiredCapacity"], sizes["maxSize"]) == (4, 4, 4)
    assert [record.name for record in run.of_type("aws:autoscaling/schedule:Schedule")] == [
        "job-reserved-end"
    ]


def test_row_52_spot_is_a_mixed_policy_that_refills_itself_above_a_base_on_demand() -> None:
    """dstack#2917."""
    inputs = group(alone(**SERVES, nodes=3, capacity={"use": "spot", "on_demand_base": 1})).inputs
    assert "launchTemplate" not in inputs
    assert inputs["mixedInstancesPolicy"] == {
        "launchTemplate": {
            "launchTemplateSpecification": {"launchTemplateId": "job-template-id", "version": "7"},
            "overrides": [{"instanceType": "g6.xlarge"}],
        },
        "instancesDistribution": {
            "onDemandBaseCapacity": 1,
            "onDemandPercentageAboveBaseCapacity": 0,
            "spotAllocationStrategy": "price-capacity-optimized",
        },
    }
    assert inputs["capacityRebalance"] is True


def test_a_template_does_not_ask_for_spot_beside_a_mixed_policy() -> None:
    assert "instanceMarketOptions" not in template(alone(**SERVES, capacity="spot")).inputs


@pytest.mark.parametrize(
    ("more", "ignored"),
    [
        ({}, set[str]()),
        ({"scale": {"min": 1, "max": 4}}, {"desiredCapacity"}),
        (
            {"schedule": [{"start": "0 8 * * *", "stop": "0 20 * * *"}]},
            {"desiredCapacity", "minSize", "maxSize"},
        ),
    ],
)
def test_an_up_never_undoes_scaling(more: dict[str, Any], ignored: set[str]) -> None:
    always = {"initialLifecycleHooks", "suspendedProcesses"}
    assert set(group(alone(**SERVES, **more)).options.ignore_changes) == always | ignored


def test_a_fabric_has_an_interface_for_each_card_and_no_public_address() -> None:
    """Rows 76 to 78: skypilot#8391, dstack#2270, eksctl#7520."""
    plan = planned(**TRAINS)
    interfaces = template(world.fleet(plan)).inputs["networkInterfaces"]
    assert plan.chosen
    assert len(interfaces) == len(plan.chosen.network.interfaces) > 8
    places = {(i["networkCardIndex"], i["deviceIndex"]) for i in interfaces}
    assert len(places) == len(interfaces)
    assert {i.get("interfaceType") for i in interfaces} >= {"efa-only"}
    assert all("associatePublicIpAddress" not in i for i in interfaces)
    assert all(i["securityGroups"] == ["job-security-group-id"] for i in interfaces)


def test_row_81_machines_that_work_together_may_talk_in_both_directions_and_nobody_else() -> None:
    """pulumi-eks#1593; EFA wants both."""
    run = alone(**TRAINS)
    into = run.of_type("SecurityGroupIngressRule")
    assert [rule.inputs["referencedSecurityGroupId"] for rule in into] == ["job-security-group-id"]
    out = run.find("SecurityGroupEgressRule job-to-each-other").inputs
    assert out["referencedSecurityGroupId"] == out["securityGroupId"] == "job-security-group-id"


def test_nothing_comes_in_by_default() -> None:
    assert alone(**SERVES).of_type("SecurityGroupIngressRule") == []


def test_machines_that_work_together_lie_close_together_in_one_zone() -> None:
    run = alone(**TRAINS)
    (placement,) = run.of_type("PlacementGroup")
    assert placement.inputs["strategy"] == "cluster"
    assert group(run).inputs["placementGroup"] == placement.inputs["name"]
    assert len(group(run).inputs["vpcZoneIdentifiers"]) == 1


def test_a_public_address_is_the_plans_word() -> None:
    for egress, word in (("nat", "false"), ("public", "true")):
        (interface,) = template(alone(**SERVES, network={"egress": egress})).inputs[
            "networkInterfaces"
        ]
        assert interface["associatePublicIpAddress"] == word
        assert interface["deviceIndex"] == 0


def test_metadata_is_by_token_alone() -> None:
    assert template(alone(**SERVES)).inputs["metadataOptions"] == {
        "httpEndpoint": "enabled",
        "httpTokens": "required",
        "httpPutResponseHopLimit": 1,
    }


def test_machines_volumes_and_interfaces_carry_the_fleets_tags() -> None:
    run = alone(**SERVES, tags={"team": "vision"})
    tags = {tag["key"]: tag["value"] for tag in group(run).inputs["tags"]}
    assert tags == {
        "team": "vision",
        "Name": "gputier-test-job",
        "gputier:fleet": "gputier-test-job",
        "gputier:workload": "job",
        "gputier:project": "gputier",
        "gputier:stack": "test",
    }
    assert all(tag["propagateAtLaunch"] for tag in group(run).inputs["tags"])
    specified = template(run).inputs["tagSpecifications"]
    assert {spec["resourceType"] for spec in specified} == {"volume", "network-interface"}
    assert all(spec["tags"] == tags for spec in specified)


def test_machines_start_after_their_bundle_their_rights_and_their_way_out() -> None:
    """Parts wait for the component that they are in."""
    needed = alone(**SERVES).find("Group job").options.depends_on
    for label in (
        "RolePolicy job-rights",
        "NatGateway us-east-1-nat-use1-az1",
        "Route us-east-1-nat-use1-az1",
    ):
        assert label in needed
    assert any(label.startswith("BucketObjectv2 us-east-1-bundle-") for label in needed)


def test_row_135_an_image_that_moves_is_taken_once_and_kept_with_a_warning() -> None:
    """pulumi-eks#88: a newer image must not replace machines by itself."""
    run = alone(**SERVES)
    assert template(run).inputs["imageId"] == world.AMI
    assert template(run).options.ignore_changes == ("imageId",)
    assert any("the image is not pinned" in text for _level, text in run.messages)


def test_an_image_that_is_pinned_is_deployed_as_it_is() -> None:
    run = world.fleet(world.image(planned(**SERVES), id="ami-00000000000000001", pinned=True))
    assert template(run).inputs["imageId"] == "ami-00000000000000001"
    assert template(run).options.ignore_changes == ()
    assert run.messages == ()
