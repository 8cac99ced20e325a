"""Our own stacks keep every rule of their environment, as mocks record them."""

from __future__ import annotations

import json
from typing import Any

import pytest
from tests.aws import world
from tests.conftest import ROOT
from tests.policies import cases

from gputier_policies import RULES
from gputier_policies.rule import Finding, Rule, Violation
from gputier_policies.values import UNKNOWN, Resource, Stack

STACKS = ("dev", "staging", "prod")


def config_of(name: str) -> dict[str, Any]:
    text = (ROOT / "policies" / f"config.{name}.json").read_text(encoding="utf-8")
    return json.loads(text)


def stack_of(name: str) -> Stack:
    config = {"aws:region": "us-east-1", "gputier:environment": name}
    return cases.recorded(world.example(name), config, name)


def findings(rule: Rule, stack: Stack, config: dict[str, Any]) -> list[Finding]:
    subjects: list[Resource | Stack] = list(stack.resources) if rule.check else [stack]
    return [one for subject in subjects for one in rule.judge(subject, config.get(rule.name))]


@pytest.mark.parametrize("name", STACKS)
@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.name)
def test_a_stack_keeps_the_rules_of_its_environment(rule: Rule, name: str) -> None:
    assert findings(rule, stack_of(name), config_of(name)) == []


@pytest.mark.parametrize("rule", [r for r in RULES if r.name.startswith("disk-")])
def test_a_lone_machine_of_production_keeps_the_rules_of_its_data(rule: Rule) -> None:
    image = {"id": world.AMI, "os": "ubuntu-24.04", "driver": "580.95.05"}
    run = world.alone(
        environment="prod",
        purpose="development",
        gpu={"models": ["L4"]},
        disk={"data": "50GB"},
        software={"image": image},
    )
    stack = cases.recorded(run, {"gputier:environment": "prod"}, "prod")
    assert list(stack.of("aws:ebs/volume:Volume"))
    assert findings(rule, stack, config_of("prod")) == []


@pytest.mark.parametrize("name", STACKS)
@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.name)
def test_nothing_that_is_not_known_yet_breaks_a_rule(rule: Rule, name: str) -> None:
    """Ids and ARNs are unknown in a first preview, and what they stand in may be, too."""
    stack = stack_of(name)
    made = {one.props["id"]: one for one in stack.resources}
    made |= {one.props["arn"]: one for one in stack.resources}
    early = tuple(_before(one, made) for one in stack.resources)
    told = findings(rule, Stack(early, stack.surroundings), config_of(name))
    assert [one for one in told if isinstance(one, Violation)] == []


def _before(one: Resource, made: dict[str, Resource]) -> Resource:
    """A resource as a preview has it: what the cloud decides is unknown, what it comes from is
    not."""
    sources: dict[str, tuple[str, ...]] = {}

    def hidden(value: Any, top: str) -> Any:
        if isinstance(value, dict):
            return {key: hidden(item, top) for key, item in value.items()}  # pyright: ignore
        if isinstance(value, list):
            return [hidden(item, top) for item in value]  # pyright: ignore
        if isinstance(value, str) and value in made:
            sources[top] = tuple(sorted({*sources.get(top, ()), made[value].urn}))
            return UNKNOWN
        return value

    props = {
        key: hidden(value, key) for key, value in one.props.items() if key not in ("id", "arn")
    }
    return Resource(one.type, one.name, one.urn, props, one.stack, one.protect, sources=sources)


@pytest.mark.parametrize("name", STACKS)
def test_a_configuration_names_rules_and_their_settings(name: str) -> None:
    settings = {rule.name: set(rule.settings) for rule in RULES}
    for rule, given in config_of(name).items():
        assert set(given) <= settings[rule], rule
