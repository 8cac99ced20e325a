"""What preference training holds beside the model that it trains (docs/sizing.md, "Training").

DPO compares with a frozen reference. GRPO also generates: its rollout engine keeps 16-bit weights
and a KV cache on the same GPUs (TRL and verl, colocated). Adapters need no reference: switched off,
the base is it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gputier.sizing.records import billions, over, several

if TYPE_CHECKING:
    from gputier.sizing.serving import Draft
    from gputier.sizing.training import Job
    from gputier.workload.ml import Model

SIXTEEN_BIT = 2.0


def add(job: Job, model: Model, draft: Draft) -> None:
    """The reference's weights, and the rollout engine's weights and cache, per GPU."""
    objective = job.training.objective
    if objective == "sft":
        return
    whole = job.known.shape.parameters * SIXTEEN_BIT
    count = billions(job.known.shape.parameters)
    if job.method == "full":
        share = job.share(3)
        words = over(share)
        draft.grow("weights", whole / share, f"{count} × 2 B of the frozen reference{words}")
    if objective == "grpo":
        _rollout(job, model, draft, whole)


def _rollout(job: Job, model: Model, draft: Draft, whole: float) -> None:
    """The engine splits its weights as the training does by tensor parallelism, never by ZeRO."""
    shape = job.known.shape
    words = over(job.tensor)
    count = billions(shape.parameters)
    draft.grow("weights", whole / job.tensor, f"{count} × 2 B of the rollout engine{words}")
    tokens = model.context_tokens or min(shape.max_context or 4096, 4096)
    sequences = model.concurrent_sequences
    size = shape.cached_values * SIXTEEN_BIT * sequences
    local = min(shape.local_layers, shape.cache_layers)
    held = (shape.cache_layers - local) * tokens + local * min(tokens, shape.window)
    draft.add(
        "kv_cache",
        size * held,
        f"rollout: {held:,} layers × tokens × {shape.cached_values:,} values × 2 B"
        f" × {several(sequences, 'sequence')}",
    )
