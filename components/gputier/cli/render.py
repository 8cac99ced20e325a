"""`gputier render`: exactly what a node is given."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import click

from gputier.cli.command import Command, completes
from gputier.cli.options import catalog_option, complete_stacks, json_option

PARTS = ("stage0", "expect", "settings", "fetcher", "deadline")


@dataclass(frozen=True, slots=True)
class RenderArguments:
    """What was typed."""

    target: str
    workload: str
    part: str
    inline: bool
    as_json: bool
    catalog_directory: str | None


def _workloads(context: click.Context, _incomplete: str) -> list[str]:
    from gputier.workload import read_stack

    stack = context.params.get("target")
    return list(read_stack(stack, Path.cwd()).workloads) if stack else []


@click.command(
    cls=Command,
    examples=(
        ("gputier render prod foundation", "the user data, as the cloud is given it"),
        ("gputier render prod foundation --part deadline", "every limit, and what it must fit"),
        ("gputier render prod foundation --part settings", "what is done to the machine"),
    ),
)
@click.argument("target", metavar="STACK", shell_complete=complete_stacks)
@click.argument("workload", metavar="WORKLOAD", shell_complete=completes(_workloads))
@click.option(
    "--part",
    type=click.Choice(PARTS),
    default="stage0",
    show_default=True,
    help="stage0: the whole user data; expect and settings: two files in it; fetcher: the program"
    " in it, unpacked; deadline: the limits of all stages.",
)
@click.option(
    "--inline",
    is_flag=True,
    help="Carry the node bundle in the user data, where the cloud has room for it.",
)
@json_option("what was rendered, with sizes and limits,")
@catalog_option
def render(
    target: str,
    workload: str,
    part: str,
    inline: bool,
    as_json: bool,
    catalog_directory: str | None,
) -> int:
    """Print exactly what a node is given at boot.

    From the lock, so that it is what is deployed: a lock that is stale or missing exits with 4. Its
    size and the deadline of the boot go to stderr; user data that is larger than the cloud takes,
    and a boot that takes longer than the cloud waits, are refused.
    """
    from gputier.cli.render_run import run

    return run(RenderArguments(target, workload, part, inline, as_json, catalog_directory))
