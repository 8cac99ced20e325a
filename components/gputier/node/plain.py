"""Small helpers for data of unknown shape and for words."""

from __future__ import annotations

from typing import Any, cast


def mapping(value: Any) -> dict[str, Any] | None:
    """A JSON object as a map, None for anything else."""
    return cast("dict[str, Any]", value) if isinstance(value, dict) else None


def sequence(value: Any) -> list[Any] | None:
    """A JSON array as a list, None for anything else."""
    return cast("list[Any]", value) if isinstance(value, list) else None


def joined(separator: str, *parts: object) -> str:
    """The parts that say something, with the separator between."""
    return separator.join(str(part) for part in parts if part)
