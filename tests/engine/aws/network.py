"""VPCs and what is in them: subnets, gateways to the internet, routes, endpoints."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tests.engine.aws.ec2 import Ec2
from tests.engine.aws.resource import Change, Resource, digest, only
from tests.engine.aws.session import Session
from tests.engine.provider import Refused
from tests.engine.wire import Props

VPC_ATTRIBUTES = ("enableDnsSupport", "enableDnsHostnames", "enableNetworkAddressUsageMetrics")
SUBNET_ATTRIBUTES = ("mapPublicIpOnLaunch", "assignIpv6AddressOnCreation")


def _pascal(name: str) -> str:
    return name[:1].upper() + name[1:]


def _attributes(operation: str, id_parameter: str, names: tuple[str, ...]) -> Mapping[str, Change]:
    """What changes attributes that AWS sets one at a time."""

    def change(kind: Resource, aws: Session, id_: str, _olds: Props, news: Props) -> None:
        for name in names:
            if name in news:
                value = {"Value": news[name]}
                kind.call(aws, operation, **{id_parameter: id_, _pascal(name): value})

    return dict.fromkeys(names, change)


class Vpc(Ec2):
    token = "aws:ec2/vpc:Vpc"
    kind, creates, answer = "vpc", "CreateVpc", "Vpc.VpcId"
    describes = ("DescribeVpcs", "VpcIds", "Vpcs")
    deletes = ("DeleteVpc", "VpcId")
    apart = frozenset(VPC_ATTRIBUTES)
    chosen = frozenset({"instanceTenancy", *VPC_ATTRIBUTES, "ipv6CidrBlock"})
    renames = {"assignGeneratedIpv6CidrBlock": "AmazonProvidedIpv6CidrBlock"}
    in_place = {
        **Ec2.in_place,
        **_attributes("ModifyVpcAttribute", "VpcId", VPC_ATTRIBUTES),
    }

    def describe(self, aws: Session, id_: str, live: Props, inputs: Props) -> Props:
        ec2, here = aws.client("ec2"), [{"Name": "vpc-id", "Values": [id_]}]
        found = super().describe(aws, id_, live, inputs)
        for name in VPC_ATTRIBUTES:
            answer = ec2.describe_vpc_attribute(VpcId=id_, Attribute=name)
            found[name] = answer[_pascal(name)]["Value"]
        groups = ec2.describe_security_groups(Filters=here)["SecurityGroups"]
        tables = ec2.describe_route_tables(Filters=here)["RouteTables"]
        lists = ec2.describe_network_acls(Filters=here)["NetworkAcls"]
        main = only(t for t in tables if any(a.get("Main") for a in t["Associations"]))
        found["defaultSecurityGroupId"] = only(
            g["GroupId"] for g in groups if g["GroupName"] == "default"
        )
        found["mainRouteTableId"] = found["defaultRouteTableId"] = main and main["RouteTableId"]
        found["defaultNetworkAclId"] = only(a["NetworkAclId"] for a in lists if a["IsDefault"])
        return found


class Subnet(Ec2):
    token = "aws:ec2/subnet:Subnet"
    kind, creates, answer = "subnet", "CreateSubnet", "Subnet.SubnetId"
    describes = ("DescribeSubnets", "SubnetIds", "Subnets")
    deletes = ("DeleteSubnet", "SubnetId")
    apart = frozenset(SUBNET_ATTRIBUTES)
    chosen = frozenset({"availabilityZone", "availabilityZoneId", "cidrBlock"})
    in_place = {
        **Ec2.in_place,
        **_attributes("ModifySubnetAttribute", "SubnetId", SUBNET_ATTRIBUTES),
    }

    def describe(self, aws: Session, id_: str, live: Props, inputs: Props) -> Props:
        return {**super().describe(aws, id_, live, inputs), "arn": live["SubnetArn"]}


class InternetGateway(Ec2):
    token = "aws:ec2/internetGateway:InternetGateway"
    kind, creates = "internet-gateway", "CreateInternetGateway"
    answer = "InternetGateway.InternetGatewayId"
    describes = ("DescribeInternetGateways", "InternetGatewayIds", "InternetGateways")
    deletes = ("DeleteInternetGateway", "InternetGatewayId")
    apart = frozenset({"vpcId"})

    def _detach(self, aws: Session, id_: str) -> None:
        live = self.look(aws, id_, {})
        for attached in (live or {}).get("Attachments", ()):
            vpc = attached["VpcId"]
            aws.client("ec2").detach_internet_gateway(InternetGatewayId=id_, VpcId=vpc)

    def _move(self, aws: Session, id_: str, _olds: Props, news: Props) -> None:
        self._detach(aws, id_)
        if vpc := news.get("vpcId"):
            aws.client("ec2").attach_internet_gateway(InternetGatewayId=id_, VpcId=vpc)

    def describe(self, aws: Session, id_: str, live: Props, inputs: Props) -> Props:
        attached = only(live.get("Attachments", ()))
        return {
            **super().describe(aws, id_, live, inputs),
            "vpcId": attached and attached["VpcId"],
            "ownerId": aws.account,
        }

    def delete(self, aws: Session, id_: str, inputs: Props) -> None:
        self._detach(aws, id_)
        super().delete(aws, id_, inputs)

    in_place = {**Ec2.in_place, "vpcId": _move}


DESTINATIONS = {
    "cidrBlock": "DestinationCidrBlock",
    "ipv6CidrBlock": "DestinationIpv6CidrBlock",
    "destinationPrefixListId": "DestinationPrefixListId",
}


class RouteTable(Ec2):
    token = "aws:ec2/routeTable:RouteTable"
    kind, creates, answer = "route-table", "CreateRouteTable", "RouteTable.RouteTableId"
    describes = ("DescribeRouteTables", "RouteTableIds", "RouteTables")
    deletes = ("DeleteRouteTable", "RouteTableId")
    apart = frozenset({"routes"})

    def _route(self, route: Props) -> Props:
        return {DESTINATIONS.get(k, _pascal(k)): v for k, v in route.items() if v}

    def _reroute(self, aws: Session, id_: str, olds: Props, news: Props) -> None:
        old, new = (list(map(self._route, side.get("routes") or ())) for side in (olds, news))
        for route in (r for r in old if r not in new):
            where = {k: v for k, v in route.items() if k in DESTINATIONS.values()}
            aws.client("ec2").delete_route(RouteTableId=id_, **where)
        for route in (r for r in new if r not in old):
            aws.client("ec2").create_route(RouteTableId=id_, **route)

    def describe(self, aws: Session, id_: str, live: Props, inputs: Props) -> Props:
        found = {**super().describe(aws, id_, live, inputs), "ownerId": aws.account}
        found["routes"] = [_inline(route) for route in live["Routes"] if _is_ours(route)]
        return found

    in_place = {**Ec2.in_place, "routes": _reroute}


def _is_ours(route: Props) -> bool:
    """Neither the VPC's own route nor one that a gateway endpoint put there."""
    gateway = route.get("GatewayId") or ""
    return gateway != "local" and not gateway.startswith("vpce-")


