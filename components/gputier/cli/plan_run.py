"""What `gputier plan` does."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from gputier import errors
from gputier.catalog import Catalog
from gputier.cli import console
from gputier.cli.console import Paint
from gputier.cli.inputs import json_text, load_catalog
from gputier.cli.plan import PlanArguments
from gputier.cli.plan_text import Screen, plan_screen
from gputier.errors import ExitCode, InvalidInput, Problem
from gputier.plan import StackPlan, plan_declaration, plan_document, unplaced_problems
from gputier.plan.known import KnownNames
from gputier.workload import Declaration, read_config_json, resolve
from gputier.workload.known import asking
from gputier.workload.yaml12 import MAX_BYTES


def run(typed: PlanArguments) -> int:
    """Plan what was named, print it, say what is wrong; the exit code."""
    catalog = load_catalog(typed.catalog_directory)
    declarations = _declarations(typed.target, typed.config, catalog)
    if typed.why_not is not None:
        return _why_not(declarations, catalog, typed.why_not, typed.as_json)
    screens: list[str] = []
    plans = [plan_declaration(declaration, catalog) for declaration in declarations]
    for one, declaration in zip(plans, declarations, strict=True):
        command = " ".join(["gputier", "plan", typed.target or declaration.name])
        screen = Screen(console.width(), Paint(sys.stdout), command)
        if typed.as_json:
            screens.append(json_text(plan_document(one)))
        elif typed.explain:
            from gputier.cli.plan_explain import explain_screen

            screens.append("\n".join(explain_screen(one, screen)) + "\n")
        else:
            screens.append("\n".join(plan_screen(one, screen)) + "\n")
    console.out(("" if typed.as_json else "\n").join(screens))
    return tell(plans, declarations, typed.as_json)


def tell(
    plans: Sequence[StackPlan], declarations: Sequence[Declaration], as_json: bool = False
) -> int:
    """Warnings and what fits nowhere, to stderr; the exit code."""
    # What to relax is in the plan already, beside the machines it would admit.
    where = "`relaxations` in the plan" if as_json else "`to fit` in the plan"
    hint = f"{where} names the least that would have to go, per cloud"
    problems: list[Problem] = []
    for one, declaration in zip(plans, declarations, strict=True):
        for warning in one.warnings:
            console.note(warning)
        problems += [replace(p, hint=hint) for p in unplaced_problems(one, declaration)]
    if not problems:
        return ExitCode.OK
    console.err(errors.render(problems, color=Paint(sys.stderr).on))
    return ExitCode.CANNOT_PLACE


def _declarations(
    target: str | None, config: str | None, catalog: Catalog
) -> tuple[Declaration, ...]:
    with asking(KnownNames(catalog)):
        return _read(target, config)


def _read(target: str | None, config: str | None) -> tuple[Declaration, ...]:
    if config is None:
        return resolve(target, Path.cwd())
    if target is not None:
        raise InvalidInput(
            Problem("--config", f"`{target}` and --config are two inputs", "give one of them")
        )
    if config == "-":
        return (read_config_json(sys.stdin.buffer.read(MAX_BYTES + 1)),)
    return (read_config_json(Path(config).read_bytes(), config),)


def _why_not(
    declarations: Sequence[Declaration], catalog: Catalog, name: str, as_json: bool
) -> int:
    from gputier.cli.plan_why_not import why_not_document, why_not_screen

    plans = [plan_declaration(declaration, catalog) for declaration in declarations]
    if as_json:
        for one in plans:
            console.out(json_text(why_not_document(one, catalog, name)))
    else:
        screen = Screen(console.width(), Paint(sys.stdout))
        screens = ["\n".join(why_not_screen(one, catalog, name, screen)) for one in plans]
        console.out("\n\n".join(screens))
    return ExitCode.CANNOT_PLACE if any(one.unplaced for one in plans) else ExitCode.OK
