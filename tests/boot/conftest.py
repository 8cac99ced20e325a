"""Machines of a running cloud, for what stage 0's fetcher does on them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.boot.machine import Machine, running

Make = Callable[..., Machine]


@pytest.fixture
def make(tmp_path: Path) -> Iterator[Make]:
    """`make(cloud, **settings)`: a machine of a running cloud."""
    opened: list[Any] = []

    def one(cloud: str = "aws", **settings: Any) -> Machine:
        disk = tmp_path / f"disk-{len(opened)}"
        held = running(Machine(disk, cloud, **settings))
        opened.append(held)
        return held.__enter__()

    yield one
    for held in opened:
        held.__exit__(None, None, None)


@pytest.fixture
def aws(make: Make) -> Machine:
    return make("aws")
