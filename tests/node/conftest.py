"""What the node's tests share: judging a machine that never was."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from tests.node.machines import Machine

from gputier.node import expect
from gputier.node.verbs.common import Run, judge


def judged(machine: Machine, depth: str = "quick", **changes: Any) -> Run:
    """The run on a machine against its kind's expectation, with top-level keys changed."""
    wanted = expect.read(json.dumps({**machine.expectation(), **changes}))
    return judge(machine, wanted, depth)


@pytest.fixture
def run() -> Callable[..., Run]:
    return judged
