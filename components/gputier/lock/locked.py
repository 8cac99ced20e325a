"""The plan of the machine that a lock holds, whatever would be chosen today."""

from __future__ import annotations

from typing import NamedTuple

from gputier.catalog import Catalog
from gputier.errors import InvalidInput, Problem, StaleLock
from gputier.lock.entries import Entry, Lock, check_lock, lock_command
from gputier.lock.images import held_image
from gputier.plan import WorkloadPlan, plan_workload
from gputier.workload import CapacityChoice, Declaration, Workload


class Held(NamedTuple):
    """What makes two machines the same purchase."""

    cloud: str
    region: str
    zones: tuple[str, ...]
    instance_type: str
    catalog_type: str
    ssds: int
    nodes: int


def locked_plan(lock: Lock, declaration: Declaration, name: str, catalog: Catalog) -> WorkloadPlan:
    """The plan of a declared workload on its locked machine. Raises `StaleLock` when its entry is
    missing or stale, or when this catalogue does not know the machine any more."""
    stale = [problem for problem in check_lock(lock, declaration) if problem.path == name]
    if stale:
        raise StaleLock(stale)
    entry, workload = lock.entries[name], declaration.workloads[name]
    choice = next((c for c in workload.capacity if c.use == entry.capacity), None)
    found = None if choice is None else _planned(declaration, name, catalog, (entry, choice))
    gone = choice is None or found is None or _held(found) != _of(entry)
    if gone or found is None or found.chosen is None:
        raise StaleLock(_gone(declaration, name, entry))
    image = held_image(entry, found.chosen.boot.image)
    boot = found.chosen.boot._replace(image=image)
    return found._replace(choice=choice, chosen=found.chosen._replace(boot=boot))


def _planned(
    declaration: Declaration, name: str, catalog: Catalog, held: tuple[Entry, CapacityChoice]
) -> WorkloadPlan | None:
    """The plan on the machine that is held; None when the catalogue lacks its type or its place."""
    entry, choice = held
    workload = _pinned(declaration.workloads[name], choice, entry)
    granted = declaration.discounts
    try:
        return plan_workload(name, workload, catalog, declaration.environment, granted)
    except InvalidInput as error:
        ours = tuple(f"{name}.{field}" for field in ("capacity", "regions", "zones"))
        if all(problem.path.startswith(ours) for problem in error.problems):
            return None
        raise


def _pinned(workload: Workload, choice: CapacityChoice, entry: Entry) -> Workload:
    """The workload with nothing left to choose. Ceilings are dropped: they decided when it was
    locked, and a price that rose since takes nobody's machine away."""
    only = choice.model_copy(update={"instance_type": entry.catalog_type, "max_usd_per_hour": None})
    fixed: dict[str, object] = {
        "clouds": (entry.cloud,),
        "regions": {entry.cloud: (entry.region,)},
        "zones": entry.zones,
        "capacity": (only,),
        "max_usd_per_hour": None,
    }
    return workload.model_copy(update=fixed)


def _held(plan: WorkloadPlan) -> Held | None:
    chosen = plan.chosen
    if chosen is None:
        return None
    verdict, machine = chosen.verdict, chosen.verdict.machine
    return Held(
        verdict.type.cloud,
        verdict.region,
        chosen.zones,
        machine.instance_type,
        verdict.type.name,
        machine.ssd_count,
        machine.nodes,
    )


def _of(entry: Entry) -> Held:
    return Held(
        entry.cloud,
        entry.region,
        entry.zones,
        entry.instance_type,
        entry.catalog_type,
        entry.attached_ssds,
        entry.nodes,
    )


def _gone(declaration: Declaration, name: str, entry: Entry) -> Problem:
    command = lock_command(declaration)
    return Problem(
        name,
        f"`{name}` is locked on {entry.machine} in {entry.region}, which this catalogue does not"
        f" offer for it any more; the lock is of catalogue {entry.catalog} of"
        f" {entry.catalog_as_of}",
        f"name that catalogue with --catalog, or run `{command} --upgrade {name}`",
        declaration.positions.at(f"workloads.{name}"),
    )
