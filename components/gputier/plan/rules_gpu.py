"""Rules about the GPUs of a machine: one plain function each, None when the floor is met."""

from __future__ import annotations

from dataclasses import replace

from gputier import units
from gputier.catalog import Gpu
from gputier.plan.machine import Machine
from gputier.plan.reasons import PURPOSE, UNKNOWN, Context, Reason, at_least, doublings
from gputier.plan.tiers import Floor


def gpu_model(floor: Floor, m: Machine, _g: Gpu, _c: Context) -> Reason | None:
    if m.type.gpu_model in floor.names:
        return None
    wanted = " or ".join(floor.names)
    relax = f"gpu.models: add {m.type.gpu_model}"
    return Reason("gpu_model", wanted, m.type.gpu_model, relax, PURPOSE)


def gpu_exclude(floor: Floor, m: Machine, _g: Gpu, _c: Context) -> Reason | None:
    if m.type.gpu_model not in floor.names:
        return None
    relax = f"gpu.exclude: drop {m.type.gpu_model}"
    return Reason("gpu_exclude", f"not {' or '.join(floor.names)}", m.type.gpu_model, relax)


def gpu_count(floor: Floor, m: Machine, _g: Gpu, _c: Context) -> Reason | None:
    if m.gpus >= floor.number:
        return None
    relax, gap = f"gpu.count: {m.gpus}", doublings(m.gpus, floor.number)
    return Reason("gpu_count", f"≥ {floor.number:g} GPUs", str(m.gpus), relax, gap)


def gpu_memory(floor: Floor, m: Machine, _g: Gpu, _c: Context) -> Reason | None:
    has = m.type.memory_class_gb
    if has >= floor.number:
        return None
    relax, gap = f"gpu.memory: {has:g}GB", doublings(has, floor.number)
    return Reason("gpu_memory", f"≥ {floor.number:g} GB per GPU", f"{has:g} GB", relax, gap)


def total_memory(floor: Floor, m: Machine, _g: Gpu, _c: Context) -> Reason | None:
    has = m.type.memory_class_gb * m.gpus
    if has >= floor.number:
        return None
    relax, gap = f"gpu.total_memory: {has:g}GB", doublings(has, floor.number)
    return Reason("total_memory", f"≥ {floor.number:g} GB per machine", f"{has:g} GB", relax, gap)


def model_fit(machine: Machine) -> Reason | None:
    """The model's own need, margin included, against what a process can use of the card."""
    sizing = machine.sizing
    if sizing is None or sizing.fits(machine.type.usable_gib):
        return None
    usable = machine.type.usable_gib
    limit = sizing.limit_fraction * usable
    needed, has = units.number(sizing.per_gpu_gib), units.number(limit)
    if needed == has:  # a near miss must not read as a fit
        needed, has = f"{sizing.per_gpu_gib:.3f}", f"{limit:.3f}"
    return Reason(
        "model_fit",
        f"≥ {needed} GiB per GPU",
        f"{has} GiB ({sizing.limit_fraction:.0%} of {units.number(usable)})",
        "model: a smaller precision, context or batch",
        doublings(limit, sizing.per_gpu_gib),
    )


def compute_capability(floor: Floor, _m: Machine, g: Gpu, _c: Context) -> Reason | None:
    if g.compute_capability >= floor.number:
        return None
    has = f"{g.compute_capability:g}"
    relax = f"gpu.compute_capability: {has}"
    return Reason("compute_capability", f"≥ {floor.number:g}", has, relax)


#: Compute capability a precision's arithmetic needs (design: FP8 8.9, BF16 8.0). Weight-only
#: formats (nf4, GPTQ, AWQ, q4_0, mxfp4, nvfp4) are unpacked by kernels and ask for none here.
PRECISION_FLOOR = {"fp8": 8.9, "bf16": 8.0}


def precision(floor: Floor, _m: Machine, g: Gpu, _c: Context) -> Reason | None:
    precision = str(floor.value)
    relax = "model.precision: another one the card has"
    if precision == "int8" and g.int8_tops is None:
        return Reason("precision", "INT8 tensor cores", UNKNOWN, relax)
    wanted = PRECISION_FLOOR.get(precision, 0.0)
    if g.compute_capability >= wanted:
        return None
    needed = f"{precision}: compute capability ≥ {wanted:g}"
    return Reason("precision", needed, f"{g.compute_capability:g}", relax)


def int8(_f: Floor, _m: Machine, g: Gpu, _c: Context) -> Reason | None:
    if g.int8_tops is not None:
        return None
    return Reason("int8", "INT8 tensor rate", UNKNOWN, "purpose: development asks for none")


