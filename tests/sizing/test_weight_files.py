"""The weights' own files: GGUF headers, single safetensors files, and how a model was quantised."""

from __future__ import annotations

import json
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import pytest

from gputier.errors import InvalidInput
from gputier.sizing import Sizing, size
from gputier.sizing.gguf import read_gguf
from gputier.workload import Workload

GIB = 2**30
Sized = Callable[..., Sizing]

METADATA: dict[str, Any] = {
    "general.architecture": "llama",
    "general.name": "Tiny",
    "llama.block_count": 2,
    "llama.embedding_length": 256,
    "llama.feed_forward_length": 512,
    "llama.attention.head_count": 8,
    "llama.attention.head_count_kv": 2,
    "llama.context_length": 4096,
    "tokenizer.ggml.tokens": ["a", "b", "c", "d"],
}
Q4_K, Q6_K, F32 = 12, 14, 0
TENSORS = {
    "token_embd.weight": ((256, 1024), Q4_K),
    "output.weight": ((256, 1024), Q6_K),
    "blk.0.attn_q.weight": ((256, 256), Q4_K),
    "blk.0.attn_norm.weight": ((256,), F32),
}
BYTES = 256 * 1024 * (144 + 210) / 256 + 256 * 256 * 144 / 256 + 256 * 4


def text(value: str) -> bytes:
    return struct.pack("<Q", len(value)) + value.encode()


def value(held: Any) -> bytes:
    if isinstance(held, str):
        return struct.pack("<I", 8) + text(held)
    if isinstance(held, list):
        items = cast("list[Any]", held)
        strings = isinstance(items[0], str)
        blob = b"".join(text(i) if strings else struct.pack("<i", i) for i in items)
        return struct.pack("<IIQ", 9, 8 if strings else 5, len(items)) + blob
    return struct.pack("<II", 4, held)


def gguf(
    path: Path, metadata: dict[str, Any] = METADATA, tensors: Any = TENSORS, version: int = 3
) -> Path:
    blob = b"GGUF" + struct.pack("<IQQ", version, len(tensors), len(metadata))
    for key, held in metadata.items():
        blob += text(key) + value(held)
    for name, (shape, kind) in tensors.items():
        blob += text(name) + struct.pack("<I", len(shape))
        blob += b"".join(struct.pack("<Q", n) for n in shape) + struct.pack("<IQ", kind, 0)
    path.write_bytes(blob)
    return path


def refused(model: dict[str, Any]) -> str:
    with pytest.raises(InvalidInput) as caught:
        size(Workload.model_validate({"model": model}), gpus=1)
    return str(caught.value)


def test_a_gguf_header_gives_bytes_and_shape(tmp_path: Path, sized: Sized) -> None:
    found = sized(weights_index=str(gguf(tmp_path / "tiny.gguf")), context_tokens=1000)
    parts = {p.name: p.gib for p in found.parts}
    assert parts["weights"] * GIB == pytest.approx(BYTES)
    assert parts["kv_cache"] * GIB == pytest.approx(2 * 2 * (2 * 32) * 2 * 1000)
    assert found.confidence == "good"
    assert "(Tiny), the file's own header" in found.basis
    assert found.warnings == ()


def test_one_declared_figure_leaves_the_rest_of_a_gguf_header_alone(
    tmp_path: Path, sized: Sized
) -> None:
    file = str(gguf(tmp_path / "tiny.gguf"))
    plain = sized(weights_index=file, context_tokens=1000)
    same = sized(weights_index=file, context_tokens=1000, architecture={"gated_ffn": True})
    assert same.parts == plain.parts
    assert same.warnings == ()


def test_a_gguf_header_tells_experts_and_layers_that_differ(tmp_path: Path) -> None:
    metadata = METADATA | {
        "llama.attention.head_count_kv": [2, 4],
        "llama.expert_count": 8,
        "llama.expert_used_count": 2,
        "llama.expert_feed_forward_length": 128,
        "llama.leading_dense_block_count": 1,
    }
    shape = read_gguf(gguf(tmp_path / "m.gguf", metadata)).shape
    assert (shape.kv_heads, shape.experts, shape.experts_per_token) == (3, 8, 2)
    assert (shape.dense_layers, shape.moe_layers, shape.expert_ffn) == (1, 1, 128)
    assert shape.max_context == 4096
    assert not shape.tied


