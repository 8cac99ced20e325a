"""Floors under how near sizing comes to published peaks; accuracy.py scores.

A floor holds for every class, and again with each source left out, so that none carries a result.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest
from tests.sizing import accuracy
from tests.sizing.accuracy import CLASSES, FULLY, PLAIN, Knows, by_source, expected, mean, measured

from gputier.sizing import size
from gputier.workload import Workload

BOUNDS = {
    "LoRA": 0.12,
    "QLoRA": 0.15,
    "full training": 0.15,
    "serving 16-bit": 0.06,
    "serving quantised": 0.08,
}
"""Of the mean over sources, with nothing known of the recipe but what its row says."""

FULL_BOUNDS = {"LoRA": 0.10, "QLoRA": 0.14, "full training": 0.15}


def over_sources(kind: str, knows: Knows = PLAIN, *, without: str = "") -> float:
    errors = by_source(kind, expected, knows)
    return mean(error for source, error in errors.items() if source != without)


@pytest.mark.parametrize(("kind", "bound"), BOUNDS.items())
def test_the_mean_error_over_sources_stays_below_its_bound(kind: str, bound: float) -> None:
    assert over_sources(kind) <= bound


@pytest.mark.parametrize(("kind", "bound"), FULL_BOUNDS.items())
def test_a_recipe_that_is_fully_declared_comes_nearer(kind: str, bound: float) -> None:
    assert over_sources(kind, FULLY) <= min(bound, over_sources(kind))


@pytest.mark.parametrize("kind", CLASSES)
def test_the_parts_are_nearer_than_the_rule_of_thumb_and_the_published_tables(kind: str) -> None:
    found = measured(kind)
    ours = mean(abs(row.error) for row in found)
    assert ours < mean(abs(row.rule / (row.measured or 1) - 1) for row in found) / 2
    assert ours < mean(abs(row.table / (row.measured or 1) - 1) for row in found)


@pytest.mark.parametrize(("kind", "bound"), BOUNDS.items())
def test_no_single_source_carries_the_result(kind: str, bound: float) -> None:
    for source in by_source(kind, expected, FULLY):
        if len(by_source(kind, expected, FULLY)) > 1:
            assert over_sources(kind, FULLY, without=source) <= 1.25 * bound, source


@pytest.mark.parametrize("kind", CLASSES)
def test_the_range_holds_nearly_nine_of_ten_peaks(kind: str) -> None:
    found = measured(kind, FULLY)
    inside = [row.low <= (row.measured or 0) <= row.high for row in found]
    assert sum(inside) / len(inside) >= 0.85


@pytest.mark.parametrize("kind", CLASSES)
def test_the_range_holds_them_too_when_a_parameter_count_is_all_that_is_declared(kind: str) -> None:
    inside: list[bool] = []
    for row in accuracy.rows():
        peak = row.get("vram_gib_per_gpu")
        if peak and not row.get("suspect") and accuracy.kind_of(row) == kind:
            model = accuracy.declared(row, FULLY)
            del model["architecture"]
            workload = Workload.model_validate({"model": model})
            found = size(workload, gpus=row["stated_gpu_count"])
            assert found
            assert found.confidence == "weak"
            inside.append(found.range_gib[0] <= peak <= found.range_gib[1])
    assert sum(inside) / len(inside) >= 0.85


@pytest.mark.parametrize("knows", [PLAIN, FULLY])
def test_jobs_that_ran_are_accepted(knows: Knows) -> None:
    ran, of_ran, _, _ = accuracy.judged(knows)
    assert ran / of_ran >= 0.96


def test_jobs_that_ran_out_of_memory_are_refused() -> None:
    for knows in (PLAIN, FULLY):
        _, _, failed, of_failed = accuracy.judged(knows)
        assert failed / of_failed >= 0.85


@pytest.mark.parametrize("source", ["litgpt", "litgpt-a10g", "qwen", "qwen3"])
def test_no_single_source_carries_the_verdicts(source: str) -> None:
    ran, of_ran, failed, of_failed = accuracy.judged(FULLY, without=source)
    assert ran / of_ran >= 0.96
    assert failed / of_failed >= 0.75


def test_a_margin_of_five_points_more_would_refuse_jobs_that_ran_and_gain_nothing() -> None:
    lines = accuracy.margin_table().splitlines()
    now = next(line for line in lines if line.startswith("| 2%"))
    more = next(line for line in lines if line.startswith("| 5%"))
    assert now.split("|")[3] == more.split("|")[3]
    assert int(now.split("|")[2].split()[0]) > int(more.split("|")[2].split()[0])


def test_every_row_has_its_source() -> None:
    held = list(accuracy.rows())
    assert len(held) == 168
    assert all(row["source"] and row["date"] for row in held)


def test_the_report_has_every_table() -> None:
    report = accuracy.report()
    assert all(kind in report for kind in CLASSES)
    assert report.count("\n# ") == 4
    assert "Qwen3-8B bf16 | 2,049 → 32,768 | +4.22 | +4.22" in report


@pytest.mark.parametrize(
    ("name", "table"),
    [
        ("accuracy", accuracy.error_table),
        ("accuracy by source", accuracy.source_table),
        ("verdicts", accuracy.verdict),
        ("margins", accuracy.margin_table),
    ],
)
def test_the_tables_in_the_documentation_are_these(
    name: str, table: Callable[[], str], generated: Callable[[str, str, str], None]
) -> None:
    generated("docs/sizing.md", name, table())
