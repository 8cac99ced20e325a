"""Google's own discovery documents: what each method of an API takes, and what a body may hold.

The documents come with google-api-python-client, whose own checks stop at a request's path and
query. Bodies are checked here: names, types, enumerations, patterns and formats.
"""

from __future__ import annotations

import base64
import binascii
import difflib
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib import util
from pathlib import Path
from typing import Any, cast

from tests.engine.wire import Props, is_unknown

# The documents whose methods the stand-in may call; beta's only for what v1 lacks.
NAMES = (
    "billingbudgets.v1",
    "cloudkms.v1",
    "cloudresourcemanager.v1",
    "cloudscheduler.v1",
    "compute.v1",
    "eventarc.v1",
    "iam.v1",
    "logging.v2",
    "monitoring.v1",
    "monitoring.v3",
    "pubsub.v1",
    "serviceusage.v1",
    "storage.v1",
    "workflows.v1",
)
BETA = "compute.beta"


@cache
def document(name: str) -> Props:
    found = util.find_spec("googleapiclient")
    assert found, "google-api-python-client is not installed"
    folder = Path(str(found.origin)).parent / "discovery_cache" / "documents"
    return json.loads((folder / f"{name}.json").read_text(encoding="utf-8"))


@dataclass(frozen=True, slots=True)
class Method:
    """A method of an API, such as compute.networks.insert."""

    id: str
    document: str
    path: str
    parameters: Mapping[str, Props] = field(repr=False)
    body: str  # the schema of the request's body; "" for none

    def url(self, parameters: Mapping[str, Any]) -> str:
        """The path with its parameters filled in, below the service's own."""

        def value(found: re.Match[str]) -> str:
            return str(parameters[found[1].lstrip("+")])

        return re.sub(r"\{(\+?\w+)\}", value, self.path)

    def problems(self, parameters: Mapping[str, Any]) -> Iterator[str]:
        """What the document finds wrong with the parameters of path and query."""
        for name, value in parameters.items():
            if name not in self.parameters:
                near = difflib.get_close_matches(name, self.parameters, 1)
                yield f"{self.id} has no parameter {name!r}{_near(near)}"
            else:
                found = check(self.document, self.parameters[name], value, name)
                yield from (f"{self.id}: {path}: {why}" for path, why in found)
        for name, about in self.parameters.items():
            if about.get("required") and parameters.get(name) is None:
                yield f"{self.id} needs the parameter {name!r}"


def _near(names: list[str]) -> str:
    return f"; did you mean {names[0]!r}?" if names else ""


@cache
def _methods() -> dict[str, Method]:
    return {m.id: m for name in NAMES for m in _of(name, document(name)["resources"])}


def _of(name: str, resources: Props) -> Iterator[Method]:
    for resource in resources.values():
        for method in resource.get("methods", {}).values():
            yield Method(
                id=method["id"],
                document=name,
                path=method["path"],
                parameters=method.get("parameters", {}),
                body=method.get("request", {}).get("$ref", ""),
            )
        yield from _of(name, resource.get("resources", {}))


def method(id_: str) -> Method:
    """KeyError: none of the documents has such a method."""
    if id_ not in _methods():
        near = difflib.get_close_matches(id_, _methods(), 1)
        raise KeyError(f"no document has the method {id_}{_near(near)}")
    return _methods()[id_]


def has_method(id_: str) -> bool:
    return id_ in _methods()


def schema(document_name: str, name: str) -> Props:
    return document(document_name)["schemas"][name]


def resolved(document_name: str, form: Props) -> Props:
    """The schema that a `$ref` means."""
    return schema(document_name, form["$ref"]) if "$ref" in form else form


def members(document_name: str, form: Props, *, beta: bool = False) -> Props:
    """The members of an object; with `beta` those too that only the beta document has."""
    form = resolved(document_name, form)
    found: Props = form.get("properties", {})
    if beta and document_name == "compute.v1" and form.get("id"):
        newer: Props = document(BETA)["schemas"].get(form["id"], {}).get("properties", {})
        return {**newer, **found}
    return found


def only_in_beta(schema_name: str, member: str) -> bool:
    stable: Props = schema("compute.v1", schema_name) if _stable(schema_name) else {}
    newer: Props = document(BETA)["schemas"].get(schema_name, {})
    return member in newer.get("properties", {}) and member not in stable.get("properties", {})


def _stable(schema_name: str) -> bool:
    return schema_name in document("compute.v1")["schemas"]


