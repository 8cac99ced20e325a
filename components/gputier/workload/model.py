"""The schema of a workload: everything this release reads of what a user declares.

Field names are public. Descriptions are written for users: docs/workload.md is made of them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Annotated, Any, ClassVar, Literal, get_args

from pydantic import BeforeValidator, Field

from gputier.workload import fields, known
from gputier.workload.base import Clash, Spec
from gputier.workload.complaints import complaint, listed, shown
from gputier.workload.keeping import FormerName, Identity, RolloutName, Tags
from gputier.workload.machine import Cpu, Disk, Gpu, GpuName, Network
from gputier.workload.ml import Architecture, Image, Model, Training
from gputier.workload.running import (
    Budget,
    Capacity,
    CapacityChoice,
    Scale,
    ScheduleEntry,
    Zone,
)
from gputier.workload.shapes import as_map
from gputier.workload.software import Container, ImageChoice, Mirrors, Proxy, Software, Validation

__all__ = [
    "Architecture",
    "Budget",
    "CapacityChoice",
    "Container",
    "Cpu",
    "Defaults",
    "Discount",
    "Disk",
    "Gpu",
    "GpuName",
    "Identity",
    "Image",
    "ImageChoice",
    "Mirrors",
    "Model",
    "Network",
    "Proxy",
    "Scale",
    "ScheduleEntry",
    "Software",
    "Training",
    "Validation",
    "Workload",
]

Tier = Literal["entry", "mid", "high-end"]
Purpose = Literal[
    "development", "inference", "fine-tuning", "training", "rendering", "hpc", "vdi"
]  # fmt: skip
Cloud = Literal["aws", "gcp", "azure", "alibaba", "tencent"]
Fabric = Literal["any", "efa", "gpudirect-tcpx", "gpudirect-tcpxo", "roce", "infiniband", "none"]
Prefer = Literal["price", "value", "speed"]

#: Formats whose kernels are extensions of PyTorch: bitsandbytes (nf4), GPTQModel and AutoAWQ.
PYTORCH_ONLY = frozenset({"nf4", "nf4-dq", "int4-gptq", "int4-awq"})

DEFAULT_CLOUDS = ("aws", "gcp")
"""The clouds of a workload that names none."""

_TIER_NAMES = {"low": "entry", "small": "entry", "medium": "mid", "middle": "mid",
               "high": "high-end", "large": "high-end", "highend": "high-end"}  # fmt: skip
_PURPOSE_NAMES = {"serving": "inference", "dev": "development", "finetuning": "fine-tuning",
                  "finetune": "fine-tuning", "train": "training", "render": "rendering",
                  "simulation": "hpc", "desktop": "vdi"}  # fmt: skip
_CLOUD_NAMES = {"amazon": "aws", "google": "gcp", "gce": "gcp", "google-cloud": "gcp",
                "microsoft": "azure", "aliyun": "alibaba", "alicloud": "alibaba",
                "tencentcloud": "tencent"}  # fmt: skip
_FABRIC_NAMES = {"tcpx": "gpudirect-tcpx", "tcpxo": "gpudirect-tcpxo", "ib": "infiniband",
                 "rocev2": "roce", "rdma": "any"}  # fmt: skip
_PREFER_NAMES = {"cost": "price", "cheap": "price", "performance": "speed", "fast": "speed"}

CloudName = Annotated[Cloud, fields.choice(Cloud, _CLOUD_NAMES)]
Clouds = Annotated[tuple[CloudName, ...], fields.several("cloud"), fields.Once]
region_name = fields.is_text(
    r"[a-z][a-z0-9\-]*", "a region's name such as us-east-1 or us-central1", 40
)
RegionName = Annotated[str, BeforeValidator(region_name)]


def _region_map(value: object) -> object:
    regions = as_map(value)
    if regions is None:
        raise complaint(
            f" must be a map from cloud to regions, not {shown(value)}",
            "such as {aws: [us-east-1]}",
        )
    if len(regions) > 20:
        raise complaint(f" names {len(regions):,} clouds; there are {len(get_args(Cloud))}")
    return {k: v for k, v in regions.items() if v is not None}


Regions = Annotated[
    Mapping[CloudName, Annotated[tuple[RegionName, ...], fields.several("region"), fields.Once]],
    BeforeValidator(_region_map),
    fields.Frozen,
]
Zones = Annotated[tuple[Zone, ...], fields.several("zone"), fields.Once]
PreferName = Annotated[Prefer, fields.choice(Prefer, _PREFER_NAMES)]

# Made without validation, which would build every validator when this module is imported.
_GPU = Gpu.model_construct()
_CPU = Cpu.model_construct()
_DISK = Disk.model_construct()
_NETWORK = Network.model_construct()
_SCALE = Scale.model_construct()
_SOFTWARE = Software.model_construct()
_VALIDATION = Validation.model_construct()
_IDENTITY = Identity.model_construct()
_ON_DEMAND = (CapacityChoice.model_construct(use="on_demand"),)


def _as_entries(value: object) -> object:
    return value if as_map(value) is None else (value,)


def clouds_of(regions: Mapping[Any, Any]) -> tuple[str, ...] | None:
    """Regions alone name the clouds too: who asked for a region did not ask for another cloud's.
    A misspelt cloud is reported below `regions`, not twice."""
    real = get_args(Cloud)
    return tuple(c for c, r in regions.items() if r is not None and c in real) or None


class Workload(Spec):
    """One GPU job or service, as declared. Silence leaves a choice to gputier.

    From Python, `Workload(gpu={"count": 1})` takes what a file takes and raises
    `gputier.errors.InvalidInput` with every problem at once.
    """

    ORDERED: ClassVar[frozenset[str]] = frozenset({"capacity"})

    tier: Annotated[Tier, fields.choice(Tier, _TIER_NAMES)] | None = Field(
        default=None,
        description="A set of floors to start from: entry, mid or high-end. Default: only what is"
        " declared counts.",
    )
    purpose: Annotated[Purpose, fields.choice(Purpose, _PURPOSE_NAMES)] | None = Field(
        default=None,
        description="What the machines are for; it adds floors and decides what `prefer: value`"
        " counts. Default: with `model.training` fine-tuning, with another `model` inference, else"
        " none.",
    )
    model: Model | None = Field(
        default=None, description="The model to run, which decides the GPU memory."
    )
    gpu: Gpu = Field(default=_GPU, description="What the GPUs of a machine must be.")
    cpu: Cpu = Field(default=_CPU, description="What the processor must be.")
    memory: fields.MemoryGib | None = Field(
        default=None, description="Host memory of each machine: `64GiB`."
    )
    nodes: Annotated[int, fields.whole(1, 1000)] | None = Field(
        default=None,
        description="How many machines. Default: 1, or for training as many as the need asks.",
    )
    disk: Disk = Field(default=_DISK, description="Storage of each machine.")
    network: Network = Field(default=_NETWORK, description="Network of each machine.")
    fabric: Annotated[Fabric, fields.choice(Fabric, _FABRIC_NAMES)] | None = Field(
        default=None,
        description="The RDMA fabric between machines: any, one by name, or none (not even where"
        " the tier asks for it). Default: what the tier says.",
    )
    clouds: Clouds | None = Field(
        default=None, description="Clouds that will do. Default: aws and gcp."
    )
    regions: Regions | None = Field(
        default=None,
        description="Regions that will do, per cloud: `{aws: [us-east-1]}`. Default: `aws:region`"
        " and `gcp:region` of the stack, else every commercial region.",
    )
    zones: Zones | None = Field(
        default=None,
        description="Zones that will do, by name or id (us-east-1a, use1-az4). Default: any.",
    )
    capacity: Capacity = Field(
        default=_ON_DEMAND,
        description="How machines are bought: on_demand, spot, reservation, capacity_block or"
        " flex_start; or a map with `use` and more; or a list of these in the order to try.",
    )
    max_usd_per_hour: fields.UsdPerHour | None = Field(
        default=None, description="Ceiling per machine and hour: `$2.50/h`."
    )
    prefer: PreferName = Field(
        default="price",
        description="What ranks the machines that fit: price (cheapest), value (most work per"
        " dollar), speed (most work).",
    )
    hours_per_month: Annotated[float, fields.ranged(1, 744, "hours")] | None = Field(
        default=None,
        description="Hours a machine runs in a month. Default: from `schedule`, else 730.",
    )
    scale: Scale = Field(
        default=_SCALE,
        description="How many machines may run. Default: always `nodes`.",
    )
    schedule: Annotated[
        tuple[ScheduleEntry, ...], fields.several("time", 20, least=0), BeforeValidator(_as_entries)
    ] = Field(default=(), description="When machines run. Default: always.")
    budget: Budget | None = Field(
        default=None, description="What the workload may cost in a month."
    )
    software: Software = Field(default=_SOFTWARE, description="What runs on the machines.")
    validation: Validation = Field(
        default=_VALIDATION, description="How a machine proves itself before it takes work."
    )
    identity: Identity = Field(
        default=_IDENTITY,
        description="Whose rights the machines have, and who keeps their reports.",
    )
    rollout: RolloutName | None = Field(
        default=None,
        description="How a change reaches machines that run: new-machines (it does not: those that"
        " start later have it), or rolling (they are replaced one after the other). Default:"
        " rolling for inference, else new-machines.",
    )
    tags: Tags | None = Field(
        default=None,
        description="Tags on everything that is made: `{team: vision}`. Default: none.",
    )
    was: FormerName | None = Field(
        default=None,
        description="The name under which this workload was first deployed. Its machines keep it:"
        " a rename then changes nothing that runs. Default: it has always been called this.",
    )

    @classmethod
    def prepared(cls, data: dict[str, Any]) -> dict[str, Any]:
        regions = as_map(data.get("regions"))
        if regions and data.get("clouds") is None:
            data = {**data, "clouds": clouds_of(regions)}
        model = data.get("model")
        written = vars(model) if isinstance(model, Model) else as_map(model)
        if "purpose" in data or written is None:
            return data
        trains = written.get("training") is not None
        return {**data, "purpose": "fine-tuning" if trains else "inference"}

    def cross_checks(self) -> Iterator[Clash]:
        yield from self._counts()
        yield from self._places()
        yield from self._purposes()
        yield from self._framework()

    def _counts(self) -> Iterator[Clash]:
        low, high = self.scale.min, self.scale.max
        if self.nodes is not None and high is not None and self.nodes > high:
            yield Clash(
                ("scale", "max"),
                complaint(f" is {high}, fewer than the {self.nodes} `nodes`"),
                ("nodes", "scale"),
            )
        if self.nodes is not None and low is not None and self.nodes < low:
            yield Clash(
                ("scale", "min"),
                complaint(f" is {low}, more than `nodes`, which is {self.nodes}"),
                ("nodes", "scale"),
            )
        needed = self.nodes or low or 1
        for place, choice in enumerate(self.capacity):
            if choice.count is not None and choice.count < needed:
                yield Clash(
                    ("capacity", place, "count"),
                    complaint(f" is {choice.count}, and the workload needs {needed} machines"),
                    ("nodes", "scale", "capacity"),
                )

    def _places(self) -> Iterator[Clash]:
        clouds = self.clouds or DEFAULT_CLOUDS
        names = known.asked()
        for cloud, regions in (self.regions or {}).items() if names else ():
            for place, region in enumerate(regions):
                unknown = names.region(cloud, region) if names else None
                if unknown:
                    yield Clash(("regions", cloud, place), complaint(*unknown), ("regions",))
        for cloud in self.regions or {}:
            if cloud not in clouds:
                named = (
                    f"`clouds` is {listed(clouds)}" if self.clouds else "the default is aws and gcp"
                )
                yield Clash(
                    ("regions", cloud),
                    complaint(
                        f" names regions of a cloud the workload does not use: {named}",
                        f"add {cloud} to `clouds`, or remove it from `regions`",
                        place="key",
                    ),
                    ("clouds", "regions"),
                )

    def _purposes(self) -> Iterator[Clash]:
        model = self.model
        if model is not None and model.training is not None and self.purpose not in (
            "training", "fine-tuning", "development", "hpc", None,
        ):  # fmt: skip
            yield Clash(
                ("model", "training"),
                complaint(
                    f" does not go with `purpose: {self.purpose}`",
                    "remove `training`, or set `purpose` to fine-tuning or training",
                    place="key",
                ),
                ("purpose", "model"),
            )
        if model is not None and model.seats is not None and self.purpose != "vdi":
            yield Clash(
                ("model", "seats"),
                complaint(
                    " counts virtual desktops", "set `purpose: vdi`, or remove `seats`", place="key"
                ),
                ("purpose", "model"),
            )

    def _framework(self) -> Iterator[Clash]:
        precision = self.model.precision if self.model else None
        framework = self.software.framework_name
        if precision in PYTORCH_ONLY and framework not in ("", "pytorch"):
            yield Clash(
                ("software", "framework"),
                complaint(
                    f" is {framework}, and `model.precision: {precision}` has kernels for pytorch"
                    " only",
                    "use pytorch, or another precision such as bf16",
                ),
                ("software", "model"),
            )


class Defaults(Spec):
    """What each workload takes where it is silent itself."""

    clouds: Clouds | None = Field(default=None, description="As `clouds` of a workload.")
    regions: Regions | None = Field(
        default=None, description="As `regions` of a workload, filled in cloud by cloud."
    )
    zones: Zones | None = Field(default=None, description="As `zones` of a workload.")
    capacity: Capacity | None = Field(default=None, description="As `capacity` of a workload.")
    prefer: PreferName | None = Field(default=None, description="As `prefer` of a workload.")


class Discount(Spec):
    """A reduction you have negotiated or committed to; it counts in the choice and in the cost."""

    cloud: CloudName = Field(description="The cloud that grants it.")
    families: Annotated[
        tuple[
            Annotated[str, fields.text(r"[A-Za-z0-9][A-Za-z0-9_\-]*", "a family such as p5", 40)],
            ...,
        ],
        fields.several("family"),
        fields.Once,
    ] = Field(description="Instance families it is for: `[p5, p5e]`.")
    percent: Annotated[float, fields.ranged(0.01, 99.99, "a percentage")] = Field(
        description="Reduction of the on-demand price, more than 0 and less than 100."
    )
    reason: Annotated[str, fields.text(r"(?s).*\S.*", "a few words")] = Field(
        description="Why it applies, shown beside the price: `3-year savings plan`."
    )
