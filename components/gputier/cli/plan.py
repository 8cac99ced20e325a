"""`gputier plan`: the machine of each workload, priced and explained."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import click

from gputier import errors
from gputier.catalog import Catalog
from gputier.cli import console
from gputier.cli.command import Command
from gputier.cli.console import Paint
from gputier.cli.inputs import json_text, load_catalog
from gputier.cli.options import (
    catalog_option,
    complete_types,
    json_option,
    stack_argument,
)
from gputier.cli.plan_explain import explain_screen
from gputier.cli.plan_text import Screen, plan_screen
from gputier.cli.plan_why_not import why_not_document, why_not_screen
from gputier.errors import ExitCode, InvalidInput, Problem
from gputier.plan import StackPlan, plan_declaration, plan_document, unplaced_problems
from gputier.workload import Declaration, read_config_json, resolve


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
@stack_argument()
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
    declarations = _declarations(target, config)
    catalog = load_catalog(catalog_directory)
    if why_not is not None:
        return _why_not(declarations, catalog, why_not, as_json)
    screens: list[str] = []
    plans = [plan_declaration(declaration, catalog) for declaration in declarations]
    for one, declaration in zip(plans, declarations, strict=True):
        command = " ".join(["gputier", "plan", target or declaration.name])
        screen = Screen(console.width(), Paint(sys.stdout), command)
        if as_json:
            screens.append(json_text(plan_document(one)))
        elif explain:
            screens.append("\n".join(explain_screen(one, screen)) + "\n")
        else:
            screens.append("\n".join(plan_screen(one, screen)) + "\n")
    console.out(("" if as_json else "\n").join(screens))
    return tell(plans, declarations)


def tell(plans: Sequence[StackPlan], declarations: Sequence[Declaration]) -> int:
    """Warnings and what fits nowhere, to stderr; the exit code."""
    problems: list[Problem] = []
    for one, declaration in zip(plans, declarations, strict=True):
        for warning in one.warnings:
            console.note(warning)
        # What to relax is in the plan already, beside the machines it would admit.
        problems += [replace(p, hint="") for p in unplaced_problems(one, declaration)]
    if not problems:
        return ExitCode.OK
    console.err(errors.render(problems, color=Paint(sys.stderr).on))
    return ExitCode.CANNOT_PLACE


def _declarations(target: str | None, config: str | None) -> tuple[Declaration, ...]:
    if config is None:
        return resolve(target, Path.cwd())
    if target is not None:
        raise InvalidInput(
            Problem("--config", f"`{target}` and --config are two inputs", "give one of them")
        )
    if config == "-":
        return (read_config_json(sys.stdin.buffer.read()),)
    return (read_config_json(Path(config).read_bytes(), config),)


def _why_not(
    declarations: Sequence[Declaration], catalog: Catalog, name: str, as_json: bool
) -> int:
    plans = [plan_declaration(declaration, catalog) for declaration in declarations]
    if as_json:
        for one in plans:
            console.out(json_text(why_not_document(one, catalog, name)))
    else:
        screen = Screen(console.width(), Paint(sys.stdout))
        screens = ["\n".join(why_not_screen(one, catalog, name, screen)) for one in plans]
        console.out("\n\n".join(screens))
    return ExitCode.CANNOT_PLACE if any(one.unplaced for one in plans) else ExitCode.OK
