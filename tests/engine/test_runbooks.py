"""The runbooks' own commands, run against a deployed stack: each does what the page says.

Names on the pages are those of the example stacks; the commands are run with this stack's.
"""

from __future__ import annotations

import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
from tests import runbooks
from tests.conftest import ROOT
from tests.engine import ours
from tests.engine.stack import Engine, Stack

PAGES = runbooks.pages(ROOT)


def page(name: str) -> Path:
    return ROOT / "docs" / "runbooks" / f"{name}.md"


def aws(engine: Engine, name: str, operation: str, **names: Any) -> Any:
    """Runs the page's first command of an operation, with this stack's names in it."""
    calls = (runbooks.call(words) for words in runbooks.of(page(name), "aws"))
    call = next(call for call in calls if call.operation == operation)
    assert call.params is not None
    params = {**call.params, **names}
    client = engine.aws.client(call.service, call.region)
    method = re.sub(r"(?<!^)(?=[A-Z])", "_", operation).lower()
    return getattr(client, method)(**params)


def options(name: str, verb: str, at: int = 0) -> list[str]:
    """The options of the page's command of Pulumi's, without the stack's name."""
    found = [words for words in runbooks.of(page(name), "pulumi") if words[0] == verb]
    return [word for word in found[at][1:] if word not in ("--stack", "dev", "prod", "staging")]


def group(engine: Engine) -> Any:
    return ours.group_of(engine, "gputier-dev-job")


def _id(stack: Stack, name: str) -> str:
    (found,) = [r["id"] for r in stack.state() if r["urn"].endswith(f":{name}")]
    return found


def data_volume(engine: Engine, stack: Stack) -> Any:
    """The volume of the lone machine `desk`, as AWS has it."""
    known = [_id(stack, "Volume::desk-data")]
    (found,) = engine.aws.client("ec2").describe_volumes(VolumeIds=known)["Volumes"]
    return found


def of_job(**more: Any) -> dict[str, Any]:
    return {"AutoScalingGroupName": "gputier-dev-job", **more}


@pytest.fixture
def job(engine: Engine, tmp_path: Path) -> Stack:
    folder = ours.project(tmp_path, {"dev": {"workloads": {"job": ours.JOB}}})
    stack = ours.locked(engine, folder)
    stack.up()
    return stack


def test_launches_that_the_breaker_stopped_start_by_the_runbook_and_by_nothing_else(
    engine: Engine, job: Stack
) -> None:
    scaling = engine.aws.client("autoscaling")
    scaling.suspend_processes(**of_job(ScalingProcesses=["Launch"]))
    job.up("--refresh")
    assert [p["ProcessName"] for p in group(engine)["SuspendedProcesses"]] == ["Launch"]
    aws(engine, "rejected-nodes", "ResumeProcesses", **of_job())
    assert group(engine)["SuspendedProcesses"] == []
    assert job.up().changed == {}


def test_a_machine_is_put_aside_taken_back_and_ended(engine: Engine, job: Stack) -> None:
    scaling = engine.aws.client("autoscaling")
    scaling.set_desired_capacity(**of_job(DesiredCapacity=2))
    machine = group(engine)["Instances"][0]["InstanceId"]
    aws(engine, "drain", "EnterStandby", **of_job(InstanceIds=[machine]))
    assert group(engine)["DesiredCapacity"] == 1
    aws(engine, "drain", "ExitStandby", **of_job(InstanceIds=[machine]))
    assert group(engine)["DesiredCapacity"] == 2
    aws(engine, "drain", "TerminateInstanceInAutoScalingGroup", InstanceId=machine)
    assert group(engine)["DesiredCapacity"] == 2, "another one comes for it"
    assert machine not in [one["InstanceId"] for one in group(engine)["Instances"]]


def test_a_group_is_emptied_and_a_deployment_that_looks_puts_back_what_it_manages(
    engine: Engine, job: Stack
) -> None:
    aws(engine, "drain", "UpdateAutoScalingGroup", **of_job())
    assert group(engine)["Instances"] == []
    assert job.up().changed == {}
    job.up("--refresh")
    assert (group(engine)["MinSize"], group(engine)["MaxSize"]) == (1, 3)


