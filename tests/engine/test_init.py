"""What `gputier init` writes, from an installed wheel, on a real engine: previewed, judged and
reviewed without a complaint, and every command line of its workflows as a runner runs it."""

from __future__ import annotations

import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.conftest import ROOT
from tests.engine import ours
from tests.engine.stack import Engine
from tests.init import guide
from tests.init.installed import Installed, add_pulumi, build_wheel, installed
from tests.init.repository import STATE, Repository, passed
from tests.init.workflows import Document, Ran
from tests.standins import github as github_standin
from tests.standins import gitlab as gitlab_standin

from gputier.lock import read_lock

STACKS = ("dev", "staging", "prod")
pytestmark = pytest.mark.allow_hosts(["127.0.0.1"])


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Installed:
    folder = tmp_path_factory.mktemp("init")
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    post = project["optional-dependencies"]["post"]
    return installed(
        build_wheel(ROOT, folder), [*project["dependencies"], *post, "setuptools>=77"], folder
    )


@pytest.fixture
def repository(
    engine: Engine,
    pulumi: Path,
    wheel: Installed,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> Repository:
    """An init'ed project with its stacks made, as docs/ci.md says, once and by hand."""
    # The engine's programs and packs import what the wheel holds, not this checkout.
    monkeypatch.setattr(sys, "path", [str(wheel.site), *sys.path])
    add_pulumi(wheel, pulumi)
    done = wheel.gputier("init", "shop", "--ci", "both", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    known = {
        "vars.PULUMI_BACKEND_URL": engine.environment["PULUMI_BACKEND_URL"],
        "secrets.PULUMI_CONFIG_PASSPHRASE": engine.environment["PULUMI_CONFIG_PASSPHRASE"],
        "vars.AWS_PREVIEW_ROLE": "arn:aws:iam::123456789012:role/preview",
        "vars.AWS_DEPLOY_ROLE": "arn:aws:iam::123456789012:role/deploy",
        "github.token": github_standin.TOKEN,
        "github.run_id": "1",
        "api": "http://127.0.0.1:1",
    }
    found = Repository(tmp_path / "shop", engine, wheel, known)
    for stack in STACKS:
        for entry in found.lock(stack).entries.values():
            engine.aws.publish(entry.image, ours.AMI, entry.region)
    found.pin("prod")
    return found


@pytest.fixture
def github(repository: Repository) -> Iterator[github_standin.GitHub]:
    service = github_standin.GitHub().start()
    repository.known["api"] = service.url
    yield service
    service.stop()


@pytest.fixture
def gitlab() -> Iterator[gitlab_standin.GitLab]:
    service = gitlab_standin.GitLab().start()
    yield service
    service.stop()


def test_what_was_written_passes_preview_policies_and_review_at_once(
    repository: Repository,
) -> None:
    repository.init(*STACKS)
    for stack in STACKS:
        judged = f"--policy-pack policies --policy-pack-config policies/config.{stack}.json"
        previewed = repository.by_hand(
            "export PULUMI_ENABLE_STREAMING_JSON_PREVIEW=true\n"
            f"pulumi preview --stack {stack} --json --show-sames {judged} > preview.json"
        )
        reviewed = repository.by_hand(f"gputier review preview.json --stack {stack}")
        assert previewed.code == 0, reviewed
        assert reviewed.code == 0, reviewed
        assert reviewed.out.startswith(f"{stack}: +$")
        assert "⚠" not in reviewed.out


def test_production_without_a_pinned_image_names_the_command_that_pins_one(
    repository: Repository,
) -> None:
    repository.init("prod")
    (family,) = [entry.image for entry in repository.lock("dev").entries.values()]
    repository.pin("prod", family)
    previewed = repository.by_hand("pulumi preview --stack prod")
    assert previewed.code != 0
    assert "`gputier lock prod --images` pins today's" in previewed.out
    assert "Traceback" not in previewed.out


def test_the_program_and_the_rules_are_the_wheels(repository: Repository) -> None:
    """Else the test above would say nothing of what people install."""
    repository.init("dev")
    program = repository.folder / "stacks" / "__main__.py"
    program.write_text("import gputier\nprint('program:', gputier.__path__[0])\n", encoding="utf-8")
    pack = repository.folder / "policies" / "__main__.py"
    pack.write_text("import gputier_policies\nraise SystemExit(gputier_policies.__path__[0])\n")
    told = repository.by_hand("pulumi preview --stack dev")
    assert f"program: {repository.tools.site}" in told.out
    told = repository.by_hand("pulumi preview --stack dev --policy-pack policies")
    assert f"{repository.tools.site}/gputier_policies" in told.out


BREACH = """
import pulumi_aws as aws

aws.ec2.LaunchTemplate(
    "web", instance_type="g6.xlarge", metadata_options={"http_tokens": "optional"}
)
"""


def breached(repository: Repository) -> None:
    program = repository.folder / "stacks" / "__main__.py"
    program.write_text(program.read_text(encoding="utf-8") + BREACH, encoding="utf-8")


def test_a_pull_request_is_checked_previewed_and_reviewed_on_github(
    repository: Repository, github: github_standin.GitHub
) -> None:
    repository.init("staging")
    passed(repository.github("gpu-review.yml", "check"))
    passed(repository.github("gpu-review.yml", "preview", matrix_stack="staging"))
    (comment,) = github.comments
    assert comment["body"].startswith("<!-- gputier review shop/staging -->\n")
    assert repository.engine.aws.inventory() == [], "a pull request makes nothing"


def test_a_pull_request_that_breaks_a_rule_fails_and_its_comment_says_which_rule(
    repository: Repository, github: github_standin.GitHub
) -> None:
    repository.init("dev")
    breached(repository)
    *_, previewed, reviewed = repository.github("gpu-review.yml", "preview", matrix_stack="dev")
    assert (previewed.name, previewed.code) == ("Preview", 1)
    assert (reviewed.name, reviewed.code) == ("Review", 6)
    (comment,) = github.comments
    assert "machine-requires-imdsv2" in comment["body"]


def test_a_lock_that_is_not_its_declarations_fails_the_check(
    repository: Repository, github: github_standin.GitHub
) -> None:
    file = repository.folder / "stacks" / "Pulumi.dev.yaml"
    text = file.read_text(encoding="utf-8").replace("llama-3.1-8b", "llama-2-7b")
    file.write_text(text, encoding="utf-8")
    ran = repository.github("gpu-review.yml", "check")
    assert [one.name for one in ran if one.code] == ["Locks"]
    assert ran[-1].code == 4
    assert ran[-1].out.count("fresh") == 2, "the others were looked at too"


def deployed(repository: Repository, stack: str) -> tuple[Ran, Ran]:
    """What GitHub does with an environment: what is approved, and what is applied."""
    planned = passed(repository.github("gpu-environment.yml", "plan", inputs_stack=stack))
    applied = passed(repository.github("gpu-environment.yml", "apply", inputs_stack=stack))
    return planned[-1], applied[-1]


def test_what_is_merged_is_planned_approved_and_applied_and_watched_at_night_on_github(
    repository: Repository, github: github_standin.GitHub
) -> None:
    repository.init("prod")
    reviewed, applied = deployed(repository, "prod")
    assert "prod: **+$" in reviewed.summary, "whoever approves sees the cost"
    assert "created" in applied.out
    (group,) = ours_groups(repository)
    assert group["AutoScalingGroupName"] == "shop-prod-chat"
    _, again = deployed(repository, "prod")
    assert "unchanged" in again.out
    assert "created" not in again.out

    passed(repository.github("gpu-nightly.yml", "drift", matrix_stack="prod"))
    alarms = repository.engine.aws.client("cloudwatch", "us-east-1")
    (cost,) = [a for a in alarms.describe_alarms()["MetricAlarms"] if "cost" in a["AlarmName"]]
    alarms.delete_alarms(AlarmNames=[cost["AlarmName"]])
    *_, drift = repository.github("gpu-nightly.yml", "drift", matrix_stack="prod")
    assert drift.code != 0
    assert "chat-alarm-cost" in drift.out


def ours_groups(repository: Repository) -> list[Document]:
    client = repository.engine.aws.client("autoscaling", "us-east-1")
    return client.describe_auto_scaling_groups()["AutoScalingGroups"]


def test_a_plan_of_another_declaration_is_not_applied(
    repository: Repository, github: github_standin.GitHub
) -> None:
    repository.init("dev")
    passed(repository.github("gpu-environment.yml", "plan", inputs_stack="dev"))
    breached(repository)
    *_, applied = repository.github("gpu-environment.yml", "apply", inputs_stack="dev")
    assert applied.code != 0
    assert "web" in applied.out
    assert ours_groups(repository) == []


def test_a_night_says_how_much_dearer_the_locks_machine_became(
    repository: Repository, github: github_standin.GitHub, tmp_path: Path
) -> None:
    passed(repository.github("gpu-nightly.yml", "prices", matrix_stack="dev"))
    assert repository.tools.asked[-1] == "install --quiet --upgrade gputier"
    repository.known["catalog"] = str(cheaper(tmp_path / "cheaper"))
    *_, prices = repository.github("gpu-nightly.yml", "prices", matrix_stack="dev")
    assert prices.code == 4, "the failing command's code, not its pipe's"
    assert "is now 100 % dearer than the best pick" in prices.summary


def cheaper(folder: Path) -> Path:
    """An overlay in which a machine that is not the lock's costs half."""
    folder.mkdir()
    (folder / "prices.csv").write_text(
        "provider,region,zone,instance_type,purchase,usd_per_hour,currency,as_of,source\n"
        "aws,us-east-1,,g6.4xlarge,on_demand,0.4888,USD,2026-09-01,mine\n",
        encoding="utf-8",
    )
    return folder


def test_gitlab_runs_the_same(repository: Repository, gitlab: gitlab_standin.GitLab) -> None:
    repository.init("dev")
    passed(repository.gitlab("gpu-check"))
    request = {
        "GITLAB_TOKEN": gitlab_standin.TOKEN,
        "CI_PROJECT_ID": "42",
        "CI_MERGE_REQUEST_IID": "7",
        "CI_API_V4_URL": f"{gitlab.url}/api/v4",
        "CI_MERGE_REQUEST_PROJECT_URL": "https://gitlab.com/o/r",
        "STACK": "dev",
    }
    passed(repository.gitlab("gpu-preview", **request))
    (note,) = gitlab.notes
    assert note["body"].startswith("<!-- gputier review shop/dev -->")
    passed(repository.gitlab("gpu-plan-dev"))
    (applied,) = passed(repository.gitlab("gpu-apply-dev"))
    assert "created" in applied.out
    passed(repository.gitlab("gpu-drift", STACK="dev"))
    passed(repository.gitlab("gpu-prices", STACK="dev"))
    breached(repository)
    failed = repository.gitlab("gpu-preview", **request)
    assert failed.code == 6
    assert "machine-requires-imdsv2" in gitlab.notes[0]["body"]


def test_the_first_half_hour_can_be_walked_through(
    engine: Engine,
    pulumi: Path,
    wheel: Installed,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(sys, "path", [str(wheel.site), *sys.path])
    add_pulumi(wheel, pulumi)
    wheel.gputier("init", "scratch", "--ci", "none", cwd=tmp_path)
    scratch = read_lock(tmp_path / "scratch" / "stacks" / "gputier.dev.lock", "dev")
    assert scratch
    for entry in scratch.entries.values():
        engine.aws.publish(entry.image, ours.AMI, entry.region)
    environment = {k: v for k, v in engine.environment.items() if k.startswith("PULUMI_")}
    for name in STATE:
        del environment[name]
    page = (ROOT / "docs" / "first-half-hour.md").read_text(encoding="utf-8")
    (tmp_path / "desk").mkdir()
    steps = guide.walked(page, tmp_path / "desk", wheel.environment({**environment, "CI": "true"}))
    wrong = [step for step in steps if step.code != step.typed.code or step.missing]
    assert wrong == [], "\n\n".join(f"$ {s.typed.command}: {s.code}\n{s.out}" for s in wrong)
    assert len(steps) == len(list(guide.commands(page))) > 20
    assert engine.aws.inventory() == [f"bucket gputier-my-gpus-dev-{ours.ACCOUNT}-us-east-1"]
