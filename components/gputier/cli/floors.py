"""A floor or leaning in a few words, with its unit."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from gputier import units
from gputier.plan import Floor

_PER = {
    "needed": "per GiB of GPU memory needed",
    "gpu": "per GPU",
    "installed": "of the GPU memory installed",
}
_GRAPHICS = {"opengl": "OpenGL", "vulkan": "Vulkan"}


def floor_text(floor: Floor) -> str:
    """`≥ 24 GB per GPU`, `NVLink ≥ 600 GB/s per GPU`, `whole GPUs`."""
    text = _WORDS[floor.rule](floor)
    return f"{text}, with several machines" if floor.when_nodes else text


def _scaled(show: Callable[[float], str], times: str) -> Callable[[Floor], str]:
    def words(floor: Floor) -> str:
        if floor.per == "needed" or floor.per == "installed":
            factor = "" if floor.number == 1 and times else units.number(floor.number)
            text = f"≥ {factor} × {_OF[floor.per]}" if times and factor else f"≥ {_OF[floor.per]}"
            if not times:
                text = f"≥ {show(floor.number)} {_PER[floor.per]}"
        elif floor.per:
            text = f"≥ {show(floor.number)} {_PER[floor.per]}"
        else:
            text = f"≥ {show(floor.number)}"
        if floor.at_least is not None:
            text += f", at least {units.number(floor.at_least)}"
        if floor.at_most is not None:
            text += f", up to {show(floor.at_most)}"
        return text

    return words


_OF = {"needed": "the GPU memory needed", "installed": "the GPU memory installed"}


def _vcpu(value: float) -> str:
    return f"{units.number(value)} vCPU"


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
    "vcpu": _scaled(_vcpu, ""),
    "host_memory": _scaled(units.gib, "×"),
    "architecture": lambda f: str(f.value),
    "network": lambda f: f"≥ {units.gbps(f.number)} sustained",
    "fabric": _fabric,
    "placement": lambda f: f"{f.value} placement",
    "scratch": _scratch,
    "disk_throughput": lambda f: f"≥ {units.mb_s(f.number)} from disk",
    "disk_iops": lambda f: f"≥ {f.number:,.0f} IOPS",
    "kept_free": lambda f: f"{100 * f.number:g} % of the card kept free",
    "price_ceiling": lambda f: f"≤ {units.usd_per_hour(f.number)} a machine",
    "host_pcie": lambda f: f"PCIe ≥ {f.number:.1f} host",
    "sockets": lambda f: f"≥ {f.number:g} sockets",
}
