"""How near sizing comes to published peaks: `make accuracy` prints it, test_accuracy.py holds it.

cases.jsonl has 151 published peaks and 17 jobs that ran out of memory, with their sources: LitGPT's
resource tables and configuration hub, Qwen's profiling tables, Qwen3's speed benchmark. They were
read, not fitted to: every constant has its own derivation (docs/sizing.md). Rows marked `suspect`
contradict their own recipe and are left out.

Compared is `needed_gib`, everything but the margin: what a framework's counters see.
"""

from __future__ import annotations

import json
import sys
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from gputier.sizing import Sizing, size
from gputier.workload import Workload

CASES = Path(__file__).with_name("cases.jsonl")
CLASSES = ("LoRA", "QLoRA", "full training", "serving 16-bit", "serving quantised")

# What a process can really allocate of the cards in the rows, GiB.
USABLE = {"A100-40GB": 39.4, "A100-80GB": 79.1, "A10G": 22.0, "H20-96GB": 95.1}

LITGPT = {"litgpt", "litgpt-a10g"}

LITGPT_WIDE = ("Gemma", "TinyLlama", "phi-2", "Phi-3")
"""Models whose adapters LitGPT's config_hub/finetune puts on every linear layer; on q and v of the
others. Its q, k and v are one matrix with one adapter. All of its recipes drop inputs
(lora_dropout 0.05, Gemma 0.1)."""


SHARDING = {"FSDP": "fsdp", "ZeRO": "zero-3", "ZeRO-3": "zero-3"}
"""What a row says, as it is declared."""


class Knows(NamedTuple):
    """What the declaration says beyond the row: the recipe as its source has it, and who shards."""

    recipe: bool = False
    library: bool = False


PLAIN, FULLY = Knows(), Knows(recipe=True, library=True)


class Scored(NamedTuple):
    """One row: its class and source, GiB per GPU published, expected, planned and by others."""

    id: str
    kind: str
    cluster: str
    works: bool
    measured: float | None
    expected: float
    parts: dict[str, float]
    low: float
    high: float
    planned: float
    rule: float
    table: float
    usable: float
    limit: float
    fits: bool

    @property
    def error(self) -> float:
        """Expected against measured; only of rows that have a peak."""
        assert self.measured
        return self.expected / self.measured - 1


def rows() -> Iterator[dict[str, Any]]:
    """The published rows."""
    for line in CASES.read_text(encoding="utf-8").splitlines():
        yield json.loads(line)


def declared(row: dict[str, Any], knows: Knows = PLAIN) -> dict[str, Any]:
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
    training: dict[str, Any] = {
        "method": row["method"],
        "batch_per_gpu": row["batch"],
        "gradient_checkpointing": "full" if row["grad_ckpt"] else "none",
        "sharding": SHARDING.get(row.get("sharding", ""), "none"),
        # LitGPT trains with --precision bf16-true, Qwen through DeepSpeed's bf16 engine.
        "state": "mixed" if row["cluster"] == "qwen" else "pure-16bit",
    }
    if knows.library and training["sharding"] == "zero-3":
        training["sharded_by"] = "deepspeed"
    if row["method"] != "full":
        training |= _adapters(row, knows)
    return {**model, "training": training}


def _adapters(row: dict[str, Any], knows: Knows) -> dict[str, Any]:
    targets = row["lora_targets"].split(",")
    if "trainable" in row["model"]:
        targets += ["embed_tokens", "lm_head"]
    found: dict[str, Any] = {"lora_rank": row["lora_rank"], "lora_targets": targets}
    if knows.recipe and row["cluster"] in LITGPT:
        # Adapter recipes chunk the loss (finetune/lora.py, lm_head_chunk_size=128).
        found |= {"fused_loss": True, "lora_dropout": 0.05}
        wide = row["cluster"] == "litgpt-a10g" and row["model"].startswith(LITGPT_WIDE)
        found["lora_targets"] = ["qkv", "o", "mlp"] if wide else ["qkv"]
    return found


def kind_of(row: dict[str, Any]) -> str:
    """The row's class."""
    names = {"lora": "LoRA", "qlora": "QLoRA", "full": "full training"}
    sixteen = row["precision"] == "bf16"
    return names.get(row["method"]) or ("serving 16-bit" if sixteen else "serving quantised")


def sizing(row: dict[str, Any], knows: Knows = PLAIN) -> Sizing:
    """The row sized."""
    workload = Workload.model_validate({"model": declared(row, knows)})
    found = size(workload, gpus=row["stated_gpu_count"])
    assert found
    return found


