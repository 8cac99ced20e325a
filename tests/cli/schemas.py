"""The documented JSON schemas: reading them, checking a value, and printing them as a page.

The checker knows the few keywords docs/schemas.json uses and refuses any other, so that a schema
cannot promise what nobody checks.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, cast

Schema = Mapping[str, Any]

KINDS: dict[str, Any] = {
    "object": dict,
    "array": list,
    "string": str,
    "number": (int, float),
    "integer": int,
    "boolean": bool,
    "null": type(None),
}
KEYWORDS = {
    "$ref", "type", "description", "properties", "required", "additionalProperties", "items",
    "anyOf", "enum", "const", "pattern", "minimum",
}  # fmt: skip


class Schemas:
    """docs/schemas.json: `documents` by name, and what they share."""

    def __init__(self, path: Path) -> None:
        self._whole = json.loads(path.read_text(encoding="utf-8"))
        self.documents: Mapping[str, Schema] = self._whole["documents"]
        self.shared: Mapping[str, Schema] = self._whole["$defs"]

    def resolve(self, schema: Schema) -> Schema:
        """A schema with its reference followed; its own description wins."""
        reference = schema.get("$ref")
        if reference is None:
            return schema
        assert reference.startswith("#/$defs/"), reference
        target = self.shared[reference.removeprefix("#/$defs/")]
        return {**self.resolve(target), **{k: v for k, v in schema.items() if k != "$ref"}}

    def problems(self, value: object, schema: Schema, where: str = "$") -> Iterator[str]:
        """What is wrong with a value, a line each."""
        schema = self.resolve(schema)
        unknown = set(schema) - KEYWORDS
        assert not unknown, f"{where}: nobody checks {unknown}"
        if "anyOf" in schema:
            ways = [list(self.problems(value, one, where)) for one in schema["anyOf"]]
            if all(ways):
                yield min(ways, key=len)[0]
            return
        if "const" in schema and value != schema["const"]:
            yield f"{where}: {value!r} is not {schema['const']!r}"
        if "enum" in schema and value not in schema["enum"]:
            yield f"{where}: {value!r} is none of {schema['enum']}"
        if "type" in schema and not _is_of(value, schema["type"]):
            yield f"{where}: {value!r} is no {schema['type']}"
            return
        if isinstance(value, str) and not re.search(schema.get("pattern", ""), value):
            yield f"{where}: {value!r} does not match {schema['pattern']}"
        if isinstance(value, (int, float)) and value < schema.get("minimum", value):
            yield f"{where}: {value!r} is below {schema['minimum']}"
        if isinstance(value, list):
            for n, item in enumerate(cast(list[object], value)):
                yield from self.problems(item, schema.get("items", {}), f"{where}[{n}]")
        if isinstance(value, dict):
            yield from self._members(cast(dict[str, object], value), schema, where)

    def _members(self, value: dict[str, object], schema: Schema, where: str) -> Iterator[str]:
        known: Mapping[str, Schema] = schema.get("properties", {})
        for name in schema.get("required", ()):
            if name not in value:
                yield f"{where}: {name} is missing"
        more = schema.get("additionalProperties", True)
        for name, member in value.items():
            place = f"{where}.{name}"
            if name in known:
                yield from self.problems(member, known[name], place)
            elif more is False:
                yield f"{place} is not in the schema"
            elif isinstance(more, dict):
                yield from self.problems(member, cast(Schema, more), place)

    def all(self) -> Iterator[tuple[str, Schema]]:
        """Every schema, at every depth, with where it stands; references are not followed."""
        waiting: list[tuple[str, Schema]] = [
            *self.documents.items(),
            *((f"$defs/{name}", one) for name, one in self.shared.items()),
        ]
        while waiting:
            where, schema = waiting.pop()
            yield where, schema
            waiting += [(f"{where}.{n}", s) for n, s in schema.get("properties", {}).items()]
            waiting += [(f"{where}|{n}", s) for n, s in enumerate(schema.get("anyOf", ()))]
            for keyword in ("items", "additionalProperties"):
                if isinstance(schema.get(keyword), dict):
                    waiting.append((f"{where}[]", schema[keyword]))


def _is_of(value: object, wanted: str | list[str]) -> bool:
    kinds = [wanted] if isinstance(wanted, str) else wanted
    if isinstance(value, bool):
        return "boolean" in kinds
    return any(isinstance(value, KINDS[kind]) for kind in kinds)


def page(schemas: Schemas) -> str:
    """The fields of every document as Markdown."""
    lines: list[str] = []
    for name, schema in schemas.documents.items():
        lines += [f"## {name}", "", schema["description"], "", *_fields(schemas, schema)]
    lines += ["## Shared parts", ""]
    for name, schema in schemas.shared.items():
        lines += [f"### {name}", "", schema["description"], "", *_fields(schemas, schema)]
    return "\n".join(lines)


def _fields(schemas: Schemas, schema: Schema) -> list[str]:
    rows = [
        f"| `{path}` | {kind} | {text} |"
        for path, kind, text in _rows(schemas, schema.get("properties", {}), "")
    ]
    return ["| field | type | meaning |", "|---|---|---|", *rows, ""] if rows else []


def _rows(
    schemas: Schemas, properties: Mapping[str, Schema], prefix: str
) -> Iterator[tuple[str, str, str]]:
    for name, schema in properties.items():
        path = f"{prefix}{name}"
        yield path, _kind(schema), _text(schemas, schema)
        inner, mark = _inner(schema)
        yield from _rows(schemas, inner.get("properties", {}), f"{path}{mark}.")


def _inner(schema: Schema) -> tuple[Schema, str]:
    """The object that a field holds, if it is spelt out here."""
    if "anyOf" in schema:
        return _inner(schema["anyOf"][0])
    if schema.get("type") == "array":
        return _inner(schema["items"])[0], "[]"
    more = schema.get("additionalProperties")
    if isinstance(more, dict):
        return cast(Schema, more), ".*"
    return schema, ""


def _kind(schema: Schema) -> str:
    if "$ref" in schema:
        name = schema["$ref"].rpartition("/")[2]
        return f"[{name}](#{name})"
    if "anyOf" in schema:
        return " or ".join(_kind(one) for one in schema["anyOf"])
    if "const" in schema:
        return f"`{schema['const']}`"
    wanted: str | list[str] = schema["type"]
    kinds = [wanted] if isinstance(wanted, str) else wanted
    if wanted == "array":
        return f"list of {_kind(schema['items'])}"
    more = schema.get("additionalProperties")
    if isinstance(more, dict):
        return f"map to {_kind(cast(Schema, more))}"
    return " or ".join(kinds)


def _text(schemas: Schemas, schema: Schema) -> str:
    text: str = schemas.resolve(schema)["description"]
    words = [f"`{word}`" for word in schema.get("enum", ()) if word is not None]
    return (f"{text} One of {', '.join(words)}." if words else text).replace("|", "\\|")
