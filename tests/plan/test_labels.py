"""Tags as labels of Google: taken as they are, or refused."""

from __future__ import annotations

import pytest

from gputier.plan.labels import label, label_problems


@pytest.mark.parametrize("tags", [{"team": "vision"}, {"cost_center": "4711"}, {"a": ""}])
def test_a_tag_that_is_a_label_is_taken(tags: dict[str, str]) -> None:
    assert list(label_problems(tags, "workloads.job")) == []


@pytest.mark.parametrize(
    ("tags", "hint"),
    [
        ({"Team": "vision"}, "`team: vision`"),
        ({"team": "Vision AI"}, "`team: vision-ai`"),
        ({"1st": "x"}, "`tag-1st: x`"),
        ({"owner": "a@b.example"}, "`owner: a-b-example`"),
        ({"team": "x" * 64}, f"`team: {'x' * 63}`"),
    ],
)
def test_another_is_refused_with_what_would_do(tags: dict[str, str], hint: str) -> None:
    (problem,) = label_problems(tags, "workloads.job")
    assert problem.path == "workloads.job.tags"
    assert problem.hint == hint


def test_words_of_ours_become_values_without_a_dash_at_either_end() -> None:
    assert label("My.Project_1") == "my-project_1"
    assert label("-" * 70) == ""
