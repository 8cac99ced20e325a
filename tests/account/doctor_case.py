"""Each check with an account in which it is good, one in which it is bad, and one that cannot tell.

A row: what happens, the stack, the check, what is changed in an account where everything is well,
the answer's state, what it says, and what its way out has in it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from tests.account.doctor_world import World

Change = Callable[[World], None]


class Case(NamedTuple):
    name: str
    stack: str
    cloud: str
    check: str
    change: Change
    state: str
    found: str
    fix: str = ""
    workload: str = ""


def well(_world: World) -> None:
    """Nothing is changed."""


def aws(service: str, call: str, answer: Any) -> Change:
    def change(world: World) -> None:
        world.amazon.has(service, call, answer)

    return change


def gcp(api: str, path: str, answer: Any) -> Change:
    def change(world: World) -> None:
        world.google.has(api, path, answer)

    return change


def both(*changes: Change) -> Change:
    def change(world: World) -> None:
        for one in changes:
            one(world)

    return change
