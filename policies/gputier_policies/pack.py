"""The rules as policies of Pulumi's SDK. The pack itself is made in `__main__` alone: making one
serves it and never returns."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from importlib import import_module
from typing import Any

import pulumi_policy as sdk

from gputier_policies.rule import Config, Finding, Rule, Undecided
from gputier_policies.values import Resource, Stack, Surroundings, plain

_unknown: type[Exception] = import_module("pulumi_policy.proxy").UnknownValueError
_SEVERITIES = {
    "low": sdk.Severity.LOW,
    "medium": sdk.Severity.MEDIUM,
    "high": sdk.Severity.HIGH,
    "critical": sdk.Severity.CRITICAL,
}
Report = Callable[..., None]


def policies(rules: Iterable[Rule]) -> list[sdk.Policy]:
    """A policy for each rule, every one mandatory, and last the one line of what was undecided."""
    waiting: set[tuple[str, str, str]] = set()
    made = [_stack(r, waiting) if r.check_stack else _resource(r, waiting) for r in rules]
    return [*made, _undecided(waiting)]


def _resource(rule: Rule, waiting: set[tuple[str, str, str]]) -> sdk.Policy:
    def validate(args: sdk.ResourceValidationArgs, report: Report) -> None:
        if args.resource_type in rule.types:
            found = rule.judge(_one(args, surroundings()), _given(args))
            _tell(rule, found, args.urn, report, waiting)

    # The SDK takes the properties themselves too, not only a promise of them, as it is typed.
    remediate: Any = partial(_remediate, rule) if rule.remedy else None
    return sdk.ResourceValidationPolicy(**_common(rule), validate=validate, remediate=remediate)


def _remediate(rule: Rule, args: sdk.ResourceValidationArgs) -> Mapping[str, Any] | None:
    if rule.remedy is None or args.resource_type not in rule.types:
        return None
    # A proxy that is written through, so that what was secret stays secret.
    props: Any = args.props
    changed = rule.remedy(args.resource_type, props, rule.configured(_given(args)))
    return props if changed else None


def _stack(rule: Rule, waiting: set[tuple[str, str, str]]) -> sdk.Policy:
    def validate(args: sdk.StackValidationArgs, report: Report) -> None:
        _tell(rule, rule.judge(_whole(args), _given(args)), "", report, waiting)

    return sdk.StackValidationPolicy(**_common(rule), validate=validate)


def _common(rule: Rule) -> dict[str, Any]:
    return {
        "name": rule.name,
        "description": rule.description,
        "enforcement_level": sdk.EnforcementLevel.MANDATORY,
        "severity": _SEVERITIES[rule.severity],
        "remediation_steps": rule.remediation,
        "url": rule.url or None,
        "config_schema": sdk.PolicyConfigSchema(
            properties={k: dict(v) for k, v in rule.settings.items()}
        ),
    }


def _tell(
    rule: Rule,
    found: list[Finding],
    urn: str,
    report: Report,
    waiting: set[tuple[str, str, str]],
) -> None:
    for each in found:
        if isinstance(each, Undecided):
            waiting.add((rule.name, each.urn or urn, each.path))
        else:
            report(each.message, each.urn or urn or None)


def _undecided(waiting: set[tuple[str, str, str]]) -> sdk.Policy:
    """A line instead of a note for each rule and resource: most previews of something new know
    little, and a mandatory rule that could not run yet runs again when the value is known."""

    def stack_limits_undecided(_args: sdk.StackValidationArgs, report: Report) -> None:
        if waiting:
            report(undecided_line(waiting))
            waiting.clear()

    return sdk.StackValidationPolicy(
        name="stack-limits-undecided",
        description="Rules that wait for values which a preview cannot know.",
        validate=stack_limits_undecided,
        enforcement_level=sdk.EnforcementLevel.ADVISORY,
        severity=sdk.Severity.LOW,
    )


def undecided_line(waiting: Iterable[tuple[str, str, str]]) -> str:
    """`2 rules decide when the values are known: bucket-forbids-public-access (logs: bucket), …`"""
    by_rule: dict[str, list[str]] = {}
    for rule, urn, path in sorted(waiting):
        by_rule.setdefault(rule, []).append(f"{urn.rsplit('::', 1)[-1] or 'stack'}: {path}")
    rules = "; ".join(f"{rule} ({', '.join(paths)})" for rule, paths in by_rule.items())
    count = f"{len(by_rule)} rule{'s' if len(by_rule) > 1 else ''}"
    return f"{count} will decide during the update, when the values are known: {rules}"


def surroundings() -> Surroundings:
    """The stack that the engine says it is running for."""
    config: dict[str, str] = json.loads(os.environ.get("PULUMI_CONFIG") or "{}")
    hidden: list[str] = json.loads(os.environ.get("PULUMI_CONFIG_SECRET_KEYS") or "[]")
    secrets = {key: config.pop(key) for key in hidden if key in config}
    stack, project = (os.environ.get(f"PULUMI_{name}", "") for name in ("STACK", "PROJECT"))
    return Surroundings(stack.rsplit("/", 1)[-1], project, config, secrets)


def _given(args: Any) -> Config:
    return args.get_config() or {}


def _one(args: Any, stack: Surroundings) -> Resource:
    return Resource(
        type=args.resource_type,
        name=args.name,
        urn=args.urn,
        props=_plain(args.props),
        stack=stack,
        protect=bool(args.opts.protect),
        provider=_plain(args.provider.props) if args.provider else {},
    )


def _whole(args: sdk.StackValidationArgs) -> Stack:
    around = surroundings()
    found: list[Resource] = []
    for each in args.resources:
        sources: Mapping[str, Any] = each.property_dependencies
        found.append(
            Resource(
                type=each.resource_type,
                name=each.name,
                urn=each.urn,
                props=_plain(each.props),
                stack=around,
                protect=bool(each.opts.protect),
                provider=_plain(each.provider.props) if each.provider else {},
                parent=each.parent.urn if each.parent else "",
                sources={key: tuple(sorted(r.urn for r in of)) for key, of in sources.items()},
            )
        )
    return Stack(tuple(sorted(found, key=lambda resource: resource.urn)), around)


def _plain(props: Any) -> dict[str, Any]:
    return plain(props, _unknown, _leaf)


def _leaf(value: Any) -> Any:
    """Assets and archives as what they hold or where they are."""
    for name in ("text", "path", "uri"):
        if hasattr(value, name):
            return getattr(value, name)
    return value
