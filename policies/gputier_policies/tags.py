"""Whose machines they are, and who pays: by the tags that reach the bill."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, MutableMapping
from typing import Any

from gputier_policies.fleets import LONE, Fleet, fleets
from gputier_policies.machine import (
    GCP_FROM_TEMPLATE,
    GCP_INSTANCE,
    GCP_REGION_TEMPLATE,
    GCP_TEMPLATE,
    GROUP,
    INSTANCE,
    NODE_POOL,
    SPOT_FLEET,
    SPOT_INSTANCE,
    machines,
)
from gputier_policies.rule import Config, Findings, Rule, Undecided, Violation
from gputier_policies.values import UNKNOWN, Resource, Stack, at, is_map, items, yes

WHO = {"owner": "owner", "cost_center": "cost centre"}
NODE_LABELS = "nodeConfig.resourceLabels"
#: Labels of Google (Compute Engine, organize resources using labels).
_LABEL = re.compile(r"[a-z][a-z0-9_-]{0,62}")
_LABELLED = (GCP_INSTANCE, GCP_FROM_TEMPLATE, GCP_TEMPLATE, GCP_REGION_TEMPLATE)


def keys(default: list[str], what: str) -> dict[str, Any]:
    about = f"The keys of tags or labels that say the {what}; any of them will do."
    return {
        "type": "array",
        "items": {"type": "string"},
        "minItems": 1,
        "default": default,
        "description": about,
    }


_KEYS = {
    "owner": keys(["owner", "Owner"], "owner"),
    "cost_center": keys(["cost-center", "CostCenter", "cost_center"], "cost centre"),
}


def machine_requires_owner_tags(machine: Resource, config: Config) -> Findings:
    """A machine that starts from a template, and a group's, are judged with what they start from:
    `fleet-requires-owner-tags`."""
    asked = machines(machine)
    if not asked or machine.type == GROUP or all(one.gpu is False for one in asked):
        return
    path, found = _place(machine.type), _own(machine)
    for what in _missing(found, config):
        if UNKNOWN in found or not any(one.gpu is True for one in asked):
            yield Undecided(path if UNKNOWN in found else asked[0].path)
        else:
            yield Violation(_said(path, what, config[what]))


def _said(path: str, what: str, named: list[str]) -> str:
    key = named[0] if path == "tags" else _first(named)
    word = f'{{"{key}": "..."}}'
    nested = f'node_config={{"resource_labels": {word}}}'
    way = nested if path == NODE_LABELS else f"{path}={word}"
    return (
        f"{path} names no {WHO[what]}, under none of {', '.join(named)}; it must: {way}, or among"
        " the provider's default ones"
    )


def _first(named: list[str]) -> str:
    return next((key for key in named if _LABEL.fullmatch(key)), named[0])


def _place(type_: str) -> str:
    if type_ == NODE_POOL:
        return NODE_LABELS
    return "labels" if type_ in _LABELLED else "tags"


def _missing(found: list[Any], config: Config) -> Iterator[str]:
    """Of owner and cost centre those that no tag names. UNKNOWN is a map that is not known yet."""
    for what in WHO:
        maps = [one for one in found if is_map(one)]
        if not any(_has(one, key) for one in maps for key in config[what]):
            yield what


def _has(tags: Mapping[str, Any], key: str) -> bool:
    value = tags.get(key)
    return value is UNKNOWN or (isinstance(value, str) and bool(value.strip()))


def _own(machine: Resource) -> list[Any]:
    """The tags of a resource and those that its provider gives it, as maps."""
    computed = {"tags": ("tagsAll",), "labels": ("pulumiLabels", "effectiveLabels")}
    path = _place(machine.type)
    return [
        machine.at(path),
        *filter(is_map, (machine.at(more) for more in computed.get(path, ()))),
        *_of_provider(machine.provider),
    ]


def _of_provider(provider: Mapping[str, Any]) -> Iterator[Any]:
    """A provider's default tags or labels; the engine keeps what is nested as JSON."""
    for word, inside in (("defaultTags", "tags"), ("defaultLabels", "")):
        value = provider.get(word)
        if isinstance(value, str) and value:
            try:
                value = json.loads(value)
            except (ValueError, RecursionError):
                continue
        found = at(value, inside) if inside else value
        if found is UNKNOWN or is_map(found):
            yield found


def _fill(type_: str, props: MutableMapping[str, Any], config: Config) -> bool:
    """What the configuration says under `fill`, where nothing is said."""
    if type_ == GROUP:
        return _fill_group(props, config)
    path = _place(type_)
    top, _, inside = path.partition(".")
    holder: Any = (props.get(top) or {}) if inside else props
    given: Any = (holder.get(inside or top) or {}) if is_map(holder) else UNKNOWN
    if not is_map(given):
        return False  # not known yet, or nothing that can be added to
    tags: dict[str, Any] = dict(given)
    more = _wanted(tags, config, labels=path != "tags")
    if not more:
        return False
    filled = {**tags, **more}
    props[top] = {**holder, inside: filled} if inside else filled
    return True


