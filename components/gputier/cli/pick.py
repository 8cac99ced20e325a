"""`gputier pick`: the plan's own search, from flags alone."""

from __future__ import annotations

import sys
from typing import Any

import click

from gputier.catalog import CLOUDS
from gputier.cli import console
from gputier.cli.command import Command
from gputier.cli.console import Paint
from gputier.cli.inputs import json_text, load_catalog
from gputier.cli.pick_flags import Flag, flags, in_flags, workload_of
from gputier.cli.plan_explain import explain_screen
from gputier.cli.plan_text import Screen, pick_screen
from gputier.cli.plan_why_not import why_not_document, why_not_screen
from gputier.errors import ExitCode, InvalidInput, Problem, spelling_hint
from gputier.plan import StackPlan, plan_document, plan_workload
from gputier.workload import Workload

NAME = "pick"
FLAGS: tuple[Flag, ...] = flags()
_CATALOG = "Your own overlay of the catalogue.  [env: GPUTIER_CATALOG]"


def _own_options() -> list[click.Parameter]:
    """Flags that are no field of a workload."""
    return [
        click.Option(["--spot"], is_flag=True, help="Short for --capacity spot."),
        click.Option(
            ["--environment"],
            default="dev",
            metavar="NAME",
            help="dev unless said; prod refuses consumer cards.",
        ),
        click.Option(["--explain"], is_flag=True, help="Print the whole ledger."),
        click.Option(["--why-not"], metavar="TYPE", help="Say why this type was not chosen."),
        click.Option(["--json", "as_json"], is_flag=True, help="Print the plan as JSON."),
        click.Option(
            ["--catalog", "catalog_directory"],
            metavar="DIR",
            envvar="GPUTIER_CATALOG",
            help=_CATALOG,
        ),
    ]


def _pick(
    spot: bool,
    environment: str,
    explain: bool,
    why_not: str | None,
    as_json: bool,
    catalog_directory: str | None,
    **values: Any,
) -> int:
    if spot:
        values = _with_spot(values)
    catalog = load_catalog(catalog_directory)
    _check_regions(values.get("region", ()))
    declared = workload_of(values, FLAGS)
    # `--region aws:us-east-1` alone means there, and not also all of another cloud.
    declared.setdefault("clouds", list(declared.get("regions", ())) or None)
    try:
        workload = Workload(**declared)
        found = plan_workload(NAME, workload, catalog, environment)
    except InvalidInput as error:
        own = [_without_name(problem) for problem in error.problems]
        raise InvalidInput([in_flags(problem, FLAGS) for problem in own]) from None
    plan = StackPlan(NAME, "", environment, catalog.id, catalog.as_of, (found,), ())
    screen = Screen(console.width(), Paint(sys.stdout), "")
    if why_not is not None:
        if as_json:
            console.out(json_text(why_not_document(plan, catalog, why_not)))
        else:
            console.out("\n".join(why_not_screen(plan, catalog, why_not, screen)))
    elif as_json:
        console.out(json_text(plan_document(plan)))
    else:
        console.out("\n".join((explain_screen if explain else pick_screen)(plan, screen)))
    return _told(plan)


def _told(plan: StackPlan) -> int:
    if not plan.unplaced:
        return ExitCode.OK
    count = len(plan.workloads[0].verdicts)
    console.err(f"{Paint(sys.stderr).red('error:')} no machine fits (0 of {count})")
    return ExitCode.CANNOT_PLACE


def _with_spot(values: dict[str, Any]) -> dict[str, Any]:
    if values.get("capacity"):
        hint = "repeat --capacity: the order is the order tried"
        raise InvalidInput(
            Problem("--spot", "is short for --capacity spot; give one of them", hint)
        )
    return {**values, "capacity": ("spot",)}


def _check_regions(written: tuple[str, ...]) -> None:
    problems: list[Problem] = []
    for one in written:
        cloud, colon, _region = one.partition(":")
        if not colon or cloud not in CLOUDS:
            hint = spelling_hint(cloud, CLOUDS) if colon else f"such as aws:{one}"
            message = f"needs a cloud before the region, not `{one}`"
            problems.append(Problem("--region", message, hint))
    if problems:
        raise InvalidInput(problems)


def _without_name(problem: Problem) -> Problem:
    """A path below the workload, whether or not the plan put its name before it."""
    path = problem.path.removeprefix(f"{NAME}.")
    return Problem("" if path == NAME else path, problem.message, problem.hint)


pick = Command(
    NAME,
    callback=_pick,
    params=[*(flag.option() for flag in FLAGS), *_own_options()],
    help="Choose a machine from flags alone, without a file.\n\n"
    "Each field of a workload is a flag; sizing, rules, prices and output are those of"
    " `gputier plan`. Regions alone name the clouds too. Exits with 3 when nothing fits.",
    short_help="Choose a machine from flags alone, without a file.",
    examples=(
        ("gputier pick --gpu-memory 24GB --region aws:us-east-1 --spot", "the cheapest 24 GB card"),
        ("gputier pick --model llama-3.1-8b --precision fp8 --tier entry", "what a model needs"),
        ("gputier pick --gpu H100 --gpu-count 8 --nodes 4 --fabric any", "a training cluster"),
        ("gputier pick --gpu-memory 48GB --graphics vulkan --why-not g6e.xlarge", "one machine"),
    ),
)
