"""Memory of training: full, LoRA and QLoRA (docs/sizing.md, "Training")."""

from __future__ import annotations

from typing import NamedTuple

from gputier import units
from gputier.sizing import adapters as lora
from gputier.sizing import copies
from gputier.sizing.formats import of
from gputier.sizing.known import Known
from gputier.sizing.recipes import Recipe, adapter_recipe, recipe
from gputier.sizing.records import GIB, billions, over
from gputier.sizing.serving import Draft, layer_bytes
from gputier.sizing.shape import matrices
from gputier.sizing.weights import Stored, stored
from gputier.workload.ml import Model, Training

RUNTIME_GIB = 0.5
"""Libraries' workspaces and fragmentation, as the measured peaks show them. The CUDA context is
not in those: it is kept in the margin (margins.CONTEXT_GIB)."""

GATHERED_BLOCKS = 2
"""Sharded weights are gathered a block at a time, the next one while this one is at work."""

UNKNOWN_SEQUENCE = 4096
"""Tokens of a training sequence where none is declared."""

LOGIT_BYTES = 12
"""Per vocabulary entry and token: 16-bit logits 2, FP32 copy 4, their gradients 2 and 4."""

FUSED_LOGIT_BYTES = 1
"""A fused or chunked loss keeps a slice at a time; the measured remainder is about a byte."""

FOUR_BIT_ACTIVATIONS = 1.5
"""Without checkpointing a 4-bit base keeps the dequantised inputs of its adapters as well."""

KEPT_AT_4_BYTES = 4.0
"""PEFT's prepare_model_for_kbit_training casts what is not quantised to FP32."""


FSDP_WHOLE_UP_TO = 4
"""GPUs up to which FSDP is sized with whole weights and gradients on each. Loaders that gather the
full state (summon_full_params) hold a whole copy, and gradients accumulated without synchronising
are not sharded (torch.distributed.fsdp, `no_sync`: "will accumulate gradients as full"). Measured:
a 7B LoRA 20.7 GiB a GPU on two, 13B 33.1 on four, a 70B at 4 bit 36 on two."""

SEQUENCES = {"sft": 1, "dpo": 2, "grpo": 1}
"""Sequences of one sample: DPO runs the chosen and the rejected answer in one batch (TRL's
concatenated forward)."""


class Job(NamedTuple):
    """A training job with what silence means filled in.

    `method` is the declared one, or qlora for LoRA on a quantised base. `precision` is what the
    base is stored in. `tokens` are those of one GPU, sequence parallelism taken off. `tensor` GPUs
    split each layer, the groups of them share what sharding shares. Nothing is shared on one GPU.
    """

    known: Known
    training: Training
    gpus: int
    tokens: float
    method: str
    precision: str
    state: str
    tensor: int = 1

    @property
    def whole_on_each(self) -> bool:
        """Whether FSDP is sized as if it shared neither weights nor gradients."""
        return (
            self.training.sharded_by == "fsdp"
            and 1 < self.gpus <= FSDP_WHOLE_UP_TO
            and not self.training.offload
        )

    @property
    def stage(self) -> int:
        """ZeRO stage: 0 shares nothing, 1 the optimizer, 2 gradients too, 3 weights too."""
        word = self.training.sharding
        declared = 0 if word == "none" else int(word[-1])
        return min(declared, 1) if self.whole_on_each else declared

    def share(self, stage: int) -> float:
        """Over how many GPUs a thing is shared that sharding shares from `stage` on, and that
        tensor parallelism splits in any case."""
        return float(self.gpus) if self.stage >= stage else float(self.tensor)

    @property
    def weights_on_host(self) -> bool:
        """Whether weights lie in host memory: only what is sharded by blocks can be offloaded."""
        return self.training.offload and self.stage == 3


def train(model: Model, known: Known, training: Training, gpus: int) -> tuple[Draft, Job]:
    """The parts of training, per GPU, without the margin, and the job they are of."""
    draft = Draft()
    job = _job(model, known, training, gpus, draft)
    if job.method == "full":
        _full(job, draft)
    else:
        _adapted(job, draft)
    copies.add(job, model, draft)
    _activations(job, draft)
    _logits(job, draft)
    _overhead(job, draft)
    if job.whole_on_each and training.sharding == "zero-3":
        draft.warnings.append(
            f"FSDP on {gpus} GPUs is sized with whole weights and gradients on each, as it has been"
            " measured; measure yours and set `model.measured_gib`"
        )
    return draft, job


