"""Files that the plan writes for the machine: a table of keys, read with every problem at once.

A table maps a key's path to what its value has to be and what it means: documentation, reader and
test in one. A key that is not in the table is a warning, never an error: an older program has to be
able to read a newer plan. A value of the wrong kind is an error.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from gputier.node import WrongInput, plain, versions

FRAMEWORKS = {"torch": "torch", "pytorch": "torch", "tensorflow": "tensorflow", "jax": "jax"}
FABRICS = ("none", "efa", "gpudirect-tcpx", "gpudirect-tcpxo", "roce", "infiniband", "erdma")
GATES = ("off", "report", "enforce")
DEPTHS = ("quick", "standard", "burn-in")


class BadFields(WrongInput):
    """The file cannot be used; `problems` says where and why, one line each. `values` is what
    could be read all the same."""

    def __init__(
        self, what: str, problems: Sequence[str], values: Mapping[str, Any] | None = None
    ) -> None:
        super().__init__(*(f"{what}: {problem}" for problem in problems))
        self.problems = tuple(problems)
        self.values = dict(values or {})


class Kind(NamedTuple):
    """What a value has to be: a phrase for the message, and a reader that raises ValueError."""

    phrase: str
    read: Callable[[Any], Any]


class Values:
    """The values by path; a getter gives None for one that is absent. Never changes."""

    def __init__(self, values: Mapping[str, Any], warnings: Sequence[str] = ()) -> None:
        self._values = dict(values)
        self.warnings = tuple(warnings)

    def has(self, path: str) -> bool:
        """Whether the key, or any key of the section, is there."""
        return path in self._values or any(key.startswith(f"{path}.") for key in self._values)

    def number(self, path: str) -> float | None:
        value = self._values.get(path)
        return None if value is None else float(value)

    def count(self, path: str) -> int | None:
        value = self._values.get(path)
        return None if value is None else int(value)

    def text(self, path: str) -> str | None:
        value = self._values.get(path)
        return None if value is None else str(value)

    def texts(self, path: str) -> tuple[str, ...]:
        return tuple(self._values.get(path, ()))

    def flag(self, path: str) -> bool:
        """Whether it is there and true."""
        return self._values.get(path) is True

    def table(self, path: str) -> dict[str, Any]:
        """A map that is one value: limits by name, variables by name."""
        return dict(self._values.get(path, {}))


def _number(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise ValueError
    if not 0 <= value < math.inf:  # false for NaN too
        raise ValueError
    return float(value)


def _positive(value: Any) -> float:
    number = _number(value)
    if number <= 0:
        raise ValueError
    return number


def _count(value: Any) -> int:
    number = _number(value)
    if number != int(number):
        raise ValueError
    return int(number)


def _port(value: Any) -> int:
    number = _count(value)
    if not 1 <= number <= 65535:
        raise ValueError
    return number


def _flag(value: Any) -> bool:
    if not isinstance(value, bool):
        raise ValueError
    return value


def _text(value: Any) -> str:
    if not isinstance(value, str) or not value.strip():
        raise ValueError
    return value.strip()


def _script(value: Any) -> str:
    """As it was written: what a shell reads must not be trimmed."""
    _text(value)
    return str(value)


def _path(value: Any) -> str:
    text = _text(value)
    if not text.startswith("/"):
        raise ValueError
    return text


def _version(value: Any) -> str:
    text = str(value) if isinstance(value, (int, float)) and not isinstance(value, bool) else value
    if not isinstance(text, str) or not versions.parse(text):
        raise ValueError
    return text.strip()


def _sequence(value: Any) -> list[Any]:
    items = plain.sequence(value)
    if items is None:
        raise ValueError
    return items


def _texts(value: Any) -> tuple[str, ...]:
    return tuple(_text(item) for item in _sequence(value))


def _arguments(value: Any) -> tuple[str, ...]:
    """An argument of a command may be empty or blank, and is kept as it is."""
    items = _sequence(value)
    if not all(isinstance(item, str) for item in items):
        raise ValueError
    return tuple(items)


def _ports(value: Any) -> tuple[int, ...]:
    return tuple(_port(item) for item in _sequence(value))


def _mapping(value: Any) -> dict[str, Any]:
    items = plain.mapping(value)
    if items is None:
        raise ValueError
    return items


def _seconds(value: Any) -> dict[str, float]:
    return {_text(name): _positive(seconds) for name, seconds in _mapping(value).items()}


def _variables(value: Any) -> dict[str, str]:
    found: dict[str, str] = {}
    for name, text in _mapping(value).items():
        if not re.match(r"^[A-Za-z_]\w*$", name) or not isinstance(text, str) or "\n" in text:
            raise ValueError
        found[name] = text
    return found


def one_of(words: Sequence[str]) -> Kind:
    """One of these words."""

    def read(value: Any) -> str:
        if value not in words:
            raise ValueError
        return str(value)

    return Kind("one of " + ", ".join(words), read)


def _framework(value: Any) -> str:
    name = FRAMEWORKS.get(_text(value).lower())
    if name is None:
        raise ValueError
    return name


def _matching(pattern: str) -> Callable[[Any], str]:
    def read(value: Any) -> str:
        text = _text(value)
        if not re.match(f"^(?:{pattern})$", text):
            raise ValueError
        return text

    return read


NUMBER = Kind("a number that is not negative", _number)
COUNT = Kind("a whole number that is not negative", _count)
SECONDS = Kind("a number of seconds above 0", _positive)
PORT = Kind("a port, 1 to 65535", _port)
FLAG = Kind("true or false", _flag)
TEXT = Kind("text", _text)
SCRIPT = Kind("text for a shell", _script)
PATH = Kind("an absolute path", _path)
URL = Kind("an address that starts with http:// or https://", _matching(r"https?://\S+"))
VERSION = Kind("a version such as 580.95.05", _version)
BRANCH = Kind("a driver branch such as 580", _matching(r"\d{3,4}"))
SHA256 = Kind("64 hexadecimal digits", _matching(r"[0-9a-f]{64}"))
TEXTS = Kind("a list of texts", _texts)
ARGUMENTS = Kind("a list of texts, each an argument as it is", _arguments)
PORTS = Kind("a list of ports", _ports)
OBJECT = Kind("an object", _mapping)
VARIABLES = Kind("a map of variable name to text of one line", _variables)
LIMITS = Kind("a map of check name to seconds", _seconds)
STAGE_LIMITS = Kind("a map of stage name to seconds", _seconds)
FRAMEWORK = Kind("one of torch, tensorflow, jax", _framework)


def read(
    what: str, text: str, table: Mapping[str, tuple[Kind, str]]
) -> tuple[dict[str, Any], list[str]]:
    """The values by path and the warnings of a JSON text. Raises BadFields with every problem."""
    try:
        data = plain.mapping(json.loads(text))
    except (ValueError, RecursionError) as error:
        raise BadFields(what, [f"not JSON: {error}"]) from None
    if data is None:
        raise BadFields(what, ["the file must hold one JSON object"])
    found = _Walk(table)
    found.walk("", data)
    if found.problems:
        raise BadFields(what, found.problems, found.values)
    return found.values, found.warnings


def sections(paths: Iterable[str]) -> set[str]:
    """Every path that other paths lie below."""
    found: set[str] = set()
    for path in paths:
        while "." in path:
            path = path.rsplit(".", 1)[0]
            found.add(path)
    return found


class _Walk:
    """One pass over a file: what it holds, what is wrong, what is not known."""

    def __init__(self, table: Mapping[str, tuple[Kind, str]]) -> None:
        self.table = table
        self.sections = sections(table)
        self.values: dict[str, Any] = {}
        self.problems: list[str] = []
        self.warnings: list[str] = []

    def walk(self, prefix: str, data: Mapping[str, Any]) -> None:
        for key, value in data.items():
            path = f"{prefix}{key}"
            if value is None:
                continue
            if path in self.table:
                self._value(path, value)
            elif path in self.sections:
                section = plain.mapping(value)
                if section is None:
                    self.problems.append(f"{path}: {json.dumps(value)} is not an object")
                else:
                    self.walk(f"{path}.", section)
            else:
                self.warnings.append(
                    f"`{path}` is not a key that this version reads; it was ignored"
                )

    def _value(self, path: str, value: Any) -> None:
        kind = self.table[path][0]
        try:
            self.values[path] = kind.read(value)
        except ValueError:
            self.problems.append(f"{path}: {json.dumps(value)} is not {kind.phrase}")
