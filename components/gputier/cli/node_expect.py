"""`gputier node expect`: the expectation of a planned machine."""

from __future__ import annotations

import click

from gputier.cli.command import Command
from gputier.cli.options import catalog_option


@click.command(
    cls=Command,
    examples=(
        ("gputier node expect prod foundation", "of one workload of a stack"),
        ("gputier node expect workloads.yaml chat", "of a file"),
    ),
)
@click.argument("target", metavar="STACK|FILE")
@click.argument("workload", metavar="WORKLOAD")
@catalog_option
def expect(target: str, workload: str, catalog_directory: str | None) -> int:
    """Print what a planned machine must turn out to be.

    As the JSON that `gputier-node check --expect` reads; docs/node.md lists its keys.
    """
    from gputier.cli.node_run import expected

    return expected(target, workload, catalog_directory)
