"""The order of accepted machines.

`price` (default): USD per hour of the whole workload. `value`: USD per unit of what the purpose is
bound by. `speed`: that unit first, then price. Before all of it: clouds that can be deployed,
confirmed availability, a known price. Ties, in this order: newer GPU generation, more host memory,
fewer nodes, the name.
"""

from __future__ import annotations

from collections.abc import Iterable

from gputier.catalog import Catalog, Gpu
from gputier.plan.need import Need
from gputier.plan.verdict import Verdict

#: Tensor rate by precision; formats that are unpacked before the arithmetic run at 16 bit.
_TENSOR = {
    "fp32": "tf32_tflops",
    "bf16": "bf16_tflops",
    "fp16": "fp16_tflops",
    "fp8": "fp8_tflops",
    "int8": "int8_tops",
    "nvfp4": "fp4_tflops",
}


def bound_by(need: Need) -> str:
    """What limits this purpose, in words: the unit of `value` and `speed`."""
    if need.purpose == "hpc":
        return "FP64 TFLOPS"
    if need.purpose == "rendering":
        return "FP32 TFLOPS"
    model = need.workload.model
    trains = need.purpose in {"training", "fine-tuning"} or bool(model and model.training)
    if trains or (model and model.image):
        return f"{_precision(need)} tensor TFLOPS"
    return "GB/s of GPU memory bandwidth"


def _precision(need: Need) -> str:
    model = need.workload.model
    precision = (model.precision if model else None) or "bf16"
    return precision if precision in _TENSOR else "bf16"


def speed(need: Need, catalog: Catalog, found: Verdict) -> float | None:
    """The bound unit of the whole workload's machines; None when the data has no figure."""
    gpu = catalog.gpus[found.type.gpu_model]
    each = _unit(need, gpu)
    return None if each is None else each * found.type.gpu_count * found.machines


def _unit(need: Need, gpu: Gpu) -> float | None:
    words = bound_by(need)
    if words == "FP64 TFLOPS":
        return gpu.fp64_tflops
    if words == "FP32 TFLOPS":
        return gpu.fp32_tflops
    if words.endswith("bandwidth"):
        return gpu.memory_bandwidth_gb_s
    value = getattr(gpu, _TENSOR[_precision(need)])
    return value if isinstance(value, float) else None


def ranked(need: Need, catalog: Catalog, verdicts: Iterable[Verdict]) -> tuple[Verdict, ...]:
    """Accepted verdicts, best first."""
    accepted = [v for v in verdicts if v.accepted]
    return tuple(sorted(accepted, key=lambda v: _key(need, catalog, v)))


def first_choice(orders: Iterable[tuple[Verdict, ...]]) -> Verdict | None:
    """Of ways of buying in the order tried, the best machine of the first that has a confirmed
    one which can be deployed; else of the first that has any."""
    fallback: Verdict | None = None
    for order in orders:
        if order and order[0].confirmed and not order[0].plan_only:
            return order[0]
        if order and fallback is None:
            fallback = order[0]
    return fallback


def _key(need: Need, catalog: Catalog, v: Verdict) -> tuple[object, ...]:
    total = v.total
    lead: tuple[float, ...] = (total or 0.0,)
    prefer = need.workload.prefer
    if prefer != "price":
        rate = speed(need, catalog, v)
        if prefer == "value":
            lead = (0.0, (total or 0.0) / rate) if rate else (1.0, total or 0.0)
        else:
            lead = (0.0, -rate, total or 0.0) if rate else (1.0, 0.0, total or 0.0)
    return (
        v.plan_only,
        not v.confirmed,
        total is None,
        *lead,
        -catalog.gpus[v.type.gpu_model].generation,
        -(v.machine.memory_gib or 0.0),
        v.machine.nodes,
        v.type.cloud,
        v.type.name,
    )