def table_gb(row: dict[str, Any]) -> float:
    """What published tables say for the row, GB on all GPUs.

    Training: LLaMA-Factory's README, GB per billion parameters (full 18 in mixed precision and 8 in
    pure bf16, LoRA 2, QLoRA 1 at 8 bits and 0.5 at 4). Serving: weights × 1.2, as the calculators
    that follow "Transformer Math 101" (EleutherAI) do.
    """
    billions = row["params_b"]
    bits = {"bf16": 16, "fp8": 8, "int8-gptq": 8, "int8": 8}.get(row["precision"], 4)
    match row["method"]:
        case "none":
            return billions * bits / 8 * 1.2
        case "full":
            return billions * (18 if row["cluster"] == "qwen" else 8)
        case "lora":
            return billions * 2
        case _:
            return billions * bits / 8


@cache
def scored(knows: Knows = PLAIN) -> tuple[Scored, ...]:
    """Every row that does not contradict itself."""
    result: list[Scored] = []
    for row in rows():
        if row.get("suspect"):
            continue
        found = sizing(row, knows)
        usable, gpus = USABLE[row["stated_gpu"]], row["stated_gpu_count"]
        low, high = found.range_gib
        rule = found.rule_of_thumb_gib
        assert rule
        result.append(
            Scored(
                id=row["id"],
                kind=kind_of(row),
                cluster=row["cluster"],
                works=row["works"],
                measured=row.get("vram_gib_per_gpu"),
                expected=found.needed_gib,
                parts={part.name: part.gib for part in found.parts},
                low=low,
                high=high,
                planned=found.per_gpu_gib,
                rule=rule,
                table=table_gb(row) * 1e9 / 2**30 / gpus,
                usable=usable,
                limit=found.limit_fraction,
                fits=found.fits(usable),
            )
        )
    return tuple(result)


def measured(kind: str, knows: Knows = PLAIN) -> list[Scored]:
    """The rows of a class that have a peak."""
    return [s for s in scored(knows) if s.kind == kind and s.measured]


def mean(values: Iterable[float]) -> float:
    """The arithmetic mean."""
    held = list(values)
    return sum(held) / len(held)


def by_source(
    kind: str, value: Callable[[Scored], float], knows: Knows = PLAIN
) -> dict[str, float]:
    """Mean absolute error of each source's rows, with `value` as the prediction."""
    groups: defaultdict[str, list[float]] = defaultdict(list)
    for row in measured(kind, knows):
        groups[row.cluster].append(abs(value(row) / (row.measured or 1) - 1))
    return {cluster: mean(errors) for cluster, errors in groups.items()}


def expected(row: Scored) -> float:
    """Sizing's own prediction."""
    return row.expected


def judged(knows: Knows = PLAIN, *, without: str = "") -> tuple[int, int, int, int]:
    """(accepted, that ran, refused, that ran out of memory), of all sources but one."""
    kept = [row for row in scored(knows) if row.cluster != without]
    ran, failed = [r for r in kept if r.works], [r for r in kept if not r.works]
    return sum(r.fits for r in ran), len(ran), sum(not r.fits for r in failed), len(failed)


