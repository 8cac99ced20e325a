"""`gputier status` against what our program deployed: found by the lock and the names alone."""

from __future__ import annotations

import json
from contextlib import chdir
from datetime import UTC, datetime
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from tests.engine import ours
from tests.engine.ours import DESK, JOB, group_of, locked, project
from tests.engine.stack import Engine, Stack

from gputier.account.answers import CannotAsk
from gputier.account.session_aws import AwsSession
from gputier.account.status_ask import Sessions
from gputier.cli import status_run
from gputier.cli.__main__ import main

GROUP = "gputier-dev-job"
BUCKET = f"gputier-gputier-dev-{ours.ACCOUNT}-us-east-1"
errors: Any = import_module("botocore.exceptions")


@pytest.fixture
def stack(engine: Engine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Stack:
    """A group and a lone machine, declared and locked; AWS is asked as the engine's stand-in."""

    session = AwsSession(engine.aws.client, errors, "us-east-1")

    def aws(_account: Any) -> Any:
        return session

    def google(_account: Any) -> Any:
        raise CannotAsk("nobody asked for Google")

    monkeypatch.setattr(status_run, "SESSIONS", Sessions(aws, google))
    return locked(engine, project(tmp_path, {"dev": {"workloads": {"job": JOB, "desk": DESK}}}))


def status(stack: Stack, capsys: pytest.CaptureFixture[str]) -> dict[str, Any]:
    """The workloads of the document, by name."""
    capsys.readouterr()
    with chdir(stack.project):
        assert main(("status", stack.name, "--json")) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["unasked"] == []
    return {one["name"]: one for one in found["workloads"]}


def report(engine: Engine, machine: str, outcome: str) -> None:
    at = datetime.now(UTC).strftime("%Y%m%dT%H%M%SZ")
    key = f"reports/job/{machine}/{at}-{outcome}.json"
    checks = [{"name": "gpu-count", "evidence": "7 of 8", "remedy": "give it back"}]
    body = {"schema": "gputier/node/1", "outcome": outcome, "causes": ["gpu-count"]}
    text = json.dumps({**body, "checks": checks, "gate": "report"})
    engine.aws.client("s3").put_object(Bucket=BUCKET, Key=key, Body=text.encode())


def test_a_stack_from_its_lock_to_its_end(
    stack: Stack, engine: Engine, capsys: pytest.CaptureFixture[str]
) -> None:
    before = status(stack, capsys)
    assert {one["state"] for one in before.values()} == {"not-deployed"}

    stack.up()
    (machine,) = [m["InstanceId"] for m in group_of(engine, GROUP)["Instances"]]
    report(engine, machine, "healthy")
    found = status(stack, capsys)
    job, desk = found["job"], found["desk"]
    assert (job["shape"], job["wanted"], job["min"], job["max"]) == ("group", 1, 1, 3)
    assert [(m["id"], m["state"]) for m in job["machines"]] == [(machine, "healthy")]
    assert (job["state"], job["troubles"]) == ("well", [])
    assert job["spend"]["usd_per_hour"] == ours.read(stack).entries["job"].usd_per_hour
    assert (desk["shape"], [m["state"] for m in desk["machines"]]) == ("lone", ["proving"])

    report(engine, machine, "replace")
    job = status(stack, capsys)["job"]
    (failing,) = job["machines"]
    assert (failing["state"], job["working"]) == ("failing", 0)
    assert failing["verdict"]["causes"][0]["evidence"] == "7 of 8"

    scaling = engine.aws.client("autoscaling")
    scaling.suspend_processes(AutoScalingGroupName=GROUP, ScalingProcesses=["Launch"])
    (trouble,) = status(stack, capsys)["job"]["troubles"]
    assert trouble["code"] == "launches-suspended"
    assert f"--auto-scaling-group-name {GROUP} " in trouble["fix"]

    scaling.delete_auto_scaling_group(AutoScalingGroupName=GROUP, ForceDelete=True)
    job = status(stack, capsys)["job"]
    assert (job["state"], job["troubles"][0]["code"]) == ("deleted", "deleted")
