"""The fleets that doctor asks about: on the machines of the lock, else on those of today's plan."""

from __future__ import annotations

from typing import NamedTuple

from gputier.catalog import Catalog
from gputier.errors import StaleLock
from gputier.lock import Lock, lock_command
from gputier.lock.locked import locked_plan
from gputier.plan import Chosen, WorkloadPlan, plan_declaration
from gputier.workload import Declaration

#: Clouds that are asked.
ASKED = ("aws", "gcp")
NOWHERE = "no machine fits"


class Target(NamedTuple):
    """A workload's fleet. `locked`: its machine is the lock's."""

    name: str
    plan: WorkloadPlan
    chosen: Chosen
    locked: bool

    @property
    def cloud(self) -> str:
        return self.chosen.verdict.type.cloud

    @property
    def region(self) -> str:
        return self.chosen.verdict.region

    @property
    def zones(self) -> tuple[str, ...]:
        """Where machines may stand; empty: not known."""
        return self.chosen.network.zones or self.chosen.zones

    @property
    def type(self) -> str:
        """The name the cloud is asked for."""
        return self.chosen.verdict.machine.instance_type

    @property
    def most(self) -> int:
        """Machines at the maximum."""
        return self.chosen.scaling.max

    @property
    def market(self) -> str:
        return self.chosen.fleet.market

    @property
    def where(self) -> str:
        """`us-east-1`, or the zones where they are few."""
        return ", ".join(self.zones) if 0 < len(self.zones) <= 2 else self.region


class Targets(NamedTuple):
    """`unplaced` are workloads without a machine, or on a cloud that is not asked, with why."""

    found: tuple[Target, ...]
    unplaced: tuple[tuple[str, str], ...]
    notes: tuple[str, ...]

    @property
    def basis(self) -> str:
        """What the machines are from, in words."""
        locked = sum(target.locked for target in self.found)
        if not locked:
            return "on today's plan"
        return "as locked" if locked == len(self.found) else "as locked, the rest on today's plan"


def targets(declaration: Declaration, lock: Lock | None, catalog: Catalog) -> Targets:
    """The fleets of a declaration. A stale entry of the lock counts as none, and is said."""
    held: dict[str, WorkloadPlan] = {}
    notes: list[str] = []
    if lock is None:
        notes.append(f"there is no lock yet (`{lock_command(declaration)}` writes it)")
    for name in declaration.workloads:
        if lock is None:
            break
        try:
            held[name] = locked_plan(lock, declaration, name, catalog)
        except StaleLock as error:
            problem = error.problems[0]
            notes.append(f"{problem.message} ({problem.hint})")
    planned = dict[str, WorkloadPlan]()
    if len(held) < len(declaration.workloads):
        planned = {one.name: one for one in plan_declaration(declaration, catalog).workloads}
    found: list[Target] = []
    unplaced: list[tuple[str, str]] = []
    for name in declaration.workloads:
        plan = held.get(name) or planned[name]
        if plan.chosen is None:
            unplaced.append((name, NOWHERE))
        elif plan.chosen.verdict.type.cloud not in ASKED:
            unplaced.append((name, f"{plan.chosen.verdict.type.cloud} is not asked"))
        else:
            found.append(Target(name, plan, plan.chosen, name in held))
    return Targets(tuple(found), tuple(unplaced), tuple(notes))
