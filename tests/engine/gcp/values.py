"""What may be left out, as the empty thing of its kind."""

from __future__ import annotations

from typing import Any

from tests.engine.wire import Props


def block(value: Any) -> Props:
    return value or {}


def items(value: Any) -> list[Any]:
    return value or []
