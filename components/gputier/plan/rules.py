"""The rules a machine is held to, as one table of plain functions.

A rule reads one floor and one machine and says nothing (`None`: met) or why not, as a `Reason`.
What is not in the catalogue never meets a floor: the reason then says "not in the catalogue", so
that nobody pays for a machine whose fit could not be shown (docs/adr/0008).

Rules about the market (lifecycle, availability, capacity, price ceiling) are in `market.py`: they
need a region.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from math import floor as whole

from gputier import units
from gputier.catalog import Catalog, Gpu
from gputier.plan.machine import Machine
from gputier.plan.tiers import Floor

UNKNOWN = "not in the catalogue"

#: Sequential read of one local NVMe disk that a plan counts on, MB/s. Unverified: AWS publishes no
#: sequential figure and Google's table (660 MiB/s for one 375 GiB disk) is recalled, so a lower
#: round number stands for both; plans say so and the node measures the real one.
NVME_MB_S_PER_DISK = 500.0


@dataclass(frozen=True, slots=True)
class Reason:
    """Why a machine is rejected: the rule, what it needed, what it has, what to relax."""

    rule: str
    needed: str
    has: str
    relax: str


@dataclass(frozen=True, slots=True)
class Context:
    """What rules may look at besides the machine: whether burst bandwidth counts, and whether
    the workload takes several machines."""

    burst: bool
    several_nodes: bool


Check = Callable[[Floor, Machine, Gpu, Context], Reason | None]


@dataclass(frozen=True, slots=True)
class Rule:
    """`title` is what people read; `droppable` floors get their price shown."""

    name: str
    title: str
    check: Check
    droppable: bool = True


def bound(floor: Floor, machine: Machine) -> float:
    """The floor's figure for this machine: scaled by `per`, then bounded."""
    value = floor.number
    if floor.per == "needed":
        value *= machine.needed_gib
    elif floor.per == "gpu":
        value *= machine.gpus
    elif floor.per == "installed":
        value *= machine.installed_gib
    if floor.at_least is not None:
        value = max(value, floor.at_least)
    if floor.at_most is not None:
        value = min(value, floor.at_most)
    return value


def _at_least(
    rule: str, wanted: float, has: float | None, show: Callable[[float], str], relax: str
) -> Reason | None:
    # The tolerance absorbs float noise in sums, not differences anybody would notice.
    if has is not None and has >= wanted * (1 - 1e-9):
        return None
    return Reason(rule, f"≥ {show(wanted)}", UNKNOWN if has is None else show(has), relax)


def _way_out(field: str, has: float | None, unit: str = "") -> str:
    """A value to paste that this machine meets: rounded down. The field alone when it has
    nothing that could be asked for."""
    if not has:
        return field
    value = str(whole(has)) if has >= 100 else f"{whole(has * 10 + 1e-6) / 10:g}"
    return f"{field}: {value}{unit}"


def _gpu_model(floor: Floor, m: Machine, _g: Gpu, _c: Context) -> Reason | None:
    if m.type.gpu_model in floor.names:
        return None
    wanted = " or ".join(floor.names)
    return Reason("gpu_model", wanted, m.type.gpu_model, f"gpu.models: add {m.type.gpu_model}")


def _gpu_exclude(floor: Floor, m: Machine, _g: Gpu, _c: Context) -> Reason | None:
    if m.type.gpu_model not in floor.names:
        return None
    relax = f"gpu.exclude: drop {m.type.gpu_model}"
    return Reason("gpu_exclude", f"not {' or '.join(floor.names)}", m.type.gpu_model, relax)


def _gpu_count(floor: Floor, m: Machine, _g: Gpu, _c: Context) -> Reason | None:
    if m.gpus >= floor.number:
        return None
    return Reason("gpu_count", f"≥ {floor.number:g} GPUs", str(m.gpus), f"gpu.count: {m.gpus}")


def _gpu_memory(floor: Floor, m: Machine, _g: Gpu, _c: Context) -> Reason | None:
    has = m.type.memory_class_gb
    if has >= floor.number:
        return None
    return Reason(
        "gpu_memory", f"≥ {floor.number:g} GB per GPU", f"{has:g} GB", f"gpu.memory: {has:g}GB"
    )


def _total_memory(floor: Floor, m: Machine, _g: Gpu, _c: Context) -> Reason | None:
    has = m.type.memory_class_gb * m.gpus
    if has >= floor.number:
        return None
    relax = f"gpu.total_memory: {has:g}GB"
    return Reason("total_memory", f"≥ {floor.number:g} GB per machine", f"{has:g} GB", relax)


