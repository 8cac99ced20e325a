"""From complaints about values to problems a person can act on: named, placed, all at once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple, Protocol

from pydantic import BaseModel, ValidationError
from pydantic_core import PydanticCustomError

from gputier.errors import Position, Problem
from gputier.workload.complaints import TYPE, Place, complaint, printable, shown
from gputier.workload.shapes import as_items, as_map

Loc = tuple[str | int, ...]

MOST_PROBLEMS = 100
_MOST_OF_ONE = 50
_MOST_TEXT = 1_000_000

PLAIN: dict[str, str] = {
    "missing": " is needed here",
    "extra_forbidden": " is no field here",
    "invalid_key": " has a key that is not text",
    "model_type": " must be a map of fields, not {value}",
    "model_attributes_type": " must be a map of fields, not {value}",
    "default_factory_not_called": " cannot be filled in until the other fields are right",
    "dict_type": " must be a map, not {value}",
    "mapping_type": " must be a map, not {value}",
    "tuple_type": " must be a list, not {value}",
    "list_type": " must be a list, not {value}",
    "iteration_error": " must be a list or a map, not {value}",
    "string_type": " must be text, not {value}",
    "string_unicode": " must be text, and this is none",
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
    "json_invalid": " is not JSON text",
}


class Places(Protocol):
    """Knows where in a file a path stands."""

    def at(self, path: str) -> Position | None:
        """The value at `path`, or its nearest known ancestor."""
        ...

    def key(self, path: str) -> Position | None:
        """The key at `path`, or its nearest known ancestor."""
        ...


class Root(NamedTuple):
    """What was being validated: its path, and how sentences name its fields."""

    path: str = ""
    alone: str = "this"
    of: str = ""
    short_of: str = ""


def of_workload(name: str) -> Root:
    """The workload `name` of a declaration."""
    named = shown(name)
    return Root(f"workloads.{name}", f"workload {named}", f" of workload {named}", f" of {named}")


def translate(
    error: ValidationError, data: object, root: Root | None = None, places: Places | None = None
) -> list[Problem]:
    """Every line of a validation as a Problem, in the order of the schema's fields.

    `data` is what was written: it tells which parts of a location a person would recognise.
    """
    found: dict[tuple[str, str], Problem] = {}
    root = root or Root()
    lines = error.errors(include_url=False, include_input=False)
    for line in lines[:_MOST_OF_ONE]:
        problem = _problem(dict(line), data, root, places)
        found.setdefault((problem.path, problem.message), problem)
    if (more := len(lines) - _MOST_OF_ONE) > 0:
        found["", ""] = Problem(root.path, f"and {more:,} more problems of {root.alone}")
    return _without_secrets(list(found.values()))


#: What is printed for a line that holds a secret.
HIDDEN = "(this line holds a secret and is not shown)"


def _without_secrets(found: Sequence[Problem]) -> list[Problem]:
    """No problem shows a line of the file that another one says holds a secret."""
    places = [p.position for p in found if p.position]
    secret = {(at.file, at.line) for at in places if at.source_line.endswith(HIDDEN)}
    return [
        replace(p, position=_hidden(p.position))
        if p.position and (p.position.file, p.position.line) in secret
        else p
        for p in found
    ]


def _hidden(position: Position) -> Position:
    length = len(HIDDEN)
    return replace(position, source_line=" " * (position.column - 1) + HIDDEN, length=length)


def within_reason(found: Sequence[Problem]) -> list[Problem]:
    """As many as a person may read: thousands mean that this is the wrong file.

    Long source lines count for more, because every one of them is printed again.
    """
    told: list[Problem] = []
    room = _MOST_TEXT
    for problem in found[:MOST_PROBLEMS]:
        room -= len(problem.position.source_line) if problem.position else 0
        if told and room < 0:
            break
        told.append(problem)
    more = len(found) - len(told)
    return [*told, Problem("", f"and {more:,} more problems")] if more else told


def of_pydantic(kind: str, value: object) -> PydanticCustomError:
    """One of pydantic's own error types in our words; for a type not foreseen, still ours."""
    words = PLAIN.get(kind, " cannot take {value}")
    place = "key" if kind == "missing" else "value"
    return complaint(words.format(value=shown(value)), place=place)


def _problem(line: Mapping[str, Any], data: object, root: Root, places: Places | None) -> Problem:
    loc, value = written(line["loc"], data)
    context: Mapping[str, Any] = line["ctx"] if line["type"] == TYPE else {}
    if not context:
        context = of_pydantic(line["type"], value).context or {}
    at_key = context["place"] == "key" or line["loc"][-1:] == ("[key]",)
    path = join(root.path, loc)
    if context["short"]:
        name = f"{loc[0]}{root.short_of}" if loc else root.alone
    else:
        name = f"`{printable(join('', loc), 100)}`{root.of}" if loc else root.alone
    position = None
    if places:
        position = places.key(path) if at_key else _part(places.at(path), context["place"], value)
    return Problem(path, f"{context['before']}{name}{context['after']}", context["hint"], position)


def _part(position: Position | None, place: Place, value: object) -> Position | None:
    """The position of a part of a text value, where the text stands in one line as it is."""
    if position is not None and place == "hidden":
        return _hidden(position)
    if position is None or isinstance(place, str) or not isinstance(value, str):
        return position
    begin = position.source_line.find(value, position.column - 1)
    if begin < 0:
        return position
    return replace(position, column=begin + place[0] + 1, length=max(1, place[1]))


def written(loc: Sequence[str | int], data: object) -> tuple[Loc, object]:
    """`loc` without the steps that only normalisation made, and the value written there.

    A lone value stands for a list of one and a word for a map (`capacity: spot`), so pydantic's
    location may have steps that nobody wrote.
    """
    kept: list[str | int] = []
    here: object = data
    for step in loc:
        if step == "[key]":  # pydantic's mark for the key of a map, as against its value
            continue
        if isinstance(step, int):
            items = as_items(here)
            if items is None:
                continue
            here = items[step] if step < len(items) else None
        elif (entries := as_map(here)) is not None:
            here = entries.get(step)
        elif isinstance(here, (str, int, float)):
            continue
        else:
            here = vars(here).get(step) if isinstance(here, BaseModel) else None
        kept.append(step)
    return tuple(kept), here


def join(root: str, loc: Sequence[str | int]) -> str:
    """`workloads.chat.schedule[0].start`."""
    path = root
    for step in loc:
        if isinstance(step, int):
            path += f"[{step}]"
        else:
            path += f".{step}" if path else step
    return path
