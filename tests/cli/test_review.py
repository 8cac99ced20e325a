"""`gputier review`: what is printed, to whom, and with which exit code."""

from __future__ import annotations

import io
import json
import shutil
from pathlib import Path
from types import SimpleNamespace

import pytest
from tests.cli.world import Run
from tests.conftest import ROOT
from tests.standins import github

SAMPLES = ROOT / "tests" / "review" / "samples"


@pytest.fixture
def here(project: Path) -> Path:
    """A project with the sample previews in it."""
    for sample in SAMPLES.glob("*.json"):
        shutil.copy(sample, project)
    return project


def test_the_cost_is_the_first_line_and_the_exit_code_is_0(run: Run, here: Path) -> None:
    ran = run("review", "prod-change.json", "--base", "prod-export.json")
    assert (ran.code, ran.err) == (0, "")
    assert ran.out.startswith("prod: −$96,771 a month ($200,930 → $104,160), 1 machine replaced\n")


@pytest.mark.parametrize(
    ("format_", "begins"),
    [
        ("markdown", "<!-- gputier review gputier/prod -->\n"),
        ("json", "{\n"),
        ("html", "<!doctype html>\n"),
    ],
)
def test_each_format_is_what_its_reader_takes(
    run: Run, here: Path, format_: str, begins: str
) -> None:
    ran = run("review", "prod-change.json", "--format", format_)
    assert ran.code == 0
    assert ran.out.startswith(begins)


def test_a_failed_preview_exits_with_6_and_says_why(run: Run, here: Path) -> None:
    ran = run("review", "bad-argument.json")
    assert ran.code == 6
    assert "did you mean 'p5.48xlarge'" in ran.err
    assert ran.out.startswith("sample: no review: the preview failed")


@pytest.mark.parametrize(("limit", "code"), [("0.05", 5), ("0.1", 0), ("100", 0)])
def test_a_rise_over_the_limit_exits_with_5(run: Run, here: Path, limit: str, code: int) -> None:
    ran = run("review", "create.json", "--fail-over", limit)
    assert ran.code == code
    assert ("is over the limit" in ran.err) is (code == 5)
    assert ran.out, "and yet it is shown"


def test_less_than_the_limit_never_fails(run: Run, here: Path) -> None:
    base = ("--base", "prod-export.json")
    assert run("review", "prod-change.json", *base, "--fail-over", "0").code == 0


def test_below_the_threshold_nothing_is_printed_unless_something_warns(
    run: Run, here: Path
) -> None:
    quiet = run("review", "update.json", "--threshold", "5")
    assert (quiet.code, quiet.out) == (0, "")
    assert "less than the threshold: no known cost changes" in quiet.err
    assert run("review", "update.json").out != ""
    assert "public address" in run("review", "create.json", "--threshold", "5").out
    assert run("review", "bad-argument.json", "--threshold", "5").out != ""


def test_a_machine_that_has_no_price_is_no_small_difference(run: Run, here: Path) -> None:
    preview = json.loads((here / "update.json").read_text("utf-8"))
    urn = "urn:pulumi:sample::fleet::aws:ec2/instance:Instance::cpu"
    inputs = {"instanceType": "m7i.48xlarge", "region": "us-east-1"}
    made = {"urn": urn, "type": "aws:ec2/instance:Instance", "custom": True, "inputs": inputs}
    preview["steps"].append({"op": "create", "urn": urn, "newState": made})
    (here / "update.json").write_text(json.dumps(preview), encoding="utf-8")
    assert "m7i.48xlarge" in run("review", "update.json", "--threshold", "5").out


def test_a_preview_may_come_by_a_pipe(
    run: Run, here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = (SAMPLES / "create.json").read_bytes()
    monkeypatch.setattr("sys.stdin", SimpleNamespace(buffer=io.BytesIO(data)))
    assert run("review", "-").out == run("review", "create.json").out


def test_a_file_that_is_not_there_is_a_mistake_with_the_way_to_make_one(
    run: Run, here: Path
) -> None:
    ran = run("review", "none.json")
    assert ran.code == 2
    assert "none.json: No such file" in ran.err
    assert "`pulumi preview --json > preview.json`" in ran.err


def test_a_base_of_another_stack_is_a_mistake(run: Run, here: Path) -> None:
    ran = run("review", "update.json", "--base", "prod-export.json")
    assert ran.code == 2
    assert "the base is of gputier/prod, and the preview of fleet/sample" in ran.err


@pytest.mark.allow_hosts(["127.0.0.1"])
def test_it_is_posted_as_one_comment_and_a_fork_that_may_not_is_told(
    run: Run, here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    service = github.GitHub().start()
    environ = {
        "GITHUB_TOKEN": github.TOKEN,
        "GITHUB_REPOSITORY": "o/r",
        "GPUTIER_PULL_REQUEST": "7",
        "GITHUB_API_URL": service.url,
    }
    for name, value in environ.items():
        monkeypatch.setenv(name, value)
    change = ("review", "prod-change.json", "--base", "prod-export.json", "--post", "github")
    assert "posted: https://github.com/o/r/pull/7#issuecomment-1000" in run(*change).err
    assert run(*change).code == 0
    assert len(service.comments) == 1
    assert service.comments[0]["body"].startswith("<!-- gputier review gputier/prod -->")
    service.comments.clear()
    assert run("review", "noop.json", "--post", "github", "--threshold", "5").code == 0
    assert service.comments == [], "nothing changes, and nobody is told"
    assert run("review", "noop.json", "--post", "github").code == 0
    assert service.comments == []
    assert run("review", "noop.json", "--post", "github", "--always").code == 0
    assert "nothing changes" in service.comments.pop()["body"]
    service.may_comment = False
    refused = run(*change)
    assert (refused.code, "not posted: " in refused.err) == (0, True)
    assert refused.out.startswith("prod: ")
    monkeypatch.setenv("GITHUB_TOKEN", "wrong")
    assert run(*change).code == 2
    service.stop()


@pytest.mark.parametrize("columns", [60, 80, 120])
def test_the_screen_is_as_wide_as_the_terminal(run: Run, here: Path, columns: int) -> None:
    change = ("review", "prod-change.json", "--base", "prod-export.json")
    lines = run(*change, columns=columns).out.splitlines()
    assert max(map(len, lines[1:-1])) <= columns
    reason = "−$97,049  p5en.48xlarge → p4de.24xlarge"
    assert any(reason in line for line in lines) is (columns == 120)


def test_another_stack_of_ours_is_a_mistake(run: Run, here: Path) -> None:
    ran = run("review", "prod-change.json", "--stack", "dev")
    assert ran.code == 2
    assert "the preview is of the stack prod, and not of dev" in ran.err


def test_a_stack_without_a_lock_is_told_so(run: Run, here: Path) -> None:
    ran = run("review", "prod-change.json", "--stack", "prod")
    assert ran.code == 0
    assert "gputier.prod.lock is not there" in ran.err
    assert "The lock holds" not in ran.out


def test_a_stack_of_ours_is_held_against_its_lock(run: Run, here: Path) -> None:
    assert run("lock", "prod").code == 0
    ran = run("review", "prod-change.json", "--base", "prod-export.json", "--stack", "prod")
    assert ran.code == 0
    assert "the lock does not hold it" in ran.out
    base = ("--base", "prod-export.json", "--stack", "prod", "--json")
    document = json.loads(run("review", "prod-change.json", *base).out)
    assert "lock-disagrees" in {risk["rule"] for risk in document["risks"]}