def model_fit(machine: Machine) -> Reason | None:
    """The model's own need, margin included, against what a process can use of the card."""
    sizing = machine.sizing
    if sizing is None or sizing.fits(machine.type.usable_gib):
        return None
    per_gpu = sizing.per_gpu_gib / sizing.limit_fraction
    return Reason(
        "model_fit",
        f"≥ {units.gib(per_gpu)} usable per GPU",
        units.gib(machine.type.usable_gib),
        "a smaller precision, context or batch; more GPUs (gpu.count); or model.measured_gib",
    )


def _compute_capability(floor: Floor, _m: Machine, g: Gpu, _c: Context) -> Reason | None:
    if g.compute_capability >= floor.number:
        return None
    has = f"{g.compute_capability:g}"
    relax = f"gpu.compute_capability: {has}"
    return Reason("compute_capability", f"≥ {floor.number:g}", has, relax)


#: Compute capability a precision's arithmetic needs (design: FP8 8.9, BF16 8.0). Weight-only
#: formats (nf4, GPTQ, AWQ, q4_0, mxfp4, nvfp4) are unpacked by kernels and ask for none here.
PRECISION_FLOOR = {"fp8": 8.9, "bf16": 8.0}


def _precision(floor: Floor, _m: Machine, g: Gpu, _c: Context) -> Reason | None:
    precision = str(floor.value)
    relax = "model.precision: another one the card has"
    if precision == "int8" and g.int8_tops is None:
        return Reason("precision", "INT8 tensor cores", UNKNOWN, relax)
    wanted = PRECISION_FLOOR.get(precision, 0.0)
    if g.compute_capability >= wanted:
        return None
    needed = f"{precision}: compute capability ≥ {wanted:g}"
    return Reason("precision", needed, f"{g.compute_capability:g}", relax)


def _int8(_f: Floor, _m: Machine, g: Gpu, _c: Context) -> Reason | None:
    if g.int8_tops is not None:
        return None
    return Reason("int8", "INT8 tensor rate", UNKNOWN, "purpose: development asks for none")


def _fp64(floor: Floor, _m: Machine, g: Gpu, _c: Context) -> Reason | None:
    relax = "purpose: another than hpc"
    needed = f"FP64 ≥ {floor.number:g} × FP32"
    if g.fp64_tflops is None or not g.fp32_tflops:
        return Reason("fp64", needed, UNKNOWN, relax)
    if g.fp64_tflops >= floor.number * g.fp32_tflops:
        return None
    has = f"{g.fp64_tflops:g} of {g.fp32_tflops:g} TFLOPS"
    return Reason("fp64", needed, has, relax)


def _nvlink(floor: Floor, m: Machine, _g: Gpu, _c: Context) -> Reason | None:
    if floor.value is True:
        if m.type.nvlink:
            return None
        has = UNKNOWN if m.type.nvlink is None else "none"
        return Reason("nvlink", "NVLink", has, "gpu.nvlink: false")
    has = m.type.nvlink_gb_s_per_gpu if m.type.nvlink else (None if m.type.nvlink is None else 0.0)
    return _at_least("nvlink", floor.number, has, _gb_s, "gpu.nvlink: false, or a lower speed")


def _gb_s(value: float) -> str:
    return f"{value:g} GB/s per GPU" if value else "none"


def _ecc(_f: Floor, _m: Machine, g: Gpu, _c: Context) -> Reason | None:
    if g.ecc:
        return None
    has = UNKNOWN if g.ecc is None else "none"
    return Reason("ecc", "ECC memory", has, "tier: another than high-end")


def _graphics(floor: Floor, m: Machine, g: Gpu, _c: Context) -> Reason | None:
    # Tencent's GN7 slices are vComputeServer: no graphics API at all, whatever the card can do.
    if g.graphics_capable and g.opengl_vulkan == "true" and m.type.graphics is not False:
        return None
    has = {None: UNKNOWN, "headless-only": "headless only"}.get(g.opengl_vulkan, "none")
    if m.type.graphics is False:
        has = "none on this slice"
    needed = " and ".join({"opengl": "OpenGL", "vulkan": "Vulkan"}.get(a, a) for a in floor.names)
    own = floor.origin == "workload"
    relax = "gpu.graphics: drop it" if own else "purpose: another than rendering and vdi"
    return Reason("graphics", needed, has, relax)


def _engines(rule: str, words: str, has: int | None) -> Reason | None:
    if has:
        return None
    shown = UNKNOWN if has is None else "none"
    return Reason(rule, words, shown, f"gpu.{rule}: false")


