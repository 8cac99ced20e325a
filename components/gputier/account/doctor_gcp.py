"""What Google is asked about each fleet's machine: where it is sold, what is reserved, its image
and its networks."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

from gputier.account import doctor_checks as checks
from gputier.account.answers import CannotAsk
from gputier.account.doctor import Finding, Once, Question, Subject, bad, good, unknown
from gputier.account.doctor_targets import Target
from gputier.account.session_gcp import GcpSession

GONE = "NOT_FOUND"
#: How the catalogue's architectures are called.
ARCHITECTURES = {"x86_64": "X86_64", "arm64": "ARM64"}
#: The network profile that a zone's RDMA network is made with, by fabric (compute API v1,
#: networkProfiles; docs.cloud.google.com/ai-hypercomputer, create a VM, 2026-04-06).
PROFILES = {"roce": "{zone}-vpc-roce"}
#: A profile of one's own for machines that are bare metal.
METAL = {"a4x-max": "{zone}-vpc-roce-metal"}
_WITHDRAWN = ("DELETED", "OBSOLETE")
_RESERVED = re.compile(r"projects/(?P<project>[^/]+)/reservations/(?P<name>[^/]+)(/.*)?")
_IMAGE = re.compile(
    r"(?:https://[^ ]+?/)?projects/(?P<project>[^/]+)/global/images/(?P<rest>(family/)?[^/]+)"
)


class Gcp:
    """The project as this stack asks it. What several questions need is asked once."""

    def __init__(self, make: Callable[[], GcpSession], subject: Subject) -> None:
        self._make, self.subject, self.once = make, subject, Once()
        #: What the project is called before anything is asked.
        self.called = subject.account.gcp.project or "the project"

    @property
    def session(self) -> GcpSession:
        """Raises `CannotAsk`."""
        return self.once.get("session", self._make)

    @property
    def project(self) -> str:
        return self.session.project

    def lock(self, *flags: str) -> str:
        return " ".join(["gputier lock", self.subject.command, *flags])

    def region(self, name: str) -> dict[str, Any]:
        """A region with its zones and quotas."""
        path = f"projects/{{project}}/regions/{name}"
        return self.once.get(("region", name), lambda: self.session.get("compute", path))

    def there(self, path: str) -> dict[str, Any] | None:
        """A resource of compute; None where it is not there."""
        try:
            return self.session.get("compute", path)
        except CannotAsk as error:
            if error.code == GONE:
                return None
            raise


class Reserved(NamedTuple):
    """What is reserved, in the words of either kind of reservation."""

    state: str
    ready: bool
    properties: Mapping[str, Any]
    total: int
    used: int


def questions(gcp: Gcp, targets: Sequence[Target]) -> Iterator[Question]:
    """Those of each fleet's machine."""
    for t in targets:
        one, network = (t.name,), t.chosen.network
        yield Question(checks.OFFERED_GCP, one, f"{t.type} in {t.where}", partial(_offered, gcp, t))
        if t.market in ("reservation", "capacity_block"):
            about = f"{t.chosen.fleet.reservation_id} in {t.where}"
            yield Question(checks.RESERVATION_GCP, one, about, partial(_reserved, gcp, t))
        image = t.chosen.boot.image
        about = image.id or image.family or "no image"
        known = without_image(t)
        yield Question(checks.IMAGE_GCP, one, about, partial(_image, gcp, t), known)
        if _profiles(t):
            about = ", ".join(_profiles(t))
            yield Question(checks.FABRIC_GCP, one, about, partial(_fabric, gcp, t))
        if network.adopted:
            about = " ".join([str(network.vpc), *network.subnets])
            yield Question(checks.NETWORK_GCP, one, about, partial(_network, gcp, t))


