"""One machine by itself: stopped and started, never replaced by a change, with its own data."""

from __future__ import annotations

from typing import Any

import pulumi
import pulumi_gcp as gcp

from gputier.gcp.machine import (
    SCOPE,
    Parts,
    cards,
    interfaces,
    metadata,
    reservation,
    scheduling,
    shielded,
)
from gputier.gcp.place import Place
from gputier.gcp.storage import DATA
from gputier.plan import Chosen
from gputier.plan.storage import Volume

#: What a later deployment leaves as it is: another image, network, card or way of buying would
#: replace the machine, another type or account would stop it. Its script is read at every boot, so
#: that one changes. A machine made anew has them all: `pulumi destroy --target` it, and `pulumi
#: up`; the data disk stays.
KEPT = (
    "bootDisk",
    "guestAccelerators",
    "machineType",
    "networkInterfaces",
    "reservationAffinity",
    "scheduling",
    "scratchDisks",
    "serviceAccount",
    "zone",
)
#: What would replace the data disk by an empty one: it stays in its zone, under its key.
KEPT_DATA = ("diskEncryptionKey", "snapshot", "type", "zone")


class Machine(pulumi.ComponentResource):
    """The machine and its data disk. `hours` is the schedule that starts and stops it."""

    name: pulumi.Output[str]
    zone: str
    machine: gcp.compute.Instance

    def __init__(
        self,
        place: Place,
        chosen: Chosen,
        parts: Parts,
        *,
        hours: pulumi.Input[str] | None = None,
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        super().__init__("gputier:gcp:Machine", place.name, None, opts)
        self.zone = chosen.network.zones[0]
        told, data = parts.told, chosen.storage.data
        nics: Any = interfaces(chosen, parts)
        bought: Any = scheduling(told)
        attached: Any = cards(told)
        held: Any = reservation(told)
        boot: Any = shielded()
        self.machine = gcp.compute.Instance(
            place.logical("machine"),
            name=place.names.of("instance"),
            zone=self.zone,
            machine_type=chosen.verdict.machine.instance_type,
            boot_disk=parts.storage.boot(parts.image),
            attached_disks=[self._data(place, data, parts)] if data else None,
            scratch_disks=[{"interface": "NVME"} for _ in range(told.ssds)],
            network_interfaces=nics,
            guest_accelerators=attached,
            scheduling=bought,
            reservation_affinity=held,
            resource_policies=hours,
            service_account={"email": parts.account, "scopes": [SCOPE]},
            shielded_instance_config=boot,
            metadata=metadata(parts),
            labels=place.labels,
            opts=pulumi.ResourceOptions(parent=self, ignore_changes=list(KEPT)),
        )
        self.name = self.machine.name
        self.register_outputs({"name": self.name})

    def _data(
        self, place: Place, volume: Volume, parts: Parts
    ) -> gcp.compute.InstanceAttachedDiskArgsDict:
        """The data disk, which outlives the machine: another one gets the same disk."""
        key = parts.storage.key
        made = gcp.compute.Disk(
            place.logical("data"),
            zone=self.zone,
            type=volume.kind,
            size=volume.gib,
            provisioned_iops=volume.iops,
            provisioned_throughput=volume.throughput_mb_s,
            snapshot=volume.snapshot,
            disk_encryption_key=None if key is None else {"kms_key_self_link": key},
            labels=place.labels,
            opts=pulumi.ResourceOptions(parent=self, ignore_changes=list(KEPT_DATA)),
        )
        return {"source": made.self_link, "device_name": DATA}
