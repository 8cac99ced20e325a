"""A model's own files: JSON read carefully, and the safetensors index."""

from __future__ import annotations

import json
import math
import re
import struct
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple, NoReturn, cast

from gputier import errors

Json = Mapping[str, Any]

INDEX = "model.weights_index"
MOST_CONFIG_BYTES = 4 * 2**20
MOST_INDEX_BYTES = 64 * 2**20
"""Far above a mixture of experts with a trillion parameters (a line per tensor)."""

_LAYER = re.compile(r"(?:^|\.)(?:layers|h|blocks)\.(\d{1,4})\.")


class FromIndex(NamedTuple):
    """What a safetensors index says: bytes of all tensors, parameters and layers where told."""

    total_bytes: float
    parameters: float | None
    layers: int | None


def read_index(path: Path) -> FromIndex:
    """Read a model.safetensors.index.json. Raises InvalidInput when it is something else."""
    raw = read_json(path, "model.weights_index", MOST_INDEX_BYTES)
    metadata, weights = raw.get("metadata"), raw.get("weight_map")
    total = positive(cast("Json", metadata).get("total_size")) if is_map(metadata) else 0
    if not total:
        refuse(
            "model.weights_index",
            f"`{path}` is no safetensors index: it has no metadata.total_size",
            "give the model.safetensors.index.json that lies beside the weights",
        )
    names: list[str] = list(cast("Json", weights)) if is_map(weights) else []
    numbers = [int(found[1]) for name in names if (found := _LAYER.search(name))]
    parameters = positive(cast("Json", metadata).get("total_parameters"))
    return FromIndex(total, parameters or None, max(numbers) + 1 if numbers else None)


def read_safetensors(path: Path) -> FromIndex:
    """The header of a single .safetensors file. Raises InvalidInput when it is something else."""
    try:
        with path.open("rb") as file:
            (length,) = struct.unpack("<Q", file.read(8))
            if length > MOST_INDEX_BYTES:
                raise ValueError("no header")
            header: object = json.loads(file.read(length))
    except OSError as error:
        refuse(
            INDEX,
            f"`{path}` cannot be read: {error.strerror or error}",
            "the path counts from the folder of the declaring file",
        )
    except (struct.error, ValueError, RecursionError):
        refuse(INDEX, f"`{path}` is no safetensors file", "download it again")
    tensors: Json = cast("Json", header) if is_map(header) else {}
    total = parameters = 0.0
    numbers: list[int] = []
    for name, tensor in tensors.items():
        if name == "__metadata__" or not is_map(tensor):
            continue
        facts = cast("Json", tensor)
        offsets, shape = _whole(facts.get("data_offsets")), _whole(facts.get("shape"))
        if len(offsets) != 2 or facts.get("shape") is None:
            refuse(INDEX, f"`{path}`: the tensor {name} has no shape and offsets", "")
        total += offsets[1] - offsets[0]
        parameters += math.prod(shape)
        numbers += [int(found[1])] if (found := _LAYER.search(name)) else []
    if total <= 0:
        refuse(INDEX, f"`{path}` holds no tensors", "")
    # Packed four-bit weights count several to an element: only unpacked ones tell a count.
    plain = parameters if total >= 2 * parameters else None
    return FromIndex(total, plain, max(numbers) + 1 if numbers else None)


def _whole(value: object) -> list[int]:
    """The whole numbers of a list; none when it is something else."""
    if not isinstance(value, list):
        return []
    return [item for item in cast("list[object]", value) if isinstance(item, int)]


def read_json(path: Path, field: str, most: int) -> Json:
    """The JSON object in a file of at most `most` bytes; every way it can fail is InvalidInput."""
    try:
        if not path.is_file():
            kind = "a folder" if path.is_dir() else "no such file"
            refuse(
                field, f"`{path}`: {kind}", "the path counts from the folder of the declaring file"
            )
        if path.stat().st_size > most:
            refuse(field, f"`{path}` is over {most // 2**20} MiB: no model's {path.name}", "")
        data: object = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        refuse(
            field, f"`{path}` cannot be read: {error.strerror or error}", "check its permissions"
        )
    except (ValueError, RecursionError):
        refuse(
            field, f"`{path}` is not valid JSON in UTF-8", "download it again, or export it anew"
        )
    if not is_map(data):
        refuse(field, f"`{path}` holds no JSON object", "")
    return cast("Json", data)


def refuse(field: str, message: str, hint: str) -> NoReturn:
    """Raise the one problem that ends reading."""
    raise errors.InvalidInput(errors.Problem(field, message, hint))


def is_map(value: object) -> bool:
    """Whether a JSON value is an object."""
    return isinstance(value, Mapping)


def positive(value: object) -> float:
    """A positive finite number, else 0: a config's null, -1 and text all mean "not given"."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return 0
    return value if 0 < value < 1e16 else 0
