"""`gputier size`: GPU memory of each workload, part by part. It selects nothing."""

from __future__ import annotations

import click

from gputier.cli.command import Command
from gputier.cli.options import catalog_option, json_option, stack_argument


@click.command(
    cls=Command,
    examples=(
        ("gputier size dev", "every workload of a stack"),
        ("gputier size tuner.yaml --json", "a plain file, for programs"),
    ),
)
@stack_argument
@json_option("the sizes")
@catalog_option
def size(target: str | None, as_json: bool, catalog_directory: str | None) -> int:
    """Say how much GPU memory each workload needs, part by part.

    Nothing is selected: the size is for `gpu.count` GPUs (1 when silent) on `nodes` machines (1).
    Each part has its figure in GiB per GPU and its formula.
    """
    from gputier.cli.size_run import run

    return run(target, as_json, catalog_directory)