def test_a_machine_that_waits_is_let_in_by_hand(engine: Engine, job: Stack) -> None:
    machine = group(engine)["Instances"][0]["InstanceId"]
    hook = "gputier-dev-job-prove"
    hooks = engine.aws.client("autoscaling").describe_lifecycle_hooks(**of_job())
    assert [one["LifecycleHookName"] for one in hooks["LifecycleHooks"]] == [hook]
    named = of_job(LifecycleHookName=hook, InstanceId=machine)
    found = runbooks.of(page("rejected-nodes"), "aws")
    calls = [runbooks.call(words) for words in found if "gputier-dev-chat-prove" in words]
    assert len(calls) == 2, "the name ends as that of the group's own hook does"
    assert all({**(c.params or {}), **named}["LifecycleHookName"] == hook for c in calls)


def test_a_lone_machine_is_made_anew_with_its_volume(engine: Engine, tmp_path: Path) -> None:
    folder = ours.project(tmp_path, {"dev": {"workloads": {"desk": ours.DESK}}})
    stack = ours.locked(engine, folder)
    stack.up()
    volume = _id(stack, "Volume::desk-data")
    aws(engine, "change-the-machine", "CreateSnapshot", VolumeId=volume)
    words = options("change-the-machine", "destroy")
    gone = stack.destroy(*(word.replace("desktops", "desk") for word in words))
    assert gone.changed["Instance desk-machine"] == "delete"
    assert "Volume desk-data" not in gone.changed
    assert stack.up().changed["Instance desk-machine"] == "create"
    found = data_volume(engine, stack)
    assert found["VolumeId"] == volume
    assert found["Attachments"][0]["InstanceId"] == _id(stack, "Instance::desk-machine")


def test_a_lone_machine_goes_to_another_zone_with_what_is_on_its_volume(
    engine: Engine, tmp_path: Path
) -> None:
    folder = ours.project(tmp_path, {"dev": {"workloads": {"desk": ours.DESK}}})
    stack = ours.locked(engine, folder)
    stack.up()
    before = data_volume(engine, stack)
    named = {"VolumeId": before["VolumeId"]}
    snapshot = aws(engine, "change-the-machine", "CreateSnapshot", **named)["SnapshotId"]
    zones = ours.read(stack).entries["desk"].zones
    disk = {**ours.DESK["disk"], "snapshot": snapshot}
    ours.declare(stack, {"desk": {**ours.DESK, "disk": disk, "zones": [zones[1]]}})
    words = options("change-the-machine", "destroy", 1)
    stack.destroy(*(word.replace("desktops", "desk") for word in words))
    stack.up()
    found = data_volume(engine, stack)
    assert found["SnapshotId"] == snapshot
    assert found["AvailabilityZone"] != before["AvailabilityZone"]
    assert found["Attachments"][0]["InstanceId"] == _id(stack, "Instance::desk-machine")
    assert stack.up().changed == {}


def test_nothing_is_left_after_the_last_step_of_tearing_down(engine: Engine, job: Stack) -> None:
    (kept,) = job.outputs()["kept"]
    bucket = kept.split()[1].rstrip(":")
    job.destroy(*options("tear-down", "destroy", 1))
    assert engine.aws.inventory() == [f"bucket {bucket}"]
    assert ["s3", "rb"] in [words[:2] for words in runbooks.of(page("tear-down"), "aws")]
    s3 = engine.aws.client("s3")
    for found in s3.list_objects_v2(Bucket=bucket)["Contents"]:  # what --force is for
        s3.delete_object(Bucket=bucket, Key=found["Key"])
    s3.delete_bucket(Bucket=bucket)
    assert engine.aws.inventory() == []


def known(cli: Path, words: list[str]) -> bool:
    """Whether the real command line takes these options; asked for help it does nothing else."""
    asked = [str(cli), *words, "--help"]
    said = subprocess.run(asked, capture_output=True, text=True, check=False, timeout=60)
    verb = words[1 if words[0] == "stack" else 0]
    named = re.findall(r"^(?:Usage|Aliases):\n(.+)", said.stdout, re.MULTILINE)
    return said.returncode == 0 and any(re.search(rf"\b{verb}\b", line) for line in named)


@pytest.mark.parametrize("name", [found.stem for found in PAGES])
def test_every_command_of_pulumi_is_one_that_it_has(pulumi: Path, name: str) -> None:
    assert all(known(pulumi, words) for words in runbooks.of(page(name), "pulumi"))


@pytest.mark.parametrize("line", ["up --drain", "drain --stack dev", "stack kept"])
def test_a_command_that_pulumi_does_not_have_is_found(pulumi: Path, line: str) -> None:
    assert not known(pulumi, line.split())
