"""The demo's preview on the real engine."""

from __future__ import annotations

from pathlib import Path

from tests import preview


def test_the_engine_means_to_create_what_the_mocks_register(pulumi: Path) -> None:
    """Otherwise the demo would show something else where the real command was built."""
    assert sorted(preview.by_engine(pulumi)("dev")) == sorted(preview.by_mocks("dev"))
