"""The network of a region: one of our own, or an adopted one, and who may talk to a fleet."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import NamedTuple

import pulumi
import pulumi_aws as aws

from gputier.aws.place import Place
from gputier.errors import InvalidInput, Problem
from gputier.plan.network import NetworkPlan
from gputier.plan.region import CIDR, ENDPOINTS, NAT, PUBLIC, RegionNetwork, SubnetPlan

ANYWHERE = "0.0.0.0/0"
#: From nobody, to everybody: what machines may reach is bounded by their way out.
EVERY_PROTOCOL = "-1"
_ID = re.compile(r"(vpc|subnet)-[0-9a-f]+")


class Subnet(NamedTuple):
    """A subnet that machines may stand in. `zone` is its zone's id, `zone_name` this account's name
    for it (`known_as` where it was looked up); `way` how it gets out, None where nobody knows."""

    id: pulumi.Output[str]
    zone: str
    zone_name: pulumi.Output[str]
    way: str | None
    known_as: str | None = None


class Existing(NamedTuple):
    """A network that is passed in, made elsewhere or in the same program. Its subnets are the
    caller's choice: nothing of them is looked up."""

    vpc_id: pulumi.Input[str]
    subnet_ids: tuple[pulumi.Input[str], ...]
    zone_name: pulumi.Input[str] | None = None


class Stand(NamedTuple):
    """Where one fleet's machines stand. `zone_name` is the first subnet's, for a volume of its
    own."""

    vpc_id: pulumi.Input[str]
    subnet_ids: tuple[pulumi.Input[str], ...]
    zone_name: pulumi.Input[str] | None


