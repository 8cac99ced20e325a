"""The Pulumi program of every stack: the machines that its lock holds, and how to reach them.

from gputier.program import main

deployed = main()    # a project's whole __main__.py; what is yours goes below it
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import Protocol, cast

import pulumi
from pulumi.runtime import config

from gputier.catalog import Catalog, load
from gputier.deploy import Deployed, Deployment, Prepared
from gputier.errors import GputierError, InvalidInput, Problem, StaleLock
from gputier.lock import Bundle, lock_command, lock_path, read_lock
from gputier.lock.locked import locked_plan
from gputier.plan.known import KnownNames
from gputier.workload import Declaration
from gputier.workload.engine import read_engine
from gputier.workload.known import asking


def main() -> Deployed:
    """Read config, check, read the lock, deploy, export. What it made, for the rest of a program.

    Raises `pulumi.RunError` with every problem, which the engine prints as it is; anything else
    would come with a traceback.
    """
    try:
        catalog = load()
        declared = _declared(catalog)
        deployed = _deployed(declared, catalog)
    except GputierError as mistake:
        raise pulumi.RunError(str(mistake)) from None
    for name, fleet in deployed.fleets.items():
        pulumi.export(name, fleet.outputs())
    pulumi.export("kept", deployed.kept)
    return deployed


def _declared(catalog: Catalog) -> Declaration:
    stack, values = pulumi.get_stack(), config.CONFIG.get()
    secrets = {key for key in values if config.is_config_secret(key)}
    with asking(KnownNames(catalog)):
        declared = read_engine(values, secrets, stack, Path.cwd())
    for warning in declared.warnings:
        pulumi.log.warn(warning)
    return declared


def _deployed(declared: Declaration, catalog: Catalog) -> Deployed:
    lock = read_lock(lock_path(declared), declared.name)
    if lock is None:
        message = f"{lock_path(declared)}: there is no lock yet"
        raise StaleLock(Problem("", message, f"run `{lock_command(declared)}`"))
    found: list[Deployment] = []
    for name in declared.workloads:
        plan = locked_plan(lock, declared, name, catalog)
        entry = lock.entries[name]
        found.append(Deployment(plan, Bundle(entry.bundle, entry.bundle_version)))
    made = [make() for make in _prepared(found, catalog, declared)]
    fleets = {name: fleet for one in made for name, fleet in one.fleets.items()}
    return Deployed(fleets, [kept for one in made for kept in one.kept])


def _prepared(
    found: Sequence[Deployment], catalog: Catalog, declared: Declaration
) -> list[Prepared]:
    """What makes each cloud's fleets. Everything that any of them refuses is said at once, and
    before anything is made on one."""
    prepared: list[Prepared] = []
    refused: list[GputierError] = []
    for cloud, own in _by_cloud(found).items():
        try:
            prepared.append(_cloud(cloud, own).prepare(own, catalog))
        except GputierError as error:
            refused.append(error)
    if not refused:
        return prepared
    # A plan knows no file: its problems get the lines of the declaration.
    at = declared.positions.at
    problems = [p for error in refused for p in error.problems]
    raise type(refused[0])([replace(p, position=p.position or at(p.path)) for p in problems])


def _by_cloud(found: Sequence[Deployment]) -> dict[str, list[Deployment]]:
    clouds: dict[str, list[Deployment]] = {}
    for one in found:
        if one.plan.chosen is None:
            raise ValueError(f"no machine was chosen for {one.plan.name}")
        clouds.setdefault(one.plan.chosen.verdict.type.cloud, []).append(one)
    return clouds


class _Cloud(Protocol):
    """What a cloud's package has for a stack."""

    def prepare(self, deployments: Sequence[Deployment], catalog: Catalog) -> Prepared: ...


def _cloud(name: str, own: Sequence[Deployment]) -> _Cloud:
    """The package of a cloud, with its SDK: it takes a second to load, and a stack that does not
    use the cloud need not have it installed.

    Raises `InvalidInput` at each workload where it is not there.
    """
    try:
        return cast(_Cloud, import_module(f"gputier.{name}"))
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] != f"pulumi_{name}":
            raise
        message = f"it is locked on {name}, and Pulumi's SDK for {name} is not installed"
        hint = f"pip install 'gputier[{name}]'"
        named = [f"workloads.{one.plan.name}" for one in own]
        raise InvalidInput([Problem(at, message, hint) for at in named]) from None
