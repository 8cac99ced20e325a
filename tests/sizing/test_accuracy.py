"""How near the parts come to 151 published peaks, and whether they would have refused 17 failures.

cases.jsonl holds them with their sources: LitGPT's resource tables and configuration hub, Qwen's
profiling tables, Qwen3's speed benchmark. They were read, not fitted to: every constant has its
own derivation (docs/sizing.md). Rows marked `suspect` contradict their own recipe and are left out.

What is compared is what a framework's counters see: `needed_gib` without the allowances that only
planning adds (1 GiB of engine for serving, half of the 1 GiB of runtime for training).
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from gputier.sizing import Sizing, size
from gputier.workload import Workload

CASES = Path(__file__).with_name("cases.jsonl")
CLASSES = ("LoRA", "QLoRA", "full training", "serving 16-bit", "serving quantised")

# What a process can really allocate of the cards in the rows, GiB.
USABLE = {"A100-40GB": 39.4, "A100-80GB": 79.1, "A10G": 22.0, "H20-96GB": 95.1}

FUSED_LOSS = {"litgpt", "litgpt-a10g"}
"""LitGPT's adapter recipes chunk the loss (finetune/lora.py, lm_head_chunk_size=128)."""


class Scored(NamedTuple):
    """One row: its class and source, GiB per GPU published, expected, planned and by the rule."""

    kind: str
    cluster: str
    works: bool
    measured: float | None
    expected: float
    planned: float
    rule: float
    fits: bool
    fits_bare: bool

    @property
    def error(self) -> float:
        assert self.measured
        return self.expected / self.measured - 1


def rows() -> Iterator[dict[str, Any]]:
    for line in CASES.read_text(encoding="utf-8").splitlines():
        yield json.loads(line)


def declared(row: dict[str, Any], *, loss_known: bool = False) -> dict[str, Any]:
    """The row as the `model` of a workload, with what its source says about the recipe."""
    arch = row["arch"]
    model: dict[str, Any] = {
        "parameters": round(row["params_b"] * 1e9),
        "precision": {"int8-gptq": "int8"}.get(row["precision"], row["precision"]),
        "context_tokens": row["context_len"],
        "architecture": {
            "layers": arch["L"],
            "hidden_size": arch["h"],
            "attention_heads": arch["heads"],
            "kv_heads": arch["kv"],
            "head_size": arch["hd"],
            "ffn_size": arch["ff"],
            "vocabulary_size": arch["V"],
            "gated_ffn": arch["gated_mlp"],
        },
    }
    if row["method"] == "none":
        return {**model, "concurrent_sequences": row["batch"]}
    sharded = row.get("sharding") in ("FSDP", "ZeRO", "ZeRO-3")
    training: dict[str, Any] = {
        "method": row["method"],
        "batch_per_gpu": row["batch"],
        "gradient_checkpointing": "full" if row["grad_ckpt"] else "none",
        "sharding": "zero-3" if sharded else "none",
        "fused_loss": loss_known and row["cluster"] in FUSED_LOSS,
        # LitGPT trains with --precision bf16-true, Qwen through DeepSpeed's bf16 engine.
        "state": "mixed" if row["cluster"] == "qwen" else "pure-16bit",
    }
    if row["method"] != "full":
        training |= {"lora_rank": row["lora_rank"], "lora_targets": row["lora_targets"].split(",")}
    return {**model, "training": training}


def kind_of(row: dict[str, Any]) -> str:
    names = {"lora": "LoRA", "qlora": "QLoRA", "full": "full training"}
    sixteen = row["precision"] == "bf16"
    return names.get(row["method"]) or ("serving 16-bit" if sixteen else "serving quantised")


def sizing(row: dict[str, Any], *, loss_known: bool = False) -> Sizing:
    workload = Workload.model_validate({"model": declared(row, loss_known=loss_known)})
    found = size(workload, gpus=row["stated_gpu_count"])
    assert found
    return found


@cache
def scored(*, loss_known: bool = False) -> tuple[Scored, ...]:
    result: list[Scored] = []
    for row in rows():
        if row.get("suspect"):
            continue
        found = sizing(row, loss_known=loss_known)
        serving = row["method"] == "none"
        usable = USABLE[row["stated_gpu"]]
        result.append(
            Scored(
                kind=kind_of(row),
                cluster=row["cluster"],
                works=row["works"],
                measured=row.get("vram_gib_per_gpu"),
                expected=found.needed_gib - (1.0 if serving else 0.5),
                planned=found.per_gpu_gib,
                rule=row["params_b"] * 2 * 1.5 * 1e9 / 2**30 / row["stated_gpu_count"],
                fits=found.fits(usable),
                fits_bare=found.needed_gib <= found.limit_fraction * usable,
            )
        )
    return tuple(result)


