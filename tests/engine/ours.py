"""Our own program on the engine: a project with stacks, and the lock of each as the command writes
it.

    folder = project(tmp_path, {"dev": {"workloads": {"chat": {...}}}})
    stack = locked(engine, folder, "dev")
    stack.up()
    declare(stack, {"chat": {...}})    # another declaration, and its lock
"""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from contextlib import chdir
from dataclasses import replace
from pathlib import Path
from typing import Any

import yaml
from tests.conftest import ROOT
from tests.engine.stack import Engine, Stack
from tests.engine.wire import Props

from gputier.cli.__main__ import main
from gputier.lock import Lock, read_lock, write_lock

AMI, NEWER = "ami-0123456789abcdef0", "ami-0fedcba9876543210"
ACCOUNT = "123456789012"
GPU = {"memory": "16GB"}
#: A group that may grow, and a machine of somebody's own.
JOB: Mapping[str, Any] = {
    "purpose": "inference",
    "gpu": GPU,
    "scale": {"min": 1, "max": 3, "metric": "gpu_utilization", "target": 60},
}
DESK: Mapping[str, Any] = {"purpose": "development", "gpu": GPU, "disk": {"data": "50GB"}}


def project(folder: Path, stacks: Mapping[str, Props]) -> Path:
    """A project with our program; a stack's config is given without `gputier:`, and what every
    stack needs is filled in."""
    made = folder / "project"
    (made / "stacks").mkdir(parents=True)
    shutil.copy(ROOT / "Pulumi.yaml", made)
    shutil.copy(ROOT / "stacks" / "__main__.py", made / "stacks")
    for name, config in stacks.items():
        full = {"environment": "dev", "defaults": AWS_ALONE, **config}
        text = yaml.safe_dump({"config": {f"gputier:{key}": v for key, v in full.items()}})
        (made / "stacks" / f"Pulumi.{name}.yaml").write_text(text, encoding="utf-8")
    return made


AWS_ALONE = {"clouds": ["aws"], "regions": {"aws": ["us-east-1"]}}


def locked(engine: Engine, folder: Path, name: str = "dev") -> Stack:
    """A stack of the project with a new lock."""
    stack = engine.stack(folder, name)
    # The lock that came along pins the node bundle of the day it was written.
    lock_of(stack).unlink(missing_ok=True)
    lock(stack)
    return stack


def lock(stack: Stack, *arguments: str) -> None:
    """`gputier lock`, where a person calls it; AWS has an image of every family that is named."""
    with chdir(stack.project):
        assert main(("lock", stack.name, *arguments)) == 0
    for entry in read(stack).entries.values():
        stack.engine.aws.publish(entry.image, AMI, entry.region)


def lock_of(stack: Stack) -> Path:
    return stack.project / "stacks" / f"gputier.{stack.name}.lock"


def read(stack: Stack) -> Lock:
    found = read_lock(lock_of(stack), stack.name)
    assert found
    return found


def pin(stack: Stack, image: str) -> None:
    """The lock with this image for every workload, as `gputier lock --images` pins it."""
    entries = {name: replace(entry, image=image) for name, entry in read(stack).entries.items()}
    write_lock(lock_of(stack), Lock(stack.name, entries))


def declare(stack: Stack, workloads: Mapping[str, Any], *, relock: bool = True) -> None:
    """Other workloads in the stack's file, and in its lock."""
    file = stack.project / "stacks" / f"Pulumi.{stack.name}.yaml"
    found: Props = yaml.safe_load(file.read_text(encoding="utf-8"))
    found["config"]["gputier:workloads"] = dict(workloads)
    file.write_text(yaml.safe_dump(found), encoding="utf-8")
    if relock:
        lock(stack)


def group_of(engine: Engine, name: str, region: str = "us-east-1") -> Props:
    """An Auto Scaling group as AWS has it."""
    client = engine.aws.client("autoscaling", region)
    (found,) = client.describe_auto_scaling_groups(AutoScalingGroupNames=[name])[
        "AutoScalingGroups"
    ]
    return found


def template_of(engine: Engine, group: Props, region: str = "us-east-1") -> Props:
    """The launch template's data in the version that a group's machines start with."""
    mixed: Props = group.get("MixedInstancesPolicy") or {}
    named = mixed.get("LaunchTemplate", {}).get("LaunchTemplateSpecification")
    named = named or group["LaunchTemplate"]
    client = engine.aws.client("ec2", region)
    (found,) = client.describe_launch_template_versions(
        LaunchTemplateId=named["LaunchTemplateId"], Versions=[named["Version"]]
    )["LaunchTemplateVersions"]
    return found["LaunchTemplateData"]
