"""The rules as policies of Pulumi's SDK: names, levels, settings, the one line of what waits."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pulumi_policy as sdk
import pytest
from pulumi_policy.proxy import UNKNOWN_STRING_VALUE, unknown_checking_proxy

from gputier_policies import RULES, pack
from gputier_policies.rule import Rule

TEMPLATE = "aws:ec2/launchTemplate:LaunchTemplate"
#: What follows the first word of a rule's name.
VERBS = ("requires", "forbids", "limits")


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.name)
def test_a_rule_says_what_it_judges_and_the_way_out(rule: Rule) -> None:
    subject, verb, _thing = rule.name.split("-", 2)
    assert verb in VERBS
    assert subject.isalpha()
    assert bool(rule.check) != bool(rule.check_stack)
    assert bool(rule.types) == bool(rule.check), "a rule of resources names their types"
    for text in (rule.description, rule.remediation):
        assert re.fullmatch(r"[A-Z`].*\.", text, re.DOTALL), text
    assert rule.url.startswith("https://")
    for name, schema in rule.settings.items():
        assert re.fullmatch(r"[a-z][a-z_0-9]*", name)
        assert {"type", "default", "description"} <= set(schema)


def test_every_name_is_there_once() -> None:
    names = [rule.name for rule in RULES]
    assert len(set(names)) == len(names)
    assert {
        "machine-requires-owner-tags",
        "fleet-requires-gate",
        "stack-requires-budget",
        "fleet-requires-schedule",
    } <= set(names)


def test_every_rule_is_mandatory_and_only_the_line_of_what_waits_is_not() -> None:
    made = pack.policies(RULES)
    assert [policy.name for policy in made] == [*(r.name for r in RULES), "stack-limits-undecided"]
    levels = {policy.enforcement_level for policy in made[:-1]}
    assert levels == {sdk.EnforcementLevel.MANDATORY}
    assert made[-1].enforcement_level == sdk.EnforcementLevel.ADVISORY


def resource(props: Mapping[str, Any]) -> Any:
    """As the SDK hands one over."""
    return SimpleNamespace(
        resource_type=TEMPLATE,
        name="web",
        urn="urn:pulumi:dev::p::t::web",
        props=unknown_checking_proxy(dict(props)),
        opts=SimpleNamespace(protect=False),
        provider=None,
        get_config=dict,
    )


def test_what_is_undecided_is_told_once_and_forgotten() -> None:
    rules = [rule for rule in RULES if rule.name == "machine-requires-imdsv2"]
    # The SDK types what these give back as nothing in particular.
    made: Any = pack.policies(rules)
    first, line = made
    told: list[tuple[str, str | None]] = []

    def report(message: str, urn: str | None = None) -> None:
        told.append((message, urn))

    whole: Any = sdk.StackValidationArgs([], None, {})
    for _ in range(2):
        first.validate(resource({"metadataOptions": UNKNOWN_STRING_VALUE}), report)
    assert told == []
    line.validate(whole, report)
    line.validate(whole, report)
    waits = "1 rule will decide during the update, when the values are known:"
    assert told == [(f"{waits} machine-requires-imdsv2 (web: metadataOptions.httpTokens)", None)]


def test_the_line_names_every_rule_and_property_in_one_order() -> None:
    waiting = [("b-rule", "urn::x::two", "p"), ("a-rule", "", "q"), ("b-rule", "urn::x::one", "r")]
    expected = (
        "2 rules will decide during the update, when the values are known:"
        " a-rule (stack: q); b-rule (one: r, two: p)"
    )
    assert pack.undecided_line(waiting) == pack.undecided_line(waiting[::-1]) == expected


def test_the_stack_comes_from_the_engine_and_its_secrets_are_apart(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("PULUMI_CONFIG", json.dumps({"aws:region": "us-east-1", "db:key": "hush"}))
    monkeypatch.setenv("PULUMI_CONFIG_SECRET_KEYS", json.dumps(["db:key", "gone:key"]))
    monkeypatch.setenv("PULUMI_STACK", "team/shop/prod")
    monkeypatch.setenv("PULUMI_PROJECT", "shop")
    found = pack.surroundings()
    assert (found.name, found.project) == ("prod", "shop")
    assert found.config == {"aws:region": "us-east-1"}
    assert found.secrets == {"db:key": "hush"}
    assert "hush" not in repr(found)


def test_the_folder_of_the_pack_cannot_be_imported_by_mistake(root: Path) -> None:
    """Making a pack serves it and never returns: a program that imports one stops for ever."""
    assert not (root / "policies" / "__init__.py").exists()
    makers = [
        path.relative_to(root).as_posix()
        for path in (root / "policies").rglob("*.py")
        if "PolicyPack(" in path.read_text(encoding="utf-8")
    ]
    assert makers == ["policies/__main__.py"]
