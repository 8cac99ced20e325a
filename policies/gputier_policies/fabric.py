"""Whether the machines of a fabric can reach each other."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from gputier_policies.links import Links
from gputier_policies.machine import TEMPLATE
from gputier_policies.parts import Part, given, whole
from gputier_policies.rule import Config, Findings, Rule, Undecided, Violation
from gputier_policies.values import UNKNOWN, Resource, Stack, yes

INTERFACE = "aws:ec2/networkInterface:NetworkInterface"
SECURITY_GROUP = "aws:ec2/securityGroup:SecurityGroup"
GROUP_RULE = "aws:ec2/securityGroupRule:SecurityGroupRule"
INGRESS_RULE = "aws:vpc/securityGroupIngressRule:SecurityGroupIngressRule"
EGRESS_RULE = "aws:vpc/securityGroupEgressRule:SecurityGroupEgressRule"
_KINDS = ("efa", "efa-only")
_WAYS = {"ingress": INGRESS_RULE, "egress": EGRESS_RULE}


def fleet_requires_efa_rules(stack: Stack, _config: Config) -> Findings:
    """What EFA sends past the operating system is let through by a rule that names the security
    group itself, in both directions, and by no range of addresses; without it jobs wait for each
    other for ever. Groups that are not in the program cannot be seen."""
    stack = given(stack)
    links = Links(stack)
    judged: set[str] = set()
    for one in stack.of(TEMPLATE, INTERFACE):
        groups, waits = _groups(one, links)
        if waits:
            yield Undecided(waits, one.urn)
        for group in groups:
            if group.urn not in judged:
                judged.add(group.urn)
                yield from _both_ways(group, links)


def _groups(one: Resource, links: Links) -> tuple[list[Resource], str]:
    """The security groups of a resource's EFA interfaces, as far as they are in the program, and
    the property that has to be known first."""
    template = one.type == TEMPLATE
    boxes = whole(one).each("networkInterfaces") if template else [whole(one)]
    kinds = [box.at("interfaceType") for box in boxes]
    if not any(kind.value in _KINDS for kind in kinds):
        return [], next((kind.path for kind in kinds if kind.unknown), "")
    found: dict[str, Resource] = {}
    for box, kind in zip(boxes, kinds, strict=True):
        count = len(box.each("securityGroups")) if kind.value in _KINDS else 0
        for n in range(count):
            group = links.follow(one, box.at(f"securityGroups[{n}]").path, SECURITY_GROUP)
            if group:
                found[group.urn] = group
    if found:
        return list(found.values()), ""
    # Ids that are not known yet: what they are made from is.
    made = one.sources.get("networkInterfaces" if template else "securityGroups", ())
    groups = (links.stack.by_urn(urn) for urn in made)
    return [group for group in groups if group and group.type == SECURITY_GROUP], ""


def _both_ways(group: Resource, links: Links) -> Findings:
    for way in _WAYS:
        found = [_names_itself(rule, protocol, itself) for rule, protocol, itself in
                 _rules(group, way, links)]  # fmt: skip
        if True in found:
            continue
        if UNKNOWN in found:
            yield Undecided(way, group.urn)
            continue
        yield Violation(
            f"no {way} rule lets all traffic of the group itself through, which EFA needs in both"
            f' directions: {way}=[{{"protocol": "-1", "from_port": 0, "to_port": 0,'
            f' "self": True}}], or aws.vpc.SecurityGroup{way.title()}Rule with'
            " referenced_security_group_id=group.id",
            group.urn,
        )


def _names_itself(rule: Part, protocol: str, itself: Any) -> Any:
    everything = rule.at(protocol).value
    if everything is UNKNOWN or itself is UNKNOWN:
        return UNKNOWN if itself is not False and everything in (UNKNOWN, "-1", -1) else False
    return itself is True and str(everything).lower() in ("-1", "all")


def _rules(group: Resource, way: str, links: Links) -> Iterator[tuple[Part, str, Any]]:
    """Each rule of a group in one direction: where its protocol is, and whether it names the
    group."""
    for rule in whole(group).each(way):
        flag = rule.at("self").value
        yield rule, "protocol", UNKNOWN if flag is UNKNOWN else yes(flag)
    for one in links.pointing_at(group, "securityGroupId", GROUP_RULE):
        flag = one.at("self")
        if one.at("type") in (way, UNKNOWN):
            named = yes(flag) or _is(group, one, "sourceSecurityGroupId", links)
            yield whole(one), "protocol", named
    for one in links.pointing_at(group, "securityGroupId", _WAYS[way]):
        named = _is(group, one, "referencedSecurityGroupId", links)
        yield whole(one), "ipProtocol", named


def _is(group: Resource, rule: Resource, path: str, links: Links) -> Any:
    if links.follow(rule, path, SECURITY_GROUP) is group:
        return True
    return UNKNOWN if rule.at(path) is UNKNOWN and not rule.sources.get(path) else False


EFA_RULES = Rule(
    check_stack=fleet_requires_efa_rules,
    description="The security group of EFA interfaces lets all traffic of itself through, in both"
    " directions.",
    remediation="Add an ingress and an egress rule for all protocols that name the group itself.",
    severity="medium",
    url="https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/efa-start.html",
)

RULES = (EFA_RULES,)
