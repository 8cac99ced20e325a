"""Who this machine is, by its metadata service: what names, addresses and the gate derive from.

The fetcher writes the first six to /var/lib/gputier/identity.json at every boot, for it needs them
before the bundle is there; what it leaves out is asked again.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import NamedTuple

from gputier.node import plain
from gputier.node.cloud.metadata import Aws, Gcp, Metadata, Silent
from gputier.node.host import Host

FILE = "/var/lib/gputier/identity.json"
DOMAIN = "amazonaws.com"


class Identity(NamedTuple):
    """`instance_id` is a new one for each new machine (GCP: the number, for names come again).

    `account` is the project id on GCP and the subscription on Azure; `name` is the machine's own
    name (GCP, Azure); `group` the path of the managed group that made it (GCP), "" for none;
    `domain` is what the cloud's services end in, "" while nobody asked.
    """

    cloud: str
    account: str
    region: str
    zone: str
    instance_id: str
    bucket: str = ""
    name: str = ""
    group: str = ""
    domain: str = ""

    def to_json(self) -> str:
        return json.dumps(self._asdict(), sort_keys=True) + "\n"


def load(host: Host) -> Identity | None:
    """What the file says, None when it is not there or says less than the fetcher writes."""
    try:
        data = plain.mapping(json.loads(host.read(FILE) or "")) or {}
    except ValueError:
        return None
    known = {name: str(data[name]) for name in Identity._fields if data.get(name) is not None}
    try:
        return Identity(**known)
    except TypeError:
        return None


def ask(metadata: Metadata, bucket: str = "") -> Identity:
    """Ask the service itself. Raises Silent."""
    if isinstance(metadata, Aws):
        return _aws(metadata, bucket)
    if isinstance(metadata, Gcp):
        return _gcp(metadata, bucket)
    return _azure(metadata, bucket)


def complete(found: Identity, metadata: Metadata) -> Identity:
    """The same with what the fetcher leaves out: domain, name and group. Raises Silent."""
    if found.domain:
        return found
    asked = ask(metadata, found.bucket)
    if asked.instance_id != found.instance_id:
        # An image baked from a used machine brings that machine's file along.
        return asked
    return found._replace(name=asked.name, group=asked.group, domain=asked.domain)


def _aws(metadata: Aws, bucket: str) -> Identity:
    document = _mapping(metadata.get("dynamic/instance-identity/document"))
    domain = metadata.get("meta-data/services/domain") or DOMAIN
    return Identity(
        "aws",
        _needed(document, "accountId"),
        _needed(document, "region"),
        _needed(document, "availabilityZone"),
        _needed(document, "instanceId"),
        bucket,
        domain=domain,
    )


def _gcp(metadata: Gcp, bucket: str) -> Identity:
    zone = (metadata.get("instance/zone") or "").rsplit("/", 1)[-1]
    made_by = metadata.get("instance/attributes/created-by") or ""
    group = re.search(r"(zones|regions)/[^/]+/instanceGroupManagers/[^/]+$", made_by)
    found = {
        "project/project-id": metadata.get("project/project-id"),
        "instance/zone": zone,
        "instance/id": metadata.get("instance/id"),
        "instance/name": metadata.get("instance/name"),
    }
    return Identity(
        "gcp",
        _needed(found, "project/project-id"),
        _needed(found, "instance/zone").rsplit("-", 1)[0],
        zone,
        _needed(found, "instance/id"),
        bucket,
        name=_needed(found, "instance/name"),
        group=group[0] if group else "",
        domain="googleapis.com",
    )


def _azure(metadata: Metadata, bucket: str) -> Identity:
    compute = _mapping(metadata.get("instance/compute"))
    return Identity(
        "azure",
        _needed(compute, "subscriptionId"),
        _needed(compute, "location"),
        str(compute.get("zone") or ""),
        _needed(compute, "vmId"),
        bucket,
        name=str(compute.get("name") or ""),
        group=str(compute.get("vmScaleSetName") or ""),
        domain="windows.net",
    )


def _mapping(text: str | None) -> Mapping[str, object]:
    try:
        return plain.mapping(json.loads(text or "")) or {}
    except ValueError:
        return {}


def _needed(found: Mapping[str, object], name: str) -> str:
    value = found.get(name)
    if not value:
        raise Silent(f"the metadata service does not say {name}")
    return str(value)
