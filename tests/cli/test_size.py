"""`gputier size`: the figure for the GPUs that are declared, part by part."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests.cli.world import Run

from gputier.catalog import Catalog

MODEL = "model: {name: llama-3.1-8b, precision: bf16, context_tokens: 8192}"


def sized(run: Run, project: Path, body: str, name: str = "w.yaml") -> dict[str, Any]:
    (project / name).write_text(f"workloads:\n  job: {{{body}}}\n", encoding="utf-8")
    ran = run("size", name, "--json")
    assert ran.code == 0, ran.err
    document = json.loads(ran.out)
    assert document["name"] == "w"
    found: dict[str, Any]
    (found,) = document["workloads"]
    return found


def test_the_parts_sum_to_the_size(run: Run, project: Path, small: Catalog) -> None:
    found = sized(run, project, MODEL)
    total = sum(found["parts"].values())
    assert round(total, 4) == round(found["per_gpu_gib"], 4)
    assert list(found["parts"]) == list(found["formulas"])


@pytest.mark.parametrize(
    ("body", "gpus"),
    [(MODEL, 1), (f"{MODEL}, gpu: {{count: 4}}", 4), (f"{MODEL}, gpu: {{count: 4}}, nodes: 2", 8)],
)
def test_the_size_is_for_the_declared_gpus(
    body: str, gpus: int, run: Run, project: Path, small: Catalog
) -> None:
    assert sized(run, project, body)["gpus"] == gpus


def test_without_a_model_there_is_no_size_and_no_zero(
    run: Run, project: Path, small: Catalog
) -> None:
    found = sized(run, project, "gpu: {count: 2}")
    assert found["gpus"] == 2
    assert found["per_gpu_gib"] is None
    assert found["total_gib"] is None
    assert found["fits"] == {}
    assert "nothing to size" in run("size", "w.yaml").out


def test_every_card_of_the_catalogue_is_judged(run: Run, project: Path, small: Catalog) -> None:
    found = sized(run, project, MODEL)
    fits = found["fits"]
    assert set(fits) == set(small.gpus)
    assert fits["T4"] is False
    assert fits["H100-80GB"] is True


def test_what_the_tier_keeps_free_is_part_of_the_margin(
    run: Run, project: Path, small: Catalog
) -> None:
    plain, mid = sized(run, project, MODEL), sized(run, project, f"tier: mid, {MODEL}")
    assert mid["per_gpu_gib"] > plain["per_gpu_gib"]
    assert "30 % kept free" in run("size", "w.yaml").out


def test_a_model_that_no_card_holds_says_what_would_help(
    run: Run, project: Path, small: Catalog
) -> None:
    sized(run, project, "model: {parameters: 2T, precision: bf16, context_tokens: 2048}")
    assert "no card there is; more GPUs share the load" in run("size", "w.yaml").out


def test_all_unknown_models_are_said_at_once_with_their_places(
    run: Run, project: Path, small: Catalog
) -> None:
    (project / "w.yaml").write_text(
        "workloads:\n  a: {model: {name: lama-3.1-8b}}\n  b: {model: {name: nosuch-1}}\n",
        encoding="utf-8",
    )
    ran = run("size", "w.yaml")
    assert (ran.code, ran.out) == (2, "")
    assert "error: w.yaml: 2 problems" in ran.err
    assert "\n  2:21 " in ran.err
    assert "\n  3:21 " in ran.err


def test_bars_are_in_proportion(run: Run, project: Path, small: Catalog) -> None:
    found = sized(run, project, MODEL)
    lines = [line for line in run("size", "w.yaml").out.splitlines() if "█" in line]
    values: list[float] = list(found["parts"].values())
    blocks = [line.count("█") for line in lines]
    assert blocks == [max(1, round(24 * value / max(values))) for value in values]
