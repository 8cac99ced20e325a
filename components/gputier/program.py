"""The Pulumi program of every stack: the machines that its lock holds, and how to reach them.

from gputier.program import main

deployed = main()    # a project's whole __main__.py; what is yours goes below it
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pulumi
from pulumi.runtime import config

from gputier.aws import Deployed, Deployment, deploy
from gputier.catalog import Catalog, load
from gputier.errors import GputierError, Problem, StaleLock
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
    try:
        return deploy(found, catalog)
    except GputierError as error:
        # A plan knows no file: its problems get the lines of the declaration.
        at = declared.positions.at
        placed = [replace(p, position=p.position or at(p.path)) for p in error.problems]
        raise type(error)(placed) from None