def _video_encode(_f: Floor, _m: Machine, g: Gpu, _c: Context) -> Reason | None:
    return _engines("video_encode", "hardware encoder (NVENC)", g.nvenc_count)


def _video_decode(_f: Floor, _m: Machine, g: Gpu, _c: Context) -> Reason | None:
    return _engines("video_decode", "hardware decoder (NVDEC)", g.nvdec_count)


def _vgpu(_f: Floor, m: Machine, g: Gpu, _c: Context) -> Reason | None:
    if g.vgpu_supported or m.type.fractional:
        return None
    has = UNKNOWN if g.vgpu_supported is None else "none"
    return Reason("vgpu", "vGPU, or a provider's slice", has, "gpu.vgpu: false")


def _mig(floor: Floor, m: Machine, g: Gpu, _c: Context) -> Reason | None:
    needed = "MIG" if floor.value is True else f"MIG profile {floor.value}"
    if m.type.fractional:
        return Reason("mig", needed, "a slice, not a whole card", "gpu.mig: false")
    profiles = [name for name, _count in g.mig_profiles]
    if g.mig_supported and (floor.value is True or floor.value in profiles):
        return None
    has = UNKNOWN if g.mig_supported is None else (", ".join(profiles) or "none")
    return Reason("mig", needed, has, "gpu.mig: false, or a profile the card has")


def _consumer_card(floor: Floor, _m: Machine, g: Gpu, _c: Context) -> Reason | None:
    if not g.consumer:
        return None
    relax = "purpose: development, outside prod"
    return Reason("consumer_card", "a data-centre card", f"{g.display_name} ({floor.why})", relax)


def _fractional(_f: Floor, m: Machine, _g: Gpu, _c: Context) -> Reason | None:
    if not m.type.fractional:
        return None
    has = f"{m.type.gpu_count:g} of a {m.type.gpu_model}"
    return Reason("fractional", "whole GPUs", has, "gpu.fractional: allow")


def _vcpu(floor: Floor, m: Machine, _g: Gpu, _c: Context) -> Reason | None:
    relax = _way_out("cpu.count", m.vcpus)
    return _at_least("vcpu", bound(floor, m), m.vcpus, lambda v: f"{units.number(v)} vCPU", relax)


def _host_memory(floor: Floor, m: Machine, _g: Gpu, _c: Context) -> Reason | None:
    relax = _way_out("memory", m.memory_gib, "GiB")
    return _at_least("host_memory", bound(floor, m), m.memory_gib, units.gib, relax)


def _architecture(floor: Floor, m: Machine, _g: Gpu, _c: Context) -> Reason | None:
    if m.type.cpu_arch == floor.value:
        return None
    relax = f"cpu.architecture: {m.type.cpu_arch} or any"
    return Reason("architecture", str(floor.value), m.type.cpu_arch, relax)


def _network(floor: Floor, m: Machine, _g: Gpu, c: Context) -> Reason | None:
    sustained = m.type.network_sustained_gbps
    has = m.type.network_burst_gbps if c.burst else sustained
    if c.burst and has is None:
        has = sustained
    reason = _at_least("network", bound(floor, m), has, units.gbps, "")
    if reason is None:
        return None
    burst = m.type.network_burst_gbps
    shown = reason.has
    if not c.burst and burst is not None and sustained is not None and burst > sustained:
        shown = f"{reason.has} sustained, up to {units.gbps(burst)}"
    return Reason("network", reason.needed, shown, _way_out("network.bandwidth", has, "Gbps"))


#: Fabrics that move GPU memory between machines without the host's help; EFA without RDMA (g4dn,
#: g5, p3dn) does not.
GPU_FABRICS = frozenset({"gpudirect-tcpx", "gpudirect-tcpxo", "roce", "infiniband", "erdma"})


def _fabric(floor: Floor, m: Machine, _g: Gpu, c: Context) -> Reason | None:
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


def _placement(floor: Floor, m: Machine, _g: Gpu, c: Context) -> Reason | None:
    if (floor.when_nodes and not c.several_nodes) or floor.value != "cluster":
        return None
    if m.type.placement_group in CLUSTERS:
        return None
    relax = "network.placement: none"
    return Reason("placement", "cluster placement", m.type.placement_group or "none", relax)


def _scratch(floor: Floor, m: Machine, _g: Gpu, _c: Context) -> Reason | None:
    wanted = bound(floor, m)
    if wanted > 1:
        relax = _way_out("disk.scratch", m.scratch_gib, "GiB")
        return _at_least("scratch", wanted, m.scratch_gib, units.size, relax)
    if m.scratch_gib:
        return None
    has = UNKNOWN if m.scratch_gib is None else "none"
    return Reason("scratch", "local NVMe", has, "disk.scratch has no floor outside high-end")


