"""What becomes reachable from outside, and what metadata service answers to whom."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from gputier.review.preview import State
from gputier.review.risk import WARNING, Finder, Risk, Rule, Scene, called, sentence
from gputier.review.risks_sizes import AWS_INSTANCES, AWS_TEMPLATES, GCP_INSTANCES, GCP_TEMPLATES
from gputier.review.values import items, maps, yes
from gputier.review.world import at

PUBLIC = Rule("public-address", WARNING, "A machine gets an address that the internet reaches.")
OPEN = Rule("open-to-all", WARNING, "A firewall lets everybody in, and on which ports.")
METADATA = Rule(
    "metadata-without-token",
    WARNING,
    "The metadata service answers without a token: whoever makes a machine ask gets its rights.",
)
RULES = (PUBLIC, OPEN, METADATA)

WORLD = ("0.0.0.0/0", "::/0")
_RULES = (
    "aws:vpc/securityGroupIngressRule:SecurityGroupIngressRule",
    "aws:ec2/securityGroupRule:SecurityGroupRule",
)
_GROUP, _FIREWALL = "aws:ec2/securityGroup:SecurityGroup", "gcp:compute/firewall:Firewall"
_SUBNET = "aws:ec2/subnet:Subnet"
#: An address that is given to a machine; one of a gateway has no such property.
_GIVEN = {"aws:ec2/eip:Eip": "instance", "aws:ec2/eipAssociation:EipAssociation": "instanceId"}
_REACHED = (*AWS_INSTANCES, *AWS_TEMPLATES, *GCP_INSTANCES, *GCP_TEMPLATES, _SUBNET, *_GIVEN)


def _address(state: State | None) -> str | None:
    """The property that gives it a public address."""
    if state is None:
        return None
    given = _GIVEN.get(state.type)
    if given and state.inputs.get(given) is not None:
        return given
    for name in ("associatePublicIpAddress", "mapPublicIpOnLaunch"):
        if yes(state.inputs.get(name)):
            return name
    for number, net in enumerate(maps(state.inputs.get("networkInterfaces"))):
        if yes(net.get("associatePublicIpAddress")):
            return f"networkInterfaces[{number}].associatePublicIpAddress"
        if "accessConfigs" in net and net["accessConfigs"] is not None:
            return f"networkInterfaces[{number}].accessConfigs"
    return None


def _public(scene: Scene) -> Iterator[Risk]:
    for before, after in scene.arriving(_REACHED):
        path = _address(after)
        if path is None or _address(before) is not None:
            continue
        whose = "machines in it get" if after.type == _SUBNET else "it gets"
        if after.type in _GIVEN:
            whose = "a machine gets"
        text = f"{sentence(called(after))}: {whose} a public address."
        yield PUBLIC.at(after.urn, path, text)


def _openings(state: State | None) -> Mapping[str, str]:
    """What everybody may reach: the ports in words → the path that says so."""
    if state is None:
        return {}
    if state.type == _GROUP:
        rules = [(f"ingress[{n}]", one) for n, one in enumerate(maps(state.inputs.get("ingress")))]
    elif state.type == _FIREWALL:
        out = state.inputs.get("direction") == "EGRESS" or yes(state.inputs.get("disabled"))
        allows = maps(state.inputs.get("allows"))
        wide = any(source in WORLD for source in items(state.inputs.get("sourceRanges")))
        return {_google(one): "sourceRanges" for one in allows if wide and not out}
    else:
        rules = [("", state.inputs)] if state.inputs.get("type", "ingress") == "ingress" else []
    found: dict[str, str] = {}
    for path, rule in rules:
        for name in ("cidrBlocks", "ipv6CidrBlocks", "cidrIpv4", "cidrIpv6"):
            if any(source in WORLD for source in items(rule.get(name))):
                found[_ports(rule)] = f"{path}.{name}".lstrip(".")
    return found


def _ports(rule: Mapping[str, Any]) -> str:
    protocol = str(rule.get("protocol", rule.get("ipProtocol", "-1")))
    low, high = rule.get("fromPort"), rule.get("toPort")
    if protocol in ("-1", "all"):
        return "every port"
    if low is None or high is None:
        return protocol
    return f"{protocol} {low}" if low == high else f"{protocol} {low}-{high}"


def _google(allow: Mapping[str, Any]) -> str:
    protocol, ports = str(allow.get("protocol", "all")), items(allow.get("ports"))
    if protocol == "all":
        return "every port"
    return f"{protocol} {', '.join(map(str, ports))}" if ports else f"every port of {protocol}"


def _open(scene: Scene) -> Iterator[Risk]:
    for before, after in scene.arriving((_GROUP, _FIREWALL, *_RULES)):
        known = _openings(before)
        for ports, path in _openings(after).items():
            if ports not in known:
                text = f"{sentence(called(after))} lets the whole internet in: {ports}."
                yield OPEN.at(after.urn, path, text)


def _metadata(scene: Scene) -> Iterator[Risk]:
    path = "metadataOptions.httpTokens"
    for change, before, after in scene.edited((*AWS_INSTANCES, *AWS_TEMPLATES)):
        was, is_ = at(before.inputs, path), at(after.inputs, path)
        if was == "required" and is_ != "required" and is_ in (None, "optional"):
            text = f"{sentence(called(after))} gives its rights to whoever asks without a token."
            yield METADATA.at(change.urn, path, text)


FINDERS: tuple[Finder, ...] = (_public, _open, _metadata)
