"""What `gputier tiers` prints."""

from __future__ import annotations

from collections.abc import Iterator

from gputier.cli import console
from gputier.cli.floors import floor_text
from gputier.cli.inputs import json_text
from gputier.cli.text import Column, flow, table, table_widths
from gputier.errors import ExitCode
from gputier.plan import Floor, Tier
from gputier.plan import purposes as all_purposes
from gputier.plan import tiers as all_tiers

SCHEMA = "gputier/tiers/1"


def run(as_json: bool) -> int:
    """Print them; the exit code."""
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


_COLUMNS = (
    Column(),
    Column(wraps=True),
    Column(wraps=True),
    Column(right=True),
)
_HEADINGS = {"require": "needs", "prefer": "prefers"}


def screen(width: int) -> list[str]:
    """Every tier and purpose: what it is for, its floors and leanings with their reasons."""
    groups = [*all_tiers().values(), *all_purposes().values()]
    lines = flow(
        (
            f"{len(all_tiers())} tiers and {len(all_purposes())} purposes",
            "what is needed rejects a machine, what is preferred is only reported",
            "the number is the requirement's, in docs/requirements.md",
        ),
        width,
        0,
    )
    rows = [row for tier in groups for row in _rows(tier)]
    # One table for all of them, so that their columns stand below each other; a row that begins
    # a tier carries its number and is replaced by the tier's heading.
    sizes = table_widths(_COLUMNS, rows, width - 2)
    for tier in groups:
        lines += ["", *_head(tier, width)]
        lines += table(_COLUMNS, list(_rows(tier)), width, "  ", sizes)
    return lines


def _head(tier: Tier, width: int) -> list[str]:
    number = f"({tier.requirement})" if tier.requirement else ""
    return flow((tier.name, tier.kind, f"for {tier.purpose_text} {number}".rstrip()), width, 0)


def _rows(tier: Tier) -> Iterator[list[str]]:
    for kind, floors in (("require", tier.require), ("prefer", tier.prefer)):
        for place, floor in enumerate(floors):
            label = "" if place else _HEADINGS[kind]
            yield [label, floor_text(floor), floor.why, floor.requirement]
    if tier.kept_free:
        share = f"{100 * tier.kept_free:g} % of the card"
        yield ["keeps free", share, "room against out-of-memory", tier.kept_free_requirement]
    if tier.depth:
        yield ["validates", tier.depth, "how deep a node's own checks go", tier.depth_requirement]
    if not (tier.require or tier.prefer or tier.depth):
        yield ["", "adds no floor", "", ""]
