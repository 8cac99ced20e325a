"""What a gate did."""

from __future__ import annotations

from typing import NamedTuple

from gputier.node.gates.steps import Step


class Settled(NamedTuple):
    """`open` says whether the workload may start; `done` and `failed` are steps in order.

    `words` is one line for the journal; `notes` are what went otherwise than planned. `exit` is
    what a program that asks for the verdict ends with.
    """

    open: bool
    done: tuple[Step, ...]
    failed: tuple[Step, ...]
    words: str
    notes: tuple[str, ...]
    exit: int