def _job(model: Model, known: Known, training: Training, gpus: int, draft: Draft) -> Job:
    tokens = model.context_tokens
    if tokens is None:
        tokens = min(known.shape.max_context or UNKNOWN_SEQUENCE, UNKNOWN_SEQUENCE)
        draft.warnings.append(f"`model.context_tokens` is not declared: {tokens:,} tokens assumed")
    method, precision = _base(known, training, draft)
    tensor = min(training.tensor_parallel, gpus)
    split = min(training.sequence_parallel, max(1, gpus // tensor))
    if gpus % (training.tensor_parallel * training.sequence_parallel):
        draft.warnings.append(
            f"{gpus} GPUs are not a multiple of tensor_parallel × sequence_parallel ="
            f" {training.tensor_parallel * training.sequence_parallel}"
        )
    sequences = training.batch_per_gpu * SEQUENCES[training.objective]
    return Job(
        known=known,
        training=training,
        gpus=gpus,
        tokens=tokens * sequences / split,
        method=method,
        precision=precision,
        state=_state(known, training, draft),
        tensor=tensor,
    )


def _base(known: Known, training: Training, draft: Draft) -> tuple[str, str]:
    """(method as sized, format of the weights that lie on the GPU)."""
    layout = of(known.precision)
    if training.method == "qlora" and not layout.quantised:
        if known.said:
            draft.warnings.append(
                f"qlora holds its base at nf4 (0.56 B a parameter); {known.precision} is what it"
                " computes in. Set `precision: nf4-dq` or int4-gptq for another 4-bit base"
            )
        return "qlora", "nf4"
    if training.method == "lora" and layout.quantised:
        if known.said:
            draft.warnings.append(
                f"lora on a {known.precision} base is sized as qlora, which it is"
            )
            return "qlora", known.precision
        return "lora", "bf16"
    if training.method == "full" and layout.quantised and known.said:
        draft.warnings.append(
            f"{known.precision} weights are not trained in full: sized for 16-bit weights, which is"
            " what a full run keeps"
        )
    return training.method, known.precision


def _state(known: Known, training: Training, draft: Draft) -> str:
    """The declared state; fp32 weights without one mean fp32 state."""
    if training.method == "full" and known.said and known.precision == "fp32":
        if "state" not in training.model_fields_set:
            return "fp32"
        if training.state != "fp32":
            draft.warnings.append(
                f"`state: {training.state}` keeps weights at 16 bit, `precision: fp32` does not:"
                f" sized as {training.state}"
            )
    return training.state


def _full(job: Job, draft: Draft) -> None:
    count = job.known.shape.parameters
    used = recipe(job.training, job.state)
    host = job.training.offload
    text = billions(count)
    if not job.weights_on_host:
        size, words = _shared(count * used.weights, job.share(3))
        draft.add("weights", size, f"{text} parameters × {used.weights:g} B ({job.state}){words}")
    if not host:
        size, words = _shared(count * used.gradients, job.share(2))
        draft.add("gradients", size, f"{text} × {used.gradients:g} B{words}")
        state, words = _shared(count * used.optimizer + _factored(job), job.share(1))
        draft.add("optimizer", state, _optimizer_words(text, used, job.training) + words)
    else:
        moved = count * (used.gradients + used.optimizer)
        moved += count * used.weights if job.weights_on_host else 0.0
        _say_offloaded(moved, job, draft)


def _shared(size: float, gpus: float) -> tuple[float, str]:
    return size / gpus, over(gpus)


def _factored(job: Job) -> float:
    """Adafactor's second moment: a row and a column of FP32 per matrix."""
    if job.training.optimizer != "adafactor":
        return 0.0
    shape = job.known.shape
    edges = sum((m.inputs + m.outputs) * m.times for _, m in matrices(shape))
    return 4.0 * (edges + (1 if shape.tied else 2) * (shape.vocabulary + shape.hidden))


def _optimizer_words(count: str, used: Recipe, training: Training) -> str:
    pieces = [f"{used.master:g} B master copy"] if used.master else []
    if used.moments:
        pieces.append(f"{used.moments:g} B {training.optimizer}")
    text = f"{count} × ({' + '.join(pieces)})" if pieces else ""
    if training.optimizer == "adafactor":
        text += (" + " if text else "") + "4 B × (rows + columns) of every matrix"
    return text


def _say_offloaded(moved: float, job: Job, draft: Draft) -> None:
    each = moved / GIB
    shared = f" shared by {job.gpus} GPUs" if job.gpus > 1 else ""
    draft.warnings.append(
        f"`offload: true` moves {units.gib(each)}{shared} to host memory: machines need that much"
        " on top, and every step waits for PCIe"
    )


def _base_weights(job: Job) -> Stored:
    """The frozen weights under adapters."""
    kept = KEPT_AT_4_BYTES if of(job.precision).quantised else None
    return stored(job.known, job.precision, kept)


def _adapted(job: Job, draft: Draft) -> None:
    base = _base_weights(job)
    if not job.weights_on_host:
        size, words = _shared(base.bytes, job.share(3))
        draft.add("weights", size, base.formula + words)
    found = lora.adapters(job.known.shape, job.training.lora_rank, job.training.lora_targets)
    used = adapter_recipe(job.training)
    each = used.weights / job.share(3) + used.gradients / job.share(2)
    if not job.training.offload:
        each += used.moments / job.share(1)
    total = used.weights + used.gradients + (0 if job.training.offload else used.moments)
    text = f"rank {job.training.lora_rank} × (in + out) on {', '.join(job.training.lora_targets)} ="
    text += f" {billions(found.parameters)} × {total:g} B"
    if each != total:
        text += f", {each:.3g} B of it on each of {job.gpus} GPUs"
    draft.add("adapters", found.parameters * each, text)
    _adapter_warnings(job, found, base.bytes, used, draft)


def _adapter_warnings(
    job: Job, found: lora.Adapters, base: float, used: Recipe, draft: Draft
) -> None:
    if found.unknown:
        draft.warnings.append(
            f"`lora_targets` {', '.join(found.unknown)}: not a known module name, counted as the"
            " widest matrix of every layer"
        )
    if job.training.offload:
        moved = found.parameters * used.moments + (base if job.weights_on_host else 0.0)
        _say_offloaded(moved, job, draft)
        if not job.weights_on_host:
            draft.warnings.append(
                "without `sharding: zero-3` only the adapters' optimizer state is offloaded, the"
                " base stays on the GPU"
            )


def _activations(job: Job, draft: Draft) -> None:
    shape, tokens = job.known.shape, job.tokens
    layer = layer_bytes(shape)
    four_bit = job.method == "qlora" and of(job.precision).bits == 4
    factor = FOUR_BIT_ACTIVATIONS if four_bit else 1.0
    whole = layer * shape.layers * factor
    one = layer + 2.0 * shape.hidden * shape.layers
    on_base = f" × {factor:g} on a 4-bit base" if four_bit else ""
    match job.training.gradient_checkpointing:
        case "none":
            each, text = whole, f"{shape.layers} layers × {layer:,.0f} B{on_base}"
        case "selective":
            each, text = whole / 2, f"half of {shape.layers} layers × {layer:,.0f} B{on_base}"
        case _:
            each = min(one, whole)
            text = f"({layer:,.0f} B of one layer + {shape.layers} layers × {shape.hidden:,} × 2 B)"
    size, words = _shared(each * tokens, job.tensor)
    draft.add("activations", size, f"{_tokens(job)} × {text}{words}")


def _tokens(job: Job) -> str:
    batch = job.training.batch_per_gpu * SEQUENCES[job.training.objective]
    return f"{batch} × {job.tokens / batch:,.10g} tokens"


def _logits(job: Job, draft: Draft) -> None:
    fused = job.training.fused_loss
    each = FUSED_LOGIT_BYTES if fused else LOGIT_BYTES
    vocabulary = job.known.shape.vocabulary
    kind = "fused loss" if fused else "ordinary loss"
    size, words = _shared(float(each) * vocabulary * job.tokens, job.tensor)
    draft.add(
        "logits",
        size,
        f"{_tokens(job)} × {vocabulary:,} vocabulary × {each} B ({kind}){words}",
    )


def _overhead(job: Job, draft: Draft) -> None:
    size = RUNTIME_GIB * GIB
    text = f"{RUNTIME_GIB:g} GiB for workspaces and fragmentation"
    gathered = _gathered(job)
    if gathered:
        size += gathered
        text += f" + {GATHERED_BLOCKS} blocks gathered from the shards, {units.gib(gathered / GIB)}"
    draft.add("overhead", size, text)


def _gathered(job: Job) -> float:
    """Bytes of the blocks that are whole on a GPU for a moment; never more than is elsewhere."""
    if job.stage < 3 or (job.gpus == job.tensor and not job.weights_on_host):
        return 0.0
    shape = job.known.shape
    each = (
        recipe(job.training, job.state).weights if job.method == "full" else of(job.precision).bytes
    )
    elsewhere = 1.0 if job.weights_on_host else 1 - job.tensor / job.gpus
    blocks = GATHERED_BLOCKS * shape.block
    return max(0.0, min(blocks, shape.parameters * elsewhere)) * each / job.tensor


def saved_by_sharding(job: Job) -> float:
    """Bytes per GPU that sharding the weights is expected to save against whole copies."""
    if job.stage < 3 or job.weights_on_host or job.gpus == job.tensor:
        return 0.0
    if job.method == "full":
        each = recipe(job.training, job.state).weights
        whole = job.known.shape.parameters * each
    else:
        whole = _base_weights(job).bytes
    return max(0.0, whole / job.tensor * (1 - job.tensor / job.gpus) - _gathered(job))
