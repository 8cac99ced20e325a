"""Public addresses: asked for, handed out by a subnet, given afterwards."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from tests.policies import cases
from tests.policies.tables import Case, awaited, check, misspelt

from gputier_policies.network import PUBLIC_ADDRESS, PUBLIC_MACHINES
from gputier_policies.values import UNKNOWN

INSTANCE = "aws:ec2/instance:Instance"
SPOT = "aws:ec2/spotInstanceRequest:SpotInstanceRequest"
TEMPLATE = "aws:ec2/launchTemplate:LaunchTemplate"
CONFIGURATION = "aws:ec2/launchConfiguration:LaunchConfiguration"
SPOT_FLEET = "aws:ec2/spotFleetRequest:SpotFleetRequest"
GROUP = "aws:autoscaling/group:Group"
SUBNET = "aws:ec2/subnet:Subnet"
INTERFACE = "aws:ec2/networkInterface:NetworkInterface"
EIP = "aws:ec2/eip:Eip"
ASSOCIATION = "aws:ec2/eipAssociation:EipAssociation"
GCP_INSTANCE = "gcp:compute/instance:Instance"
GCP_FROM_TEMPLATE = "gcp:compute/instanceFromTemplate:InstanceFromTemplate"
GCP_TEMPLATE = "gcp:compute/instanceTemplate:InstanceTemplate"
GCP_REGION_TEMPLATE = "gcp:compute/regionInstanceTemplate:RegionInstanceTemplate"

FLAG = "associatePublicIpAddress"
NIC = {"networkInterfaces": [{FLAG: "false", "deviceIndex": 0}]}
SPECIFIED = {"launchSpecifications": [{FLAG: False, "ami": "a", "instanceType": "g6.xlarge"}]}
WORKING = {"networkInterfaces": [{"subnetwork": "private"}]}

ADDRESSES: list[tuple[str, list[dict[str, Any]]]] = [
    ("accessConfigs", [{}]),
    ("accessConfigs", [{"natIp": "203.0.113.7"}]),
    ("ipv6AccessConfigs", [{"networkTier": "PREMIUM"}]),
]
ASKED = [
    *(
        Case(t, {FLAG: False, "subnetId": "subnet-1"}, FLAG, True, f"{FLAG} is true")
        for t in (INSTANCE, SPOT)
    ),
    Case(CONFIGURATION, {FLAG: False}, FLAG, True, f"{FLAG} is true"),
    *(
        Case(TEMPLATE, NIC, f"networkInterfaces[0].{FLAG}", bad, f"networkInterfaces[0].{FLAG}")
        for bad in ("true", "True")
    ),
    Case(SPOT_FLEET, SPECIFIED, f"launchSpecifications[0].{FLAG}", True, "is true"),
    *(
        Case(t, WORKING, f"networkInterfaces[0].{box}", bad, f"networkInterfaces[0].{box} asks for")
        for t in (GCP_INSTANCE, GCP_FROM_TEMPLATE, GCP_TEMPLATE, GCP_REGION_TEMPLATE)
        for box, bad in ADDRESSES
    ),
]


@pytest.mark.parametrize("case", ASKED, ids=str)
def test_no_machine_asks_for_a_public_address(case: Case) -> None:
    check(PUBLIC_ADDRESS, case)


@pytest.mark.parametrize(
    ("props", "count"),
    [
        ({}, 1),
        ({FLAG: False}, 0),
        ({"subnetId": "subnet-1"}, 0),
        ({"subnetId": UNKNOWN}, 0),
        ({"launchTemplate": {"id": "lt-1"}}, 0),
        ({"networkInterfaces": [{"networkInterfaceId": "eni-1", "deviceIndex": 0}]}, 0),
        ({"primaryNetworkInterface": {"networkInterfaceId": "eni-1"}}, 0),
    ],
)
def test_a_machine_without_a_subnet_is_in_the_default_one_which_is_public(
    props: dict[str, Any], count: int
) -> None:
    machine = cases.resource(INSTANCE, instanceType="g6.xlarge", **props)
    assert misspelt(INSTANCE, {k: v for k, v in props.items() if v is not UNKNOWN}) == []
    assert len(cases.found(PUBLIC_ADDRESS, machine)) == count


# --- handed out and given -------------------------------------------------------------------------

PUBLIC = cases.resource(SUBNET, "net", id="subnet-1", vpcId="vpc-1", mapPublicIpOnLaunch=True)
LT = cases.resource(TEMPLATE, "lt", id="lt-1", networkInterfaces=[{"deviceIndex": 0}])
LONE = cases.resource(INSTANCE, "vm", subnetId="subnet-1")
POOL = cases.resource(GROUP, "pool", vpcZoneIdentifiers=["subnet-1"], launchTemplate={"id": "lt-1"})


def told(*resources: Any) -> list[tuple[str, str]]:
    found = cases.found(PUBLIC_MACHINES, cases.stack(*map(awaited, resources)))
    return [(type(one).__name__, one.urn.rsplit("::", 1)[-1]) for one in found]


@pytest.mark.parametrize("runner", [LONE, POOL], ids=lambda one: one.name)
def test_a_subnet_of_machines_hands_out_no_addresses(runner: Any) -> None:
    assert told(PUBLIC, LT, runner) == [("Violation", "net")]
    private = replace(PUBLIC, props={**PUBLIC.props, "mapPublicIpOnLaunch": False})
    assert told(private, LT, runner) == []
    waiting = replace(PUBLIC, props={**PUBLIC.props, "mapPublicIpOnLaunch": UNKNOWN})
    assert told(waiting, LT, runner) == [("Undecided", "net")]
    assert told(PUBLIC, LT) == [], "a subnet of gateways alone may"


@pytest.mark.parametrize("path", ["subnetId", "vpcZoneIdentifiers"])
def test_a_subnet_is_found_before_its_id_is_known(path: str) -> None:
    runner = LONE if path == "subnetId" else POOL
    value: Any = UNKNOWN if path == "subnetId" else [UNKNOWN]
    later = replace(runner, props={**runner.props, path: value}, sources={path: (PUBLIC.urn,)})
    assert told(PUBLIC, LT, later) == [("Violation", "net")]


@pytest.mark.parametrize(
    ("nics", "count"),
    [
        ([{"associatePublicIpAddress": "false"}], 0),
        ([{"deviceIndex": 0}, {"deviceIndex": 1}], 0),  # several never get one
        ([], 1),
    ],
)
def test_a_template_may_refuse(nics: list[dict[str, Any]], count: int) -> None:
    template = replace(LT, props={"id": "lt-1", "networkInterfaces": nics})
    assert len(told(PUBLIC, template, POOL)) == count


def test_a_machine_may_refuse_and_an_unseen_template_is_not_judged() -> None:
    assert told(PUBLIC, replace(LONE, props={**LONE.props, FLAG: False})) == []
    assert told(PUBLIC, POOL) == []


GIVEN = [(EIP, "instance"), (EIP, "networkInterface"), (ASSOCIATION, "instanceId"),
         (ASSOCIATION, "networkInterfaceId")]  # fmt: skip


@pytest.mark.parametrize(("type_", "path"), GIVEN)
def test_no_machine_is_given_an_address(type_: str, path: str) -> None:
    known: dict[str, Any] = {path: "i-1"}
    later: dict[str, Any] = {path: UNKNOWN}
    assert misspelt(type_, known) == []
    assert told(cases.resource(type_, "a", **known)) == [("Violation", "a")]
    assert told(cases.resource(type_, "a", **later)) == [("Undecided", "a")]
    # The preview of a new machine: its id is not known, and what it is made from is.
    nic = cases.resource(INTERFACE, "nic")
    for source in (LONE, nic):
        address = cases.resource(type_, "a", sources={path: (source,)}, **later)
        assert told(address, source) == [("Violation", "a")]


def test_an_address_of_a_gateway_is_none_of_a_machine() -> None:
    assert told(cases.resource(EIP, "nat", domain="vpc")) == []


def test_what_the_provider_fills_in_is_not_waited_for() -> None:
    early = cases.resource(EIP, "nat", domain="vpc", instance=UNKNOWN, networkInterface=UNKNOWN)
    assert cases.found(PUBLIC_MACHINES, cases.stack(early)) == []
