"""A stack from its first preview to nothing, on a real engine."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from tests.engine.aws.types import TYPES
from tests.engine.conftest import PROGRAMS
from tests.engine.stack import Engine, Stack


def fleet(engine: Engine, name: str = "dev", **config: str) -> Stack:
    values = {"owner": "ann", **{key.replace("_", "-"): value for key, value in config.items()}}
    secrets = {"boot": "IyEvYmluL3NoCg=="}
    return engine.stack(PROGRAMS / "fleet", name, config=values, secrets=secrets)


FLEET = {
    "Vpc net",
    "Subnet net",
    "LaunchTemplate machines",
    "Group machines",
    "LifecycleHook gate",
    "Instance desk",
}


def test_every_type_is_made_changed_in_place_and_deleted(engine: Engine) -> None:
    stack = engine.stack(PROGRAMS / "everything", secrets={"token": "hush"})
    planned = stack.preview()
    assert {step.type for step in planned.steps} >= set(TYPES), "a type that nothing tries"
    made = stack.up()
    assert made.changed == planned.changed, "the preview told what happens"
    assert stack.up().changed == {}
    assert stack.refresh().changed == {}, "what is read back is what was written"

    stack.configure({"owner": "bob"})
    tagged = stack.up()
    assert set(tagged.changed.values()) == {"update"}
    assert len(tagged.changed) >= 20
    assert stack.refresh().changed == {}
    assert stack.up().changed == {}

    assert engine.aws.inventory() != []
    stack.destroy()
    assert engine.aws.inventory() == []


def test_what_is_made_is_really_there(engine: Engine) -> None:
    made = fleet(engine).up()
    assert set(made.changed) == FLEET
    scaling = engine.aws.client("autoscaling")
    (group,) = scaling.describe_auto_scaling_groups()["AutoScalingGroups"]
    assert group["AutoScalingGroupName"] == made.outputs["group"]
    (hook,) = scaling.describe_lifecycle_hooks(AutoScalingGroupName=made.outputs["group"])[
        "LifecycleHooks"
    ]
    assert hook["HeartbeatTimeout"] == 900
    assert ("info", "a fleet of ann") in made.messages, "what a program prints is shown"
    assert 0 < made.seconds < 300


def test_a_preview_touches_nothing_and_leaves_unknown_what_only_aws_can_tell(
    engine: Engine,
) -> None:
    stack = fleet(engine)
    planned = stack.preview()
    assert set(planned.changed) == FLEET
    assert planned.counts == {"create": 7}, "six of ours and the stack"
    assert engine.calls("Create", "Update", "Delete") == []
    assert engine.aws.inventory() == []
    unknown = "04da6b54-80e4-46f7-96ec-b56ff0331ba9"
    assert planned.step("Subnet net").inputs["vpcId"] == unknown
    assert planned.step("Group machines").inputs["launchTemplate"]["version"] == unknown


def test_a_change_in_place_touches_what_it_says_and_no_more(engine: Engine) -> None:
    stack = fleet(engine)
    stack.up()
    stack.configure({"grace": "900"})
    planned = stack.preview()
    assert planned.changed == {"Group machines": "update"}
    assert planned.step("Group machines").diff == {"healthCheckGracePeriod": "update"}
    assert stack.up().changed == planned.changed
    (group,) = engine.aws.client("autoscaling").describe_auto_scaling_groups()["AutoScalingGroups"]
    assert group["HealthCheckGracePeriod"] == 900
    assert [call.method for call in engine.calls("Update")] == ["Update"]


def test_a_new_version_of_the_template_is_unknown_in_a_preview_and_reaches_the_group(
    engine: Engine,
) -> None:
    stack = fleet(engine)
    name = stack.up().outputs["group"]
    stack.configure(secrets={"boot": "IyEvYmluL2Jhc2gK"})
    planned = stack.preview()
    assert planned.changed == {"LaunchTemplate machines": "update", "Group machines": "update"}
    stack.up()
    scaling = engine.aws.client("autoscaling")
    (group,) = scaling.describe_auto_scaling_groups(AutoScalingGroupNames=[name])[
        "AutoScalingGroups"
    ]
    assert group["LaunchTemplate"]["Version"] == "2"
    assert stack.up().changed == {}


def test_a_change_that_replaces_says_why_and_what_follows_it(engine: Engine) -> None:
    stack = fleet(engine)
    stack.up()
    stack.configure({"cidr": "10.1.0.0/16"})
    planned = stack.preview()
    network = planned.step("Vpc net")
    assert (network.op, network.replaced_for) == ("replace", ("cidrBlock",))
    assert network.diff == {"cidrBlock": "update-replace"}
    assert planned.changed["Subnet net"] == planned.changed["Instance desk"] == "replace"
    assert planned.changed["Group machines"] == "update", "its subnets change in place"
    assert "LaunchTemplate machines" not in planned.changed
    stack.up()
    (vpc,) = engine.aws.client("ec2").describe_vpcs(
        Filters=[{"Name": "tag:owner", "Values": ["ann"]}]
    )["Vpcs"]
    assert vpc["CidrBlock"] == "10.1.0.0/16", "the old one is gone"
    assert stack.up().changed == {}


def test_user_data_replaces_a_machine_only_where_it_is_told_to(engine: Engine) -> None:
    stack = fleet(engine, boot_text="#!/bin/sh\n")
    stack.up()
    stack.configure({"boot-text": "#!/bin/bash\n"})
    assert stack.up().changed == {"Instance desk": "update"}
    assert stack.up().changed == {}


def test_two_stacks_of_a_project_live_side_by_side(engine: Engine) -> None:
    dev, prod = fleet(engine, "dev"), fleet(engine, "prod")
    names = {stack.up().outputs["group"] for stack in (dev, prod)}
    assert len(names) == 2, "names that a program leaves out do not meet"
    dev.destroy()
    assert prod.up().changed == {}
    prod.destroy()
    assert engine.aws.inventory() == []


def test_a_secret_stays_one_in_previews_outputs_and_state(engine: Engine) -> None:
    stack = fleet(engine)
    stack.up()
    assert stack.outputs()["boot"] == "[secret]"
    assert stack.outputs(secrets=True)["boot"] == "IyEvYmluL3NoCg=="
    assert "IyEvYmluL3NoCg==" not in str(stack.state())
    assert "IyEvYmluL3NoCg==" not in str(stack.preview_json())


def test_a_renamed_resource_with_an_alias_changes_nothing(
    engine: Engine, program: Callable[[str], Path]
) -> None:
    folder = program("aws.ec2.Vpc('net', cidr_block='10.0.0.0/16')")
    stack = engine.stack(folder)
    stack.up()
    (stack.project / "__main__.py").write_text(
        "import pulumi\nimport pulumi_aws as aws\n"
        "options = pulumi.ResourceOptions(aliases=[pulumi.Alias(name='net')])\n"
        "aws.ec2.Vpc('network', cidr_block='10.0.0.0/16', opts=options)\n",
        encoding="utf-8",
    )
    assert stack.up().changed == {}


def test_providers_may_differ_in_region_and_add_their_tags(
    engine: Engine, program: Callable[[str], Path]
) -> None:
    stack = engine.stack(
        program("""
        far = aws.Provider("far", region="eu-west-1", default_tags={"tags": {"team": "ml"}})
        near = aws.ec2.Vpc("near", cidr_block="10.0.0.0/16")
        there = pulumi.ResourceOptions(provider=far)
        vpc = aws.ec2.Vpc("far", cidr_block="10.1.0.0/16", tags={"owner": "ann"}, opts=there)
        one = aws.ec2.Vpc("one", cidr_block="10.2.0.0/16", region="us-west-2")
        pulumi.export("arns", [near.arn, vpc.arn, one.arn])
        pulumi.export("tags", vpc.tags_all)
        """)
    )
    made = stack.up()
    assert [arn.split(":")[3] for arn in made.outputs["arns"]] == [
        "us-east-1",
        "eu-west-1",
        "us-west-2",
    ]
    assert made.outputs["tags"] == {"owner": "ann", "team": "ml"}
    assert stack.refresh().changed == stack.up().changed == {}
    stack.destroy()
    assert engine.aws.inventory() == []


def test_what_somebody_else_made_can_be_found_and_used(
    engine: Engine, program: Callable[[str], Path]
) -> None:
    ec2 = engine.aws.client("ec2")
    vpc = ec2.create_vpc(CidrBlock="10.9.0.0/16")["Vpc"]["VpcId"]
    ec2.create_tags(Resources=[vpc], Tags=[{"Key": "use", "Value": "gpu"}])
    subnet = ec2.create_subnet(VpcId=vpc, CidrBlock="10.9.0.0/24")["Subnet"]["SubnetId"]
    stack = engine.stack(
        program("""
        vpc = aws.ec2.get_vpc(tags={"use": "gpu"})
        subnets = aws.ec2.get_subnets(filters=[{"name": "vpc-id", "values": [vpc.id]}])
        offered = aws.ec2.get_instance_type_offerings(
            location_type="availability-zone-id",
            filters=[{"name": "instance-type", "values": ["p4d.24xlarge"]}],
        )
        read = aws.ec2.Vpc.get("read", vpc.id)
        aws.ec2.SecurityGroup("in-it", vpc_id=read.id)
        pulumi.export("found", [vpc.id, subnets.ids, read.cidr_block, len(offered.locations) > 0])
        """)
    )
    assert stack.up().outputs["found"] == [vpc, [subnet], "10.9.0.0/16", True]
    stack.destroy()
    assert engine.aws.inventory() == [f"subnet {subnet}", f"vpc {vpc}"], "it is not ours to delete"
