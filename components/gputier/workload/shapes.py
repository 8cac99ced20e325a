"""Values of unknown shape, seen as a map or a list where they are one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast


def as_map(value: object) -> Mapping[Any, Any] | None:
    """`value` if it is a mapping, else None."""
    return cast("Mapping[Any, Any]", value) if isinstance(value, Mapping) else None


def as_items(value: object) -> tuple[Any, ...] | None:
    """The entries of a list or tuple, else None. Text is no list."""
    if isinstance(value, (list, tuple)):
        return tuple(cast("tuple[Any, ...]", value))
    return None
