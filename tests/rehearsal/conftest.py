"""Rehearsals: who may run, how many at once, and what is measured on the way."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import NoReturn

import pytest
from tests.rehearsal import timeline
from tests.rehearsal.image import Image, built
from tests.rehearsal.needs import CannotRehearse, ready
from tests.rehearsal.timeline import Timeline

HERE = Path(__file__).parent
#: Machines that run at the same time, one per group of tests (pytest-xdist, --dist loadgroup).
AT_ONCE = 2


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Machines of the thorough tier only when asked for, and never more than two at once."""
    thorough = [item for item in items if item.get_closest_marker("thorough")]
    if thorough and not config.getoption("--thorough"):
        config.hook.pytest_deselected(items=thorough)
        items[:] = [item for item in items if item not in thorough]
    load = [0.0] * AT_ONCE
    # Longest first, and by name: each worker has to come to the same groups, whatever its order.
    for item in sorted(filter(_boots, items), key=lambda item: (-_seconds(item), item.nodeid)):
        group = load.index(min(load))
        load[group] += _seconds(item)
        item.add_marker(pytest.mark.xdist_group(f"rehearsal-{group}"))


def _boots(item: pytest.Item) -> bool:
    return HERE in item.path.parents and item.get_closest_marker("rehearsal") is not None


def _seconds(item: pytest.Item) -> float:
    """How long it takes on a quiet machine, roughly: to share the tests out."""
    found = item.get_closest_marker("rehearsal")
    return float(found.kwargs["seconds"]) if found else 0.0


@pytest.fixture
def measured(request: pytest.FixtureRequest) -> Callable[[Timeline], None]:
    """Keep what a rehearsal measured, when that was asked for."""

    def keep(found: Timeline) -> None:
        if request.config.getoption("--update-timeline"):
            timeline.keep(found)

    return keep


@pytest.fixture(scope="session")
def image() -> Image:
    """The built image; where that cannot be, the reason, which is a failure in CI."""
    try:
        ready()
        return built()
    except CannotRehearse as error:
        cannot(error)


def cannot(error: CannotRehearse) -> NoReturn:
    """Skip with the reason; fail with it in continuous integration."""
    words = f"no rehearsal on this machine: {error}"
    if os.environ.get("CI"):
        pytest.fail(words)
    pytest.skip(words)