def _inline(route: Props) -> Props:
    by_member = {member: name for name, member in DESTINATIONS.items()}
    known = {"GatewayId", "NatGatewayId", "NetworkInterfaceId", *by_member}
    return {
        by_member.get(k, k[:1].lower() + k[1:]): v for k, v in route.items() if k in known and v
    }


class Route(Ec2):
    token = "aws:ec2/route:Route"
    creates = "CreateRoute"

    def create(self, aws: Session, inputs: Props) -> str:
        self.call(aws, self.creates, **self.request(aws, inputs))
        return f"r-{inputs['routeTableId']}{digest(*self._where(inputs).values())}"

    def _where(self, inputs: Props) -> Props:
        return {_pascal(k): v for k, v in inputs.items() if k.startswith("destination")}

    def look(self, aws: Session, id_: str, inputs: Props) -> Props | None:
        ids = [inputs["routeTableId"]]
        table = only(aws.client("ec2").describe_route_tables(RouteTableIds=ids)["RouteTables"])
        where = self._where(inputs).items()
        return only(route for route in table["Routes"] if where <= route.items())

    def _redirect(self, aws: Session, _id: str, _olds: Props, news: Props) -> None:
        aws.client("ec2").replace_route(**self.request(aws, news))

    def delete(self, aws: Session, id_: str, inputs: Props) -> None:
        where = self._where(inputs)
        aws.client("ec2").delete_route(RouteTableId=inputs["routeTableId"], **where)

    in_place = dict.fromkeys(("gatewayId", "natGatewayId", "networkInterfaceId"), _redirect)


