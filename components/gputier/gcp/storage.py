"""Disks, and the key that encrypts them."""

from __future__ import annotations

from typing import Any

import pulumi
import pulumi_gcp as gcp

from gputier.gcp.place import Place, project_of
from gputier.plan.storage import StoragePlan, Volume

#: What the data disk is called: a machine finds it by that (`google-data`, node/stages/data.py).
DATA = "data"
#: Compute Engine's own account in a project, which opens disks (recalled and so unverified).
OPENS = "service-{0}@compute-system.iam.gserviceaccount.com"
#: The only thing that it has to be allowed (iam-dataset@2073fa52a, 2026-08-22).
OPENING = "roles/cloudkms.cryptoKeyEncrypterDecrypter"


class Storage(pulumi.ComponentResource):
    """The key of a fleet's disks, and the disks as templates and machines are told of them.

    `key` is the name of a key that is passed in, which comes before the plan's. Without one disks
    are encrypted by Google's own.
    """

    key: pulumi.Output[str] | None

    def __init__(
        self,
        place: Place,
        plan: StoragePlan,
        *,
        key: pulumi.Input[str] | None = None,
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        super().__init__("gputier:gcp:Storage", place.name, None, opts)
        self._place, self.plan = place, plan
        given = key or (plan.key.id if plan.key else None)
        self.key = None if given is None else pulumi.Output.from_input(given)
        if self.key is not None:
            number = project_of(self).number
            gcp.kms.CryptoKeyIAMMember(
                place.logical("key"),
                crypto_key_id=self.key,
                role=OPENING,
                member=pulumi.Output.format("serviceAccount:" + OPENS, number),
                opts=pulumi.ResourceOptions(parent=self),
            )
        self.register_outputs({"key": self.key})

    def disks(self, image: pulumi.Input[str], ssds: int) -> list[Any]:
        """Every disk, for an instance template: it boots from the first."""
        plan, key = self.plan, self.key and {"kms_key_self_link": self.key}
        root = _disk(plan.root)
        made = [{**root, "boot": True, "source_image": image, "disk_encryption_key": key}]
        if plan.data is not None:
            snapshot = {"source_snapshot": plan.data.snapshot} if plan.data.snapshot else {}
            data = {**_disk(plan.data), "device_name": DATA, **snapshot}
            made.append({**data, "disk_encryption_key": key})
        return [*made, *(SCRATCH for _ in range(ssds))]

    def boot(self, image: pulumi.Input[str]) -> gcp.compute.InstanceBootDiskArgs:
        """The boot disk of a lone machine. It goes with the machine: what is to stay lies on the
        data disk."""
        root = self.plan.root
        return gcp.compute.InstanceBootDiskArgs(
            auto_delete=True,
            kms_key_self_link=self.key,
            initialize_params=gcp.compute.InstanceBootDiskInitializeParamsArgs(
                image=image,
                type=root.kind,
                size=root.gib,
                provisioned_iops=root.iops,
                provisioned_throughput=root.throughput_mb_s,
                labels=dict(self._place.labels),
            ),
        )


SCRATCH = {"type": "SCRATCH", "disk_type": "local-ssd", "disk_size_gb": 375, "interface": "NVME"}


def _disk(volume: Volume) -> dict[str, Any]:
    return {
        "disk_type": volume.kind,
        "disk_size_gb": volume.gib,
        "provisioned_iops": volume.iops,
        "provisioned_throughput": volume.throughput_mb_s,
        "auto_delete": not volume.stays,
        "type": "PERSISTENT",
    }
