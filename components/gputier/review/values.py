"""What a preview's values are read as: providers write one thing in several ways, and a program may
hold anything at all."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, cast

from gputier.review.preview import Hidden, Value


def items(value: Value) -> Sequence[Value]:
    """A list as it is, one thing as a list of it, nothing and a hidden list as an empty one."""
    if isinstance(value, list | tuple):
        return cast("Sequence[Value]", value)
    return () if value is None or isinstance(value, Hidden) else (value,)


def maps(value: Value) -> list[Mapping[str, Any]]:
    """The maps of a list, or the one map that there is."""
    return [fields(one) for one in items(value) if isinstance(one, Mapping)]


def fields(value: Value) -> Mapping[str, Any]:
    """A map, and an empty one for anything else."""
    return cast("Mapping[str, Any]", value) if isinstance(value, Mapping) else {}


def yes(value: Value) -> bool:
    """Whether it is said to be so: providers write `true` and `"true"`."""
    return value is True or (isinstance(value, str) and value.lower() == "true")


def text(value: Value) -> str | None:
    """A text that is not empty."""
    return value if isinstance(value, str) and value else None


def number(value: Value) -> float | None:
    """A figure, also one that a program writes as text; None for what is none, or is hidden.
    Sizes and counts are never below zero: such a one is none either."""
    if isinstance(value, bool | Hidden) or value is None:
        return None
    try:
        found = float(value)
    except (TypeError, ValueError):
        return None
    return found if 0 <= found < float("inf") else None
