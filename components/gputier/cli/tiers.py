"""`gputier tiers`: the floors a workload starts from, and why."""

from __future__ import annotations

import click

from gputier.cli.command import Command
from gputier.cli.options import json_option


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
    from gputier.cli.tiers_run import run

    return run(as_json)
