"""What one machine of a workload is given to become what was declared: the plan of its boot.

Everything that a boot script says is decided here, as plain values; `gputier.boot` only writes it
down. None is "not there": the stage that would read it does not apply.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from gputier.catalog import Catalog
from gputier.plan.need import Need, scales
from gputier.plan.tiers import tiers
from gputier.plan.verdict import Verdict
from gputier.workload import Software, Workload
from gputier.workload.declare import PRODUCTION

#: Purposes whose machine, when there is one and it does not scale, is a lone one: somebody's own,
#: with data that stays, and not one of a group that replaces its machines.
LONE_PURPOSES = frozenset({"development", "vdi"})
#: How a machine of a group tells the cloud that it is good.
GROUP_GATES: Mapping[str, str] = {
    "aws": "lifecycle-hook",
    "gcp": "health-endpoint",
    "azure": "application-health",
}
LONE_GATE = "file"
DEFAULT_DEPTH = "quick"


class ImagePlan(NamedTuple):
    """The machine image. One of `id` and `family`; `driver` and `cuda` are what it holds, None
    where it has none or nobody knows. `pinned`: the same image at every deployment. `source` says
    who chose it: declared, or catalogue."""

    id: str | None
    family: str | None
    os: str
    driver: str | None
    cuda: str | None
    pinned: bool
    source: str


class DriverPlan(NamedTuple):
    """The NVIDIA driver: `source` prebaked or install; `module` open or proprietary."""

    source: str
    branch: str
    version: str | None
    module: str
    fabric_manager: bool
    imex: bool


class FrameworkPlan(NamedTuple):
    """A framework, the CUDA its wheel is built for, and the index that has the wheel."""

    name: str
    version: str
    cuda: str
    index_url: str


class ContainerPlan(NamedTuple):
    """A container to run after the gate."""

    image: str
    args: tuple[str, ...]
    env: Mapping[str, str]
    ports: tuple[int, ...]


class ProxyPlan(NamedTuple):
    """The way out; `no_proxy` beside the metadata service."""

    http: str | None
    https: str | None
    no_proxy: tuple[str, ...]


class MirrorsPlan(NamedTuple):
    """Where packages, wheels and containers come from instead."""

    apt: str | None
    pip: str | None
    container: str | None


class GatePlan(NamedTuple):
    """How a machine proves itself: `kind` lifecycle-hook, health-endpoint, application-health or
    file; `mode` off, report or enforce; `depth` quick, standard or burn-in."""

    kind: str
    mode: str
    depth: str


class BootPlan(NamedTuple):
    """Everything about the boot of one machine."""

    image: ImagePlan
    driver: DriverPlan
    framework: FrameworkPlan | None
    container: ContainerPlan | None
    run: str | None
    before_stop: str | None
    packages: tuple[str, ...]
    proxy: ProxyPlan | None
    mirrors: MirrorsPlan | None
    mpi: str
    ssh_keys: tuple[str, ...]
    gate: GatePlan
    notes: tuple[str, ...]


def plan_boot(catalog: Catalog, need: Need, chosen: Verdict) -> BootPlan:
    """The boot of a machine of the chosen type."""
    software = need.workload.software
    proxy, mirrors = software.proxy, software.mirrors
    return BootPlan(
        image=ImagePlan(None, None, "ubuntu-24.04", None, None, False, "catalogue"),
        driver=DriverPlan("install", "580", None, "open", False, False),
        framework=None,
        container=_container(software),
        run=software.run,
        before_stop=software.before_stop,
        packages=software.packages,
        proxy=ProxyPlan(proxy.http, proxy.https or proxy.http, proxy.no_proxy) if proxy else None,
        mirrors=MirrorsPlan(mirrors.apt, mirrors.pip, mirrors.container) if mirrors else None,
        mpi=software.mpi,
        ssh_keys=software.ssh_keys,
        gate=plan_gate(need, chosen.type.cloud),
        notes=(),
    )


def _container(software: Software) -> ContainerPlan | None:
    given = software.container
    if given is None:
        return None
    return ContainerPlan(given.image, given.args, given.env, given.ports)


def plan_gate(need: Need, cloud: str) -> GatePlan:
    """The gate: what is declared, else what the environment and the tier ask for."""
    w, declared = need.workload, need.workload.validation
    lone = is_lone(need)
    enforced = need.environment in PRODUCTION and not lone
    tier = tiers().get(w.tier or "")
    return GatePlan(
        kind=LONE_GATE if lone else GROUP_GATES.get(cloud, LONE_GATE),
        mode=declared.gate or ("enforce" if enforced else "report"),
        depth=declared.depth or (tier.depth if tier else "") or DEFAULT_DEPTH,
    )


def is_lone(need: Need) -> bool:
    """Whether the workload is one machine by itself and not a group of them."""
    w: Workload = need.workload
    return need.purpose in LONE_PURPOSES and (w.nodes or 1) == 1 and not scales(w)
