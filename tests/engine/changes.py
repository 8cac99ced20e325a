"""What differs between two sets of inputs, by path."""

from __future__ import annotations

from collections.abc import Iterator
from enum import IntEnum
from typing import Any, NamedTuple, cast

from tests.engine.wire import SIGNATURE, Props


class Kind(IntEnum):
    """The protocol's kinds of a difference; each plus one means that it replaces."""

    ADD = 0
    DELETE = 2
    UPDATE = 4


class Change(NamedTuple):
    path: str
    kind: Kind
    old: Any
    new: Any

    @property
    def top(self) -> str:
        """The input that the path is in."""
        return self.path.split(".")[0].split("[")[0]


def changes(old: Any, new: Any, path: str = "") -> Iterator[Change]:
    """Every difference of two values, at its deepest path; an unknown new value is one."""
    if old == new:
        return
    if _is_map(old) and _is_map(new):
        for key in sorted({*old, *new}):
            if not key.startswith("__"):
                inside = f"{path}.{key}" if path else key
                yield from _pair(cast(Props, old).get(key), cast(Props, new).get(key), inside)
    elif isinstance(old, list) and isinstance(new, list):
        olds, news = cast(list[Any], old), cast(list[Any], new)
        for index in range(max(len(olds), len(news))):
            before, after = (side[index] if index < len(side) else None for side in (olds, news))
            yield from _pair(before, after, f"{path}[{index}]")
    else:
        yield Change(path, Kind.UPDATE, old, new)


def _pair(old: Any, new: Any, path: str) -> Iterator[Change]:
    if old is None and new is not None:
        yield Change(path, Kind.ADD, None, new)
    elif new is None and old is not None:
        yield Change(path, Kind.DELETE, old, None)
    else:
        yield from changes(old, new, path)


def _is_map(value: Any) -> bool:
    """Secrets and assets are maps on the wire, and single values in a difference."""
    return isinstance(value, dict) and SIGNATURE not in value
