"""What a workload asks of the machine itself: GPUs, CPU, disks, network."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Literal

from pydantic import BeforeValidator, Field

from gputier import units
from gputier.workload import fields, known
from gputier.workload.base import Clash, Spec
from gputier.workload.complaints import complaint, shown
from gputier.workload.foreign import other_accelerator

Fractional = Literal["forbid", "allow"]
Graphics = Literal["opengl", "vulkan", "directx"]
CpuArchitecture = Literal["x86_64", "arm64", "any"]
Placement = Literal["cluster", "spread", "none"]
Egress = Literal["nat", "public", "endpoints"]

_GRAPHICS_NAMES = {
    "gl": "opengl",
    "dx": "directx",
    "dx12": "directx",
    "d3d": "directx",
    "vk": "vulkan",
}
_CPU_NAMES = {
    "amd64": "x86_64",
    "x86": "x86_64",
    "x64": "x86_64",
    "aarch64": "arm64",
    "arm": "arm64",
}
_PLACEMENT_NAMES = {"compact": "cluster", "partition": "spread"}

_is_gpu_name = fields.is_text(
    r"[A-Za-z0-9][A-Za-z0-9 _./+\-]*", "a GPU's name such as H100 or L4", 60
)
_is_mig_profile = fields.is_text(
    r"[1-7]g\.[0-9]{1,3}gb(\+me|\+gfx)?", "true, false or a profile such as 1g.10gb"
)
_is_link_speed = fields.is_quantity(
    units.parse_gb_s, "GB/s", (1, 100_000), ("600GB/s", "1GB/s", "100TB/s")
)


def _gpu_name(value: object) -> str:
    """a GPU's name such as H100 or L4"""
    if isinstance(value, str) and (what := other_accelerator(value)):
        raise complaint(
            f" names {shown(value)}, {what}: gputier is for NVIDIA GPUs",
            "see `gputier catalog gpus` for the GPUs there are",
        )
    return _is_gpu_name(value)


GpuName = Annotated[str, BeforeValidator(_gpu_name)]
GpuNames = Annotated[tuple[GpuName, ...], fields.several("GPU", least=0), fields.Once]


def _graphics(value: object) -> object:
    if isinstance(value, str) and value.lower() in ("directx", "dx12", "dx11", "d3d"):
        raise complaint(
            ": DirectX needs a Windows boot, which gputier does not have yet",
            "OpenGL and Vulkan work: `graphics: [vulkan]`",
        )
    return value


def _nvlink(value: object) -> object:
    """true, false or a speed such as 600GB/s"""
    if isinstance(value, bool) or value in ("true", "false"):
        return value in (True, "true")
    return _is_link_speed(value)


def _mig(value: object) -> object:
    """true, false or a profile such as 1g.10gb"""
    if isinstance(value, bool) or value in ("true", "false"):
        return value in (True, "true")
    return _is_mig_profile(value)


class Gpu(Spec):
    """What a workload asks of the GPUs of one machine. Silence leaves the choice to gputier."""

    models: GpuNames = Field(
        default=(),
        description="GPU models that will do: catalogue names such as `H100-80GB`, or a bare `H100`"
        " for every variant. Default: any.",
    )
    exclude: GpuNames = Field(
        default=(), description="GPU models that will not do, named as in `models`."
    )
    count: Annotated[int, fields.whole(1, 72)] | None = Field(
        default=None,
        description="At least this many GPUs per machine. Default: as few as the need allows.",
    )
    memory: fields.GpuMemory | None = Field(
        default=None,
        description="Memory of each GPU, as the class it is sold in: `24GB`, `80GB`. GB and GiB"
        " mean the same here.",
    )
    total_memory: fields.TotalGpuMemory | None = Field(
        default=None,
        description="Memory of all GPUs of one machine together, counted as in `memory`.",
    )
    compute_capability: Annotated[float, fields.ranged(1, 20, "a compute capability")] | None = (
        Field(
            default=None, description="At least this CUDA compute capability, such as 8.0 or 8.9."
        )
    )
    nvlink: Annotated[bool | float, BeforeValidator(_nvlink)] | None = Field(
        default=None,
        description="Whether the GPUs of a machine must be joined by NVLink: true, false (not even"
        " where the tier asks for it), or at least a speed per GPU such as `600GB/s`.",
    )
    fractional: Annotated[Fractional, fields.choice(Fractional)] | None = Field(
        default=None,
        description="Whether a slice of a GPU will do. Default: forbid, except for purpose vdi.",
    )
    graphics: (
        Annotated[
            tuple[
                Annotated[
                    Graphics, fields.choice(Graphics, _GRAPHICS_NAMES), BeforeValidator(_graphics)
                ],
                ...,
            ],
            fields.several("graphics interface", least=0),
            fields.Once,
        ]
        | None
    ) = Field(
        default=None,
        description="Graphics interfaces the driver must offer: opengl, vulkan; [] for none, not"
        " even where the purpose asks for them.",
    )
    video_encode: fields.Truth | None = Field(
        default=None, description="Whether hardware video encoding (NVENC) is needed."
    )
    video_decode: fields.Truth | None = Field(
        default=None, description="Whether hardware video decoding (NVDEC) is needed."
    )
    vgpu: fields.Truth | None = Field(
        default=None,
        description="Whether the GPU must support NVIDIA vGPU (sharing among desktops).",
    )
    mig: Annotated[bool | str, BeforeValidator(_mig)] | None = Field(
        default=None,
        description="Whether the GPU must be divisible by MIG: true, false, or a profile it must"
        " offer such as `1g.10gb`.",
    )

    def cross_checks(self) -> Iterator[Clash]:
        yield from self._unknown()
        both = {name.casefold() for name in self.models} & {n.casefold() for n in self.exclude}
        if both:
            name = next(n for n in self.exclude if n.casefold() in both)
            yield Clash(
                ("exclude",),
                complaint(f" names `{name}`, which `models` asks for", "keep it in one of the two"),
                ("models", "exclude"),
            )
        if self.memory and self.total_memory and self.memory > self.total_memory:
            yield Clash(
                ("total_memory",),
                complaint(
                    f" is {self.total_memory:g}GB, less than the {self.memory:g}GB of one GPU",
                    "`memory` is per GPU, `total_memory` all GPUs of a machine together",
                ),
                ("memory", "total_memory"),
            )

    def _unknown(self) -> Iterator[Clash]:
        names = known.asked()
        for field, written in (("models", self.models), ("exclude", self.exclude)):
            for place, name in enumerate(written if names else ()):
                unknown = names.gpu(name) if names else None
                if unknown:
                    yield Clash((field, place), complaint(*unknown), (field,))


