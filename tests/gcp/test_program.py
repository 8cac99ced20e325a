"""The program of a stack on Google, and on both clouds: what it deploys, and what it refuses."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pulumi
import pytest
import yaml
from tests.aws import world as aws
from tests.gcp import world

from gputier import program, testing
from gputier.lock import read_lock

GOOGLE: dict[str, Any] = {"clouds": ["gcp"], "regions": {"gcp": [world.REGION]}}
AMAZON: dict[str, Any] = {"clouds": ["aws"], "regions": {"aws": ["us-east-1"]}}
L4 = {"purpose": "inference", "gpu": {"models": ["L4"]}}
PROJECT = "name: gputier\nruntime: python\nstackConfigDir: stacks\n"


def locked(folder: Path, workloads: dict[str, Any], **more: Any) -> dict[str, str]:
    """A project whose stack `dev` has these workloads, with its lock; the engine's config."""
    (folder / "Pulumi.yaml").write_text(PROJECT, encoding="utf-8")
    stacks = folder / "stacks"
    stacks.mkdir(exist_ok=True)
    found = {"gcp:project": world.PROJECT, "gputier:workloads": workloads, **more}
    file = stacks / "Pulumi.dev.yaml"
    file.write_text(yaml.safe_dump({"config": found}), encoding="utf-8")
    command = [sys.executable, "-m", "gputier.cli", "lock", "dev", "--upgrade"]
    subprocess.run(command, cwd=stacks, check=True, capture_output=True)
    return {k: v if isinstance(v, str) else json.dumps(v) for k, v in found.items()}


def outputs(type_: str, name: str, inputs: testing.Properties) -> Any:
    made = world.outputs if type_.startswith("gcp:") else aws.outputs
    return made(type_, name, inputs)


def deployed(
    folder: Path, monkeypatch: pytest.MonkeyPatch, workloads: dict[str, Any], **more: Any
) -> testing.Run:
    config = locked(folder, workloads, **more)
    monkeypatch.chdir(folder / "stacks")
    answers = {**aws.ANSWERS, **world.ANSWERS}
    return testing.run(
        program.main, project="gputier", stack="dev", config=config, answers=answers,
        outputs=outputs,
    )  # fmt: skip


def test_what_is_locked_on_google_is_deployed_there_and_told_in_the_same_words(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = deployed(tmp_path, monkeypatch, {"chat": {**GOOGLE, **L4}})
    assert run.find("GpuFleet chat").type == "gputier:gcp:GpuFleet"
    assert {r.type.partition(":")[0] for r in run.records} == {"gcp", "gputier"}
    assert set(run.outputs) == {"chat", "kept"}
    assert set(run.outputs["chat"]) == {
        "machine", "usd_per_hour", "usd_per_month", "group_name", "connect", "gate_state",
        "dashboard_url",
    }  # fmt: skip


def test_a_stack_may_hold_fleets_of_both_clouds(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    both = {"here": {**AMAZON, **L4}, "there": {**GOOGLE, **L4}}
    run = deployed(tmp_path, monkeypatch, both)
    assert run.find("GpuFleet here").type == "gputier:aws:GpuFleet"
    assert run.find("GpuFleet there").type == "gputier:gcp:GpuFleet"
    assert set(run.outputs) == {"here", "there", "kept"}
    assert len(run.outputs["kept"]) == 2, "each cloud keeps its own reports"


def test_where_both_clouds_will_do_the_lock_says_which_and_the_program_follows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    where = {"clouds": ["aws", "gcp"], "regions": {**AMAZON["regions"], **GOOGLE["regions"]}}
    run = deployed(tmp_path, monkeypatch, {"chat": {**where, **L4}})
    lock = read_lock(tmp_path / "stacks" / "gputier.dev.lock", "dev")
    assert lock
    chosen = lock.entries["chat"]
    assert run.find("GpuFleet chat").type == f"gputier:{chosen.cloud}:GpuFleet"
    assert run.outputs["chat"]["machine"] == chosen.instance_type


def test_what_both_clouds_refuse_is_said_at_once_before_anything_is_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    both = {"here": {**AMAZON, **L4}, "there": {**GOOGLE, **L4}}
    made: list[str] = []
    original = testing.run

    def watched(*args: Any, **more: Any) -> testing.Run:
        told = more["outputs"]

        def noted(type_: str, name: str, inputs: testing.Properties) -> Any:
            made.append(name)
            return told(type_, name, inputs)

        return original(*args, **{**more, "outputs": noted})

    monkeypatch.setattr(testing, "run", watched)
    with pytest.raises(pulumi.RunError) as mistake:
        deployed(tmp_path, monkeypatch, both, **{"gputier:environment": "prod"})
    text = str(mistake.value)
    assert "2 problems" in text
    assert text.count("names another image with each release") == 2
    assert made == []


def test_a_cloud_whose_sdk_is_not_installed_is_named_with_its_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def missing(name: str) -> object:
        raise ModuleNotFoundError(f"No module named 'pulumi_gcp' ({name})", name="pulumi_gcp")

    monkeypatch.setattr(program, "import_module", missing)
    with pytest.raises(pulumi.RunError) as mistake:
        deployed(tmp_path, monkeypatch, {"chat": {**GOOGLE, **L4}})
    assert "chat:" in str(mistake.value)
    assert "Pulumi's SDK for gcp is not installed" in str(mistake.value)
    assert "hint: pip install 'gputier[gcp]'" in str(mistake.value)


def test_another_module_that_is_missing_is_a_defect_and_no_refusal(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def missing(name: str) -> object:
        raise ModuleNotFoundError(f"No module named 'other' ({name})", name="other")

    monkeypatch.setattr(program, "import_module", missing)
    with pytest.raises(ModuleNotFoundError):
        deployed(tmp_path, monkeypatch, {"chat": {**GOOGLE, **L4}})


@pytest.mark.parametrize(("cloud", "other"), [("aws", "gcp"), ("gcp", "aws")])
def test_only_the_sdk_of_a_cloud_in_use_is_loaded(cloud: str, other: str) -> None:
    code = (
        "import sys, gputier.program as p; p._cloud(sys.argv[1], ());"
        " print(*(m for m in sys.modules if m in ('pulumi_aws', 'pulumi_gcp')))"
    )
    ran = subprocess.run(
        [sys.executable, "-c", code, cloud], capture_output=True, text=True, check=True
    )
    assert ran.stdout.split() == [f"pulumi_{cloud}"], other
