"""Public addresses of machines."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from gputier_policies.links import Links
from gputier_policies.machine import GROUP, INSTANCE, SPOT_INSTANCE, TEMPLATE
from gputier_policies.parts import (
    AWS_MACHINES,
    GCP_MACHINES,
    LONE_AWS,
    Part,
    from_template,
    given,
    launches,
)
from gputier_policies.rule import Config, Findings, Rule, Undecided, Violation
from gputier_policies.values import UNKNOWN, Resource, Stack, items, yes

SUBNET = "aws:ec2/subnet:Subnet"
EIP = "aws:ec2/eip:Eip"
EIP_ASSOCIATION = "aws:ec2/eipAssociation:EipAssociation"
_ASSOCIATE = "associatePublicIpAddress"


def machine_forbids_public_address(machine: Resource, _config: Config) -> Findings:
    """A machine with a public address is found by everybody who scans for open ports, within
    minutes."""
    for launch in launches(machine):
        if machine.type in GCP_MACHINES:
            yield from _google_addresses(launch)
        else:
            yield from _aws_addresses(machine.type, launch)


def _aws_addresses(type_: str, launch: Part) -> Findings:
    if launch.unknown:
        yield Undecided(launch.path)
        return
    boxes = launch.each("networkInterfaces") if type_ == TEMPLATE else [launch]
    for box in boxes:
        flag = box.at(_ASSOCIATE)
        if flag.unknown:
            yield Undecided(flag.path)
        elif yes(flag.value):
            how = '"false"' if type_ == TEMPLATE else "False"
            yield Violation(
                f"{flag.path} is true; it must be false: associate_public_ip_address={how}, with a"
                " NAT gateway or endpoints as the way out"
            )
        elif flag.value is None and type_ in LONE_AWS and _in_the_default_subnet(box):
            yield Violation(
                f"{flag.path} is not set and no subnet is named, so that the machine starts in a"
                " default subnet, which gives it a public address; name a private subnet, or"
                " associate_public_ip_address=False"
            )


def _in_the_default_subnet(machine: Part) -> bool:
    """Default subnets give every machine a public address (VPC user guide, default VPCs)."""
    named = ("subnetId", "networkInterfaces", "primaryNetworkInterface")
    return not from_template(machine) and all(machine.at(n).value is None for n in named)


def _google_addresses(launch: Part) -> Findings:
    for nic in launch.each("networkInterfaces"):
        for path in ("accessConfigs", "ipv6AccessConfigs"):
            box = nic.at(path)
            if box.unknown:
                yield Undecided(box.path)
            elif items(box.value):
                # An empty block asks for an address too: Google picks one.
                yield Violation(
                    f"{box.path} asks for a public address; leave it out, with Cloud NAT as the"
                    " way out: network_interfaces=[{…}] without access_configs"
                )


PUBLIC_ADDRESS = Rule(
    check=machine_forbids_public_address,
    description="Machines ask for no public address.",
    remediation="Put machines in private subnets, with a NAT or endpoints as the way out, and reach"
    " them with Session Manager or IAP.",
    severity="high",
    url="https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/using-instance-addressing.html",
    types=AWS_MACHINES | GCP_MACHINES,
)


def network_forbids_public_machines(stack: Stack, _config: Config) -> Findings:
    """A machine that asks for no address still gets one from its subnet, or is given one later."""
    stack = given(stack)
    links = Links(stack)
    for subnet, runner in _placed(stack, links):
        flag = subnet.at("mapPublicIpOnLaunch")
        if not _refuses(runner, links):
            if flag is UNKNOWN:
                yield Undecided("mapPublicIpOnLaunch", subnet.urn)
            elif yes(flag):
                yield Violation(
                    "mapPublicIpOnLaunch is true, and machines of this program start here without"
                    " refusing a public address; map_public_ip_on_launch=False, or a private subnet"
                    " for them",
                    subnet.urn,
                )
    for path, address in _addresses(stack):
        value = address.at(path)
        if isinstance(value, str) and value:
            yield _is_given(path, address)
        elif value is UNKNOWN:
            # What it was made from is known before it is.
            made = (stack.by_urn(urn) for urn in address.sources.get(path, ()))
            if any(one and one.type in _CARRIERS for one in made):
                yield _is_given(path, address)
            else:
                yield Undecided(path, address.urn)


_CARRIERS = (INSTANCE, SPOT_INSTANCE, "aws:ec2/networkInterface:NetworkInterface")


def _is_given(path: str, address: Resource) -> Violation:
    return Violation(
        f"{path} gives a machine a public address; take the Eip away, with a NAT gateway as the"
        " way out and Session Manager or a load balancer as the way in",
        address.urn,
    )


def _addresses(stack: Stack) -> Iterator[tuple[str, Resource]]:
    for address in stack.of(EIP):
        yield from ((path, address) for path in ("instance", "networkInterface"))
    for address in stack.of(EIP_ASSOCIATION):
        yield from ((path, address) for path in ("instanceId", "networkInterfaceId"))


def _placed(stack: Stack, links: Links) -> Iterator[tuple[Resource, Resource]]:
    """The subnets of a program and what starts machines in them."""
    for runner in stack.of(INSTANCE, SPOT_INSTANCE):
        subnet = links.follow(runner, "subnetId", SUBNET)
        if subnet:
            yield subnet, runner
    for runner in stack.of(GROUP):
        found: dict[str, Resource] = {}
        for n in range(len(runner.each("vpcZoneIdentifiers"))):
            subnet = links.follow(runner, f"vpcZoneIdentifiers[{n}]", SUBNET)
            if subnet:
                found[subnet.urn] = subnet
        for urn in runner.sources.get("vpcZoneIdentifiers", ()):
            subnet = stack.by_urn(urn)
            if subnet and subnet.type == SUBNET:
                found[urn] = subnet
        yield from ((subnet, runner) for subnet in found.values())


def _refuses(runner: Resource, links: Links) -> bool:
    """Whether machines say themselves that they want no public address, or that they do, which is
    another rule's."""
    if runner.type != GROUP:
        return runner.at(_ASSOCIATE) is not None
    within = "mixedInstancesPolicy.launchTemplate.launchTemplateSpecification."
    for path in ("launchTemplate.id", "launchTemplate.name", f"{within}launchTemplateId"):
        template = links.follow(runner, path, TEMPLATE)
        if template:
            nics = template.each("networkInterfaces")
            # More than one interface never gets a public address by itself (EC2 Auto Scaling user
            # guide, create a launch template).
            return len(nics) > 1 or any(nic.at(_ASSOCIATE).value is not None for nic in _of(nics))
    return True  # its template is not in the program: nothing is known of it


def _of(values: Iterable[Any]) -> list[Part]:
    return [Part("", value) for value in values]


PUBLIC_MACHINES = Rule(
    check_stack=network_forbids_public_machines,
    description="No subnet gives a public address to the machines of the program, and no address is"
    " given to one of them.",
    remediation="Set map_public_ip_on_launch=False on the subnets of machines, and give addresses"
    " to NAT gateways and load balancers alone.",
    severity="high",
    url="https://docs.aws.amazon.com/vpc/latest/userguide/subnet-public-ip.html",
)

RULES = (PUBLIC_ADDRESS, PUBLIC_MACHINES)
