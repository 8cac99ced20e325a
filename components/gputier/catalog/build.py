"""Tables → records of GPUs and instance types."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import partial
from typing import NamedTuple

from gputier.catalog.disks import DiskLimit, fastest, limits_of
from gputier.catalog.records import (
    GENERATIONS,
    Gpu,
    InstanceType,
    ZoneCap,
)
from gputier.catalog.tables import Row, Table, records

# Where neither the card's nor the API's own figure is known: the driver, ECC and page tables take
# up to this share of a card (22 of 24 GiB on L4 and A10G is the largest that was measured).
USABLE_SHARE = 0.92

_PROFILE = re.compile(r"([^\s|]+) x(\d+)")


class Volume(NamedTuple):
    mb_s: float | None = None
    burst_mb_s: float | None = None
    iops: float | None = None
    burst_iops: float | None = None


class Interfaces(NamedTuple):
    ipv4: int | None = None
    ipv6: int | None = None
    efa: int | None = None


class LocalDisks(NamedTuple):
    """What Google's table says of a machine's disks: optional local SSDs, boot volumes."""

    ssd_counts: tuple[int, ...] = ()
    ssd_gib: float | None = None
    boot_volumes: tuple[str, ...] = ()


class Facts(NamedTuple):
    """The tables beside the five clouds' own, keyed by instance type."""

    gpus: Mapping[str, Gpu]
    volumes: Mapping[str, Volume]
    interfaces: Mapping[str, Interfaces]
    local_disks: Mapping[str, LocalDisks]
    zone_caps: Mapping[str, tuple[ZoneCap, ...]]
    disk_limits: tuple[DiskLimit, ...]


def gpus(tables: tuple[Table, ...]) -> dict[str, Gpu]:
    return {gpu.model: gpu for gpu in records(tables, _gpu)}


def _gpu(row: Row) -> Gpu:
    architecture = row.text("architecture")
    if architecture not in GENERATIONS:
        raise ValueError(f"architecture `{architecture}` is none of {', '.join(GENERATIONS)}")
    vram = row.required("vram_gib")
    display_name = row.text("display_name")
    return Gpu(
        model=row.text("gpu_model"),
        display_name=display_name,
        architecture=architecture,
        compute_capability=row.required("compute_capability"),
        form_factor=row.text("form_factor"),
        vram_gib=vram,
        usable_gib=row.number("usable_gib"),
        usable_source=row.text("usable_source"),
        marketed_gb=row.number("marketed_gb") or vram,
        memory_type=row.maybe("memory_type"),
        memory_bandwidth_gb_s=row.number("memory_bandwidth_gb_s"),
        ecc=row.truth("ecc"),
        mig_supported=row.truth("mig_supported"),
        mig_max_instances=row.whole("mig_max_instances"),
        mig_profiles=_profiles(row.text("mig_profiles")),
        nvlink_gb_s_per_gpu=row.number("nvlink_gb_s_per_gpu"),
        pcie_generation=row.whole("pcie_generation"),
        fp64_tflops=row.number("fp64_tflops"),
        fp64_tensor_tflops=row.number("fp64_tensor_tflops"),
        fp32_tflops=row.number("fp32_tflops"),
        tf32_tflops=row.number("tf32_tensor_tflops_dense"),
        bf16_tflops=row.number("bf16_tensor_tflops_dense"),
        fp16_tflops=row.number("fp16_tensor_tflops_dense"),
        fp8_tflops=row.number("fp8_tensor_tflops_dense"),
        fp4_tflops=row.number("fp4_tensor_tflops_dense"),
        int8_tops=row.number("int8_tensor_tops_dense"),
        graphics_capable=row.truth("graphics_capable"),
        opengl_vulkan=row.maybe("opengl_vulkan"),
        rt_cores=row.whole("rt_cores"),
        nvenc_count=row.whole("nvenc_count"),
        nvdec_count=row.whole("nvdec_count"),
        vgpu_supported=row.truth("vgpu_supported"),
        tdp_w=row.number("tdp_w"),
        cuda_toolkit_min=row.maybe("cuda_toolkit_min"),
        cuda_toolkit_last=row.maybe("cuda_toolkit_last"),
        driver_branch_last=row.maybe("driver_branch_last"),
        consumer="GeForce" in display_name,
        confidence=row.text("confidence"),
        source=row.text("source"),
        notes=row.text("notes"),
        generation=GENERATIONS[architecture],
    )


def _profiles(cell: str) -> tuple[tuple[str, int], ...]:
    return tuple((name, int(count)) for name, count in _PROFILE.findall(cell))


