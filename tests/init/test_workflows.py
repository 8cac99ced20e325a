"""The workflow files of every kind of project: well formed, pinned, and with the least rights."""

from __future__ import annotations

import itertools
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.ci.actionlint_cli import ACTIONLINT
from tests.engine import pulumi_cli
from tests.go_tool import NoTool
from tests.init import workflows
from tests.init.workflows import EXPRESSION, Document

from gputier.cli.init_files import PULUMI, STACKS, Choices, Numbers, files

CLOUDS = (("aws",), ("gcp",), ("aws", "gcp"))
NUMBERS = {stack: Numbers(100, 2, 200, 4, ("L4",)) for stack in STACKS}
PINNED = re.compile(r"uses: ([\w.-]+/[\w.-]+)@([0-9a-f]{40}) # v\d+\.\d+\.\d+(?:, .+)?")
#: What a person outside may write: none of it may become a part of a script.
OF_ANYBODY = ("title", "body", "head_ref", "head.ref", "message", "author", "label")
#: Rights that a job may have, and for what.
RIGHTS = {
    "check": {"contents": "read"},
    "preview": {"contents": "read", "id-token": "write", "pull-requests": "write"},
    "plan": {"contents": "read", "id-token": "write"},
    "apply": {"contents": "read", "id-token": "write"},
    "drift": {"contents": "read", "id-token": "write"},
    "prices": {"contents": "read"},
    **{stack: {"contents": "read", "id-token": "write"} for stack in STACKS},
}


def project(clouds: tuple[str, ...] = ("aws",)) -> dict[str, str]:
    choices = Choices("shop", clouds, "us-east-1", "entry", ("github", "gitlab"), "ann", "r d")
    return files(choices, NUMBERS)


def written(folder: Path, clouds: tuple[str, ...] = ("aws",)) -> Path:
    for path, text in project(clouds).items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text, encoding="utf-8")
    return folder


def on_github(folder: Path) -> dict[str, Document]:
    found = sorted((folder / ".github" / "workflows").glob("*.yml"))
    return {file.name: workflows.read(file) for file in found}


def jobs(folder: Path) -> Iterator[tuple[str, Document]]:
    for document in on_github(folder).values():
        yield from document["jobs"].items()


@pytest.fixture(scope="session")
def actionlint() -> Path:
    try:
        return ACTIONLINT.find()
    except NoTool as reason:
        if os.environ.get("CI"):
            pytest.fail(str(reason))
        pytest.skip(str(reason))


def linted(actionlint: Path, folder: Path) -> str:
    """What actionlint says of a project's workflow files."""
    (folder / ".git").mkdir(exist_ok=True)  # it looks for the project's top
    found = sorted((folder / ".github" / "workflows").glob("*.yml"))
    shellcheck = shutil.which("shellcheck", path=str(Path(sys.executable).parent))
    assert shellcheck
    command = [str(actionlint), "-no-color", f"-shellcheck={shellcheck}", "-pyflakes="]
    done = subprocess.run(
        [*command, *map(str, found)], cwd=folder, capture_output=True, text=True, check=False
    )
    assert found
    return done.stdout + done.stderr


@pytest.mark.parametrize("clouds", CLOUDS, ids="-".join)
def test_actionlint_has_nothing_to_say(
    actionlint: Path, tmp_path: Path, clouds: tuple[str, ...]
) -> None:
    assert linted(actionlint, written(tmp_path, clouds)) == ""


BROKEN = {
    "a matrix that is not there": ("${{ matrix.stack }}", "${{ matrix.stak }}"),
    "an unknown key": ("timeout-minutes:", "timeout-minute:"),
    "a job that is not there": ("needs: plan", "needs: pln"),
    "an input that the other file does not take": ("      stack: dev", "      stak: dev"),
    "a word that a shell splits": (
        'pulumi preview --stack "$STACK"',
        "pulumi preview --stack $STACK",
    ),
    "a title in a script": (
        "run: gputier plan",
        "run: echo ${{ github.event.pull_request.title }}",
    ),
}


@pytest.mark.parametrize(("good", "bad"), BROKEN.values(), ids=BROKEN)
def test_actionlint_would_find_a_mistake(
    actionlint: Path, tmp_path: Path, good: str, bad: str
) -> None:
    folder, changed = written(tmp_path), 0
    for file in (folder / ".github" / "workflows").glob("*.yml"):
        text = file.read_text(encoding="utf-8")
        changed += good in text
        file.write_text(text.replace(good, bad), encoding="utf-8")
    assert changed
    assert linted(actionlint, folder)


@pytest.mark.parametrize("clouds", CLOUDS, ids="-".join)
def test_every_action_is_pinned_by_one_commit_with_its_release_beside_it(
    clouds: tuple[str, ...],
) -> None:
    commits: dict[str, set[str]] = {}
    for path, text in project(clouds).items():
        for line in re.findall(r"uses: .*", text) if path.startswith(".github") else ():
            if "./.github/workflows/" in line:
                continue
            found = PINNED.fullmatch(line)
            assert found, f"{path}: {line}"
            commits.setdefault(found[1], set()).add(found[2])
    assert "actions/checkout" in commits
    assert {name for name, those in commits.items() if len(those) > 1} == set()


