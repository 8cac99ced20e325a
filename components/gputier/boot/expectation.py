"""The expectation: what a planned machine must turn out to be, for `gputier-node` to check.

Only what the plan knows is in it; a key that is absent is not checked. docs/node.md lists the keys.
Time limits go by the depth and are the bundle's own; what a cloud's limit cuts is in the settings.
"""

from __future__ import annotations

import json
from collections.abc import Mapping

from gputier.catalog import Catalog, Gpu, InstanceType
from gputier.plan import BootPlan, Chosen, FrameworkPlan, WorkloadPlan

#: Where scratch disks are mounted.
SCRATCH = "/scratch"
#: GB/s of one NVLink, both directions together: generations 3 and 4 (Ampere, Hopper) and 5
#: (https://www.nvidia.com/en-us/data-center/nvlink/, 2026-11).
LINK_GB_S = {"Ampere": 50, "Hopper": 50, "Blackwell": 100, "Blackwell Ultra": 100}


def expectation(plan: WorkloadPlan, catalog: Catalog, priced: bool = True) -> Mapping[str, object]:
    """What one machine of this plan must be. Raises `ValueError` when nothing was chosen.

    Without a price it is what goes into user data: a price that changes replaces no machine
    (docs/adr/0013).
    """
    chosen = plan.chosen
    if chosen is None:
        raise ValueError(f"no machine was chosen for {plan.name}")
    gpu = catalog.gpus[chosen.verdict.type.gpu_model]
    found: dict[str, object] = {
        "gpu": _gpu(plan, gpu, chosen),
        **_versions(gpu, chosen.boot),
        "host": _host(chosen),
        "machine": _machine(chosen, priced),
        "gate": chosen.boot.gate.mode,
        "depth": chosen.boot.gate.depth,
    }
    fabric = fabric_of(chosen)
    if fabric:
        found["fabric"] = fabric
    scratch = _scratch(chosen)
    if scratch:
        found["scratch"] = scratch
    if chosen.boot.framework:
        found["framework"] = _framework(chosen.boot.framework)
    return found


def expectation_text(plan: WorkloadPlan, catalog: Catalog) -> str:
    """The expectation as the file a machine reads: byte-identical for the same plan."""
    return json.dumps(expectation(plan, catalog), indent=2, sort_keys=True) + "\n"


def _gpu(plan: WorkloadPlan, gpu: Gpu, chosen: Chosen) -> dict[str, object]:
    row = chosen.verdict.type
    found: dict[str, object] = {"model": row.gpu_model, "count": row.gpu_devices}
    seen = row.gpu_memory_visible_mib
    # A figure that only repeats the nominal size is no measurement; the validator has its own.
    if seen is not None and seen != row.gpu_memory_gib * 1024:
        found["memory_mib"] = int(seen)
    asked = plan.need.workload.gpu.mig
    if isinstance(asked, str):
        counts = dict(gpu.mig_profiles)
        found["mig"] = {"profile": asked, **({"count": counts[asked]} if asked in counts else {})}
    elif links := nvlinks(gpu, row):
        found["nvlinks"] = links
    return found


def nvlinks(gpu: Gpu, row: InstanceType) -> int | None:
    """NVLinks that each GPU of this type has up; None where that is not known.

    Only behind NVSwitch, where every link of every GPU is up: before Ampere the number depends on
    how the machine is wired.
    """
    rate = LINK_GB_S.get(gpu.architecture)
    total = row.nvlink_gb_s_per_gpu
    if not row.nvlink or row.gpu_devices < 2 or rate is None or not total or total % rate:
        return None
    return int(total // rate)


def _versions(gpu: Gpu, boot: BootPlan) -> dict[str, object]:
    """What card and software ask of the driver and of CUDA."""
    found: dict[str, object] = {}
    driver = {"min": boot.driver.min, "max": boot.driver.max}
    if known := {end: version for end, version in driver.items() if version}:
        found["driver"] = known
    if gpu.cuda_toolkit_min:
        found["cuda"] = {"min": gpu.cuda_toolkit_min}
    return found


def _framework(framework: FrameworkPlan) -> dict[str, object]:
    return {
        "name": framework.name,
        "version": framework.version,
        "cuda": framework.cuda,
        "index": framework.index_url,
    }


def _host(chosen: Chosen) -> dict[str, object]:
    machine = chosen.verdict.machine
    found: dict[str, object] = {}
    if machine.vcpus is not None:
        found["vcpus"] = machine.vcpus
    if machine.memory_gib is not None:
        found["memory_gib"] = machine.memory_gib
    return found


def _machine(chosen: Chosen, priced: bool) -> dict[str, object]:
    verdict = chosen.verdict
    found: dict[str, object] = {
        "cloud": verdict.type.cloud,
        "instance_type": verdict.machine.instance_type,
    }
    if priced and verdict.per_machine is not None:
        found["usd_per_hour"] = round(verdict.per_machine, 6)
    return found


def fabric_of(chosen: Chosen) -> dict[str, object]:
    """Only where machines work together: alone, a machine is given no fabric interfaces."""
    kind = chosen.network.fabric
    if kind == "none":
        return {}
    found: dict[str, object] = {"kind": kind}
    interfaces = sum(one.kind != "interface" for one in chosen.network.interfaces)
    if kind == "efa":
        found["interfaces"] = interfaces
    return found


def _scratch(chosen: Chosen) -> dict[str, object]:
    machine = chosen.verdict.machine
    if not machine.nvme_disks or not machine.scratch_gib:
        return {}
    return {"count": machine.nvme_disks, "gib": machine.scratch_gib, "mount": SCRATCH}
