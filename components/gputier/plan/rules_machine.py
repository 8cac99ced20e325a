"""Rules about the machine around the GPUs: one plain function each, None when the floor is met."""

from __future__ import annotations

from gputier import units
from gputier.catalog import Gpu
from gputier.catalog.disks import Most
from gputier.plan.machine import Machine
from gputier.plan.reasons import (
    UNKNOWN,
    Context,
    Reason,
    at_least,
    bound,
    doublings,
    way_out,
)
from gputier.plan.tiers import Floor

#: Sequential read of one local NVMe disk that a plan counts on, MB/s. Unverified: AWS publishes no
#: sequential figure and Google's table (660 MiB/s for one 375 GiB disk) is recalled, so a lower
#: round number stands for both; plans say so and the node measures the real one.
NVME_MB_S_PER_DISK = 500.0


def vcpu(floor: Floor, m: Machine, _g: Gpu, _c: Context) -> Reason | None:
    relax = way_out("cpu.count", m.vcpus)
    return at_least("vcpu", bound(floor, m), m.vcpus, lambda v: f"{units.number(v)} vCPU", relax)


def host_memory(floor: Floor, m: Machine, _g: Gpu, _c: Context) -> Reason | None:
    relax = way_out("memory", m.memory_gib, "GiB")
    return at_least("host_memory", bound(floor, m), m.memory_gib, units.gib, relax)


def architecture(floor: Floor, m: Machine, _g: Gpu, _c: Context) -> Reason | None:
    if m.type.cpu_arch == floor.value:
        return None
    relax = f"cpu.architecture: {m.type.cpu_arch} or any"
    return Reason("architecture", str(floor.value), m.type.cpu_arch, relax)


def network(floor: Floor, m: Machine, _g: Gpu, c: Context) -> Reason | None:
    sustained = m.network_sustained_gbps
    has = m.type.network_burst_gbps if c.burst and m.host is None else sustained
    if c.burst and has is None:
        has = sustained
    reason = at_least("network", bound(floor, m), has, units.gbps, "")
    if reason is None:
        return None
    burst = m.type.network_burst_gbps if m.host is None else None
    shown = reason.has
    if not c.burst and burst is not None and sustained is not None and burst > sustained:
        shown = f"{reason.has} sustained, up to {units.gbps(burst)}"
    relax = way_out("network.bandwidth", has, "Gbps")
    return Reason("network", reason.needed, shown, relax, reason.gap)


#: Fabrics that move GPU memory between machines without the host's help; EFA without RDMA (g4dn,
#: g5, p3dn) does not.
GPU_FABRICS = frozenset({"gpudirect-tcpx", "gpudirect-tcpxo", "roce", "infiniband", "erdma"})


def fabric(floor: Floor, m: Machine, _g: Gpu, c: Context) -> Reason | None:
    if floor.when_nodes and not c.several_nodes:
        return None
    has = m.type.interconnect
    if floor.value == "any":
        met = has != "none"
    elif floor.value == "rdma":
        met = has in GPU_FABRICS or bool(m.type.rdma)
    else:
        met = has == floor.value
    if met:
        return None
    needed = {"any": "a fabric between machines", "rdma": "an RDMA fabric"}.get(
        str(floor.value), str(floor.value)
    )
    shown = f"{has} without RDMA" if has == "efa" and floor.value == "rdma" else has
    return Reason("fabric", needed, shown, "fabric: none")


#: Placement features that put machines close together, by the catalogue's words.
CLUSTERS = frozenset(
    {
        "cluster",
        "compact-placement",
        "compact-placement (1x72 topology)",
        "proximity-placement-group",
        "vmss-single-placement-group",
    }
)


def placement(floor: Floor, m: Machine, _g: Gpu, c: Context) -> Reason | None:
    if (floor.when_nodes and not c.several_nodes) or floor.value != "cluster":
        return None
    if m.type.placement_group in CLUSTERS:
        return None
    relax = "network.placement: none"
    return Reason("placement", "cluster placement", m.type.placement_group or "none", relax)


def scratch(floor: Floor, m: Machine, _g: Gpu, _c: Context) -> Reason | None:
    wanted = bound(floor, m)
    if wanted > 1:
        relax = way_out("disk.scratch", m.scratch_gib, "GiB")
        return at_least("scratch", wanted, m.scratch_gib, units.size, relax)
    if m.scratch_gib:
        return None
    has = UNKNOWN if m.scratch_gib is None else "none"
    return Reason("scratch", "local NVMe", has, "disk.scratch has no floor outside high-end")


#: What one gp3 volume can be set to: 2,000 MiB/s and 80,000 IOPS (EC2 API 2016-11-15, CreateVolume,
#: botocore 1.44.8). A plan that needs more takes local NVMe.
GP3_MAX_MB_S, GP3_MAX_IOPS = 2000.0, 80000.0


def disk_speeds(m: Machine, volume: Most | None = None) -> tuple[float | None, float | None]:
    """MB/s that local NVMe and one attached volume sustain: None where nothing is known, 0 none.
    `volume` is what one of the declared size gives (Google)."""
    disks = m.nvme_disks
    nvme = None if disks is None else disks * NVME_MB_S_PER_DISK
    if m.type.cloud == "gcp":
        return nvme, volume.throughput if volume else None
    limit = m.type.volume_mb_s
    return nvme, None if limit is None else min(limit, GP3_MAX_MB_S)


def disk_throughput(floor: Floor, m: Machine, _g: Gpu, c: Context) -> Reason | None:
    wanted = bound(floor, m)
    nvme, volume = disk_speeds(m, c.volume)
    # A Persistent Disk is as fast as it is large: what a tier asks for makes none larger.
    if m.type.cloud == "gcp" and floor.origin != "workload":
        volume = None
    if (nvme or 0) >= wanted or (volume or 0) >= wanted:
        return None
    parts = [
        f"NVMe {units.mb_s(nvme)}" if nvme else "no NVMe" if nvme == 0 else f"NVMe {UNKNOWN}",
        f"volume {units.mb_s(volume)} sustained" if volume else f"volume limit {UNKNOWN}",
    ]
    best = max(nvme or 0, volume or 0)
    relax = f"disk.throughput: {best:g}MB/s" if best else "disk.throughput"
    gap = doublings(best, wanted)
    return Reason("disk_throughput", f"≥ {units.mb_s(wanted)}", ", ".join(parts), relax, gap)


def disk_iops(floor: Floor, m: Machine, _g: Gpu, c: Context) -> Reason | None:
    limit = m.type.volume_iops
    has = None if limit is None else min(limit, GP3_MAX_IOPS)
    if m.type.cloud == "gcp":
        has = c.volume.iops if c.volume else None
    relax = way_out("disk.iops", has)
    return at_least("disk_iops", floor.number, has, lambda v: f"{v:,.0f} IOPS sustained", relax)