def test_an_action_by_its_tag_would_be_found() -> None:
    assert not PINNED.fullmatch("uses: actions/checkout@v7")
    assert not PINNED.fullmatch(f"uses: actions/checkout@{'a' * 40}")
    assert not PINNED.fullmatch(f"uses: actions/checkout@{'a' * 39} # v7.0.1")


@pytest.mark.parametrize("clouds", CLOUDS, ids="-".join)
def test_each_job_has_the_least_rights_and_an_end(tmp_path: Path, clouds: tuple[str, ...]) -> None:
    folder, seen = written(tmp_path, clouds), set[str]()
    for document in on_github(folder).values():
        assert document["permissions"] == {}, "rights are a job's own"
    for name, job in jobs(folder):
        assert job["permissions"] == RIGHTS[name], name
        assert "uses" in job or 0 < job["timeout-minutes"] <= 60, name
        assert job.get("runs-on", "ubuntu-24.04") == "ubuntu-24.04", name
        seen.add(name)
    assert seen == set(RIGHTS)


def test_no_expression_is_a_part_of_a_script_and_nothing_of_anybody_is_used(tmp_path: Path) -> None:
    folder = written(tmp_path, ("aws", "gcp"))
    for name, job in jobs(folder):
        for step in workflows.steps(job):
            assert "${{" not in step.get("run", ""), f"{name}: {step['run']}"
    for path, text in project(("aws", "gcp")).items():
        for expression in EXPRESSION.findall(text) if path.startswith(".github") else ():
            assert not any(word in expression for word in OF_ANYBODY), f"{path}: {expression}"


def test_a_fork_gets_no_credentials(tmp_path: Path) -> None:
    review = on_github(written(tmp_path))["gpu-review.yml"]
    assert set(review["on"]) == {"pull_request"} or review["on"] == "pull_request"
    own = "github.event.pull_request.head.repo.full_name == github.repository"
    for name, job in review["jobs"].items():
        signs_in = job["permissions"].get("id-token") == "write"
        assert signs_in == (job.get("if") == own), name
    for document in on_github(tmp_path).values():
        assert "pull_request_target" not in str(document["on"])


def test_a_secret_is_seen_by_the_step_that_needs_it_alone(tmp_path: Path) -> None:
    """Not by the actions of others in the same job, and never in a command line."""
    for name, job in jobs(written(tmp_path)):
        assert "secrets." not in str(job.get("env")), name
        for step in workflows.steps(job):
            if "secrets." in str(step):
                assert step["run"].startswith("pulumi "), f"{name}: {step}"
                assert "secrets." not in str(step.get("with"))


def test_every_checkout_forgets_its_token_and_nothing_that_deploys_takes_a_cache(
    tmp_path: Path,
) -> None:
    for name, job in jobs(written(tmp_path)):
        used = {step["uses"].split("@")[0]: step for step in workflows.steps(job) if "uses" in step}
        if used:
            assert used["actions/checkout"]["with"] == {"persist-credentials": "false"}, name
            cached = "cache" in used["actions/setup-python"]["with"]
            assert cached == (name not in ("plan", "apply")), name


def test_a_script_fails_where_a_part_of_it_does(tmp_path: Path) -> None:
    """GitHub's default shell overlooks what fails before a pipe; a bash that is asked for does
    not. (docs.github.com, workflow syntax: defaults.run.shell)"""
    for name, document in on_github(written(tmp_path)).items():
        has_scripts = any(
            "run" in step for job in document["jobs"].values() for step in workflows.steps(job)
        )
        assert (document.get("defaults") == {"run": {"shell": "bash"}}) == has_scripts, name


def test_two_runs_never_apply_to_one_environment_at_once(tmp_path: Path) -> None:
    deploy = on_github(written(tmp_path))["gpu-deploy.yml"]["jobs"]
    groups = [job["concurrency"]["group"] for job in deploy.values()]
    assert groups == [f"gpu-environment-{stack}" for stack in STACKS]
    assert {job["concurrency"]["cancel-in-progress"] for job in deploy.values()} == {"false"}
    assert [job.get("needs") for job in deploy.values()] == [None, "dev", "staging"]


def test_only_an_approved_job_may_change_anything(tmp_path: Path) -> None:
    for name, job in jobs(written(tmp_path, ("aws", "gcp"))):
        assert ("pulumi up" in str(job)) == (name == "apply"), name
        roles = set(re.findall(r"vars\.\w+_(DEPLOY|PREVIEW)_", str(job)))
        signs_in = job["permissions"].get("id-token") and "uses" not in job
        assert roles == ({"DEPLOY" if name == "apply" else "PREVIEW"} if signs_in else set()), name
        assert ("environment" in job) == (name == "apply"), name


