"""Facts of the catalogue in a few words each. Unknown is said, never blank for 0."""

from __future__ import annotations

from gputier import units
from gputier.catalog import Catalog, Gpu, InstanceType

UNKNOWN = "unknown"


def catalogue(catalog: Catalog) -> str:
    """`catalogue a49fc093 of 2026-08-26`: the id's first half names it well enough to read."""
    return f"catalogue {catalog.id[:8]} of {catalog.as_of}"


def sources(text: str) -> str:
    """Sources as the data lists them, so that a line can be broken between them."""
    return text.replace(";", "; ")


def gpus(row: InstanceType) -> str:
    """`8 × H100-80GB`, `1/2 L4`."""
    if row.fractional:
        parts = {0.5: "1/2", 0.25: "1/4", 0.125: "1/8"}
        share = parts.get(row.gpu_count) or f"{row.gpu_count:.3g}"
        return f"{share} {row.gpu_model}"
    return f"{row.gpu_devices} × {row.gpu_model}"


def card(row: InstanceType) -> str:
    """`8 × A100 80 GB`: the model without its memory, and the class."""
    name = row.gpu_model.removesuffix(f"-{row.memory_class_gb:g}GB")
    head = gpus(row).removesuffix(row.gpu_model) + name
    return f"{head} {row.memory_class_gb:g} GB"


def vcpu(row: InstanceType) -> str:
    if row.vcpu_range:
        return f"{row.vcpu_range[0]:g}–{row.vcpu_range[1]:g}"
    return "?" if row.vcpus is None else str(row.vcpus)


def host_memory(row: InstanceType) -> str:
    if row.memory_range:
        return f"{row.memory_range[0]:g}–{row.memory_range[1]:g} GiB"
    return "?" if row.memory_gib is None else f"{row.memory_gib:,.0f} GiB"


def scratch(row: InstanceType) -> str:
    """Local NVMe, bundled or attachable."""
    if row.local_nvme_gib:
        return units.size(row.local_nvme_gib)
    if row.attachable_ssd_counts:
        most = max(row.attachable_ssd_counts) * (row.attachable_ssd_gib or 0.0)
        return f"≤ {units.size(most)}"
    return "?" if row.local_nvme_gib is None else "–"


def network(row: InstanceType) -> str:
    known = row.network_sustained_gbps
    return "?" if known is None else units.gbps(known)


def network_whole(row: InstanceType) -> str:
    """Sustained, and burst where it is more."""
    sustained, burst = row.network_sustained_gbps, row.network_burst_gbps
    if sustained is None:
        return f"network {UNKNOWN}"
    if burst is not None and burst > sustained:
        return f"{units.gbps(sustained)} sustained, up to {units.number(burst)}"
    return units.gbps(sustained)


def fabric(row: InstanceType) -> str:
    """`EFA 3200 Gbps`, `–`."""
    if row.interconnect == "none":
        return "–"
    name = NAMES.get(row.interconnect, row.interconnect)
    return f"{name} {units.gbps(row.interconnect_gbps)}" if row.interconnect_gbps else name


NAMES = {
    "efa": "EFA",
    "gpudirect-tcpx": "GPUDirect-TCPX",
    "gpudirect-tcpxo": "GPUDirect-TCPXO",
    "roce": "RoCE",
    "infiniband": "InfiniBand",
    "erdma": "eRDMA",
    "none": "none",
}


def nvlink(row: InstanceType) -> str:
    if not row.nvlink:
        return UNKNOWN if row.nvlink is None else "none"
    speed = row.nvlink_gb_s_per_gpu
    words = f"{speed:g} GB/s per GPU" if speed else "speed unknown"
    return f"{words}, {row.nvlink_domain_gpus} GPUs" if row.nvlink_domain_gpus else words


def offered(catalog: Catalog, row: InstanceType) -> str:
    """In how many regions a source lists it."""
    count = len(catalog.zones(row.cloud, row.name))
    return f"{count} region{'s' if count != 1 else ''}" if count else "unconfirmed"


def yes_no(value: bool | None) -> str:
    return UNKNOWN if value is None else ("yes" if value else "no")


def graphics(gpu: Gpu, row: InstanceType | None = None) -> str:
    """What draws on a card, or on a machine's part of it: `OpenGL, Vulkan`, `headless only`,
    `none`."""
    if row is not None and row.graphics is False:
        return "none on this slice"
    if gpu.draws:
        return "OpenGL, Vulkan"
    if gpu.opengl_vulkan == "headless-only":
        return "headless only"
    return UNKNOWN if gpu.opengl_vulkan is None else "none"


_RATES = ("fp64", "fp32", "tf32", "bf16", "fp16", "fp8", "fp4")


def rates(gpu: Gpu) -> list[str]:
    """Dense TFLOPS by precision, of those that are known."""
    found = [(name, getattr(gpu, f"{name}_tflops")) for name in _RATES]
    shown = [f"{name} {value:g}" for name, value in found if value]
    if gpu.int8_tops:
        shown.append(f"int8 {gpu.int8_tops:g}")
    return [f"{' · '.join(shown)} dense TFLOPS"] if shown else [f"rates {UNKNOWN}"]
