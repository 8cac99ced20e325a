"""The measurements can be made; how long they take on this machine is no test."""

from __future__ import annotations

import pytest
from tests.node import measure


def test_each_figure_is_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(measure, "RUNS", 1)
    found = measure.figures()
    assert [figure.unit for figure in found] == ["s", "s", "s", "% of a core"]
    assert all(figure.value > 0 for figure in found)
