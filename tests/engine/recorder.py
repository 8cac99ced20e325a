"""A cloud that takes whatever its SDK's schema takes, and remembers it: for tests of what judges a
program, where the cloud's own opinion does not matter."""

from __future__ import annotations

from tests.engine import schema
from tests.engine.provider import Cloud, Refused, State, Target
from tests.engine.wire import Props


class Recorder(Cloud):
    """Every resource by its id. What is no input is unknown until it is made, and then a text."""

    def __init__(self, package: str) -> None:
        self.package = package
        self.made: dict[str, tuple[str, Props]] = {}

    def check(self, target: Target, inputs: Props) -> list[schema.Problem]:
        return []  # the provider has held them against the SDK's schema

    def prepare(self, target: Target, inputs: Props) -> Props:
        return inputs

    def autoname(self, token: str) -> tuple[str, str]:
        return ("name", "{}") if "name" in schema.inputs(token) else ("", "")

    def unknown(self, token: str, inputs: Props) -> set[str]:
        return set(schema.outputs(token)) - set(inputs)

    def unknown_after(self, token: str, changed: set[str]) -> set[str]:
        return set()

    def create(self, target: Target, inputs: Props) -> str:
        made = f"{target.name}-{len(self.made) + 1}"
        self.made[made] = (target.token, inputs)
        return made

    def read(self, target: Target, inputs: Props) -> State | None:
        if target.id not in self.made:
            return None
        found = self.made[target.id][1]
        names = ("selfLink", "selfLinkUnique", "email", "uniqueId", "fingerprint", "instanceGroup")
        texts: Props = dict.fromkeys(names, target.id)
        outputs = schema.returnable(target.token, texts)
        return State(found, {**outputs, **found})

    def update(self, target: Target, olds: Props, news: Props) -> None:
        self.made[target.id] = (target.token, news)

    def delete(self, target: Target, inputs: Props) -> None:
        del self.made[target.id]

    def invoke(self, token: str, args: Props, settings: Props) -> Props:
        raise Refused("", f"{token} is not answered here")