def _offered(gcp: Gcp, target: Target) -> Finding:
    zones = target.zones or tuple(
        sorted(zone.rsplit("/", 1)[-1] for zone in gcp.region(target.region).get("zones", ()))
    )
    accelerator = target.chosen.verdict.type.accelerator
    kinds = [("machineTypes", target.type)]
    if accelerator:
        kinds.append(("acceleratorTypes", accelerator))
    missing: list[str] = []
    for zone in zones:
        for kind, name in kinds:
            found = gcp.there(f"projects/{{project}}/zones/{zone}/{kind}/{name}")
            if found is None or found.get("deprecated", {}).get("state") in _WITHDRAWN:
                missing.append(zone)
                break
    label = " with ".join(name for _, name in kinds)
    sold = [zone for zone in zones if zone not in missing]
    if sold and (not missing or not target.zones):
        return good(f"{label} in {', '.join(sold)}")
    found_ = f"{label} is not sold in {', '.join(missing) or target.region}"
    if sold:
        fix = f"`zones: [{', '.join(sold)}]` of {target.name}, then {gcp.lock()}"
        return bad(found_, fix)
    return bad(found_, f"`regions` of {target.name} without {target.region}, then {gcp.lock()}")


def _reserved(gcp: Gcp, target: Target) -> Finding:
    id_, zone = target.chosen.fleet.reservation_id, (*target.zones, "")[0]
    declare = f"`capacity` of {target.name}: id, instance_type, zone and count as reserved"
    if not id_ or not zone:
        return bad("the reservation is not named", declare)
    shared = _RESERVED.fullmatch(id_)
    project, name = (shared["project"], shared["name"]) if shared else ("{project}", id_)
    place = f"projects/{project}/zones/{zone}"
    found = _reservation(gcp.there(f"{place}/reservations/{name}"))
    if found is None:
        found = _future(gcp.there(f"{place}/futureReservations/{name}"))
    if found is None:
        return bad(f"no reservation {name} in {zone}", declare)
    wrong = list(_unlike(found, target))
    if wrong:
        return bad(f"{name} {found.state}: {'; '.join(wrong)}", declare)
    free = found.total - found.used
    return good(f"{name} {found.state}: {target.type} in {zone}, {free} of {found.total} free")


def _reservation(document: Mapping[str, Any] | None) -> Reserved | None:
    if document is None:
        return None
    specific: Mapping[str, Any] = document.get("specificReservation", {})
    state = str(document.get("status", "?"))
    return Reserved(
        state,
        state in ("READY", "UPDATING"),
        specific.get("instanceProperties", {}),
        int(specific.get("count", 0)),
        int(specific.get("inUseCount", 0)),
    )


def _future(document: Mapping[str, Any] | None) -> Reserved | None:
    """What will be reserved: it is fine once Google has said yes."""
    if document is None:
        return None
    specific: Mapping[str, Any] = document.get("specificSkuProperties", {})
    state = str(document.get("status", {}).get("procurementStatus", "?"))
    said_yes = ("APPROVED", "COMMITTED", "PROCURING", "PROVISIONING", "FULFILLED")
    return Reserved(
        state,
        state in said_yes,
        specific.get("instanceProperties", {}),
        int(specific.get("totalCount", 0)),
        0,
    )


def _unlike(found: Reserved, target: Target) -> Iterator[str]:
    """In what a reservation is not what the fleet needs."""
    if not found.ready:
        yield "it is not ready"
    type_ = str(found.properties.get("machineType", "")).rsplit("/", 1)[-1]
    if type_ and type_ != target.type:
        yield f"it is of {type_}, not {target.type}"
    if found.total < target.most:
        yield f"it holds {found.total}, and the fleet has {target.most} at most"
    elif found.total - found.used < target.most:
        yield f"{found.used} of {found.total} are in use, and the fleet has {target.most} at most"


def without_image(target: Target) -> Finding | None:
    """What is wrong before anybody is asked."""
    image = target.chosen.boot.image
    if image.placeholder:
        return bad(f"{image.id} is a placeholder", _own_image(target))
    if image.id is None and image.family is None:
        return bad(f"no image is known for {target.type}", _own_image(target))
    return None


def _own_image(target: Target) -> str:
    return f"`software.image` of {target.name}: projects/PROJECT/global/images/IMAGE"


