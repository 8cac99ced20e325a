"""What the rules of a network let in."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterator
from typing import Any

from gputier_policies.parts import Part, shown, whole
from gputier_policies.rule import Config, Findings, Rule, Undecided, Violation
from gputier_policies.values import UNKNOWN, Resource, items, yes

SECURITY_GROUP = "aws:ec2/securityGroup:SecurityGroup"
DEFAULT_GROUP = "aws:ec2/defaultSecurityGroup:DefaultSecurityGroup"
GROUP_RULE = "aws:ec2/securityGroupRule:SecurityGroupRule"
INGRESS_RULE = "aws:vpc/securityGroupIngressRule:SecurityGroupIngressRule"
FIREWALL = "gcp:compute/firewall:Firewall"
POLICY_WITH_RULES = "gcp:compute/networkFirewallPolicyWithRules:NetworkFirewallPolicyWithRules"
POLICY_RULES = frozenset(
    {
        "gcp:compute/networkFirewallPolicyRule:NetworkFirewallPolicyRule",
        "gcp:compute/regionNetworkFirewallPolicyRule:RegionNetworkFirewallPolicyRule",
        "gcp:compute/firewallPolicyRule:FirewallPolicyRule",
    }
)
#: Addresses that nobody on the internet has: RFC 1918, 6598, 4193, 4291 and the loopback's.
_PRIVATE = tuple(
    ipaddress.ip_network(text)
    for text in (
        "10.0.0.0/8",
        "172.16.0.0/12",
        "192.168.0.0/16",
        "100.64.0.0/10",
        "127.0.0.0/8",
        "169.254.0.0/16",
        "fc00::/7",
        "fe80::/10",
    )
)


def network_forbids_open_ingress(network: Resource, config: Config) -> Findings:
    """A port that the whole internet reaches is tried by it all day. Who is in a list of prefixes
    cannot be seen from here, and is not judged."""
    root = whole(network)
    if network.type in (SECURITY_GROUP, DEFAULT_GROUP):
        for rule in root.each("ingress"):
            yield from _opened(rule, ("cidrBlocks", "ipv6CidrBlocks"), "protocol", config)
    elif network.type == GROUP_RULE:
        if network.at("type") is UNKNOWN:
            yield Undecided("type")
        elif network.at("type") == "ingress":
            yield from _opened(root, ("cidrBlocks", "ipv6CidrBlocks"), "protocol", config)
    elif network.type == INGRESS_RULE:
        yield from _opened(root, ("cidrIpv4", "cidrIpv6"), "ipProtocol", config)
    elif network.type == FIREWALL:
        yield from _firewall(root, config)
    else:
        for rule in root.each("rules") if network.type == POLICY_WITH_RULES else [root]:
            yield from _policy_rule(rule, config)


def _opened(rule: Part, paths: tuple[str, ...], protocol: str, config: Config) -> Findings:
    """A rule of AWS's, and the ports that it opens."""
    ends = [rule.at(end) for end in ("fromPort", "toPort")]
    kind = rule.at(protocol)
    for path in paths:
        for source in rule.each(path):
            if source.unknown:
                yield Undecided(source.path)
            elif wide := _wide(source.value, config):
                yield from _unless_allowed(source, wide, kind, [(ends[0], ends[1])], config)


def _unless_allowed(
    source: Part, wide: str, kind: Part, ranges: list[tuple[Part, Part]], config: Config
) -> Findings:
    """A violation, unless every port is one that may be open."""
    allowed = {port for port in items(config["ports"]) if isinstance(port, int)}
    if allowed:
        parts = [kind, *(end for ends in ranges for end in ends)]
        if waits := next((part for part in parts if part.unknown), None):
            yield Undecided(waits.path)
            return
        spans = [(_port(first.value), _port(last.value)) for first, last in ranges]
        if str(kind.value).lower() in ("tcp", "udp", "6", "17") and all(
            0 <= first <= last and set(range(first, last + 1)) <= allowed for first, last in spans
        ):
            return
    # With ports of its own that may be open, it is a mistake in the port or in the setting.
    hint = "add the port to the rule's setting `ports`" if allowed else _INSTEAD
    yield Violation(
        f"{source.path} lets {wide} in ({shown(source.value)}); name the addresses that need it, or"
        f" {hint}"
    )


_INSTEAD = (
    "another security group or tag (source_security_group_id, source_tags), and reach machines with"
    " Session Manager or IAP"
)


def _port(value: Any) -> int:
    """A port number; -1 where there is none, which stands for all of them."""
    try:
        return -1 if isinstance(value, bool) else min(int(value), 65536)
    except (TypeError, ValueError, OverflowError):
        return -1


