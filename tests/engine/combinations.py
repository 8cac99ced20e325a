"""Combinations of inputs that the real provider refuses before it asks the cloud."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, cast

from tests.engine import replacement
from tests.engine.schema import Problem
from tests.engine.wire import Props


def check(token: str, inputs: Props) -> Iterator[Problem]:
    """Every breach of what the tables say of inputs that exclude or need each other."""
    row = replacement.table().get(token, {})
    for first, second in row.get("conflicts", ()):
        if _given(inputs, first) and _given(inputs, second):
            yield first, f"conflicts with {second}"
    for names in row.get("exactly_one_of", ()):
        if _applies(inputs, names) and sum(_given(inputs, name) for name in names) != 1:
            yield names[0], f"exactly one of {', '.join(names)} is needed"
    for names in row.get("at_least_one_of", ()):
        if _applies(inputs, names) and not any(_given(inputs, name) for name in names):
            yield names[0], f"at least one of {', '.join(names)} is needed"
    for name, needed in row.get("required_with", ()):
        if _given(inputs, name) and not _given(inputs, needed):
            yield name, f"needs {needed}"


def _given(values: Any, path: str) -> bool:
    """Whether the path is set somewhere; an empty list or text is as good as none."""
    if isinstance(values, list):
        return any(_given(item, path) for item in cast(list[Any], values))
    if not isinstance(values, dict):
        return False
    name, _, rest = path.partition(".")
    value = cast(Props, values).get(name)
    return _given(value, rest) if rest else value not in (None, "", [], {})


def _applies(inputs: Props, names: list[str]) -> bool:
    """A choice inside of a block is asked for only where the block is, and is known."""
    around = names[0].rpartition(".")[0]
    return not around or _is_block(inputs, around.split("."))


def _is_block(value: Any, keys: list[str]) -> bool:
    if isinstance(value, list):
        return any(_is_block(item, keys) for item in cast(list[Any], value))
    if not isinstance(value, dict):
        return False
    return not keys or _is_block(cast(Props, value).get(keys[0]), keys[1:])