def error_table() -> str:
    """Mean error over sources of each class, beside the rule of thumb and the published tables."""
    lines = [
        "| | rows | mean error | mean over sources | recipe fully declared | more than 2 % low |"
        " inside the range | rule of thumb | published table |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    for kind in CLASSES:
        found = measured(kind)
        known = "" if kind.startswith("serving") else _percent(_over(kind, expected, FULLY))
        inside = sum(row.low <= (row.measured or 0) <= row.high for row in measured(kind, FULLY))
        lines.append(
            f"| {kind} | {len(found)} | {_percent(mean(abs(row.error) for row in found))} |"
            f" {_percent(_over(kind, expected))} | {known} |"
            f" {sum(row.error < -0.02 for row in found)} | {inside} |"
            f" {_over(kind, _rule):.0%} | {_over(kind, _table):.0%} |"
        )
    return "\n".join(lines)


def _rule(row: Scored) -> float:
    return row.rule


def _table(row: Scored) -> float:
    return row.table


def _over(kind: str, value: Callable[[Scored], float], knows: Knows = PLAIN) -> float:
    return mean(by_source(kind, value, knows).values())


def source_table() -> str:
    """Each class by source, and what is left of the mean when a source is left out."""
    sources = list(dict.fromkeys(row.cluster for row in scored()))
    lines = [
        "| | " + " | ".join(f"{s} · without it" for s in sources) + " |",
        "|---" * (len(sources) + 1) + "|",
    ]
    for kind in CLASSES:
        errors = by_source(kind, expected, FULLY)
        cells: list[str] = []
        for source in sources:
            rest = [error for other, error in errors.items() if other != source]
            if source in errors:
                left = _percent(mean(rest)) if rest else "–"
                cells.append(f"{_percent(errors[source])} · {left}")
            else:
                cells.append("")
        lines.append(f"| {kind} | {' | '.join(cells)} |")
    return "\n".join(lines)


MARGINS = (0.0, 0.02, 0.05, 0.10, 0.15, 0.20, 0.25)


def margin_table() -> str:
    """What a margin on training costs and gains, and that no source alone decides it."""
    sources = list(
        dict.fromkeys(row.cluster for row in scored() if not row.kind.startswith("serv"))
    )
    lines = [
        "| margin | accepted of those that ran | refused of those that ran out | "
        + " | ".join(f"without {source}" for source in sources)
        + " |",
        "|---" * (len(sources) + 3) + "|",
    ]
    for margin in MARGINS:
        cells = [_at(margin), *(_at(margin, source) for source in sources)]
        ran, failed = cells[0]
        rest = " | ".join(f"{a}, {b}" for a, b in cells[1:])
        lines.append(f"| {margin:.0%} | {ran} | {failed} | {rest} |")
    return "\n".join(lines)


def _at(margin: float, without: str = "") -> tuple[str, str]:
    ran: list[bool] = []
    failed: list[bool] = []
    for row in scored(FULLY):
        if row.kind.startswith("serving") or row.cluster == without:
            continue
        fits = row.expected * (1 + margin) + 0.5 <= row.limit * row.usable
        (ran if row.works else failed).append(fits)
    return f"{sum(ran)} of {len(ran)}", f"{failed.count(False)} of {len(failed)}"


def verdict() -> str:
    """As a yes or no on the named GPU."""
    ran, of_ran, failed, of_failed = judged()
    fully = judged(FULLY)
    return (
        "As a yes or no on the named GPU, with margin and limit, which is what selection asks:"
        f" {ran} of {of_ran} jobs that ran are accepted and {failed} of {of_failed} that ran out of"
        f" memory refused; with the recipe fully declared {fully[0]} and {fully[2]}."
    )


def part_lines(found: Sequence[Scored]) -> Iterator[str]:
    """Rows that differ in one thing only, so that a part can be told from the total."""
    kinds: defaultdict[tuple[str, ...], list[tuple[float, Scored]]] = defaultdict(list)
    by_id = {row["id"]: row for row in rows()}
    for score in found:
        row = by_id[score.id]
        key = tuple(
            str(row.get(name))
            for name in ("cluster", "model", "method", "precision", "stated_gpu_count", "sharding")
        )
        kinds[key].append((float(row["context_len"] * row["batch"]), score))
    yield "| rows that differ in tokens only | tokens | measured | activations, logits, cache |"
    yield "|---|---|---|---|"
    for key, held in kinds.items():
        first, last = min(held, key=lambda h: h[0]), max(held, key=lambda h: h[0])
        if first[0] == last[0]:
            continue
        grew = (last[1].measured or 0) - (first[1].measured or 0)
        names = ("activations", "logits", "kv_cache", "overhead")
        ours = sum(last[1].parts.get(n, 0) - first[1].parts.get(n, 0) for n in names)
        name = " ".join(key[1:4]).replace(" none", "")
        yield f"| {name} | {first[0]:,.0f} → {last[0]:,.0f} | +{grew:.2f} | +{ours:.2f} |"


def report() -> str:
    """Everything, as `make accuracy` prints it."""
    found = [row for kind in CLASSES for row in measured(kind, FULLY)]
    return "\n\n".join(
        (
            "# Error before margin, per GPU",
            error_table(),
            "# By source, recipe fully declared, and the mean over the others",
            source_table(),
            "# Yes or no",
            verdict(),
            "# What a wider margin on training would do",
            margin_table(),
            "# Per part",
            "\n".join(part_lines(found)),
        )
    )


def _percent(value: float) -> str:
    return f"{value:.1%}"


if __name__ == "__main__":
    sys.stdout.write(report() + "\n")
