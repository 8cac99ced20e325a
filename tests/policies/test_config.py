"""The configuration of each environment: what the engine takes, and our own stacks under it."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.aws import world
from tests.conftest import ROOT
from tests.policies import cases

from gputier_policies import RULES
from gputier_policies.rule import Config, Rule, Violation
from gputier_policies.values import Stack, is_list, is_map

ENVIRONMENTS = ("dev", "staging", "prod")
LEVELS = ("advisory", "mandatory", "remediate", "disabled")
KINDS: Mapping[str, tuple[type, ...]] = {
    "string": (str,), "number": (int, float), "integer": (int,), "boolean": (bool,),
    "array": (list,), "object": (dict,),
}  # fmt: skip


def config(environment: str) -> dict[str, Any]:
    file = ROOT / "policies" / f"config.{environment}.json"
    return json.loads(file.read_text(encoding="utf-8"))


def refused(given: Mapping[str, Any]) -> Iterator[str]:
    """What the engine finds wrong with a configuration, as it holds each rule's against its schema:
    an entry is a level, or settings with the level among them."""
    rules = {rule.name: rule for rule in RULES}
    for name, entry in given.items():
        level = entry if isinstance(entry, str) else entry.get("enforcementLevel", "mandatory")
        if level not in LEVELS:
            yield f"{name}: no such level: {level}"
        if name == "all":
            continue
        if name not in rules:
            yield f"{name}: no such rule"
            continue
        if level == "remediate" and rules[name].remedy is None:
            yield f"{name}: has no remediation"
        settings: dict[str, Any] = {} if isinstance(entry, str) else entry
        for key, value in settings.items():
            if key != "enforcementLevel":
                yield from _unfit(f"{name}.{key}", rules[name].settings.get(key), value)


def _unfit(path: str, schema: Mapping[str, Any] | None, value: Any) -> Iterator[str]:
    """The part of JSON Schema that the rules' settings use."""
    if schema is None:
        yield f"{path}: no such setting"
        return
    kind = schema["type"]
    if not isinstance(value, KINDS[kind]) or (isinstance(value, bool) and kind != "boolean"):
        yield f"{path}: expected {kind}, given {value!r}"
        return
    if value not in schema.get("enum", [value]):
        yield f"{path}: {value!r} is none of {schema['enum']}"
    if isinstance(value, int | float) and value < schema.get("minimum", value):
        yield f"{path}: below {schema['minimum']}"
    if is_map(value):
        for key, inside in value.items():
            yield from _unfit(f"{path}[{key}]", schema["additionalProperties"], inside)
    if is_list(value):
        for count, inside in enumerate(value):
            yield from _unfit(f"{path}[{count}]", schema["items"], inside)


@pytest.mark.parametrize("environment", ENVIRONMENTS)
def test_the_engine_takes_the_file(environment: str) -> None:
    assert list(refused(config(environment))) == []


@pytest.mark.parametrize(("given", "says"), [
    ({"machine-limits-prize": {}}, "no such rule"),
    ({"machine-limits-price": "compulsory"}, "no such level"),
    ({"machine-limits-price": {"usd": 1}}, "no such setting"),
    ({"machine-limits-price": {"usd_per_hour": "1"}}, "expected number"),
    ({"machine-limits-price": {"usd_per_hour": True}}, "expected number"),
    ({"machine-limits-price": {"usd_per_hour": -1}}, "below 0"),
    ({"machine-limits-price": {"unpriced": "perhaps"}}, "is none of"),
    ({"machine-limits-gpu-models": {"models": [1]}}, "models[0]: expected string"),
    ({"machine-requires-owner-tags": {"fill": {"owner": 1}}}, "fill[owner]: expected string"),
    ({"machine-limits-price": "remediate"}, "has no remediation"),
])  # fmt: skip
def test_a_mistake_in_a_file_is_found(given: Mapping[str, Any], says: str) -> None:
    (problem,) = refused(given)
    assert says in problem


def test_every_default_fits_its_own_schema() -> None:
    found = [
        problem
        for rule in RULES
        for key, schema in rule.settings.items()
        for problem in _unfit(f"{rule.name}.{key}", schema, schema["default"])
    ]
    assert found == []


@pytest.mark.parametrize("environment", ENVIRONMENTS)
def test_a_file_is_for_one_environment_and_says_so_everywhere(environment: str) -> None:
    given = config(environment)
    asked = [rule.name for rule in RULES if "environment" in rule.settings]
    assert "stack-requires-environment" in asked
    said = {name: given.get(name, {}).get("environment") for name in asked}
    assert said == dict.fromkeys(asked, environment)


@pytest.mark.parametrize("environment", ENVIRONMENTS)
def test_no_rule_is_switched_off_for_our_own_stacks(environment: str) -> None:
    for name, entry in config(environment).items():
        level = entry if isinstance(entry, str) else entry.get("enforcementLevel", "mandatory")
        assert level in ("mandatory", "remediate"), name


# --- our own stacks -------------------------------------------------------------------------------


@cache
def ours(environment: str) -> Stack:
    """An example stack as mocks record it, with its config as a program gets it."""
    file = Path(world.STACKS) / f"Pulumi.{environment}.yaml"
    declared = yaml.safe_load(file.read_text(encoding="utf-8"))["config"]
    told = {k: v if isinstance(v, str) else json.dumps(v) for k, v in declared.items()}
    return cases.recorded(world.example(environment), told, environment)


def broken(stack: Stack, rule: Rule, given: Config) -> list[str]:
    subjects = [stack] if rule.check_stack else stack.resources
    return [
        f"{found.urn}: {found.message}"
        for one in subjects
        for found in rule.judge(one, given)
        if isinstance(found, Violation)
    ]


@pytest.mark.parametrize("environment", ENVIRONMENTS)
@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.name)
def test_our_own_stack_passes_its_configuration(environment: str, rule: Rule) -> None:
    entry = config(environment).get(rule.name, {})
    given: dict[str, Any] = {} if isinstance(entry, str) else entry
    assert broken(ours(environment), rule, given) == []


@pytest.mark.parametrize(("environment", "rule", "setting", "value"), [
    ("prod", "fleet-limits-cost", "usd_per_month", 184_000),
    ("prod", "stack-limits-cost", "usd_per_month", 200_000),
    ("prod", "machine-limits-price", "usd_per_hour", 60),
    ("prod", "machine-limits-gpu-models", "models", ["L4"]),
    ("prod", "fleet-limits-size", "machines", 3),
    ("prod", "fleet-requires-spot", "required", True),
    ("prod", "fleet-requires-schedule", "environment", "staging"),
    ("prod", "stack-requires-budget", "elsewhere", ""),
    ("prod", "machine-requires-owner-tags", "owner", ["boss"]),
    ("prod", "fleet-requires-owner-tags", "owner", ["boss"]),
    ("staging", "fleet-forbids-spot", "forbidden", True),
    ("staging", "fleet-requires-spot", "except", []),
    ("staging", "fleet-requires-schedule", "except", []),
    ("dev", "stack-requires-environment", "environment", "prod"),
])  # fmt: skip
def test_our_own_stack_would_break_a_tighter_one(
    environment: str, rule: str, setting: str, value: Any
) -> None:
    given = {**config(environment).get(rule, {}), setting: value}
    (found,) = [one for one in RULES if one.name == rule]
    assert broken(ours(environment), found, given)
