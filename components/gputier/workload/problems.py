"""From complaints about values to problems a person can act on: named, placed, all at once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from pydantic import ValidationError
from pydantic_core import PydanticCustomError

from gputier.errors import Position, Problem
from gputier.workload.complaints import TYPE, complaint, shown

Loc = tuple[str | int, ...]

_PLAIN: dict[str, str] = {
    "missing": " is needed here",
    "model_type": " must be a map of fields, not {value}",
    "dict_type": " must be a map, not {value}",
    "mapping_type": " must be a map, not {value}",
    "tuple_type": " must be a list, not {value}",
    "list_type": " must be a list, not {value}",
    "string_type": " must be text, not {value}",
    "bool_type": " must be true or false, not {value}",
    "bool_parsing": " must be true or false, not {value}",
    "int_type": " must be a whole number, not {value}",
    "int_parsing": " must be a whole number, not {value}",
    "int_parsing_size": " is too large a number",
    "int_from_float": " must be a whole number, not {value}",
    "float_type": " must be a number, not {value}",
    "float_parsing": " must be a number, not {value}",
    "literal_error": " is none of the words this field takes: {value}",
    "recursion_loop": " holds itself",
}


class Places(Protocol):
    """Knows where in a file a path stands."""

    def at(self, path: str) -> Position | None:
        """The value at `path`, or its nearest known ancestor."""
        ...

    def key(self, path: str) -> Position | None:
        """The key at `path`, or its nearest known ancestor."""
        ...


@dataclass(frozen=True, slots=True)
class Root:
    """What was being validated: its path, and how sentences name its fields."""

    path: str = ""
    alone: str = "this"
    of: str = ""
    short_of: str = ""


def of_workload(name: str) -> Root:
    """The workload `name` of a declaration."""
    return Root(f"workloads.{name}", f"workload `{name}`", f" of workload `{name}`", f" of `{name}`")


def translate(
    error: ValidationError, data: object, root: Root | None = None, places: Places | None = None
) -> list[Problem]:
    """Every line of a validation as a Problem, in the order of the schema's fields.

    `data` is what was written: it tells which parts of a location a person would recognise.
    """
    found: dict[tuple[str, str], Problem] = {}
    for line in error.errors(include_url=False):
        problem = _problem(dict(line), data, root or Root(), places)
        found.setdefault((problem.path, problem.message), problem)
    return list(found.values())


def of_pydantic(kind: str, context: Mapping[str, Any], value: object) -> PydanticCustomError:
    """One of pydantic's own error types in our words; for a type not foreseen, still ours."""
    words = _PLAIN.get(kind, " does not take {value}")
    place = "value"
    del context  # pydantic's context repeats its own wording
    return complaint(words.format(value=shown(value)), place=place)


def _problem(line: Mapping[str, Any], data: object, root: Root, places: Places | None) -> Problem:
    context = line.get("ctx", {}) if line["type"] == TYPE else {}
    if not context:
        context = of_pydantic(line["type"], {}, line.get("input")).context or {}
    loc = written(line["loc"], data)
    path = join(root.path, loc)
    if context["short"]:
        name = f"{loc[0]}{root.short_of}" if loc else root.alone
    else:
        name = f"`{join('', loc)}`{root.of}" if loc else root.alone
    position = None
    if places:
        position = places.key(path) if context["place"] == "key" else places.at(path)
    return Problem(path, f"{context['before']}{name}{context['after']}", context["hint"], position)


def written(loc: Sequence[str | int], data: object) -> Loc:
    """`loc` without the steps that only normalisation made (the list around a lone value)."""
    kept: list[str | int] = []
    here = data
    for step in loc:
        if isinstance(step, int):
            if isinstance(here, (list, tuple)) and step < len(here):
                here = here[step]
                kept.append(step)
        elif isinstance(here, Mapping):
            kept.append(step)
            here = here.get(step)
        elif here is None or not isinstance(here, (str, int, float)):
            kept.append(step)
            here = getattr(here, step, None)
    return tuple(kept)


def join(root: str, loc: Sequence[str | int]) -> str:
    """`workloads.chat.schedule[0].start`."""
    path = root
    for step in loc:
        if isinstance(step, int):
            path += f"[{step}]"
        else:
            path += f".{step}" if path else step
    return path
