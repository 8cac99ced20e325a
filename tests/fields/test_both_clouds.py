"""Every field of a workload means the same on every cloud that is deployed, or is refused there
with the reason and a way out: none is ignored. docs/workload.md has what becomes of each."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.fields import page, walk
from tests.plan.test_every_field import CASES, model_files

from gputier.catalog import load
from gputier.errors import Problem

__all__ = ["model_files"]
PAGE = Path(__file__).parents[2] / "docs" / "workload.md"
#: Where a refusal may be said, beside at the field itself: what it asks for is elsewhere too.
ELSEWHERE = {
    "capacity.start": {"capacity.start", "capacity"},
    "network.subnets": {"network.subnets", "network.vpc"},
}
PAIRS = [(cloud, path) for path in CASES for cloud in walk.CLOUDS if not CASES[path].refused]
CHOOSING = [(cloud, path) for cloud, path in PAIRS if path not in walk.NO_CHOICE[cloud]]
DEPLOYED = [pair for pair in CHOOSING if not walk.is_plans(*pair)]
PLANNED = [pair for pair in CHOOSING if walk.is_plans(*pair)]


def field_of(problem: Problem) -> str:
    """The field that a problem is at, without the workload's name and places in lists."""
    return re.sub(r"^(workloads\.)?job\.?|\[\d+\]", "", problem.path)


@pytest.mark.parametrize("cloud", walk.CLOUDS)
def test_what_is_told_otherwise_or_left_to_the_plan_is_a_field(cloud: str) -> None:
    assert {*walk.PLAN_ALONE[cloud], *walk.OWN[cloud], *walk.NO_CHOICE[cloud]} <= set(CASES)


def test_what_is_no_choice_on_google_is_none() -> None:
    """Once a card or a machine differs in it, it is walked as the others are."""
    rows = load().rows(["gcp"])
    assert all(load().gpus[row.gpu_model].nvdec_count for row in rows)


@pytest.mark.slow
@pytest.mark.parametrize(("cloud", "path"), PLANNED)
def test_a_field_that_chooses_changes_the_plan_on_each_cloud(cloud: str, path: str) -> None:
    before, after = walk.planned_on(cloud, path)
    assert before != after


@pytest.mark.slow
@pytest.mark.parametrize(("cloud", "path"), DEPLOYED)
def test_a_field_that_is_set_reaches_a_resource_or_is_refused(cloud: str, path: str) -> None:
    change = walk.changed(cloud, path)
    assert change.before.made, change.before.problems
    if not change.after.problems:
        assert walk.reached(change), "it is ignored"
        return
    assert change.said
    for problem in change.said:
        assert field_of(problem) in ELSEWHERE.get(path, {path}), problem
        assert problem.message
        assert problem.hint, "a refusal without a way out"


@pytest.mark.slow
def test_the_page_has_what_each_field_becomes(generated: Callable[[str, str, str], None]) -> None:
    generated("docs/workload.md", "clouds", page.text())