def disk_speeds(m: Machine) -> tuple[float | None, float | None]:
    """MB/s that local NVMe and an attached volume sustain: None where nothing is known, 0 none."""
    disks = m.nvme_disks
    nvme = None if disks is None else disks * NVME_MB_S_PER_DISK
    return nvme, m.type.volume_mb_s


def _disk_throughput(floor: Floor, m: Machine, _g: Gpu, _c: Context) -> Reason | None:
    wanted = bound(floor, m)
    nvme, volume = disk_speeds(m)
    if (nvme or 0) >= wanted or (volume or 0) >= wanted:
        return None
    parts = [
        f"NVMe {units.mb_s(nvme)}" if nvme else "no NVMe" if nvme == 0 else f"NVMe {UNKNOWN}",
        f"volume {units.mb_s(volume)} sustained" if volume else f"volume limit {UNKNOWN}",
    ]
    best = max(nvme or 0, volume or 0)
    relax = f"disk.throughput: {best:g}MB/s" if best else "disk.throughput"
    return Reason("disk_throughput", f"≥ {units.mb_s(wanted)}", ", ".join(parts), relax)


def _disk_iops(floor: Floor, m: Machine, _g: Gpu, _c: Context) -> Reason | None:
    has = m.type.volume_iops
    relax = _way_out("disk.iops", has)
    return _at_least("disk_iops", floor.number, has, lambda v: f"{v:,.0f} IOPS sustained", relax)


def _table(*rules: Rule) -> Mapping[str, Rule]:
    return {rule.name: rule for rule in rules}


#: Every hardware rule, in the order a ledger lists its reasons.
RULES: Mapping[str, Rule] = _table(
    Rule("gpu_model", "GPU model", _gpu_model),
    Rule("gpu_exclude", "GPU excluded", _gpu_exclude),
    Rule("gpu_count", "GPU count", _gpu_count),
    Rule("gpu_memory", "memory per GPU", _gpu_memory),
    Rule("total_memory", "GPU memory of a machine", _total_memory),
    Rule("compute_capability", "compute capability", _compute_capability),
    Rule("precision", "precision", _precision),
    Rule("int8", "INT8", _int8),
    Rule("fp64", "FP64 rate", _fp64),
    Rule("nvlink", "NVLink", _nvlink),
    Rule("ecc", "ECC", _ecc),
    Rule("graphics", "graphics API", _graphics),
    Rule("video_encode", "video encoding", _video_encode),
    Rule("video_decode", "video decoding", _video_decode),
    Rule("vgpu", "vGPU", _vgpu),
    Rule("mig", "MIG", _mig),
    Rule("consumer_card", "consumer card", _consumer_card),
    Rule("fractional", "fractional GPU", _fractional),
    Rule("vcpu", "vCPU", _vcpu),
    Rule("host_memory", "host memory", _host_memory),
    Rule("architecture", "CPU architecture", _architecture),
    Rule("network", "network", _network),
    Rule("fabric", "fabric", _fabric),
    Rule("placement", "placement", _placement),
    Rule("scratch", "scratch NVMe", _scratch),
    Rule("disk_throughput", "disk throughput", _disk_throughput),
    Rule("disk_iops", "disk IOPS", _disk_iops),
)

#: Floors that other code reads; a test holds RULES, these and tiers.toml together.
NOT_IN_TABLE: Mapping[str, str] = {
    "kept_free": "kept free",
    "price_ceiling": "price ceiling",
    "model_fit": "model fit",
    "lifecycle": "lifecycle",
    "availability": "availability",
    "capacity": "capacity",
    "spot_saving": "spot saving",
    "price_age": "price age",
    "nodes": "nodes",
}


def title(rule: str) -> str:
    """What people read for a rule's name."""
    known = RULES.get(rule)
    return known.title if known else NOT_IN_TABLE[rule]


def meets_leaning(floor: Floor, machine: Machine, catalog: Catalog) -> bool | None:
    """Whether a machine meets a leaning; None when the catalogue does not say."""
    facts: Mapping[str, float | None] = {
        "host_pcie": machine.type.host_pcie_generation,
        "sockets": machine.type.numa_nodes,
    }
    if floor.rule in facts:
        has = facts[floor.rule]
        return None if has is None else has >= floor.number
    gpu = catalog.gpus[machine.type.gpu_model]
    context = Context(burst=False, several_nodes=machine.nodes > 1)
    reason = RULES[floor.rule].check(floor, machine, gpu, context)
    if reason is None:
        return True
    return None if reason.has == UNKNOWN else False
