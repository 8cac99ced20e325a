"""config.json of models whose layers were searched one by one (DeciLM, Llama-Nemotron)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import cast

from gputier.sizing.files import Json, is_map, positive
from gputier.sizing.shape import Shape
from gputier.sizing.spellings import Config

_MULTIPLE = 256
"""An FFN's width is `ffn_mult` × 2/3 × hidden, rounded up to this (modeling_decilm.py)."""


def described(config: Config) -> bool:
    """Whether each layer is described by itself."""
    return any(True for _ in _blocks(config))


def _blocks(config: Config) -> Iterator[tuple[Json, Json]]:
    listed = config.text.get("block_configs")
    if isinstance(listed, list):
        for block in cast("list[object]", listed):
            if is_map(block):
                attention, ffn = (
                    cast("Json", block).get("attention"),
                    cast("Json", block).get("ffn"),
                )
                yield (
                    cast("Json", attention) if is_map(attention) else {},
                    cast("Json", ffn) if is_map(ffn) else {},
                )


def applied(shape: Shape, config: Config) -> Shape:
    """The shape with the layers that are left, and the mean of their widths.

    A layer may have no attention, no FFN, or one square matrix in their place: such a matrix
    counts in `extra`, whose parameters stay at 16 bit.
    """
    kv: list[float] = []
    ffn: list[float] = []
    squares = layers = 0
    for attention, feed in _blocks(config):
        layers += 1
        if _left_out(attention):
            squares += bool(attention.get("replace_with_linear"))
        else:
            group = positive(attention.get("n_heads_in_group"))
            heads = positive(attention.get("num_key_value_heads"))
            kv.append(heads or (shape.heads / group if group else shape.kv_heads))
        if _left_out(feed):
            squares += bool(feed.get("replace_with_linear"))
        else:
            ffn.append(_width(shape, feed))
    return replace(
        shape,
        layers=layers,
        attention_layers=len(kv),
        cache_layers=len(kv),
        local_layers=min(shape.local_layers, len(kv)),
        kv_heads=max(1, round(sum(kv) / len(kv))) if kv else shape.kv_heads,
        dense_layers=len(ffn),
        ffn=round(sum(ffn) / len(ffn)) if ffn else shape.ffn,
        extra=shape.extra + squares * float(shape.hidden) ** 2,
    )


def _left_out(part: Json) -> bool:
    return bool(part.get("no_op") or part.get("replace_with_linear"))


def _width(shape: Shape, feed: Json) -> float:
    width = positive(feed.get("intermediate_size"))
    if width:
        return width
    factor = positive(feed.get("ffn_mult"))
    if not factor:
        return float(shape.ffn)
    return -(-int(2 * factor * shape.hidden / 3) // _MULTIPLE) * float(_MULTIPLE)