class Network(pulumi.ComponentResource):
    """What the fleets of a region share. Raises `InvalidInput` for an adopted network that is not
    there, or has no subnets."""

    vpc_id: pulumi.Output[str]
    subnets: tuple[Subnet, ...]

    def __init__(
        self,
        plan: RegionNetwork,
        *,
        tags: Mapping[str, str] | None = None,
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        super().__init__("gputier:aws:Network", plan.name, None, opts)
        self.plan, self._tags = plan, dict(tags or {})
        if plan.vpc is None:
            self._make()
        else:
            self._adopt(plan.vpc)
        self.register_outputs({"vpc_id": self.vpc_id, "subnet_ids": [s.id for s in self.subnets]})

    def stand(self, network: NetworkPlan, where: str) -> Stand:
        """The subnets for a fleet: in zones that sell its machine, with its way out. `where` is the
        workload, for a refusal."""
        ways = (None, network.egress)
        fit = [s for s in self.subnets if s.way in ways and _lies_in(s, network.zones)]
        if not fit:
            raise InvalidInput(_nowhere(self, network, where))
        # The plan's order of zones decides which is the first; a lone machine stands there.
        fit.sort(key=lambda s: _rank(s, network.zones))
        return Stand(self.vpc_id, tuple(s.id for s in fit), fit[0].zone_name)

    def _make(self) -> None:
        plan = self.plan
        vpc = aws.ec2.Vpc(
            self._called("vpc"),
            cidr_block=CIDR,
            enable_dns_support=True,
            # Interface endpoints answer by the services' own names.
            enable_dns_hostnames=True,
            region=plan.region,
            tags=self._tagged(""),
            opts=self._options(),
        )
        self.vpc_id = vpc.id
        made = {subnet: self._subnet(subnet) for subnet in plan.subnets}
        tables = self._tables(made)
        for subnet, resource in made.items():
            aws.ec2.RouteTableAssociation(
                self._called(f"{subnet.way}-{subnet.zone}"),
                subnet_id=resource.id,
                route_table_id=tables[subnet.way, subnet.gateway].id,
                region=plan.region,
                opts=self._options(),
            )
        self._endpoints(tables, made)
        self.subnets = tuple(
            Subnet(resource.id, subnet.zone, resource.availability_zone, subnet.way)
            for subnet, resource in made.items()
        )

    def _subnet(self, plan: SubnetPlan) -> aws.ec2.Subnet:
        word = f"{plan.way}-{plan.zone}"
        return aws.ec2.Subnet(
            self._called(word),
            vpc_id=self.vpc_id,
            cidr_block=plan.cidr,
            availability_zone_id=plan.zone,
            # An address is a fleet's wish, never a subnet's.
            map_public_ip_on_launch=False,
            region=self.plan.region,
            tags=self._tagged(word),
            opts=self._options(),
        )

    def _tables(
        self, made: Mapping[SubnetPlan, aws.ec2.Subnet]
    ) -> dict[tuple[str, str | None], aws.ec2.RouteTable]:
        """One table for each way out, and for each gateway."""
        kinds = sorted({(s.way, s.gateway) for s in made}, key=str)
        tables = {kind: self._table("-".join(filter(None, kind))) for kind in kinds}
        if (PUBLIC, None) in tables:
            internet = self._internet(tables[PUBLIC, None])
            gateways = {
                subnet.zone: self._gateway(subnet.zone, resource, internet)
                for subnet, resource in made.items()
                if subnet.way == PUBLIC and subnet.zone in self.plan.gateways
            }
            for (way, zone), table in tables.items():
                if way == NAT and zone is not None:
                    self._route(f"nat-{zone}", table, nat_gateway_id=gateways[zone].id)
        return tables

    def _internet(self, table: aws.ec2.RouteTable) -> aws.ec2.InternetGateway:
        internet = aws.ec2.InternetGateway(
            self._called("internet"),
            vpc_id=self.vpc_id,
            region=self.plan.region,
            tags=self._tagged("internet"),
            opts=self._options(),
        )
        self._route(PUBLIC, table, gateway_id=internet.id)
        return internet

    def _table(self, word: str) -> aws.ec2.RouteTable:
        return aws.ec2.RouteTable(
            self._called(word),
            vpc_id=self.vpc_id,
            region=self.plan.region,
            tags=self._tagged(word),
            opts=self._options(),
        )

    def _route(
        self,
        word: str,
        table: aws.ec2.RouteTable,
        *,
        gateway_id: pulumi.Input[str] | None = None,
        nat_gateway_id: pulumi.Input[str] | None = None,
    ) -> None:
        aws.ec2.Route(
            self._called(word),
            route_table_id=table.id,
            destination_cidr_block=ANYWHERE,
            gateway_id=gateway_id,
            nat_gateway_id=nat_gateway_id,
            region=self.plan.region,
            opts=self._options(),
        )

    def _gateway(
        self, zone: str, subnet: aws.ec2.Subnet, internet: aws.ec2.InternetGateway
    ) -> aws.ec2.NatGateway:
        """It has to find the network's way to the internet (EC2 API, CreateNatGateway)."""
        word, region = f"nat-{zone}", self.plan.region
        after = pulumi.ResourceOptions(parent=self, depends_on=[internet])
        address = aws.ec2.Eip(
            self._called(word),
            domain="vpc",
            region=region,
            tags=self._tagged(word),
            opts=after,
        )
        return aws.ec2.NatGateway(
            self._called(word),
            subnet_id=subnet.id,
            allocation_id=address.allocation_id,
            region=region,
            tags=self._tagged(word),
            opts=after,
        )

    def _endpoints(
        self,
        tables: Mapping[tuple[str, str | None], aws.ec2.RouteTable],
        made: Mapping[SubnetPlan, aws.ec2.Subnet],
    ) -> None:
        """S3 costs nothing and is for all; the others are for machines that reach nothing else."""
        plan = self.plan
        aws.ec2.VpcEndpoint(
            self._called("s3"),
            vpc_id=self.vpc_id,
            service_name=_service(plan.region, "s3"),
            vpc_endpoint_type="Gateway",
            route_table_ids=[table.id for table in tables.values()],
            region=plan.region,
            tags=self._tagged("s3"),
            opts=self._options(),
        )
        if not plan.endpoints:
            return
        group = self._endpoint_group()
        for service in plan.endpoints:
            aws.ec2.VpcEndpoint(
                self._called(service),
                vpc_id=self.vpc_id,
                service_name=_service(plan.region, service),
                vpc_endpoint_type="Interface",
                private_dns_enabled=True,
                subnet_ids=[subnet.id for plan_, subnet in made.items() if plan_.way == ENDPOINTS],
                security_group_ids=[group.id],
                region=plan.region,
                tags=self._tagged(service),
                opts=self._options(),
            )

    def _endpoint_group(self) -> aws.ec2.SecurityGroup:
        region = self.plan.region
        group = aws.ec2.SecurityGroup(
            self._called("endpoints"),
            description="services that machines reach inside the network",
            vpc_id=self.vpc_id,
            region=region,
            tags=self._tagged("endpoints"),
            opts=self._options(),
        )
        aws.vpc.SecurityGroupIngressRule(
            self._called("endpoints"),
            security_group_id=group.id,
            description="machines of this network, over TLS",
            ip_protocol="tcp",
            from_port=443,
            to_port=443,
            cidr_ipv4=CIDR,
            region=region,
            opts=self._options(),
        )
        return group

    def _adopt(self, vpc: str) -> None:
        try:
            self.vpc_id, self.subnets = self._looked_up(vpc)
        except Exception as error:  # the SDK raises nothing more exact
            message = f"{vpc} in {self.plan.region} cannot be adopted: {error}"
            hint = "name a network and subnets of this account and region by id, or by tag Name"
            at = f"workloads.{self.plan.asked_by}.network.vpc"
            raise InvalidInput(Problem(at, message, hint)) from error

    def _looked_up(self, vpc: str) -> tuple[pulumi.Output[str], tuple[Subnet, ...]]:
        region, options = self.plan.region, pulumi.InvokeOptions(parent=self)
        by_id, tags = _found_by(vpc)
        found = aws.ec2.get_vpc(id=by_id, tags=tags, region=region, opts=options).id
        inside: list[aws.ec2.GetSubnetsFilterArgsDict] = [{"name": "vpc-id", "values": [found]}]
        named = self.plan.adopted or tuple(
            aws.ec2.get_subnets(filters=inside, region=region, opts=options).ids
        )
        subnets = tuple(self._subnet_of(name, found) for name in named)
        return pulumi.Output.from_input(found), subnets

    def _subnet_of(self, name: str, vpc: str) -> Subnet:
        by_id, tags = _found_by(name)
        found = aws.ec2.get_subnet(
            id=by_id,
            tags=tags,
            vpc_id=vpc,
            region=self.plan.region,
            opts=pulumi.InvokeOptions(parent=self),
        )
        return Subnet(
            id=pulumi.Output.from_input(found.id),
            zone=found.availability_zone_id,
            zone_name=pulumi.Output.from_input(found.availability_zone),
            way=None,
            known_as=found.availability_zone,
        )

    def _called(self, word: str) -> str:
        return f"{self.plan.name}-{word}"

    def _tagged(self, word: str) -> dict[str, str]:
        name = "-".join(filter(None, ("gputier", pulumi.get_stack(), self.plan.name, word)))
        return {**self._tags, "Name": name}

    def _options(self) -> pulumi.ResourceOptions:
        return pulumi.ResourceOptions(parent=self)


def _service(region: str, service: str) -> str:
    """The endpoint's name. China's begin with `cn.`, all but those of S3 and few others."""
    return f"com.amazonaws.{region}.{service}"


def _found_by(name: str) -> tuple[str | None, dict[str, str] | None]:
    """What a name is looked up by: it is an id, or the value of the tag Name."""
    return (name, None) if _ID.fullmatch(name) else (None, {"Name": name})


def _lies_in(subnet: Subnet, zones: tuple[str, ...]) -> bool:
    return not zones or subnet.zone in zones or subnet.known_as in zones


def _rank(subnet: Subnet, zones: tuple[str, ...]) -> int:
    return zones.index(subnet.zone) if subnet.zone in zones else len(zones)


def _nowhere(network: Network, plan: NetworkPlan, where: str) -> Problem:
    has = ", ".join(sorted({subnet.zone for subnet in network.subnets})) or "no zone"
    sold = ", ".join(plan.zones)
    return Problem(
        f"{where}.network.subnets",
        f"no subnet of {network.plan.vpc or network.plan.name} lies where the machine is sold:"
        f" subnets are in {has}, and {sold} have it",
        "add a subnet there, or `zones` of the subnets for another machine",
    )


def security_group(
    place: Place, vpc_id: pulumi.Input[str], *, joined: bool, parent: pulumi.Resource
) -> aws.ec2.SecurityGroup:
    """The fleet's security group: nothing comes in but, where machines work together, from each
    other. EFA wants the rule in both directions (EC2 user guide, EFA security group)."""
    options = pulumi.ResourceOptions(parent=parent)
    group = aws.ec2.SecurityGroup(
        place.logical("security-group"),
        name=place.names.of("security-group"),
        description="machines of one fleet",
        vpc_id=vpc_id,
        region=place.region,
        tags=place.tags,
        # Its name is ours, so the provider would delete first, which waits for running machines in
        # vain. The same name is free in another network.
        opts=pulumi.ResourceOptions(parent=parent, delete_before_replace=False),
    )
    aws.vpc.SecurityGroupEgressRule(
        place.logical("out"),
        security_group_id=group.id,
        description="the way out is bounded by the subnet's routes",
        ip_protocol=EVERY_PROTOCOL,
        cidr_ipv4=ANYWHERE,
        region=place.region,
        opts=options,
    )
    if not joined:
        return group
    for way, kind in _BOTH_WAYS.items():
        kind(
            place.logical(way),
            security_group_id=group.id,
            description="machines of this fleet among themselves",
            ip_protocol=EVERY_PROTOCOL,
            referenced_security_group_id=group.id,
            region=place.region,
            opts=options,
        )
    return group


_BOTH_WAYS = {
    "from-each-other": aws.vpc.SecurityGroupIngressRule,
    "to-each-other": aws.vpc.SecurityGroupEgressRule,
}