class RouteTableAssociation(Ec2):
    token = "aws:ec2/routeTableAssociation:RouteTableAssociation"
    creates, answer = "AssociateRouteTable", "AssociationId"

    def look(self, aws: Session, id_: str, inputs: Props) -> Props | None:
        """By subnet, as each has one: moving it to another table gives it another id in AWS."""
        tables = aws.client("ec2").describe_route_tables()["RouteTables"]
        every = (a for table in tables for a in table["Associations"])
        subnet = inputs.get("subnetId")
        return only(
            a
            for a in every
            if a["RouteTableAssociationId"] == id_ or (subnet and a.get("SubnetId") == subnet)
        )

    def _move(self, aws: Session, id_: str, olds: Props, news: Props) -> None:
        live = self.look(aws, id_, olds)
        assert live
        aws.client("ec2").replace_route_table_association(
            AssociationId=live["RouteTableAssociationId"], RouteTableId=news["routeTableId"]
        )

    def delete(self, aws: Session, id_: str, inputs: Props) -> None:
        if live := self.look(aws, id_, inputs):
            at = live["RouteTableAssociationId"]
            aws.client("ec2").disassociate_route_table(AssociationId=at)

    in_place = {"routeTableId": _move}


def _endpoint_lists(_kind: Any, aws: Session, id_: str, olds: Props, news: Props) -> None:
    request: Props = {}
    for name, word in (
        ("routeTableIds", "RouteTableIds"),
        ("subnetIds", "SubnetIds"),
        ("securityGroupIds", "SecurityGroupIds"),
    ):
        old, new = (set(side.get(name) or ()) for side in (olds, news))
        request |= {f"Add{word}": sorted(new - old), f"Remove{word}": sorted(old - new)}
    if news.get("policy") != olds.get("policy"):
        request["PolicyDocument"] = news.get("policy")
    if news.get("privateDnsEnabled") != olds.get("privateDnsEnabled"):
        request["PrivateDnsEnabled"] = bool(news.get("privateDnsEnabled"))
    changed = {k: v for k, v in request.items() if v not in ([], None)}
    aws.client("ec2").modify_vpc_endpoint(VpcEndpointId=id_, **changed)


class VpcEndpoint(Ec2):
    token = "aws:ec2/vpcEndpoint:VpcEndpoint"
    kind, creates, answer = "vpc-endpoint", "CreateVpcEndpoint", "VpcEndpoint.VpcEndpointId"
    describes = ("DescribeVpcEndpoints", "VpcEndpointIds", "VpcEndpoints")
    renames = {"policy": "PolicyDocument"}
    apart = frozenset({"autoAccept"})
    defaults = {"vpcEndpointType": "Gateway"}
    chosen = frozenset({"policy", "routeTableIds", "securityGroupIds", "subnetIds"})
    in_place = {
        **Ec2.in_place,
        **dict.fromkeys(
            ("routeTableIds", "subnetIds", "securityGroupIds", "policy", "privateDnsEnabled"),
            _endpoint_lists,
        ),
    }

    def check(self, aws: Session, inputs: Props) -> Any:
        yield from super().check(aws, inputs)
        # AWS says "InvalidServiceName" for a service of another region; moto takes any.
        name = inputs.get("serviceName", "")
        if name.startswith("com.amazonaws.") and not name.startswith(
            f"com.amazonaws.{aws.region}."
        ):
            yield "serviceName", f"{name} is not a service of {aws.region}"

    def look(self, aws: Session, id_: str, inputs: Props) -> Props | None:
        live = super().look(aws, id_, inputs)
        return live if live and live["State"].lower() not in ("deleted", "deleting") else None

    def describe(self, aws: Session, id_: str, live: Props, inputs: Props) -> Props:
        found = super().describe(aws, id_, live, inputs)
        if groups := live.get("Groups"):
            found["securityGroupIds"] = [group["GroupId"] for group in groups]
        lists = aws.client("ec2").describe_prefix_lists()["PrefixLists"]
        prefixes = only(x for x in lists if x["PrefixListName"] == live["ServiceName"])
        if prefixes and live.get("VpcEndpointType", "Gateway") == "Gateway":
            found["prefixListId"] = prefixes["PrefixListId"]
            found["cidrBlocks"] = prefixes.get("Cidrs", [])
        return found

    def delete(self, aws: Session, id_: str, inputs: Props) -> None:
        failed = aws.client("ec2").delete_vpc_endpoints(VpcEndpointIds=[id_])["Unsuccessful"]
        if failed:
            raise Refused("", failed[0]["Error"]["Message"])


TYPES: tuple[Resource, ...] = (
    Vpc(),
    Subnet(),
    InternetGateway(),
    RouteTable(),
    Route(),
    RouteTableAssociation(),
    VpcEndpoint(),
)
