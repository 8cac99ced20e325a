"""Security groups of EFA interfaces name themselves in both directions."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from tests.aws import world
from tests.policies import cases
from tests.policies.tables import awaited, misspelt

from gputier_policies.fabric import EFA_RULES
from gputier_policies.values import UNKNOWN, Resource, Stack

TEMPLATE = "aws:ec2/launchTemplate:LaunchTemplate"
INTERFACE = "aws:ec2/networkInterface:NetworkInterface"
GROUP = "aws:ec2/securityGroup:SecurityGroup"
RULE = "aws:ec2/securityGroupRule:SecurityGroupRule"
IN = "aws:vpc/securityGroupIngressRule:SecurityGroupIngressRule"
OUT = "aws:vpc/securityGroupEgressRule:SecurityGroupEgressRule"

ALL: dict[str, Any] = {"protocol": "-1", "fromPort": 0, "toPort": 0}
NIC = {"interfaceType": "efa", "securityGroups": ["sg-1"]}
LT = cases.resource(TEMPLATE, "lt", networkInterfaces=[{**NIC}])
INLINE = cases.resource(GROUP, "sg", id="sg-1", ingress=[{**ALL, "self": True}],
                        egress=[{**ALL, "self": True}])  # fmt: skip
BARE = cases.resource(GROUP, "sg", id="sg-1")
ITSELF: list[tuple[str, dict[str, Any]]] = [
    ("ingress", {"self": True}),
    ("egress", {"sourceSecurityGroupId": "sg-1"}),
]
APART = [
    cases.resource(RULE, way, type=way, **ALL, securityGroupId="sg-1", **named)
    for way, named in ITSELF
]
SINGLE = [
    cases.resource(
        type_, way, ipProtocol="-1", securityGroupId="sg-1", referencedSecurityGroupId="sg-1"
    )
    for type_, way in ((IN, "in"), (OUT, "out"))
]


def told(*resources: Resource) -> list[str]:
    return cases.violations(EFA_RULES, cases.stack(*map(awaited, resources)))


def waits(*resources: Resource) -> list[str]:
    return cases.waits(EFA_RULES, cases.stack(*map(awaited, resources)))


def without(resource: Resource, **props: Any) -> Resource:
    return replace(resource, props={**resource.props, **props})


WAYS = {
    "inline": [INLINE],
    "rules": [BARE, *APART],
    "single rules": [BARE, *SINGLE],
}


@pytest.mark.parametrize("rules", WAYS.values(), ids=WAYS)
def test_a_group_that_names_itself_both_ways_passes(rules: list[Resource]) -> None:
    assert cases.found(EFA_RULES, cases.stack(LT, *rules)) == []
    for one in rules:
        assert misspelt(one.type, {k: v for k, v in one.props.items() if k != "id"}) == []


@pytest.mark.parametrize("kind", ["efa", "efa-only"])
@pytest.mark.parametrize("way", ["ingress", "egress"])
def test_each_way_is_needed(kind: str, way: str) -> None:
    template = without(
        LT, networkInterfaces=[{"interfaceType": "interface"}, {**NIC, "interfaceType": kind}]
    )
    (message,) = told(template, without(INLINE, **{way: []}))
    assert message.startswith(f"no {way} rule lets all traffic of the group itself through")
    apart = [one for one in APART if one.name != way]
    assert len(told(template, BARE, *apart)) == 1
    for count in (0, 1):
        assert len(told(template, BARE, SINGLE[count])) == 1


@pytest.mark.parametrize(
    "rule",
    [
        {**ALL, "cidrBlocks": ["0.0.0.0/0"]},  # addresses are not enough for EFA
        {"protocol": "tcp", "fromPort": 0, "toPort": 65535, "self": True},
        {**ALL, "self": False},
        {**ALL, "securityGroups": ["sg-2"]},
    ],
)
def test_only_all_traffic_of_itself_is_enough(rule: dict[str, Any]) -> None:
    assert misspelt(GROUP, {"egress": [rule]}) == []
    assert len(told(LT, without(INLINE, egress=[rule]))) == 1


def test_an_interface_of_its_own_is_judged_too() -> None:
    nic = cases.resource(
        INTERFACE, "nic", interfaceType="efa", securityGroups=["sg-1"], subnetId="s"
    )
    assert len(told(nic, BARE)) == 2
    assert told(nic, INLINE) == []


def test_a_group_without_efa_and_one_elsewhere_are_not() -> None:
    assert told(without(LT, networkInterfaces=[{"securityGroups": ["sg-1"]}]), BARE) == []
    assert told(LT) == []
    assert waits(LT) == []


def test_the_group_is_found_before_its_id_is_known() -> None:
    later = replace(
        without(LT, networkInterfaces=[{**NIC, "securityGroups": [UNKNOWN]}]),
        sources={"networkInterfaces": (BARE.urn,)},
    )
    assert len(told(later, BARE)) == 2
    named = [
        replace(
            without(one, securityGroupId=UNKNOWN, referencedSecurityGroupId=UNKNOWN),
            sources={"securityGroupId": (BARE.urn,), "referencedSecurityGroupId": (BARE.urn,)},
        )
        for one in SINGLE
    ]
    assert told(later, BARE, *named) == []


def test_what_is_not_known_is_waited_for() -> None:
    assert waits(without(LT, networkInterfaces=UNKNOWN), BARE) == [
        "networkInterfaces.interfaceType"
    ]
    assert waits(LT, without(INLINE, egress=UNKNOWN)) == ["egress"]
    assert waits(LT, without(INLINE, egress=[{**ALL, "self": UNKNOWN}])) == ["egress"]
    assert told(LT, without(INLINE, ingress=[], egress=UNKNOWN)), "the other way is known"


def test_our_own_fleet_fails_without_one_of_its_rules() -> None:
    stack = cases.recorded(world.example("prod"), {"aws:region": "us-east-1"}, "prod")
    assert cases.found(EFA_RULES, stack) == []
    rules = [one for one in stack.resources if "referencedSecurityGroupId" in one.props]
    assert len(rules) == 2
    for gone in rules:
        left = tuple(one for one in stack.resources if one is not gone)
        assert len(cases.violations(EFA_RULES, Stack(left, stack.surroundings))) == 1


def test_what_the_provider_fills_in_is_not_waited_for() -> None:
    early = without(BARE, ingress=UNKNOWN, egress=UNKNOWN)
    assert cases.waits(EFA_RULES, cases.stack(LT, early)) == []
    assert len(cases.violations(EFA_RULES, cases.stack(LT, early))) == 2


@pytest.mark.parametrize(
    "rule",
    [
        {**ALL, "protocol": "tcp", "self": UNKNOWN},
        {**ALL, "protocol": UNKNOWN, "self": False},
    ],
)
def test_a_rule_that_can_no_more_be_enough_is_not_waited_for(rule: dict[str, Any]) -> None:
    assert len(told(LT, without(INLINE, egress=[rule]))) == 1
