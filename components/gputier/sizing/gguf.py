"""A GGUF file's header: the exact bytes of its tensors, and the shape that its metadata tells.

Layout: ggml's docs/gguf.md. Only the header is read, never a tensor; a file of several parts counts
together with its siblings.
"""

from __future__ import annotations

import re
import struct
from pathlib import Path
from typing import BinaryIO, NamedTuple, cast

from gputier.sizing.files import refuse
from gputier.sizing.shape import Mla, Shape

FIELD = "model.weights_index"
MOST_ENTRIES = 10_000_000
MOST_TEXT = 16 * 2**20
"""Bounds far above a real header (a vocabulary has 300,000 words), so that rubbish ends early."""

_SCALARS = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q",
            12: "d"}  # fmt: skip
_STRING, _ARRAY = 8, 9

# ggml.h's types: bytes of a block and the weights in it.
_BLOCKS: dict[int, tuple[int, int]] = {
    0: (4, 1), 1: (2, 1), 2: (18, 32), 3: (20, 32), 6: (22, 32), 7: (24, 32), 8: (34, 32),
    9: (36, 32), 10: (84, 256), 11: (110, 256), 12: (144, 256), 13: (176, 256), 14: (210, 256),
    15: (292, 256), 16: (66, 256), 17: (74, 256), 18: (98, 256), 19: (50, 256), 20: (18, 32),
    21: (110, 256), 22: (82, 256), 23: (136, 256), 24: (1, 1), 25: (2, 1), 26: (4, 1), 27: (8, 1),
    28: (8, 1), 29: (56, 256), 30: (2, 1), 34: (54, 256), 35: (66, 256), 39: (17, 32),
}  # fmt: skip
_COARSE = frozenset(_BLOCKS) - {0, 1, 30}

_UNGATED = frozenset(("gpt2", "gptj", "gptneox", "falcon", "bloom", "mpt", "phi2", "starcoder",
                      "starcoder2", "bert", "nomic-bert", "nemotron"))  # fmt: skip

_PART = re.compile(r"-(\d{5})-of-(\d{5})\.gguf$")


class FromGguf(NamedTuple):
    """What the file says: bytes of all tensors, the shape, and whether weights are quantised."""

    total_bytes: float
    shape: Shape
    quantised: bool
    name: str


class _Header(NamedTuple):
    metadata: dict[str, object]
    lengths: dict[str, int]
    """Entries of each array, which is all that is kept of one."""
    tensors: dict[str, tuple[float, float]]
    """(weights, bytes) by name."""
    quantised: bool


def read_gguf(path: Path) -> FromGguf:
    """Read a GGUF file's header, and those of its siblings where it is one of several parts.

    Raises InvalidInput when it cannot be read, is no GGUF file or lacks a part.
    """
    headers = [_header(part) for part in _parts(path)]
    first = headers[0]
    tensors = {name: found for header in headers for name, found in header.tensors.items()}
    kind = first.metadata.get("general.architecture")
    if not isinstance(kind, str) or not tensors:
        refuse(FIELD, f"`{path}` has no general.architecture, or no tensors", "")
    shape = _shape(first, kind, tensors)
    if not shape.hidden or not shape.layers:
        refuse(
            FIELD,
            f"`{path}` is no language model's: it has no {kind}.embedding_length and block_count",
            "give `model.name`, `model.config` or `model.parameters`",
        )
    name = first.metadata.get("general.name")
    return FromGguf(
        sum(size for _, size in tensors.values()),
        shape,
        any(header.quantised for header in headers),
        name if isinstance(name, str) else path.name,
    )


def _parts(path: Path) -> list[Path]:
    found = _PART.search(path.name)
    if not found:
        return [path]
    stem, count = path.name[: found.start()], int(found[2])
    parts = [path.with_name(f"{stem}-{n:05}-of-{count:05}.gguf") for n in range(1, count + 1)]
    missing = [part.name for part in parts if not part.is_file()]
    if missing:
        refuse(
            FIELD,
            f"`{path}` is one of {count} parts, and {missing[0]} is not beside it",
            "put all parts into one folder, or give `model.config`",
        )
    return parts


def _header(path: Path) -> _Header:
    try:
        with path.open("rb") as file:
            return _read(file, path)
    except OSError as error:
        hint = "the path counts from the folder of the declaring file"
        refuse(FIELD, f"`{path}` cannot be read: {error.strerror or error}", hint)
    except (struct.error, ValueError, KeyError, RecursionError):
        refuse(FIELD, f"`{path}` is no whole GGUF file", "download it again")


