"""The table of open models, data/models.csv: names to shapes. Read only when a name is given."""

from __future__ import annotations

import csv
from functools import cache
from pathlib import Path
from typing import NamedTuple

from gputier import errors
from gputier.sizing import mixers, names
from gputier.sizing.shape import Mla, Shape

DATA = Path(__file__).parent / "data"

OTHER_INPUTS = (
    "give `model.config` (the path of its config.json), `model.weights_index` (its"
    " model.safetensors.index.json), or `model.parameters` such as 7B"
)

_MAY_DIFFER = (
    "name",
    "aliases",
    "family",
    "source",
    "verified",
    "published_parameters_source",
    "notes",
)


class Entry(NamedTuple):
    """One model of the table. `verified` and `source` are the row's own; `recalled` is whether its
    parameter count is the generally given one, which the recount found consistent."""

    name: str
    shape: Shape
    kind: str
    native_precision: str
    verified: bool
    source: str
    notes: str
    recalled: bool = False


class Table(NamedTuple):
    """The rows as text, with their names indexed. Only the row asked for is turned into a shape."""

    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    by_name: names.NameIndex

    def row(self, number: int) -> dict[str, str]:
        """A row's cells by column."""
        return dict(zip(self.header, self.rows[number], strict=True))

    def all_names(self) -> list[str]:
        """Every name and alias, full names without their organisation too."""
        found: list[str] = []
        for row in self.rows:
            found += [row[0], row[0].rsplit("/", 1)[-1], *row[1].split("|")]
        return found


@cache
def load() -> Table:
    """The table, read once: about 5 ms for 405 models."""
    with (DATA / "models.csv").open(encoding="utf-8", newline="") as file:
        header, *rows = (tuple(row) for row in csv.reader(file))
    return Table(header, tuple(rows), names.NameIndex([(r[0], *r[1].split("|")) for r in rows]))


def find(name: str) -> Entry | None:
    """The model that a name means; None when the table has none.

    Raises InvalidInput when it may mean several of different size, naming them.
    """
    table = load()
    found = table.by_name.find(name)
    if not found:
        return None
    rows = [table.row(number) for number in found]
    if len({_substance(row) for row in rows}) > 1:
        raise errors.InvalidInput(_ambiguous(name, [row["name"] for row in rows]))
    return entry(rows[0])


def _substance(row: dict[str, str]) -> tuple[str, ...]:
    """What two rows must share to need the same memory: everything but names and provenance."""
    return tuple(value for key, value in row.items() if key not in _MAY_DIFFER)


def _ambiguous(name: str, choices: list[str]) -> errors.Problem:
    shown = ", ".join(f"`{choice}`" for choice in choices[:6])
    more = f" and {len(choices) - 6} more" if len(choices) > 6 else ""
    return errors.Problem(
        "model.name",
        f"`{name}` may mean {len(choices)} models of different size",
        f"name one of {shown}{more}",
    )


def entry(row: dict[str, str]) -> Entry:
    """A row as a typed record."""
    return Entry(
        name=row["name"],
        shape=_shape(row),
        kind=row["kind"],
        native_precision=row["native_precision"],
        verified=row["verified"] == "yes",
        source=row["source"],
        notes=row["notes"],
        recalled="not re-read here" in row["published_parameters_source"],
    )


def _number(row: dict[str, str], column: str) -> int:
    """The cell's leading number (`128x128 per head` is 128); 0 where it is empty."""
    text = row[column].split("x", 1)[0]
    return int(float(text)) if text else 0


_ENCODERS = {"bert": "text", "whisper": "whisper", "wav2vec2": "wav2vec2"}


def _shape(row: dict[str, str]) -> Shape:
    def n(column: str) -> int:
        return _number(row, column)

    cached = n("attention_layers") - n("kv_shared_layers")
    local, window = _sliding(row, cached)
    experts, ffn_layers, dense = n("experts"), n("ffn_layers"), n("dense_layers")
    mixer, whisper = _mixer(row), row["architecture"] == "whisper"
    return Shape(
        parameters=n("parameters"),
        layers=n("layers"),
        hidden=n("hidden_size"),
        heads=n("attention_heads"),
        kv_heads=n("kv_heads"),
        head_size=n("head_size"),
        ffn=n("ffn_size") or round(n("ffn_total_width") / max(1, ffn_layers)) or n("moe_ffn_size"),
        vocabulary=0 if row["architecture"] == "wav2vec2" else n("vocabulary_size"),
        gated=row["gated_ffn"] == "yes",
        tied=row["tied_embeddings"] == "yes" or row["has_lm_head"] == "no" or whisper,
        attention_layers=n("attention_layers"),
        cache_layers=cached,
        local_layers=local,
        window=window,
        mla=_mla(row),
        gated_attention=row["attention_output_gate"] == "yes",
        linear_layers=n("linear_layers"),
        mixer=mixer.parameters,
        state_values=mixer.state * n("linear_layers"),
        dense_layers=dense if experts else ffn_layers,
        moe_layers=ffn_layers - dense if experts else 0,
        experts=experts,
        experts_per_token=n("experts_per_token"),
        expert_ffn=n("moe_ffn_size"),
        shared_ffn=n("shared_ffn_size"),
        extra=n("vision_parameters") + n("other_parameters"),
        embedding_width=n("embedding_width"),
        encoder=_ENCODERS.get(row["architecture"], ""),
        decoder_layers=n("decoder_layers"),
        max_context=n("max_context") or None,
    )


def _sliding(row: dict[str, str], layers: int) -> tuple[int, int]:
    """(local layers, window) from `5:1 local:global` or `all layers local`."""
    pattern = row["sliding_pattern"].split(" ", 1)[0]
    if not pattern:
        # A window without a pattern (solar-pro): which layers use it is not known, so none is
        # counted on to save memory.
        return 0, 0
    if pattern == "all":
        return layers, _number(row, "sliding_window")
    local, full = (int(part) for part in pattern.split(":"))
    # A period ends with its global layers: 62 layers at 5:1 have ten, and two local ones more.
    return layers - layers * full // (local + full), _number(row, "sliding_window")


def _mla(row: dict[str, str]) -> Mla | None:
    if not row["kv_lora_rank"]:
        return None
    columns = ("kv_lora_rank", "rope_head_size", "nope_head_size", "v_head_size", "q_lora_rank")
    return Mla(*(_number(row, column) for column in columns))


def _mixer(row: dict[str, str]) -> mixers.Mixer:
    """The linear-attention or state-space layer of a row; nothing for a plain transformer."""

    def n(column: str) -> int:
        return _number(row, column)

    hidden, inner, state, kernel = (
        n(c) for c in ("hidden_size", "ssm_inner_size", "ssm_state_size", "conv_kernel")
    )
    match row["linear_kind"]:
        case "":
            return mixers.Mixer(0.0, 0.0)
        case "mamba1":
            return mixers.mamba1(hidden, inner, state, n("ssm_dt_rank"), kernel)
        case "mamba2":
            return mixers.mamba2(hidden, inner, state, (n("ssm_heads"), n("ssm_groups")), kernel)
        case kind:
            heads = mixers.Heads(
                n("linear_key_heads"),
                n("linear_value_heads"),
                n("linear_key_size"),
                n("linear_value_size"),
            )
    if kind == "gated_delta":
        return mixers.gated_delta(hidden, heads, kernel)
    if kind == "kda":
        return mixers.kimi_delta(hidden, heads, kernel)
    return mixers.lightning(hidden, heads)
