"""Disks of a zone and of a region."""

from __future__ import annotations

from typing import Any

from tests.engine.gcp.request import Form, Translation
from tests.engine.gcp.resource import Resource, by_method
from tests.engine.gcp.session import Session
from tests.engine.wire import Props


def _type(translation: Translation, value: Any) -> Any:
    scope = "zone" if translation.place.zone else "region"
    return translation.place.complete("diskTypes", scope, value)


def _type_now(_translation: Translation, live: Any, old: Any) -> Any:
    name = str(live or "").rsplit("/", 1)[-1]
    return old if name == str(old).rsplit("/", 1)[-1] else name


KEYS = ("diskEncryptionKey", "sourceImageEncryptionKey", "sourceSnapshotEncryptionKey")


class Disk(Resource):
    token = "gcp:compute/disk:Disk"
    collection, scope, changes = "compute.disks", "zone", "update"
    labelled = "labels"
    names = {
        "type": Form("type", _type, _type_now),
        "size": "sizeGb",
        "image": "sourceImage",
        "snapshot": "sourceSnapshot",
        **{f"{key}.kmsKeySelfLink": "kmsKeyName" for key in KEYS},
    }
    apart = frozenset({"createSnapshotBeforeDestroy", "createSnapshotBeforeDestroyPrefix"})
    beta = frozenset({"Disk.eraseWindowsVssSignature", "Disk.interface", "Disk.multiWriter"})
    defaults = {"type": "pd-standard"}
    chosen = frozenset(
        {
            "accessMode",
            "enableConfidentialCompute",
            "image",
            "licenses",
            "physicalBlockSizeBytes",
            "provisionedIops",
            "provisionedThroughput",
            "size",
        }
    )
    outputs = {"diskId": "id"}

    def made(self, gcp: Session, key: str, body: Props) -> None:
        body.setdefault("sizeGb", "10" if "sourceImage" in body else "500")
        body.setdefault("physicalBlockSizeBytes", "4096")
        body["labelFingerprint"] = body["fingerprint"]
        body["status"] = "READY"

    def describe(self, gcp: Session, id_: str, live: Props, inputs: Props) -> Props:
        found = super().describe(gcp, id_, live, inputs)
        size = int(live["sizeGb"])
        return {**found, "size": size, "users": list(gcp.api.users(self.key_of(id_, inputs)))}

    def _resize(self, gcp: Session, key: str, _olds: Props, news: Props) -> None:
        body = {"sizeGb": str(news["size"])}
        self.call(gcp, "resize", body, **self.parameters("resize", key))
        gcp.api.patch(key, body)

    def _update(self, gcp: Session, key: str, olds: Props, news: Props) -> None:
        names = {"accessMode", "provisionedIops", "provisionedThroughput"}
        changed = self.difference(gcp, olds, news, names)
        self.call(
            gcp, "update", {**changed, "name": news["name"]}, **self.parameters("update", key)
        )
        gcp.api.patch(key, changed)

    in_place = {
        "size": _resize,
        "labels": by_method("setLabels", "labels"),
        **dict.fromkeys(("accessMode", "provisionedIops", "provisionedThroughput"), _update),
    }


class RegionDisk(Disk):
    token = "gcp:compute/regionDisk:RegionDisk"
    collection, scope = "compute.regionDisks", "region"
    chosen = Disk.chosen - {"enableConfidentialCompute"}
    names = {
        **Disk.names,
        "type": Form(
            "type",
            lambda translation, value: translation.place.complete("diskTypes", "region", value),
            _type_now,
        ),
    }


TYPES: tuple[Resource, ...] = (Disk(), RegionDisk())
