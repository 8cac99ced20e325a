"""What somebody did by hand, what failed in the middle, and how the next run copes."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from tests.engine.stack import Engine, PulumiFailed
from tests.engine.test_life_cycle import FLEET, fleet

GROUP = "aws:autoscaling/group:Group"


def test_a_refresh_finds_what_was_changed_by_hand_and_up_puts_it_back(engine: Engine) -> None:
    stack = fleet(engine)
    name = stack.up().outputs["group"]
    scaling, ec2 = engine.aws.client("autoscaling"), engine.aws.client("ec2")
    scaling.update_auto_scaling_group(AutoScalingGroupName=name, MaxSize=40)
    (vpc,) = ec2.describe_vpcs(Filters=[{"Name": "tag:owner", "Values": ["ann"]}])["Vpcs"]
    ec2.create_tags(Resources=[vpc["VpcId"]], Tags=[{"Key": "owner", "Value": "eve"}])

    assert stack.up().changed == {}, "without a refresh the record is what counts"
    found = stack.refresh()
    assert found.changed == {"Group machines": "update", "Vpc net": "update"}
    assert found.step("Group machines").diff == {"maxSize": "update"}
    assert found.step("Vpc net").outputs["tags"] == {"owner": "eve"}
    assert stack.up().changed == {"Group machines": "update", "Vpc net": "update"}
    (group,) = scaling.describe_auto_scaling_groups()["AutoScalingGroups"]
    assert group["MaxSize"] == 4


def test_what_was_deleted_by_hand_comes_back(engine: Engine) -> None:
    stack = fleet(engine)
    name = stack.up().outputs["group"]
    where = {"AutoScalingGroupName": name, "LifecycleHookName": "gate"}
    engine.aws.client("autoscaling").delete_lifecycle_hook(**where)
    assert stack.refresh().changed == {"LifecycleHook gate": "delete"}
    assert stack.up().changed == {"LifecycleHook gate": "create"}


def test_a_size_that_scaling_set_is_left_alone(engine: Engine) -> None:
    stack = fleet(engine)
    name = stack.up().outputs["group"]
    scaling = engine.aws.client("autoscaling")
    scaling.set_desired_capacity(AutoScalingGroupName=name, DesiredCapacity=3)
    assert stack.up().changed == {}
    stack.refresh()
    stack.configure({"grace": "600"})
    assert stack.up().changed == {"Group machines": "update"}
    (group,) = scaling.describe_auto_scaling_groups()["AutoScalingGroups"]
    assert (group["DesiredCapacity"], len(group["Instances"])) == (3, 3)


def test_after_a_failure_in_the_middle_the_next_run_makes_the_rest(engine: Engine) -> None:
    stack = fleet(engine)
    engine.fail_once(GROUP, "create", "you have reached a limit")
    with pytest.raises(PulumiFailed, match="you have reached a limit") as failure:
        stack.up()
    done = failure.value.result
    assert done.code != 0
    made = {label for label, op in done.changed.items() if op == "create"}
    assert "Vpc net" in made
    rest = stack.up().changed
    assert "Group machines" in rest
    assert "LifecycleHook gate" in rest, "it waited for the group"
    assert "Vpc net" not in rest, "what was made is not made again"
    assert stack.up().changed == {}
    assert set(stack.destroy().changed) == FLEET
    assert engine.aws.inventory() == []


def test_what_was_made_before_its_wait_failed_is_kept_and_finished(engine: Engine) -> None:
    stack = fleet(engine)
    engine.fail_once(GROUP, "create", "timeout while waiting for capacity", after=True)
    failed = stack.up(fails=True)
    assert any("timeout while waiting" in text for text in failed.errors)
    scaling = engine.aws.client("autoscaling")
    assert len(scaling.describe_auto_scaling_groups()["AutoScalingGroups"]) == 1
    again = stack.up()
    assert again.changed["Group machines"] == "update", "the half-made one, not a second one"
    assert stack.up().changed == {}


def test_a_half_made_group_does_not_block_the_way_out(engine: Engine) -> None:
    stack = fleet(engine)
    engine.fail_once(GROUP, "create", "timeout while waiting for capacity", after=True)
    stack.up(fails=True)
    stack.destroy()
    assert engine.aws.inventory() == []


def test_a_destroy_that_fails_can_be_run_again(engine: Engine) -> None:
    stack = fleet(engine)
    stack.up()
    engine.fail_once("aws:ec2/subnet:Subnet", "delete", "DependencyViolation")
    assert stack.destroy(fails=True).errors != []
    assert engine.aws.inventory() != []
    stack.destroy()
    assert engine.aws.inventory() == []


def test_a_bucket_that_holds_something_stays_unless_it_is_told_to_lose_it(
    engine: Engine, program: Callable[[str], Path]
) -> None:
    stack = engine.stack(
        program("""
        force = pulumi.Config().get_bool("force") or False
        pulumi.export("name", aws.s3.Bucket("reports", force_destroy=force).bucket)
        """)
    )
    name = stack.up().outputs["name"]
    engine.aws.client("s3").put_object(Bucket=name, Key="report.json", Body=b"{}")
    assert "BucketNotEmpty" in stack.destroy(fails=True).said
    stack.configure({"force": "true"})
    assert stack.up().changed == {"Bucket reports": "update"}
    stack.destroy()
    assert engine.aws.inventory() == []


def test_expecting_success_of_what_fails_is_an_error_and_so_is_the_reverse(
    engine: Engine, program: Callable[[str], Path]
) -> None:
    stack = engine.stack(program("raise pulumi.RunError('this cannot be')"))
    with pytest.raises(PulumiFailed, match="this cannot be"):
        stack.preview()
    (stack.project / "__main__.py").write_text("", encoding="utf-8")
    with pytest.raises(PulumiFailed):
        stack.preview(fails=True)
