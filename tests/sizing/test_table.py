"""The table of models: its numbers agree with each other, and its provenance travels with it."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from gputier.sizing import Sizing, table
from gputier.sizing.shape import Shape, counted, matrices

Sized = Callable[..., Sizing]

TOLERANCE = 0.02
# The three XVERSE counts are the rounded ones of the names. Nemotron-Ultra's layers differ from
# each other, and their widths are not recorded.
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
    attention = sum(m.parameters for kind, m in matrices(shape) if kind in ("q", "k", "v", "o"))
    inner = sum(m.parameters for kind, m in matrices(shape) if kind in ("gate", "up", "down"))
    if shape.moe_layers:
        inner -= 3 * h * shape.ffn * shape.dense_layers
    layer = attention / shape.attention_layers + inner / (shape.moe_layers or shape.dense_layers)
    ends = number(row, "mtp_extra_vocabularies") * shape.vocabulary * h
    return blocks * (layer + 2 * h * h + 5 * h + ends)


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


def test_a_wrong_field_is_noticed() -> None:
    row = next(row for row in rows() if row["name"] == "meta-llama/Llama-3.1-8B-Instruct")
    for column, wrong in (
        ("layers", "31"),
        ("ffn_size", "14848"),
        ("kv_heads", "32"),
        ("vocabulary_size", "151936"),
    ):
        changed = {**row, column: wrong, "attention_layers": "31" if column == "layers" else "32"}
        changed["ffn_layers"] = changed["attention_layers"]
        assert abs(recount(changed) / number(row, "parameters") - 1) > TOLERANCE, column


def test_every_row_says_where_it_comes_from_and_whether_it_is_confirmed() -> None:
    for row in rows():
        assert row["source"], row["name"]
        assert row["verified"] in ("yes", "no"), row["name"]
        if "not confirmed by a second source" in row["source"]:
            assert row["verified"] == "no" or row["published_parameters_source"], row["name"]
    assert sum(row["verified"] == "no" for row in rows()) == 20


def test_figures_are_in_range() -> None:
    for row in rows():
        shape = table.entry(row).shape
        assert 1e6 < shape.parameters < 2e12, row["name"]
        assert 0 < shape.layers <= 200, row["name"]
        assert shape.kv_heads <= shape.heads, row["name"]
        assert shape.local_layers <= shape.cache_layers <= shape.attention_layers, row["name"]
        assert bool(shape.local_layers) <= bool(shape.window), row["name"]
        assert shape.embedding + shape.output <= shape.parameters, row["name"]
        assert shape.expert_parameters < shape.parameters, row["name"]
        assert (shape.moe_layers > 0) == (shape.experts > 0), row["name"]


def test_layers_that_share_a_cache_are_what_the_notes_say() -> None:
    shared = {row["name"]: row for row in rows() if row["kv_shared_layers"]}
    assert len(shared) == 3
    for row in shared.values():
        assert "share" in row["notes"], row["name"]
        assert row["kv_shared_layers"] in row["notes"], row["name"]


def test_every_model_can_be_served_and_trained(sized: Sized) -> None:
    for row in rows():
        for training in (None, {"method": "full"}, {"method": "lora"}, {"method": "qlora"}):
            found = sized(8, name=row["name"], **({"training": training} if training else {}))
            assert found.per_gpu_gib > 0
            assert all(part.gib > 0 for part in found.parts), row["name"]
            assert row["name"] in found.basis


@pytest.mark.parametrize(
    ("name", "low", "high"),
    # Sizes of the published checkpoints in GB, by their own repositories.
    [
        ("llama-3.1-70b", 141.0, 141.3),
        ("mixtral-8x7b", 93.3, 93.5),
        ("qwen2.5-7b", 15.2, 15.3),
        ("deepseek-v3", 680.0, 695.0),
        ("gpt-oss-120b", 62.0, 66.0),
    ],
)
def test_weights_are_as_large_as_the_published_checkpoint(
    sized: Sized, name: str, low: float, high: float
) -> None:
    found = sized(name=name, context_tokens=1)
    assert low < found.parts[0].gib * 2**30 / 1e9 < high
