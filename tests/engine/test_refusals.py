"""What the stand-in does not know, or AWS would not take, is an error: in the preview already."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.engine.aws.cloud import Aws
from tests.engine.provider import Refused, Target
from tests.engine.schema import check
from tests.engine.stack import Engine
from tests.engine.wire import UNKNOWN, Props

GROUP: Props = {"name": "g", "minSize": 0, "maxSize": 1, "vpcZoneIdentifiers": ["subnet-1"]}
TEMPLATE: Props = {"name": "t"}
TEXT_OF_70 = "r" * 70


@pytest.fixture
def aws() -> Iterator[Aws]:
    found = Aws()
    yield found
    found.stop()


def refused(aws: Aws, token: str, inputs: Props) -> list[str]:
    """What the provider's Check would say."""
    problems = check(token, inputs) or aws.check(Target(token, "it", "urn", {}), inputs)
    return [f"{prop}: {why}" for prop, why in problems]


@pytest.mark.parametrize(
    ("token", "inputs", "why"),
    [
        (
            "aws:ec2/launchTemplate:LaunchTemplate",
            {**TEMPLATE, "blockDeviceMappings": [{"ebs": {"volum_size": 1}}]},
            "blockDeviceMappings[0].ebs.volum_size: unknown property",
        ),
        (
            "aws:ec2/launchTemplate:LaunchTemplate",
            {**TEMPLATE, "instanceType": "p4d.24xlrge"},
            "did you mean 'p4d.24xlarge'?",
        ),
        ("aws:ec2/subnet:Subnet", {"vpcId": "vpc-1", "cidrBlock": 10}, "expected a text, got 10"),
        ("aws:ec2/subnet:Subnet", {"cidrBlock": "10.0.0.0/24"}, "vpcId: missing required"),
        (
            "aws:iam/role:Role",
            {"name": TEXT_OF_70, "assumeRolePolicy": "{}"},
            "70 is more than the 64",
        ),
        ("aws:iam/role:Role", {"name": "a role", "assumeRolePolicy": "{}"}, "does not match"),
        (
            "aws:autoscaling/group:Group",
            {**GROUP, "availabilityZones": ["a"], "launchTemplate": {"id": "lt-1"}},
            "availabilityZones: conflicts with vpcZoneIdentifiers",
        ),
        ("aws:autoscaling/group:Group", GROUP, "exactly one of launchConfiguration"),
        (
            "aws:autoscaling/group:Group",
            {
                **GROUP,
                "launchTemplate": {"id": "lt-1"},
                "initialLifecycleHooks": [{"name": "a hook", "lifecycleTransition": "x"}],
            },
            "initialLifecycleHooks[0]: 'a hook' does not match",
        ),
        (
            "aws:autoscaling/schedule:Schedule",
            {"autoscalingGroupName": "g", "scheduledActionName": "n", "recurrence": "nightly"},
            "no cron expression",
        ),
        ("aws:ebs/volume:Volume", {"availabilityZone": "a"}, "at least one of size, snapshotId"),
        (
            "aws:ebs/volume:Volume",
            {"availabilityZone": "a", "size": 1, "type": "gp2", "throughput": 250},
            "only a gp3 volume",
        ),
        (
            "aws:ec2/vpc:Vpc",
            {"cidrBlock": "10.0.0.0/16", "ipv6CidrBlock": "::/56"},
            "needs ipv6IpamPoolId",
        ),
        ("aws:s3/bucket:Bucket", {"versioning": {"enabled": True}}, "a resource of its own"),
        ("aws:ec2/natGateway:NatGateway", {"subnetId": "s"}, "needs an elastic IP"),
        (
            "aws:ec2/vpcEndpoint:VpcEndpoint",
            {"vpcId": "vpc-1", "serviceName": "com.amazonaws.eu-west-1.s3"},
            "not a service of us-east-1",
        ),
        (
            "aws:scheduler/schedule:Schedule",
            {
                "name": "s",
                "flexibleTimeWindow": {"mode": "OFF"},
                "scheduleExpression": "every evening",
                "target": {"arn": "a", "roleArn": "arn:aws:iam::123456789012:role/r"},
            },
            "neither cron, rate nor at",
        ),
        ("aws:eks/addon:Addon", {"addonName": "a", "clusterName": "c"}, "is not in the stand-in"),
        ("aws:ec2/wpc:Wpc", {}, "the installed SDK has no resource type"),
        ("aws:ec2/vpc:Vpc", {"cidrBlock": "10.0.0.0/16", "ipv6NetmaskLength": 56}, "needs"),
    ],
)
def test_inputs_are_refused(aws: Aws, token: str, inputs: Props, why: str) -> None:
    found = refused(aws, token, inputs)
    assert any(why in text for text in found), found


