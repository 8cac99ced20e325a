"""Sizing a declared model, in one call."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from gputier.sizing import Sizing, size
from gputier.workload import Workload


@pytest.fixture
def sized() -> Callable[..., Sizing]:
    """`sized(gpus=2, name="llama-3.1-8b")`: the sizing of a workload with that `model`."""

    def run(gpus: int = 1, kept_free: float = 0.0, **model: Any) -> Sizing:
        purpose = "vdi" if "seats" in model else None
        workload = Workload.model_validate({"model": model, "purpose": purpose})
        found = size(workload, gpus=gpus, kept_free=kept_free)
        assert found is not None
        return found

    return run


@pytest.fixture
def parts(sized: Callable[..., Sizing]) -> Callable[..., dict[str, float]]:
    """The same as GiB by part name."""

    def run(gpus: int = 1, kept_free: float = 0.0, **model: Any) -> dict[str, float]:
        return {p.name: p.gib for p in sized(gpus, kept_free, **model).parts}

    return run
