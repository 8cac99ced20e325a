"""A new project's other files: what it installs, and that its own tools find nothing in it."""

from __future__ import annotations

import json
import subprocess
import sys
from importlib import metadata
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from tests.init.test_workflows import CLOUDS, project, written

import gputier
from gputier.cli.init_files import STACKS
from gputier_policies import RULES


def requirements(clouds: tuple[str, ...]) -> list[Requirement]:
    text = project(clouds)["requirements.txt"]
    return [Requirement(line) for line in text.splitlines() if not line.startswith("#")]


@pytest.mark.parametrize("clouds", CLOUDS, ids="-".join)
def test_what_a_project_installs_is_what_these_tests_ran_with(clouds: tuple[str, ...]) -> None:
    found = {one.name: one for one in requirements(clouds)}
    assert list(found) == ["gputier", "protobuf", "ruff"]
    for name, one in found.items():
        assert one.specifier.contains(metadata.version(name)), one
    assert str(found["gputier"].specifier) == f"=={gputier.__version__}"
    assert found["gputier"].extras == {*clouds, "policy", "post"}
    assert found["gputier"].extras <= set(
        metadata.metadata("gputier").get_all("Provides-Extra") or ()
    )


@pytest.mark.parametrize("arguments", [("check",), ("format", "--check")], ids=" ".join)
def test_a_new_project_passes_its_own_lint(tmp_path: Path, arguments: tuple[str, ...]) -> None:
    folder = written(tmp_path)
    done = subprocess.run(
        [sys.executable, "-m", "ruff", *arguments, "."],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout


def test_the_policies_numbers_name_rules_that_there_are_and_each_environment() -> None:
    rules = {rule.name: rule for rule in RULES}
    for stack in STACKS:
        numbers = json.loads(project()[f"policies/config.{stack}.json"])
        for name, given in numbers.items():
            assert set(given) <= set(rules[name].settings), name
        # A rule that differs between environments has to know which one it judges.
        asks = {name for name, rule in rules.items() if "environment" in rule.settings}
        assert {n for n, given in numbers.items() if given.get("environment") == stack} == asks
        # A limit that is 0 or empty is none.
        limits = {name for name in rules if "-limits-" in name and rules[name].settings}
        assert limits <= set(numbers)