def _fill_group(props: MutableMapping[str, Any], config: Config) -> bool:
    told: Any = props.get("tags") or []
    if isinstance(told, str | bytes) or is_map(told) or not hasattr(told, "__iter__"):
        return False
    tags: list[Any] = list(told)
    if not all(isinstance(at(tag, "key"), str) for tag in tags):
        return False
    given = {at(tag, "key"): at(tag, "value") for tag in tags if at(tag, "propagateAtLaunch")}
    more = _wanted(given, config, labels=False)
    added = [{"key": k, "value": v, "propagateAtLaunch": True} for k, v in more.items()]
    if added:
        props["tags"] = [*(tag for tag in tags if at(tag, "key") not in more), *added]
    return bool(added)


def _wanted(tags: Mapping[str, Any], config: Config, *, labels: bool) -> dict[str, str]:
    fill: Mapping[str, str] = config["fill"]
    found: dict[str, str] = {}
    for what in _missing([tags], config):
        legal = (k for k in config[what] if k in fill and (not labels or _LABEL.fullmatch(k)))
        found |= {key: fill[key] for key in list(legal)[:1]}
    return found


MACHINE = Rule(
    check=machine_requires_owner_tags,
    description="Machines with GPUs say whose they are and who pays.",
    remediation="Tag or label the machine with an owner and a cost centre, or the provider; what"
    " the configuration has under `fill` is filled in when the rule is set to `remediate`, on Auto"
    " Scaling groups too.",
    severity="medium",
    types=frozenset({INSTANCE, SPOT_INSTANCE, *_LABELLED, NODE_POOL, GROUP}),
    url="https://docs.aws.amazon.com/awsaccountbilling/latest/aboutv2/cost-alloc-tags.html",
    settings={
        **_KEYS,
        "fill": {
            "type": "object",
            "additionalProperties": {"type": "string"},
            "default": {},
            "description": "Key to value: what a remediation fills in.",
        },
    },
    remedy=_fill,
)


def fleet_requires_owner_tags(stack: Stack, config: Config) -> Findings:
    """Of a group: the tags that it gives its machines, and those of the template; what is tagged
    itself, and no more, is not what the bill shows."""
    for fleet in fleets(stack):
        kind = fleet.runner.type
        if fleet.gpu is False or not kind.startswith("aws:"):
            continue  # Google's templates are machines of their own, with their own labels
        if kind in LONE and machines(fleet.runner):
            continue
        found = list(_reaching(fleet))
        for what in _missing(found, config):
            urn = fleet.runner.urn
            if fleet.gpu is True and UNKNOWN not in found:
                yield Violation(_how(kind, what, config[what]), urn)
            elif not fleet.elsewhere:
                yield Undecided(fleet.waiting or "tags", urn)


def _how(kind: str, what: str, named: list[str]) -> str:
    if kind == GROUP:
        path = "tags"
        way = f'tags=[{{"key": "{named[0]}", "value": "...", "propagate_at_launch": True}}]'
    else:
        path = "the launch template's tagSpecifications"
        way = (
            f'tag_specifications=[{{"resource_type": "instance", "tags": {{"{named[0]}": "..."}}}}]'
        )
    return (
        f"{path} names its machines' {WHO[what]} under none of {', '.join(named)}; it must: {way}"
    )


def _reaching(fleet: Fleet) -> Iterator[Any]:
    """The tags that reach the machines of a fleet, as maps."""
    runner = fleet.runner
    if runner.type == GROUP:
        for tag in runner.each("tags"):
            passed = at(tag, "propagateAtLaunch")
            if tag is UNKNOWN or passed is UNKNOWN:
                yield UNKNOWN
            elif yes(passed) and isinstance(key := at(tag, "key"), str):
                yield {key: at(tag, "value")}
    if runner.type in LONE:
        yield from _own(runner)
    if runner.type == SPOT_FLEET:
        yield from (at(one, "tags") for one in runner.each("launchSpecifications"))
    for template in fleet.templates:
        for one in template.each("tagSpecifications"):
            if one is UNKNOWN or at(one, "resourceType") is UNKNOWN:
                yield UNKNOWN
            elif at(one, "resourceType") == "instance":
                yield from items(at(one, "tags"))


FLEET = Rule(
    check_stack=fleet_requires_owner_tags,
    description="Groups give their machines with GPUs tags that say whose they are and who pays.",
    remediation="Let the group propagate the tags at launch, or set them in the launch template's"
    " tag specifications of instances.",
    severity="medium",
    url="https://docs.aws.amazon.com/autoscaling/ec2/userguide/autoscaling-tagging.html",
    settings=_KEYS,
)

RULES = (MACHINE, FLEET)