def check(
    document_name: str,
    form: Props,
    value: Any,
    path: str = "",
    beta: frozenset[str] = frozenset(),
) -> Iterator[tuple[str, str]]:
    """Every place of `value` that the document does not allow, as (path, reason). `beta` names the
    members, such as `GroupPlacementPolicy.maxDistance`, that may be the beta document's alone."""
    form = _either(document_name, form)
    if value is None or is_unknown(value):
        return
    kind = form.get("type")
    if kind == "object":
        yield from _object(document_name, form, value, path, beta)
    elif kind == "array" or form.get("repeated"):
        items = form.get("items", {**form, "repeated": False})
        if not isinstance(value, list):
            yield path, f"the API expects a list, got {value!r}"
            return
        for index, item in enumerate(cast(list[Any], value)):
            yield from check(document_name, items, item, f"{path}[{index}]", beta)
    elif why := _scalar(form, value):
        yield path, why


def _either(document_name: str, form: Props) -> Props:
    """A schema of the beta document alone, under a member of it."""
    if "$ref" not in form:
        return form
    known: Props = document(document_name)["schemas"]
    return known.get(form["$ref"]) or document(BETA)["schemas"][form["$ref"]]


def _object(
    document_name: str, form: Props, value: Any, path: str, beta: frozenset[str]
) -> Iterator[tuple[str, str]]:
    name = form.get("id", "object")
    if not isinstance(value, dict):
        yield path, f"the API expects the parts of {name}, got {value!r}"
        return
    found, at = cast(Props, value), f"{path}." if path else ""
    if "additionalProperties" in form:
        for key, item in found.items():
            yield from check(document_name, form["additionalProperties"], item, f"{at}{key}", beta)
        return
    known: Props = form.get("properties", {})
    for key, item in found.items():
        if key in known:
            if known[key].get("readOnly"):
                yield f"{at}{key}", f"{name} has it as an output only"
            yield from check(document_name, known[key], item, f"{at}{key}", beta)
        elif only_in_beta(name, key):
            if f"{name}.{key}" not in beta:
                yield f"{at}{key}", f"only the beta document has it as a member of {name}"
            newer: Props = document(BETA)["schemas"][name]["properties"][key]
            yield from check(BETA, newer, item, f"{at}{key}", beta)
        else:
            near = difflib.get_close_matches(key, known, 1)
            yield f"{at}{key}", f"{name} has no such member{_near(near)}"


def _scalar(form: Props, value: Any) -> str:
    kind, shape = form.get("type"), form.get("format", "")
    if kind == "any":
        return ""
    if kind == "boolean":
        return "" if isinstance(value, bool) else f"the API expects a boolean, got {value!r}"
    if kind in ("integer", "number"):
        if isinstance(value, bool) or not isinstance(value, int | float):
            return f"the API expects a number, got {value!r}"
        if kind == "integer" and not isinstance(value, int):
            return f"the API expects a whole number, got {value!r}"
        return _range(form, shape, value)
    if kind != "string":
        return f"the stand-in knows no type {kind!r} of a document"
    if not isinstance(value, str):
        return f"the API expects a text, got {value!r}"
    allowed: list[str] = form.get("enum", [])
    if allowed and value not in allowed:
        near = difflib.get_close_matches(value, allowed, 1)
        return f"{value!r} is not one of {', '.join(allowed)}{_near(near)}"
    if "pattern" in form and not _matches(form["pattern"], value):
        return f"{value!r} does not match {form['pattern']}"
    if shape in FORMATS and not FORMATS[shape](value):
        return f"{value!r} is no {shape}"
    return ""


def _range(form: Props, shape: str, value: float) -> str:
    least, most = {
        "int32": (-(2**31), 2**31 - 1),
        "uint32": (0, 2**32 - 1),
    }.get(shape, (float("-inf"), float("inf")))
    least = float(form.get("minimum", least))
    most = float(form.get("maximum", most))
    return "" if least <= value <= most else f"{value} is not from {least:g} to {most:g}"


def _matches(pattern: str, value: str) -> bool:
    try:
        return re.fullmatch(pattern, value) is not None
    except re.error:
        return True  # a pattern that Python cannot read is left to Google


def _is_base64(value: str) -> bool:
    try:
        base64.b64decode(value, validate=True)
    except binascii.Error:
        return False
    return True


def _like(pattern: str) -> Any:
    return re.compile(pattern).fullmatch


FORMATS: Mapping[str, Any] = {
    "byte": _is_base64,
    "int64": _like(r"-?\d+"),
    "uint64": _like(r"\d+"),
    "google-duration": _like(r"-?\d+(\.\d{1,9})?s"),
    "google-datetime": _like(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)"),
    "date-time": _like(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)"),
}
