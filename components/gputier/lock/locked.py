"""The plan of the machine that a lock holds, whatever would be chosen today."""

from __future__ import annotations

from typing import NamedTuple

from gputier.catalog import Catalog
from gputier.errors import InvalidInput, Problem, StaleLock
from gputier.lock.entries import Entry, Lock, lock_command, stale_entry
from gputier.lock.images import held_image
from gputier.plan import Chosen, DriverPlan, WorkloadPlan, plan_workload
from gputier.plan.boot import INSTALL, PREBAKED
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
    stale = stale_entry(lock, declaration, name)
    if stale:
        raise StaleLock(stale)
    entry, workload = lock.entries[name], declaration.workloads[name]
    choice = next((c for c in workload.capacity if c.use == entry.capacity), None)
    found = None if choice is None else _planned(declaration, name, catalog, (entry, choice))
    chosen = found.chosen if found else None
    if choice is None or found is None or chosen is None or _held(chosen) != _of(entry):
        raise StaleLock(_gone(declaration, name, entry))
    boot = chosen.boot
    driver = held_driver(entry, boot.driver, catalog)
    if driver is None:
        raise StaleLock(_unpinned(declaration, name))
    image = held_image(entry, boot.image)
    if driver.source != boot.driver.source:
        image = image._replace(driver=None, cuda=None)  # of an image that the lock does not hold
    boot = boot._replace(image=image, driver=driver)
    return found._replace(choice=choice, chosen=chosen._replace(boot=boot))


def held_driver(entry: Entry, planned: DriverPlan, catalog: Catalog) -> DriverPlan | None:
    """The driver of a locked machine: the version that the lock says, whatever would be installed
    today; None where one is installed and the lock does not say which."""
    if entry.driver:
        branch = entry.driver.partition(".")[0]
        return planned._replace(source=INSTALL, branch=branch, version=entry.driver)
    if planned.source != INSTALL:
        return planned
    # Today no image has the driver; the locked one had it.
    has = next((i.driver for i in catalog.software.images if i.name == entry.image), None)
    if has is None:
        return None
    return planned._replace(source=PREBAKED, branch=has.partition(".")[0], version=None)


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


def _held(chosen: Chosen) -> Held:
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


def _unpinned(declaration: Declaration, name: str) -> Problem:
    command = lock_command(declaration)
    return Problem(
        name,
        f"the lock of `{name}` does not say which driver is installed at boot",
        f"run `{command}`; where that changes nothing, `{command} --upgrade {name}`",
        declaration.positions.at(f"workloads.{name}"),
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