def instance_types(cloud: str, tables: tuple[Table, ...], facts: Facts) -> list[InstanceType]:
    return list(records(tables, partial(_instance_type, cloud, facts)))


def _instance_type(cloud: str, facts: Facts, row: Row) -> InstanceType:
    name = row.text("instance_type")
    gpu = facts.gpus.get(row.text("gpu_model"))
    if gpu is None:
        raise ValueError(f"gpu_model `{row.text('gpu_model')}` is not in gpus.csv")
    count = row.required("gpu_count")
    memory = row.required("gpu_memory_gib")
    visible = row.number("gpu_memory_visible_mib")
    vcpus, vcpu_range = _number_or_range(row, "vcpus")
    host_memory, memory_range = _number_or_range(row, "memory_gib")
    accelerator, attached = _attached(name)
    interconnect = row.text("interconnect")
    volume = _volume(cloud, name, facts)
    interfaces = _interfaces(cloud, name, interconnect, facts)
    disks = facts.local_disks.get(name, LocalDisks()) if cloud == "gcp" else LocalDisks()
    burst = row.number("network_gbps")
    baseline = row.number("network_baseline_gbps")
    return InstanceType(
        cloud=cloud,
        name=name,
        family=row.text("family"),
        gpu_model=gpu.model,
        gpu_model_confidence=row.text("gpu_model_confidence"),
        gpu_count=count,
        gpu_devices=int(row.required("gpu_devices")),
        fractional=count != int(count),
        gpu_memory_gib=memory,
        gpu_memory_visible_mib=visible,
        usable_gib=usable_gib(gpu, memory, visible),
        memory_class_gb=memory_class_gb(gpu, memory, fractional=count != int(count)),
        vcpus=None if vcpus is None else int(vcpus),
        memory_gib=host_memory,
        vcpu_range=vcpu_range,
        memory_range=memory_range,
        # The API's aarch64 and a declaration's arm64 are the same thing; one spelling inside.
        cpu_arch="arm64" if row.text("cpu_arch") == "aarch64" else row.text("cpu_arch"),
        cpu_platform=row.maybe("cpu_platform"),
        numa_nodes=row.whole("numa_nodes"),
        host_pcie_generation=row.whole("host_pcie_generation"),
        gpu_pcie_link_width=row.whole("gpu_pcie_link_width"),
        local_nvme_count=row.whole("local_nvme_count"),
        local_nvme_gib=row.number("local_nvme_gib_total"),
        attachable_ssd_counts=disks.ssd_counts,
        attachable_ssd_gib=disks.ssd_gib,
        network_sustained_gbps=burst if baseline is None else baseline,
        network_burst_gbps=burst,
        network_cards=row.whole("network_cards"),
        network_interfaces_max=row.whole("network_interfaces_max"),
        efa_interfaces_max=interfaces.efa,
        ipv4_per_interface=interfaces.ipv4,
        ipv6_per_interface=interfaces.ipv6,
        interconnect=interconnect,
        interconnect_gbps=row.number("interconnect_gbps"),
        rdma=row.truth("rdma"),
        gpudirect_rdma=row.truth("gpudirect_rdma"),
        nvlink=row.truth("nvlink"),
        nvlink_gb_s_per_gpu=row.number("nvlink_gb_s_per_gpu"),
        nvlink_domain_gpus=row.whole("nvlink_domain_gpus"),
        placement_group=row.text("placement_group"),
        bare_metal=row.truth("bare_metal"),
        on_demand=row.truth("on_demand_support"),
        spot=row.truth("spot_support"),
        other_purchase=_words(row.text("other_purchase")),
        lifecycle=row.text("lifecycle"),
        volume_mb_s=volume.mb_s,
        volume_burst_mb_s=volume.burst_mb_s,
        volume_iops=volume.iops,
        volume_burst_iops=volume.burst_iops,
        accelerator=accelerator,
        attached_count=attached,
        zone_caps=facts.zone_caps.get(name, ()) if cloud == "gcp" else (),
        boot_volumes=disks.boot_volumes,
        graphics=row.truth("graphics"),
        source=row.text("source"),
        as_of=row.text("as_of"),
        notes=row.text("notes"),
        unverified=_words(row.text("unverified")),
    )


def _volume(cloud: str, name: str, facts: Facts) -> Volume:
    if cloud == "aws":
        return facts.volumes.get(name, Volume())
    most = fastest(limits_of(facts.disk_limits, name)) if cloud == "gcp" else None
    return Volume(mb_s=most.throughput, iops=most.iops) if most else Volume()


