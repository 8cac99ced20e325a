"""Security groups, and their rules in all three of the provider's forms."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from tests.engine.aws.ec2 import Ec2
from tests.engine.aws.resource import Resource, digest, only
from tests.engine.aws.session import Session
from tests.engine.provider import Refused
from tests.engine.wire import Props

ANYWHERE = {"IpProtocol": "-1", "IpRanges": [{"CidrIp": "0.0.0.0/0"}]}
# The provider's lists in a rule -> AWS's list and the member that holds the value.
SOURCES = {
    "cidrBlocks": ("IpRanges", "CidrIp"),
    "ipv6CidrBlocks": ("Ipv6Ranges", "CidrIpv6"),
    "prefixListIds": ("PrefixListIds", "PrefixListId"),
    "securityGroups": ("UserIdGroupPairs", "GroupId"),
}
KNOWN = {*SOURCES, "protocol", "fromPort", "toPort", "self", "description"}


class Single(NamedTuple):
    """One permission in AWS's smallest unit: what two lists of rules are compared by."""

    protocol: str
    ports: tuple[int, int]
    kind: str
    value: str


def permission(rule: Props, group: str) -> Props:
    """A rule of the provider as an IpPermission; `self` is the group itself."""
    if unknown := set(rule) - KNOWN:
        raise Refused(sorted(unknown)[0], "a rule has no such part in the stand-in")
    made: Props = {"IpProtocol": _protocol(rule["protocol"])}
    if made["IpProtocol"] != "-1":
        made |= {"FromPort": rule["fromPort"], "ToPort": rule["toPort"]}
    note = {"Description": rule["description"]} if rule.get("description") else {}
    values: dict[str, list[str]] = {name: list(rule.get(name) or ()) for name in SOURCES}
    values["securityGroups"] += [group] * bool(rule.get("self"))
    for name, (member, key) in SOURCES.items():
        if values[name]:
            made[member] = [{key: value, **note} for value in values[name]]
    return made


def _protocol(word: object) -> str:
    return {"all": "-1"}.get(str(word), str(word))


def singles(permissions: list[Props]) -> Iterator[Single]:
    for found in permissions:
        ports = (found.get("FromPort", -1), found.get("ToPort", -1))
        for member, key in SOURCES.values():
            for item in found.get(member, ()):
                yield Single(found["IpProtocol"], ports, key, item[key])


def _rule(found: Props, group: str) -> Props:
    """An IpPermission as the provider writes it inside of a group."""
    rule: Props = {
        "protocol": found["IpProtocol"],
        "fromPort": found.get("FromPort", 0),
        "toPort": found.get("ToPort", 0),
    }
    for name, (member, key) in SOURCES.items():
        if values := [item[key] for item in found.get(member, ())]:
            rule[name] = values
    others = [other for other in rule.pop("securityGroups", ()) if other != group]
    itself = any(p.get("GroupId") == group for p in found.get("UserIdGroupPairs", ()))
    return (
        rule | ({"securityGroups": others} if others else {}) | ({"self": True} if itself else {})
    )


WAYS = {"ingress": "IpPermissions", "egress": "IpPermissionsEgress"}


class SecurityGroup(Ec2):
    token = "aws:ec2/securityGroup:SecurityGroup"
    kind, creates, answer = "security-group", "CreateSecurityGroup", "GroupId"
    describes = ("DescribeSecurityGroups", "GroupIds", "SecurityGroups")
    deletes = ("DeleteSecurityGroup", "GroupId")
    named = ("name", "{}")
    renames = {"name": "GroupName"}
    apart = frozenset({"ingress", "egress", "revokeRulesOnDelete", "namePrefix"})
    chosen = frozenset({"ingress", "egress", "vpcId"})
    defaults = {"description": "Managed by Pulumi"}

    def create(self, aws: Session, inputs: Props) -> str:
        id_ = Resource.create(self, aws, inputs)
        # The provider takes away the rule that AWS gives every new group, declared or not, and only
        # then sets those that are.
        aws.client("ec2").revoke_security_group_egress(GroupId=id_, IpPermissions=[ANYWHERE])
        self._rules(aws, id_, {}, inputs)
        return id_

    def _rules(self, aws: Session, id_: str, olds: Props, news: Props) -> None:
        ec2 = aws.client("ec2")
        for way in WAYS:
            old, new = (
                [permission(rule, id_) for rule in side.get(way) or ()] for side in (olds, news)
            )
            if gone := [p for p in old if p not in new]:
                getattr(ec2, f"revoke_security_group_{way}")(GroupId=id_, IpPermissions=gone)
            if fresh := [p for p in new if p not in old]:
                getattr(ec2, f"authorize_security_group_{way}")(GroupId=id_, IpPermissions=fresh)

    def describe(self, aws: Session, id_: str, live: Props, inputs: Props) -> Props:
        found = {**super().describe(aws, id_, live, inputs), "name": live["GroupName"]}
        for way, member in WAYS.items():
            meant = [permission(rule, id_) for rule in inputs.get(way) or ()]
            same = way in inputs and set(singles(meant)) == set(singles(live[member]))
            found[way] = inputs[way] if same else [_rule(p, id_) for p in live[member]]
        return found

    in_place = {**Ec2.in_place, **dict.fromkeys(WAYS, _rules)}


