"""What security groups and firewalls let in."""

from __future__ import annotations

from typing import Any

import pytest
from tests.policies import cases
from tests.policies.tables import Case, check

from gputier_policies.ingress import OPEN_INGRESS

GROUP = "aws:ec2/securityGroup:SecurityGroup"
DEFAULT = "aws:ec2/defaultSecurityGroup:DefaultSecurityGroup"
RULE = "aws:ec2/securityGroupRule:SecurityGroupRule"
INGRESS = "aws:vpc/securityGroupIngressRule:SecurityGroupIngressRule"
FIREWALL = "gcp:compute/firewall:Firewall"
WITH_RULES = "gcp:compute/networkFirewallPolicyWithRules:NetworkFirewallPolicyWithRules"
POLICY_RULES = (
    "gcp:compute/networkFirewallPolicyRule:NetworkFirewallPolicyRule",
    "gcp:compute/regionNetworkFirewallPolicyRule:RegionNetworkFirewallPolicyRule",
    "gcp:compute/firewallPolicyRule:FirewallPolicyRule",
)

SSH = {"protocol": "tcp", "fromPort": 22, "toPort": 22}
INLINE: dict[str, Any] = {
    "ingress": [{**SSH, "cidrBlocks": ["10.0.0.0/8"], "ipv6CidrBlocks": ["fc00::/7"]}]
}
OWN = {**SSH, "type": "ingress", "cidrBlocks": ["10.0.0.0/8"], "ipv6CidrBlocks": ["fd00::/8"]}
ONE = {"ipProtocol": "tcp", "fromPort": 22, "toPort": 22, "cidrIpv4": "10.0.0.0/8"}
WALL: dict[str, Any] = {
    "direction": "INGRESS",
    "allows": [{"protocol": "tcp", "ports": ["22"]}],
    "sourceRanges": ["10.0.0.0/8"],
}
MATCH = {
    "action": "allow",
    "direction": "INGRESS",
    "match": {
        "layer4Configs": [{"ipProtocol": "tcp", "ports": ["22"]}],
        "srcIpRanges": ["10.0.0.0/8"],
    },
}  # fmt: skip
#: What is too many, and how it is said.
WIDE = [
    ("0.0.0.0/0", "everybody"),
    ("0.0.0.0/1", "2,147,483,648 addresses"),
    ("52.0.0.0/8", "16,777,216 addresses"),
    ("10.0.0.0/7", "33,554,432 addresses"),
]
OPEN = [
    *(
        Case(t, INLINE, "ingress[0].cidrBlocks[0]", bad, f"ingress[0].cidrBlocks[0] lets {says} in")
        for t in (GROUP, DEFAULT)
        for bad, says in WIDE
    ),
    Case(GROUP, INLINE, "ingress[0].ipv6CidrBlocks[0]", "::/0", "everybody"),
    Case(GROUP, INLINE, "ingress[0].ipv6CidrBlocks[0]", "2000::/3", "much of IPv6"),
    Case(RULE, OWN, "cidrBlocks[0]", "0.0.0.0/0", "cidrBlocks[0] lets everybody in", ("type",)),
    Case(RULE, OWN, "ipv6CidrBlocks[0]", "::/0", "everybody", ("type",)),
    Case(INGRESS, ONE, "cidrIpv4", "0.0.0.0/0", "cidrIpv4 lets everybody in (0.0.0.0/0)"),
    Case(INGRESS, {**ONE, "cidrIpv6": "fc00::/7"}, "cidrIpv6", "::/0", "everybody"),
    *(
        Case(FIREWALL, WALL, "sourceRanges[0]", bad, says, ("direction", "allows"))
        for bad, says in (*WIDE, ("::/0", "everybody"))
    ),
    *(
        Case(t, MATCH, "match.srcIpRanges[0]", bad, f"match.srcIpRanges[0] lets {says} in",
             ("action", "direction"))
        for t in POLICY_RULES
        for bad, says in (*WIDE, ("*", "everybody"))
    ),
    Case(WITH_RULES, {"rules": [MATCH]}, "rules[0].match.srcIpRanges[0]", "0.0.0.0/0",
         "rules[0].match.srcIpRanges[0] lets everybody in",
         ("rules[0].action", "rules[0].direction")),
]  # fmt: skip


@pytest.mark.parametrize("case", OPEN, ids=str)
def test_nothing_lets_the_internet_in(case: Case) -> None:
    check(OPEN_INGRESS, case)


