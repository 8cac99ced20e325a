"""What a change does to a stack that runs: our program on a real engine."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.engine import ours
from tests.engine.ours import DESK, JOB, declare, group_of, lock, locked, project, template_of
from tests.engine.stack import Engine, Stack

GROUP = "gputier-dev-job"
BUCKET = f"bucket gputier-gputier-dev-{ours.ACCOUNT}-us-east-1"


def running(engine: Engine, tmp_path: Path, **workloads: Any) -> Stack:
    """A stack `dev` with these workloads, deployed."""
    folder = project(tmp_path, {"dev": {"workloads": workloads}})
    stack = locked(engine, folder)
    stack.up()
    return stack


def test_an_up_never_undoes_scaling_nor_what_the_breaker_stopped(
    engine: Engine, tmp_path: Path
) -> None:
    stack = running(engine, tmp_path, job=JOB)
    scaling = engine.aws.client("autoscaling")
    scaling.set_desired_capacity(AutoScalingGroupName=GROUP, DesiredCapacity=3)
    scaling.suspend_processes(AutoScalingGroupName=GROUP, ScalingProcesses=["Launch"])
    assert stack.up().changed == {}
    assert stack.refresh().changed == {}, "it is nobody's business here"
    declare(stack, {"job": {**JOB, "scale": {**JOB["scale"], "max": 5}}})
    assert stack.up().changed["Group job-group"] == "update"
    found = group_of(engine, GROUP)
    assert (found["DesiredCapacity"], found["MaxSize"]) == (3, 5)
    assert [p["ProcessName"] for p in found["SuspendedProcesses"]] == ["Launch"]


def test_a_change_of_the_declaration_touches_what_it_says_and_no_more(
    engine: Engine, tmp_path: Path
) -> None:
    stack = running(engine, tmp_path, job=JOB, desk=DESK)
    declare(stack, {"job": {**JOB, "scale": {**JOB["scale"], "max": 5}}, "desk": DESK})
    planned = stack.preview()
    assert planned.changed["Group job-group"] == "update"
    assert planned.step("Group job-group").diff == {"maxSize": "update"}
    assert not any("desk" in label for label in planned.changed), "the other fleet is not touched"
    assert set(planned.changed.values()) == {"update"}
    assert stack.up().changed == planned.changed
    assert group_of(engine, GROUP)["MaxSize"] == 5
    assert stack.up().changed == {}


def test_a_declaration_that_the_lock_does_not_know_is_refused_with_its_line(
    engine: Engine, tmp_path: Path
) -> None:
    folder = project(tmp_path, {"dev": {"workloads": {"job": JOB}}})
    stack = locked(engine, folder)
    declare(stack, {"job": {**JOB, "gpu": {"memory": "20GB"}}}, relock=False)
    refused = stack.preview(fails=True)
    assert "gputier lock dev" in refused.said
    assert "Pulumi.dev.yaml" in refused.said
    assert "Traceback" not in refused.said
    lock(stack)
    assert stack.preview().changed, "the digest of the engine's config is the command's"
    ours.lock_of(stack).unlink()
    assert "there is no lock yet" in stack.preview(fails=True).said


def test_a_new_image_in_the_lock_is_for_new_machines_unless_a_rollout_is_asked_for(
    engine: Engine, tmp_path: Path
) -> None:
    stack = running(engine, tmp_path, job={**JOB, "rollout": "new-machines"}, desk=DESK)
    before = {m["InstanceId"] for m in group_of(engine, GROUP)["Instances"]}
    ours.pin(stack, ours.NEWER)
    upgraded = stack.up()
    assert upgraded.changed == {
        "LaunchTemplate job-template": "update",
        "Group job-group": "update",
    }, "a machine that somebody works on keeps its image"
    found = group_of(engine, GROUP)
    assert template_of(engine, found)["ImageId"] == ours.NEWER
    assert {m["InstanceId"] for m in found["Instances"]} == before, "what runs goes on running"
    assert engine.aws.kept("instance-refresh", "us-east-1") == {}

    declare(stack, {"job": {**JOB, "rollout": "rolling"}, "desk": DESK})
    stack.up()
    ours.pin(stack, ours.AMI)
    stack.up()
    refresh = engine.aws.kept("instance-refresh", "us-east-1")[GROUP]
    assert refresh["strategy"] == "Rolling"
    assert refresh["preferences"]["autoRollback"] is True
    assert stack.up().changed == {}


def test_another_network_replaces_the_fleet_s_security_group_and_says_why(
    engine: Engine, tmp_path: Path
) -> None:
    stack = running(engine, tmp_path, job=JOB)
    vpc, subnets = adoptable(engine)
    theirs = {f"vpc {vpc}", *(f"subnet {subnet}" for subnet in subnets)}
    declare(stack, {"job": {**JOB, "network": {"vpc": vpc}}})
    moved = stack.up()
    group = moved.step("SecurityGroup job-security-group")
    assert (group.op, group.replaced_for) == ("replace", ("vpcId",))
    assert moved.changed["Group job-group"] == "update", "its machines move as they are replaced"
    assert moved.changed["Vpc us-east-1-vpc"] == "delete"
    found = group_of(engine, GROUP)
    assert set(found["VPCZoneIdentifier"].split(",")) <= set(subnets)
    assert stack.up().changed == {}
    assert stack.refresh().changed == {}
    stack.destroy()
    left = set(engine.aws.inventory())
    assert left == {BUCKET, *theirs}, "theirs is not ours to delete"


def adoptable(engine: Engine) -> tuple[str, list[str]]:
    """A network that somebody has, with a subnet in every zone."""
    ec2 = engine.aws.client("ec2")
    vpc = ec2.create_vpc(CidrBlock="10.9.0.0/16")["Vpc"]["VpcId"]
    zones = ec2.describe_availability_zones()["AvailabilityZones"]
    subnets = [
        ec2.create_subnet(
            VpcId=vpc, CidrBlock=f"10.9.{index}.0/24", AvailabilityZoneId=zone["ZoneId"]
        )["Subnet"]["SubnetId"]
        for index, zone in enumerate(zones)
    ]
    return vpc, subnets


def test_a_renamed_workload_changes_nothing(engine: Engine, tmp_path: Path) -> None:
    stack = running(engine, tmp_path, job=JOB, desk=DESK)
    declare(stack, {"chat": {**JOB, "was": "job"}, "bench": {**DESK, "was": "desk"}})
    assert stack.preview().changed == {}
    renamed = stack.up()
    assert renamed.changed == {}
    assert renamed.outputs["chat"]["group_name"] == GROUP
    assert stack.refresh().changed == stack.up().changed == {}
    stack.destroy()
    assert engine.aws.inventory() == [BUCKET]


def test_an_image_that_aws_does_not_know_is_refused_for_each_fleet_before_anything_is_made(
    engine: Engine, tmp_path: Path
) -> None:
    folder = project(tmp_path, {"dev": {"workloads": {"job": JOB, "desk": DESK}}})
    stack = locked(engine, folder)
    ours.pin(stack, "/aws/service/none")
    refused = stack.up(fails=True).said
    assert refused.startswith("error: Pulumi.dev.yaml: 2 problems")
    assert refused.count("/aws/service/none cannot be looked up in us-east-1") == 2
    assert "`software.image: ami-…`" in refused
    assert engine.calls("Create") == []


def test_a_deployment_that_fails_in_the_middle_goes_on_where_it_stopped(
    engine: Engine, tmp_path: Path
) -> None:
    stack = locked(engine, project(tmp_path, {"dev": {"workloads": {"desk": DESK}}}))
    full = "InsufficientInstanceCapacity: no g4dn in this zone"
    engine.fail_once("aws:ec2/instance:Instance", "create", full)
    broken = stack.up(fails=True)
    assert full in broken.said
    assert "Traceback" not in broken.said
    # Declared only now: what one deployment makes at the same time fails in either order.
    declare(stack, {"desk": DESK, "job": JOB})
    engine.fail_once("aws:autoscaling/group:Group", "create", "a wait ran out", after=True)
    assert "a wait ran out" in stack.up(fails=True).said

    mended = stack.up()
    assert mended.changed["Group job-group"] == "update", "it was made: it is not made twice"
    assert stack.up().changed == {}
    assert stack.refresh().changed == {}
    assert group_of(engine, GROUP)["DesiredCapacity"] == 1


def test_half_a_stack_can_be_destroyed(engine: Engine, tmp_path: Path) -> None:
    job = {**JOB, "identity": {"reports": "remove"}}
    folder = project(tmp_path, {"dev": {"workloads": {"job": job}}})
    stack = locked(engine, folder)
    engine.fail_once("aws:autoscaling/group:Group", "create", "a wait ran out", after=True)
    stack.up(fails=True)
    store = engine.aws.client("s3")
    bucket = BUCKET.split()[1]
    store.put_object(Bucket=bucket, Key="reports/job/i-1/2026-healthy.json", Body=b"{}")
    stack.destroy()
    assert engine.aws.inventory() == [], "reports that are not kept go with the bucket"


def test_two_environments_live_side_by_side_in_one_account(engine: Engine, tmp_path: Path) -> None:
    job = {**JOB, "identity": {"reports": "remove"}}
    folder = project(
        tmp_path,
        {name: {"workloads": {"job": job}, "environment": "dev"} for name in ("dev", "test")},
    )
    dev, test = locked(engine, folder, "dev"), locked(engine, folder, "test")
    groups = [stack.up().outputs["job"]["group_name"] for stack in (dev, test)]
    assert groups == ["gputier-dev-job", "gputier-test-job"]
    dev.destroy()
    assert test.refresh().changed == test.up().changed == {}
    test.destroy()
    assert engine.aws.inventory() == []


def test_nothing_that_is_declared_replaces_somebody_s_machine_or_the_data_on_it(
    engine: Engine, tmp_path: Path
) -> None:
    stack = running(engine, tmp_path, desk=DESK)
    other_disk = {"data": "80GB", "snapshot": "snap-0123456789abcdef0", "kms_key": "create"}
    declare(
        stack,
        {
            "desk": {
                **DESK,
                "gpu": {"memory": "40GB"},
                "disk": other_disk,
                "network": {"egress": "public"},
                "zones": ["use1-az6"],
            }
        },
    )
    planned = stack.preview()
    assert "replace" not in planned.changed.values()
    assert planned.step("Volume desk-data").diff == {"size": "update"}, "it grows where it is"
    assert "Instance desk-machine" not in planned.changed