def _image(gcp: Gcp, target: Target) -> Finding:
    image, own = target.chosen.boot.image, _own_image(target)
    name = str(image.id or image.family)
    parts = _IMAGE.fullmatch(name)
    path = f"projects/{parts['project']}/global/images/{parts['rest']}" if parts else (
        f"projects/{{project}}/global/images/{name}"
    )  # fmt: skip
    found = gcp.there(path)
    if found is None:
        return bad(f"{name} is not there", own)
    label, has = found.get("name", name), found.get("architecture", "ARCHITECTURE_UNSPECIFIED")
    wanted = ARCHITECTURES[target.chosen.verdict.type.cpu_arch]
    withdrawn = found.get("deprecated", {})
    if withdrawn.get("state") in _WITHDRAWN or found.get("status", "READY") != "READY":
        state = withdrawn.get("state") or found["status"]
        return bad(f"{label} is {state.lower()}", str(withdrawn.get("replacement") or own))
    if has not in (wanted, "ARCHITECTURE_UNSPECIFIED"):
        return bad(f"{label} is for {has}, and {target.type} is {wanted}", own)
    size, root = int(found.get("diskSizeGb", 0)), target.chosen.storage.root.gib
    if size > root:
        return bad(f"{label} needs {size} GiB, and the root disk has {root:g}", own)
    if has != wanted:
        return unknown(f"{label}: its architecture is not said")
    if image.pinned:
        return good(f"{label} for {has}, pinned")
    newest = f"{label} for {has}, the newest of its family and not pinned"
    fix = f"`software.image: projects/{parts['project'] if parts else gcp.project}/global/images/"
    return bad(newest, f"{fix}{label}`") if gcp.subject.production else good(newest)


def _profiles(target: Target) -> tuple[str, ...]:
    """The network profiles that the fleet's RDMA networks are made with, one for each zone."""
    verdict, fabric = target.chosen.verdict, target.chosen.network.fabric
    form = METAL.get(verdict.type.family, PROFILES[fabric]) if fabric in PROFILES else ""
    return tuple(form.format(zone=zone) for zone in target.zones) if form else ()


def _fabric(gcp: Gcp, target: Target) -> Finding:
    names = _profiles(target)
    path = "projects/{project}/global/networkProfiles/"
    missing = [name for name in names if gcp.there(path + name) is None]
    if missing:
        fix = f"another zone, or `fabric: none` of {target.name}"
        return bad(f"no network profile {', '.join(missing)}", fix)
    return good(f"{', '.join(names)} is there")


def _network(gcp: Gcp, target: Target) -> Finding:
    network = target.chosen.network
    name = str(network.vpc).rsplit("/", 1)[-1]
    declared = f"`network.vpc` and `network.subnets` of {target.name}"
    found = gcp.there(f"projects/{{project}}/global/networks/{name}")
    if found is None:
        return bad(f"no network {name} in {gcp.project}", declared)
    for one in network.subnets:
        subnet = one.rsplit("/", 1)[-1]
        path = f"projects/{{project}}/regions/{target.region}/subnetworks/{subnet}"
        has = gcp.there(path)
        if has is None:
            return bad(f"no subnet {subnet} in {target.region}", declared)
        if str(has.get("network", "")).rsplit("/", 1)[-1] != name:
            return bad(f"subnet {subnet} is not of {name}", declared)
    wanted, mtu = _mtu(gcp, target), int(found.get("mtu", 1460))
    if wanted and mtu != wanted:
        fix = f"gcloud compute networks update {name} --mtu={wanted} --project={gcp.project}"
        return bad(f"{name} has an MTU of {mtu}, and {network.fabric} wants {wanted}", fix)
    return good(f"{name} is there, with an MTU of {mtu}")


def _mtu(gcp: Gcp, target: Target) -> int | None:
    """The MTU that a fabric wants of a machine's networks; None without one."""
    if target.chosen.network.fabric == "none":
        return None
    for row in gcp.subject.catalog.facts("gcp_machines"):
        if row["machine_type"] == target.type and row["mtu_recommended"].isdigit():
            return int(row["mtu_recommended"])
    return None
