"""Inputs as the program names them -> a request as boto3 takes it, guided by botocore's own model.

A property goes to the member of the same name (`cidrBlock` to CidrBlock); a resource names the
exceptions. One that finds no member is refused, so nothing is silently left out. botocore then
checks the result, in a preview too, where values that are not known yet pass.
"""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Iterable, Mapping
from functools import cache
from importlib import import_module
from typing import Any, cast

from tests.engine.provider import Refused
from tests.engine.wire import UNKNOWN, Props, is_unknown

_botocore: Any = import_module("botocore")
_session: Any = import_module("botocore.session")
_validate: Any = import_module("botocore.validate")


@cache
def model(service: str) -> Any:
    """botocore's model of a service: every operation with the shapes of its request and answer."""
    return _session.get_session().get_service_model(service)


def method(client: Any, operation: str) -> Any:
    """boto3's method for an operation: CreateVpc is `create_vpc`."""
    return getattr(client, _botocore.xform_name(operation))


def shape(service: str, operation: str) -> Any:
    return model(service).operation_model(operation).input_shape


def member(names: Iterable[str], wanted: str) -> str | None:
    """The member that a property means: the same name whatever the case, singular or plural."""
    by_name = {name.lower(): name for name in names}
    singular = wanted[:-1] if wanted.endswith("s") else wanted
    for candidate in (wanted, f"{wanted}s", singular):
        if found := by_name.get(candidate.lower()):
            return found
    return None


class Translation:
    """One request's: its operation, for the refusals, and the names that differ, by input path."""

    def __init__(self, operation: str, renames: Mapping[str, str]) -> None:
        self._operation, self._renames = operation, renames

    def structure(self, form: Any, values: Props, path: str = "") -> Props:
        found: Props = {}
        for name, value in values.items():
            if value is None or name.startswith("__"):
                continue
            here = f"{path}{name}"
            target = self._target(form, here, name)
            if not target:
                raise Refused(here, f"{self._operation}: {form.name} has no member for it")
            found[target] = self.value(form.members[target], value, f"{here}.")
        return found

    def _target(self, form: Any, path: str, name: str) -> str | None:
        plain = re.sub(r"\[\d+\]", "", path)
        for renamed in (self._renames.get(plain), self._renames.get(name)):
            if renamed and renamed in form.members:
                return renamed
        return member(form.members, name)

    def value(self, form: Any, value: Any, path: str) -> Any:
        if value is None or is_unknown(value):
            return value
        convert = getattr(self, f"_{form.type_name}", None)
        return convert(form, value, path) if convert else _scalar(form.type_name, value)

    def _structure(self, form: Any, value: Any, path: str) -> Any:
        # A block of at most one element may arrive as a list.
        if isinstance(value, list):
            several = cast(list[Any], value)
            value = several[0] if several else {}
        if not isinstance(value, dict):
            raise Refused(path.rstrip("."), f"{self._operation}: expected the parts of {form.name}")
        return self.structure(form, cast(Props, value), path)

    def _list(self, form: Any, value: Any, path: str) -> Any:
        if isinstance(value, dict) and (key := _key_of_pairs(form.member)):
            return [{key: k, "Value": v} for k, v in cast(Props, value).items()]
        items: list[Any] = cast(list[Any], value) if isinstance(value, list) else [value]
        at = path.rstrip(".")
        return [self.value(form.member, v, f"{at}[{i}].") for i, v in enumerate(items)]

    def _map(self, form: Any, value: Any, path: str) -> Any:
        return {k: self.value(form.value, v, f"{path}{k}.") for k, v in cast(Props, value).items()}


def _key_of_pairs(form: Any) -> str:
    """Tags and dimensions are maps in a program and lists of pairs on the wire: the key's name."""
    members = set(getattr(form, "members", ()))
    keys = [key for key in ("Key", "Name", "TagKey") if {key, "Value"} <= members]
    return keys[0] if keys else ""


def _scalar(kind: str, value: Any) -> Any:
    """The provider spells some booleans and numbers as texts, and lists of ids as lists."""
    if kind == "boolean":
        return {"true": True, "false": False}.get(value, value) if isinstance(value, str) else value
    if kind in ("integer", "long"):
        return int(value) if isinstance(value, str) and re.fullmatch(r"-?\d+", value) else value
    if kind in ("float", "double"):
        return float(value)
    if kind != "string":
        return value
    if isinstance(value, list):
        several = cast(list[Any], value)
        return UNKNOWN if any(map(is_unknown, several)) else ",".join(several)
    if isinstance(value, bool):
        return str(value).lower()
    return json.dumps(value) if isinstance(value, dict) else str(value)


class _Validator(_validate.ParamValidator):
    """botocore's own, which leaves enumerations, lengths, ranges and patterns to the cloud."""

    def __init__(self) -> None:
        self.more: list[str] = []

    def _validate(self, params: Any, shape: Any, errors: Any, name: str) -> None:
        if is_unknown(params):
            return
        _validate.ParamValidator._validate(self, params, shape, errors, name)
        self.more += [f"{why} ({name.lstrip('.')})" for why in _limits(params, shape)]


def _limits(value: Any, form: Any) -> Iterable[str]:
    if isinstance(value, str):
        allowed: list[str] = getattr(form, "enum", None) or []
        if allowed and value not in allowed:
            near = difflib.get_close_matches(value, allowed, 1)
            hint = f"; did you mean {near[0]!r}?" if near else ""
            yield f"{value!r} is not a value of {form.name}{hint}"
        if (pattern := form.metadata.get("pattern")) and _misses(pattern, value):
            yield f"{value!r} does not match {pattern!r} of {form.name}"
    most = form.metadata.get("max")
    if most is not None and not isinstance(value, bool):
        size = value if isinstance(value, int | float) else len(value)
        if size > most:
            yield f"{size} is more than the {most} that {form.name} takes"


def _misses(pattern: str, value: str) -> bool:
    """The patterns are Java's; one that Python cannot read is left to the cloud."""
    try:
        return re.fullmatch(pattern, value) is None
    except re.error:
        return False


def problems(request: Props, form: Any) -> list[str]:
    """What botocore and the model find wrong with a request."""
    validator = _Validator()
    errors = validator.validate(request, form)
    report: str = errors.generate_report()
    return [*(report.splitlines() if errors.has_errors() else ()), *validator.more]