def _read(file: BinaryIO, path: Path) -> _Header:
    if file.read(4) != b"GGUF":
        refuse(FIELD, f"`{path}` does not begin as a GGUF file does", "download it again")
    version, count, entries = _unpack(file, "I"), _unpack(file, "Q"), _unpack(file, "Q")
    if version not in (2, 3) or max(count, entries) > MOST_ENTRIES:
        refuse(FIELD, f"`{path}` is GGUF version {version}; 2 and 3 are read", "convert it anew")
    metadata: dict[str, object] = {}
    lengths: dict[str, int] = {}
    for _ in range(entries):
        key, kind = _text(file), _unpack(file, "I")
        if kind == _ARRAY:
            metadata[key], lengths[key] = _array(file)
        else:
            metadata[key] = _value(file, kind)
    tensors: dict[str, tuple[float, float]] = {}
    quantised = False
    for _ in range(count):
        name, dimensions = _text(file), _unpack(file, "I")
        if dimensions > 8:
            raise ValueError("a tensor of more than 8 dimensions")
        weights = 1.0
        for _ in range(dimensions):
            weights *= _unpack(file, "Q")
        kind = _unpack(file, "I")
        _unpack(file, "Q")
        size, held = _BLOCKS[kind]
        quantised |= kind in _COARSE
        tensors[name] = (weights, weights * size / held)
    return _Header(metadata, lengths, tensors, quantised)


def _unpack(file: BinaryIO, form: str) -> int:
    return struct.unpack(f"<{form}", file.read(struct.calcsize(f"<{form}")))[0]


def _text(file: BinaryIO) -> str:
    length = _unpack(file, "Q")
    if length > MOST_TEXT:
        raise ValueError("a text of over 16 MiB")
    raw = file.read(length)
    if len(raw) != length:
        raise ValueError("cut short")
    return raw.decode("utf-8", "replace")


def _value(file: BinaryIO, kind: int) -> object:
    return _text(file) if kind == _STRING else _unpack(file, _SCALARS[kind])


def _array(file: BinaryIO) -> tuple[object, int]:
    """(the numbers of a short array of numbers, else None; how many entries it has)."""
    kind, length = _unpack(file, "I"), _unpack(file, "Q")
    if kind == _ARRAY or length > MOST_ENTRIES:
        raise ValueError("an array of arrays, or over ten million entries")
    if kind == _STRING:
        for _ in range(length):
            _text(file)
        return None, length
    size = struct.calcsize(f"<{_SCALARS[kind]}")
    if length > 4096:
        if len(file.read(size * length)) != size * length:
            raise ValueError("cut short")
        return None, length
    return [_unpack(file, _SCALARS[kind]) for _ in range(length)], length


def _shape(header: _Header, kind: str, tensors: dict[str, tuple[float, float]]) -> Shape:
    """The decoder that the metadata describes; figures a layer list differs in are its mean."""

    def n(key: str) -> int:
        value = header.metadata.get(f"{kind}.{key}")
        if isinstance(value, list):
            held = cast("list[float]", value)
            return round(sum(held) / len(held)) if held else 0
        return int(value) if isinstance(value, (int, float)) and value > 0 else 0

    layers, hidden = n("block_count"), n("embedding_length")
    heads = n("attention.head_count") or max(1, hidden // 128)
    vocabulary = header.lengths.get("tokenizer.ggml.tokens") or n("vocab_size")
    experts, dense = n("expert_count"), n("leading_dense_block_count")
    rank, rope = n("attention.kv_lora_rank"), n("rope.dimension_count")
    key, value = n("attention.key_length"), n("attention.value_length")
    mla = Mla(rank, rope, max(1, key - rope), value, n("attention.q_lora_rank")) if rank else None
    expert_ffn = n("expert_feed_forward_length") or n("feed_forward_length") if experts else 0
    return Shape(
        parameters=sum(weights for weights, _ in tensors.values()),
        layers=layers,
        hidden=hidden,
        heads=heads,
        kv_heads=min(heads, n("attention.head_count_kv") or heads),
        head_size=key or max(1, hidden // heads),
        ffn=n("feed_forward_length") or 4 * hidden,
        vocabulary=vocabulary,
        gated=kind not in _UNGATED,
        tied="output.weight" not in tensors,
        attention_layers=layers,
        cache_layers=layers,
        mla=mla,
        dense_layers=dense if experts else layers,
        moe_layers=max(0, layers - dense) if experts else 0,
        experts=experts,
        experts_per_token=n("expert_used_count"),
        expert_ffn=expert_ffn,
        shared_ffn=n("expert_shared_feed_forward_length") or n("expert_shared_count") * expert_ffn,
        max_context=n("context_length") or None,
    )
