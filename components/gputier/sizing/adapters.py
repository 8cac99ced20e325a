"""LoRA and QLoRA adapters: which matrices get one, and how many parameters that is."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from gputier.sizing.shape import Shape, matrices

ATTENTION, MLP = ("q", "k", "v", "o", "mixer"), ("gate", "up", "down")
_QKV = ("q", "k", "v")

_MODULES: dict[str, tuple[str, ...]] = {
    "all-linear": (*ATTENTION, *MLP),
    "attn": ATTENTION,
    "mlp": MLP,
    # The names that modules have in the common families' code.
    "q_proj": ("q",), "k_proj": ("k",), "v_proj": ("v",), "o_proj": ("o",), "out_proj": ("o",),
    "query": ("q",), "key": ("k",), "value": ("v",), "wq": ("q",), "wk": ("k",), "wv": ("v",),
    "wo": ("o",), "qkv_proj": _QKV, "qkv": _QKV, "query_key_value": _QKV, "c_attn": _QKV,
    "w_pack": _QKV, "wqkv": _QKV, "in_proj": _QKV, "q_a_proj": ("q",), "q_b_proj": ("q",),
    "kv_a_proj_with_mqa": ("k",),
    "kv_b_proj": ("v",), "dense": ("o",), "gate_proj": ("gate",), "up_proj": ("up",),
    "down_proj": ("down",), "gate_up_proj": ("gate", "up"), "w1": ("gate",), "w2": ("down",),
    "w3": ("up",), "fc1": ("up",), "fc2": ("down",), "fc_1": ("gate",), "fc_2": ("up",),
    "dense_h_to_4h": ("gate", "up"), "dense_4h_to_h": ("down",), "c_fc": ("up",),
    "c_proj": ("o", "down"),
}  # fmt: skip

_FUSED = (_QKV, ("gate", "up"))
"""Matrices that are one module where a target names them together: one adapter, with one input."""

_EMBEDDINGS = ("embed_tokens", "embed", "wte", "tok_embeddings", "word_embeddings", "embeddings")
_OUTPUTS = ("lm_head", "output", "embed_out")


class Adapters(NamedTuple):
    """`parameters` of all adapters; `embeddings` of them are whole trained embedding matrices.
    `inputs` are the values that one token brings to the adapted matrices of all layers."""

    parameters: float
    embeddings: float
    unknown: tuple[str, ...]
    inputs: float = 0.0


def adapters(shape: Shape, rank: int, targets: Iterable[str]) -> Adapters:
    """rank × (inputs + outputs) for each adapted matrix, in every expert of a mixture.

    An embedding or output layer among the targets is trained whole, as PEFT's `modules_to_save`
    does. A name that is not known counts as the widest matrix of each layer.
    """
    chosen: set[str] = set()
    entered: set[str] = set()
    embeddings = 0.0
    unknown: list[str] = []
    for target in targets:
        name = target.rsplit(".", 1)[-1].lower()
        if name in (*ATTENTION, *MLP) or name in _MODULES:
            kinds = _MODULES.get(name, (name,))
            chosen.update(kinds)
            entered.update(kinds[:1] if kinds in _FUSED else kinds)
        elif name in _EMBEDDINGS:
            embeddings += shape.embedding
        elif name in _OUTPUTS:
            embeddings += shape.output or shape.embedding
        else:
            unknown.append(target)
    adapted = sum(
        rank * (m.inputs + m.outputs) * m.times for kind, m in matrices(shape) if kind in chosen
    )
    widest = rank * (shape.hidden + max(shape.ffn_width, shape.query_width)) * shape.layers
    total = adapted + widest * len(unknown) + embeddings
    inputs = _inputs(shape, entered) + shape.hidden * shape.layers * len(unknown)
    return Adapters(total, embeddings, tuple(unknown), inputs)


def _inputs(shape: Shape, entered: set[str]) -> float:
    """Values of one token that enter the adapted matrices: only its own experts of a mixture."""
    idle = max(0, shape.experts - shape.experts_per_token) * shape.moe_layers
    expert = (shape.expert_hidden or shape.hidden, shape.expert_ffn)
    total = 0.0
    for kind, m in matrices(shape):
        routed = kind in MLP and idle and sorted((m.inputs, m.outputs)) == sorted(expert)
        if kind in entered:
            total += m.inputs * (max(0.0, m.times - idle) if routed else m.times)
    return total
