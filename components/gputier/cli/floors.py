"""A floor or leaning in a few words, with its unit."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from gputier import units
from gputier.plan import Floor

_GRAPHICS = {"opengl": "OpenGL", "vulkan": "Vulkan"}


def floor_text(floor: Floor) -> str:
    """`≥ 24 GB per GPU`, `NVLink ≥ 600 GB/s per GPU`, `whole GPUs`."""
    text = _WORDS[floor.rule](floor)
    return f"{text}, with several machines" if floor.when_nodes else text


def _vcpu(floor: Floor) -> str:
    figure = units.number(floor.number)
    if not floor.per:
        return f"≥ {figure} vCPU"
    if floor.per == "gpu":
        return f"≥ {figure} vCPU per GPU{_bounds(floor, '')}"
    return f"≥ {figure} vCPU per GiB {_OF[floor.per]}{_bounds(floor, '')}"


def _host_memory(floor: Floor) -> str:
    if not floor.per:
        return f"≥ {units.gib(floor.number)} of host memory"
    if floor.per == "gpu":
        return f"host memory ≥ {units.gib(floor.number)} per GPU{_bounds(floor, ' GiB')}"
    factor = "" if floor.number == 1 else f"{units.number(floor.number)} × "
    return f"host memory ≥ {factor}GPU memory {_OF[floor.per]}{_bounds(floor, ' GiB')}"


_OF = {"needed": "needed", "installed": "installed"}


def _bounds(floor: Floor, unit: str) -> str:
    least, most = floor.at_least, floor.at_most
    text = "" if least is None else f", at least {units.number(least)}{unit}"
    return text if most is None else f"{text}, up to {units.number(most)}{unit}"


def _nvlink(floor: Floor) -> str:
    return "NVLink" if floor.value is True else f"NVLink ≥ {floor.number:g} GB/s per GPU"


def _fabric(floor: Floor) -> str:
    words = {"rdma": "RDMA between machines", "any": "a fabric between machines"}
    return words.get(str(floor.value), str(floor.value))


def _scratch(floor: Floor) -> str:
    return "local NVMe" if floor.number <= 1 else f"≥ {units.size(floor.number)} of local NVMe"


def _mig(floor: Floor) -> str:
    return "MIG" if floor.value is True else f"MIG profile {floor.value}"


def _any_of(floor: Floor) -> str:
    return " or ".join(floor.names)


_WORDS: Mapping[str, Callable[[Floor], str]] = {
    "gpu_model": _any_of,
    "gpu_exclude": lambda f: f"not {_any_of(f)}",
    "gpu_count": lambda f: f"≥ {f.number:g} GPU{'s' if f.number > 1 else ''}",
    "gpu_memory": lambda f: f"≥ {f.number:g} GB per GPU",
    "total_memory": lambda f: f"≥ {f.number:g} GB of GPU memory",
    "compute_capability": lambda f: f"compute capability ≥ {f.number:g}",
    "precision": lambda f: f"{f.value} arithmetic",
    "int8": lambda _f: "INT8 tensor cores",
    "fp64": lambda f: f"FP64 ≥ {f.number:g} × FP32",
    "nvlink": _nvlink,
    "ecc": lambda _f: "ECC memory",
    "graphics": lambda f: " and ".join(_GRAPHICS.get(n, n) for n in f.names),
    "video_encode": lambda _f: "hardware encoding",
    "video_decode": lambda _f: "hardware decoding",
    "vgpu": lambda _f: "vGPU or a provider's slice",
    "mig": _mig,
    "consumer_card": lambda _f: "no consumer card",
    "fractional": lambda _f: "whole GPUs",
    "vcpu": _vcpu,
    "host_memory": _host_memory,
    "architecture": lambda f: str(f.value),
    "network": lambda f: f"≥ {units.gbps(f.number)} sustained",
    "fabric": _fabric,
    "placement": lambda f: f"{f.value} placement",
    "scratch": _scratch,
    "disk_throughput": lambda f: f"≥ {units.mb_s(f.number)} from disk",
    "disk_iops": lambda f: f"≥ {f.number:,.0f} IOPS",
    "kept_free": lambda f: f"{100 * f.number:g} % of the card kept free",
    "price_ceiling": lambda f: f"≤ {units.usd_per_hour(f.number)} a machine",
    "software": lambda f: f"runs {f.value}",
    "host_pcie": lambda f: f"PCIe ≥ {f.number:.1f} host",
    "sockets": lambda f: f"≥ {f.number:g} sockets",
}
