"""A stack's declaration as Pulumi's engine hands it to a program.

The engine has read the file already, and more: what is set on the command line, in an ESC
environment or for the whole project. So what it says counts; where the file says the same, the
file is read, because its lines are what a person knows.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from dataclasses import replace
from pathlib import Path

from gputier.errors import InvalidInput
from gputier.workload import project
from gputier.workload.declare import Declaration
from gputier.workload.meaning import digest
from gputier.workload.read import find_stacks, read_config_json, read_stack


def read_engine(
    values: Mapping[str, str], secrets: Collection[str], stack: str, start: Path
) -> Declaration:
    """The declaration in `values`, a program's config by key; `secrets` are the keys whose
    values are secret. Raises `InvalidInput` with the file's lines, where the file has the mistake.
    """
    has_file = stack in find_stacks(start)
    try:
        told = read_config_json(_printed(values, secrets), f"config of stack {stack}")
    except InvalidInput:
        if has_file:
            read_stack(stack, start)
        raise
    if has_file:
        written = read_stack(stack, start)
        if _digests(written) == _digests(told):
            return written
    return replace(told, name=stack, source=str(_file(stack, start)))


def _printed(values: Mapping[str, str], secrets: Collection[str]) -> str:
    """The config as `pulumi config --json` prints it."""
    return json.dumps({key: _entry(value, key in secrets) for key, value in values.items()})


def _entry(value: str, secret: bool) -> dict[str, object]:
    """An object arrives as its JSON, anything else as text."""
    entry: dict[str, object] = {"value": value, "secret": secret}
    if value[:1] in ("{", "["):
        try:
            entry["objectValue"] = json.loads(value)
        except ValueError:  # text that begins with a bracket
            return entry
    return entry


def _digests(declaration: Declaration) -> dict[str, str]:
    """What decides the machines: the lock's own digests."""
    given = declaration.environment, declaration.discounts
    return {name: digest(w, *given) for name, w in declaration.workloads.items()}


def _file(stack: str, start: Path) -> Path:
    """Where the stack's settings would be: its lock lies beside."""
    here = project.find(start)
    folder = here.stack_folder if here else start
    return folder / f"Pulumi.{stack}.yaml"
