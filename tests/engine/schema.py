"""What a resource type accepts and returns, recovered from the installed Python SDK.

The SDK's generated classes carry each input's wire name, type and whether it is required, nested
blocks included, so no provider plugin is needed. A misspelt key in a dict argument passes the SDK;
here it is a problem. What a change of an input does is not in the SDK: replacement.py.
"""

from __future__ import annotations

import collections.abc
import difflib
import enum
import inspect
import json
import re
import sys
import typing
from functools import cache
from importlib import import_module, util
from pathlib import Path
from typing import Any, cast

import pulumi
from tests.engine.wire import SECRET, SIGNATURE, Props, is_unknown

# Private to the SDK, and the only place that knows wire names; a test reads a known type with it.
_sdk: Any = import_module("pulumi._types")

Problem = tuple[str, str]  # property path, reason


@cache
def _tokens(package: str) -> dict[str, tuple[str, str]]:
    found = util.find_spec(f"pulumi_{package}")
    assert found, f"the SDK pulumi_{package} is not installed"
    source = Path(str(found.origin)).read_text(encoding="utf-8")
    listed = re.search(r'resource_modules="""(.*?)"""', source, re.DOTALL)
    assert listed, f"pulumi_{package} no longer lists its modules"
    return {
        token: (module["fqn"], name)
        for module in json.loads(listed[1])
        for token, name in module["classes"].items()
    }


@cache
def _classes(token: str) -> tuple[Any, Any]:
    """The resource class, and the class of its arguments or None. KeyError: no such type."""
    if token.startswith("pulumi:providers:"):
        package = token.rsplit(":", 1)[1]
        provider = import_module(f"pulumi_{package}.provider")
        return provider.Provider, provider.ProviderArgs
    module, name = _tokens(token.split(":", 1)[0])[token]
    cls = getattr(import_module(module), name)
    place = sys.modules[cls.__module__]
    # `InitArgs` where a nested block took the plain name first.
    return cls, getattr(place, f"{name}InitArgs", None) or getattr(place, f"{name}Args", None)


@cache
def _fields(args: Any) -> dict[str, tuple[Any, bool]]:
    """Of each input by its wire name: its type, and whether it is required."""
    # `pulumi.Input` names Output as a text, which the generated modules do not import.
    names_of_the_sdk = {"Output": pulumi.Output, "T": Any}
    hints = typing.get_type_hints(
        args.__init__, vars(sys.modules[args.__module__]), names_of_the_sdk
    )
    parameters = inspect.signature(args.__init__).parameters
    types: dict[str, Any] = _sdk.input_type_types(args)
    names: dict[str, str] = _sdk.input_type_py_to_pulumi_names(args)
    return {
        wire: (
            hints.get(name) or types.get(name),
            name in parameters and parameters[name].default is inspect.Parameter.empty,
        )
        for name, wire in names.items()
    }


@cache
def inputs(token: str) -> frozenset[str]:
    """The wire names of a type's inputs. KeyError: the SDK has no such type."""
    _, args = _classes(token)
    return frozenset(_fields(args)) if args else frozenset()


@cache
def outputs(token: str) -> frozenset[str]:
    """The wire names of everything a type returns; the inputs are among them."""
    return frozenset(cast(dict[str, Any], _sdk.resource_types(_classes(token)[0])))


def example(token: str) -> Props:
    """A value for every input, nested ones included, of the right kind and no other sense."""
    _, args = _classes(token)
    return {name: _any_of(kind) for name, (kind, _) in _fields(args).items()}


def _any_of(kind: Any) -> Any:
    for found in _alternatives(kind):
        origin, parts = typing.get_origin(found), typing.get_args(found)
        if origin in (collections.abc.Sequence, list):
            return [_any_of(parts[0])]
        if origin in (collections.abc.Mapping, dict):
            return {"key": _any_of(parts[1])}
        if isinstance(found, type) and _sdk.is_input_type(found):
            return {name: _any_of(inner) for name, (inner, _) in _fields(found).items()}
        if found in WORDS:
            return {bool: True, int: 1, float: 1.5}.get(found, "text")
    return "text"


def returnable(token: str, values: Props) -> Props:
    """Those of a description that the type returns, in a form that the SDK can read: a program
    stumbles over a list of maps where its class says texts."""
    kinds: dict[str, Any] = _sdk.resource_types(_classes(token)[0])
    return {k: v for k, v in values.items() if k in kinds and _fits(kinds[k], v)}


