"""What a preview says, whichever of the engine's formats it came in."""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from typing import Any, Final, NamedTuple


class Hidden(Enum):
    """A value that the preview does not show. It is never a number, a name or a zero."""

    UNKNOWN = "unknown"
    SECRET = "secret"  # noqa: S105 (a word)


#: Only the cloud knows it, once the resource is made.
UNKNOWN: Final = Hidden.UNKNOWN
#: Somebody knows it, and the preview keeps it.
SECRET: Final = Hidden.SECRET

Value = Any
"""As in JSON, or `UNKNOWN`, or `SECRET`, at any depth."""

#: What the engine does to a resource. `same` is only there where the preview lists it.
OPERATIONS = ("create", "update", "replace", "delete", "same", "read", "import", "refresh")


class State(NamedTuple):
    """One resource on one side of a change.

    `inputs` is what the program asks for, `outputs` what the cloud answered last: an update has the
    outputs of before, a creation none. `dependencies` has for each input the URNs it came from.
    `retain` is the engine's retainOnDelete: a deletion leaves the thing itself in the cloud.
    `custom` is False for a component, which is a name for others and nothing in a cloud.
    """

    urn: str
    type: str
    id: str | None
    inputs: Mapping[str, Value]
    outputs: Mapping[str, Value]
    dependencies: Mapping[str, tuple[str, ...]]
    parent: str | None
    provider: str | None
    protect: bool
    retain: bool = False
    custom: bool = True

    @property
    def name(self) -> str:
        """The last part of the URN: the name in the program."""
        return self.urn.rsplit("::", 1)[-1]

    def get(self, name: str) -> Value:
        """A property: as asked for, else as the cloud has it, else None."""
        return self.inputs[name] if name in self.inputs else self.outputs.get(name)


class Change(NamedTuple):
    """One resource's step. `before` is None for what is made, `after` for what goes.

    `changed` has what differs: a path such as `tags.owner` or `zones[0]`, and `add`, `delete` or
    `update`. `forced_by` are the top-level properties that force a replacement.
    """

    urn: str
    type: str
    op: str
    before: State | None
    after: State | None
    changed: Mapping[str, str]
    forced_by: tuple[str, ...]

    @property
    def state(self) -> State:
        """The side that there is; the later one of two."""
        found = self.after or self.before
        if found is None:
            raise ValueError(f"{self.urn} has neither side")
        return found


class Diagnostic(NamedTuple):
    """A message of the engine or the program: `severity` is error, warning or info."""

    severity: str
    message: str
    urn: str | None


class Violation(NamedTuple):
    """What a policy pack said. `level` is mandatory or advisory."""

    policy: str
    pack: str
    level: str
    message: str
    urn: str | None

    @property
    def resource(self) -> str | None:
        """The name of the resource that it is about; None where it is about the stack."""
        about = self.urn if self.urn and "::pulumi:pulumi:Stack::" not in self.urn else None
        return about.rsplit("::", 1)[-1] if about else None

    @property
    def mark(self) -> str:
        """What stops a deployment is crossed out; what only advises is a point."""
        return "✗" if self.level == "mandatory" else "·"


class Preview(NamedTuple):
    """A whole preview. `kind` is digest, events, plan or export: the format it was read from.

    `incomplete` says in words why it is not the whole of a deployment, None for one that is: such a
    preview is never reviewed as complete. `unlisted` counts resources that do not change and are
    not in it: the engine leaves them out unless asked (`--show-sames`). `config` is keyed as in a
    stack file, `project:key`, with text as the engine has it.
    """

    project: str
    stack: str
    kind: str
    changes: Mapping[str, Change]
    config: Mapping[str, Value]
    diagnostics: tuple[Diagnostic, ...]
    violations: tuple[Violation, ...]
    incomplete: str | None
    unlisted: int
