"""The margin on top of what a job is expected to use, and why it is as wide as it is."""

from __future__ import annotations

from gputier import units
from gputier.sizing.adapters import adapters
from gputier.sizing.known import Known
from gputier.sizing.records import GIB, Part
from gputier.sizing.training import Job, saved_by_sharding

SERVING_LIMIT = 0.90
"""Engines reserve a tenth of the card (vLLM's gpu_memory_utilization 0.9)."""

TRAINING_LIMIT = 0.95

TRAINING_MARGIN = {"full": 0.15, "lora": 0.25, "qlora": 0.20}
"""From the measured rows: × 1.25 covers 47 of 48 LoRA peaks, × 1.2 covers 50 of 51 QLoRA, × 1.15
covers 17 of 19 full."""

MEASURED_MARGIN = 0.05
"""A measured peak still moves from run to run."""

WEAK_KIND = 0.10
"""Widening for each kind of job that the formulas are known to underestimate."""

LARGE_VOCABULARY = 200_000

FEW_GPUS = 4
"""Up to here sharding by FSDP has been measured to save far less than the weights it shares."""


def training_margin(job: Job, needed_gib: float, known: Known) -> tuple[float, list[str]]:
    """(margin in GiB, warnings about kinds of job that err)."""
    fraction = TRAINING_MARGIN[job.method] + min(known.widen, WEAK_KIND)
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
    margin = needed_gib * fraction
    saved = saved_by_sharding(job) / GIB
    if saved and job.gpus <= FEW_GPUS:
        # Bounded by the saving itself, so that a second GPU never raises what each one needs.
        margin += min(WEAK_KIND * needed_gib, 0.9 * saved)
        said.append(
            f"sharding over {job.gpus} GPUs should save {units.gib(saved)} on each, but FSDP on two"
            " to four has been measured to save far less: the margin is wider; measure it and set"
            " `model.measured_gib`"
        )
    return margin, said


def _trains_embeddings(job: Job) -> bool:
    training = job.training
    return adapters(job.known.shape, training.lora_rank, training.lora_targets).embeddings > 0


def with_kept_free(
    needed_gib: float, own_gib: float, limit: float, kept_free: float
) -> Part | None:
    """The margin part: the larger of sizing's own margin and what a tier keeps free, never both.

    `kept_free` is a share of the card, so the margin is such that filling `limit` of the usable
    memory with it means that what is needed fills 1 − kept_free.
    """
    tier_gib = needed_gib * (limit / (1 - kept_free) - 1) if kept_free else 0.0
    if tier_gib > own_gib:
        return Part(
            "margin",
            tier_gib,
            f"{units.gib(needed_gib)} × ({limit:g} ÷ {1 - kept_free:g} − 1): {kept_free:.0%} of the"
            f" card stays free, more than sizing's own {units.gib(own_gib)}",
        )
    if own_gib <= 0:
        return None
    return Part(
        "margin",
        own_gib,
        f"{own_gib / needed_gib:.0%} of {units.gib(needed_gib)}, sizing's own margin",
    )
