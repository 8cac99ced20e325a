"""Inputs as the program names them -> the body that Google documents, and a body read back.

A property goes to the member of the same name; a type names the exceptions. A property that finds
no member is refused, so nothing is silently left out. Both directions use the same names.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol, cast

from tests.engine.gcp import documents, links
from tests.engine.provider import Refused
from tests.engine.wire import UNKNOWN, Props, is_unknown

LIFTED = "."  # the block's own members go into what is around it
NOT_SENT = ""


@dataclass(frozen=True, slots=True)
class Form:
    """A property that the API has in another form: a map as a list of pairs, three lists as one.
    `sent` gets the translation and the value; `seen` also the member as it is now."""

    member: str
    sent: Callable[[Translation, Any], Any]
    seen: Callable[[Translation, Any, Any], Any]


Name = str | Form


@dataclass(frozen=True, slots=True)
class Place:
    """Where a request is about: what a name alone is completed with."""

    project: str
    region: str
    zone: str

    def complete(self, kind: str, scope: str, text: str) -> str:
        if "/" not in text:
            where = {
                "global": "global",
                "region": f"regions/{self.region}",
                "zone": f"zones/{self.zone}",
            }[scope]
            return links.link(f"projects/{self.project}/{where}/{kind}/{text}")
        text = links.path(text)
        if re.match(r"(zones|regions|global)/", text):
            text = f"projects/{self.project}/{text}"
        return links.link(text)


class Images(Protocol):
    """What knows an image by a name in short."""

    def link(self, text: str) -> str: ...

    def same(self, text: str, live: str) -> bool: ...


class Translation:
    """One request's: the document, the names that differ by input path, and the place."""

    def __init__(
        self,
        document: str,
        names: Mapping[str, Name],
        place: Place,
        *,
        whole_types: bool = True,
        images: Images | None = None,
    ) -> None:
        self.document, self.names, self.place = document, names, place
        self.whole_types = whole_types  # machine types as links, not as names
        self.images = images

    # --- to the body ---------------------------------------------------------------------------

    def body(self, form: Props, values: Props, path: str = "") -> Props:
        found: Props = {}
        self._fill(found, form, values, path)
        return found

    def _fill(self, found: Props, form: Props, values: Props, path: str) -> None:
        known = documents.members(self.document, form, beta=True)
        for key, value in values.items():
            if value is None or key.startswith("__"):
                continue
            here = f"{path}{key}"
            name = self._name(known, here, key)
            if name == NOT_SENT:
                continue
            if isinstance(name, Form):
                made = UNKNOWN if is_unknown(value) else name.sent(self, value)
                _merge(found, name.member, made)
            elif name == LIFTED:
                for block in _blocks(value):
                    self._fill(found, form, block, f"{here}.")
            else:
                self._set(found, form, name, value, here)

    def _set(self, found: Props, form: Props, name: str, value: Any, here: str) -> None:
        *around, last = name.split(".")
        for part in around:
            known = documents.members(self.document, form, beta=True)
            form, found = known[part], found.setdefault(part, {})
        known = documents.members(self.document, form, beta=True)
        if last not in known:
            owner = documents.resolved(self.document, form).get("id", "the body")
            raise Refused(here, f"{owner} has no member for it")
        made = self.value(known[last], value, f"{here}.", last)
        _merge(found, last, made)

    def _name(self, known: Props, here: str, key: str) -> Name:
        plain = re.sub(r"\[\d+\]", "", here)
        if plain in self.names:
            return self.names[plain]
        found = member(known, key)
        if not found:
            raise Refused(here, "the API's body has no member for it")
        return found

    def value(self, form: Props, value: Any, path: str, name: str = "") -> Any:
        if value is None or is_unknown(value):
            return value
        form = documents.resolved(self.document, form) if self._known(form) else form
        kind = form.get("type")
        if kind == "array":
            items = cast(list[Any], value) if isinstance(value, list) else [value]
            at = path.rstrip(".")
            return [
                self.value(form["items"], item, f"{at}[{index}].", name)
                for index, item in enumerate(items)
            ]
        if kind == "object" and "additionalProperties" not in form:
            several = cast(list[Any], value) if isinstance(value, list) else [value]
            if not several or not isinstance(several[0], dict):
                raise Refused(path.rstrip("."), "the API expects the parts of an object")
            return self.body(form, cast(Props, several[0]), path)
        if kind == "object":
            return {
                k: self.value(form["additionalProperties"], v, f"{path}{k}.")
                for k, v in value.items()
            }
        return self._completed(name, _scalar(form, value))

    def _known(self, form: Props) -> bool:
        return "$ref" not in form or form["$ref"] in documents.document(self.document)["schemas"]

    def _completed(self, name: str, value: Any) -> Any:
        if not isinstance(value, str) or not value:
            return value
        if name == "sourceImage" and self.images:
            return self.images.link(value)
        if name not in links.REFERENCES:
            return value
        kind, scope = links.REFERENCES[name]
        if not self.whole_types and name in links.OF_A_TYPE:
            return value
        return self.place.complete(kind, scope, value)

    # --- from the body -------------------------------------------------------------------------

    def back(self, form: Props, values: Props, live: Props, path: str = "") -> Props:
        """The inputs `values` as `live` has them now; those themselves that mean the same."""
        known = documents.members(self.document, form, beta=True)
        found: Props = {}
        for key, value in values.items():
            here = f"{path}{key}"
            if value is None or key.startswith("__"):
                found[key] = value
                continue
            name = self._name(known, here, key)
            if name == NOT_SENT:
                found[key] = value
            elif isinstance(name, Form):
                found[key] = name.seen(self, _at(live, name.member), value)
            elif name == LIFTED:
                (block,) = _blocks(value)
                found[key] = self.back(form, block, live, f"{here}.")
            else:
                found[key] = self._seen(form, name, value, live, here)
        return {key: value for key, value in found.items() if value is not None}

    def _seen(self, form: Props, name: str, value: Any, live: Props, here: str) -> Any:
        *around, last = name.split(".")
        for part in around:
            form = documents.members(self.document, form, beta=True)[part]
        form = documents.members(self.document, form, beta=True)[last]
        return self.now(form, value, _at(live, name), f"{here}.", last)

    def now(self, form: Props, old: Any, live: Any, path: str, name: str = "") -> Any:
        form = documents.resolved(self.document, form) if self._known(form) else form
        kind = form.get("type")
        if live is None:
            return None if old else old
        if kind == "array":
            return self._list(form["items"], old, live, path, name)
        if kind == "object" and "additionalProperties" not in form:
            return self.back(form, cast(Props, old), live, path)
        if kind == "object":
            return self._map(form["additionalProperties"], cast(Props, old), live, path)
        if name == "sourceImage" and self.images and self.images.same(old, live):
            return old
        return old if alike(old, live) else like(old, live)

    def _map(self, form: Props, old: Props, live: Props, path: str) -> Props:
        """The keys of a map are data: one that somebody added is a difference."""
        return {
            key: self.now(form, old[key], value, f"{path}{key}.") if key in old else plain(value)
            for key, value in live.items()
        }

    def _list(self, form: Props, old: Any, live: list[Any], path: str, name: str) -> Any:
        at = path.rstrip(".")
        if not isinstance(old, list):
            return self.now(form, old, live[0], f"{at}[0].", name) if live else None
        olds = cast(list[Any], old)
        if len(olds) == len(live):
            ordered = paired(olds, live)
            return [
                self.now(form, item, other, f"{at}[{index}].", name)
                for index, (item, other) in enumerate(zip(olds, ordered, strict=True))
            ]
        return [plain(item) for item in live]


