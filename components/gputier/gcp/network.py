"""The network of a region: one of our own, or an adopted one, and who may talk to a fleet."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import pulumi
import pulumi_gcp as gcp

from gputier.errors import InvalidInput, Problem
from gputier.gcp.place import Place, project_of
from gputier.plan.network import NetworkPlan
from gputier.plan.rails import Rail
from gputier.plan.region import ENDPOINTS, NAT
from gputier.plan.region_gcp import RegionNetwork, SubnetPlan

#: Where autohealing asks from (docs.cloud.google.com/compute/docs/samples/
#: compute-firewall-rule-for-health-check-tag, read 2026-12).
HEALTH_CHECKS = ("130.211.0.0/22", "35.191.0.0/16")
#: Where a tunnel of Identity-Aware Proxy comes from
#: (cloud.google.com/iap/docs/using-tcp-forwarding#create-firewall-rule, read 2026-12).
TUNNELS = ("35.235.240.0/20",)
_OF_PROJECT = re.compile(r"projects/(?P<project>[^/]+)/.*/(?P<name>[^/]+)")


class Subnet(NamedTuple):
    """A subnet that machines may stand in. `way` is how it gets out, None where nobody knows;
    `private` whether Google's services are reached without a public address."""

    link: pulumi.Output[str]
    way: str | None
    private: bool


class Existing(NamedTuple):
    """A network that is passed in, made elsewhere or in the same program, with the subnet that
    machines stand in. Nothing of it is looked up. Networks for a fabric are made beside it."""

    network: pulumi.Input[str]
    subnetwork: pulumi.Input[str]


class Interface(NamedTuple):
    """A network interface of a machine: its kind, and where it lies."""

    kind: str
    network: pulumi.Input[str]
    subnetwork: pulumi.Input[str]


class Stand(NamedTuple):
    """Where one fleet's machines stand: their interfaces, the first being the host's."""

    network: pulumi.Input[str]
    interfaces: tuple[Interface, ...]


