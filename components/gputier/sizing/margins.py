"""The margin on top of what a job is expected to use, and why it is as wide as it is.

Two things are in it. What a framework's counters do not see (the CUDA context, graphs), because a
card must hold that too; and a share of the need where the estimate is weak. Where it is strong the
limit (0.90 and 0.95 of usable memory) is its margin: every further point refuses jobs that ran and
catches none that failed (docs/sizing.md, "Margin"). How far a peak may lie from the estimate is
said as a range beside it.
"""

from __future__ import annotations

from typing import NamedTuple

from gputier import units
from gputier.sizing import sharded
from gputier.sizing.adapters import adapters
from gputier.sizing.known import FAIR, WEAK, Known
from gputier.sizing.records import GIB, Part
from gputier.sizing.training import Job

SERVING_LIMIT = 0.90
"""Engines reserve a tenth of the card (vLLM's gpu_memory_utilization 0.9)."""

TRAINING_LIMIT = 0.95

CONTEXT_GIB = 0.5
"""The CUDA context and cuBLAS workspaces of a training process, which its allocator's counters do
not see: 0.3 to 0.6 GiB by card and driver. With the 0.5 GiB that they do see, 1 GiB is planned."""

TRAINING_MARGIN = 0.02
"""Of the need, for a declared model and recipe. More costs acceptances: see the module."""

MEASURED_MARGIN = 0.05
"""A measured peak still moves from run to run."""

WEAK_KIND = 0.10
"""Widening for each kind of job that the formulas are known to underestimate."""

LARGE_VOCABULARY = 200_000

FEW_GPUS = 4
"""Up to here sharding by FSDP has been measured to save far less than the weights it shares."""

FEW_GPUS_MARGIN = 0.05
"""Widening there when the library is not declared: DeepSpeed's rows lie within it, FSDP's do not
(`sharded_by: fsdp` is sized as what they use)."""

SPREAD = {
    "lora": (0.85, 1.25),
    "qlora": (0.80, 1.40),
    "full": (0.95, 1.30),
    "serving 16-bit": (0.95, 1.10),
    "serving quantised": (0.95, 1.15),
}
"""Measured peak ÷ estimate of nine in ten published rows of each class, rounded outward to 0.05;
the others are the kinds of docs/sizing.md, "Where it errs". A test recomputes them."""

WIDER = {FAIR: (0.10, 0.10), WEAK: (0.10, 0.35)}
"""What is added below and above where a figure is not confirmed, or a shape is assumed. The latter
is what the same rows show when nothing but their parameter count is declared: upward, because
vocabularies, wide FFNs and full-head caches are above the typical shape more often than below."""


class Own(NamedTuple):
    """Sizing's own margin: GiB, in words, and warnings about kinds of job that err."""

    gib: float
    words: str
    warnings: tuple[str, ...] = ()


def spread(kind: str, confidence: str) -> tuple[float, float]:
    """Factors of the need between which the peak is expected, for a class and a confidence."""
    low, high = SPREAD[kind]
    below, above = WIDER.get(confidence, (0.0, 0.0))
    return low - below, high + above


def serving_margin(needed_gib: float, reserve_gib: float, known: Known) -> Own:
    """The engine's unseen memory, and a share where the model is not well known."""
    return Own(
        reserve_gib + needed_gib * known.widen,
        _words("CUDA context, graphs and workspaces", reserve_gib, known.widen, needed_gib),
    )


def training_margin(job: Job, needed_gib: float, known: Known) -> Own:
    """The CUDA context, and a share that widens with each kind of job that errs."""
    fraction = TRAINING_MARGIN + min(known.widen, WEAK_KIND)
    said: list[str] = []
    eight_bit = job.method == "qlora" and job.precision in ("int8", "fp8")
    if eight_bit and known.shape.vocabulary >= LARGE_VOCABULARY:
        fraction += WEAK_KIND
        said.append(
            f"8-bit LoRA with a vocabulary of {known.shape.vocabulary:,} has needed more than"
            " estimated: the margin is wider"
        )
    if job.method != "full" and _trains_embeddings(job):
        fraction += WEAK_KIND
        said.append("adapters that train embeddings have needed more than estimated: wider margin")
    extra = 0.0
    saved = sharded.saved(job) / GIB
    if saved and job.gpus <= FEW_GPUS and job.training.sharded_by is None and not job.by_fsdp:
        # Bounded by the saving itself, so that a second GPU never raises what each one needs.
        extra = min(FEW_GPUS_MARGIN * needed_gib, 0.9 * saved)
        said.append(
            f"sharding over {job.gpus} GPUs should save {units.gib(saved)} on each, but FSDP on two"
            " to four has been measured to save far less: the margin is wider; say `sharded_by:"
            " fsdp` or deepspeed, or measure it and set `model.measured_gib`"
        )
    words = _words("CUDA context", CONTEXT_GIB, fraction + extra / needed_gib, needed_gib)
    return Own(CONTEXT_GIB + needed_gib * fraction + extra, words, tuple(said))


def _words(what: str, reserve_gib: float, fraction: float, needed_gib: float) -> str:
    pieces = [f"{units.gib(reserve_gib)} of {what} that counters do not see"] if reserve_gib else []
    if fraction:
        pieces.append(f"{fraction:.3g} of {units.gib(needed_gib)}")
    return " + ".join(pieces)


def _trains_embeddings(job: Job) -> bool:
    training = job.training
    return adapters(job.known.shape, training.lora_rank, training.lora_targets).embeddings > 0


def with_kept_free(needed_gib: float, own: Own, limit: float, kept_free: float) -> Part | None:
    """The margin part: the larger of sizing's own margin and what a tier keeps free, never both.

    `kept_free` is a share of the card, so the margin is such that filling `limit` of the usable
    memory with it means that what is needed fills 1 − kept_free.
    """
    tier_gib = needed_gib * (limit / (1 - kept_free) - 1) if kept_free else 0.0
    if tier_gib > own.gib:
        return Part(
            "margin",
            tier_gib,
            f"{units.gib(needed_gib)} × ({limit:g} ÷ {1 - kept_free:g} − 1): {kept_free:.0%} of the"
            f" card stays free, more than sizing's own {units.gib(own.gib)}",
        )
    if own.gib <= 0:
        return None
    return Part("margin", own.gib, f"{own.words}: sizing's own margin")
