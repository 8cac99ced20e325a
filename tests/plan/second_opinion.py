"""What an accepted machine must meet, written a second time from the declaration and the columns
of the catalogue. The product's own rules are not called."""

from __future__ import annotations

import math
from collections.abc import Iterator
from math import inf
from typing import Any

import pytest
from tests.plan.designed import DESIGNED

from gputier import sizing
from gputier.catalog import is_commercial, load
from gputier.plan import Verdict
from gputier.workload import Workload


def breaches(w: Workload, environment: str, v: Verdict) -> Iterator[str]:
    """What an accepted machine breaks, in words; nothing when it keeps every word."""
    for check in (gpu_breaches, host_breaches, place_breaches, money_breaches):
        yield from check(w, v)
    card = load().gpus[v.type.gpu_model]
    if card.consumer and (environment == "prod" or w.purpose != "development"):
        yield "consumer card"
    model = w.model
    if model is None:
        return
    size = sizing.size(w, gpus=v.machine.gpus * v.machine.nodes, kept_free=kept_free(w))
    assert size is not None
    if size.per_gpu_gib > size.limit_fraction * v.type.usable_gib:
        yield "the model does not fit"
    if w.tier in {"mid", "high-end"} and size.needed_gib > 0.7 * v.type.usable_gib + 1e-6:
        yield "less than 30 % of the card stays free"
    floors = {"fp8": 8.9, "bf16": 8.0}
    if card.compute_capability < floors.get(model.precision or "", 0):
        yield "precision"
    if model.precision == "int8" and not card.int8_tops:
        yield "INT8"


def kept_free(w: Workload) -> float:
    return 0.3 if w.tier in {"mid", "high-end"} else 0.0


def asked(w: Workload, rule: str, own: Any, v: Verdict) -> float:
    """The figure that counts: one's own word, else the larger of tier's and purpose's, scaled."""
    if own is not None:
        return float(own)
    found = 0.0
    for name in (w.tier, w.purpose):
        value, per, low, high = DESIGNED.get(name or "", {}).get(rule, (0.0, "", None, None))
        assert isinstance(value, (int, float))
        scaled = value * factor(per, w, v)
        if low is not None:
            scaled = max(scaled, low)
        if high is not None:
            scaled = min(scaled, high)
        found = max(found, scaled)
    return found


def factor(per: str, w: Workload, v: Verdict) -> float:
    if per == "needed":
        return needed_gib(w, v)
    return {
        "": 1.0,
        "gpu": v.machine.gpus,
        "installed": v.type.gpu_memory_gib * v.machine.gpus,
    }[per]


def needed_gib(w: Workload, v: Verdict) -> float:
    size = sizing.size(w, gpus=v.machine.gpus * v.machine.nodes, kept_free=kept_free(w))
    each = size.needed_gib if size else asked(w, "gpu_memory", w.gpu.memory, v)
    return each * v.machine.gpus


def wants(w: Workload, rule: str, own: object) -> bool:
    """A yes-or-no floor: one's own word wins over tier and purpose."""
    if own is not None and own != ():
        return bool(own)
    return any(rule in DESIGNED.get(name or "", {}) for name in (w.tier, w.purpose))


def gpu_breaches(w: Workload, v: Verdict) -> Iterator[str]:
    t, gpu, card = v.type, w.gpu, load().gpus[v.type.gpu_model]
    named = {m for name in gpu.models for m in load().match_gpus(name)}
    if gpu.models and t.gpu_model not in named:
        yield "model"
    if t.gpu_model in {m for name in gpu.exclude for m in load().match_gpus(name)}:
        yield "excluded"
    if t.gpu_devices < asked(w, "gpu_count", gpu.count, v):
        yield "count"
    if t.memory_class_gb < asked(w, "gpu_memory", gpu.memory, v):
        yield "memory"
    if t.memory_class_gb * t.gpu_devices < (gpu.total_memory or 0):
        yield "total memory"
    if card.compute_capability < (gpu.compute_capability or 0):
        yield "compute capability"
    speed = None if gpu.nvlink is None else 1.0 if gpu.nvlink is True else float(gpu.nvlink)
    if (t.nvlink_gb_s_per_gpu or 0 if t.nvlink else 0) < asked(w, "nvlink", speed, v):
        yield "NVLink"
    if t.fractional and (gpu.fractional or ("allow" if w.purpose == "vdi" else "")) != "allow":
        yield "a slice"
    if wants(w, "graphics", gpu.graphics) and (card.opengl_vulkan != "true" or t.graphics is False):
        yield "graphics"
    if wants(w, "video_encode", gpu.video_encode) and not card.nvenc_count:
        yield "encoder"
    if gpu.video_decode and not card.nvdec_count:
        yield "decoder"
    if wants(w, "vgpu", gpu.vgpu) and not (card.vgpu_supported or t.fractional):
        yield "vGPU"
    if gpu.mig and (t.fractional or not card.mig_supported):
        yield "MIG"
    if isinstance(gpu.mig, str) and gpu.mig not in dict(card.mig_profiles):
        yield "MIG profile"
    if w.tier == "high-end" and not card.ecc:
        yield "ECC"
    if w.purpose == "inference" and not card.int8_tops:
        yield "INT8 of inference"
    if w.purpose == "hpc" and (card.fp64_tflops or 0) < 0.45 * (card.fp32_tflops or 1e9):
        yield "FP64"


