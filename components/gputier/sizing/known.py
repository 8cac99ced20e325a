"""What is known about a model: the best of the inputs that were given, and how good it is.

In order of quality: the table row of `model.name`, the model's own config.json, the bytes of a
safetensors index, a bare parameter count. `model.architecture` corrects single figures of any.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

from gputier import units
from gputier.sizing import configs, files, gguf, names, table
from gputier.sizing.formats import FORMATS
from gputier.sizing.shape import Shape, counted, matrices, typical
from gputier.workload.ml import Architecture, Model

GOOD, FAIR, WEAK, MEASURED = "good", "fair", "weak", "measured"

UNVERIFIED_MARGIN = 0.05
"""Widening for a table row that no second source confirms."""

COUNT_ONLY_MARGIN = 0.30
"""The rule of thumb's own allowance ("plus 30 %"), kept where only a parameter count is known."""


@dataclass(frozen=True, slots=True)
class Known:
    """A model ready for the formulas.

    `precision` is what the weights are stored in, `said` whether the declaration itself says so.
    `stored_bytes` is a safetensors index's total, when that and not a count is the fact.
    `count_only` marks a shape that is assumed. `widen` is added to the margin's fraction.
    """

    shape: Shape
    precision: str
    basis: str
    confidence: str = GOOD
    said: bool = True
    stored_bytes: float | None = None
    count_only: bool = False
    widen: float = 0.0
    active: float | None = None
    warnings: tuple[str, ...] = ()


def resolve(model: Model) -> Known | None:
    """The language, embedding or speech model that is declared; None when `name` is no such.

    Raises InvalidInput for an ambiguous name and for a file that is missing or no model's.
    """
    key = _Key(
        model.name,
        _stamp(model.config_path),
        _stamp(configs.beside(model.config_path) if model.config_path else None),
        _stamp(model.weights_index_path),
        model.parameters,
        model.active_parameters,
        model.precision,
        model.architecture,
    )
    return _resolved(key)


class _Stamp(NamedTuple):
    """A file as it is now: a changed file is read again."""

    path: Path
    modified: int
    size: int


class _Key(NamedTuple):
    """Everything the answer depends on. Selection asks once per GPU count for the same model."""

    name: str | None
    config: _Stamp | None
    beside: _Stamp | None
    """hf_quant_config.json in the folder of the config."""
    weights: _Stamp | None
    parameters: int | None
    active: int | None
    precision: str | None
    architecture: Architecture | None


def _stamp(path: Path | None) -> _Stamp | None:
    if path is None:
        return None
    try:
        found = path.stat()
    except OSError:
        return _Stamp(path, 0, 0)  # reading it says what is wrong
    return _Stamp(path, found.st_mtime_ns, found.st_size)


@lru_cache(maxsize=256)
def _resolved(key: _Key) -> Known | None:
    if key.name is not None:
        known = _by_name(key.name, key.precision)
    elif key.config is not None:
        known = _by_config(key.config.path)
    elif key.weights is not None:
        known = _by_index(key.weights.path, key)
    elif key.parameters is not None:
        known = _by_count(float(key.parameters), key)
    else:
        known = _by_architecture()
    if known is None:
        return None
    if key.architecture:
        known = _corrected(known, key.architecture, key)
    if key.precision is not None:
        known = replace(known, precision=key.precision, said=True)
    return replace(known, active=key.active or known.active)


def _by_name(name: str, declared: str | None) -> Known | None:
    asked = names.understood(name)
    entry = table.find(name) or table.find(asked.text)
    if entry is None:
        return None
    warnings: list[str] = []
    native = {"int4": "int4-gptq"}.get(entry.native_precision, entry.native_precision)
    if asked.unknown_format and declared is None:
        warnings.append(
            f"`{name}` names the format {asked.unknown_format}, which is not sized; {native} stands"
            " in: set `model.precision` (q4_0 is near the 4-bit GGUF formats)"
        )
    if not entry.verified:
        warnings.append(
            f"the table's figures for {entry.name} are not confirmed by a second source"
        )
    return Known(
        entry.shape,
        asked.precision or native,
        f"{entry.name} in the model table"
        + (" (its count as generally given)" if entry.recalled else ""),
        GOOD if entry.verified else FAIR,
        said=asked.precision is not None,
        widen=0.0 if entry.verified else UNVERIFIED_MARGIN,
        warnings=tuple(warnings),
    )


def _by_config(path: Path) -> Known:
    found = configs.read_config(path)
    return Known(
        found.shape,
        found.precision or "bf16",
        f"`{path}`, the model's own configuration",
        FAIR if found.notes else GOOD,
        said=found.precision is not None,
        widen=UNVERIFIED_MARGIN if found.notes else 0.0,
        warnings=found.notes,
    )


