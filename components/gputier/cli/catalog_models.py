"""`gputier catalog models`: what `model.name` may name, listed and searched."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from gputier import units
from gputier.cli import console
from gputier.cli.command import Command
from gputier.cli.inputs import json_text
from gputier.cli.options import json_option
from gputier.cli.text import Column, flow, plural, table
from gputier.errors import ExitCode

if TYPE_CHECKING:
    from gputier.sizing.listing import Listed

SCHEMA = "gputier/catalog-models/1"

_COLUMNS = (
    Column("model", wraps=True),
    Column("kind", drop=2),
    Column("parameters", right=True),
    Column("active", right=True, drop=5),
    Column("layers", right=True, drop=7),
    Column("KV a token", right=True, drop=4),
    Column("context", right=True, drop=3),
    Column("precision", drop=6),
    Column("figures", right=True, drop=8),
    Column("confirmed", drop=1),
)


@click.command(
    cls=Command,
    examples=(
        ("gputier catalog models llama 70b", "every model whose name has both words"),
        ("gputier catalog models video", "a kind: image, video, speech, 3d, hpc, rendering, vdi"),
        ("gputier catalog models deepseek --json", "with sources, for programs"),
    ),
)
@click.argument("words", nargs=-1)
@json_option("the list")
def models(words: tuple[str, ...], as_json: bool) -> int:
    """What `model.name` may name: language models, image pipelines, other published figures.

    WORDS narrow the list; each must be in the name, an alias, the family or the kind. A model that
    is not listed is sized from its config.json, its weights' index or its parameter count.
    """
    from gputier.sizing import listing

    found = listing.search(" ".join(words))
    if as_json:
        documents = [_document(one) for one in found]
        console.out(json_text({"schema": SCHEMA, "models": documents}))
    else:
        console.out("\n".join(_screen(found, console.width())))
    return ExitCode.OK


def _document(one: Listed) -> dict[str, object]:
    return {**one._asdict(), "aliases": list(one.aliases)}


def _screen(found: Sequence[Listed], width: int) -> list[str]:
    if not found:
        return [
            *flow(("no model is named so",), width, 0),
            *flow(
                ("give `model.config`, `model.weights_index` or `model.parameters` instead",),
                width,
                0,
            ),
        ]
    head = (plural(len(found), "model"), "KV cache at 16 bit, window layers left out")
    return [*flow(head, width, 0), "", *table(_COLUMNS, [_cells(one) for one in found], width)]


def _cells(one: Listed) -> list[str]:
    context = one.max_context
    return [
        one.name,
        one.kind,
        units.parameters(one.parameters) if one.parameters else "–",
        units.parameters(one.active_parameters) if one.active_parameters else "",
        f"{one.layers}" if one.layers else "",
        f"{one.kv_bytes_per_token / 1024:,.0f} KiB" if one.kv_bytes_per_token else "",
        f"{context:,}" if context else "",
        one.precision or "",
        f"{one.figures}" if one.figures else "",
        ("count recalled" if one.recalled else "yes") if one.verified else "no",
    ]
