"""The Pulumi program of every stack: the machines that its lock holds, and how to reach them."""

from dataclasses import replace
from pathlib import Path

import pulumi
from pulumi.runtime import config

from gputier.aws import Deployment, deploy
from gputier.catalog import load
from gputier.errors import GputierError, Problem, StaleLock
from gputier.lock import Bundle, lock_command, lock_path, read_lock
from gputier.lock.locked import locked_plan
from gputier.plan.known import KnownNames
from gputier.workload.engine import read_engine
from gputier.workload.known import asking


def main() -> None:
    """Read config, check, read the lock, deploy, export."""
    catalog, stack, values = load(), pulumi.get_stack(), config.CONFIG.get()
    secrets = {key for key in values if config.is_config_secret(key)}
    with asking(KnownNames(catalog)):
        declared = read_engine(values, secrets, stack, Path.cwd())
    for warning in declared.warnings:
        pulumi.log.warn(warning)
    lock = read_lock(lock_path(declared), stack)
    if lock is None:
        message = f"{lock_path(declared)}: there is no lock yet"
        raise StaleLock(Problem("", message, f"run `{lock_command(declared)}`"))
    found: list[Deployment] = []
    for name in declared.workloads:
        plan = locked_plan(lock, declared, name, catalog)
        entry = lock.entries[name]
        found.append(Deployment(plan, Bundle(entry.bundle, entry.bundle_version)))
    try:
        deployed = deploy(found, catalog)
    except GputierError as error:
        # A plan knows no file: its problems get the lines of the declaration.
        at = declared.positions.at
        placed = [replace(p, position=p.position or at(p.path)) for p in error.problems]
        raise type(error)(placed) from None
    for name, fleet in deployed.fleets.items():
        pulumi.export(name, fleet.outputs())
    pulumi.export("kept", deployed.kept)


try:
    main()
except GputierError as mistake:
    # The engine prints the message of a RunError, and a traceback for anything else.
    raise pulumi.RunError(str(mistake)) from None
