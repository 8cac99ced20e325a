"""What sharding leaves whole on each GPU, for a moment or longer (docs/sizing.md, "Training")."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from gputier.sizing.formats import of
from gputier.sizing.recipes import recipe
from gputier.sizing.weights import base

if TYPE_CHECKING:
    from gputier.sizing.training import Job

GATHERED_BLOCKS = 2
"""Sharded weights are gathered a block at a time, the next one while this one is at work."""

FSDP_WHOLE_UP_TO = 4
"""GPUs up to which FSDP is sized as it has been measured: gradients whole, and the weights whole
beside their shard while a checkpoint loads. Gradients that accumulate without synchronising are not
sharded (torch.distributed.fsdp, `no_sync`: "will accumulate the full model gradients"). Loaders of
a full state gather "all weights first" and write them back to each shard (Lightning's
`_load_raw_module_state`, on every rank). Measured: a 7B LoRA 20.7 GiB a GPU on two, 13B 33.1 on
four, a 70B at 4 bit 36 on two. Who trains on more GPUs loads and accumulates otherwise, or such
models would not fit."""


class Gathered(NamedTuple):
    """Bytes of weights that are whole on a GPU beside its own shard, and what they are."""

    bytes: float
    words: str


def gathered(job: Job) -> Gathered:
    """Weights gathered from the shards at the peak; never more than lies elsewhere.

    Beside the blocks it is the output layer, which makes the logits and is needed again at once:
    DeepSpeed keeps what is reused soon (`stage3_max_reuse_distance`), and FSDP never frees its
    outermost unit between forward and backward, which holds the embedding too.
    """
    if job.stage < 3 or (job.gpus == job.tensor and not job.weights_on_host):
        return Gathered(0.0, "")
    shape = job.known.shape
    elsewhere = 1.0 if job.weights_on_host else 1 - job.tensor / job.gpus
    ends = shape.embedding + shape.output if job.by_fsdp else shape.output or shape.embedding
    whole = min(GATHERED_BLOCKS * shape.block + ends, shape.parameters * elsewhere)
    words = "embedding and output layer" if job.by_fsdp else "the output layer"
    return Gathered(
        max(0.0, whole) * _stored_bytes(job) / job.tensor,
        f"{GATHERED_BLOCKS} blocks and {words} gathered from the shards",
    )


def loading(job: Job) -> float:
    """Bytes on each GPU while FSDP loads a checkpoint: all weights, and the shard they go into.

    A quantised base has no shard yet at that moment: bitsandbytes packs weights as they arrive on
    the GPU, and FSDP splits them afterwards.
    """
    if not job.fsdp_on_few or job.stage < 3 or job.gpus == job.tensor:
        return 0.0
    whole = _whole(job) / job.tensor
    packed = job.method != "full" and of(job.precision).quantised
    return whole if packed else whole + _whole(job) / job.gpus


def saved(job: Job) -> float:
    """Bytes per GPU that sharding the weights is expected to save against whole copies."""
    if job.stage < 3 or job.weights_on_host or job.gpus == job.tensor:
        return 0.0
    shared = _whole(job) / job.tensor * (1 - job.tensor / job.gpus)
    return max(0.0, shared - gathered(job).bytes)


def _whole(job: Job) -> float:
    """Bytes of all weights of the model that is trained or adapted."""
    if job.method == "full":
        return job.known.shape.parameters * _stored_bytes(job)
    return base(job.known, job.precision).bytes


def _stored_bytes(job: Job) -> float:
    if job.method == "full":
        return recipe(job.training, job.state).weights
    return of(job.precision).bytes
