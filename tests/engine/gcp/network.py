"""Networks and what is in them: subnetworks, firewall rules, routers with NAT, addresses."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterator
from typing import Any

from tests.engine import schema
from tests.engine.gcp import documents, links
from tests.engine.gcp.api import GoogleError
from tests.engine.gcp.request import Form, Translation
from tests.engine.gcp.resource import Resource, by_method, matched
from tests.engine.gcp.session import Session
from tests.engine.provider import Refused
from tests.engine.wire import Props, is_unknown


class Network(Resource):
    token = "gcp:compute/network:Network"
    collection = "compute.networks"
    names = {
        "routingMode": "routingConfig.routingMode",
        "bgpAlwaysCompareMed": "routingConfig.bgpAlwaysCompareMed",
        "bgpBestPathSelectionMode": "routingConfig.bgpBestPathSelectionMode",
        "bgpInterRegionCost": "routingConfig.bgpInterRegionCost",
    }
    apart = frozenset({"deleteDefaultRoutesOnCreate", "deleteBgpAlwaysCompareMed"})
    defaults = {
        "autoCreateSubnetworks": True,
        "networkFirewallPolicyEnforcementOrder": "AFTER_CLASSIC_FIREWALL",
    }
    chosen = frozenset({"mtu", "routingMode", "internalIpv6Range"})
    outputs = {
        "networkId": "id",
        "numericId": "id",
        "gatewayIpv4": "gatewayIPv4",
        "routingMode": "routingConfig.routingMode",
    }

    def check(self, gcp: Session, inputs: Props) -> Iterator[schema.Problem]:
        yield from super().check(gcp, inputs)
        mtu = inputs.get("mtu")
        if isinstance(mtu, int) and not 1300 <= mtu <= 8896:
            yield "mtu", f"{mtu} is not from 1300 to 8896"
        profile = inputs.get("networkProfile")
        if profile and inputs.get("autoCreateSubnetworks") is True:
            yield "autoCreateSubnetworks", "a network with a profile is a custom one"

    def made(self, gcp: Session, key: str, body: Props) -> None:
        body.setdefault("mtu", 1460)
        body.setdefault("routingConfig", {}).setdefault("routingMode", "REGIONAL")

    def describe(self, gcp: Session, id_: str, live: Props, inputs: Props) -> Props:
        found = super().describe(gcp, id_, live, inputs)
        return {**found, "networkId": int(live["id"])}


class Subnetwork(Resource):
    token = "gcp:compute/subnetwork:Subnetwork"
    collection, scope = "compute.subnetworks", "region"
    apart = frozenset({"sendSecondaryIpRangeIfEmpty"})
    chosen = frozenset({"purpose", "stackType", "privateIpv6GoogleAccess", "ipCidrRange"})
    restless = {"fingerprint": ("secondaryIpRanges", "logConfig", "stackType")}
    outputs = {"subnetworkId": "id"}

    def made(self, gcp: Session, key: str, body: Props) -> None:
        self._fits(gcp, key, body)
        range_ = body.get("ipCidrRange")
        if range_:
            body["gatewayAddress"] = str(next(ipaddress.ip_network(range_).hosts()))
        body.setdefault("purpose", "PRIVATE")
        body.setdefault("stackType", "IPV4_ONLY")
        body.setdefault("privateIpGoogleAccess", False)

    def check(self, gcp: Session, inputs: Props) -> Iterator[schema.Problem]:
        yield from super().check(gcp, inputs)
        text = inputs.get("ipCidrRange")
        if text and not is_unknown(text):
            try:
                ipaddress.ip_network(text)
            except ValueError as error:
                yield "ipCidrRange", str(error)

    def _fits(self, gcp: Session, key: str, body: Props) -> None:
        """Ranges of one network do not meet."""
        own = body.get("ipCidrRange")
        for other, subnet in gcp.api.objects.items():
            if other == key or "/subnetworks/" not in other or not own:
                continue
            there = subnet.get("ipCidrRange")
            if not there or subnet["network"] != body["network"]:
                continue
            if ipaddress.ip_network(own).overlaps(ipaddress.ip_network(there)):
                raise GoogleError(
                    400,
                    f"Invalid IPCidrRange: {own} conflicts with existing subnetwork "
                    f"'{subnet['name']}'",
                )

    def describe(self, gcp: Session, id_: str, live: Props, inputs: Props) -> Props:
        found = super().describe(gcp, id_, live, inputs)
        return {**found, "subnetworkId": int(live["id"])}

    def _expand(self, gcp: Session, key: str, _olds: Props, news: Props) -> None:
        range_ = {"ipCidrRange": news["ipCidrRange"]}
        self.call(gcp, "expandIpCidrRange", range_, **self.parameters("expandIpCidrRange", key))
        gcp.api.patch(key, range_)

    in_place = {
        "ipCidrRange": _expand,
        "privateIpGoogleAccess": by_method("setPrivateIpGoogleAccess", "privateIpGoogleAccess"),
    }


def _ports(member: str) -> Form:
    """allows and denies: `protocol` is IPProtocol."""

    def sent(_translation: Translation, value: Any) -> Any:
        return [
            rule if is_unknown(rule) else {"IPProtocol": rule.get("protocol"), **_port_list(rule)}
            for rule in value
        ]

    def seen(_translation: Translation, live: Any, _old: Any) -> Any:
        found = [{"protocol": rule["IPProtocol"], **_port_list(rule)} for rule in live or ()]
        return _old if sorted(map(str, found)) == sorted(map(str, _old)) else found

    return Form(member, sent, seen)


def _port_list(rule: Props) -> Props:
    return {"ports": rule["ports"]} if rule.get("ports") else {}


class Firewall(Resource):
    token = "gcp:compute/firewall:Firewall"
    collection = "compute.firewalls"
    names = {"allows": _ports("allowed"), "denies": _ports("denied")}
    apart = frozenset({"enableLogging"})
    defaults = {"priority": 1000}
    chosen = frozenset({"direction", "destinationRanges", "enableLogging"})

    def check(self, gcp: Session, inputs: Props) -> Iterator[schema.Problem]:
        yield from super().check(gcp, inputs)
        sources = ("sourceRanges", "sourceTags", "sourceServiceAccounts")
        direction = inputs.get("direction", "INGRESS")
        if direction == "INGRESS" and not any(inputs.get(name) for name in sources):
            yield "", "one of source_tags, source_ranges, or source_service_accounts is needed"

    def made(self, gcp: Session, key: str, body: Props) -> None:
        body.setdefault("direction", "INGRESS")


class Router(Resource):
    token = "gcp:compute/router:Router"
    collection, scope = "compute.routers", "region"


class RouterNat(Resource):
    """A part of its router: made, changed and deleted as one of its `nats`."""

    token = "gcp:compute/routerNat:RouterNat"
    collection, scope, creates = "compute.routers", "region", "patch"
    apart = frozenset({"router", "initialNatIps"})
    chosen = frozenset({"natIpAllocateOption", "minPortsPerVm", "endpointTypes", "autoNetworkTier"})
    defaults = {
        "icmpIdleTimeoutSec": 30,
        "tcpEstablishedIdleTimeoutSec": 1200,
        "tcpTimeWaitTimeoutSec": 120,
        "tcpTransitoryIdleTimeoutSec": 30,
        "type": "PUBLIC",
        "udpIdleTimeoutSec": 30,
    }

    @property
    def form(self) -> Props:
        return documents.schema("compute.v1", "RouterNat")

    def check(self, gcp: Session, inputs: Props) -> Iterator[schema.Problem]:
        try:
            nat, where = self.request(gcp, inputs), self.where(gcp)
        except Refused as refused:
            yield refused.problem
            return
        router = inputs.get("router")
        router = "router" if router is None or is_unknown(router) else links.name(router)
        call = {**where, "router": router}
        found = gcp.api.check("compute.routers.patch", call, {"nats": [nat]}, self.beta)
        yield from ((path.replace("nats[0].", ""), why) for path, why in found)
        option = inputs.get("natIpAllocateOption")
        if option == "AUTO_ONLY" and inputs.get("natIps"):
            yield "natIps", "nat_ip_allocate_option must be MANUAL_ONLY to set nat_ips"

    def create(self, gcp: Session, inputs: Props) -> str:
        nat = self.request(gcp, inputs)
        router = self._router(gcp, inputs)
        nats: list[Props] = gcp.api.get(router).get("nats", [])
        if any(other["name"] == nat["name"] for other in nats):
            raise GoogleError(409, f"the router has a NAT {nat['name']} already")
        self._put(gcp, router, [*nats, nat])
        return f"{gcp.project}/{gcp.region}/{links.name(router)}/{nat['name']}"

    def _router(self, gcp: Session, inputs: Props) -> str:
        text = str(inputs["router"])
        if "/" in text:
            return f"compute/{links.path(text)}"
        return f"compute/projects/{gcp.project}/regions/{gcp.region}/routers/{text}"

    def _put(self, gcp: Session, router: str, nats: list[Props]) -> None:
        where = matched("projects/{project}/regions/{region}/routers/{router}", router[8:])
        gcp.api.call("compute.routers.patch", where, {"nats": nats}, self.beta)
        gcp.api.patch(router, {"nats": nats})

    def look(self, gcp: Session, id_: str, inputs: Props) -> Props | None:
        project, region, router, name = id_.split("/")
        key = f"compute/projects/{project}/regions/{region}/routers/{router}"
        nats = gcp.api.objects.get(key, {}).get("nats", [])
        return next((nat for nat in nats if nat["name"] == name), None)

    def update(self, gcp: Session, id_: str, olds: Props, news: Props) -> None:
        router, nat = self._router(gcp, news), self.request(gcp, news)
        nats = gcp.api.get(router).get("nats", [])
        self._put(gcp, router, [nat if other["name"] == nat["name"] else other for other in nats])

    def delete(self, gcp: Session, id_: str, inputs: Props) -> None:
        router = self._router(gcp, inputs)
        nats = gcp.api.objects.get(router, {}).get("nats", [])
        if nats:
            self._put(gcp, router, [nat for nat in nats if nat["name"] != inputs["name"]])


class Address(Resource):
    token = "gcp:compute/address:Address"
    collection, scope, changes = "compute.addresses", "region", ""
    labelled = "labels"
    defaults = {"addressType": "EXTERNAL"}
    chosen = frozenset({"address", "networkTier", "prefixLength", "purpose", "subnetwork"})
    outputs = {"addressId": "id"}
    in_place = {"labels": by_method("setLabels", "labels")}

    def made(self, gcp: Session, key: str, body: Props) -> None:
        count = sum("/addresses/" in other for other in gcp.api.objects)
        body.setdefault("address", f"203.0.113.{count}")
        body.setdefault("labelFingerprint", "0")

    def describe(self, gcp: Session, id_: str, live: Props, inputs: Props) -> Props:
        found = super().describe(gcp, id_, live, inputs)
        return {**found, "users": list(gcp.api.users(self.key_of(id_, inputs)))}


TYPES: tuple[Resource, ...] = (
    Network(),
    Subnetwork(),
    Firewall(),
    Router(),
    RouterNat(),
    Address(),
)
