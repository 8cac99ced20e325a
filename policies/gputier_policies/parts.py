"""Where in a resource a machine's parts are: a value, and the path that a message names it by."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from gputier_policies.machine import (
    CONFIGURATION,
    GCP_FROM_TEMPLATE,
    GCP_INSTANCE,
    GCP_REGION_TEMPLATE,
    GCP_TEMPLATE,
    INSTANCE,
    SPOT_FLEET,
    SPOT_INSTANCE,
    TEMPLATE,
)
from gputier_policies.values import UNKNOWN, Resource, Stack, at, is_list

LONE_AWS = frozenset({INSTANCE, SPOT_INSTANCE})
AWS_MACHINES = LONE_AWS | {TEMPLATE, CONFIGURATION, SPOT_FLEET}
GCP_LONE = frozenset({GCP_INSTANCE, GCP_FROM_TEMPLATE})
GCP_ALL_TEMPLATES = frozenset({GCP_TEMPLATE, GCP_REGION_TEMPLATE})
GCP_MACHINES = GCP_LONE | GCP_ALL_TEMPLATES


@dataclass(frozen=True, slots=True)
class Part:
    """A value in a resource, and its path from the resource's root."""

    path: str
    value: Any

    def at(self, path: str) -> Part:
        """The part below; its value is None or UNKNOWN as values.at says."""
        return Part(f"{self.path}.{path}" if self.path else path, at(self.value, path))

    def each(self, path: str = "") -> list[Part]:
        """The items of a list below, as values.items: a block is a list of one."""
        found = self.at(path) if path else self
        if is_list(found.value):
            return [Part(f"{found.path}[{n}]", item) for n, item in enumerate(found.value)]
        return [] if found.value is None else [found]

    @property
    def unknown(self) -> bool:
        return self.value is UNKNOWN

    @property
    def text(self) -> str:
        """A known text, or nothing."""
        return self.value if isinstance(self.value, str) else ""


def given(stack: Stack) -> Stack:
    """The stack without what its provider fills in: a preview does not know that yet, and what a
    program gave and is not known was made from something."""
    return replace(stack, resources=tuple(map(_given, stack.resources)))


def _given(one: Resource) -> Resource:
    props = {
        name: value
        for name, value in one.props.items()
        if value is not UNKNOWN or one.sources.get(name)
    }
    return one if len(props) == len(one.props) else replace(one, props=props)


def whole(resource: Resource) -> Part:
    return Part("", resource.props)


def launches(resource: Resource) -> list[Part]:
    """What a resource starts machines from: itself, or for a spot fleet each of its own
    specifications."""
    root = whole(resource)
    return root.each("launchSpecifications") if resource.type == SPOT_FLEET else [root]


def from_template(launch: Part) -> bool:
    """Whether an instance is started from a template or a machine image, so that what it leaves
    out stands there."""
    return any(
        launch.at(word).value is not None for word in ("launchTemplate", "sourceInstanceTemplate")
    )


def disks(launch: Part) -> Iterator[Part]:
    """The disks that an instance or a template of Google's is made with."""
    yield from launch.each("bootDisk")
    yield from launch.each("disks")


def shown(value: object) -> str:
    """A value as a message shows it."""
    if value is None:
        return "not set"
    if isinstance(value, bool):
        return str(value).lower()
    text = str(value)
    return text if len(text) <= 100 else f"{text[:97]}…"
