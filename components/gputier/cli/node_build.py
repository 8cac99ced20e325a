"""`gputier node build`: the node validator as one file."""

from __future__ import annotations

import click

from gputier.cli.command import Command


@click.command(
    cls=Command, examples=(("gputier node build gputier-node.pyz", "prints its SHA-256"),)
)
@click.argument("out", metavar="OUT.pyz", type=click.Path(dir_okay=False))
def build(out: str) -> int:
    """Write the node validator as one file and print its SHA-256.

    The same gputier writes the same bytes, on any machine. It needs Python 3.8 or newer and nothing
    else.
    """
    from gputier.cli.node_run import built

    return built(out)
