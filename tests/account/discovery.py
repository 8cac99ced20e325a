"""Google's own description of its APIs, which every request and answer here is held against.

google-api-python-client ships the discovery documents. A request has to be one that a document
describes: path, query, method, body; an answer may have no field that the document does not know.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from functools import cache
from importlib.resources import files
from typing import Any, cast
from urllib.parse import parse_qsl, urlsplit

#: By where the API begins. Two versions of one service are two APIs.
DOCUMENTS = {
    "https://cloudbilling.googleapis.com/v1/": "cloudbilling.v1",
    "https://billingbudgets.googleapis.com/v1/": "billingbudgets.v1",
    "https://compute.googleapis.com/compute/v1/": "compute.v1",
    "https://logging.googleapis.com/v2/": "logging.v2",
    "https://monitoring.googleapis.com/v3/": "monitoring.v3",
    "https://cloudresourcemanager.googleapis.com/v3/": "cloudresourcemanager.v3",
    "https://serviceusage.googleapis.com/v1/": "serviceusage.v1",
    "https://serviceusage.googleapis.com/v1beta1/": "serviceusage.v1beta1",
    "https://storage.googleapis.com/storage/v1/": "storage.v1",
}
#: Names that arrive although the document's list stops before them: quotas of newer GPUs
#: (compute.v1, revision 20261106, ends at H100).
OPEN_ENUMS = {("Quota", "metric")}
_TYPES: dict[str, tuple[type, ...]] = {
    "string": (str,),
    "integer": (int,),
    "number": (int, float),
    "boolean": (bool,),
    "array": (list,),
    "object": (dict,),
}

Method = Mapping[str, Any]


class Undescribed(AssertionError):
    """A request or an answer that Google does not describe."""


@cache
def document(name: str) -> Mapping[str, Any]:
    folder = files("googleapiclient.discovery_cache.documents")
    return json.loads((folder / f"{name}.json").read_text("utf-8"))


def check(method: str, url: str, body: bytes | None, answer: Any) -> str:
    """The id of the method (`compute.regions.get`). Raises `Undescribed`."""
    api, described = find(method, url)
    _check_query(described, url)
    asked = described.get("request")
    if (asked is None) != (body is None):
        raise Undescribed(f"{described['id']} takes {'no' if asked is None else 'a'} body")
    if asked is not None and body is not None:
        fits(api, asked["$ref"], json.loads(body))
    fits(api, described["response"]["$ref"], answer)
    return str(described["id"])


def find(method: str, url: str) -> tuple[Mapping[str, Any], Method]:
    """The API and the method that a request is for."""
    whole = url.partition("?")[0]
    base = next((one for one in DOCUMENTS if whole.startswith(one)), None)
    if base is None:
        raise Undescribed(f"no API begins {url}")
    api = document(DOCUMENTS[base])
    root = api["rootUrl"] + api["servicePath"]
    assert base.startswith(root.replace("www.", "compute.")), (base, root)
    rest = whole[len(api["rootUrl"] + api["servicePath"]) :]
    for pattern, one in _patterns(DOCUMENTS[base]):
        if one["httpMethod"] == method and _matches(pattern, one, rest):
            return api, one
    raise Undescribed(f"no method of {api['id']} is {method} {rest}")


def _methods(node: Mapping[str, Any]) -> Iterator[Method]:
    yield from node.get("methods", {}).values()
    for below in node.get("resources", {}).values():
        yield from _methods(below)


@cache
def _patterns(name: str) -> list[tuple[re.Pattern[str], Method]]:
    """Every method, with what its paths look like."""
    return [
        (re.compile("".join(map(_part, re.split(r"(\{[^}]+\})", one["path"])))), one)
        for one in _methods(document(name))
    ]


def _matches(pattern: re.Pattern[str], method: Method, path: str) -> bool:
    found = pattern.fullmatch(path)
    if found is None:
        return False
    names = re.findall(r"\{\+?([^}]+)\}", method["path"])
    for name, value in zip(names, found.groups(), strict=True):
        wanted = method["parameters"][name].get("pattern")
        if wanted and not re.search(wanted, value):
            return False
    return True


def _part(part: str) -> str:
    if not part.startswith("{"):
        return re.escape(part)
    return "(.+)" if part.startswith("{+") else "([^/]+)"


def _check_query(method: Method, url: str) -> None:
    known = {
        name: one for name, one in method["parameters"].items() if one.get("location") == "query"
    }
    # No `fields`: what it leaves out of an answer is not checked.
    for name, value in parse_qsl(urlsplit(url).query, strict_parsing=bool(urlsplit(url).query)):
        if name not in known:
            raise Undescribed(f"{method['id']} has no parameter {name}")
        values = known[name].get("enum")
        if values and value not in values:
            raise Undescribed(f"{method['id']}: {name} is {value}, not one of {values}")
    for name, one in known.items():
        if one.get("required") and f"{name}=" not in urlsplit(url).query:
            raise Undescribed(f"{method['id']} needs {name}")


def fits(api: Mapping[str, Any], schema: str, value: Any) -> None:
    """Whether a value is one of a schema; unknown fields are not."""
    _fits(api, {"$ref": schema}, value, (schema, ""))


def _fits(
    api: Mapping[str, Any], schema: Mapping[str, Any], value: Any, where: tuple[str, str]
) -> None:
    if "$ref" in schema:
        return _fits(api, api["schemas"][schema["$ref"]], value, (schema["$ref"], ""))
    kind = schema.get("type", "any")
    if kind != "any" and not isinstance(value, _TYPES[kind]):
        raise Undescribed(f"{where[0]}.{where[1]} is {value!r}, not a {kind}")
    if "enum" in schema and value not in schema["enum"] and where not in OPEN_ENUMS:
        raise Undescribed(f"{where[0]}.{where[1]} is {value!r}, not one of {schema['enum']}")
    if kind == "array":
        for item in value:
            _fits(api, schema["items"], item, where)
    elif kind == "object":
        for name, item in cast("dict[str, Any]", value).items():
            below = schema.get("properties", {}).get(name) or schema.get("additionalProperties")
            if below is None:
                raise Undescribed(f"{where[0]} has no field {name}")
            _fits(api, below, item, (where[0], name))
    return None
