"""Resources for the rules' tests: as a program under mocks, an export or a case gives them."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from copy import deepcopy
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

from gputier import testing
from gputier_policies.rule import Finding, Rule, Undecided, Violation
from gputier_policies.values import UNKNOWN, Resource, Stack, Surroundings

HERE = Surroundings("test", "project", {"aws:region": "us-east-1", "gcp:region": "us-central1"})


def urn(type_: str, name: str) -> str:
    return f"urn:pulumi:test::project::{type_}::{name}"


def resource(
    type_: str,
    name: str = "one",
    /,
    *,
    stack: Surroundings = HERE,
    sources: Mapping[str, Iterable[Resource]] | None = None,
    **props: Any,
) -> Resource:
    """A resource with these properties; `sources` are what its properties are made from."""
    made = {key: tuple(one.urn for one in of) for key, of in (sources or {}).items()}
    return Resource(type_, name, urn(type_, name), props, stack, sources=made)


def of(one: Resource, provider: Mapping[str, Any]) -> Resource:
    """The same of a provider that is configured so."""
    return replace(one, provider=provider)


def stack(*resources: Resource, config: Mapping[str, str] | None = None) -> Stack:
    """A stack of these, in the order of their URNs, with its config over the usual one."""
    around = Surroundings("test", "project", {**HERE.config, **(config or {})})
    ordered = sorted(resources, key=lambda one: one.urn)
    return Stack(tuple(replace(one, stack=around) for one in ordered), around)


def changed(props: Mapping[str, Any], path: str, value: Any) -> dict[str, Any]:
    """The properties with another value at a path, `a.b[0].c`; None takes it away."""
    found = deepcopy(dict(props))
    inside: Any = found
    *way, last = path.replace("[", ".").replace("]", "").split(".")
    for step in way:
        inside = inside[int(step)] if step.isdigit() else inside.setdefault(step, {})
    key: Any = int(last) if last.isdigit() else last
    if value is None:
        del inside[key]
    else:
        inside[key] = value
    return found


def only(props: Mapping[str, Any], *paths: str) -> dict[str, Any]:
    """The properties with nothing known but what stands at these paths."""
    return _only(
        dict(props), [path.replace("[", ".").replace("]", "").split(".") for path in paths]
    )


def _only(value: Any, ways: Sequence[Sequence[str]]) -> Any:
    if any(not way for way in ways):
        return value

    def within(key: object) -> list[Sequence[str]]:
        return [way[1:] for way in ways if way[0] == str(key)]

    if isinstance(value, dict):
        named = cast(dict[str, Any], value)
        return {key: _only(item, within(key)) for key, item in named.items()}
    if isinstance(value, list) and ways:
        listed = cast(list[Any], value)
        return [_only(item, within(count)) for count, item in enumerate(listed)]
    return UNKNOWN


def unknown(props: Mapping[str, Any]) -> dict[str, Any]:
    """The same properties, none of them known."""
    return dict.fromkeys(props, UNKNOWN)


def violations(rule: Rule, subject: Resource | Stack, **config: Any) -> list[str]:
    return [one.message for one in rule.judge(subject, config) if isinstance(one, Violation)]


def waits(rule: Rule, subject: Resource | Stack, **config: Any) -> list[str]:
    return [one.path for one in rule.judge(subject, config) if isinstance(one, Undecided)]


def found(rule: Rule, subject: Resource | Stack, **config: Any) -> list[Finding]:
    return rule.judge(subject, config)


def recorded(run: testing.Run, config: Mapping[str, str], name: str = "test") -> Stack:
    """What a program registered under mocks, as a stack rule sees it."""
    around = Surroundings(name, "gputier", dict(config))
    made = [
        Resource(
            record.type,
            record.name,
            urn(record.type, record.name),
            {**_made(record), **_shown(record.inputs)},
            around,
            record.options.protect,
        )
        for record in run.records
        if not record.component
    ]
    return Stack(tuple(sorted(made, key=lambda one: one.urn)), around)


def _made(record: testing.Record) -> dict[str, str]:
    """The ids that the mocks make up (gputier.testing), and those of tests/aws/world.py."""
    lone = record.type == "aws:ec2/instance:Instance"
    id_ = f"i-{record.name}" if lone else f"{record.name}-id"
    return {"id": id_, "arn": f"arn:of:{record.name}"}


def _shown(value: Any) -> Any:
    if isinstance(value, testing.Secret):
        return _shown(value.value)
    if isinstance(value, dict):
        return {key: _shown(item) for key, item in cast(dict[str, Any], value).items()}
    if isinstance(value, list):
        return [_shown(item) for item in cast(list[Any], value)]
    return value


def exported(file: Path, config: Mapping[str, str] | None = None) -> Stack:
    """An export of a stack's state, as `pulumi policy analyze --file` gives it to the rules: what
    the provider returned; the samples keep of that only what the inputs do not say."""
    entries = json.loads(file.read_text(encoding="utf-8"))["deployment"]["resources"]
    around = Surroundings("prod", "gputier", dict(config or {}))
    providers = {f"{e['urn']}::{e.get('id')}": e.get("inputs", {}) for e in entries}
    made = [
        Resource(
            entry["type"],
            entry["urn"].rsplit("::", 1)[-1],
            entry["urn"],
            {**entry.get("inputs", {}), **entry.get("outputs", {}), "id": entry.get("id", "")},
            around,
            entry.get("protect", False),
            providers.get(entry.get("provider", ""), {}),
            entry.get("parent", ""),
            {k: tuple(v) for k, v in entry.get("propertyDependencies", {}).items()},
        )
        for entry in entries
        if entry.get("custom")
    ]
    return Stack(tuple(sorted(made, key=lambda one: one.urn)), around)