class Cpu(Spec):
    """What a workload asks of the machine's processor."""

    count: Annotated[int, fields.whole(1, 10_000)] | None = Field(
        default=None, description="At least this many vCPUs per machine."
    )
    architecture: Annotated[CpuArchitecture, fields.choice(CpuArchitecture, _CPU_NAMES)] = Field(
        default="x86_64",
        description="Architecture: x86_64, arm64 (Grace and Graviton hosts), or any. Most GPU"
        " software is built for x86_64.",
    )


class Disk(Spec):
    """Storage of each machine."""

    scratch: fields.DiskGib | None = Field(
        default=None,
        description="Local NVMe, bundled or attachable, lost with the machine: `600GB`, `2TB`.",
    )
    data: fields.DiskGib | None = Field(
        default=None, description="A network volume for data, priced beside the machine: `500GB`."
    )
    throughput: fields.StorageSpeed | None = Field(
        default=None,
        description="Sequential speed each machine must sustain from its disks: `500MB/s`.",
    )
    iops: Annotated[int, fields.whole(1, 10_000_000)] | None = Field(
        default=None,
        description="Input/output operations per second of the data volume, or without one of the"
        " root volume.",
    )
    persist: fields.Truth | None = Field(
        default=None,
        description="Whether the data volume is kept when its machine goes. Default: only that of a"
        " lone machine for development or vdi.",
    )
    snapshot: Annotated[str, fields.text(r"[A-Za-z0-9][\w./:\-]*", "a snapshot's id")] | None = (
        Field(
            default=None,
            description="A snapshot that the data volume starts as; `data` is then at least its"
            " size.",
        )
    )
    kms_key: Annotated[str, fields.text(r"[A-Za-z0-9][\w./:\-]*", "a key's id or ARN")] | None = (
        Field(
            default=None,
            description="The key that encrypts volumes: a key's id, alias or ARN, or `create` for"
            " one of its own. Default: the cloud's.",
        )
    )

    def cross_checks(self) -> Iterator[Clash]:
        if self.snapshot and self.data is None:
            yield Clash(
                ("snapshot",),
                complaint(" is for a data volume", "say how large: `data: 500GB`", place="key"),
                ("snapshot", "data"),
            )


class Network(Spec):
    """Network of each machine."""

    bandwidth: fields.NetworkSpeed | None = Field(
        default=None, description="Bandwidth each machine must sustain: `10Gbps`."
    )
    burst: fields.Truth = Field(
        default=False, description="Whether burst bandwidth counts towards `bandwidth`."
    )
    placement: Annotated[Placement, fields.choice(Placement, _PLACEMENT_NAMES)] | None = Field(
        default=None,
        description="How machines lie to each other: cluster (close), spread (apart), none."
        " Default: what the tier says.",
    )
    egress: Annotated[Egress, fields.choice(Egress)] = Field(
        default="nat",
        description="How machines reach the internet: nat (a gateway, no public address), public"
        " (an address each), endpoints (the cloud's own services only).",
    )
    vpc: (
        Annotated[
            str, fields.text(r"[A-Za-z0-9][A-Za-z0-9._:/\-]*", "an existing network's id or name")
        ]
        | None
    ) = Field(
        default=None,
        description="An existing network to use. Default: one is made, and its parts priced.",
    )
    subnets: (
        Annotated[
            tuple[
                Annotated[
                    str, fields.text(r"[A-Za-z0-9][A-Za-z0-9._:/\-]*", "a subnet's id or name")
                ],
                ...,
            ],
            fields.several("subnet"),
            fields.Once,
        ]
        | None
    ) = Field(
        default=None,
        description="Subnets of `vpc` to use, by id or name. Default: all that lie in zones which"
        " sell the machine.",
    )

    def cross_checks(self) -> Iterator[Clash]:
        if self.subnets and self.vpc is None:
            yield Clash(
                ("subnets",),
                complaint(" are of an existing network", "name it: `vpc: vpc-0abc`", place="key"),
                ("subnets", "vpc"),
            )
