"""Memory of training: full, LoRA and QLoRA (docs/sizing.md, "Training")."""

from __future__ import annotations

from typing import NamedTuple

from gputier import units
from gputier.sizing import adapters as lora
from gputier.sizing.formats import of
from gputier.sizing.known import Known
from gputier.sizing.recipes import Recipe, adapter_recipe, recipe
from gputier.sizing.records import GIB, billions
from gputier.sizing.serving import Draft, layer_bytes
from gputier.sizing.shape import matrices
from gputier.sizing.weights import Stored, stored
from gputier.workload.ml import Model, Training

RUNTIME_GIB = 1.0
"""CUDA context, libraries' workspaces and fragmentation: 0.5 GiB fits the measured peaks, planned
with twice that."""

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


class Job(NamedTuple):
    """A training job with what silence means filled in.

    `method` is the declared one, or qlora for LoRA on a quantised base. `precision` is what the
    base is stored in. `sharding` shares nothing on one GPU.
    """

    known: Known
    training: Training
    gpus: int
    tokens: int
    method: str
    precision: str
    state: str

    @property
    def stage(self) -> int:
        """ZeRO stage: 0 shares nothing, 1 the optimizer, 2 gradients too, 3 weights too."""
        word = self.training.sharding
        return 0 if word == "none" else int(word[-1])

    def share(self, stage: int) -> int:
        """Over how many GPUs a thing is shared that sharding shares from `stage` on."""
        return self.gpus if self.stage >= stage else 1

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
    _activations(job, draft)
    _logits(job, draft)
    _overhead(job, draft)
    return draft, job


def _job(model: Model, known: Known, training: Training, gpus: int, draft: Draft) -> Job:
    tokens = model.context_tokens
    if tokens is None:
        tokens = min(known.shape.max_context or UNKNOWN_SEQUENCE, UNKNOWN_SEQUENCE)
        draft.warnings.append(f"`model.context_tokens` is not declared: {tokens:,} tokens assumed")
    method, precision = _base(known, training, draft)
    return Job(
        known=known,
        training=training,
        gpus=gpus,
        tokens=tokens * training.batch_per_gpu,
        method=method,
        precision=precision,
        state=_state(known, training, draft),
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


def _shared(size: float, gpus: int) -> tuple[float, str]:
    return size / gpus, f" ÷ {gpus} GPUs" if gpus > 1 else ""


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
    draft.add("activations", each * tokens, f"{_tokens(job)} × {text}")


def _tokens(job: Job) -> str:
    batch = job.training.batch_per_gpu
    return f"{batch} × {job.tokens // batch:,} tokens"


def _logits(job: Job, draft: Draft) -> None:
    fused = job.training.fused_loss
    each = FUSED_LOGIT_BYTES if fused else LOGIT_BYTES
    vocabulary = job.known.shape.vocabulary
    kind = "fused loss" if fused else "ordinary loss"
    draft.add(
        "logits",
        float(each) * vocabulary * job.tokens,
        f"{_tokens(job)} × {vocabulary:,} vocabulary × {each} B ({kind})",
    )


def _overhead(job: Job, draft: Draft) -> None:
    size = RUNTIME_GIB * GIB
    text = f"{RUNTIME_GIB:g} GiB for CUDA context, workspaces and fragmentation"
    gathered = _gathered(job)
    if gathered:
        size += gathered
        text += f" + {GATHERED_BLOCKS} blocks gathered from the shards, {units.gib(gathered / GIB)}"
    draft.add("overhead", size, text)


def _gathered(job: Job) -> float:
    """Bytes of the blocks that are whole on a GPU for a moment; never more than is elsewhere."""
    if job.stage < 3 or (job.gpus == 1 and not job.weights_on_host):
        return 0.0
    shape = job.known.shape
    each = (
        recipe(job.training, job.state).weights if job.method == "full" else of(job.precision).bytes
    )
    elsewhere = 1.0 if job.weights_on_host else 1 - 1 / job.gpus
    blocks = GATHERED_BLOCKS * shape.block
    return max(0.0, min(blocks, shape.parameters * elsewhere)) * each


def saved_by_sharding(job: Job) -> float:
    """Bytes per GPU that sharding the weights is expected to save against whole copies."""
    if job.stage < 3 or job.weights_on_host or job.gpus == 1:
        return 0.0
    if job.method == "full":
        each = recipe(job.training, job.state).weights
        whole = job.known.shape.parameters * each
    else:
        whole = _base_weights(job).bytes
    return max(0.0, whole * (1 - 1 / job.gpus) - _gathered(job))
