"""`gputier status`: what runs of a stack, what it costs, and why something does not appear."""

from __future__ import annotations

from dataclasses import dataclass

import click

from gputier.cli.command import Command
from gputier.cli.options import json_option, stack_argument

#: Seconds between two looks, and the least: AWS throttles who asks without a pause.
EVERY, LEAST = 30.0, 5.0


@dataclass(frozen=True, slots=True)
class StatusArguments:
    """What was typed. `watch` is None, or seconds."""

    target: str | None
    watch: float | None
    as_json: bool


class Seconds(click.ParamType[float]):
    """`30` or `30s`."""

    name = "SECONDS"

    def convert(
        self, value: str | float, param: click.Parameter | None, ctx: click.Context | None
    ) -> float:
        if isinstance(value, (int, float)):
            return float(value)
        try:
            number = float(value.removesuffix("s"))
        except ValueError:
            self.fail(f"must be seconds such as 30, not `{value}`", param, ctx)
        if not LEAST <= number <= 86400:
            self.fail(f"must be from {LEAST:g} to 86400 seconds, not `{value}`", param, ctx)
        return number


@click.command(
    cls=Command,
    examples=(
        ("gputier status prod", "what runs, what it costs, why nothing appears"),
        ("gputier status prod --watch", "again every 30 seconds, until Ctrl-C"),
        ("gputier status prod --json | jq '.workloads[].troubles'", "for programs"),
    ),
)
@stack_argument
@click.option(
    "--watch",
    type=Seconds(),
    is_flag=False,
    flag_value=EVERY,
    default=None,
    help=f"Ask again every so many seconds ({EVERY:g}), until Ctrl-C. On a terminal the screen is"
    " cleared; elsewhere one status follows the other.",
)
@json_option("the status")
def status(target: str | None, watch: float | None, as_json: bool) -> int:
    """Say what runs, what it costs, and why something does not appear.

    Asks the cloud with the stack's own profile, roles and project, and changes nothing. It reports:
    a fleet that is not well exits with 0. Where nothing at all could be asked it exits with 2.
    """
    from gputier.cli.status_run import run

    return run(StatusArguments(target, watch, as_json))