def fp64(floor: Floor, _m: Machine, g: Gpu, _c: Context) -> Reason | None:
    relax = "purpose: another than hpc"
    needed = f"FP64 ≥ {floor.number:g} × FP32"
    if g.fp64_tflops is None or not g.fp32_tflops:
        return Reason("fp64", needed, UNKNOWN, relax, PURPOSE)
    if g.fp64_tflops >= floor.number * g.fp32_tflops:
        return None
    has = f"{g.fp64_tflops:g} of {g.fp32_tflops:g} TFLOPS"
    return Reason("fp64", needed, has, relax, PURPOSE)


def nvlink(floor: Floor, m: Machine, _g: Gpu, _c: Context) -> Reason | None:
    if floor.value is True:
        if m.type.nvlink:
            return None
        has = UNKNOWN if m.type.nvlink is None else "none"
        return Reason("nvlink", "NVLink", has, "gpu.nvlink: false")
    has = m.type.nvlink_gb_s_per_gpu if m.type.nvlink else (None if m.type.nvlink is None else 0.0)
    reason = at_least("nvlink", floor.number, has, _gb_s, "gpu.nvlink: false, or a lower speed")
    # Doing without NVLink is a choice like another, not an infinite distance.
    return replace(reason, gap=1.0) if reason and not has else reason


def _gb_s(value: float) -> str:
    return f"{value:g} GB/s per GPU" if value else "none"


def ecc(_f: Floor, _m: Machine, g: Gpu, _c: Context) -> Reason | None:
    if g.ecc:
        return None
    has = UNKNOWN if g.ecc is None else "none"
    return Reason("ecc", "ECC memory", has, "tier: another than high-end")


def graphics(floor: Floor, m: Machine, g: Gpu, _c: Context) -> Reason | None:
    # Tencent's GN7 slices are vComputeServer: no graphics API at all, whatever the card can do.
    if g.draws and m.type.graphics is not False:
        return None
    has = {None: UNKNOWN, "headless-only": "headless only"}.get(g.opengl_vulkan, "none")
    if m.type.graphics is False:
        has = "none on this slice"
    needed = " and ".join({"opengl": "OpenGL", "vulkan": "Vulkan"}.get(a, a) for a in floor.names)
    own = floor.origin == "workload"
    relax = "gpu.graphics: drop it" if own else "purpose: another than rendering and vdi"
    return Reason("graphics", needed, has, relax, PURPOSE)


def _engines(rule: str, words: str, has: int | None) -> Reason | None:
    if has:
        return None
    shown = UNKNOWN if has is None else "none"
    return Reason(rule, words, shown, f"gpu.{rule}: false", PURPOSE)


def video_encode(_f: Floor, _m: Machine, g: Gpu, _c: Context) -> Reason | None:
    return _engines("video_encode", "hardware encoder (NVENC)", g.nvenc_count)


def video_decode(_f: Floor, _m: Machine, g: Gpu, _c: Context) -> Reason | None:
    return _engines("video_decode", "hardware decoder (NVDEC)", g.nvdec_count)


def vgpu(_f: Floor, m: Machine, g: Gpu, _c: Context) -> Reason | None:
    if g.vgpu_supported or m.type.fractional:
        return None
    has = UNKNOWN if g.vgpu_supported is None else "none"
    return Reason("vgpu", "vGPU, or a provider's slice", has, "gpu.vgpu: false", PURPOSE)


def mig(floor: Floor, m: Machine, g: Gpu, _c: Context) -> Reason | None:
    needed = "MIG" if floor.value is True else f"MIG profile {floor.value}"
    if m.type.fractional:
        return Reason("mig", needed, "a slice, not a whole card", "gpu.mig: false")
    profiles = [name for name, _count in g.mig_profiles]
    if g.mig_supported and (floor.value is True or floor.value in profiles):
        return None
    has = UNKNOWN if g.mig_supported is None else (", ".join(profiles) or "none")
    return Reason("mig", needed, has, "gpu.mig: false, or a profile the card has")


def consumer_card(floor: Floor, _m: Machine, g: Gpu, _c: Context) -> Reason | None:
    if not g.consumer:
        return None
    relax = "purpose: development, outside prod"
    return Reason("consumer_card", "a data-centre card", f"{g.display_name} ({floor.why})", relax)


def fractional(_f: Floor, m: Machine, _g: Gpu, _c: Context) -> Reason | None:
    if not m.type.fractional:
        return None
    has = f"{m.type.gpu_count:g} of a {m.type.gpu_model}"
    return Reason("fractional", "whole GPUs", has, "gpu.fractional: allow")
