"""What `gputier node` does."""

from __future__ import annotations

from pathlib import Path

from gputier.boot import expectation_text
from gputier.cli import console
from gputier.cli.inputs import load_catalog
from gputier.errors import CannotPlace, ExitCode, InvalidInput, Problem, spelling_hint
from gputier.node.build import build
from gputier.plan import plan_declaration
from gputier.plan.known import KnownNames
from gputier.workload import resolve
from gputier.workload.known import asking


def built(out: str) -> int:
    """Write the zipapp; its digest and size to stdout."""
    path = Path(out)
    digest = build(path)
    console.out(f"{digest}  {path}")
    return ExitCode.OK


def expected(target: str, name: str, catalog_directory: str | None) -> int:
    """The expectation of one workload's machine to stdout."""
    catalog = load_catalog(catalog_directory)
    with asking(KnownNames(catalog)):
        (declaration,) = resolve(target, Path.cwd())
    plans = {one.name: one for one in plan_declaration(declaration, catalog).workloads}
    if name not in plans:
        hint = spelling_hint(name, plans, otherwise=f"it declares {', '.join(plans)}")
        raise InvalidInput(
            Problem("WORKLOAD", f"`{name}` is not a workload of {declaration.name}", hint)
        )
    if plans[name].chosen is None:
        hint = f"`gputier plan {target}` names the least that would have to go"
        raise CannotPlace(Problem(name, f"no machine fits workload `{name}`", hint))
    console.out(expectation_text(plans[name], catalog))
    return ExitCode.OK
