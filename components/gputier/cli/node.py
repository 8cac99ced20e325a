"""`gputier node`: the validator that a machine runs on itself."""

from __future__ import annotations

import click

from gputier.cli.command import Group, Lazy

COMMANDS = {
    "build": Lazy("gputier.cli.node_build:build", "Write the node validator as one file."),
    "expect": Lazy(
        "gputier.cli.node_expect:expect", "Print what a planned machine must turn out to be."
    ),
}


@click.group(
    cls=Group,
    lazy=COMMANDS,
    examples=(
        ("gputier node build gputier-node.pyz", "one file that a machine runs"),
        ("gputier node expect prod foundation > expect.json", "what it must turn out to be"),
        ("python3 gputier-node.pyz check --expect expect.json", "on the machine"),
    ),
)
def node() -> None:
    """Build the validator that a machine runs on itself, and what it checks the machine against."""
