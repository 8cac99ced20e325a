"""A model's shape: what the formulas need to know, and the parameter count that follows from it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

TYPICAL_VOCABULARY = 102_400
"""Median vocabulary of the dense decoders in data/models.csv, nearly the same for every size."""

TYPICAL_WIDTH_PER_LAYER = 128
"""Hidden size ÷ layers of the Llama family (4096 / 32, 5120 / 40; arXiv 2302.13971 table 2)."""

TYPICAL_KV_HEADS = 8
"""KV heads of most decoders since 2023: the median of data/models.csv in every size band."""


class Mla(NamedTuple):
    """Multi-head latent attention (arXiv 2405.04434): sizes of the compressed projections."""

    rank: int
    rope: int
    nope: int
    value: int
    query_rank: int = 0


class Matrix(NamedTuple):
    """`times` equal linear layers of the model: `inputs` × `outputs` weights each."""

    inputs: int
    outputs: int
    times: float

    @property
    def parameters(self) -> float:
        """Weights of all of them; biases are left out."""
        return float(self.inputs) * self.outputs * self.times


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """Architecture facts. Widths in values, counts in parameters; 0 where a model has none.

    `parameters` is what is stored, every expert included. `cache_layers` of the
    `attention_layers` keep a KV cache of their own, `local_layers` of those only for the last
    `window` tokens. `linear_layers` have `mixer` parameters each and no cache; `state_values` are
    the values per sequence that all of them together hold. `gated_attention` doubles the query
    projection. Experts take in `expert_hidden` values where that is not `hidden`. `extra` is what
    is in no block and no embedding: vision tower, audio encoder, per-layer embeddings. `encoder`
    is "" for a decoder, else text, whisper or wav2vec2.
    """

    parameters: float
    layers: int
    hidden: int
    heads: int
    kv_heads: int
    head_size: int
    ffn: int
    vocabulary: int
    gated: bool = True
    tied: bool = False
    attention_layers: int = 0
    cache_layers: int = 0
    local_layers: int = 0
    window: int = 0
    mla: Mla | None = None
    gated_attention: bool = False
    linear_layers: int = 0
    mixer: float = 0.0
    state_values: float = 0.0
    dense_layers: int = 0
    moe_layers: int = 0
    experts: int = 0
    experts_per_token: int = 0
    expert_ffn: int = 0
    shared_ffn: int = 0
    expert_hidden: int = 0
    extra: float = 0.0
    embedding_width: int = 0
    encoder: str = ""
    decoder_layers: int = 0
    max_context: int | None = None

    @property
    def query_width(self) -> int:
        """Width of all query heads."""
        return self.heads * self.head_size

    @property
    def kv_width(self) -> int:
        """Width of the keys (the values are as wide)."""
        return self.kv_heads * self.head_size

    @property
    def cached_values(self) -> int:
        """Values a token leaves in the cache of one attention layer."""
        return self.mla.rank + self.mla.rope if self.mla else 2 * self.kv_width

    @property
    def embedding(self) -> float:
        """Parameters of the input embedding; never more than the model (a bare small count)."""
        table = float(self.vocabulary) * (self.embedding_width or self.hidden)
        return min(table, self.parameters)

    @property
    def output(self) -> float:
        """Parameters of the output layer; 0 when it is the embedding itself."""
        return 0.0 if self.tied else self.embedding

    @property
    def ffn_width(self) -> int:
        """The widest feed-forward inner width that one token passes through."""
        active = self.experts_per_token * self.expert_ffn + self.shared_ffn
        return max(self.ffn if self.dense_layers else 0, active if self.moe_layers else 0)

    @property
    def block(self) -> float:
        """Parameters of one transformer block, the mean over the layers."""
        return (self.parameters - self.embedding - self.output - self.extra) / self.layers

    @property
    def expert_parameters(self) -> float:
        """Parameters in routed experts."""
        inputs = float(self.expert_hidden or self.hidden)
        per_expert = (3 if self.gated else 2) * inputs * self.expert_ffn
        return min(per_expert * self.experts * self.moe_layers, self.parameters)


def matrices(shape: Shape) -> Iterator[tuple[str, Matrix]]:
    """The linear layers of all blocks as (q, k, v, o, mixer, gate, up or down; matrix)."""
    h, layers = shape.hidden, shape.attention_layers
    yield from _attention(shape, layers)
    if shape.linear_layers:
        # Their projections differ by kind; adapters see them as square matrices of that size.
        yield "mixer", Matrix(h, h, shape.mixer / h**2 * shape.linear_layers)
    for inputs, width, times in (
        (h, shape.ffn, shape.dense_layers),
        (shape.expert_hidden or h, shape.expert_ffn, shape.moe_layers * shape.experts),
        (h, shape.shared_ffn, shape.moe_layers),
    ):
        if width and times:
            if shape.gated:
                yield "gate", Matrix(inputs, width, times)
            yield "up", Matrix(inputs, width, times)
            yield "down", Matrix(width, inputs, times)


def _attention(shape: Shape, layers: int) -> Iterator[tuple[str, Matrix]]:
    h, mla = shape.hidden, shape.mla
    if mla:
        queries = shape.heads * (mla.nope + mla.rope)
        if mla.query_rank:
            yield "q", Matrix(h, mla.query_rank, layers)
        yield "q", Matrix(mla.query_rank or h, queries, layers)
        yield "k", Matrix(h, mla.rank + mla.rope, layers)
        yield "v", Matrix(mla.rank, shape.heads * (mla.nope + mla.value), layers)
        yield "o", Matrix(shape.heads * mla.value, h, layers)
    elif layers:
        yield "q", Matrix(h, shape.query_width * (2 if shape.gated_attention else 1), layers)
        yield "k", Matrix(h, shape.kv_width, layers)
        yield "v", Matrix(h, shape.kv_width, layers)
        yield "o", Matrix(shape.query_width, h, layers)


def counted(shape: Shape) -> float:
    """Parameters recomputed from the shape: blocks, norms, routers, embedding and output layer."""
    h = shape.hidden
    table = float(shape.vocabulary) * (shape.embedding_width or h)
    norms = h * (2 * shape.layers + 1)
    routers = float(h) * (shape.experts + 2 * shape.expert_hidden) * shape.moe_layers
    blocks = sum(matrix.parameters for _, matrix in matrices(shape))
    return blocks + norms + routers + shape.extra + table * (1 if shape.tied else 2)


TYPICAL_TIED_BELOW = 5e9
"""Most decoders of data/models.csv below this size use the embedding as output layer too."""


def typical(parameters: float, active: float | None = None) -> Shape:
    """The shape of a Llama-style decoder of that size, for when only a count is known.

    parameters ≈ 12 × layers × hidden² with hidden = 128 × layers and an FFN of 8/3 hidden, so
    layers = ∛(parameters / 196,608). A mixture of experts is as wide and deep as a dense model of
    its active parameters; its experts still count in `parameters`. Every width grows with the
    count, so more parameters never need less memory.
    """
    per_cubed_layer = 12 * TYPICAL_WIDTH_PER_LAYER**2
    layers = max(1, round(((active or parameters) / per_cubed_layer) ** (1 / 3)))
    hidden = TYPICAL_WIDTH_PER_LAYER * layers
    return Shape(
        parameters=parameters,
        layers=layers,
        hidden=hidden,
        heads=layers,
        kv_heads=min(TYPICAL_KV_HEADS, layers),
        head_size=TYPICAL_WIDTH_PER_LAYER,
        ffn=round(8 * hidden / 3),
        vocabulary=TYPICAL_VOCABULARY,
        tied=parameters < TYPICAL_TIED_BELOW,
        attention_layers=layers,
        cache_layers=layers,
        dense_layers=layers,
    )
