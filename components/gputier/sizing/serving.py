"""Memory of serving a language, embedding or speech model (docs/sizing.md, "Serving").

Weights and cache are shared by tensor parallelism over all GPUs, or by pipeline stages of it;
small encoders and speech models are not split by any engine, so each GPU holds a copy.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

from gputier.sizing.formats import KV_BYTES, of
from gputier.sizing.known import Known
from gputier.sizing.records import GIB, Part, over, several
from gputier.sizing.shape import Shape
from gputier.sizing.weights import stored
from gputier.workload.ml import Model

ENGINE_GIB = 1.0
"""What an engine takes beside weights and cache: CUDA context, workspaces, CUDA graphs and the
activations of a prefill chunk. The part of it that a framework's counters see is computed
(`overhead`); the rest of this GiB is kept in the margin."""

PREFILL_TOKENS = 2048
"""Tokens of one chunk of prefill (vLLM's max_num_batched_tokens; engines cut longer prompts up)."""

SAMPLED_BYTES = 4.0
"""A sampler turns the logits of each sequence to FP32."""

UNKNOWN_CONTEXT = 8192
"""Tokens assumed where neither the declaration nor the model's facts say a maximum."""

RULE_OF_THUMB_CACHE = 0.5
"""The rule of thumb's × 1.5: half of the weights again for everything that is not weights."""

STATE_BYTES = 4.0
"""Linear-attention and state-space layers keep their state in FP32 (vLLM's mamba cache default)."""

WHISPER_FRAMES = 1500
"""Encoder positions of 30 s of audio, whose keys and values every decoder layer caches."""

WHISPER_TOKENS = 448

WAV2VEC_FRAMES = 1500
"""30 s of audio at 50 frames a second."""


@dataclass(slots=True)
class Draft:
    """Parts as they are found, with what is to be said about them."""

    parts: list[Part] = field(default_factory=list[Part])
    warnings: list[str] = field(default_factory=list[str])

    def add(self, name: str, size: float, formula: str) -> None:
        """A part of `size` bytes; nothing when it is zero."""
        if size > 0:
            self.parts.append(Part(name, size / GIB, formula))

    def grow(self, name: str, size: float, formula: str) -> None:
        """`size` bytes more of a part, or the part where there is none yet."""
        for n, part in enumerate(self.parts):
            if part.name == name:
                words = f"{part.formula} + {formula}"
                self.parts[n] = Part(name, part.gib + size / GIB, words)
                return
        self.add(name, size, formula)


def serve(model: Model, known: Known, gpus: int) -> Draft:
    """The parts of serving, per GPU, without the margin."""
    draft = Draft()
    shape = known.shape
    split = 1 if shape.encoder else gpus
    stages = min(model.pipeline_parallel, gpus)
    weights = stored(known, known.precision)
    held, text = weights.bytes / split, weights.formula + over(split)
    if stages > 1:
        # The first and the last stage hold the embedding and the output layer on top.
        each = 2.0 if of(known.precision).quantised else of(known.precision).bytes
        ends = max(shape.embedding, shape.output) * each
        blocks = max(0.0, weights.bytes - (shape.embedding + shape.output) * each)
        held = min(weights.bytes, blocks / stages + ends) * stages / gpus
        text = f"the largest of {stages} stages of: {weights.formula}{over(split // stages)}"
    draft.add("weights", held, text)
    if shape.encoder:
        _encode(model, shape, draft)
    else:
        _cache(model, known, (gpus, stages), draft)
        _parallel_limits(shape, (gpus, stages), draft)
        _overhead(model, known, gpus / stages, draft)
    return draft


def reserve_gib(draft: Draft) -> float:
    """What stays of ENGINE_GIB beside the overhead that is computed."""
    seen = sum(part.gib for part in draft.parts if part.name == "overhead")
    return max(0.0, ENGINE_GIB - seen)


def _overhead(model: Model, known: Known, split: float, draft: Draft) -> None:
    """The activations of one layer for a prefill chunk, the sampler's logits, and where weights
    are unpacked before the arithmetic the largest matrix at 16 bit."""
    shape = known.shape
    context = model.context_tokens or shape.max_context or UNKNOWN_CONTEXT
    tokens = min(context * model.concurrent_sequences, PREFILL_TOKENS)
    inner = (3 if shape.gated else 2) * shape.ffn_width + shape.query_width + 2 * shape.kv_width
    each = 2.0 * (2 * shape.hidden + inner / split)
    logits = SAMPLED_BYTES * shape.vocabulary * model.concurrent_sequences
    text = f"{tokens:,} tokens of prefill × {each:,.0f} B"
    if logits:
        text += f" + {shape.vocabulary:,} logits × {SAMPLED_BYTES:g} B"
        text += f" × {several(model.concurrent_sequences, 'sequence')}"
    size = tokens * each + logits
    if of(known.precision).quantised:
        widest = max(shape.ffn_width if shape.dense_layers else shape.expert_ffn, shape.query_width)
        # Never more than the whole model would be at 16 bit.
        packed = 2.0 * shape.parameters - stored(known, known.precision).bytes
        matrix = max(0.0, min(2.0 * shape.hidden * widest, packed)) / split
        size += matrix
        text += f" + {matrix / 2 / 1e6:,.1f}M × 2 B unpacked"
    draft.add("overhead", size, text)


def _context(model: Model, known: Known, draft: Draft) -> int:
    if model.context_tokens is not None:
        most = known.shape.max_context
        if most and model.context_tokens > most:
            draft.warnings.append(
                f"{model.context_tokens:,} tokens are more than the {most:,} the model supports"
            )
        return model.context_tokens
    if known.shape.max_context:
        draft.warnings.append(
            f"`model.context_tokens` is not declared: sized for the model's own maximum of"
            f" {known.shape.max_context:,} tokens, which a serving engine takes"
        )
        return known.shape.max_context
    draft.warnings.append(
        f"`model.context_tokens` is not declared and the model's maximum is not known:"
        f" {UNKNOWN_CONTEXT:,} tokens assumed"
    )
    return UNKNOWN_CONTEXT


def _cache(model: Model, known: Known, spread: tuple[int, int], draft: Draft) -> None:
    """`spread` is (GPUs, pipeline stages)."""
    gpus, _ = spread
    shape = known.shape
    bytes_each = KV_BYTES[
        model.kv_precision or ("fp32" if known.precision in ("fp32", "fp64") else "fp16")
    ]
    tokens = _context(model, known, draft)
    sequences = model.concurrent_sequences
    share = _cache_share(shape, spread)
    local = min(shape.local_layers, shape.cache_layers)
    full_layers = shape.cache_layers - local
    per_layer = shape.cached_values * bytes_each * sequences
    size = per_layer * (full_layers * tokens + local * min(tokens, shape.window)) * share
    state = shape.state_values * STATE_BYTES * sequences / gpus
    text = _cache_formula(shape, bytes_each, tokens, sequences) + _shared(share, gpus)
    if known.count_only and model.context_tokens is None:
        half = stored(known, known.precision).bytes * RULE_OF_THUMB_CACHE / gpus
        if half > size:
            size, text = half, f"rule of thumb: half of the weights again{over(gpus)}"
    if state:
        text += f" + {shape.state_values / 1e6:.2f}M state values × {STATE_BYTES:g} B × {sequences}"
    draft.add("kv_cache", size + state, text)


def _cache_formula(shape: Shape, bytes_each: float, tokens: int, sequences: int) -> str:
    if shape.mla:
        values = f"({shape.mla.rank} latent + {shape.mla.rope} rope)"
    else:
        values = f"{shape.kv_heads} kv heads × {shape.head_size} × 2"
    local = min(shape.local_layers, shape.cache_layers)
    full = shape.cache_layers - local
    pieces: list[str] = []
    if full:
        pieces.append(f"{full} layers × {tokens:,}")
    if local:
        pieces.append(f"{local} local layers × {min(tokens, shape.window):,}")
    layers = " + ".join(pieces) if pieces else "0 layers"
    if len(pieces) > 1:
        layers = f"({layers})"
    return f"{layers} tokens × {values} × {bytes_each:g} B × {several(sequences, 'sequence')}"


def _cache_share(shape: Shape, spread: tuple[int, int]) -> float:
    """The share of the cache on one GPU under tensor parallelism within each pipeline stage.

    Each GPU keeps at least one whole KV head of its stage's layers, and the whole latent of MLA,
    because every query head needs it (vLLM and SGLang replicate there).
    """
    gpus, stages = spread
    if shape.mla:
        return 1.0 / stages
    return max(1 / gpus, 1 / (stages * max(1, shape.kv_heads)))


def _shared(share: float, gpus: int) -> str:
    if gpus == 1 or math.isclose(share, 1 / gpus):
        return over(gpus)
    if share == 1.0:
        return f", whole on each of {gpus} GPUs"
    return f" × {share:.6g}: each of {gpus} GPUs holds one KV head"


def _parallel_limits(shape: Shape, spread: tuple[int, int], draft: Draft) -> None:
    gpus, stages = spread
    each, left = divmod(gpus, stages)
    if left:
        draft.warnings.append(
            f"{gpus} GPUs are not a multiple of `pipeline_parallel: {stages}`: stages will differ"
        )
    elif each > 1 and shape.heads % each:
        fine = [n for n in range(1, each + 9) if n > 1 and shape.heads % n == 0]
        draft.warnings.append(
            f"tensor parallelism over {each} GPUs does not divide {shape.heads} attention heads;"
            f" engines want a divisor ({', '.join(map(str, fine[:6])) or 'one GPU'}) or pipeline"
            " parallelism (`pipeline_parallel`)"
        )
    if stages > shape.layers:
        draft.warnings.append(f"{stages} pipeline stages are more than the {shape.layers} layers")


def _encode(model: Model, shape: Shape, draft: Draft) -> None:
    """An encoder keeps one layer's activations, a speech decoder also its caches."""
    sequences = model.concurrent_sequences
    if shape.encoder == "whisper":
        tokens = WHISPER_TOKENS + WHISPER_FRAMES
        size = 2.0 * shape.decoder_layers * shape.hidden * 2 * tokens * sequences
        draft.add(
            "kv_cache",
            size,
            f"{shape.decoder_layers} decoder layers × {shape.hidden} × 2 × 2 B × ({WHISPER_TOKENS}"
            f" tokens + {WHISPER_FRAMES} audio frames) × {several(sequences, 'sequence')}",
        )
        length = WHISPER_FRAMES
    elif shape.encoder == "wav2vec2":
        length = model.context_tokens or WAV2VEC_FRAMES
    else:
        length = model.context_tokens or shape.max_context or 512
    per_token = layer_bytes(shape)
    draft.add(
        "activations",
        per_token * length * sequences,
        f"1 layer × {per_token:,.0f} B × {length:,} tokens × {several(sequences, 'sequence')}",
    )


def layer_bytes(shape: Shape) -> float:
    """Activation bytes that one token leaves in one layer, at 16 bit.

    2 B × (6 hidden + 2 query width + 2 KV width + 4 FFN, or 2 FFN when not gated): the inputs that
    the matrix products, norms and the activation function keep for the backward pass. A gated FFN
    keeps its gate, the activated gate, the up projection and their product; a plain one the inputs
    of its activation function and of its second matrix.
    """
    inner = (4 if shape.gated else 2) * shape.ffn_width
    return 2.0 * (6 * shape.hidden + 2 * shape.query_width + 2 * shape.kv_width + inner)