def _fits(kind: Any, value: Any) -> bool:
    if value is None or is_unknown(value):
        return True
    origin, parts = typing.get_origin(kind), typing.get_args(kind)
    if origin is typing.Union:
        return any(_fits(part, value) for part in parts if part is not type(None))
    if origin in (collections.abc.Sequence, list):
        items = cast(list[Any], value)
        return isinstance(value, list) and all(_fits(parts[0], item) for item in items)
    if origin in (collections.abc.Mapping, dict) or (
        isinstance(kind, type) and _sdk.is_output_type(kind)
    ):
        return isinstance(value, dict)
    return kind not in WORDS or _is_a(kind, value)


def check(token: str, values: Props) -> list[Problem]:
    """Every input that is unknown, missing or of the wrong kind."""
    try:
        _, args = _classes(token)
    except KeyError:
        return [("", f"the installed SDK has no resource type {token}")]
    return list(_object(args, values, "")) if args else []


def _object(cls: Any, values: Props, path: str) -> collections.abc.Iterator[Problem]:
    fields = _fields(cls)
    for name, value in values.items():
        if name.startswith("__"):
            continue
        if name in fields:
            yield from _value(fields[name][0], value, path + name)
            continue
        near = difflib.get_close_matches(name, fields, 1)
        hint = f"; did you mean {near[0]!r}?" if near else ""
        yield path + name, f"unknown property of {cls.__name__}{hint}"
    for name, (_, required) in fields.items():
        if required and name not in values:
            yield path + name, f"missing required property of {cls.__name__}"


def _value(kind: Any, value: Any, path: str) -> list[Problem]:
    """The problems under the alternative of `kind` that fits best; none when one fits."""
    if value is None or is_unknown(value):
        return []
    if isinstance(value, dict) and SIGNATURE in value:
        marked = cast(Props, value)
        secret = marked[SIGNATURE] == SECRET
        return _value(kind, marked.get("value"), path) if secret else []
    tried = [list(_one(alternative, value, path)) for alternative in _alternatives(kind)]
    return min(tried, key=len) if tried else []


def _alternatives(kind: Any) -> list[Any]:
    """What is left of Optional[Input[...]] without None, Awaitable, Output and forward names."""
    if isinstance(kind, str | typing.ForwardRef) or kind is type(None):
        return []
    origin: Any = typing.get_origin(kind)
    if origin is collections.abc.Awaitable or getattr(origin, "__name__", "") == "Output":
        return []
    # An enumeration always stands beside `str` in a union, which takes any text, as the SDK does.
    if isinstance(kind, type) and issubclass(kind, enum.Enum):
        return []
    if origin is typing.Union:
        return [found for part in typing.get_args(kind) for found in _alternatives(part)]
    return [kind]


def _one(kind: Any, value: Any, path: str) -> collections.abc.Iterator[Problem]:
    origin, parts = typing.get_origin(kind), typing.get_args(kind)
    if origin in (collections.abc.Sequence, list):
        if not isinstance(value, list):
            yield path, f"expected a list, got {value!r}"
            return
        for index, item in enumerate(cast(list[Any], value)):
            yield from _value(parts[0], item, f"{path}[{index}]")
    elif origin in (collections.abc.Mapping, dict):
        if not isinstance(value, dict):
            yield path, f"expected a map, got {value!r}"
            return
        for key, item in cast(Props, value).items():
            yield from _value(parts[1], item, f"{path}.{key}")
    elif isinstance(kind, type) and _sdk.is_input_type(kind):
        if isinstance(value, dict):
            yield from _object(kind, cast(Props, value), f"{path}.")
        else:
            yield path, f"expected an object ({kind.__name__}), got {value!r}"
    elif typing.is_typeddict(kind):
        yield path, "the typed dict is decided by its class of arguments beside it in the union"
    elif not _is_a(kind, value):
        yield path, f"expected {WORDS[kind]}, got {value!r}"


WORDS: dict[Any, str] = {bool: "a boolean", int: "a whole number", float: "a number", str: "a text"}


def _is_a(kind: Any, value: Any) -> bool:
    if kind is bool:
        return isinstance(value, bool)
    if kind in (int, float):
        whole = kind is float or isinstance(value, int)
        return isinstance(value, int | float) and not isinstance(value, bool) and whole
    return kind is not str or isinstance(value, str)
