"""What a rule reads: resources as plain values, with a mark where a preview cannot know yet.

The policy SDK raises when an unknown value is read and then downgrades the whole rule to a note,
even a mandatory one. Here an unknown value is a value like any other, so that a rule decides on
what it knows, and says which property it waited for when that was not enough.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, TypeGuard


class Unknown:
    """A value that only the cloud can tell. False, so that `x or default` cannot pass for a value
    by mistake: compare with `is UNKNOWN`, or ask `known`."""

    def __bool__(self) -> bool:
        return False

    def __repr__(self) -> str:
        return "unknown"


UNKNOWN: Final = Unknown()
_STEP = re.compile(r"[^.\[\]]+")


@dataclass(frozen=True, slots=True)
class Surroundings:
    """The stack that is judged: its name, its project, and its config as the program gets it
    (`{"aws:region": "us-east-1"}`). `secrets` are its secret values by key, for looking whether
    one stands where it must not; no message ever shows one."""

    name: str = ""
    project: str = ""
    config: Mapping[str, str] = field(default_factory=dict[str, str])
    secrets: Mapping[str, str] = field(default_factory=dict[str, str], repr=False)


@dataclass(frozen=True, slots=True)
class Resource:
    """One resource: `type` is the whole token, `aws:ec2/instance:Instance`; `props` are plain
    values as the provider spells them, with UNKNOWN in them."""

    type: str
    name: str
    urn: str
    props: Mapping[str, Any]
    stack: Surroundings = Surroundings()
    protect: bool = False
    provider: Mapping[str, Any] = field(default_factory=dict[str, Any])
    parent: str = ""  # URN; stack rules only
    # Input -> URNs of what its value comes from; stack rules only.
    sources: Mapping[str, tuple[str, ...]] = field(default_factory=dict[str, tuple[str, ...]])

    def at(self, path: str) -> Any:
        """The value at a path, `ebs.encrypted` or `disks[0].sourceImage`: None where there is
        none, UNKNOWN where it, or what it is in, is not known yet."""
        return at(self.props, path)

    def each(self, path: str) -> list[Any]:
        """The items of a list: none where there is no list, one UNKNOWN where it is unknown. A
        single block is a list of one, as providers differ in how they spell `at most one`."""
        return items(self.at(path))


@dataclass(frozen=True, slots=True)
class Stack:
    """Everything that a program registered, in the order of its URNs."""

    resources: tuple[Resource, ...]
    surroundings: Surroundings = Surroundings()

    def of(self, *types: str) -> Iterator[Resource]:
        """The resources of these types."""
        return (found for found in self.resources if found.type in types)

    def by_urn(self, urn: str) -> Resource | None:
        return next((found for found in self.resources if found.urn == urn), None)


def known(value: object) -> bool:
    """Whether a preview knows a value, and everything in it."""
    if is_map(value):
        return all(map(known, value.values()))
    if is_list(value):
        return all(map(known, value))
    return value is not UNKNOWN


def at(value: Any, path: str) -> Any:
    """As Resource.at, in any value."""
    found: Any = value
    for step in _STEP.findall(path):
        if found is UNKNOWN:
            return UNKNOWN
        if is_map(found):
            found = found.get(step)
        elif is_list(found) and step.isdigit() and int(step) < len(found):
            found = found[int(step)]
        else:
            return None
    return found


def items(value: Any) -> list[Any]:
    """As Resource.each, of a value."""
    if value is None:
        return []
    return value if is_list(value) else [value]


def yes(value: object) -> bool:
    """Whether a flag is set: AWS's launch templates spell some of theirs as texts."""
    return value is True or (isinstance(value, str) and value.lower() == "true")


def is_list(value: object) -> TypeGuard[list[Any]]:
    return isinstance(value, list)


def is_map(value: object) -> TypeGuard[Mapping[str, Any]]:
    return isinstance(value, Mapping)


def plain(value: Any, unknown: type[Exception], leaf: Callable[[Any], Any]) -> Any:
    """The SDK's proxies as plain values. `unknown` is what reading an unknown one raises; `leaf`
    makes a plain value of anything that is neither a map nor a list."""
    if is_map(value):
        return {key: _read(value, key, unknown, leaf) for key in value}
    if isinstance(value, str | bytes) or not hasattr(value, "__getitem__"):
        return leaf(value)
    return [_read(value, index, unknown, leaf) for index in range(len(value))]


def _read(box: Any, key: Any, unknown: type[Exception], leaf: Callable[[Any], Any]) -> Any:
    try:
        value = box[key]
    except unknown:
        return UNKNOWN
    return plain(value, unknown, leaf)
