"""What a new project's stacks would run on: their budgets, and their locks."""

from __future__ import annotations

import math
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from gputier.catalog import Catalog
from gputier.cli.init_files import STACKS, Choices, stack_file, stack_text
from gputier.errors import CannotPlace, Problem
from gputier.lock import Entry, make_lock, render_lock
from gputier.plan import StackPlan, plan_declaration
from gputier.plan.known import KnownNames
from gputier.workload import Declaration, resolve
from gputier.workload.known import asking

#: The budget that leaves this part of it free. Alerts at 50, 80 and 100 % then say something.
FREE = 0.2
#: A budget to plan with before there is one, USD: only the share that the plan takes is read.
ANY = 1_000_000


class Locked(NamedTuple):
    """A stack's lock as text, and what its workload runs on."""

    text: str
    entry: Entry


def budgets(choices: Choices, catalog: Catalog) -> dict[str, int]:
    """USD a month that each stack's plan fits into with a fifth to spare, in round numbers. Raises
    `CannotPlace` where the tier has no machine in the region."""
    found: dict[str, int] = {}
    for stack in STACKS:
        text = stack_text(choices, stack, ANY)
        _, plan = _planned(choices, stack, text, catalog)
        found[stack] = _budget(choices, plan)
    return found


def locks(choices: Choices, wanted: Mapping[str, str], catalog: Catalog) -> dict[str, Locked]:
    """The lock of each of these stacks, whose declarations are given as text."""
    found: dict[str, Locked] = {}
    for stack, text in wanted.items():
        declaration, plan = _planned(choices, stack, text, catalog)
        lock = make_lock(plan, declaration)
        found[stack] = Locked(render_lock(lock), lock.entries[choices.workload])
    return found


def lock_file(stack: str) -> str:
    return f"stacks/gputier.{stack}.lock"


def _budget(choices: Choices, plan: StackPlan) -> int:
    (workload,) = plan.workloads
    if workload.chosen is None or workload.chosen.budget is None:
        hint = f"`gputier pick --tier {choices.tier}` shows where there are some"
        message = f"no machine of {choices.region} fits tier {choices.tier}, so nothing was written"
        raise CannotPlace(Problem("--region", message, hint))
    usd = workload.chosen.budget.used_at_least * ANY / (1 - FREE)
    step = 10 ** max(0, math.floor(math.log10(max(usd, 1))) - 1)
    return math.ceil(usd / step) * step


def _planned(
    choices: Choices, stack: str, text: str, catalog: Catalog
) -> tuple[Declaration, StackPlan]:
    """Read as the project would be read once it is there."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "Pulumi.yaml").write_text(f"name: {choices.name}\nstackConfigDir: stacks\n")
        file = folder / stack_file(stack)
        file.parent.mkdir()
        file.write_text(text, encoding="utf-8")
        with asking(KnownNames(catalog)):
            (declaration,) = resolve(stack, folder)
    return declaration, plan_declaration(declaration, catalog)
