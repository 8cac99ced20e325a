"""What one machine of a workload is given to become what was declared: the plan of its boot.

Everything that a boot script says is decided here, as plain values; `gputier.boot` only writes it
down. None is "not there": the stage that would read it does not apply.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from gputier.catalog import GENERATIONS, Catalog, Gpu
from gputier.plan.contract import OS_ORDER, Agreed, contract_of
from gputier.plan.need import Need, scales
from gputier.plan.reasons import Reason
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
#: Where a machine has its driver from.
PREBAKED, INSTALL = "prebaked", "install"
#: What to do about a placeholder for an image.
PLACEHOLDER_HINT = (
    "name your own image, or take the line away: `gputier lock STACK --images` pins today's"
)
#: From so many NVLinked GPUs on, data-centre machines since Ampere join them by NVSwitch, which
#: needs Fabric Manager (docs.nvidia.com/datacenter/tesla/fabric-manager-user-guide).
NVSWITCH_GPUS = 8
NVSWITCH_GENERATION = GENERATIONS["Ampere"]
#: Cards of racks whose NVLinks span machines: IMEX instead (docs.nvidia.com/multi-node-nvlink).
RACK_SCALE = ("GB200", "GB300")


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

    @property
    def placeholder(self) -> bool:
        """Whether the id stands where somebody's own belongs: nothing but zeros names no image."""
        return re.fullmatch(r"ami-0+", self.id or "") is not None


class DriverPlan(NamedTuple):
    """The NVIDIA driver: `source` prebaked or install; `version` is the exact one to install, None
    where it is prebaked; `module` open or proprietary. `min` is the oldest that card and framework
    take, `max` the last branch of the card; None is no bound."""

    source: str
    branch: str
    version: str | None
    module: str
    fabric_manager: bool
    imex: bool
    min: str | None
    max: str | None


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
    agreed = contract_of(catalog, software).ask(chosen.type)
    proxy, mirrors = software.proxy, software.mirrors
    image = _image(software, agreed)
    return BootPlan(
        image=image,
        driver=_driver(chosen, catalog.gpus[chosen.type.gpu_model], agreed),
        framework=_framework(software, agreed),
        container=_container(software),
        run=software.run,
        before_stop=software.before_stop,
        packages=software.packages,
        proxy=ProxyPlan(proxy.http, proxy.https or proxy.http, proxy.no_proxy) if proxy else None,
        mirrors=MirrorsPlan(mirrors.apt, mirrors.pip, mirrors.container) if mirrors else None,
        mpi=software.mpi,
        ssh_keys=software.ssh_keys,
        gate=plan_gate(need, chosen.type.cloud),
        notes=tuple(_notes(need, chosen, image, agreed)),
    )


def _image(software: Software, agreed: Agreed | Reason) -> ImagePlan:
    declared = software.image
    known = agreed.image if isinstance(agreed, Agreed) else None
    driver = agreed.driver if isinstance(agreed, Agreed) and agreed.prebaked else None
    cuda = (declared.cuda if declared else None) or (known.cuda if known else None)
    os = (declared.os if declared else None) or (known.os if known else OS_ORDER[0])
    name = declared.id if declared else None
    if name is None:
        family = known.name if known else None
        return ImagePlan(None, family, os, driver, cuda, False, "catalogue")
    moves = name.startswith("/") or "/family/" in name
    fixed, family = (None, name) if moves else (name, None)
    return ImagePlan(fixed, family, os, driver, cuda, not moves, "declared")


def _driver(chosen: Verdict, gpu: Gpu, agreed: Agreed | Reason) -> DriverPlan:
    """A driver that nobody here knows (an own image that does not say, a slice's) is prebaked,
    of no known branch: nothing is installed over it."""
    row = chosen.type
    recent = gpu.generation >= NVSWITCH_GENERATION
    rack = gpu.model in RACK_SCALE
    switched = bool(row.nvlink) and row.gpu_devices >= NVSWITCH_GPUS and recent
    if isinstance(agreed, Reason):
        return DriverPlan(PREBAKED, "", None, "proprietary", switched, rack, None, None)
    branch = (agreed.driver or "").partition(".")[0]
    return DriverPlan(
        source=PREBAKED if agreed.prebaked else INSTALL,
        branch=branch,
        # What a family holds moves with it: only an installed driver is of a version we choose.
        version=None if agreed.prebaked else agreed.driver,
        module=agreed.module,
        fabric_manager=switched,
        imex=rack,
        min=agreed.driver_min,
        max=agreed.driver_max,
    )


def _framework(software: Software, agreed: Agreed | Reason) -> FrameworkPlan | None:
    wheel = agreed.wheel if isinstance(agreed, Agreed) else None
    if wheel is None:
        return None
    mirror = software.mirrors.pip if software.mirrors else None
    version = software.framework_version
    # A mirror has all builds of a release under one name, or only the default one: another has to
    # be asked for, and to fail where it is not there.
    if wheel.framework == "pytorch" and (
        software.framework_build or (mirror and not wheel.default)
    ):
        version = f"{version}+{wheel.build}"
    return FrameworkPlan(wheel.framework, version, wheel.cuda, mirror or wheel.index_url)


def _notes(need: Need, chosen: Verdict, image: ImagePlan, agreed: Agreed | Reason) -> Iterator[str]:
    software = need.workload.software
    if isinstance(agreed, Reason):
        yield f"{agreed.needed} is needed, and this is {agreed.has}: {agreed.relax}"
        return
    if image.placeholder:
        yield f"{image.id} is a placeholder: {PLACEHOLDER_HINT}"
    if agreed.driver is None:
        yield f"nobody says which driver {image.id or image.family} has: software.image.driver"
    if image.id is None and image.family is None and not chosen.plan_only:
        yield f"no image is known for {chosen.type.cloud} on {chosen.type.cpu_arch}"
    if agreed.doubts:
        yield f"no source confirms {', '.join(agreed.doubts)}"
    if software.container and software.framework:
        yield "the framework is installed on the machine; the container brings its own"


def _container(software: Software) -> ContainerPlan | None:
    given = software.container
    if given is None:
        return None
    return ContainerPlan(given.image, given.args, given.env or {}, given.ports)


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
