"""What a program may ask Google: few functions, on purpose."""

from __future__ import annotations

import re
from collections.abc import Callable

from tests.engine.gcp import links
from tests.engine.gcp.api import GoogleError
from tests.engine.gcp.places import zones
from tests.engine.gcp.session import Session
from tests.engine.provider import Refused
from tests.engine.wire import Props

PROJECT_NUMBER = "123456789012"


def _project(gcp: Session, args: Props) -> Props:
    project = args.get("projectId") or gcp.project
    return {
        **args,
        "id": f"projects/{project}",
        "projectId": project,
        "name": project,
        "number": PROJECT_NUMBER,
        "billingAccount": "",
        "folderId": "",
        "orgId": "",
        "autoCreateNetwork": False,
        "deletionPolicy": "PREVENT",
        "labels": {},
        "effectiveLabels": {},
        "pulumiLabels": {},
        "tags": {},
    }


def _zones(gcp: Session, args: Props) -> Props:
    region = args.get("region") or gcp.region
    if args.get("status") not in (None, "UP", "DOWN"):
        raise Refused("status", f"{args['status']!r} is neither UP nor DOWN")
    names = [] if args.get("status") == "DOWN" else zones(region)
    project = args.get("project") or gcp.project
    id_ = f"projects/{project}/regions/{region}"
    return {**args, "id": id_, "names": names, "project": project, "region": region}


def _image(gcp: Session, args: Props) -> Props:
    project, name, family = (args.get(k) for k in ("project", "name", "family"))
    if args.get("filter"):
        raise Refused("filter", "the stand-in finds an image by its name or its family only")
    if bool(name) == bool(family):
        raise Refused("name", "one of name, family or filter must be set")
    project = project or gcp.project
    wanted = f"family/{family}" if family else str(name)
    path = f"projects/{project}/global/images/{wanted}"
    found: Props = {"image": links.link(path)}
    try:
        gcp.api.resolve(found)
    except GoogleError as error:
        raise Refused("", str(error)) from error
    image = gcp.cloud.get(found["image"])
    return {
        **args,
        "id": links.path(found["image"]),
        "name": image["name"],
        "family": image["family"],
        "project": project,
        "selfLink": image["selfLink"],
        "imageId": image["id"],
        "diskSizeGb": int(image["diskSizeGb"]),
        "creationTimestamp": image["creationTimestamp"],
        "status": image["status"],
        "description": image["description"],
        "archiveSizeBytes": int(image["archiveSizeBytes"]),
        "labelFingerprint": "",
        "labels": {},
        "licenses": [],
        "imageEncryptionKeySha256": "",
        "sourceDisk": "",
        "sourceDiskEncryptionKeySha256": "",
        "sourceDiskId": "",
        "sourceImageId": "",
    }


def _client(gcp: Session, args: Props) -> Props:
    place = gcp.place
    return {
        "id": f"projects/{place.project}/regions/{place.region}/zones/{place.zone}",
        "project": place.project,
        "region": place.region,
        "zone": place.zone,
        "accessToken": "of no use outside of this test",
        "defaultLabels": gcp.settings.get("defaultLabels") or {},
    }


def _network(gcp: Session, args: Props) -> Props:
    """A network that somebody else made."""
    project = args.get("project") or gcp.project
    path = f"projects/{project}/global/networks/{args['name']}"
    found = _there(gcp, path)
    subnets = [
        subnet["selfLink"]
        for subnet in gcp.cloud.found("subnetworks")
        if links.same(subnet["network"], path)
    ]
    return {
        **args,
        "id": path,
        "project": project,
        "selfLink": found["selfLink"],
        "description": found.get("description", ""),
        "gatewayIpv4": "",
        "internalIpv6Range": found.get("internalIpv6Range", ""),
        "networkId": int(found["id"]),
        "numericId": found["id"],
        "networkProfile": found.get("networkProfile", ""),
        "subnetworksSelfLinks": subnets,
    }


def _subnetwork(gcp: Session, args: Props) -> Props:
    project, region, name = args.get("project"), args.get("region"), args.get("name")
    if args.get("selfLink"):
        path = links.path(args["selfLink"])
        split = re.fullmatch(r"projects/([^/]+)/regions/([^/]+)/subnetworks/([^/]+)", path)
        if not split:
            raise Refused("selfLink", f"{args['selfLink']} is no link of a subnetwork")
        project, region, name = split.groups()
    project, region = project or gcp.project, region or gcp.region
    path = f"projects/{project}/regions/{region}/subnetworks/{name}"
    found = _there(gcp, path)
    return {
        **args,
        "id": path,
        "project": project,
        "region": region,
        "name": name,
        "selfLink": found["selfLink"],
        "network": found["network"],
        "ipCidrRange": found.get("ipCidrRange", ""),
        "gatewayAddress": found.get("gatewayAddress", ""),
        "description": found.get("description", ""),
        "internalIpv6Prefix": "",
        "ipv6CidrRange": "",
        "privateIpGoogleAccess": bool(found.get("privateIpGoogleAccess")),
        "secondaryIpRanges": [],
        "subnetworkId": int(found["id"]),
        "purpose": found.get("purpose", "PRIVATE"),
        "stackType": found.get("stackType", "IPV4_ONLY"),
    }


def _there(gcp: Session, path: str) -> Props:
    try:
        return gcp.cloud.get(path)
    except GoogleError as error:
        raise Refused("", str(error)) from error


Lookup = Callable[[Session, Props], Props]
LOOKUPS: dict[str, Lookup] = {
    "gcp:compute/getImage:getImage": _image,
    "gcp:compute/getNetwork:getNetwork": _network,
    "gcp:compute/getSubnetwork:getSubnetwork": _subnetwork,
    "gcp:compute/getZones:getZones": _zones,
    "gcp:organizations/getClientConfig:getClientConfig": _client,
    "gcp:organizations/getProject:getProject": _project,
}
