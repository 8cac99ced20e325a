"""The rules a machine is held to, as one table of plain functions.

A rule reads one floor and one machine and says nothing (`None`: met) or why not, as a `Reason`.
Rules about the market (lifecycle, availability, capacity, price ceiling) are in `market.py` and
`select.py`: they need a region.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from gputier.catalog import Catalog
from gputier.plan import rules_gpu, rules_machine, rules_software
from gputier.plan.machine import Machine
from gputier.plan.reasons import UNKNOWN, Check, Context
from gputier.plan.tiers import Floor


class Rule(NamedTuple):
    """`title` is what people read."""

    name: str
    title: str
    check: Check


def _table(*rules: Rule) -> Mapping[str, Rule]:
    return {rule.name: rule for rule in rules}


#: Every hardware rule, in the order a ledger lists its reasons.
RULES: Mapping[str, Rule] = _table(
    Rule("gpu_model", "GPU model", rules_gpu.gpu_model),
    Rule("gpu_exclude", "GPU excluded", rules_gpu.gpu_exclude),
    Rule("gpu_count", "GPU count", rules_gpu.gpu_count),
    Rule("gpu_memory", "memory per GPU", rules_gpu.gpu_memory),
    Rule("total_memory", "GPU memory of a machine", rules_gpu.total_memory),
    Rule("compute_capability", "compute capability", rules_gpu.compute_capability),
    Rule("precision", "precision", rules_gpu.precision),
    Rule("int8", "INT8", rules_gpu.int8),
    Rule("fp64", "FP64 rate", rules_gpu.fp64),
    Rule("nvlink", "NVLink", rules_gpu.nvlink),
    Rule("ecc", "ECC", rules_gpu.ecc),
    Rule("graphics", "graphics API", rules_gpu.graphics),
    Rule("video_encode", "video encoding", rules_gpu.video_encode),
    Rule("video_decode", "video decoding", rules_gpu.video_decode),
    Rule("vgpu", "vGPU", rules_gpu.vgpu),
    Rule("mig", "MIG", rules_gpu.mig),
    Rule("consumer_card", "consumer card", rules_gpu.consumer_card),
    Rule("fractional", "fractional GPU", rules_gpu.fractional),
    Rule("vcpu", "vCPU", rules_machine.vcpu),
    Rule("host_memory", "host memory", rules_machine.host_memory),
    Rule("architecture", "CPU architecture", rules_machine.architecture),
    Rule("network", "network", rules_machine.network),
    Rule("fabric", "fabric", rules_machine.fabric),
    Rule("placement", "placement", rules_machine.placement),
    Rule("scratch", "scratch NVMe", rules_machine.scratch),
    Rule("disk_throughput", "disk throughput", rules_machine.disk_throughput),
    Rule("disk_iops", "disk IOPS", rules_machine.disk_iops),
    Rule("software", "software", rules_software.software),
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
