"""Addresses and interfaces: elastic IPs, NAT gateways, network interfaces."""

from __future__ import annotations

from typing import Any

from tests.engine.aws.ec2 import Ec2
from tests.engine.aws.found import plain
from tests.engine.aws.resource import Resource, only
from tests.engine.aws.session import Session
from tests.engine.wire import Props


class Eip(Ec2):
    token = "aws:ec2/eip:Eip"
    kind, creates, answer = "elastic-ip", "AllocateAddress", "AllocationId"
    describes = ("DescribeAddresses", "AllocationIds", "Addresses")
    deletes = ("ReleaseAddress", "AllocationId")
    apart = frozenset({"instance", "networkInterface", "associateWithPrivateIp"})
    chosen = frozenset({"instance", "networkInterface", "domain", "networkBorderGroup"})
    renames = {"instance": "InstanceId", "networkInterface": "NetworkInterfaceId"}

    def _associate(self, aws: Session, id_: str, _olds: Props, news: Props) -> None:
        ec2 = aws.client("ec2")
        live = only(ec2.describe_addresses(AllocationIds=[id_])["Addresses"])
        if live.get("AssociationId"):
            ec2.disassociate_address(AssociationId=live["AssociationId"])
        to = {self.renames[k]: news[k] for k in self.renames if news.get(k)}
        if to:
            ec2.associate_address(AllocationId=id_, **to)

    def delete(self, aws: Session, id_: str, inputs: Props) -> None:
        self._associate(aws, id_, inputs, {})
        super().delete(aws, id_, inputs)

    in_place = {**Ec2.in_place, **dict.fromkeys(apart, _associate)}


class NatGateway(Ec2):
    token = "aws:ec2/natGateway:NatGateway"
    kind, creates, answer = "natgateway", "CreateNatGateway", "NatGateway.NatGatewayId"
    describes = ("DescribeNatGateways", "NatGatewayIds", "NatGateways")
    deletes = ("DeleteNatGateway", "NatGatewayId")
    chosen = frozenset({"privateIp", "secondaryPrivateIpAddresses"})

    def check(self, aws: Session, inputs: Props) -> Any:
        yield from super().check(aws, inputs)
        if inputs.get("connectivityType", "public") == "public" and "allocationId" not in inputs:
            yield "allocationId", "a public NAT gateway needs an elastic IP"

    def look(self, aws: Session, id_: str, inputs: Props) -> Props | None:
        live = super().look(aws, id_, inputs)
        return live if live and live["State"] not in ("deleted", "deleting") else None

    def describe(self, aws: Session, id_: str, live: Props, inputs: Props) -> Props:
        address = plain(only(live.get("NatGatewayAddresses", ())) or {})
        found = {**address, **super().describe(aws, id_, live, inputs)}
        return {k: v for k, v in found.items() if k != "arn"}

    def delete(self, aws: Session, id_: str, inputs: Props) -> None:
        live = self.look(aws, id_, inputs)
        super().delete(aws, id_, inputs)
        # AWS takes the gateway's interface with it; moto leaves it behind.
        for address in (live or {}).get("NatGatewayAddresses", ()):
            interface = address["NetworkInterfaceId"]
            aws.client("ec2").delete_network_interface(NetworkInterfaceId=interface)


class NetworkInterface(Ec2):
    token = "aws:ec2/networkInterface:NetworkInterface"
    kind, creates = "network-interface", "CreateNetworkInterface"
    answer = "NetworkInterface.NetworkInterfaceId"
    describes = ("DescribeNetworkInterfaces", "NetworkInterfaceIds", "NetworkInterfaces")
    deletes = ("DeleteNetworkInterface", "NetworkInterfaceId")
    renames = {"securityGroups": "Groups"}
    apart = frozenset({"sourceDestCheck", "privateIps"})
    chosen = frozenset({"privateIp", "privateIps", "securityGroups", "interfaceType"})

    def request(self, aws: Session, inputs: Props) -> Props:
        made = super().request(aws, inputs)
        if addresses := inputs.get("privateIps"):
            made["PrivateIpAddress"] = addresses[0]
        return made

    def _check(self, aws: Session, id_: str, _olds: Props, news: Props) -> None:
        value = {"Value": news.get("sourceDestCheck", True)}
        aws.client("ec2").modify_network_interface_attribute(
            NetworkInterfaceId=id_, SourceDestCheck=value
        )

    def _groups(self, aws: Session, id_: str, _olds: Props, news: Props) -> None:
        groups: list[str] = news.get("securityGroups") or []
        aws.client("ec2").modify_network_interface_attribute(NetworkInterfaceId=id_, Groups=groups)

    def describe(self, aws: Session, id_: str, live: Props, inputs: Props) -> Props:
        found = super().describe(aws, id_, live, inputs)
        found["securityGroups"] = [group["GroupId"] for group in live["Groups"]]
        found["privateIp"] = live["PrivateIpAddress"]
        found["privateIps"] = [a["PrivateIpAddress"] for a in live["PrivateIpAddresses"]]
        found["tags"] = plain(live.get("TagSet") or []) or {}
        return found

    in_place = {**Ec2.in_place, "sourceDestCheck": _check, "securityGroups": _groups}


TYPES: tuple[Resource, ...] = (Eip(), NatGateway(), NetworkInterface())
