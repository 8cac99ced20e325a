"""Google Cloud in this process: the resource types of the stand-in over one store of objects.

Calls never leave the process. A test may look at the objects, and change them, through `get`,
`set` and `remove`, which take the path that Google's links end in.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tests.engine import combinations, schema
from tests.engine.gcp import images, links, lookups
from tests.engine.gcp.api import Api, GoogleError, merge
from tests.engine.gcp.resource import Resource
from tests.engine.gcp.session import Session
from tests.engine.gcp.types import TYPES
from tests.engine.provider import Cloud, Refused, State, Target
from tests.engine.recorder import Recorder
from tests.engine.wire import Props


class Gcp(Cloud):
    """Starts with Google's public images and a project's default network, and nothing else.

    A type that the stand-in does not know is refused, unless a test sets `recorded`: then its
    inputs are held against the SDK's schema alone, and remembered.
    """

    package = "gcp"

    def __init__(self) -> None:
        self.api = Api()
        self.recorded = False
        self._recorder = Recorder("gcp")
        images.publish_all(self.api)
        self._of_google = set(self.api.objects)

    # --- what the provider asks --------------------------------------------------------------

    def check(self, target: Target, inputs: Props) -> list[schema.Problem]:
        kind = TYPES.get(target.token)
        if kind is None:
            if self.recorded:
                return []
            return [("", f"{target.token} is not in the stand-in: tests/engine/gcp/types.py")]
        found = list(combinations.check(target.token, inputs))
        return found or list(kind.check(self._session(target, inputs), inputs))

    def prepare(self, target: Target, inputs: Props) -> Props:
        kind = TYPES.get(target.token)
        return {**(kind.defaults if kind else {}), **inputs}

    def autoname(self, token: str) -> tuple[str, str]:
        kind = TYPES.get(token)
        if kind is None:
            return self._recorder.autoname(token)
        prop, form = kind.named
        return (prop, form) if prop in schema.inputs(token) else ("", "")

    def unknown(self, token: str, inputs: Props) -> set[str]:
        kind = TYPES.get(token)
        return kind.unknown(inputs) if kind else self._recorder.unknown(token, inputs)

    def unknown_after(self, token: str, changed: set[str]) -> set[str]:
        kind = TYPES.get(token)
        return kind.unknown_after(changed) if kind else set()

    def taken(self, target: Target, inputs: Props) -> bool:
        kind = TYPES.get(target.token)
        return bool(kind) and kind.taken(self._session(target, inputs), inputs)

    def inside(self, token: str) -> frozenset[str]:
        kind = TYPES.get(token)
        return kind.filled if kind else frozenset()

    def expected(self, token: str, inputs: Props) -> Props:
        kind = TYPES.get(token)
        return kind.inside(None, inputs) if kind else {}

    def create(self, target: Target, inputs: Props) -> str:
        kind = TYPES.get(target.token)
        if kind is None:
            return self._recorder.create(target, inputs)
        return kind.create(self._session(target, inputs), inputs)

    def read(self, target: Target, inputs: Props) -> State | None:
        kind = TYPES.get(target.token)
        if kind is None:
            return self._recorder.read(target, inputs)
        session = self._session(target, inputs)
        live = kind.look(session, target.id, inputs)
        if live is None:
            return None
        outputs = kind.describe(session, target.id, live, inputs)
        now = kind.read(session, live, inputs)
        inside = kind.inside(live, now)
        found = schema.returnable(target.token, {**outputs, **now, **inside})
        if not inputs:
            given = schema.inputs(target.token)
            return State({k: v for k, v in found.items() if k in given}, found)
        return State(now, found)

    def update(self, target: Target, olds: Props, news: Props) -> None:
        kind = TYPES.get(target.token)
        if kind is None:
            self._recorder.update(target, olds, news)
        else:
            kind.update(self._session(target, news), target.id, olds, news)

    def delete(self, target: Target, inputs: Props) -> None:
        kind = TYPES.get(target.token)
        if kind is None:
            self._recorder.delete(target, inputs)
        else:
            kind.delete(self._session(target, inputs), target.id, inputs)

    def invoke(self, token: str, args: Props, settings: Props) -> Props:
        if token not in lookups.LOOKUPS:
            raise Refused("", f"the stand-in answers no {token}: tests/engine/gcp/lookups.py")
        return lookups.LOOKUPS[token](Session(self, settings, args), args)

    def _session(self, target: Target, inputs: Props) -> Session:
        return Session(self, target.settings, inputs)

    # --- what a test does --------------------------------------------------------------------

    def get(self, path: str, service: str = "compute") -> Props:
        """What Google has under a link, a path or an id; GoogleError 404 when it has nothing."""
        return self.api.get(f"{service}/{links.path(path)}")

    def set(self, path: str, changes: Props, service: str = "compute") -> None:
        """Somebody changed this by hand; None takes a member away."""
        merge(self.get(path, service), changes)

    def remove(self, path: str, service: str = "compute") -> None:
        """Somebody deleted this by hand, whatever uses it."""
        self.get(path, service)
        del self.api.objects[f"{service}/{links.path(path)}"]

    def publish(self, project: str, name: str, family: str = "", **about: Any) -> str:
        """An image of a vendor's, such as a family's newest; gives its path."""
        path = images.publish(self.api, project, name, family, **about)
        self._of_google.add(f"compute/{path}")
        return path

    def found(self, kind: str, service: str = "compute") -> list[Props]:
        """Every object of a kind, such as `instances`, in the order of its path."""
        keys = [key for key in self.api.objects if key.startswith(f"{service}/")]
        return [self.api.objects[k] for k in sorted(keys) if k.split("/")[-2:-1] == [kind]]

    def inventory(self) -> list[str]:
        """Everything that somebody made and has not deleted, by service and path, sorted."""
        return sorted(self._made())

    def _made(self) -> Iterator[str]:
        for key in self.api.objects:
            # A service that was switched on stays on: other programs use it too.
            if key not in self._of_google and not key.startswith("serviceusage/"):
                yield key
        yield from (f"recorded {token} {name}" for name, (token, _) in self._recorder.made.items())


__all__ = ["Gcp", "GoogleError", "Resource"]
