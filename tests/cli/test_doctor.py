"""`gputier doctor`: what is printed, to whom, with which exit code; and what it costs to start."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from tests.account.doctor_amazon import quota, tags, well_amazon
from tests.account.doctor_google import quotas, services, well_google
from tests.account.doctor_world import World, write
from tests.cli.schemas import Schemas
from tests.cli.world import Run, too_wide
from tests.conftest import ROOT

from gputier.account import doctor
from gputier.account.answers import MISSING, CannotAsk
from gputier.account.doctor_examine import Sessions
from gputier.cli import doctor_run
from gputier.cli.doctor_text import WORDS

Golden = Callable[[str, str], None]


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> World:
    """Accounts in which everything is well, on a day that stands still."""
    made = World(well_amazon(), well_google())
    monkeypatch.setattr(doctor_run, "SESSIONS", made.sessions)
    monkeypatch.setattr(doctor, "EACH", 600.0)  # a busy machine tells its progress
    monkeypatch.setattr(doctor_run, "now", lambda: datetime(2026, 12, 1, tzinfo=UTC))
    return made


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, world: World) -> Path:
    """A project with the stacks of the tests."""
    for stack in ("aws", "prod", "gcp", "nowhere"):
        write(stack, tmp_path)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def examples(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, world: World) -> Path:
    """The project's own example stacks with their locks."""
    shutil.copy(ROOT / "Pulumi.yaml", tmp_path)
    (tmp_path / "stacks").mkdir()
    for file in (ROOT / "stacks").glob("*.*"):
        shutil.copy(file, tmp_path / "stacks")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def new_account(world: World) -> None:
    """What a new account of AWS's says."""
    world.amazon.has("service-quotas", "get_service_quota", quota(0))
    world.amazon.has("iam", "simulate_principal_policy", "AccessDenied")
    world.amazon.has("ce", "list_cost_allocation_tags", tags("Inactive"))


@pytest.mark.parametrize("columns", [80, 120])
def test_a_whole_run_of_an_example(
    columns: int, run: Run, examples: Path, world: World, golden: Golden
) -> None:
    new_account(world)
    ran = run("doctor", "dev", columns=columns)
    assert ran.code == 3
    golden(f"doctor/dev-{columns}.txt", f"{ran.out}\n--- standard error\n{ran.err}")


def test_a_whole_run_on_google(run: Run, here: Path, world: World, golden: Golden) -> None:
    world.google.has("services", "projects/{project}/services:batchGet",
                     services("monitoring.googleapis.com"))  # fmt: skip
    few = quotas(NVIDIA_L4_GPUS=(1, 0), NVIDIA_T4_GPUS=(1, 0), PREEMPTIBLE_NVIDIA_T4_GPUS=(0, 0))
    world.google.has("compute", "projects/{project}/regions/us-central1", few)
    ran = run("doctor", "gcp", columns=120)
    assert ran.code == 3
    golden("doctor/gcp-120.txt", f"{ran.out}\n--- standard error\n{ran.err}")


def test_a_whole_run_where_everything_is_well(run: Run, here: Path, golden: Golden) -> None:
    ran = run("doctor", "aws", columns=120)
    assert ran.code == 0
    golden("doctor/well-120.txt", f"{ran.out}\n--- standard error\n{ran.err}")


def test_the_first_line_is_the_answer(run: Run, here: Path, world: World) -> None:
    assert run("doctor", "aws").out.startswith("aws: 0 bad, 13 good   2 workloads, on today's plan")
    new_account(world)
    assert run("doctor", "aws").out.startswith("aws: 3 bad, 1 unknown, 9 good   2 workloads")


def test_what_could_not_be_asked_alone_is_no_failure(run: Run, here: Path, world: World) -> None:
    world.amazon.has("iam", "simulate_principal_policy", "AccessDenied")
    ran = run("doctor", "aws")
    assert ran.code == 0
    assert "unknown  aws  permissions" in ran.out
    assert "fix    allow iam:SimulatePrincipalPolicy" in ran.out


def test_what_is_bad_comes_first_then_what_is_unknown_then_what_is_good(
    run: Run, here: Path, world: World
) -> None:
    new_account(world)
    firsts = [line.split()[0] for line in run("doctor", "aws").out.splitlines()[2:]]
    states = [word for word in firsts if word in WORDS.values()]
    assert states == sorted(states, key=["bad", "unknown", "good"].index)
    assert len(states) == 13


def test_a_command_is_never_broken_over_lines(run: Run, here: Path, world: World) -> None:
    new_account(world)
    ran = run("doctor", "aws", columns=60)
    (line,) = [one for one in ran.out.splitlines() if "L-DB2E81BA --desired-value" in one]
    assert line == (
        "         fix    aws service-quotas request-service-quota-increase --service-code ec2"
        " --quota-code L-DB2E81BA --desired-value 52 --region us-east-1 --profile ml"
    )
    wide = [one for one in too_wide(ran.out, 60) if not one.startswith("         fix")]
    assert wide == []


