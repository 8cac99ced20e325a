"""Instance templates, of a region and of all of them. Nothing of a template can be changed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, ClassVar, cast

from tests.engine import schema
from tests.engine.gcp import machines
from tests.engine.gcp.machines import FEATURES, METADATA, NAMES, below
from tests.engine.gcp.request import Name
from tests.engine.gcp.resource import Resource
from tests.engine.gcp.session import Session
from tests.engine.provider import Refused
from tests.engine.wire import Props, is_unknown

# Parts of a template's disk that make a new disk.
NEW_DISK = (
    "architecture",
    "diskName",
    "diskSizeGb",
    "diskType",
    "labels",
    "provisionedIops",
    "provisionedThroughput",
    "resourceManagerTags",
    "resourcePolicies",
    "sourceImage",
    "sourceImageEncryptionKey",
    "sourceSnapshot",
    "sourceSnapshotEncryptionKey",
    "storagePool",
)
PROPERTIES = (
    "advancedMachineFeatures",
    "canIpForward",
    "confidentialInstanceConfig",
    "disks",
    "guestAccelerators",
    "keyRevocationActionType",
    "machineType",
    "minCpuPlatform",
    "networkInterfaces",
    "networkPerformanceConfig",
    "partnerMetadata",
    "reservationAffinity",
    "resourceManagerTags",
    "resourcePolicies",
    "scheduling",
    "shieldedInstanceConfig",
    "workloadIdentityConfig",
)
OF_TEMPLATE: dict[str, Name] = {
    **below("properties", {name: name for name in PROPERTIES}),
    **below("properties", METADATA),
    **NAMES,
    "serviceAccount": "properties.serviceAccounts",
    "instanceDescription": "properties.description",
    "enableDisplay": "properties.displayDevice.enableDisplay",
    **{f"disks.{name}": f"initializeParams.{name}" for name in NEW_DISK},
    "disks.guestOsFeatures": FEATURES,
    **{
        f"disks.{key}.kmsKeySelfLink": "kmsKeyName"
        for key in ("diskEncryptionKey", "sourceImageEncryptionKey", "sourceSnapshotEncryptionKey")
    },
}


class InstanceTemplate(Resource):
    token = "gcp:compute/instanceTemplate:InstanceTemplate"
    collection, changes = "compute.instanceTemplates", ""
    names: ClassVar[Mapping[str, Name]] = OF_TEMPLATE
    apart = frozenset({"namePrefix"})
    beta = frozenset(
        {
            "InstanceProperties.displayDevice",
            "InstanceProperties.partnerMetadata",
            "Scheduling.maintenanceInterval",
        }
    )
    labelled, types_whole = "properties.labels", False
    chosen = frozenset({"minCpuPlatform", "name", "region"})
    outputs = {"numericId": "id"}

    def check(self, gcp: Session, inputs: Props) -> Iterator[schema.Problem]:
        yield from super().check(gcp, inputs)
        try:
            properties: Props = self.request(gcp, inputs)["properties"]
        except Refused:
            return
        yield from machines.refused(properties)
        disks: Any = properties.get("disks")
        if isinstance(disks, list) and not any(map(_boots, cast(list[Any], disks))):
            yield "disks", "a template needs a disk to boot from"

    def request(self, gcp: Session, inputs: Props) -> Props:
        body = super().request(gcp, inputs)
        if prefix := inputs.get("namePrefix"):
            body["name"] = f"{prefix}{len(gcp.api.calls):08d}"
        properties = body.setdefault("properties", {})
        disks: Any = properties.get("disks")
        for disk in cast(list[Any], disks) if isinstance(disks, list) else ():
            if isinstance(disk, dict):
                cast(Props, disk).setdefault("type", "PERSISTENT")
        return body

    def describe(self, gcp: Session, id_: str, live: Props, inputs: Props) -> Props:
        found = super().describe(gcp, id_, live, inputs)
        link = live["selfLink"]
        return {
            **found,
            "name": live["name"],
            "selfLinkUnique": f"{link}?uniqueId={live['id']}",
            "metadataFingerprint": live["fingerprint"],
            "tagsFingerprint": live["fingerprint"],
        }


def _boots(disk: Any) -> bool:
    return is_unknown(disk) or bool(disk.get("boot"))


class RegionInstanceTemplate(InstanceTemplate):
    token = "gcp:compute/regionInstanceTemplate:RegionInstanceTemplate"
    collection, scope = "compute.regionInstanceTemplates", "region"


TYPES: tuple[Resource, ...] = (InstanceTemplate(), RegionInstanceTemplate())