@pytest.mark.parametrize("left_out", [("sourceRanges",), ("sourceRanges", "direction")], ids=str)
def test_a_firewall_without_a_source_is_for_everybody(left_out: tuple[str, ...]) -> None:
    props = {key: value for key, value in WALL.items() if key not in left_out}
    (message,) = cases.violations(OPEN_INGRESS, cases.resource(FIREWALL, **props))
    assert message.startswith("sourceRanges (not set) lets everybody in")
    others: list[dict[str, Any]] = [{"sourceTags": ["web"]}, {"sourceServiceAccounts": ["a@b"]}]
    for source in others:
        assert cases.found(OPEN_INGRESS, cases.resource(FIREWALL, **props, **source)) == []


@pytest.mark.parametrize(
    ("type_", "props"),
    [
        (GROUP, {"egress": [{**SSH, "cidrBlocks": ["0.0.0.0/0"]}]}),
        (GROUP, {"ingress": []}),
        (GROUP, {"ingress": [{**SSH, "prefixListIds": ["pl-1"]}]}),
        (GROUP, {"ingress": [{**SSH, "self": True}]}),
        (GROUP, {"ingress": [{**SSH, "cidrBlocks": ["203.0.113.0/24"]}]}),
        (RULE, {**OWN, "type": "egress", "cidrBlocks": ["0.0.0.0/0"]}),
        (INGRESS, {"ipProtocol": "-1", "referencedSecurityGroupId": "sg-1"}),
        (FIREWALL, {**WALL, "sourceRanges": ["0.0.0.0/0"], "direction": "EGRESS"}),
        (FIREWALL, {**WALL, "sourceRanges": ["0.0.0.0/0"], "disabled": True}),
        (FIREWALL, {"denies": [{"protocol": "all"}], "sourceRanges": ["0.0.0.0/0"]}),
        (POLICY_RULES[0], {**MATCH, "action": "deny", "match": {"srcIpRanges": ["0.0.0.0/0"]}}),
        (POLICY_RULES[0], {**MATCH, "direction": "EGRESS", "match": {"srcIpRanges": ["*"]}}),
        (POLICY_RULES[0], {**MATCH, "disabled": True, "match": {"srcIpRanges": ["*"]}}),
        (POLICY_RULES[0], {**MATCH, "match": {"srcSecureTags": [{"name": "t"}]}}),
    ],
)
def test_what_lets_out_and_what_names_somebody_passes(type_: str, props: dict[str, Any]) -> None:
    assert cases.found(OPEN_INGRESS, cases.resource(type_, **props)) == []


def open_to(rule: dict[str, Any], **config: Any) -> int:
    group = cases.resource(GROUP, ingress=[{**rule, "cidrBlocks": ["0.0.0.0/0"]}])
    return len(cases.found(OPEN_INGRESS, group, **config))


@pytest.mark.parametrize(
    ("ports", "count"),
    [
        ({"protocol": "tcp", "fromPort": 443, "toPort": 443}, 0),
        ({"protocol": "6", "fromPort": 443, "toPort": 444}, 0),
        ({"protocol": "tcp", "fromPort": 443, "toPort": 445}, 1),
        ({"protocol": "tcp", "fromPort": 22, "toPort": 22}, 1),
        ({"protocol": "icmp", "fromPort": 443, "toPort": 443}, 1),
        ({"protocol": "-1", "fromPort": 0, "toPort": 0}, 1),
        ({"protocol": "tcp"}, 1),
    ],
)
def test_a_port_may_be_opened_by_the_configuration(ports: dict[str, Any], count: int) -> None:
    assert open_to(ports, ports=[443, 444]) == count
    assert open_to(ports) == 1


@pytest.mark.parametrize(
    ("allows", "count"),
    [
        ([{"protocol": "tcp", "ports": ["443"]}], 0),
        ([{"protocol": "tcp", "ports": ["443-444"]}], 0),
        ([{"protocol": "tcp", "ports": ["443", "22"]}], 1),
        ([{"protocol": "tcp"}], 1),
        ([{"protocol": "all"}], 1),
    ],
)
def test_a_port_of_googles_too(allows: list[dict[str, Any]], count: int) -> None:
    props: dict[str, Any] = {**WALL, "allows": allows, "sourceRanges": ["0.0.0.0/0"]}
    wall = cases.resource(FIREWALL, **props)
    assert len(cases.violations(OPEN_INGRESS, wall, ports=[443, 444])) == count


@pytest.mark.parametrize(("text", "count"), [("52.0.0.0/8", 0), ("2600::/24", 0), ("::/0", 1)])
def test_how_wide_is_too_wide_is_configured(text: str, count: int) -> None:
    key = "cidrIpv6" if ":" in text else "cidrIpv4"
    props: dict[str, Any] = {"ipProtocol": "tcp", key: text}
    rule = cases.resource(INGRESS, **props)
    assert len(cases.found(OPEN_INGRESS, rule, widest_ipv4=8, widest_ipv6=24)) == count
