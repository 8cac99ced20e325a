"""Our program on a real engine with Google's stand-in: the same stack file with other clouds."""

from __future__ import annotations

import shutil
from contextlib import chdir
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.conftest import ROOT
from tests.engine import ours
from tests.engine.stack import Engine, Stack

from gputier.cli.__main__ import main

PROJECT = "acme"
REGIONS = {"aws": ["us-east-1"], "gcp": ["us-central1"]}


def on(folder: Path, clouds: list[str]) -> Path:
    """The development example with these clouds: nothing else of its workload changes, but that
    Google's budgets are of a billing account."""
    made = folder / "project"
    (made / "stacks").mkdir(parents=True)
    shutil.copy(ROOT / "Pulumi.yaml", made)
    shutil.copy(ROOT / "stacks" / "__main__.py", made / "stacks")
    file = ROOT / "stacks" / "Pulumi.dev.yaml"
    config: dict[str, Any] = yaml.safe_load(file.read_text(encoding="utf-8"))["config"]
    regions = {cloud: REGIONS[cloud] for cloud in clouds}
    config["gputier:defaults"] = {"clouds": clouds, "regions": regions}
    config["gcp:project"] = PROJECT
    config["gputier:workloads"]["chat"]["budget"]["billing_account"] = "012345-6789AB-CDEF01"
    target = made / "stacks" / "Pulumi.dev.yaml"
    target.write_text(yaml.safe_dump({"config": config}), encoding="utf-8")
    return made


def locked(engine: Engine, folder: Path) -> Stack:
    stack = engine.stack(folder, "dev")
    with chdir(stack.project):
        assert main(("lock", "dev")) == 0
    for entry in ours.read(stack).entries.values():
        if entry.cloud == "gcp":
            _, project, *_, family = entry.image.split("/")
            engine.gcp.publish(project, f"{family}-v1", family)
        else:
            engine.aws.publish(entry.image, ours.AMI, entry.region)
    return stack


@pytest.mark.parametrize("clouds", [["gcp"], ["aws", "gcp"]])
def test_the_example_comes_up_stays_and_goes_on_the_cloud_that_its_lock_says(
    engine: Engine, tmp_path: Path, clouds: list[str]
) -> None:
    stack = locked(engine, on(tmp_path, clouds))
    (entry,) = ours.read(stack).entries.values()
    planned = stack.preview()
    assert engine.gcp.inventory() == []
    made = stack.up()
    assert made.changed == planned.changed, "the preview told what happens"
    assert set(made.changed.values()) == {"create"}
    assert made.outputs["chat"]["machine"] == entry.instance_type
    assert stack.up().changed == {}, "a second deployment has nothing to do"
    assert stack.refresh().changed == {}
    here, there = engine.aws.inventory(), engine.gcp.inventory()
    assert (bool(here), bool(there)) == (entry.cloud == "aws", entry.cloud == "gcp")
    stack.destroy()
    assert len(made.outputs["kept"]) == 1, "reports stay"


def test_one_stack_holds_fleets_of_both_clouds(engine: Engine, tmp_path: Path) -> None:
    folder = on(tmp_path, ["gcp"])
    file = folder / "stacks" / "Pulumi.dev.yaml"
    found: dict[str, Any] = yaml.safe_load(file.read_text(encoding="utf-8"))
    workloads = found["config"]["gputier:workloads"]
    aws = {"clouds": ["aws"], "regions": {"aws": REGIONS["aws"]}}
    workloads["other"] = {**workloads["chat"], **aws}
    file.write_text(yaml.safe_dump(found), encoding="utf-8")
    stack = locked(engine, folder)
    made = stack.up()
    assert {e.cloud for e in ours.read(stack).entries.values()} == {"aws", "gcp"}
    assert set(made.outputs) == {"chat", "other", "kept"}
    assert len(made.outputs["kept"]) == 2
    assert stack.up().changed == {}
    stack.destroy()
    assert {key.split("/")[0] for key in engine.gcp.inventory()} == {"storage"}
