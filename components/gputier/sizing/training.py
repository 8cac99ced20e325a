"""Memory of training: full, LoRA and QLoRA (docs/sizing.md, "Training")."""

from __future__ import annotations

from typing import NamedTuple

from gputier import units
from gputier.sizing import adapters as lora
from gputier.sizing import copies, sharded
from gputier.sizing.formats import of
from gputier.sizing.known import Known
from gputier.sizing.recipes import Recipe, adapter_recipe, recipe
from gputier.sizing.records import GIB, billions, over
from gputier.sizing.serving import Draft, layer_bytes
from gputier.sizing.shape import Shape, matrices
from gputier.sizing.weights import base
from gputier.workload.ml import Model
from gputier.workload.training import Training

RUNTIME_GIB = 0.5
"""Libraries' workspaces and fragmentation, as the measured peaks show them. The CUDA context is
not in those: it is kept in the margin (margins.CONTEXT_GIB)."""

UNKNOWN_SEQUENCE = 4096
"""Tokens of a training sequence where none is declared."""

LOGIT_BYTES = 12
"""Per vocabulary entry and token: 16-bit logits 2, FP32 copy 4, their gradients 2 and 4."""

FUSED_LOGIT_BYTES = 1
"""A fused or chunked loss keeps a slice at a time; the measured remainder is about a byte."""

DROPPED_BYTES = 3.0
"""A dropout keeps its mask, a byte a value, and the adapter after it its 16-bit input. Each adapter
has a dropout of its own (PEFT's `lora_dropout` is a module per layer, LitGPT's too)."""

SEQUENCES = {"sft": 1, "dpo": 2, "grpo": 1}
"""Sequences of one sample: DPO runs the chosen and the rejected answer in one batch (TRL's
concatenated forward)."""


