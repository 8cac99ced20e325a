"""Parts of a plan in a few words each: a place, a machine, a model, a size."""

from __future__ import annotations

from collections.abc import Iterator

from gputier import units
from gputier.cli import catalog_words
from gputier.cli.money import UNKNOWN, amount, per_hour, per_month
from gputier.plan import Chosen, Verdict, WorkloadPlan
from gputier.sizing import Sizing
from gputier.units import HOURS_PER_MONTH
from gputier.workload import Model

#: What other capacities than on demand are called in text.
USES = {
    "on_demand": "on demand",
    "spot": "spot",
    "reservation": "reserved",
    "capacity_block": "capacity block",
    "flex_start": "flex start",
}


def kind(w: WorkloadPlan) -> str:
    """`inference · entry`."""
    return " · ".join(part for part in (w.need.purpose, w.need.workload.tier) if part)


def place(v: Verdict, zones: tuple[str, ...] = ()) -> str:
    """`aws us-east-1`, with the zone where there is one only, and the capacity unless on demand."""
    where = zones[0] if len(zones) == 1 else (v.region or "no region")
    use = "" if v.use == "on_demand" else f" {USES[v.use]}"
    return f"{v.type.cloud} {where}{use}"


def machine_name(v: Verdict) -> str:
    """`4 × p4de.24xlarge`, `n1-standard-8 + 1 × T4`."""
    machines = v.machines
    count = f"{machines} × " if machines > 1 else ""
    attached = ""
    if v.machine.host is not None:
        attached = f" + {v.type.attached_count} × {v.type.gpu_model}"
    return f"{count}{v.machine.instance_type}{attached}"


def machine_parts(c: Chosen) -> Iterator[str]:
    """The machine in one line: what it has, and what is attached to it."""
    v, m = c.verdict, c.verdict.machine
    row = v.type
    yield machine_name(v)
    yield catalog_words.card(row)
    if row.nvlink and row.nvlink_gb_s_per_gpu and m.gpus > 1:
        yield f"NVLink {row.nvlink_gb_s_per_gpu:g} GB/s"
    yield f"{m.vcpus} vCPU" if m.vcpus is not None else "vCPU unknown"
    yield f"{m.memory_gib:,.0f} GiB" if m.memory_gib is not None else "memory unknown"
    yield from _disk_parts(c)
    yield catalog_words.network_whole(row)
    if c.network.fabric != "none":
        yield catalog_words.fabric(row)
    if c.network.placement != "none":
        yield f"{c.network.placement} placement"


def _disk_parts(c: Chosen) -> Iterator[str]:
    m = c.verdict.machine
    if m.ssd_count:
        yield f"{units.size(m.scratch_gib or 0)} NVMe ({m.ssd_count} attached)"
    elif m.scratch_gib:
        yield f"{units.size(m.scratch_gib)} NVMe"
    if c.storage.data_gib:
        yield f"{units.size(c.storage.data_gib)} {c.storage.kind}"


#: Parts of a size as people read them; others are their own words.
_PART_WORDS = {"kv_cache": "kv cache"}


def part_name(name: str) -> str:
    return _PART_WORDS.get(name, name.replace("_", " "))


def size_parts(sizing: Sizing) -> str:
    """`weights 8.0 · kv cache 4.0 · margin 4.3`."""
    return " · ".join(f"{part_name(p.name)} {p.gib:.1f}" for p in sizing.parts)


def model_words(model: Model) -> str:
    """`llama-3.1-8b, fp8, 4 × 8,192 tokens`."""
    return ", ".join(part for part in _model_parts(model) if part)


def _model_parts(model: Model) -> Iterator[str]:
    if model.parameters is not None:
        yield units.parameters(model.parameters)
    yield model.name or model.config or model.weights_index or ""
    if model.measured_gib is not None:
        yield f"measured {units.gib(model.measured_gib)} per GPU"
    yield model.precision or ""
    training = model.training
    if training is not None:
        yield training.method
    if model.seats is not None:
        yield f"{model.seats} seat{'s' if model.seats != 1 else ''}"
    if model.image is not None:
        yield f"{model.image.batch} × {model.image.resolution}"
    if model.context_tokens is not None:
        batch = training.batch_per_gpu if training is not None else model.concurrent_sequences
        packed = "up to " if model.training and model.training.mean_tokens else ""
        yield f"{batch} × {packed}{model.context_tokens:,} tokens"


def month(c: Chosen) -> str:
    """`$966/month`, with the hours when they are not a whole month's."""
    hours = c.scaling.hours_per_month
    text = per_month(c.usd_per_month)
    return text if hours == HOURS_PER_MONTH else f"{text} ({hours:,.0f} h)"


def offer(v: Verdict, cloud: bool = True) -> str:
    """`gcp g2-standard-8 $0.85/h`."""
    name = machine_name(v)
    return f"{v.type.cloud + ' ' if cloud else ''}{name} {per_hour(v.total)}"


def difference(value: float) -> str:
    """`+$3.10/h`, `−$0.20/h`."""
    sign = "+" if value >= 0 else "−"
    return f"{sign}{units.usd_per_hour(abs(value))}"


def money_range(low: float | None, high: float | None) -> str:
    """`$966–$5,796 a month`."""
    if low is None or high is None:
        return UNKNOWN
    return f"{amount(low)} a month" if low == high else f"{amount(low)}–{amount(high)} a month"