def usable_gib(gpu: Gpu, memory_gib: float, visible_mib: float | None) -> float:
    """What a process can allocate on one device: GiB.

    The card's own usable figure times the slice and the figure that the API prints, whichever is
    less. Some APIs print the nominal size as if it were visible; that says nothing, so without a
    figure for the card it counts as the nominal size less 8 %.
    """
    figures: list[float] = []
    if gpu.usable_gib is not None:
        figures.append(gpu.usable_gib * min(1.0, memory_gib / gpu.vram_gib))
    if visible_mib is not None and visible_mib < memory_gib * 1024:
        figures.append(visible_mib / 1024)
    return round(min(figures) if figures else memory_gib * USABLE_SHARE, 2)


def memory_class_gb(gpu: Gpu, memory_gib: float, *, fractional: bool) -> float:
    """The marketed class of one device: 24 for an L4, 12 for half of one, 288 for a B300."""
    if not fractional:
        return gpu.marketed_gb
    return round(gpu.marketed_gb * memory_gib / gpu.vram_gib, 2)


def _number_or_range(row: Row, column: str) -> tuple[float | None, tuple[float, float] | None]:
    cell = row.text(column)
    low, dash, high = cell.partition("-")
    if not dash:
        return row.number(column), None
    try:
        return None, (float(low), float(high))
    except ValueError:
        raise ValueError(f"{column} is `{cell}`, neither a number nor a range like 1-48") from None


def _attached(name: str) -> tuple[str | None, int]:
    host, plus, gpus_part = name.partition("+")
    accelerator, _, count = gpus_part.rpartition("x")
    if host != "n1" or not plus:
        return None, 0
    if not accelerator or not count.isdecimal():
        raise ValueError(f"`{name}` does not read as n1+ACCELERATORxCOUNT")
    return accelerator, int(count)


def _interfaces(cloud: str, name: str, interconnect: str, facts: Facts) -> Interfaces:
    if cloud != "aws":
        return Interfaces()
    # A type that no dump lists (retired ones) and that names no fabric has no EFA interface.
    return facts.interfaces.get(name, Interfaces(efa=0 if interconnect == "none" else None))


def _words(cell: str) -> tuple[str, ...]:
    return tuple(cell.split("|")) if cell else ()


def volumes(tables: tuple[Table, ...]) -> dict[str, Volume]:
    def make(row: Row) -> tuple[str, Volume]:
        return row.text("instance_type"), Volume(
            row.number("baseline_throughput_mb_s"),
            row.number("maximum_throughput_mb_s"),
            row.number("baseline_iops"),
            row.number("maximum_iops"),
        )

    return dict(records(tables, make))


def interfaces(tables: tuple[Table, ...]) -> dict[str, Interfaces]:
    def make(row: Row) -> tuple[str, Interfaces]:
        return row.text("instance_type"), Interfaces(
            row.whole("ipv4_per_interface"),
            row.whole("ipv6_per_interface"),
            row.whole("efa_interfaces_max"),
        )

    return dict(records(tables, make))


def local_disks(tables: tuple[Table, ...]) -> dict[str, LocalDisks]:
    def make(row: Row) -> tuple[str, LocalDisks]:
        counts = ssd_counts(row.text("optional_local_ssd_counts"))
        size = row.number("local_ssd_disk_gib") if counts else None
        # `hyperdisk-balanced (only)`: a remark, not part of the kind's name.
        kinds = re.sub(r"\s*\(.*?\)", "", row.text("boot_disk_types")).split("|")
        boot = tuple(kind for kind in kinds if kind)
        return row.text("machine_type"), LocalDisks(counts, size, boot)

    return dict(records(tables, make))


def ssd_counts(cell: str) -> tuple[int, ...]:
    """`1-8|16|24 (a remark)` → 1…8, 16, 24; `0|4 (…)` → 4; `no (fixed)` → none."""
    found: set[int] = set()
    for part in re.split(r"[(;]", cell, maxsplit=1)[0].split("|"):
        low, _, high = part.strip().partition("-")
        if low.isdecimal():
            found.update(range(int(low), int(high or low) + 1))
    return tuple(sorted(found - {0}))


def zone_caps(tables: tuple[Table, ...]) -> dict[str, tuple[ZoneCap, ...]]:
    def make(row: Row) -> tuple[str, ZoneCap]:
        cap = ZoneCap(
            row.text("zone"), int(row.required("vcpus_max")), row.required("memory_gib_max")
        )
        return row.text("instance_type"), cap

    found: dict[str, tuple[ZoneCap, ...]] = {}
    for name, cap in records(tables, make):
        found[name] = (*found.get(name, ()), cap)
    return found
