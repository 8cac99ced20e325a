"""`gputier size`: the figure for the GPUs that are declared, part by part."""

from __future__ import annotations

import json
import re
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


def test_a_card_that_holds_it_says_how_much_more_it_holds(
    run: Run, project: Path, small: Catalog
) -> None:
    found = sized(run, project, MODEL)
    assert set(found["room"]) == {model for model, fits in found["fits"].items() if fits}
    assert found["room"]["H100-80GB"]["context_tokens"] == 131_072
    sequences = found["room"]["L4"]["concurrent_sequences"]
    more = f"{MODEL[:-1]}, concurrent_sequences: {sequences}}}"
    assert f"up to {sequences} sequences of 8,192 tokens" in run("size", "w.yaml").out
    assert sized(run, project, more)["fits"]["L4"]
    over = f"{MODEL[:-1]}, concurrent_sequences: {sequences + 1}}}"
    assert not sized(run, project, over)["fits"]["L4"]


def test_the_samples_of_a_packed_batch_are_of_up_to_so_many_tokens(
    run: Run, project: Path, small: Catalog
) -> None:
    packed = (
        "model: {name: llama-3.2-1b, context_tokens: 4096,"
        " training: {method: lora, batch_per_gpu: 2, mean_tokens: 500}}"
    )
    sized(run, project, packed)
    said = run("size", "w.yaml").out
    assert "2 × up to 4,096 tokens" in said
    assert "samples of up to 4,096 tokens" in said


def test_a_range_and_the_rule_of_thumb_stand_beside(
    run: Run, project: Path, small: Catalog
) -> None:
    found = sized(run, project, MODEL)
    low, high = found["range_gib"]
    assert low < found["per_gpu_gib"] - found["parts"]["margin"] < high
    assert found["rule_of_thumb_gib"] > found["per_gpu_gib"]
    out = run("size", "w.yaml").out
    assert "peak expected 15–18 GiB, confidence good" in out
    assert "rule of thumb: 22.4 GiB" in out


def test_what_to_change_is_named_with_what_it_saves(
    run: Run, project: Path, small: Catalog
) -> None:
    training = "training: {method: lora, batch_per_gpu: 4, gradient_checkpointing: full}"
    found = sized(run, project, f"{MODEL[:-1]}, {training}}}")
    changes = {s["change"]: s for s in found["savings"]}
    fused = changes["fused_loss: true"]
    assert fused["per_gpu_gib"] == pytest.approx(found["per_gpu_gib"] - fused["saves_gib"])
    assert f"fused_loss: true saves {fused['saves_gib']:.1f} GiB" in run("size", "w.yaml").out


def test_fewer_cards_are_named_where_a_change_makes_do_with_them(
    run: Run, project: Path, small: Catalog
) -> None:
    body = "model: {name: llama-3.1-8b, context_tokens: 4096, concurrent_sequences: 4}"
    sized(run, project, f"{body}, gpu: {{count: 2}}")
    out = " ".join(run("size", "w.yaml").out.split())
    assert re.search(r"precision: int4-awq saves [\d.]+ GiB: 1 × \S+ instead of 2", out), out


def test_cards_without_nvlink_are_named_when_several_share_a_model(
    run: Run, project: Path, small: Catalog
) -> None:
    sized(run, project, f"{MODEL}, gpu: {{count: 2}}")
    assert "goes over PCIe" in " ".join(run("size", "w.yaml").out.split())
    sized(run, project, MODEL)
    assert "goes over PCIe" not in " ".join(run("size", "w.yaml").out.split())


def test_a_simulation_is_sized_without_a_model(run: Run, project: Path, small: Catalog) -> None:
    found = sized(run, project, "purpose: hpc, model: {qubits: 30}")
    assert found["parts"]["activations"] == 16
    assert found["room"] == {}
    assert found["savings"] == []
    assert found["rule_of_thumb_gib"] is None
