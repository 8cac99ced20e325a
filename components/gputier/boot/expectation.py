"""The expectation: what a planned machine must turn out to be, for `gputier-node` to check.

Only what the plan knows is in it; a key that is absent is not checked. docs/node.md lists the keys.
"""

from __future__ import annotations

import json
from collections.abc import Mapping

from gputier.plan import Chosen, WorkloadPlan
from gputier.plan.need import PRODUCTION

#: Where scratch disks are mounted.
SCRATCH = "/scratch"


def expectation(plan: WorkloadPlan) -> Mapping[str, object]:
    """What one machine of this plan must be. Raises `ValueError` when nothing was chosen."""
    chosen = plan.chosen
    if chosen is None:
        raise ValueError(f"no machine was chosen for {plan.name}")
    found: dict[str, object] = {
        "gpu": _gpu(plan, chosen),
        "host": _host(chosen),
        "machine": _machine(chosen),
        "gate": "enforce" if plan.need.environment in PRODUCTION else "report",
    }
    fabric = _fabric(chosen)
    if fabric:
        found["fabric"] = fabric
    scratch = _scratch(chosen)
    if scratch:
        found["scratch"] = scratch
    if chosen.gate_depth:
        found["depth"] = chosen.gate_depth
    return found


def expectation_text(plan: WorkloadPlan) -> str:
    """The expectation as the file a machine reads: byte-identical for the same plan."""
    return json.dumps(expectation(plan), indent=2, sort_keys=True) + "\n"


def _gpu(plan: WorkloadPlan, chosen: Chosen) -> dict[str, object]:
    row = chosen.verdict.type
    found: dict[str, object] = {"model": row.gpu_model, "count": row.gpu_devices}
    seen = row.gpu_memory_visible_mib
    # A figure that only repeats the nominal size is no measurement; the validator has its own.
    if seen is not None and seen != row.gpu_memory_gib * 1024:
        found["memory_mib"] = int(seen)
    asked = plan.need.workload.gpu.mig
    if isinstance(asked, str):
        found["mig"] = {"profile": asked}
    return found


def _host(chosen: Chosen) -> dict[str, object]:
    machine = chosen.verdict.machine
    found: dict[str, object] = {}
    if machine.vcpus is not None:
        found["vcpus"] = machine.vcpus
    if machine.memory_gib is not None:
        found["memory_gib"] = machine.memory_gib
    return found


def _machine(chosen: Chosen) -> dict[str, object]:
    verdict = chosen.verdict
    found: dict[str, object] = {
        "cloud": verdict.type.cloud,
        "instance_type": verdict.machine.instance_type,
    }
    if verdict.per_machine is not None:
        found["usd_per_hour"] = round(verdict.per_machine, 6)
    return found


def _fabric(chosen: Chosen) -> dict[str, object]:
    """Only where machines work together: alone, a machine is given no fabric interfaces."""
    kind = chosen.network.fabric
    if kind == "none":
        return {}
    found: dict[str, object] = {"kind": kind}
    interfaces = chosen.verdict.type.efa_interfaces_max
    if kind == "efa" and interfaces:
        found["interfaces"] = interfaces
    return found


def _scratch(chosen: Chosen) -> dict[str, object]:
    machine = chosen.verdict.machine
    if not machine.nvme_disks or not machine.scratch_gib:
        return {}
    return {"count": machine.nvme_disks, "gib": machine.scratch_gib, "mount": SCRATCH}
