"""Everything that `model.name` may name, as one list: language models, pipelines, other figures."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from gputier.sizing import figures, names, published, table


class Listed(NamedTuple):
    """One name. Counts are None where there is none; `figures` are published memory figures.

    `verified` is whether a second source confirms it, `recalled` whether its count is the generally
    given one and was only found consistent, `precision` what the weights are stored in.
    """

    name: str
    aliases: tuple[str, ...]
    family: str
    kind: str
    parameters: float | None
    active_parameters: float | None
    layers: int | None
    kv_bytes_per_token: float | None
    max_context: int | None
    precision: str | None
    figures: int
    verified: bool
    recalled: bool
    source: str


def listed() -> tuple[Listed, ...]:
    """All of them: the table in its own order, then pipelines, then other workloads."""
    return (*_table(), *_pipelines(), *_others())


def search(words: str) -> tuple[Listed, ...]:
    """Those whose name, alias, family or kind has every word, separators and case apart."""
    wanted = [names.compact(word) for word in words.split()]
    return tuple(one for one in listed() if all(word in _text(one) for word in wanted))


def _text(one: Listed) -> str:
    pieces = (one.name.split("/", 1)[0], one.name, *one.aliases, one.family, one.kind)
    return " ".join(names.compact(piece) for piece in pieces)


def _table() -> Iterator[Listed]:
    held = table.load()
    for number in range(len(held.rows)):
        row = held.row(number)
        entry = table.entry(row)
        shape = entry.shape
        per_token = 2.0 * shape.cached_values * (shape.cache_layers - shape.local_layers)
        yield Listed(
            name=entry.name,
            aliases=tuple(alias for alias in row["aliases"].split("|") if alias),
            family=row["family"],
            kind=entry.kind,
            parameters=shape.parameters,
            active_parameters=float(row["active_parameters"]) if row["active_parameters"] else None,
            layers=shape.layers,
            kv_bytes_per_token=None if shape.encoder else per_token,
            max_context=shape.max_context,
            precision=entry.native_precision,
            figures=0,
            verified=entry.verified,
            recalled=entry.recalled,
            source=entry.source,
        )


def _pipelines() -> Iterator[Listed]:
    held = figures.load()
    for pipeline, spellings in zip(held.pipelines, held.names, strict=True):
        own = held.of(pipeline)
        total = pipeline.denoiser + pipeline.text_encoders + pipeline.vae
        sources = dict.fromkeys(figure.source for figure in own)
        yield Listed(
            name=pipeline.name,
            aliases=tuple(spellings[1:]),
            family="",
            kind=pipeline.kind,
            parameters=total or None,
            active_parameters=None,
            layers=None,
            kv_bytes_per_token=None,
            max_context=None,
            precision=None,
            figures=len(own),
            verified=pipeline.verified,
            recalled=False,
            source=" | ".join(sources) or "components only, no figure published",
        )


def _others() -> Iterator[Listed]:
    rows = published.load().rows
    for workload in published.all_names():
        own = [row for row in rows if row.name == workload]
        yield Listed(
            name=workload,
            aliases=(),
            family="",
            kind=own[0].category,
            parameters=None,
            active_parameters=None,
            layers=None,
            kv_bytes_per_token=None,
            max_context=None,
            precision=None,
            figures=len(own),
            verified=all(row.verified for row in own),
            recalled=False,
            source=" | ".join(dict.fromkeys(row.source for row in own)),
        )
