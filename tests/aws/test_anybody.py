"""Fleets in somebody else's program: providers, options, transforms, what is passed in."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pulumi
import pulumi_aws as aws
import pytest
from tests.aws import world
from tests.aws.world import catalog, planned

from gputier import testing
from gputier.aws import Existing, Given, GpuFleet, Identity, Network, Scaling, Storage, Store
from gputier.aws.place import place_of
from gputier.errors import InvalidInput
from gputier.plan import WorkloadPlan
from gputier.plan.names import KINDS, names_of
from gputier.plan.region import networks

L4: dict[str, Any] = {"gpu": {"models": ["L4"]}, "purpose": "inference"}
FAR: dict[str, Any] = {"regions": {"aws": ["eu-central-1"]}}
GIVEN = Given(catalog=catalog())


def made(plan: WorkloadPlan, **more: Any) -> GpuFleet:
    return GpuFleet(plan.name, plan, given=more.pop("given", GIVEN), **more)


def custom(run: testing.Run) -> list[testing.Record]:
    return [r for r in run.records if not r.component and r.type.startswith("aws:")]


def test_an_explicit_provider_makes_every_part() -> None:
    def program() -> None:
        there = aws.Provider("there", region="us-east-1", profile="team")
        made(planned(**L4), opts=pulumi.ResourceOptions(providers=[there]))

    run = world.run(program)
    assert len(custom(run)) > 30
    assert {record.options.provider for record in custom(run)} == {"there"}


def test_protect_reaches_every_part() -> None:
    run = world.run(lambda: made(planned(**L4), opts=pulumi.ResourceOptions(protect=True)))
    assert all(record.options.protect for record in custom(run))


def test_a_transform_sees_every_part() -> None:
    seen: list[str] = []

    def note(args: pulumi.ResourceTransformationArgs) -> None:
        seen.append(args.type_)

    options = pulumi.ResourceOptions(transformations=[note])
    run = world.run(lambda: made(planned(**L4), opts=options))
    assert {record.type for record in custom(run)} <= set(seen)


def test_two_fleets_of_one_region_share_what_is_passed() -> None:
    def program() -> None:
        plans = [planned("one", **L4), planned("two", **L4)]
        (plan,) = networks(plans).values()
        network = Network(plan)
        store = Store("us-east-1", "us-east-1", reports={"one": "keep", "two": "remove"})
        for one in plans:
            made(one, network=network, store=store)

    run = world.run(program)
    assert len(run.of_type("Vpc")) == len(run.of_type("aws:s3/bucket:Bucket")) == 1
    groups = run.of_type("aws:autoscaling/group:Group")
    assert [group.name for group in groups] == ["one-group", "two-group"]


def test_two_regions_in_one_program_need_no_second_provider() -> None:
    def program() -> None:
        made(planned("near", **L4))
        made(planned("far", **L4, **FAR))

    run = world.run(program)
    assert {group.inputs["region"] for group in run.of_type("aws:autoscaling/group:Group")} == {
        "us-east-1",
        "eu-central-1",
    }


def test_network_role_key_and_topic_may_be_outputs_of_the_same_program() -> None:
    def program() -> None:
        vpc = aws.ec2.Vpc("mine", cidr_block="10.1.0.0/16")
        subnet = aws.ec2.Subnet("mine", vpc_id=vpc.id, cidr_block="10.1.0.0/24")
        role = aws.iam.Role("mine", name="mine", assume_role_policy="{}")
        given = GIVEN._replace(
            role=role.name,
            key=aws.kms.Key("mine").arn,
            topic=aws.sns.Topic("mine").arn,
        )
        made(planned(**L4), network=Existing(vpc.id, (subnet.id,)), given=given)

    run = world.run(program)
    (group,) = run.of_type("aws:autoscaling/group:Group")
    assert group.inputs["vpcZoneIdentifiers"] == ["mine-id"]
    assert run.find("InstanceProfile job-profile").inputs["role"] == "mine"
    (template,) = run.of_type("LaunchTemplate")
    assert template.inputs["blockDeviceMappings"][0]["ebs"]["kmsKeyId"] == "arn:of:mine"
    assert [topic.name for topic in run.of_type("Topic")] == ["mine"]
    assert [vpc.name for vpc in run.of_type("Vpc")] == ["mine"]


def test_a_renamed_workload_is_an_alias_and_keeps_every_name_in_the_cloud() -> None:
    before, after = world.alone("old", **L4), world.alone("new", **L4, was="old")
    assert "old" in after.find("GpuFleet new").options.aliases
    names = {r.inputs["name"] for r in custom(before) if "name" in r.inputs}
    assert names == {r.inputs["name"] for r in custom(after) if "name" in r.inputs}
    # The engine renames parts with the fleet where their names begin with the fleet's.
    parts = [record for record in after.records if not record.name.startswith("us-east-1")]
    assert all(r.name == "new" or r.name.startswith("new-") for r in parts)
    data = [run.of_type("LaunchTemplate")[0].inputs["userData"] for run in (before, after)]
    assert data[0] == data[1], "a rename changes no machine"


def test_a_fleet_has_its_plans_name() -> None:
    with pytest.raises(InvalidInput, match=r'gputier\.plan\(\.\.\., name="other"\)'):
        world.run(lambda: GpuFleet("other", planned(**L4), given=GIVEN))


def test_the_smaller_parts_stand_alone() -> None:
    def program() -> None:
        plan = planned(**L4, scale={"min": 1, "max": 2}, disk={"kms_key": "create"})
        assert plan.chosen
        place = place_of(plan)
        identity = Identity(place, plan.chosen.identity, bucket="theirs")
        storage = Storage(place, plan.chosen.storage)
        Scaling(place, plan.chosen.scaling, group="theirs")
        pulumi.export("profile", identity.profile_arn)
        pulumi.export("key", storage.key)

    run = world.run(program)
    assert run.outputs == {"profile": "arn:of:job-profile", "key": "arn:of:job-key"}
    assert "arn:aws:s3:::theirs/" in run.find("RolePolicy job-rights").inputs["policy"]
    assert run.find("Policy job-tracking").inputs["autoscalingGroupName"] == "theirs"


def test_every_component_says_that_it_is_complete() -> None:
    run = world.alone(**L4, budget={"usd_per_month": 500})
    components = [record for record in run.records if record.component]
    assert len(components) >= 10
    assert [record.label for record in components if record.outputs is None] == []


def test_logical_names_are_the_published_ones() -> None:
    budget = {"usd_per_month": 500, "action": "scale-to-zero"}
    run = world.alone(**L4, budget=budget, nodes=2)
    published = {
        names_of("aws", "gputier", "test", "job").logical(kind)
        for kind in KINDS["aws"]
        if kind not in ("alarm", "log-group", "placement")
    }
    assert published <= {record.name for record in custom(run)}


def test_a_fleet_tells_what_a_person_wants_to_know() -> None:
    fleet = world.alone(**L4).outputs["fleet"]
    assert fleet["group_name"] == "gputier-test-job"
    assert fleet["usd_per_hour"] == pytest.approx(0.8048)
    assert fleet["usd_per_month"] == pytest.approx(587.504)
    assert "--auto-scaling-group-names gputier-test-job" in fleet["gate_state"]
    assert fleet["connect"]["shell"].startswith("aws ssm start-session --region us-east-1")
    assert fleet["alerts_topic"] == "arn:of:job-alerts"


def test_the_program_of_the_readme_runs(root: Path) -> None:
    text = (root / "README.md").read_text(encoding="utf-8")
    _plan, program = re.findall(r"^```python\n(.*?)^```", text, re.DOTALL | re.MULTILINE)

    def around() -> None:
        made = {
            "vpc": aws.ec2.Vpc("mine", cidr_block="10.1.0.0/16"),
            "subnet": aws.ec2.Subnet("mine", vpc_id="vpc", cidr_block="10.1.0.0/24"),
            "role": aws.iam.Role("mine", name="mine", assume_role_policy="{}"),
            "topic": aws.sns.Topic("mine"),
        }
        exec(program, made)  # noqa: S102 (our own page)

    run = world.run(around)
    assert run.find("Group chat-group").options.protect
    assert run.outputs["shell"].startswith("aws ssm start-session")