def test_the_parts_of_a_gguf_file_count_together(tmp_path: Path) -> None:
    whole = read_gguf(gguf(tmp_path / "whole.gguf")).total_bytes
    first = dict(list(TENSORS.items())[:2])
    gguf(tmp_path / "m-00001-of-00002.gguf", METADATA, first)
    says = refused({"weights_index": str(tmp_path / "m-00001-of-00002.gguf")})
    assert "m-00002-of-00002.gguf is not beside it" in says
    rest = dict(list(TENSORS.items())[2:])
    gguf(tmp_path / "m-00002-of-00002.gguf", {"general.type": "model"}, rest)
    assert read_gguf(tmp_path / "m-00001-of-00002.gguf").total_bytes == whole


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"", "does not begin as a GGUF file"),
        (b"PK\x03\x04", "does not begin as a GGUF file"),
        (b"GGUF" + struct.pack("<IQQ", 1, 1, 1), "GGUF version 1"),
        (b"GGUF" + struct.pack("<IQQ", 3, 1, 1), "no whole GGUF file"),
        (b"GGUF" + struct.pack("<IQQ", 3, 0, 1) + struct.pack("<Q", 2**60), "no whole GGUF file"),
        (b"GGUF" + struct.pack("<IQQ", 3, 0, 0), "no general.architecture"),
    ],
)
def test_what_is_no_gguf_file_is_refused(tmp_path: Path, content: bytes, says: str) -> None:
    (tmp_path / "m.gguf").write_bytes(content)
    assert says in refused({"weights_index": str(tmp_path / "m.gguf")})


def test_a_gguf_file_cut_short_anywhere_is_refused(tmp_path: Path) -> None:
    whole = gguf(tmp_path / "m.gguf").read_bytes()
    for length in range(4, len(whole) - 1, 7):
        (tmp_path / "cut.gguf").write_bytes(whole[:length])
        assert "GGUF" in refused({"weights_index": str(tmp_path / "cut.gguf")}), length


def test_a_gguf_file_that_is_missing_or_no_language_model_is_refused(tmp_path: Path) -> None:
    assert "cannot be read" in refused({"weights_index": str(tmp_path / "none.gguf")})
    gguf(tmp_path / "clip.gguf", {"general.architecture": "clip"})
    assert "no language model's" in refused({"weights_index": str(tmp_path / "clip.gguf")})


def safetensors(path: Path, header: object) -> str:
    raw = json.dumps(header).encode()
    path.write_bytes(struct.pack("<Q", len(raw)) + raw)
    return str(path)


def test_a_single_safetensors_file_gives_bytes_parameters_and_layers(
    tmp_path: Path, sized: Sized
) -> None:
    header = {
        "__metadata__": {"format": "pt"},
        "model.layers.0.w": {"dtype": "F32", "shape": [1000, 1000], "data_offsets": [0, 4_000_000]},
        "model.layers.1.w": {
            "dtype": "F32",
            "shape": [500],
            "data_offsets": [4_000_000, 4_002_000],
        },
    }
    path = safetensors(tmp_path / "model.safetensors", header)
    found = sized(weights_index=path, context_tokens=8)
    assert found.parts[0].gib * GIB == pytest.approx(4_002_000)
    assert "own header" in found.basis
    assert found.parameters == 1_000_500


def test_packed_elements_tell_no_parameter_count(tmp_path: Path, sized: Sized) -> None:
    tensor = {"dtype": "I8", "shape": [1000, 1000], "data_offsets": [0, 1_000_000]}
    path = safetensors(tmp_path / "model.safetensors", {"model.layers.0.w": tensor})
    found = sized(weights_index=path, precision="int4-awq", context_tokens=8)
    assert found.parts[0].gib * GIB == pytest.approx(1_000_000)
    assert found.parameters == pytest.approx(1_000_000 / (0.5 + 2.5 / 128))


@pytest.mark.parametrize(
    ("header", "says"),
    [
        ({}, "holds no tensors"),
        ([], "holds no tensors"),
        ({"a": {"shape": [1]}}, "no shape and offsets"),
    ],
)
def test_a_safetensors_file_without_tensors_is_refused(
    tmp_path: Path, header: object, says: str
) -> None:
    path = safetensors(tmp_path / "model.safetensors", header)
    assert says in refused({"weights_index": path})