def _by_index(path: Path, key: _Key) -> Known:
    """Bytes are exact; the shape is assumed from the count that they hold, unless GGUF tells it."""
    if path.suffix == ".gguf":
        return _by_gguf(path, key)
    single = path.suffix == ".safetensors"
    found = files.read_safetensors(path) if single else files.read_index(path)
    stored = key.precision or "bf16"
    parameters = found.parameters or found.total_bytes / FORMATS[stored].bytes
    shape = typical(parameters, key.active)
    if found.layers:
        shape = replace(
            shape, layers=found.layers, attention_layers=found.layers, cache_layers=found.layers,
            dense_layers=found.layers,
        )  # fmt: skip
    return Known(
        shape,
        stored,
        f"`{path}`, the weights' own {'header' if single else 'index'}",
        FAIR,
        said=key.precision is not None,
        stored_bytes=found.total_bytes,
        count_only=key.architecture is None,
        widen=UNVERIFIED_MARGIN,
        warnings=(
            "an index says how large the weights are, not the model's shape: KV cache and"
            f" activations are those of a typical decoder of {units.parameters(parameters)}; give"
            " `model.config` or `model.architecture` for the real ones",
        ),
    )


def _by_gguf(path: Path, key: _Key) -> Known:
    """A GGUF header has both: the tensors' bytes and the shape."""
    found = gguf.read_gguf(path)
    return Known(
        found.shape,
        key.precision or ("q4_0" if found.quantised else "fp16"),
        f"`{path}` ({found.name}), the file's own header",
        said=found.quantised,
        stored_bytes=found.total_bytes,
    )


def _by_count(parameters: float, key: _Key) -> Known:
    if key.architecture and _complete(key.architecture):
        return Known(
            typical(parameters, key.active),
            "bf16",
            f"the declared architecture and {units.parameters(parameters)} parameters",
            said=False,
        )
    shape = typical(parameters, key.active)
    return Known(
        shape,
        "bf16",
        f"a parameter count alone ({units.parameters(parameters)}): rule of thumb, with the shape"
        f" of a typical decoder ({shape.layers} layers × {shape.hidden:,})",
        WEAK,
        said=False,
        count_only=key.architecture is None,
        widen=COUNT_ONLY_MARGIN,
        warnings=(
            "only a parameter count is known, so a rule of thumb stands in for the model's shape:"
            " give `model.name`, `model.config` or `model.architecture`",
        ),
    )


def _by_architecture() -> Known:
    return Known(typical(1e9), "bf16", "the declared architecture", said=False)


_NEEDED = ("layers", "hidden_size", "attention_heads", "ffn_size", "vocabulary_size")


def _complete(declared: Architecture) -> bool:
    """Whether a declared architecture leaves nothing to assume."""
    return all(getattr(declared, field) is not None for field in _NEEDED)


def _corrected(known: Known, declared: Architecture, key: _Key) -> Known:
    """The shape with the declared figures in place; the parameter count follows them.

    A declared count stays. A table's count moves by what the change of shape adds or takes, so
    that what the shape does not explain (norms, biases) is kept.
    """
    old = known.shape
    header = key.weights is not None and key.weights.path.suffix == ".gguf"
    assumed = key.name is None and key.config is None and not header
    shape = _overridden(old, declared, assumed=assumed)
    if key.parameters is not None or key.weights is not None:  # the count is what they say
        if not header:
            shape = replace(shape, tied=_ties(shape))
    elif assumed:
        shape = replace(shape, tied=False)
        shape = replace(shape, parameters=counted(shape))
    else:
        shape = replace(shape, parameters=max(1.0, old.parameters + counted(shape) - counted(old)))
    missing = [f for f in _NEEDED if getattr(declared, f) is None]
    warnings = known.warnings
    if missing and assumed:
        warnings += (
            f"`model.architecture` leaves out {', '.join(missing)}: typical figures stand in",
        )
    return replace(known, shape=shape, warnings=warnings)


def _overridden(old: Shape, declared: Architecture, *, assumed: bool) -> Shape:
    layers = declared.layers or old.layers
    hidden = declared.hidden_size or old.hidden
    heads = declared.attention_heads or (max(1, hidden // 128) if assumed else old.heads)
    head_size = declared.head_size or (max(1, hidden // heads) if assumed else old.head_size)
    gated = old.gated if declared.gated_ffn is None else declared.gated_ffn
    ffn = declared.ffn_size or (round((8 / 3 if gated else 4) * hidden) if assumed else old.ffn)
    kv_heads = declared.kv_heads or (heads if declared.attention_heads or assumed else old.kv_heads)
    scaled = layers / old.layers
    return replace(
        old,
        layers=layers,
        hidden=hidden,
        heads=heads,
        kv_heads=min(kv_heads, heads),
        head_size=head_size,
        ffn=ffn,
        expert_ffn=declared.ffn_size or old.expert_ffn,
        vocabulary=declared.vocabulary_size or old.vocabulary,
        gated=gated,
        mla=None if declared.kv_heads else old.mla,
        attention_layers=round(old.attention_layers * scaled),
        cache_layers=round(old.cache_layers * scaled),
        local_layers=int(old.local_layers * scaled),
        linear_layers=round(old.linear_layers * scaled),
        dense_layers=round(old.dense_layers * scaled),
        moe_layers=round(old.moe_layers * scaled),
        state_values=old.state_values * scaled,
    )


def _ties(shape: Shape) -> bool:
    """Whether one embedding matrix, not two, explains the declared count better."""
    blocks = sum(matrix.parameters for _, matrix in matrices(shape))
    return shape.parameters - blocks < 1.5 * shape.vocabulary * shape.hidden
