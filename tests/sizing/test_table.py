"""The table of models: its numbers agree with each other, and its provenance travels with it."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from gputier.sizing import Sizing, table
from gputier.sizing.shape import Shape, counted, matrices

Sized = Callable[..., Sizing]

TOLERANCE = 0.02
# The three XVERSE counts are the rounded ones of the names. Nemotron-Ultra's layers differ from
# each other and their widths are not recorded; GLM-4.7-Flash's stored count holds a second draft
# block that its configuration does not describe.
NOT_EXPLAINED = {
    "xverse/XVERSE-7B",
    "xverse/XVERSE-13B",
    "xverse/XVERSE-65B",
    "nvidia/Llama-3_1-Nemotron-Ultra-253B-v1",
}


def rows() -> Iterator[dict[str, str]]:
    held = table.load()
    for number in range(len(held.rows)):
        yield held.row(number)


def number(row: dict[str, str], column: str) -> float:
    return float(row[column] or 0)


def draft_blocks(row: dict[str, str], shape: Shape) -> float:
    """Blocks for multi-token prediction are stored too: a layer, its projection, some with ends."""
    blocks = number(row, "mtp_layers")
    if not blocks:
        return 0.0
    h = shape.hidden
    per_layer = {"attention": shape.attention_layers, "experts": shape.moe_layers}
    attention = sum(m.parameters for kind, m in matrices(shape) if kind in "qkvo" and not is_mixer(m))
    inner = sum(m.parameters for kind, m in matrices(shape) if kind in ("gate", "up", "down"))
    if shape.moe_layers:
        dense = 3 * h * shape.ffn * shape.dense_layers
        inner = (inner - dense) / per_layer["experts"] + h * shape.experts
    else:
        inner /= shape.dense_layers
    ends = number(row, "mtp_extra_vocabularies") * shape.vocabulary * h
    return blocks * (attention / per_layer["attention"] + inner + 2 * h * h + 5 * h + ends)

    
def is_mixer(matrix: object) -> bool:
    return False


def recount(row: dict[str, str]) -> float:
    shape = table.entry(row).shape
    h, f = shape.hidden, shape.ffn
    if shape.encoder == "whisper":
        encoder, decoder = number(row, "encoder_layers"), number(row, "decoder_layers")
        ends = shape.vocabulary * h + (448 + 1500) * h + (number(row, "mel_bins") or 80) * 3 * h
        convolution = 3 * h * h
        blocks = encoder * (4 * h * h + 2 * h * f) + decoder * (8 * h * h + 2 * h * f)
        return ends + convolution + blocks
    if shape.encoder == "wav2vec2":
        features = 512 * 10 + 4 * 512 * 512 * 3 + 2 * 512 * 512 * 2 + 512 * h
        positions = h * (h // 16) * 128
        return features + positions + shape.layers * (4 * h * h + 2 * h * f)
    positions = (number(row, "position_embeddings") + number(row, "token_types")) * h
    pooler = h * h if shape.encoder == "text" else 0
    return counted(shape) + positions + pooler + draft_blocks(row, shape)


def test_each_models_count_follows_from_its_own_fields() -> None:
    off = {
        row["name"]: recount(row) / number(row, "parameters") - 1
        for row in rows()
        if abs(recount(row) / number(row, "parameters") - 1) > TOLERANCE
    }
    assert off.keys() == NOT_EXPLAINED, off
