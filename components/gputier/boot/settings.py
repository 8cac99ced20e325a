"""The settings of a boot: what the plan says is done to a machine before it is judged.

`gputier/node/settings.py` lists the keys. Only what differs from the bundle's own defaults is
written: user data is small, and what is not in it cannot change it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from gputier.boot.expectation import SCRATCH, fabric_of
from gputier.boot.metrics import metrics
from gputier.boot.nccl import nccl
from gputier.node import settings as node
from gputier.plan import Chosen, WorkloadPlan
from gputier.plan.boot import BootPlan
from gputier.plan.names import names_of

#: Where a data volume is mounted, and what a blank one is formatted with.
DATA = "/data"
FILESYSTEM = "xfs"
#: Seconds to get the bundle, late metadata and throttled storage included.
BUNDLE_SECONDS = 300
#: Keys of the driver that a stage reads; the bounds are the expectation's.
DRIVER = ("source", "branch", "version", "module", "fabric_manager", "imex")
#: How deep a machine is looked at before it joins, where that is less than the plan's depth: the
#: long tests of a burn-in come after, and the expectation says so.
BEFORE_JOINING = {"burn-in": "standard"}


class Stack(NamedTuple):
    """Where a workload is deployed: what the names of its group and its bucket are made of."""

    project: str
    name: str


class Bundle(NamedTuple):
    """The node bundle that a lock pins."""

    sha256: str
    version: str


def settings(
    plan: WorkloadPlan, stack: Stack, bundle: Bundle, inline: bool = False
) -> dict[str, object]:
    """The settings of one machine, the deadline and stage limits left out (`deadlines.py` adds
    them). Raises `ValueError` when nothing was chosen."""
    chosen = plan.chosen
    if chosen is None:
        raise ValueError(f"no machine was chosen for {plan.name}")
    own = stack.name.rsplit("/", 1)[-1]
    found: dict[str, object] = {
        "schema": node.SCHEMA,
        "project": stack.project,
        "stack": own,
        "workload": chosen.fleet.resources,
        "cloud": chosen.verdict.type.cloud,
        "instance_type": chosen.verdict.machine.instance_type,
        "bundle": {**bundle._asdict(), "delivery": "inline" if inline else "object"},
        "gate": _gate(chosen, Stack(stack.project, own)),
        "limits": {"bundle": BUNDLE_SECONDS},
        "breaker": {
            "after": node.BREAKER_AFTER,
            "window_seconds": int(node.BREAKER_WINDOW_SECONDS),
        },
        "metrics": metrics(chosen.verdict.type.cloud, chosen.boot.gate.kind != node.GATE_FILE),
        "reboots": node.REBOOTS,
        **_machine(plan, chosen),
        **_software(chosen.boot),
    }
    return found


def _gate(chosen: Chosen, stack: Stack) -> dict[str, object]:
    gate = chosen.boot.gate
    depth = BEFORE_JOINING.get(gate.depth, gate.depth)
    found: dict[str, object] = {"kind": gate.kind, "mode": gate.mode, "depth": depth}
    if gate.kind == node.LIFECYCLE_HOOK:
        names = names_of(chosen.verdict.type.cloud, *stack, chosen.fleet.resources)
        found |= {"group": names.of("group"), "hook": names.of("hook")}
    if gate.kind == node.HEALTH_ENDPOINT:
        found["port"] = node.HEALTH_PORT
    return found


def _machine(plan: WorkloadPlan, chosen: Chosen) -> dict[str, object]:
    """Driver, disks, fabric: what the hardware asks for."""
    row, storage, driver = chosen.verdict.type, chosen.storage, chosen.boot.driver
    found: dict[str, object] = {
        "driver": _present({key: getattr(driver, key) for key in DRIVER}),
    }
    if isinstance(plan.need.workload.gpu.mig, str):
        found["mig"] = {"profile": plan.need.workload.gpu.mig}
    machine = chosen.verdict.machine
    if machine.nvme_disks and machine.scratch_gib:
        found["scratch"] = {
            "mount": SCRATCH, "filesystem": FILESYSTEM, "count": machine.nvme_disks,
        }  # fmt: skip
    if storage.data_gib:
        found["data"] = {"mount": DATA, "filesystem": FILESYSTEM, "gib": storage.data_gib}
    fabric = fabric_of(chosen)
    if fabric:
        found["fabric"] = fabric
    variables = nccl(chosen.network.fabric, row.family, machine.gpus)
    if variables:
        found["nccl"] = dict(variables)
    return found


def _software(boot: BootPlan) -> dict[str, object]:
    """What a person asked to run, and the way to it."""
    found: dict[str, object] = {
        "packages": list(boot.packages),
        "ssh_keys": list(boot.ssh_keys),
        "run": boot.run,
        "before_stop": boot.before_stop,
        "mpi": boot.mpi if boot.mpi != "none" else None,
    }
    if boot.framework:
        frame = boot.framework
        found["framework"] = {
            "name": frame.name, "version": frame.version, "cuda": frame.cuda,
            "index": frame.index_url,
        }  # fmt: skip
    if boot.container:
        given = boot.container
        found["container_toolkit"] = True
        found["container"] = _present(
            {"image": given.image, "args": list(given.args), "env": dict(given.env),
             "ports": list(given.ports)}
        )  # fmt: skip
    if boot.proxy:
        found["proxy"] = _present(
            {"http": boot.proxy.http, "https": boot.proxy.https,
             "no_proxy": ",".join(boot.proxy.no_proxy)}
        )  # fmt: skip
    if boot.mirrors:
        registry = boot.mirrors.container
        found["mirrors"] = _present(
            {"apt": boot.mirrors.apt, "pip": boot.mirrors.pip,
             "container": f"https://{registry}" if registry else None}
        )  # fmt: skip
    return _present(found)


def _present(found: Mapping[str, object]) -> dict[str, object]:
    """Without what is not there: an absent key is a stage that does not apply."""
    return {key: value for key, value in found.items() if value not in (None, False, "", [], {})}
