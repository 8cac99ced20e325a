"""What a person should know about a choice before paying for it, one line each."""

from __future__ import annotations

from collections.abc import Iterator
from typing import cast

from gputier import units
from gputier.plan.price import LISTED, age_days
from gputier.plan.select import Ask
from gputier.plan.verdict import Verdict
from gputier.workload.declare import PRODUCTION

#: A price older than this is said in a note, days before the catalogue's date.
OLD_PRICE_DAYS = 180
#: Google's sustained-use discount applies to N1 machines and attached GPUs that run most of a
#: month, up to 30 %; it is given by the cloud by itself, so it is told and not counted.
SUSTAINED_USE_FAMILIES = frozenset({"n1-attached"})


def notes_of(ask: Ask, best: Verdict, more: tuple[str, ...], environment: str) -> Iterator[str]:
    """Notes in order of consequence."""
    yield from _availability_notes(ask, best)
    yield from _price_notes(ask, best)
    row = best.type
    if row.bare_metal:
        yield "bare metal: boots slowly and has no other tenant"
    if row.lifecycle == "previous-generation":
        yield "previous generation: the cloud still sells it and steers to newer ones"
    doubtful = [f for f in row.unverified if f in _matters(ask)]
    if doubtful:
        yield f"unverified in the catalogue: {', '.join(doubtful)}"
    if row.gpu_model_confidence != "provider":
        yield f"the cloud does not name this GPU; {row.gpu_model} is inferred"
    yield from _host_notes(ask, best)
    if best.machine.nvme_disks and "disk_throughput" in ask.need.floors:
        yield "NVMe counts as 500 MB/s a disk; the node measures it"
    for override in ask.need.overrides:
        was = _shown(override.was) + _PER[override.per]
        now = "dropped" if override.now is None else f"is {_shown(override.now)}"
        yield f"your own word overrides {override.origin}: {override.rule} {now}, not {was}"
    if environment in PRODUCTION and best.use == "spot":
        yield "spot in prod: machines may be taken away with two minutes' notice or less"
    yield from more


_PER = {
    "": "",
    "needed": " per GiB of needed GPU memory",
    "gpu": " per GPU",
    "installed": " per GiB of installed GPU memory",
}


def _host_notes(ask: Ask, best: Verdict) -> Iterator[str]:
    """What fits the card and may still not run well: nobody asked for a host this small, and
    without a tier nobody has to."""
    machine, sizing = best.machine, best.machine.sizing
    few = machine.vcpus is not None and machine.vcpus < 2 * machine.gpus
    weights = sum(p.gib for p in sizing.parts if p.name == "weights") if sizing else 0.0
    tight = machine.memory_gib is not None and machine.memory_gib < weights * machine.gpus
    if few or tight:
        host = f"{machine.vcpus} vCPU and {units.number(machine.memory_gib or 0)} GiB"
        gpus = "a GPU" if machine.gpus == 1 else f"{machine.gpus} GPUs"
        yield f"a small host, {host} for {gpus}: a tier, or cpu.count and memory, ask for more"
    model = ask.need.workload.model
    card = ask.catalog.gpus[best.type.gpu_model]
    if sizing and model and model.precision is None and card.compute_capability < 8.0:
        yield f"{card.model} has no bf16: run the model in fp16, which takes the same memory"


def _matters(ask: Ask) -> set[str]:
    """Columns of the data that this choice rests on."""
    bought = {"on_demand": "on_demand_support", "spot": "spot_support"}
    columns = {"gpu_model", "gpu_count", "gpu_memory_gib", bought.get(ask.choice.use, "")}
    for rule, names in _COLUMNS.items():
        if rule in ask.need.floors:
            columns.update(names)
    return columns


#: Columns behind a floor: a doubt about one is worth telling where the floor is asked for.
_COLUMNS = {
    "vcpu": ("vcpus",),
    "host_memory": ("memory_gib",),
    "network": ("network_gbps", "network_baseline_gbps"),
    "fabric": ("interconnect", "rdma", "network_interfaces_max"),
    "scratch": ("local_nvme_count", "local_nvme_gib_total"),
    "disk_throughput": ("local_nvme_count",),
    "nvlink": ("nvlink", "nvlink_gb_s_per_gpu"),
}


def _availability_notes(ask: Ask, best: Verdict) -> Iterator[str]:
    cloud = best.type.cloud
    if best.plan_only:
        yield f"plan only: gputier does not deploy {cloud}; shown, never locked"
    if best.unconfirmed and not ask.catalog.zones(cloud, best.type.name):
        yield f"availability unconfirmed: no source lists {best.type.name} in any region"
    elif best.unconfirmed:
        where = ", ".join(best.zones) or best.region
        yield f"availability unconfirmed: no source says that {where} sells {best.type.name}"
    if cloud in ask.market.open_regions and not ask.market.zones and not ask.choice.zone:
        yield f"no region declared for {cloud}: every commercial region was searched"


def _price_notes(ask: Ask, best: Verdict) -> Iterator[str]:
    cost = best.cost
    if cost is None or cost.total is None:
        yield "price unknown: ranked after every priced machine"
        return
    if cost.basis != LISTED:
        yield f"price {cost.basis}"
    if cost.as_of and age_days(cost.as_of, ask.catalog.as_of) > OLD_PRICE_DAYS:
        yield f"price of {cost.as_of}, {age_days(cost.as_of, ask.catalog.as_of)} days old"
    base = ask.choice.on_demand_base or 0
    if base >= cost.machines:
        yield f"all {cost.machines} machines are the on-demand base: none runs on spot"
    elif best.use == "spot":
        yield f"spot price of {cost.as_of}: a hint, it moves"
    if cost.discount and cost.listed is not None:
        d = cost.discount
        full = units.usd_per_hour(cost.listed)
        yield f"{d.percent:g} % off for {d.reason}; {full} before"
    if best.type.family in SUSTAINED_USE_FAMILIES and best.use == "on_demand":
        yield "sustained-use discount of up to 30 % is not counted; Google gives it by itself"


def _shown(value: object) -> str:
    if isinstance(value, tuple):
        names = cast("tuple[object, ...]", value)
        return ", ".join(map(str, names))
    return f"{value:g}" if isinstance(value, float) else str(value)
