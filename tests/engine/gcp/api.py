"""Google Cloud in this process: objects by their path, and the methods that make and change them.

Every call is held against the discovery documents. Beyond them it knows what all of Google's
services do alike: a name is taken once (409), what a request points to is there (404), and what
something else points to cannot be deleted (400).
"""

from __future__ import annotations

import copy
import itertools
import zlib
from collections.abc import Iterator
from typing import Any, cast

from tests.engine.gcp import documents, links
from tests.engine.wire import Props, has_unknown

WHEN = "2026-01-01T00:00:00.000-08:00"


class GoogleError(Exception):
    """What an API answers instead; `code` is HTTP's."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(f"googleapi: Error {code}: {message}")
        self.code = code


class Api:
    """Starts empty. `objects` are by service and path: compute/projects/p/global/networks/n."""

    def __init__(self) -> None:
        self.objects: dict[str, Props] = {}
        self.calls: list[tuple[str, Props]] = []  # every method called, with its parameters
        self._numbers = itertools.count(1001)

    # --- the common methods --------------------------------------------------------------------

    def check(
        self,
        id_: str,
        parameters: Props,
        body: Props | None = None,
        beta: frozenset[str] = frozenset(),
    ) -> Iterator[tuple[str, str]]:
        """What the documents find wrong with a call, as (path in the body, reason)."""
        method = documents.method(id_)
        yield from (("", why) for why in method.problems(parameters))
        if body is not None:
            if not method.body:
                yield "", f"{id_} takes no body"
                return
            form = documents.schema(method.document, method.body)
            yield from documents.check(method.document, form, body, beta=beta)

    def call(
        self,
        id_: str,
        parameters: Props,
        body: Props | None = None,
        beta: frozenset[str] = frozenset(),
    ) -> str:
        """Notes a call that the documents allow; GoogleError 400 otherwise. Gives its path."""
        if found := list(self.check(id_, parameters, body, beta)):
            raise GoogleError(400, "; ".join(f"{p}: {why}" if p else why for p, why in found))
        assert not has_unknown(body), f"{id_} was sent a value that is not known"
        method = documents.method(id_)
        self.calls.append((id_, parameters))
        return f"{id_.split('.')[0]}/{method.url(parameters)}"

    def insert(self, key: str, body: Props) -> Props:
        """A new object: 409 when there is one of the name, 404 when it points to nothing. Gives
        what is kept, which is nobody else's."""
        if key in self.objects:
            raise GoogleError(409, f"The resource '{_shown(key)}' already exists")
        kept = copy.deepcopy(body)
        self.resolve(kept)
        self.objects[key] = kept
        return kept

    def get(self, key: str) -> Props:
        if key not in self.objects:
            raise GoogleError(404, f"The resource '{_shown(key)}' was not found")
        return self.objects[key]

    def patch(self, key: str, body: Props) -> Props:
        """Merged as JSON Merge Patch has it: a member that is null goes."""
        found, changes = self.get(key), copy.deepcopy(body)
        self.resolve(changes)
        merge(found, changes)
        return found

    def delete(self, key: str) -> None:
        self.get(key)
        if user := next(self.users(key), ""):
            raise GoogleError(
                400,
                f"The resource '{_shown(key)}' is already being used by '{_shown(user)}', "
                "resourceInUseByAnotherResource",
            )
        del self.objects[key]

    # --- what points to what -------------------------------------------------------------------

    def users(self, key: str) -> Iterator[str]:
        """The objects that point to another one."""
        link = links.link(key.partition("/")[2]) if key.startswith("compute/") else ""
        for other, body in self.objects.items():
            if link and other != key and _points(body, link):
                yield other

    def resolve(self, body: Any, at: str = "") -> None:
        """Every link of the body as the API gives it back; 404 for one that leads nowhere."""
        held: Any = body
        parts: list[tuple[Any, Any]] = []
        if isinstance(body, dict):
            parts = list(cast(Props, body).items())
        elif isinstance(body, list):
            parts = list(enumerate(cast(list[Any], body)))
        for key, value in parts:
            here = f"{at}.{key}" if isinstance(key, str) else at
            if key in ("metadata", "labels", "description", "dashboardJson"):
                continue
            if links.is_path(value):
                held[key] = self._resolved(value, here)
            else:
                self.resolve(value, here)

    def _resolved(self, text: str, at: str) -> str:
        path = links.path(text)
        kind = path.split("/")[-2]
        if kind == "family":
            return links.link(self._newest(path))
        if kind in MADE_HERE and f"compute/{path}" not in self.objects:
            where = f" ({at.lstrip('.')})" if at.strip(".") else ""
            raise GoogleError(404, f"The resource '{path}' was not found{where}")
        return links.link(path)

    def _newest(self, path: str) -> str:
        """`projects/p/global/images/family/f`: the newest image of a family."""
        before, _, family = path.partition("/family/")
        found = [
            (image["creationTimestamp"], key)
            for key, image in self.objects.items()
            if key.startswith(f"compute/{before}/") and image.get("family") == family
        ]
        if not found:
            raise GoogleError(404, f"The resource '{path}' was not found")
        return max(found)[1].partition("/")[2]

    # --- help ----------------------------------------------------------------------------------

    def born(self, key: str) -> Props:
        """What every object of Compute Engine is given."""
        path = key.partition("/")[2]
        number = next(self._numbers)
        return {
            "id": str(number),
            "creationTimestamp": WHEN,
            "selfLink": links.link(path),
            "fingerprint": fingerprint(path),
        }


# Kinds of things that a test or a program makes; a type of machine or a zone is Google's.
MADE_HERE = frozenset(
    {
        "addresses",
        "autoscalers",
        "disks",
        "healthChecks",
        "images",
        "instanceGroupManagers",
        "instanceTemplates",
        "instances",
        "networks",
        "reservations",
        "resourcePolicies",
        "routers",
        "subnetworks",
    }
)


def fingerprint(*parts: object) -> str:
    return f"{zlib.crc32(repr(parts).encode()):08x}"


def merge(found: Props, changes: Props) -> None:
    for key, value in changes.items():
        if value is None:
            found.pop(key, None)
        elif isinstance(value, dict) and isinstance(found.get(key), dict):
            merge(found[key], cast(Props, value))
        else:
            found[key] = value


def _points(value: Any, link: str) -> bool:
    if isinstance(value, dict):
        return any(_points(v, link) for k, v in cast(Props, value).items() if k not in QUIET)
    if isinstance(value, list):
        return any(_points(item, link) for item in cast(list[Any], value))
    return value == link


# Members in which a link keeps nothing from being deleted: the object's own, and history.
QUIET = frozenset({"selfLink", "sourceImage", "sourceSnapshot", "metadata", "labels", "users"})


def _shown(key: str) -> str:
    return key.partition("/")[2]