def paired(olds: list[Any], live: list[Any]) -> list[Any]:
    """What is live in the order of the program: most lists of the provider are sets."""
    left, found = list(live), list[Any]()
    for old in olds:
        best = max(left, key=lambda other: _likeness(old, other))
        left.remove(best)
        found.append(best)
    return found


def _likeness(old: Any, other: Any) -> int:
    if isinstance(old, dict) and isinstance(other, dict):
        olds, others = cast(Props, old), cast(Props, other)
        return sum(alike(olds[key], others[key]) for key in olds.keys() & others.keys())
    return int(alike(old, other))


def _blocks(value: Any) -> list[Props]:
    return cast(list[Props], value if isinstance(value, list) else [value])


def _at(live: Props, member_path: str) -> Any:
    found: Any = live
    for part in member_path.split("."):
        if not isinstance(found, dict):
            return None
        found = cast(Props, found).get(part)
    return found


def _merge(found: Props, name: str, made: Any) -> None:
    *around, last = name.split(".")
    for part in around:
        found = found.setdefault(part, {})
    had = found.get(last)
    if isinstance(had, list) and isinstance(made, list):
        found[last] = [*cast(list[Any], had), *cast(list[Any], made)]
    elif isinstance(had, dict) and isinstance(made, dict):
        for key, value in cast(Props, made).items():
            _merge(cast(Props, had), key, value)
    else:
        found[last] = made


def member(names: Iterable[str], wanted: str) -> str | None:
    """The member that a property means: the same name whatever the case, singular or plural."""
    by_name = {name.lower(): name for name in names}
    singular = wanted[:-1] if wanted.endswith("s") else wanted
    for candidate in (wanted, f"{wanted}s", singular, f"{wanted[:-1]}ies"):
        if found := by_name.get(candidate.lower()):
            return found
    return None


def _scalar(form: Props, value: Any) -> Any:
    """The provider has numbers where the API has them as texts, and some texts for numbers."""
    kind = form.get("type")
    if kind == "string" and isinstance(value, int | float) and not isinstance(value, bool):
        return str(value) if form.get("format") in ("int64", "uint64") else value
    if kind in ("integer", "number") and isinstance(value, str):
        return int(value) if re.fullmatch(r"-?\d+", value) else value
    if kind == "boolean" and isinstance(value, str):
        return {"true": True, "false": False}.get(value.lower(), value)
    return value


def alike(old: Any, now: Any) -> bool:
    """Whether both mean the same, as the provider sees it."""
    if old == now or links.same(old, now):
        return True
    if isinstance(old, bool) or isinstance(now, bool):
        return str(old).lower() == str(now).lower()
    if isinstance(old, list) and isinstance(now, list):
        olds, nows = cast(list[Any], old), cast(list[Any], now)
        return sorted(map(str, olds)) == sorted(map(str, nows))
    if isinstance(old, str) and old[:1] in "{[" and old:
        return _document(old) == (_document(now) if isinstance(now, str) else now)
    try:
        return float(cast(Any, old)) == float(now)
    except (TypeError, ValueError):
        return False


def _document(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return text


def like(old: Any, now: Any) -> Any:
    """A value that changed, in the form of the input."""
    if isinstance(old, bool) or not isinstance(now, str):
        return now
    if isinstance(old, int) and re.fullmatch(r"-?\d+", now):
        return int(now)
    return now


def plain(value: Any) -> Any:
    """A body's part that the program did not write, for want of its names as the API has it."""
    if isinstance(value, dict):
        return {k: plain(v) for k, v in cast(Props, value).items()}
    return [plain(v) for v in cast(list[Any], value)] if isinstance(value, list) else value
