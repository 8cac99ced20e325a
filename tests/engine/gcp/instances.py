"""Machines: lone ones, and those that a group makes from its template."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping
from typing import Any, ClassVar, cast

from tests.engine import schema
from tests.engine.gcp import documents, links, machines
from tests.engine.gcp.api import GoogleError
from tests.engine.gcp.machines import FEATURES, METADATA, NAMES
from tests.engine.gcp.request import Form, Name, Translation
from tests.engine.gcp.resource import Change, Resource, by_method
from tests.engine.gcp.session import Session
from tests.engine.provider import Refused
from tests.engine.wire import UNKNOWN, Props, is_unknown


def _form() -> Props:
    return documents.schema("compute.v1", "AttachedDisk")


def _kind(disk: Props) -> str:
    if disk.get("type") == "SCRATCH":
        return "scratchDisks"
    return "bootDisk" if disk.get("boot") else "attachedDisks"


FIXED: Mapping[str, Props] = {
    "bootDisk": {"boot": True, "type": "PERSISTENT"},
    "attachedDisks": {"type": "PERSISTENT"},
    "scratchDisks": {"type": "SCRATCH", "autoDelete": True},
}


def _disks(prop: str) -> Form:
    """Boot, attached and scratch disks are one list in the API."""

    def sent(translation: Translation, value: Any) -> Any:
        several = cast(list[Any], value) if isinstance(value, list) else [value]
        return [
            disk
            if is_unknown(disk)
            else {
                **FIXED[prop],
                **translation.body(_form(), disk, f"{prop}."),
                **_types(prop, translation, disk),
            }
            for disk in several
        ]

    def seen(translation: Translation, live: Any, old: Any) -> Any:
        found = [disk for disk in live or () if _kind(disk) == prop]
        olds = cast(list[Props], old) if isinstance(old, list) else [old]
        now = [
            translation.back(_form(), was, disk, f"{prop}.")
            for was, disk in zip(olds, found, strict=False)
        ]
        now += [{"source": disk.get("source")} for disk in found[len(olds) :]]
        return now if isinstance(old, list) else (now[0] if now else None)

    return Form("disks", sent, seen)


def _types(prop: str, translation: Translation, disk: Props) -> Props:
    if prop != "scratchDisks":
        return {}
    return {
        "initializeParams": {
            "diskType": translation.place.complete("diskTypes", "zone", "local-ssd")
        }
    }


def _source(prop: str) -> Form:
    """A disk by its name, its id or its link."""
    return Form(
        "source",
        lambda translation, value: translation.place.complete("disks", "zone", value),
        lambda _translation, live, old: old if links.same(old, live) else live,
    )


KEYS = {
    "kmsKeySelfLink": "diskEncryptionKey.kmsKeyName",
    "diskEncryptionKeyRaw": "diskEncryptionKey.rawKey",
    "diskEncryptionKeyRsa": "diskEncryptionKey.rsaEncryptedKey",
    "diskEncryptionKeySha256": "diskEncryptionKey.sha256",
    "diskEncryptionServiceAccount": "diskEncryptionKey.kmsKeyServiceAccount",
}
INSTANCE: dict[str, Name] = {
    **METADATA,
    **NAMES,
    "bootDisk": _disks("bootDisk"),
    "attachedDisks": _disks("attachedDisks"),
    "scratchDisks": _disks("scratchDisks"),
    "bootDisk.source": _source("bootDisk"),
    "attachedDisks.source": _source("attachedDisks"),
    "scratchDisks.size": "diskSizeGb",
    "bootDisk.guestOsFeatures": FEATURES,
    "bootDisk.initializeParams.image": "sourceImage",
    "bootDisk.initializeParams.snapshot": "sourceSnapshot",
    "bootDisk.initializeParams.size": "diskSizeGb",
    "bootDisk.initializeParams.type": "diskType",
    "enableDisplay": "displayDevice.enableDisplay",
    **{
        f"{disk}.{prop}": member
        for disk in ("bootDisk", "attachedDisks")
        for prop, member in KEYS.items()
    },
    **{
        f"bootDisk.initializeParams.{key}.kmsKeySelfLink": "kmsKeyName"
        for key in ("sourceImageEncryptionKey", "sourceSnapshotEncryptionKey")
    },
    "instanceEncryptionKey.kmsKeySelfLink": "kmsKeyName",
}


def _stopped(verb: str, member: str, *, body: str = "") -> Change:
    """A change that the provider stops the machine for, if it may."""
    change = by_method(verb, member, body=body)

    def stopped(kind: Resource, gcp: Session, key: str, olds: Props, news: Props) -> None:
        running = gcp.api.get(key)["status"] == "RUNNING"
        if running and not news.get("allowStoppingForUpdate"):
            raise Refused(
                member,
                "Changing the machine_type, min_cpu_platform, service_account, enable_display, "
                "shielded_instance_config, or network interfaces on a started instance requires "
                "stopping it. To acknowledge this, set allow_stopping_for_update = true",
            )
        change(kind, gcp, key, olds, news)

    return stopped


class Instance(Resource):
    token = "gcp:compute/instance:Instance"
    collection, scope, changes = "compute.instances", "zone", ""
    names: ClassVar[Mapping[str, Name]] = INSTANCE
    apart = frozenset({"allowStoppingForUpdate", "desiredStatus"})
    beta = frozenset(
        {
            "Instance.eraseWindowsVssSignature",
            "Instance.partnerMetadata",
            "Scheduling.maintenanceInterval",
            "NetworkInterface.macAddress",
        }
    )
    labelled = "labels"
    chosen = frozenset(
        {"guestAccelerators", "minCpuPlatform", "reservationAffinity", "scheduling", "zone"}
    )
    outputs = {"currentStatus": "status"}
    restless = {
        "metadataFingerprint": ("metadata", "metadataStartupScript"),
        "tagsFingerprint": ("tags",),
        "labelFingerprint": ("labels",),
        "currentStatus": ("desiredStatus",),
    }

    def check(self, gcp: Session, inputs: Props) -> Iterator[schema.Problem]:
        yield from super().check(gcp, inputs)
        try:
            body = self.request(gcp, inputs)
        except Refused:
            return
        yield from machines.refused(body)
        if inputs.get("desiredStatus") not in (None, "RUNNING", "SUSPENDED", "TERMINATED"):
            yield "desiredStatus", "is none of RUNNING, SUSPENDED, TERMINATED"

    def made(self, gcp: Session, key: str, body: Props) -> None:
        born(gcp, key, body)
        for disk in body.get("disks", ()):
            disk.setdefault("autoDelete", bool(disk.get("boot")))
            if "source" not in disk and disk.get("type") != "SCRATCH":
                disk["source"] = _new_disk(gcp, key, body["name"], disk)

    filled = frozenset({"networkInterfaces"})

    def inside(self, live: Props | None, inputs: Props) -> Props:
        cards = inputs.get("networkInterfaces")
        if not isinstance(cards, list):
            return {}
        found: list[Props] = (live or {}).get("networkInterfaces") or []
        several = cast(list[Any], cards)
        return {
            "networkInterfaces": [
                card if is_unknown(card) else _filled(card, found[index] if live else None)
                for index, card in enumerate(several)
            ]
        }

    def create(self, gcp: Session, inputs: Props) -> str:
        found = super().create(gcp, inputs)
        status = inputs.get("desiredStatus")
        if status and status != "RUNNING":
            gcp.api.patch(f"compute/{found}", {"status": status})
        return found

    def describe(self, gcp: Session, id_: str, live: Props, inputs: Props) -> Props:
        prints = ("metadataFingerprint", "tagsFingerprint", "labelFingerprint")
        found = super().describe(gcp, id_, live, inputs)
        cpu = {"cpuPlatform": "Intel Cascade Lake", "instanceId": live["id"]}
        return {**found, **dict.fromkeys(prints, live["fingerprint"]), **cpu}

    def read(self, gcp: Session, live: Props, inputs: Props) -> Props:
        found = super().read(gcp, live, inputs)
        if inputs.get("desiredStatus"):
            found["desiredStatus"] = live["status"]
        return found

    def delete(self, gcp: Session, id_: str, inputs: Props) -> None:
        key = self.key_of(id_, inputs)
        live = gcp.api.objects.get(key, {})
        if live.get("deletionProtection"):
            raise GoogleError(
                400,
                f"Invalid resource usage: 'Resource cannot be deleted if it's protected: {id_}'",
            )
        super().delete(gcp, id_, inputs)
        if key not in gcp.api.objects:
            without_disks(gcp, live)

    def _status(self, gcp: Session, key: str, _olds: Props, news: Props) -> None:
        wanted = news.get("desiredStatus") or "RUNNING"
        verb = {"RUNNING": "start", "TERMINATED": "stop", "SUSPENDED": "suspend"}[wanted]
        self.call(gcp, verb, None, **self.parameters(verb, key))
        gcp.api.patch(key, {"status": wanted})

    def _protect(self, gcp: Session, key: str, _olds: Props, news: Props) -> None:
        protected = bool(news.get("deletionProtection"))
        where = self.parameters("setDeletionProtection", key)
        where["resource"] = where.pop("resource", where.pop("instance", None))
        self.call(gcp, "setDeletionProtection", None, **where, deletionProtection=protected)
        gcp.api.patch(key, {"deletionProtection": protected})

    def _policies(self, gcp: Session, key: str, olds: Props, news: Props) -> None:
        old, new = (
            self.request(gcp, {"resourcePolicies": side.get("resourcePolicies") or []})[
                "resourcePolicies"
            ]
            for side in (olds, news)
        )
        for verb, gone in (
            ("removeResourcePolicies", [p for p in old if p not in new]),
            ("addResourcePolicies", [p for p in new if p not in old]),
        ):
            if gone:
                self.call(gcp, verb, {"resourcePolicies": gone}, **self.parameters(verb, key))
        gcp.api.patch(key, {"resourcePolicies": new})

    def _attach(self, gcp: Session, key: str, olds: Props, news: Props) -> None:
        old, new = (
            self.request(gcp, {"attachedDisks": side.get("attachedDisks") or []}).get("disks", [])
            for side in (olds, news)
        )
        live = gcp.api.get(key)
        for disk in (d for d in old if d not in new):
            where = self.parameters("detachDisk", key)
            device = disk.get("deviceName") or links.name(disk["source"])
            self.call(gcp, "detachDisk", None, **where, deviceName=device)
        for disk in (d for d in new if d not in old):
            self.call(gcp, "attachDisk", disk, **self.parameters("attachDisk", key))
        kept = [disk for disk in live.get("disks", ()) if _kind(disk) != "attachedDisks"]
        gcp.api.resolve(new)
        live["disks"] = [*kept, *new]

    def _accounts(self, gcp: Session, key: str, olds: Props, news: Props) -> None:
        account = self.request(gcp, news).get("serviceAccounts", [{}])[0]
        where = self.parameters("setServiceAccount", key)
        self.call(gcp, "setServiceAccount", account, **where)
        gcp.api.get(key)["serviceAccounts"] = [account]

    in_place = {
        "attachedDisks": _attach,
        "deletionProtection": _protect,
        "desiredStatus": _status,
        "labels": by_method("setLabels", "labels"),
        "metadata": by_method("setMetadata", "metadata", body="."),
        "metadataStartupScript": by_method("setMetadata", "metadata", body="."),
        "machineType": _stopped("setMachineType", "machineType"),
        "minCpuPlatform": _stopped("setMinCpuPlatform", "minCpuPlatform"),
        "resourcePolicies": _policies,
        "scheduling": by_method("setScheduling", "scheduling", body="."),
        "serviceAccount": _accounts,
        "shieldedInstanceConfig": _stopped(
            "updateShieldedInstanceConfig", "shieldedInstanceConfig", body="."
        ),
        "tags": by_method("setTags", "tags", body="."),
    }


def _filled(card: Props, live: Props | None) -> Props:
    """An interface with its addresses, as far as they are known."""
    own = live or {}
    found = {
        "name": own.get("name", UNKNOWN),
        "networkIp": own.get("networkIP", UNKNOWN),
        **card,
    }
    accesses = card.get("accessConfigs")
    if isinstance(accesses, list):
        there: list[Props] = own.get("accessConfigs") or [{}] * len(cast(list[Any], accesses))
        found["accessConfigs"] = [
            {"natIp": at.get("natIP", UNKNOWN), **access}
            for access, at in zip(cast(list[Props], accesses), there, strict=False)
        ]
    return found


def born(gcp: Session, key: str, body: Props) -> None:
    """What a machine has as soon as it runs."""
    number = sum("/instances/" in other for other in gcp.api.objects)
    body.setdefault("status", "RUNNING")
    body["zone"] = links.link("/".join(key.split("/")[1:5]))
    for index, card in enumerate(body.get("networkInterfaces", ())):
        card.setdefault("name", f"nic{index}")
        card.setdefault("networkIP", f"10.128.{index}.{number + 1}")
        for access in card.get("accessConfigs", ()):
            access.setdefault("natIP", f"198.51.100.{number}")


def _new_disk(gcp: Session, key: str, name: str, disk: Props) -> str:
    """The disk that is made with a machine."""
    new: Props = disk.get("initializeParams") or {}
    own = new.get("diskName") or (
        name if disk.get("boot") else f"{name}-{disk.get('deviceName', 1)}"
    )
    at = f"{key.rsplit('/', 2)[0]}/disks/{own}"
    body: Props = {"name": own, "sizeGb": new.get("diskSizeGb", "10"), "status": "READY"}
    gcp.api.insert(at, {**body, **{k: v for k, v in new.items() if k in ("labels", "sourceImage")}})
    gcp.api.objects[at] |= gcp.api.born(at)
    return gcp.api.objects[at]["selfLink"]


def without_disks(gcp: Session, live: Props) -> None:
    """Its disks go with a machine if they are to."""
    for disk in live.get("disks", ()):
        if disk.get("autoDelete") and disk.get("source"):
            gcp.api.objects.pop(f"compute/{links.path(disk['source'])}", None)


def from_template(gcp: Session, key: str, template: Props, manager: str) -> None:
    """A machine of a group; its disks are not told apart from it."""
    properties = copy.deepcopy(cast(Props, template["properties"]))
    properties.pop("disks", None)
    body: Props = {**properties, "name": key.rsplit("/", 1)[-1]}
    items = body.setdefault("metadata", {}).setdefault("items", [])
    created = {"key": "created-by", "value": f"projects/{manager}"}
    items.append(created)
    gcp.api.objects[key] = {**gcp.api.born(key), **body}
    born(gcp, key, gcp.api.objects[key])


TYPES: tuple[Resource, ...] = (Instance(),)
