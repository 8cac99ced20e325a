"""What is true of a fleet, so that a table can say what does not go together."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

from gputier_policies.values import UNKNOWN

Trait = tuple[Any, str]  # True, False or UNKNOWN, and the property that says so
Traits = Mapping[str, Trait]


class Combination(NamedTuple):
    """Traits that a cloud does not take together, why, and where that stands."""

    traits: tuple[str, ...]
    message: str
    source: str


def holds_of(value: Any, holds: Callable[[Any], object]) -> Any:
    """Whether something holds of a value; UNKNOWN of one that is not known."""
    return UNKNOWN if value is UNKNOWN else bool(holds(value))


def some(found: Iterable[Trait], path: str) -> Trait:
    """A trait that holds where one of several does."""
    waits: Trait = (False, path)
    for value, where in found:
        if value is True:
            return (True, where)
        if value is UNKNOWN:
            waits = (UNKNOWN, where)
    return waits


def denied(trait: Trait) -> Trait:
    """The opposite, which is not known either where the trait is not."""
    value, path = trait
    return (UNKNOWN if value is UNKNOWN else not value, path)


def both(one: Trait, other: Trait) -> Trait:
    """Where both hold, named by the second."""
    if False in (one[0], other[0]):
        return (False, other[1])
    return (True, other[1]) if one[0] is other[0] is True else (UNKNOWN, other[1])
