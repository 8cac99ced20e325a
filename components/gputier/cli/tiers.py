"""`gputier tiers`: the floors a workload starts from, and why."""

from __future__ import annotations

from collections.abc import Iterable

import click

from gputier.cli import console
from gputier.cli.command import Command
from gputier.cli.console import Paint
from gputier.cli.floors import floor_text
from gputier.cli.inputs import json_text
from gputier.cli.options import json_option
from gputier.cli.text import Column, table
from gputier.errors import ExitCode
from gputier.plan import Floor, Tier
from gputier.plan import purposes as all_purposes
from gputier.plan import tiers as all_tiers

SCHEMA = "gputier/tiers/1"


@click.command(
    cls=Command,
    examples=(
        ("gputier tiers", "every tier and purpose"),
        ("gputier tiers --json | jq '.tiers[0].require'", "for programs"),
    ),
)
@json_option("tiers and purposes")
def tiers(as_json: bool) -> int:
    """Print the tiers and purposes: floors, and why.

    A tier is a set of floors that a workload starts from; a purpose adds its own. A workload's own
    words override both, and the plan says that they did.
    """
    if as_json:
        console.out(json_text(document()))
    else:
        console.out("\n".join(screen(console.width())))
    return ExitCode.OK


def document() -> dict[str, object]:
    """Schema `gputier/tiers/1`."""
    return {
        "schema": SCHEMA,
        "tiers": [_tier(tier) for tier in all_tiers().values()],
        "purposes": [_tier(tier) for tier in all_purposes().values()],
    }


def _tier(tier: Tier) -> dict[str, object]:
    return {
        "name": tier.name,
        "for": tier.purpose_text,
        "requirement": tier.requirement or None,
        "kept_free": tier.kept_free,
        "require": [_floor(floor) for floor in tier.require],
        "prefer": [_floor(floor) for floor in tier.prefer],
        "validation_depth": tier.depth or None,
    }


def _floor(floor: Floor) -> dict[str, object]:
    return {
        "rule": floor.rule,
        "words": floor_text(floor),
        "value": list(floor.value) if isinstance(floor.value, tuple) else floor.value,
        "per": floor.per or None,
        "at_least": floor.at_least,
        "at_most": floor.at_most,
        "with_several_nodes_only": floor.when_nodes,
        "why": floor.why,
        "requirement": floor.requirement or None,
    }


_COLUMNS = (Column(), Column(wraps=True), Column(wraps=True), Column(right=True, drop=1))


def screen(width: int) -> list[str]:
    """Every tier and purpose, with reasons and requirement numbers."""
    groups = [*all_tiers().values(), *all_purposes().values()]
    rows = {tier.name: list(_rows(tier)) for tier in groups}
    # One table for all, so that the columns of every tier stand below each other.
    laid = table(_COLUMNS, [row for found in rows.values() for row in found], width, "  ")
    lines = [
        "3 tiers and 7 purposes   floors reject a machine, leanings are only reported",
        "the number is that of the requirement (docs/requirements.md)",
    ]
    place = 0
    for tier in groups:
        lines += ["", *_head(tier)]
        count = _lines_of(laid, place, len(rows[tier.name]))
        lines += laid[place : place + count]
        place += count
    return lines