class Network(pulumi.ComponentResource):
    """What the fleets of a region share. Raises `InvalidInput` for an adopted network that is not
    there, or whose subnet is not to be told."""

    link: pulumi.Output[str]
    subnets: tuple[Subnet, ...]

    def __init__(
        self,
        plan: RegionNetwork,
        *,
        existing: Existing | None = None,
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        super().__init__("gputier:gcp:Network", plan.name, None, opts)
        self.plan = plan
        self._about = f"gputier {pulumi.get_project()} {pulumi.get_stack()}"
        if existing is not None:
            self.link = pulumi.Output.from_input(existing.network)
            subnet = pulumi.Output.from_input(existing.subnetwork)
            self.subnets = (Subnet(subnet, None, private=True),)
        elif plan.vpc is None:
            self._make()
        else:
            self._adopt(plan.vpc)
        self._rails = self._make_rails()
        self.register_outputs({"network": self.link, "subnetworks": [s.link for s in self.subnets]})

    def stand(self, network: NetworkPlan, where: str) -> Stand:
        """Where a fleet stands: in the subnet with its way out. `where` is the workload, for a
        refusal."""
        subnet = next(s for s in self.subnets if s.way in (None, network.egress))
        if network.egress == ENDPOINTS and not subnet.private:
            message = f"the subnet of {self.plan.vpc} has no Private Google Access, and nothing"
            raise InvalidInput(
                Problem(
                    f"{where}.network.egress",
                    f"{message} else reaches Google's services without a way out",
                    "turn it on for the subnet, or `egress: nat`",
                )
            )
        beside = (self._interface(rail) for rail in network.rails)
        return Stand(self.link, (Interface("GVNIC", self.link, subnet.link), *beside))

    def _interface(self, rail: Rail) -> Interface:
        network, subnet = self._rails[rail.network, rail.place]
        return Interface(rail.kind, network, subnet)

    def _make(self) -> None:
        made = self._network("network")
        self.link = made.self_link
        resources = {subnet: self._subnet(made, subnet) for subnet in self.plan.subnets}
        self.subnets = tuple(
            Subnet(resource.self_link, subnet.way, private=True)
            for subnet, resource in resources.items()
        )
        if self.plan.nat:
            inside = [made.self_link for plan, made in resources.items() if plan.way == NAT]
            self._gateway(made, inside)

    def _network(
        self, word: str, mtu: int | None = None, profile: pulumi.Output[str] | None = None
    ) -> gcp.compute.Network:
        return gcp.compute.Network(
            self._called(word),
            description=self._about,
            auto_create_subnetworks=False,
            routing_mode="REGIONAL",
            mtu=mtu,
            network_profile=profile,
            opts=self._options(),
        )

    def _subnet(self, network: gcp.compute.Network, plan: SubnetPlan) -> gcp.compute.Subnetwork:
        return gcp.compute.Subnetwork(
            self._called(plan.way),
            description=self._about,
            network=network.self_link,
            region=self.plan.region,
            ip_cidr_range=plan.cidr,
            # The store, metrics and logs are reached inside, whatever else a machine reaches.
            private_ip_google_access=True,
            opts=self._options(),
        )

    def _gateway(self, network: gcp.compute.Network, inside: list[pulumi.Output[str]]) -> None:
        """The way out of machines without an address, for their own subnet alone."""
        region = self.plan.region
        router = gcp.compute.Router(
            self._called("router"),
            description=self._about,
            network=network.self_link,
            region=region,
            opts=self._options(),
        )
        gcp.compute.RouterNat(
            self._called("nat"),
            router=router.name,
            region=region,
            nat_ip_allocate_option="AUTO_ONLY",
            source_subnetwork_ip_ranges_to_nat="LIST_OF_SUBNETWORKS",
            subnetworks=[
                {"name": link, "source_ip_ranges_to_nats": ["ALL_IP_RANGES"]} for link in inside
            ],
            opts=self._options(),
        )

    def _make_rails(
        self,
    ) -> Mapping[tuple[str, int], tuple[pulumi.Output[str], pulumi.Output[str]]]:
        """Each rail's network and subnet. Those of RDMA share one network, which takes no firewall
        rule; into another come machines of its own rail alone."""
        networks: dict[str, gcp.compute.Network] = {}
        made: dict[tuple[str, int], tuple[pulumi.Output[str], pulumi.Output[str]]] = {}
        for rail in self.plan.rails:
            if rail.network not in networks:
                networks[rail.network] = self._network(rail.network, rail.mtu, self._profile(rail))
            network = networks[rail.network]
            subnet = self._rail_subnet(network, rail)
            if rail.profile is None:
                self._open_rail(network, rail)
            made[rail.network, rail.place] = (network.self_link, subnet.self_link)
        return made

    def _profile(self, rail: Rail) -> pulumi.Output[str] | None:
        if rail.profile is None:
            return None
        project = project_of(self).id
        return pulumi.Output.concat("projects/", project, "/global/networkProfiles/", rail.profile)

    def _rail_subnet(self, network: gcp.compute.Network, rail: Rail) -> gcp.compute.Subnetwork:
        word = rail.network if rail.profile is None else f"{rail.network}-{rail.place}"
        return gcp.compute.Subnetwork(
            self._called(word),
            description=self._about,
            network=network.self_link,
            region=self.plan.region,
            ip_cidr_range=rail.cidr,
            opts=self._options(),
        )

    def _open_rail(self, network: gcp.compute.Network, rail: Rail) -> None:
        gcp.compute.Firewall(
            self._called(rail.network),
            description=self._about,
            network=network.self_link,
            direction="INGRESS",
            source_ranges=[rail.cidr],
            allows=[{"protocol": protocol} for protocol in ("tcp", "udp", "icmp")],
            opts=self._options(),
        )

    def _adopt(self, vpc: str) -> None:
        try:
            self.link, self.subnets = self._looked_up(vpc)
        except InvalidInput:
            raise
        except Exception as error:  # the SDK raises nothing more exact
            message = f"{vpc} in {self.plan.region} cannot be adopted: {error}"
            hint = "name a network and a subnet of this region, by name or by projects/…/NAME"
            at = f"workloads.{self.plan.asked_by}.network.vpc"
            raise InvalidInput(Problem(at, message, hint)) from error

    def _looked_up(self, vpc: str) -> tuple[pulumi.Output[str], tuple[Subnet, ...]]:
        project, name = _split(vpc)
        options = pulumi.InvokeOptions(parent=self)
        found = gcp.compute.get_network(name=name, project=project, opts=options)
        named = self.plan.adopted or self._only(vpc, found.subnetworks_self_links)
        of, subnet = _split(named)
        inside = gcp.compute.get_subnetwork(
            name=subnet, project=of or project, region=self.plan.region, opts=options
        )
        link = pulumi.Output.from_input(inside.self_link)
        private = Subnet(link, None, private=inside.private_ip_google_access)
        return pulumi.Output.from_input(found.self_link), (private,)

    def _only(self, vpc: str, links: Sequence[str]) -> str:
        """The network's subnet in this region, where it has one and no more."""
        here = [link for link in links if f"/regions/{self.plan.region}/" in link]
        if len(here) == 1:
            return here[0]
        has = f"{len(here)} subnets" if here else "no subnet"
        message = f"{vpc} has {has} in {self.plan.region}"
        hint = "name it: `network.subnets: [NAME]`" if here else "add one, or take another region"
        at = f"workloads.{self.plan.asked_by}.network.subnets"
        raise InvalidInput(Problem(at, message, hint))

    def _called(self, word: str) -> str:
        return f"{self.plan.name}-{word}"

    def _options(self) -> pulumi.ResourceOptions:
        return pulumi.ResourceOptions(parent=self)


def _split(name: str) -> tuple[str | None, str]:
    """The project and the name of what is named, whole or by its name alone."""
    found = _OF_PROJECT.search(name)
    return (found["project"], found["name"]) if found else (None, name)


class Doors(NamedTuple):
    """Who may talk to a fleet: health checks on `health` (None: there are none), people on `ports`
    by a tunnel, and `joined` machines with each other."""

    health: int | None
    ports: tuple[int, ...]
    joined: bool


def firewall(
    place: Place,
    network: pulumi.Input[str],
    account: pulumi.Input[str],
    doors: Doors,
    parent: pulumi.Resource,
) -> list[pulumi.Resource]:
    """The fleet's rules, for its own account's machines alone: nothing else comes in. What machines
    may reach is bounded by their way out."""
    rules: list[tuple[str, tuple[str, ...], list[int]]] = []
    if doors.health is not None:
        rules.append(("from-health-checks", HEALTH_CHECKS, [doors.health]))
    rules.append(("from-tunnels", TUNNELS, sorted({22, *doors.ports})))
    options = pulumi.ResourceOptions(parent=parent)
    made: list[pulumi.Resource] = [
        gcp.compute.Firewall(
            place.logical(word),
            description=f"{word.replace('-', ' ')}, to {place.names.of('group')}",
            network=network,
            direction="INGRESS",
            source_ranges=list(ranges),
            target_service_accounts=[account],
            allows=[{"protocol": "tcp", "ports": [str(port) for port in ports]}],
            opts=options,
        )
        for word, ranges, ports in rules
    ]
    if doors.joined:
        made.append(
            gcp.compute.Firewall(
                place.logical("from-each-other"),
                description=f"machines of {place.names.of('group')} among themselves",
                network=network,
                direction="INGRESS",
                source_service_accounts=[account],
                target_service_accounts=[account],
                allows=[{"protocol": "all"}],
                opts=options,
            )
        )
    return made
