"""The stand-in without an engine: what the provider asks it, one resource at a time."""

from __future__ import annotations

from tests.engine import schema
from tests.engine.gcp.cloud import Gcp
from tests.engine.gcp.sample import CHANNEL, SETTINGS
from tests.engine.gcp.samples import BASE
from tests.engine.provider import State, Target
from tests.engine.wire import Props


class Refusal(Exception):
    """What Check would say."""


class Direct:
    """A stand-in with what the samples rest on, if so asked."""

    def __init__(self, settings: Props | None = None, *, base: bool = True) -> None:
        self.gcp = Gcp()
        self.settings = SETTINGS if settings is None else settings
        if base:
            for token, inputs in BASE:
                self.create(token, inputs)
            self.gcp.api.objects[f"monitoring/{CHANNEL}"] = {"name": CHANNEL}

    def problems(self, token: str, inputs: Props) -> list[str]:
        target = self._target(token)
        whole = self.gcp.prepare(target, inputs)
        found = schema.check(token, whole) or self.gcp.check(target, whole)
        return [f"{prop}: {why}" if prop else why for prop, why in found]

    def create(self, token: str, inputs: Props) -> tuple[str, Props]:
        """The new one's id, and its inputs with what the provider adds."""
        if found := self.problems(token, inputs):
            raise Refusal("; ".join(found))
        whole = self.gcp.prepare(self._target(token), inputs)
        return self.gcp.create(self._target(token), whole), whole

    def read(self, token: str, id_: str, inputs: Props) -> State | None:
        return self.gcp.read(self._target(token, id_), inputs)

    def update(self, token: str, id_: str, olds: Props, news: Props) -> None:
        if found := self.problems(token, news):
            raise Refusal("; ".join(found))
        self.gcp.update(self._target(token, id_), olds, news)

    def delete(self, token: str, id_: str, inputs: Props) -> None:
        self.gcp.delete(self._target(token, id_), inputs)

    def _target(self, token: str, id_: str = "") -> Target:
        return Target(token, "it", f"urn:pulumi:dev::p::{token}::it", self.settings, id_)