def _wide(value: Any, config: Config) -> str:
    """Whom a range of addresses lets in, where that is too many; nothing where it is not."""
    try:
        # A number is an address to the standard library, and none to a cloud.
        network = ipaddress.ip_network(value if isinstance(value, str) else "", strict=False)
    except ValueError:
        return ""
    if network.prefixlen == 0:
        return "everybody"
    narrowest = config["widest_ipv4" if network.version == 4 else "widest_ipv6"]
    inside = any(
        network.version == private.version
        and network.network_address in private
        and network.broadcast_address in private
        for private in _PRIVATE
    )
    if inside or network.prefixlen >= _port(narrowest):
        return ""
    return f"{network.num_addresses:,} addresses" if network.version == 4 else "much of IPv6"


def _firewall(rule: Part, config: Config) -> Findings:
    """A rule of a network of Google's; without a source it is for every address
    (compute.v1 discovery, Firewall.sourceRanges, 2026-11-06)."""
    direction, off = rule.at("direction"), rule.at("disabled")
    if yes(off.value) or direction.text.upper() == "EGRESS":
        return
    if rule.at("allows").value is None:
        return
    sources = rule.each("sourceRanges")
    others = [rule.at(path) for path in ("sourceTags", "sourceServiceAccounts")]
    if not sources and not any(items(one.value) for one in others if not one.unknown):
        if waits := next((one for one in others if one.unknown), None):
            yield Undecided(waits.path)
            return
        sources = [Part("sourceRanges (not set)", "0.0.0.0/0")]
    yield from _google_rule(rule, sources, (rule.at("direction"), off, rule.at("allows")), config)


def _google_rule(
    rule: Part, sources: list[Part], gates: tuple[Part, ...], config: Config
) -> Findings:
    """`gates` decide whether the rule lets anybody in at all."""
    blocks = [*rule.each("allows"), *rule.at("match").each("layer4Configs")]
    for source in sources:
        if source.unknown:
            yield Undecided(source.path)
            continue
        wide = _wide(source.value, config) if source.value != "*" else "everybody"
        if not wide:
            continue
        if waits := next((gate for gate in gates if gate.unknown), None):
            yield Undecided(waits.path)
            continue
        for block in blocks or [rule]:
            kind = block.at("protocol" if "allows" in block.path else "ipProtocol")
            yield from _unless_allowed(source, wide, kind, list(_spans(block)), config)


def _spans(block: Part) -> Iterator[tuple[Part, Part]]:
    ports = block.each("ports")
    for port in ports:
        first, _, last = str(port.value).partition("-")
        if port.unknown:
            yield port, port
        else:
            yield Part(port.path, first), Part(port.path, last or first)
    if not ports:
        yield Part(block.path, None), Part(block.path, None)


def _policy_rule(rule: Part, config: Config) -> Findings:
    if rule.unknown:
        yield Undecided(rule.path)
        return
    action, direction = rule.at("action"), rule.at("direction")
    if (action.text and action.text != "allow") or direction.text.upper() == "EGRESS":
        return
    if yes(rule.at("disabled").value):
        return
    gates = (action, direction, rule.at("disabled"))
    yield from _google_rule(rule, rule.at("match").each("srcIpRanges"), gates, config)


OPEN_INGRESS = Rule(
    check=network_forbids_open_ingress,
    description="Nothing lets the whole internet in, or much of it. Lists of prefixes are not"
    " judged: who is in one cannot be seen.",
    remediation="Name the addresses, the security group or the tag that needs to come in.",
    severity="critical",
    url="https://docs.aws.amazon.com/vpc/latest/userguide/security-group-rules.html",
    types=frozenset(
        {SECURITY_GROUP, DEFAULT_GROUP, GROUP_RULE, INGRESS_RULE, FIREWALL, POLICY_WITH_RULES}
    )
    | POLICY_RULES,
    settings={
        "ports": {
            "type": "array",
            "items": {"type": "integer", "minimum": 1, "maximum": 65535},
            "default": [],
            "description": "TCP and UDP ports that anybody may reach, such as 443 of a load"
            " balancer.",
        },
        "widest_ipv4": {
            "type": "integer",
            "minimum": 1,
            "maximum": 32,
            "default": 16,
            "description": "The shortest prefix of public IPv4 addresses that may come in.",
        },
        "widest_ipv6": {
            "type": "integer",
            "minimum": 1,
            "maximum": 128,
            "default": 32,
            "description": "The shortest prefix of public IPv6 addresses that may come in.",
        },
    },
)

RULES = (OPEN_INGRESS,)