def test_the_workflows_install_the_pulumi_that_this_release_is_tested_with() -> None:
    assert pulumi_cli.version() == PULUMI
    text = project()[".github/workflows/gpu-review.yml"]
    assert f"pulumi-version: {PULUMI}\n" in text
    assert f":{PULUMI}\n" in project()[".gitlab/gpu.yml"]


# --- GitLab ------------------------------------------------------------------------------------

KEYWORDS = {
    "image", "timeout", "before_script", "extends", "id_tokens", "variables", "stage", "rules",
    "script", "interruptible", "parallel", "artifacts", "resource_group", "environment", "needs",
    "allow_failure",
}  # fmt: skip


def gitlab(folder: Path, clouds: tuple[str, ...] = ("aws",)) -> Document:
    return workflows.read(written(folder, clouds) / ".gitlab" / "gpu.yml")


def real_jobs(document: Document) -> dict[str, Document]:
    names = [name for name in document if not name.startswith(".")]
    return {name: workflows.combined(document, name) for name in names}


@pytest.mark.parametrize("clouds", CLOUDS, ids="-".join)
def test_gitlabs_jobs_are_whole(tmp_path: Path, clouds: tuple[str, ...]) -> None:
    document = gitlab(tmp_path, clouds)
    found = real_jobs(document)
    for name, job in document.items():
        assert isinstance(job, list) or set(job) <= KEYWORDS, name
    for name, job in found.items():
        assert job["image"].startswith("pulumi/pulumi-python-"), name
        assert job["script"], name
        assert job["rules"], f"{name} would run in every pipeline"
        assert job["timeout"], name
        assert set(job.get("needs", [])) <= set(found), name
        assert job["stage"] in ("test", "deploy"), "stages that GitLab has by itself"
    assert yaml.safe_load(project()[".gitlab-ci.yml"]) == {
        "include": [{"local": ".gitlab/gpu.yml"}]
    }


def test_gitlab_goes_through_the_environments_in_order_and_production_is_pressed(
    tmp_path: Path,
) -> None:
    found = real_jobs(gitlab(tmp_path))
    order = list(itertools.chain(*((f"gpu-plan-{s}", f"gpu-apply-{s}") for s in STACKS)))
    chain = [name for name in found if name in order]
    assert chain == order
    assert [found[name]["needs"] for name in chain] == [[], *([one] for one in order[:-1])]
    manual = [name for name, job in found.items() if "manual" in str(job["rules"])]
    assert manual == ["gpu-apply-prod"]
    for name in chain:
        applies = name.startswith("gpu-apply")
        assert (found[name].get("environment") == {"name": "$STACK"}) == applies
        assert (found[name].get("resource_group") == "gpu-$STACK") == applies
        assert (found[name]["variables"]["ROLE"] == "DEPLOY") == applies


def test_gitlabs_jobs_without_credentials_ask_for_none(tmp_path: Path) -> None:
    for name, job in real_jobs(gitlab(tmp_path, ("aws", "gcp"))).items():
        assert ("id_tokens" in job) == (name not in ("gpu-check", "gpu-prices")), name


def test_gitlabs_job_signs_in_with_its_own_token(tmp_path: Path) -> None:
    """The files and variables that the SDKs of both clouds look for, with nothing in the log."""
    document = gitlab(tmp_path, ("aws", "gcp"))
    job = workflows.combined(document, "gpu-drift")
    lines = [
        line for line in workflows.lines(document, {**job, "script": []}) if "venv" not in line
    ]
    shown = 'cat "$AWS_WEB_IDENTITY_TOKEN_FILE"; echo; cat "$GOOGLE_APPLICATION_CREDENTIALS"'
    environment = {
        "PATH": os.environ["PATH"],
        "ROLE": "DEPLOY",
        "AWS_TOKEN": "aws-jwt",
        "GCP_TOKEN": "gcp-jwt",
        "AWS_DEPLOY_ROLE": "arn:deploy",
        "AWS_PREVIEW_ROLE": "arn:preview",
        "GCP_DEPLOY_SERVICE_ACCOUNT": "deploy@p.iam.gserviceaccount.com",
        "GCP_WORKLOAD_IDENTITY_PROVIDER": "projects/1/locations/global/workloadIdentityPools/a",
    }
    quiet = workflows.shell("\n".join(lines), tmp_path, environment)
    assert (quiet.code, quiet.out) == (0, "")
    told = workflows.shell(
        "\n".join([*lines, 'echo "$AWS_ROLE_ARN"', shown]), tmp_path, environment
    )
    role, token, *rest = told.out.splitlines()
    assert (role, token) == ("arn:deploy", "aws-jwt")
    google: dict[str, Any] = yaml.safe_load("\n".join(rest))
    assert google["type"] == "external_account"
    assert (
        google["audience"]
        == f"//iam.googleapis.com/{environment['GCP_WORKLOAD_IDENTITY_PROVIDER']}"
    )
    assert "deploy@p.iam" in google["service_account_impersonation_url"]
    file = Path(google["credential_source"]["file"])
    assert file.read_text(encoding="utf-8") == "gcp-jwt"
    assert file.stat().st_mode & 0o077 == 0, "nobody else on the machine reads it"