class Job(NamedTuple):
    """A training job with what silence means filled in.

    `method` is the declared one, or qlora for LoRA on a quantised base. `precision` is what the
    base is stored in. `samples` are worked on at once: one of `longest` tokens, the others of
    `mean`, sequence parallelism taken off. `tensor` GPUs split each layer, the groups of them share
    what sharding shares. Nothing is shared on one GPU.
    """

    known: Known
    training: Training
    gpus: int
    samples: int
    longest: float
    mean: float
    method: str
    precision: str
    state: str
    tensor: int = 1

    @property
    def tokens(self) -> float:
        """Tokens of one GPU's batch. Padded samples are all as long as the longest; packed ones
        are laid end to end, and one of them may be the longest there is."""
        return self.longest + (self.samples - 1) * self.mean

    @property
    def by_fsdp(self) -> bool:
        """Whether FSDP shards. Where no library is declared, who says that there is no FP32 copy
        of the weights says so: DeepSpeed keeps one unless `bf16_master_weights_and_grads` is
        set."""
        declared = self.training.sharded_by
        own = "state" in self.training.model_fields_set and self.training.state == "pure-16bit"
        return declared == "fsdp" or (declared is None and own and self.stage == 3)

    @property
    def fsdp_on_few(self) -> bool:
        """Whether FSDP is sized as it has been measured on few GPUs."""
        return (
            self.by_fsdp and 1 < self.gpus <= sharded.FSDP_WHOLE_UP_TO and not self.training.offload
        )

    @property
    def stage(self) -> int:
        """ZeRO stage: 0 shares nothing, 1 the optimizer, 2 gradients too, 3 weights too."""
        word = self.training.sharding
        return 0 if word == "none" else int(word[-1])

    def share(self, stage: int) -> float:
        """Over how many GPUs a thing is shared that sharding shares from `stage` on, and that
        tensor parallelism splits in any case. Stage 2 is the gradients."""
        whole = stage == 2 and self.fsdp_on_few
        return float(self.gpus) if self.stage >= stage and not whole else float(self.tensor)

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
    if job.fsdp_on_few and job.stage == 3:
        draft.warnings.append(
            f"FSDP on {gpus} GPUs is sized with whole gradients on each, and whole weights while a"
            " checkpoint loads, as it has been measured; measure yours and set"
            " `model.measured_gib`"
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
    return Job(
        known=known,
        training=training,
        gpus=gpus,
        samples=training.batch_per_gpu * SEQUENCES[training.objective],
        longest=tokens / split,
        mean=min(training.mean_tokens or tokens, tokens) / split,
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


def _adapted(job: Job, draft: Draft) -> None:
    frozen = base(job.known, job.precision)
    if not job.weights_on_host:
        size, words = _shared(frozen.bytes, job.share(3))
        draft.add("weights", size, frozen.formula + words)
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
    _adapter_warnings(job, found, frozen.bytes, used, draft)


def _adapter_warnings(
    job: Job, found: lora.Adapters, frozen: float, used: Recipe, draft: Draft
) -> None:
    if found.unknown:
        draft.warnings.append(
            f"`lora_targets` {', '.join(found.unknown)}: not a known module name, counted as the"
            " widest matrix of every layer"
        )
    if job.training.offload:
        moved = found.parameters * used.moments + (frozen if job.weights_on_host else 0.0)
        _say_offloaded(moved, job, draft)
        if not job.weights_on_host:
            draft.warnings.append(
                "without `sharding: zero-3` only the adapters' optimizer state is offloaded, the"
                " base stays on the GPU"
            )


def _activations(job: Job, draft: Draft) -> None:
    shape = job.known.shape
    layer, words = _kept(job)
    whole = layer * shape.layers
    one = layer + 2.0 * shape.hidden * shape.layers
    match job.training.gradient_checkpointing:
        case "none":
            each, text = whole, f"{shape.layers} layers × {layer:,.0f} B{words}"
        case "selective":
            each, text = whole / 2, f"half of {shape.layers} layers × {layer:,.0f} B{words}"
        case _:
            each = min(one, whole)
            text = f"({layer:,.0f} B of one layer{words}"
            text += f" + {shape.layers} layers × {shape.hidden:,} × 2 B)"
    size, words = _shared(each * job.tokens, job.tensor)
    draft.add("activations", size, f"{_tokens(job)} × {text}{words}")


def _kept(job: Job) -> tuple[float, str]:
    """Bytes that one token leaves in one layer, and what of it is not there in full training."""
    shape = job.known.shape
    layer, extra = layer_bytes(shape), list[str]()
    if job.method == "qlora" and of(job.precision).bits == 4 and job.precision != "int4-gptq":
        layer += input_bytes(shape)
        extra.append("inputs of the packed matrices")
    if job.method != "full" and job.training.lora_dropout:
        found = lora.adapters(shape, job.training.lora_rank, job.training.lora_targets)
        layer += DROPPED_BYTES * found.inputs / shape.layers
        extra.append("dropped-out inputs of the adapters")
    return layer, f" with {' and '.join(extra)}" if extra else ""


def input_bytes(shape: Shape) -> float:
    """Bytes of the inputs of a layer's matrices, which a product with a packed matrix keeps.

    bitsandbytes' MatMul4Bit saves its input (`ctx.tensors = (A, B)`) though the base is frozen, and
    so does AutoAWQ; a frozen 16-bit matrix keeps nothing, only the adapters beside it do. These are
    two normed inputs, that of the attention's output matrix and that of the feed-forward layer's
    second.
    """
    return 2.0 * (2 * shape.hidden + shape.query_width + shape.ffn_width)


def _tokens(job: Job) -> str:
    if job.mean == job.longest:
        return f"{job.samples} × {job.longest:,.10g} tokens"
    return f"({job.longest:,.10g} + {job.samples - 1} × {job.mean:,.10g} tokens)"


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
    found = sharded.gathered(job)
    if found.bytes:
        size += found.bytes
        text += f" + {found.words}, {units.gib(found.bytes / GIB)}"
    unpacked, words = _unpacked(job)
    if unpacked:
        size += unpacked
        text += f" + {words}"
    moment = sharded.loading(job) - size - sum(part.gib for part in draft.parts) * GIB
    if moment > 0:
        size += moment
        text += f" + {units.gib(moment / GIB)} more while the checkpoint loads: a whole copy of"
        text += " the weights beside the shard"
    draft.add("overhead", size, text)


def _unpacked(job: Job) -> tuple[float, str]:
    """Bytes of packed matrices that are at 16 bit for the arithmetic, and what they are.

    A kernel of its own unpacks one matrix at a time (bitsandbytes, AutoAWQ). GPTQ trains with
    PyTorch operations, whose products keep the unpacked matrix until their backward pass: with
    checkpointing those of one block (AutoGPTQ's qlinear_cuda_old, Transformers' `use_exllama:
    false`).
    """
    if job.method == "full" or not of(job.precision).quantised:
        return 0.0, ""
    shape = job.known.shape
    widest = max(shape.ffn if shape.dense_layers else shape.expert_ffn, shape.query_width)
    values, words = float(shape.hidden) * widest, "the largest matrix"
    if job.precision == "int4-gptq":
        values, words = shape.block, "a block's matrices"
    # Never more than the whole model would be at 16 bit.
    packed = 2.0 * shape.parameters - base(job.known, job.precision).bytes
    size = max(0.0, min(2.0 * values, packed)) / job.tensor
    return size, f"{words} unpacked, {size / 2 / 1e6:,.1f}M × 2 B"