class SecurityGroupRule(Ec2):
    """The older form: one resource that may hold several permissions."""

    token = "aws:ec2/securityGroupRule:SecurityGroupRule"
    in_place = {}

    def check(self, aws: Session, inputs: Props) -> Any:
        if inputs["type"] not in WAYS:
            yield "type", f"{inputs['type']!r} is neither ingress nor egress"

    def _permission(self, inputs: Props) -> Props:
        ours = {k: v for k, v in inputs.items() if k in KNOWN}
        others = [inputs["sourceSecurityGroupId"]] if inputs.get("sourceSecurityGroupId") else []
        return permission({**ours, "securityGroups": others}, inputs["securityGroupId"])

    def create(self, aws: Session, inputs: Props) -> str:
        authorize = getattr(aws.client("ec2"), f"authorize_security_group_{inputs['type']}")
        made = self._permission(inputs)
        authorize(GroupId=inputs["securityGroupId"], IpPermissions=[made])
        return (
            f"sgrule-{digest(inputs['securityGroupId'], inputs['type'], sorted(singles([made])))}"
        )

    def look(self, aws: Session, id_: str, inputs: Props) -> Props | None:
        ids = [inputs["securityGroupId"]]
        group = only(aws.client("ec2").describe_security_groups(GroupIds=ids)["SecurityGroups"])
        there = set(singles(group[WAYS[inputs["type"]]]))
        return {"there": True} if set(singles([self._permission(inputs)])) <= there else None

    def describe(self, aws: Session, id_: str, live: Props, inputs: Props) -> Props:
        return {"securityGroupRuleId": id_}

    def delete(self, aws: Session, id_: str, inputs: Props) -> None:
        revoke = getattr(aws.client("ec2"), f"revoke_security_group_{inputs['type']}")
        revoke(GroupId=inputs["securityGroupId"], IpPermissions=[self._permission(inputs)])


class OneRule(Ec2):
    """The newer form: one permission, with an id and tags of its own."""

    way = ""
    kind = "security-group-rule"
    describes = ("DescribeSecurityGroupRules", "SecurityGroupRuleIds", "SecurityGroupRules")
    apart = frozenset(
        [
            "ipProtocol",
            "fromPort",
            "toPort",
            "cidrIpv4",
            "cidrIpv6",
            "prefixListId",
            "referencedSecurityGroupId",
            "description",
        ]
    )
    renames = {"securityGroupId": "GroupId"}

    def request(self, aws: Session, inputs: Props) -> Props:
        made: Props = {"IpProtocol": _protocol(inputs["ipProtocol"])}
        if made["IpProtocol"] != "-1":
            made |= {"FromPort": inputs.get("fromPort", -1), "ToPort": inputs.get("toPort", -1)}
        note = {"Description": inputs["description"]} if inputs.get("description") else {}
        for name, member, key in (
            ("cidrIpv4", "IpRanges", "CidrIp"),
            ("cidrIpv6", "Ipv6Ranges", "CidrIpv6"),
            ("prefixListId", "PrefixListIds", "PrefixListId"),
            ("referencedSecurityGroupId", "UserIdGroupPairs", "GroupId"),
        ):
            if inputs.get(name):
                made[member] = [{key: inputs[name], **note}]
        return {**super().request(aws, inputs), "IpPermissions": [made]}

    def create(self, aws: Session, inputs: Props) -> str:
        made = self.call(aws, self.creates, **self.request(aws, inputs))
        return made["SecurityGroupRules"][0]["SecurityGroupRuleId"]

    def describe(self, aws: Session, id_: str, live: Props, inputs: Props) -> Props:
        found = super().describe(aws, id_, live, inputs)
        found["referencedSecurityGroupId"] = live.get("ReferencedGroupInfo", {}).get("GroupId")
        every = live["IpProtocol"] == "-1"
        return {k: v for k, v in found.items() if not (every and k in ("fromPort", "toPort"))}

    def _modify(self, aws: Session, id_: str, _olds: Props, news: Props) -> None:
        names = {
            "ipProtocol": "IpProtocol",
            "fromPort": "FromPort",
            "toPort": "ToPort",
            "cidrIpv4": "CidrIpv4",
            "cidrIpv6": "CidrIpv6",
            "prefixListId": "PrefixListId",
            "referencedSecurityGroupId": "ReferencedGroupId",
            "description": "Description",
        }
        rule = {member: news[name] for name, member in names.items() if name in news}
        aws.client("ec2").modify_security_group_rules(
            GroupId=news["securityGroupId"],
            SecurityGroupRules=[{"SecurityGroupRuleId": id_, "SecurityGroupRule": rule}],
        )

    def delete(self, aws: Session, id_: str, inputs: Props) -> None:
        revoke = getattr(aws.client("ec2"), f"revoke_security_group_{self.way}")
        revoke(GroupId=inputs["securityGroupId"], SecurityGroupRuleIds=[id_])

    in_place = {**Ec2.in_place, **dict.fromkeys(apart, _modify)}


class IngressRule(OneRule):
    token = "aws:vpc/securityGroupIngressRule:SecurityGroupIngressRule"
    way, creates = "ingress", "AuthorizeSecurityGroupIngress"


class EgressRule(OneRule):
    token = "aws:vpc/securityGroupEgressRule:SecurityGroupEgressRule"
    way, creates = "egress", "AuthorizeSecurityGroupEgress"


TYPES: tuple[Resource, ...] = (SecurityGroup(), SecurityGroupRule(), IngressRule(), EgressRule())
