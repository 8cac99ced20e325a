"""What the catalogue holds, as typed frozen records.

Units: memory GiB, network Gbps (decimal bits), volumes MB/s (decimal bytes), money USD. An empty
cell in the data is `None` here: unknown, never 0 and never False. NamedTuples rather than
dataclasses because the whole catalogue is built in a fresh process on every command.
"""

from __future__ import annotations

from typing import NamedTuple

# Ada and Hopper came out together (2022) and neither supersedes the other, so they share a step.
GENERATIONS: dict[str, int] = {
    "Kepler": 1,
    "Maxwell": 2,
    "Pascal": 3,
    "Volta": 4,
    "Turing": 5,
    "Ampere": 6,
    "Ada": 7,
    "Hopper": 7,
    "Blackwell": 8,
    "Blackwell Ultra": 9,
}

CLOUDS: tuple[str, ...] = ("aws", "gcp", "azure", "alibaba", "tencent")
PURCHASES: tuple[str, ...] = ("on_demand", "spot", "reserved_1y", "reserved_3y")
INTERCONNECTS: tuple[str, ...] = (
    "none",
    "efa",
    "gpudirect-tcpx",
    "gpudirect-tcpxo",
    "roce",
    "infiniband",
    "erdma",
)
LIFECYCLES: tuple[str, ...] = (
    "current",
    "previous-generation",
    "preview",
    "limited",
    "invite-only",
    "retiring",
    "retired",
)


class Gpu(NamedTuple):
    """A GPU model. Tensor rates are dense, never the doubled sparse figures of data sheets."""

    model: str
    display_name: str
    architecture: str
    compute_capability: float
    form_factor: str
    vram_gib: float
    usable_gib: float | None  # what a process can allocate on a whole card
    usable_source: str
    marketed_gb: float  # the class the card is sold as
    memory_type: str | None
    memory_bandwidth_gb_s: float | None
    ecc: bool | None
    mig_supported: bool | None
    mig_max_instances: int | None
    mig_profiles: tuple[tuple[str, int], ...]  # (profile, how many of it fit on one card)
    nvlink_gb_s_per_gpu: float | None
    pcie_generation: int | None
    fp64_tflops: float | None
    fp64_tensor_tflops: float | None
    fp32_tflops: float | None
    tf32_tflops: float | None
    bf16_tflops: float | None
    fp16_tflops: float | None
    fp8_tflops: float | None
    fp4_tflops: float | None
    int8_tops: float | None
    graphics_capable: bool | None
    opengl_vulkan: str | None  # "true", "false" or "headless-only"
    rt_cores: int | None
    nvenc_count: int | None
    nvdec_count: int | None
    vgpu_supported: bool | None
    tdp_w: float | None
    cuda_toolkit_min: str | None
    cuda_toolkit_last: str | None  # None: still supported by the newest toolkit
    driver_branch_last: str | None
    consumer: bool  # GeForce: its licence bars data-centre use
    confidence: str
    source: str
    notes: str
    generation: int

    @property
    def draws(self) -> bool:
        """Whether a whole card offers OpenGL and Vulkan."""
        return bool(self.graphics_capable) and self.opengl_vulkan == "true"


class ZoneCap(NamedTuple):
    """A zone where a configurable machine may be no larger than this."""

    zone: str
    vcpus: int
    memory_gib: float


class InstanceType(NamedTuple):
    """An instance type, or an N1 + attached GPU row whose host is chosen (`vcpu_range`)."""

    cloud: str
    name: str
    family: str
    gpu_model: str
    gpu_model_confidence: str  # provider, inferred or inferred-fraction
    gpu_count: float  # physical GPUs, a fraction for a slice
    gpu_devices: int  # what the guest sees
    fractional: bool
    gpu_memory_gib: float  # nominal, per device, slice applied
    gpu_memory_visible_mib: float | None  # what the API or nvidia-smi prints
    usable_gib: float  # per device, what a process can allocate
    memory_class_gb: float  # marketed, per device: what a declared `24GB` is compared with
    vcpus: int | None
    memory_gib: float | None
    vcpu_range: tuple[float, float] | None
    memory_range: tuple[float, float] | None
    cpu_arch: str  # x86_64 or arm64
    cpu_platform: str | None
    numa_nodes: int | None
    host_pcie_generation: int | None
    gpu_pcie_link_width: int | None
    local_nvme_count: int | None
    local_nvme_gib: float | None
    attachable_ssd_counts: tuple[int, ...]  # permitted numbers of optional local SSDs; () is none
    attachable_ssd_gib: float | None  # size of one of them
    network_sustained_gbps: float | None
    network_burst_gbps: float | None
    network_cards: int | None
    network_interfaces_max: int | None
    efa_interfaces_max: int | None
    ipv4_per_interface: int | None
    ipv6_per_interface: int | None
    interconnect: str
    interconnect_gbps: float | None
    rdma: bool | None  # on AWS: RDMA read or write over EFA, which g4dn, g5 and p3dn lack
    gpudirect_rdma: bool | None
    nvlink: bool | None
    nvlink_gb_s_per_gpu: float | None
    nvlink_domain_gpus: int | None
    placement_group: str
    bare_metal: bool | None
    on_demand: bool | None
    spot: bool | None
    other_purchase: tuple[str, ...]
    lifecycle: str
    volume_mb_s: float | None  # the machine's own limit to network volumes, sustained
    volume_burst_mb_s: float | None
    volume_iops: float | None
    volume_burst_iops: float | None
    accelerator: str | None  # GCP guest accelerator of an N1 row
    attached_count: int
    zone_caps: tuple[ZoneCap, ...]
    boot_volumes: tuple[str, ...]  # kinds of volume it boots from (GCP), cheapest first; () unknown
    graphics: bool | None  # False: a slice without graphics APIs, whatever its card can do
    source: str
    as_of: str
    notes: str
    unverified: tuple[str, ...]  # columns of the data whose value rests on no source


class Price(NamedTuple):
    """USD per hour of one machine (of one GPU for `accelerator:…`) in one region."""

    cloud: str
    region: str
    instance_type: str
    purchase: str
    usd_per_hour: float
    as_of: str  # YYYY-MM-DD, or YYYY-MM where only the month is known
    source: str
    note: str
    zone: str = ""


class SpotAdvice(NamedTuple):
    """The AWS spot advisor's saving against on-demand and its interruption band."""

    region: str
    instance_type: str
    savings_percent: float
    interruption: str
    as_of: str
    source: str


class HostMachine(NamedTuple):
    """A predefined N1 machine that GPUs can be attached to."""

    name: str
    vcpus: int
    memory_gib: float
    source: str
    volume_mb_s: float | None = None  # its own limit to network volumes
    volume_iops: float | None = None


class ItemPrice(NamedTuple):
    """Something around a machine: a volume, an address, a gateway. `usd` None is unknown."""

    cloud: str
    item: str
    region: str
    usd: float | None
    unit: str
    source: str
    as_of: str
    status: str  # sourced or unverified
    borrowed: bool  # the asked region has no price of its own, another's stands in
    note: str