def test_values_that_a_preview_does_not_know_pass_every_check(aws: Aws) -> None:
    unknown = {**dict.fromkeys(GROUP, UNKNOWN), "launchTemplate": UNKNOWN, "tags": UNKNOWN}
    assert refused(aws, "aws:autoscaling/group:Group", unknown) == []


@pytest.mark.parametrize(
    ("token", "args", "why"),
    [
        ("aws:ec2/getKeyPair:getKeyPair", {}, "answers no aws:ec2/getKeyPair"),
        ("aws:ssm/getParameter:getParameter", {"name": "/gone"}, "couldn't find resource: /gone"),
        ("aws:ec2/getAmi:getAmi", {"owners": ["999999999999"]}, "returned no results"),
        ("aws:ec2/getAmi:getAmi", {"owners": ["amazon"]}, "more than one result"),
        ("aws:ec2/getVpc:getVpc", {"tags": {"use": "none"}}, "no matching EC2 VPC found"),
        (
            "aws:index/getAvailabilityZones:getAvailabilityZones",
            {"filters": [{"name": "colour", "values": ["blue"]}]},
            "no filter colour",
        ),
    ],
)
def test_look_ups_are_refused(aws: Aws, token: str, args: Props, why: str) -> None:
    with pytest.raises(Refused, match=why):
        aws.invoke(token, args, {})


def test_a_parameter_of_aws_s_own_can_be_published(aws: Aws) -> None:
    name = "/aws/service/of-a-vendor/image"
    aws.publish(name, "ami-1", "eu-west-1")
    found = aws.invoke("aws:ssm/getParameter:getParameter", {"name": name}, {"region": "eu-west-1"})
    assert (found["value"], found["type"]) == ("ami-1", "String")
    with pytest.raises(Refused, match="couldn't find"):
        aws.invoke("aws:ssm/getParameter:getParameter", {"name": name}, {})


def test_a_refusal_stops_the_preview_with_its_words(
    engine: Engine, program: Callable[[str], Path]
) -> None:
    stack = engine.stack(
        program("aws.ec2.LaunchTemplate('t', block_device_mappings=[{'ebs': {'volum_size': 1}}])")
    )
    assert "blockDeviceMappings[0].ebs.volum_size" in stack.preview(fails=True).said


def test_a_look_up_without_an_answer_stops_the_preview_with_its_words(
    engine: Engine, program: Callable[[str], Path]
) -> None:
    stack = engine.stack(program("aws.ec2.get_key_pair(key_name='k')"))
    assert "answers no aws:ec2/getKeyPair:getKeyPair" in stack.preview(fails=True).said


def test_a_provider_is_checked_like_a_resource(
    engine: Engine, program: Callable[[str], Path]
) -> None:
    stack = engine.stack(program("aws.Provider('p', default_tags={'tagz': {}})"))
    assert "defaultTags.tagz" in stack.preview(fails=True).said


def test_what_only_aws_can_tell_fails_when_it_is_made(
    engine: Engine, program: Callable[[str], Path]
) -> None:
    stack = engine.stack(
        program("""
        aws.ec2.Subnet("s", vpc_id="vpc-1", cidr_block="10.0.0.0/24")
        aws.iam.Policy("p", policy="{}")
        aws.iam.RolePolicyAttachment("a", role="gone", policy_arn="arn:aws:iam::aws:policy/x")
        aws.autoscaling.LifecycleHook(
            "h",
            autoscaling_group_name="gone",
            lifecycle_transition="autoscaling:EC2_INSTANCE_LAUNCHING",
        )
        """)
    )
    stack.preview()
    said = stack.up("--continue-on-error", fails=True).said
    for why in ("InvalidVpcID.NotFound", "MalformedPolicyDocument", "NoSuchEntity", "named gone"):
        assert why in said, said


def test_a_mistake_that_the_program_reports_is_text_and_a_bug_is_a_traceback(
    engine: Engine, program: Callable[[str], Path]
) -> None:
    stack = engine.stack(program("raise pulumi.RunError('error: this is how it reads')"))
    failed = stack.preview(fails=True)
    assert "error: this is how it reads" in failed.said
    assert "Traceback" not in failed.said
    (stack.project / "__main__.py").write_text("1 / 0", encoding="utf-8")
    assert "Traceback" in stack.preview(fails=True).said


def test_a_change_that_nobody_looked_up_is_refused(
    engine: Engine, program: Callable[[str], Path]
) -> None:
    stack = engine.stack(
        program("""
        chosen = pulumi.Config().get("nested")
        options = {"nested_virtualization": chosen} if chosen else None
        aws.ec2.LaunchTemplate("t", cpu_options=options)
        """)
    )
    stack.up()
    stack.configure({"nested": "enabled"})
    assert "known in part only" in stack.preview(fails=True).said