@pytest.mark.parametrize(
    "content", [b"", b"12", struct.pack("<Q", 2**40), struct.pack("<Q", 3) + b"{x}"]
)
def test_what_is_no_safetensors_file_is_refused(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "m.safetensors").write_bytes(content)
    says = refused({"weights_index": str(tmp_path / "m.safetensors")})
    assert "no safetensors file" in says
    assert "cannot be read" in refused({"weights_index": str(tmp_path / "none.safetensors")})


# --- hf_quant_config.json and layers that differ -------------------------------------------------

CONFIG: dict[str, Any] = {
    "model_type": "llama", "hidden_size": 4096, "num_hidden_layers": 32, "num_attention_heads": 32,
    "num_key_value_heads": 8, "intermediate_size": 14336, "vocab_size": 128256,
    "torch_dtype": "bfloat16", "tie_word_embeddings": False,
}  # fmt: skip


@pytest.mark.parametrize(
    ("algorithm", "precision"),
    [("FP8", "fp8"), ("NVFP4", "nvfp4"), ("W4A16_AWQ", "int4-awq"), ("INT8_SQ", "int8")],
)
def test_how_model_optimizer_quantised_it_is_read_beside_the_config(
    tmp_path: Path, sized: Sized, algorithm: str, precision: str
) -> None:
    (tmp_path / "config.json").write_text(json.dumps(CONFIG), encoding="utf-8")
    path = str(tmp_path / "config.json")
    plain = sized(config=path, context_tokens=64)
    beside = {"producer": {"name": "modelopt"}, "quantization": {"quant_algo": algorithm}}
    (tmp_path / "hf_quant_config.json").write_text(json.dumps(beside), encoding="utf-8")
    found = sized(config=path, context_tokens=64)
    assert found.parts == sized(config=path, context_tokens=64, precision=precision).parts
    assert found.parts[0].gib < plain.parts[0].gib


def test_an_unknown_algorithm_is_said(tmp_path: Path, sized: Sized) -> None:
    (tmp_path / "config.json").write_text(json.dumps(CONFIG), encoding="utf-8")
    beside = {"quantization": {"quant_algo": "MIXED"}}
    (tmp_path / "hf_quant_config.json").write_text(json.dumps(beside), encoding="utf-8")
    found = sized(config=str(tmp_path / "config.json"), context_tokens=64)
    assert any("names no quantisation that is sized" in warning for warning in found.warnings)


def test_layers_that_were_searched_one_by_one_are_sized_with_their_means(
    tmp_path: Path, sized: Sized
) -> None:
    blocks = [
        {"attention": {"n_heads_in_group": 8}, "ffn": {"ffn_mult": 1.25}},
        {"attention": {"n_heads_in_group": 4}, "ffn": {"intermediate_size": 4096}},
        {"attention": {"no_op": True}, "ffn": {"ffn_mult": 5.25}},
        {"attention": {"replace_with_linear": True}, "ffn": {"no_op": True}},
    ]
    config = CONFIG | {"num_hidden_layers": 4, "block_configs": blocks, "intermediate_size": None}
    (tmp_path / "config.json").write_text(json.dumps(config), encoding="utf-8")
    found = sized(config=str(tmp_path / "config.json"), context_tokens=1000)
    parts = {p.name: p.gib * GIB for p in found.parts}
    # 32 / 8 and 32 / 4 KV heads of 128 in the two layers that attend.
    assert parts["kv_cache"] == pytest.approx(2 * (4 + 8) * 128 * 2 * 1000)
    attention = 2 * (2 * 4096 * 4096 + 2 * 4096 * 6 * 128)
    widths = [3584, 4096, 14336]  # 2/3 × 1.25 × 4096, rounded up to 256; as written; × 5.25
    ffn = sum(3 * 4096 * width for width in widths)
    ends, norms = 2 * 128_256 * 4096, 4096 * 9
    assert parts["weights"] / 2 == pytest.approx(attention + ffn + 4096**2 + ends + norms, rel=1e-3)
    assert any("its layers differ" in warning for warning in found.warnings)
