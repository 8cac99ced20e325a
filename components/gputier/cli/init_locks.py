"""What a new project's stacks would run on: their budgets, and their locks."""

from __future__ import annotations

import math
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from gputier.catalog import Catalog
from gputier.cli.init_files import STACKS, Choices, Numbers, stack_file, stack_text
from gputier.errors import CannotPlace, Problem
from gputier.lock import Entry, Lock, make_lock, pin_images, render_lock, to_pin
from gputier.plan import StackPlan, plan_declaration
from gputier.plan.known import KnownNames
from gputier.workload import Declaration, resolve
from gputier.workload.known import asking

#: The budget that leaves this part of it free. Alerts at 50, 80 and 100 % then say something.
FREE = 0.2
#: What a machine and a fleet may cost, as a multiple of what is planned: room for the next size.
ROOM = 2
#: GPUs of a tier: what its workload runs on, in any region, and what it may grow into.
MODELS = {
    "entry": ("T4", "L4", "A10G", "L40S"),
    "mid": ("L4", "A10G", "L40S", "A100"),
    "high-end": ("A100", "H100", "H200", "B200"),
}
#: Machines that a fleet may have: more is a decision that somebody makes.
MACHINES = 4
#: A budget to plan with before there is one, USD: only the share that the plan takes is read.
ANY = 1_000_000


class Locked(NamedTuple):
    """A stack's lock as text, and what its workload runs on."""

    text: str
    entry: Entry


def numbers(choices: Choices, catalog: Catalog) -> dict[str, Numbers]:
    """What each stack's plan costs, as limits in round numbers. Raises `CannotPlace` where the tier
    has no machine in the region."""
    found: dict[str, Numbers] = {}
    for stack in STACKS:
        text = stack_text(choices, stack, ANY)
        _, plan = _planned(choices, stack, text, catalog)
        found[stack] = _numbers(choices, plan)
    return found


def locks(
    choices: Choices, wanted: Mapping[str, str], catalog: Catalog, *, images: bool
) -> dict[str, Locked]:
    """The lock of each of these stacks, whose declarations are given as text; with `images` AWS is
    asked for today's, and they are pinned."""
    found: dict[str, Locked] = {}
    for stack, text in wanted.items():
        declaration, plan = _planned(choices, stack, text, catalog)
        lock = make_lock(plan, declaration)
        if images:
            lock = _pinned(lock, plan, choices.region)
        found[stack] = Locked(render_lock(lock), lock.entries[choices.workload])
    return found


def _pinned(lock: Lock, plan: StackPlan, region: str) -> Lock:
    from gputier.account.stack import AwsAccount
    from gputier.cli.lock_images import looker

    # A new stack names no profile and no role: whoever types is asked for.
    return pin_images(lock, plan, to_pin(lock, plan, ()), looker(AwsAccount(region=region)))


def lock_file(stack: str) -> str:
    return f"stacks/gputier.{stack}.lock"


def _numbers(choices: Choices, plan: StackPlan) -> Numbers:
    (workload,) = plan.workloads
    chosen = workload.chosen
    if chosen is None or chosen.budget is None or chosen.verdict.cost is None:
        hint = f"`gputier pick --tier {choices.tier}` shows where there are some"
        message = f"no machine of {choices.region} fits tier {choices.tier}, so nothing was written"
        raise CannotPlace(Problem("--region", message, hint))
    usd = chosen.budget.used_at_least * ANY
    hour = (chosen.verdict.cost.total or 0) / chosen.verdict.machines
    return Numbers(
        budget=_rounded(usd / (1 - FREE)),
        usd_per_hour=_rounded(hour * ROOM),
        usd_per_month=_rounded(usd * ROOM),
        machines=max(MACHINES, chosen.verdict.machines),
        models=MODELS[choices.tier],
    )


def _rounded(usd: float) -> int:
    """Up to two digits that are not zero: 318.65 is 320."""
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