def measured(kind: str, *, loss_known: bool = False) -> list[Scored]:
    return [s for s in scored(loss_known=loss_known) if s.kind == kind and s.measured]


def mean(values: list[float]) -> float:
    return sum(values) / len(values)


def by_source(kind: str, *, loss_known: bool = False) -> float:
    groups: defaultdict[str, list[float]] = defaultdict(list)
    for row in measured(kind, loss_known=loss_known):
        groups[row.cluster].append(abs(row.error))
    return mean([mean(errors) for errors in groups.values()])


BOUNDS = {
    "LoRA": 0.17,
    "QLoRA": 0.22,
    "full training": 0.20,
    "serving 16-bit": 0.05,
    "serving quantised": 0.09,
}


@pytest.mark.parametrize(("kind", "bound"), BOUNDS.items())
def test_the_mean_error_stays_below_its_bound(kind: str, bound: float) -> None:
    assert mean([abs(row.error) for row in measured(kind)]) <= bound


@pytest.mark.parametrize("kind", CLASSES)
def test_the_parts_are_nearer_than_the_rule_of_thumb(kind: str) -> None:
    rule = mean([abs(row.rule / (row.measured or 1) - 1) for row in measured(kind)])
    assert mean([abs(row.error) for row in measured(kind)]) < rule / 2


@pytest.mark.parametrize(
    ("kind", "missed"),
    # LoRA and full training miss LitGPT's FSDP rows, serving the rows that generate in batches
    # outside an engine: docs/sizing.md, "Where it errs".
    [
        ("LoRA", 3),
        ("QLoRA", 1),
        ("full training", 2),
        ("serving 16-bit", 5),
        ("serving quantised", 7),
    ],
)
def test_the_margin_covers_the_published_peaks(kind: str, missed: int) -> None:
    below = [row for row in measured(kind) if row.planned < (row.measured or 0)]
    assert len(below) <= missed


def test_most_jobs_that_ran_are_accepted_and_most_that_failed_refused() -> None:
    ran = [row.fits for row in scored() if row.works]
    failed = [row.fits for row in scored() if not row.works]
    assert sum(ran) / len(ran) >= 0.90
    assert failed.count(False) / len(failed) >= 0.70


@pytest.mark.parametrize(("kind", "bound"), BOUNDS.items())
def test_no_single_source_carries_the_result(kind: str, bound: float) -> None:
    found = measured(kind)
    for source in {row.cluster for row in found}:
        rest = [abs(row.error) for row in found if row.cluster != source]
        if len(rest) >= 5:  # two rows of LitGPT are left of full training without Qwen's
            assert mean(rest) <= 1.6 * bound, source


def test_every_row_has_its_source() -> None:
    held = list(rows())
    assert len(held) == 168
    assert all(row["source"] and row["date"] for row in held)


def accuracy_table() -> str:
    lines = [
        "| | rows | mean error | mean over sources | loss kernel declared | more than 2 % low |"
        " below the peak with margin | rule of thumb |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for kind in CLASSES:
        found = measured(kind)
        error = mean([abs(row.error) for row in found])
        known = mean([abs(row.error) for row in measured(kind, loss_known=True)])
        rule = mean([abs(row.rule / (row.measured or 1) - 1) for row in found])
        low = sum(row.error < -0.02 for row in found)
        missed = sum(row.planned < (row.measured or 0) for row in found)
        kernel = f"{known:.1%}" if not kind.startswith("serving") else ""
        lines.append(
            f"| {kind} | {len(found)} | {error:.1%} | {by_source(kind):.1%} | {kernel} | {low} |"
            f" {missed} | {rule:.0%} |"
        )
    ran = [row for row in scored() if row.works]
    failed = [row for row in scored() if not row.works]
    lines += [
        "",
        "As a yes or no on the named GPU: with margin and limit, which is what selection asks,"
        f" {sum(r.fits for r in ran)} of {len(ran)} jobs that ran are accepted and"
        f" {sum(not r.fits for r in failed)} of {len(failed)} that ran out of memory refused;"
        f" without the margin {sum(r.fits_bare for r in ran)} and"
        f" {sum(not r.fits_bare for r in failed)}.",
    ]
    return "\n".join(lines)


def test_the_table_in_the_documentation_is_this_one(
    generated: Callable[[str, str, str], None],
) -> None:
    generated("docs/sizing.md", "accuracy", accuracy_table())
