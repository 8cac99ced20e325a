"""One candidate: an instance type, what is attached to it, and how many of it.

A GCP N1 row is a composed offering: `host` is the predefined N1 machine that carries the GPUs and
gives the candidate its vCPUs and memory. `ssd_count` is attached local SSDs (GCP).
"""

from __future__ import annotations

from typing import NamedTuple

from gputier.catalog import HostMachine, InstanceType
from gputier.sizing import Sizing

#: Egress of an N1 machine per vCPU: "an n1-standard-8 VM … is limited to 16 Gbps total egress
#: bandwidth" (cloud.google.com/compute/docs/network-bandwidth). With GPUs the limit may be higher,
#: by a table that is not in the data; the lower figure is the one to plan with.
N1_GBPS_PER_VCPU = 2.0


class Machine(NamedTuple):
    """A candidate before it has a region and a price. Memory is GiB, `gpus` per machine."""

    type: InstanceType
    host: HostMachine | None
    ssd_count: int
    nodes: int
    sizing: Sizing | None
    memory_floor_gib: float

    @property
    def instance_type(self) -> str:
        """The name the cloud is asked for: the host's for a composed offering."""
        return self.host.name if self.host else self.type.name

    @property
    def gpus(self) -> int:
        """Devices the guest sees; a slice is one device."""
        return self.type.gpu_devices

    @property
    def vcpus(self) -> int | None:
        return self.host.vcpus if self.host else self.type.vcpus

    @property
    def memory_gib(self) -> float | None:
        return self.host.memory_gib if self.host else self.type.memory_gib

    @property
    def network_sustained_gbps(self) -> float | None:
        """What one machine sustains; an N1 host's own limit counts beside its row's."""
        row = self.type.network_sustained_gbps
        if self.host is None or row is None:
            return row
        return min(row, N1_GBPS_PER_VCPU * self.host.vcpus)

    @property
    def volume_mb_s(self) -> float | None:
        """The machine's own limit to network volumes, sustained; an N1 host's where it has one."""
        return self.host.volume_mb_s if self.host else self.type.volume_mb_s

    @property
    def volume_iops(self) -> float | None:
        return self.host.volume_iops if self.host else self.type.volume_iops

    @property
    def attached_ssd_gib(self) -> float:
        return self.ssd_count * (self.type.attachable_ssd_gib or 0.0)

    @property
    def scratch_gib(self) -> float | None:
        """Local NVMe of one machine, bundled and attached; None when not known."""
        if self.ssd_count:
            return self.attached_ssd_gib + (self.type.local_nvme_gib or 0.0)
        return self.type.local_nvme_gib

    @property
    def nvme_disks(self) -> int | None:
        if self.ssd_count:
            return self.ssd_count + (self.type.local_nvme_count or 0)
        return self.type.local_nvme_count

    @property
    def needed_gib(self) -> float:
        """GPU memory that sizing asks of one machine, margin not counted; without a model the
        memory floor of each GPU stands in."""
        per_gpu = self.sizing.needed_gib if self.sizing else self.memory_floor_gib
        return per_gpu * self.gpus

    @property
    def installed_gib(self) -> float:
        """GPU memory of one machine as marketed."""
        return self.type.gpu_memory_gib * self.gpus