def host_breaches(w: Workload, v: Verdict) -> Iterator[str]:
    t, m = v.type, v.machine
    several = m.nodes > 1
    if (m.vcpus or 0) < asked(w, "vcpu", w.cpu.count, v) - 1e-6:
        yield "vCPU"
    if (m.memory_gib or 0) < asked(w, "host_memory", w.memory, v) - 1e-6:
        yield "host memory"
    if w.cpu.architecture not in {"any", t.cpu_arch}:
        yield "architecture"
    speed = min(t.network_sustained_gbps or 0, 2 * m.host.vcpus if m.host else inf)
    if w.network.burst and m.host is None:
        speed = max(speed, t.network_burst_gbps or 0)
    if speed < asked(w, "network", w.network.bandwidth, v) - 1e-9:
        yield "network"
    fabric = w.fabric or ("rdma" if w.tier == "high-end" and several else "none")
    if fabric in {"any", "rdma"} and t.interconnect == "none":
        yield "fabric"
    if fabric == "rdma" and t.interconnect == "efa" and not t.rdma:
        yield "RDMA"
    if fabric not in {"any", "rdma", "none", t.interconnect}:
        yield "that fabric"
    placement = w.network.placement or ("cluster" if w.tier == "high-end" and several else "none")
    if placement == "cluster" and t.placement_group in {"", "none"}:
        yield "placement"
    nvme = m.ssd_count * 375 + (t.local_nvme_gib or 0)
    if nvme < (w.disk.scratch or 0) or (
        w.tier == "high-end" and w.disk.scratch is None and not nvme
    ):
        yield "scratch"
    if m.ssd_count and m.ssd_count not in t.attachable_ssd_counts:
        yield "that many disks cannot be attached"
    disks = m.ssd_count + (t.local_nvme_count or 0)
    sequential = asked(w, "disk_throughput", w.disk.throughput, v)
    speed, iops = min(t.volume_mb_s or 0, 2000), min(t.volume_iops or 0, 80_000)
    if t.cloud == "gcp":  # no kind there is faster than pd-ssd, which is as fast as it is large
        gib = math.ceil(w.disk.data or 100)
        speed = min(m.volume_mb_s or 0, 240 + 0.48 * gib) if w.disk.throughput else 0
        iops = min(m.volume_iops or 0, 6000 + 30 * gib)
    if max(disks * 500, speed) < sequential:
        yield "disk throughput"
    if iops < (w.disk.iops or 0):
        yield "IOPS"


def place_breaches(w: Workload, v: Verdict) -> Iterator[str]:
    t = v.type
    choice = next(c for c in w.capacity if c.use == v.use)
    if t.cloud not in (w.clouds or ("aws", "gcp")):
        yield "cloud"
    allowed = {str(cloud): names for cloud, names in (w.regions or {}).items()}.get(t.cloud)
    pinned = choice.use in {"reservation", "capacity_block"}
    if not v.region:
        yield "no region"
    elif allowed and v.region not in allowed and not pinned:
        yield "region"
    elif not allowed and not is_commercial(t.cloud, v.region):
        yield "not a commercial region"
    listed = load().zones(t.cloud, t.name)
    if v.availability == "confirmed" and v.region not in listed:
        yield "confirmed where nobody lists it"
    if v.availability == "absent":
        yield "absent"
    zones = (choice.zone,) if choice.zone else w.zones
    if zones and not (v.zones and set(v.zones) <= set(zones)):
        yield "zones"
    if choice.instance_type and t.name != choice.instance_type:
        yield "another type than named"
    if t.lifecycle not in {"current", "previous-generation"} and t.name != choice.instance_type:
        yield f"lifecycle {t.lifecycle}"
    sold = {
        "on_demand": t.on_demand,
        "spot": t.spot,
        "flex_start": "flex-start" in t.other_purchase,
    }
    if sold.get(v.use) is False:
        yield f"not sold as {v.use}"


def money_breaches(w: Workload, v: Verdict) -> Iterator[str]:
    assert v.cost is not None
    choice = next(c for c in w.capacity if c.use == v.use)
    for ceiling in (w.max_usd_per_hour, choice.max_usd_per_hour):
        if ceiling is not None and (v.per_machine is None or v.per_machine > ceiling + 1e-9):
            yield "price ceiling"
    scales = w.scale.min is not None or w.scale.max is not None
    machines = w.nodes or (max(1, w.scale.min or 1) if scales else choice.count)
    if v.cost.machines != (machines or v.machine.nodes):
        yield f"{v.cost.machines} machines are paid"
    if not choice.on_demand_base and v.total is not None:
        assert v.total == pytest.approx((v.per_machine or 0) * v.cost.machines)