def test_with_a_lock_the_machines_are_those_of_the_lock(
    run: Run, examples: Path, world: World
) -> None:
    assert "4 workloads, as locked" in run("doctor", "prod").out
    path = examples / "stacks" / "Pulumi.prod.yaml"
    text = path.read_text("utf-8").replace("memory: 64GiB", "memory: 32GiB")
    path.write_text(text, encoding="utf-8")
    ran = run("doctor", "prod")
    assert "4 workloads, as locked, the rest on today's plan" in ran.out
    assert "workload `render` changed since it was locked" in ran.err
    (examples / "stacks" / "gputier.prod.lock").unlink()
    ran = run("doctor", "prod")
    assert "4 workloads, on today's plan" in ran.out
    assert "there is no lock yet (`gputier lock prod` writes it)" in ran.err


def test_a_lock_that_was_edited_is_refused(run: Run, examples: Path) -> None:
    path = examples / "stacks" / "gputier.dev.lock"
    path.write_text(path.read_text("utf-8").replace("g6.2xlarge", "g6.xlarge"), encoding="utf-8")
    ran = run("doctor", "dev")
    assert ran.code == 4
    assert "edited by hand" in ran.err


def test_without_the_package_one_line_says_how_to_get_it(
    run: Run, here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def missing(_account: Any) -> Any:
        raise CannotAsk("AWS is asked by boto3, which is not installed", "pip install x", MISSING)

    monkeypatch.setattr(doctor_run, "SESSIONS", Sessions(missing))
    ran = run("doctor", "aws")
    assert ran.code == 0
    assert ran.out.startswith("aws: 0 bad, 13 unknown, 0 good")
    assert "unknown  12 more questions of AWS were not asked" in ran.out
    assert "fix    pip install x" in ran.out


def test_what_fits_nowhere_is_bad(run: Run, here: Path) -> None:
    ran = run("doctor", "nowhere")
    assert ran.code == 3
    assert "bad           placed  never  no machine fits" in ran.out
    assert "unknown       placed  azure  azure is not asked" in ran.out


@pytest.mark.parametrize("arguments", [("doctor",), ("doctor", "none"), ("doctor", "aws", "--jsn")])
def test_a_mistake_in_the_command_is_one_of_usage(
    arguments: tuple[str, ...], run: Run, here: Path
) -> None:
    ran = run(*arguments)
    assert ran.code == 2
    assert ran.out == ""


def test_settings_that_cannot_be_read_are_said(run: Run, here: Path) -> None:
    path = here / "Pulumi.aws.yaml"
    text = path.read_text("utf-8").replace("aws:profile: ml", "aws:profile: {secure: v1:abc}")
    path.write_text(text, encoding="utf-8")
    assert "`aws:profile` of Pulumi.aws.yaml is encrypted" in run("doctor", "aws").err


def test_json_is_the_documented_schema_and_says_as_much_as_the_text(
    run: Run, here: Path, world: World, root: Path
) -> None:
    new_account(world)
    ran = run("doctor", "aws", "--json")
    assert ran.code == 3
    document = json.loads(ran.out)
    assert list(document) == ["schema", "name", "ok", "machines", "counts", "answers", "notes"]
    assert document["schema"] == "gputier/doctor/1"
    assert (document["ok"], document["counts"]) == (
        False, {"bad": 3, "could_not_ask": 1, "good": 9},
    )  # fmt: skip
    assert len(document["answers"]) == 13
    bad = next(one for one in document["answers"] if one["state"] == "bad")
    assert list(bad) == [
        "check", "cloud", "workloads", "state", "asked", "found", "why", "fixes",
    ]  # fmt: skip
    assert ran.out == run("doctor", "aws", "--json").out
    known = Schemas(root / "docs" / "schemas.json")
    assert not list(known.problems(document, known.documents["gputier/doctor/1"]))


def test_progress_is_talk_and_not_data(run: Run, here: Path, monkeypatch: Any) -> None:
    def slow(*given: Any) -> Any:
        say = given[3]
        say(3, 12)
        return real(*given)

    real = doctor_run.examine
    monkeypatch.setattr(doctor_run, "examine", slow)
    ran = run("doctor", "aws")
    assert "note: asking: 3 of 12 answered" in ran.err
    assert "asking" not in ran.out


def test_no_colour_carries_the_meaning(run: Run, here: Path, world: World) -> None:
    new_account(world)
    assert "\x1b" not in run("doctor", "aws").out


PROBE = """
import sys
from gputier.cli.__main__ import main
code = main({arguments!r})
loaded = [name for name in {modules!r} if name in sys.modules]
sys.exit(f"loaded {{loaded}}" if loaded else 0)
"""


@pytest.mark.parametrize(
    ("arguments", "modules"),
    [
        (["--help"], ["boto3", "botocore", "google.auth", "urllib3", "gputier.account"]),
        (["doctor", "--help"], ["boto3", "botocore", "google.auth", "urllib3", "gputier.plan"]),
        (["doctor", "nowhere"], ["boto3", "botocore", "google.auth", "urllib3", "pulumi",
                                 "pulumi_aws", "pulumi_gcp", "googleapiclient"]),
        (["doctor", "aws"], ["pulumi", "pulumi_aws", "pulumi_gcp", "googleapiclient"]),
    ],
)  # fmt: skip
def test_nothing_is_imported_before_it_is_needed(
    arguments: list[str], modules: list[str], here: Path
) -> None:
    """`aws` with a profile that is not there: asked for by boto3 itself, without a network."""
    code = PROBE.format(arguments=arguments, modules=modules)
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr
