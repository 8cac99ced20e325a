"""`gputier lock`: write the lock of a stack, check it, or let it choose anew."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import click

from gputier.cli.command import Command, completes
from gputier.cli.options import catalog_option, complete_stacks, json_option


@dataclass(frozen=True, slots=True)
class LockArguments:
    """What was typed."""

    target: str
    workloads: tuple[str, ...]
    check: bool
    upgrade: bool
    watch: float | None
    as_json: bool
    catalog_directory: str | None
    images: bool = False


def _workloads(context: click.Context, _incomplete: str) -> list[str]:
    from gputier.workload import read_stack

    stack = context.params.get("target")
    return list(read_stack(stack, Path.cwd()).workloads) if stack else []


class Percent(click.ParamType[float]):
    """`10` or `10%`."""

    name = "PERCENT"

    def convert(
        self, value: str | float, param: click.Parameter | None, ctx: click.Context | None
    ) -> float:
        if isinstance(value, (int, float)):
            return float(value)
        try:
            number = float(value.removesuffix("%"))
        except ValueError:
            self.fail(f"must be a percentage such as 10, not `{value}`", param, ctx)
        if not 0 <= number < 100:
            self.fail(f"must be from 0 to below 100, not `{value}`", param, ctx)
        return number


@click.command(
    cls=Command,
    examples=(
        ("gputier lock prod", "write stacks/gputier.prod.lock"),
        ("gputier lock prod --check", "in CI: exits with 4 when the declaration changed"),
        ("gputier lock prod --upgrade chat", "choose anew for one workload"),
        ("gputier lock prod --images", "pin images, which asks the cloud"),
        ("gputier lock prod --watch 10", "exits with 4 when 10 % could be saved"),
    ),
)
@click.argument("target", metavar="STACK", shell_complete=complete_stacks)
@click.argument(
    "workloads", metavar="[WORKLOAD...]", nargs=-1, shell_complete=completes(_workloads)
)
@click.option("--check", is_flag=True, help="Write nothing; exit with 4 when stale or missing.")
@click.option(
    "--upgrade",
    is_flag=True,
    help="Choose anew where the declaration did not change: the named workloads, or all.",
)
@click.option(
    "--images",
    is_flag=True,
    help="Ask the cloud for the images of today and pin them: of what is not pinned, and of the"
    " workloads named.",
)
@click.option(
    "--watch",
    type=Percent(),
    help="Write nothing; exit with 4 when a best pick is cheaper by more than this.",
)
@json_option("what was found or written")
@catalog_option
def lock(
    target: str,
    workloads: tuple[str, ...],
    check: bool,
    upgrade: bool,
    images: bool,
    watch: float | None,
    as_json: bool,
    catalog_directory: str | None,
) -> int:
    """Write, check or upgrade the lock of a stack.

    The lock is gputier.STACK.lock beside the stack's file, and what is deployed is what it says. A
    workload whose declaration did not change keeps its machine, however the catalogue changes,
    until it is upgraded.
    """
    from gputier.cli.lock_run import run

    typed = LockArguments(
        target, workloads, check, upgrade, watch, as_json, catalog_directory, images
    )
    return run(typed)
