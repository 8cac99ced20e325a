"""`gputier plan`: the machine of each workload, priced and explained."""

from __future__ import annotations

from typing import NamedTuple

import click

from gputier.cli.command import Command
from gputier.cli.options import (
    catalog_option,
    complete_types,
    json_option,
    stack_argument,
)


class PlanArguments(NamedTuple):
    """What was typed."""

    target: str | None
    config: str | None
    explain: bool
    why_not: str | None
    as_json: bool
    catalog_directory: str | None


@click.command(
    cls=Command,
    examples=(
        ("gputier plan", "every stack of the project"),
        ("gputier plan prod --explain", "with the reason for every machine that was rejected"),
        ("gputier plan workloads.yaml --json", "a plain file, for programs"),
        ("gputier plan dev --why-not p5.4xlarge", "one machine that was not chosen"),
        ("pulumi config --json | gputier plan --config -", "what Pulumi itself reads"),
    ),
)
@stack_argument
@click.option(
    "--config",
    metavar="FILE",
    help="Read what `pulumi config --json` prints, from a file or - (standard input).",
)
@click.option(
    "--explain", is_flag=True, help="Print the whole ledger, the floors and each formula."
)
@click.option(
    "--why-not",
    metavar="TYPE",
    shell_complete=complete_types,
    help="Say why this instance type was not chosen.",
)
@json_option("the plan")
@catalog_option
def plan(
    target: str | None,
    config: str | None,
    explain: bool,
    why_not: str | None,
    as_json: bool,
    catalog_directory: str | None,
) -> int:
    """Choose a machine for each workload, priced and explained.

    STACK is a stack of the Pulumi project here or above; what has a path separator or ends in
    .yaml, .yml or .json is a FILE, and - is standard input. None: every stack. Exits with 3 when
    a workload fits nowhere.
    """
    from gputier.cli.plan_run import run

    return run(PlanArguments(target, config, explain, why_not, as_json, catalog_directory))
