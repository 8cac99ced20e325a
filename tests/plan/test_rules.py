"""Each rule on a machine that meets it, one that does not, and one that nobody knows about."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import pytest
from tests.plan.world import floor, gpu, judged, machine, row

from gputier.plan import RULES, Reason
from gputier.plan.machine import Machine
from gputier.plan.reasons import UNKNOWN
from gputier.plan.rules import NOT_IN_TABLE, title
from gputier.plan.rules_gpu import model_fit
from gputier.plan.rules_machine import disk_speeds
from gputier.plan.tiers import FloorValue
from gputier.sizing import Part, Sizing

A100, A10G, G4DN, G5G, G6, G6E, G6F, H100, N1, V100 = (
    "p4d.24xlarge", "g5.xlarge", "g4dn.xlarge", "g5g.xlarge", "g6.4xlarge", "g6e.xlarge",
    "g6f.large", "p5.48xlarge", "n1+nvidia-tesla-t4x1", "p3dn.24xlarge",
)  # fmt: skip
CLOUDS = {N1: "gcp", "g2-standard-12": "gcp", "a3-highgpu-8g": "gcp", "a4x-highgpu-4g": "gcp"}


@dataclass(frozen=True)
class Case:
    """A floor and a machine; `says` is (needed, has, relax), None when the floor is met. `type`
    and `card` change facts of the row and of its GPU."""

    rule: str
    value: FloorValue
    on: str
    says: tuple[str, str, str] | None = None
    type: dict[str, Any] = field(default_factory=dict[str, Any])
    card: dict[str, Any] = field(default_factory=dict[str, Any])
    nodes: int = 1
    ssds: int = 0
    host: str = ""
    burst: bool = False
    floor: dict[str, Any] = field(default_factory=dict[str, Any])

    @property
    def machine(self) -> Machine:
        type_ = row(CLOUDS.get(self.on, "aws"), self.on)._replace(**self.type)
        return machine(type_, nodes=self.nodes, ssds=self.ssds, on=self.host, memory_floor_gib=24.0)

    def __str__(self) -> str:
        how = "met" if self.says is None else "unknown" if UNKNOWN in self.says[1] else "not met"
        return f"{self.rule}={self.value}-{how}"


CASES = [
    Case("gpu_model", ("T4", "L4"), G6),
    Case("gpu_model", ("T4", "L4"), A10G, ("T4 or L4", "A10G", "gpu.models: add A10G")),
    Case("gpu_exclude", ("T4",), G6),
    Case("gpu_exclude", ("L4", "T4"), G6, ("not L4 or T4", "L4", "gpu.exclude: drop L4")),
    Case("gpu_count", 8.0, H100),
    Case("gpu_count", 9.0, H100, ("≥ 9 GPUs", "8", "gpu.count: 8")),
    Case("gpu_memory", 24.0, G6),
    Case("gpu_memory", 25.0, G6, ("≥ 25 GB per GPU", "24 GB", "gpu.memory: 24GB")),
    Case("gpu_memory", 80.0, H100),
    Case("total_memory", 640.0, H100),
    Case(
        "total_memory", 641.0, H100,
        ("≥ 641 GB per machine", "640 GB", "gpu.total_memory: 640GB"),
    ),
    Case("compute_capability", 8.9, G6),
    Case("compute_capability", 8.0, A100),
    Case("compute_capability", 9.0, G6, ("≥ 9", "8.9", "gpu.compute_capability: 8.9")),
    Case("precision", "fp8", G6),
    Case("precision", "fp8", A10G, (
        "fp8: compute capability ≥ 8.9", "8.6", "model.precision: another one the card has")),
    Case("precision", "bf16", A100),
    Case("precision", "bf16", G4DN, (
        "bf16: compute capability ≥ 8", "7.5", "model.precision: another one the card has")),
    Case("precision", "fp16", G4DN),
    Case("precision", "nf4", G4DN),
    Case("precision", "int8", G4DN),
    Case("precision", "int8", G4DN, (
        "INT8 tensor cores", UNKNOWN, "model.precision: another one the card has"),
        card={"int8_tops": None}),
    Case("int8", True, G4DN),
    Case("int8", True, G4DN, (
        "INT8 tensor rate", UNKNOWN, "purpose: development asks for none"),
        card={"int8_tops": None}),
    Case("fp64", 0.45, A100),
    Case("fp64", 0.45, G6, card={"fp64_tflops": 4.5, "fp32_tflops": 10.0}),
    Case("fp64", 0.45, G6, (
        "FP64 ≥ 0.45 × FP32", "0.49 of 30.3 TFLOPS", "purpose: another than hpc")),
    Case("fp64", 0.45, G6, (
        "FP64 ≥ 0.45 × FP32", UNKNOWN, "purpose: another than hpc"), card={"fp64_tflops": None}),
    Case("fp64", 0.45, G6, (
        "FP64 ≥ 0.45 × FP32", UNKNOWN, "purpose: another than hpc"), card={"fp32_tflops": None}),
    Case("nvlink", True, A100),
    Case("nvlink", True, G6, ("NVLink", "none", "gpu.nvlink: false")),
    Case("nvlink", True, G6, ("NVLink", UNKNOWN, "gpu.nvlink: false"), type={"nvlink": None}),
    Case("nvlink", 600.0, A100),
    Case("nvlink", 900.0, A100, (
        "≥ 900 GB/s per GPU", "600 GB/s per GPU", "gpu.nvlink: false, or a lower speed")),
    Case("nvlink", 600.0, G6, (
        "≥ 600 GB/s per GPU", "none", "gpu.nvlink: false, or a lower speed")),
    Case("nvlink", 600.0, A100, (
        "≥ 600 GB/s per GPU", UNKNOWN, "gpu.nvlink: false, or a lower speed"),
        type={"nvlink": None}),
    Case("nvlink", 600.0, A100, (
        "≥ 600 GB/s per GPU", UNKNOWN, "gpu.nvlink: false, or a lower speed"),
        type={"nvlink_gb_s_per_gpu": None}),
    Case("ecc", True, H100),
    Case("ecc", True, H100, (
        "ECC memory", "none", "tier: another than high-end"), card={"ecc": False}),
    Case("ecc", True, H100, (
        "ECC memory", UNKNOWN, "tier: another than high-end"), card={"ecc": None}),
    Case("video_encode", True, G6),
    Case("video_encode", True, A100, (
        "hardware encoder (NVENC)", "none", "gpu.video_encode: false")),
    Case("video_encode", True, A100, (
        "hardware encoder (NVENC)", UNKNOWN, "gpu.video_encode: false"),
        card={"nvenc_count": None}),
    Case("video_decode", True, A100),
    Case("video_decode", True, A100, (
        "hardware decoder (NVDEC)", "none", "gpu.video_decode: false"), card={"nvdec_count": 0}),
    Case("video_decode", True, A100, (
        "hardware decoder (NVDEC)", UNKNOWN, "gpu.video_decode: false"),
        card={"nvdec_count": None}),
    Case("vgpu", True, G6),
    Case("vgpu", True, G6F, card={"vgpu_supported": False}),
    Case("vgpu", True, G6, (
        "vGPU, or a provider's slice", "none", "gpu.vgpu: false"), card={"vgpu_supported": False}),
    Case("vgpu", True, G6, (
        "vGPU, or a provider's slice", UNKNOWN, "gpu.vgpu: false"), card={"vgpu_supported": None}),
    Case("mig", True, H100),
    Case("mig", "1g.10gb", H100),
    Case("mig", "3g.40gb", H100),
    Case("mig", True, G6, ("MIG", "none", "gpu.mig: false, or a profile the card has")),
    Case("mig", "1g.10gb", G6, (
        "MIG profile 1g.10gb", "none", "gpu.mig: false, or a profile the card has")),
    Case("mig", "1g.99gb", "p4de.24xlarge", (
        "MIG profile 1g.99gb", "1g.10gb, 1g.20gb, 2g.20gb, 3g.40gb, 4g.40gb, 7g.80gb",
        "gpu.mig: false, or a profile the card has")),
    Case("mig", True, H100, (
        "MIG", UNKNOWN, "gpu.mig: false, or a profile the card has"),
        card={"mig_supported": None, "mig_profiles": ()}),
    Case("mig", True, G6F, ("MIG", "a slice, not a whole card", "gpu.mig: false")),
    Case("consumer_card", "forbid", G6),
    Case("consumer_card", "forbid", G6, (
        "a data-centre card", "NVIDIA GeForce RTX 4090 (no ECC)",
        "purpose: development, outside prod"),
        type={"gpu_model": "RTX-4090"}, floor={"why": "no ECC"}),
    Case("fractional", "forbid", G6),
    Case("fractional", "forbid", G6F, ("whole GPUs", "0.125 of a L4", "gpu.fractional: allow")),
    Case("vcpu", 16.0, G6),
    Case("vcpu", 17.0, G6, ("≥ 17 vCPU", "16 vCPU", "cpu.count: 16")),
    Case("vcpu", 2.0, N1, host="n1-standard-2"),
    Case("vcpu", 4.0, N1, ("≥ 4 vCPU", "2 vCPU", "cpu.count: 2"), host="n1-standard-2"),
    Case("vcpu", 4.0, G6, ("≥ 4 vCPU", UNKNOWN, "cpu.count"), type={"vcpus": None}),
    Case("host_memory", 64.0, G6),
    Case("host_memory", 64.1, G6, ("≥ 64.1 GiB", "64 GiB", "memory: 64GiB")),
    Case("host_memory", 14.5, N1, (
        "≥ 14.5 GiB", "14.4 GiB", "memory: 14.4GiB"), host="n1-highcpu-16"),
    Case("host_memory", 64.0, G6, ("≥ 64 GiB", UNKNOWN, "memory"), type={"memory_gib": None}),
    Case("architecture", "x86_64", G6),
    Case("architecture", "x86_64", G5G, ("x86_64", "arm64", "cpu.architecture: arm64 or any")),
    Case("architecture", "arm64", G6, ("arm64", "x86_64", "cpu.architecture: x86_64 or any")),
    Case("network", 10.0, G6),
    Case("network", 25.0, G6, (
        "≥ 25 Gbps", "10 Gbps sustained, up to 25 Gbps", "network.bandwidth: 10Gbps")),
    Case("network", 25.0, G6, burst=True),
    Case("network", 26.0, G6, (
        "≥ 26 Gbps", "25 Gbps", "network.bandwidth: 25Gbps"), burst=True),
    Case("network", 16.0, "g2-standard-12", burst=True),
    Case("network", 4000.0, H100, (
        "≥ 4000 Gbps", "3200 Gbps", "network.bandwidth: 3200Gbps")),
    Case("network", 10.0, G6, (
        "≥ 10 Gbps", UNKNOWN, "network.bandwidth"), type={"network_sustained_gbps": None}),
    Case("fabric", "any", H100),
    Case("fabric", "any", "g4dn.metal"),
    Case("fabric", "any", G6, ("a fabric between machines", "none", "fabric: none")),
    Case("fabric", "rdma", H100, nodes=2, floor={"when_nodes": True}),
    Case("fabric", "rdma", "a3-highgpu-8g", nodes=2, floor={"when_nodes": True}),
    Case("fabric", "rdma", "g4dn.metal", (
        "an RDMA fabric", "efa without RDMA", "fabric: none"), nodes=2,
        floor={"when_nodes": True}),
    Case("fabric", "rdma", G6, (
        "an RDMA fabric", "none", "fabric: none"), nodes=2, floor={"when_nodes": True}),
    Case("fabric", "rdma", G6, floor={"when_nodes": True}),
    Case("fabric", "efa", H100),
    Case("fabric", "efa", "a3-highgpu-8g", ("efa", "gpudirect-tcpx", "fabric: none")),
    Case("placement", "cluster", G6),
    Case("placement", "cluster", "g2-standard-12"),
    Case("placement", "cluster", "a4x-highgpu-4g"),
    Case("placement", "spread", N1, host="n1-standard-2"),
    Case("placement", "cluster", N1, (
        "cluster placement", "none", "network.placement: none"), host="n1-standard-2"),
    Case("placement", "cluster", N1, host="n1-standard-2", floor={"when_nodes": True}),
    Case("placement", "cluster", G6, (
        "cluster placement", "deployment set", "network.placement: none"),
        type={"placement_group": "deployment set"}),
    Case("placement", "cluster", G6, (
        "cluster placement", "none", "network.placement: none"), type={"placement_group": ""}),
    Case("scratch", 1.0, G6),
    Case("scratch", 558.8, G6),
    Case("scratch", 559.0, G6, ("≥ 559 GiB", "559 GiB", "disk.scratch: 558GiB")),
    Case("scratch", 2048.0, G6, ("≥ 2 TiB", "559 GiB", "disk.scratch: 558GiB")),
    Case("scratch", 1.0, G5G, ("local NVMe", "none", "disk.scratch has no floor outside high-end")),
    Case("scratch", 600.0, G5G, ("≥ 600 GiB", "0 GiB", "disk.scratch")),
    Case("scratch", 375.0, "g2-standard-12", ssds=1),
    Case("scratch", 376.0, "g2-standard-12", (
        "≥ 376 GiB", "375 GiB", "disk.scratch: 375GiB"), ssds=1),
    Case("scratch", 600.0, G6, (
        "≥ 600 GiB", UNKNOWN, "disk.scratch"), type={"local_nvme_gib": None}),
    Case("scratch", 1.0, G6, (
        "local NVMe", UNKNOWN, "disk.scratch has no floor outside high-end"),
        type={"local_nvme_gib": None}),
    Case("disk_throughput", 500.0, G4DN),
    Case("disk_throughput", 1000.0, G6),
    Case("disk_throughput", 4000.0, H100),
    Case("disk_throughput", 4000.0, H100),
    Case("disk_throughput", 2000.0, G6, (
        "≥ 2 GB/s", "NVMe 500 MB/s, volume 1 GB/s sustained", "disk.throughput: 1000MB/s")),
    Case("disk_throughput", 500.0, G5G, (
        "≥ 500 MB/s", "no NVMe, volume 148 MB/s sustained", "disk.throughput: 148.5MB/s")),
    Case("disk_throughput", 500.0, "g2-standard-12", ssds=1),
    Case("disk_throughput", 1000.0, "g2-standard-12", (
        "≥ 1 GB/s", f"NVMe 500 MB/s, volume limit {UNKNOWN}", "disk.throughput: 500MB/s"),
        ssds=1),
    Case("disk_throughput", 500.0, G6, (
        "≥ 500 MB/s", f"NVMe {UNKNOWN}, volume limit {UNKNOWN}", "disk.throughput"),
        type={"local_nvme_count": None, "local_nvme_gib": None, "volume_mb_s": None}),
    Case("disk_iops", 32_000.0, G6),
    Case("disk_iops", 32_001.0, G6, (
        "≥ 32,001 IOPS sustained", "32,000 IOPS sustained", "disk.iops: 32000")),
    Case("disk_iops", 3000.0, "g2-standard-12", (
        "≥ 3,000 IOPS sustained", UNKNOWN, "disk.iops")),
    Case("graphics", ("opengl", "vulkan"), G6),
    Case("graphics", ("opengl", "vulkan"), A100, (
        "OpenGL and Vulkan", "headless only", "purpose: another than rendering and vdi"),
        floor={"origin": "purpose rendering"}),
    Case("graphics", ("vulkan",), A100, ("Vulkan", "headless only", "gpu.graphics: drop it")),
    Case("graphics", ("vulkan",), G6, ("Vulkan", UNKNOWN, "gpu.graphics: drop it"),
        card={"opengl_vulkan": None}),
    Case("graphics", ("opengl",), G6, ("OpenGL", "none", "gpu.graphics: drop it"),
        card={"opengl_vulkan": "false"}),
    Case("graphics", ("opengl",), G6, ("OpenGL", "none on this slice", "gpu.graphics: drop it"),
        type={"graphics": False}),
    Case("software", "pytorch==2.12", G6),
    Case("software", "pytorch==2.15", "p3.2xlarge", (
        "pytorch==2.15: compute capability 7.5 8.0 8.6 9.0 10.0 12.0+PTX", "V100-16GB is 7.0",
        "software.framework: pytorch==2.14")),
]  # fmt: skip
# A model name or an exclusion is always known; so are counts, slices and architectures.
ALWAYS_KNOWN = {
    "gpu_model", "gpu_exclude", "gpu_count", "gpu_memory", "total_memory", "compute_capability",
    "consumer_card", "fractional", "architecture", "fabric", "placement", "software",
}  # fmt: skip


@pytest.mark.parametrize("case", CASES, ids=str)
def test_a_rule_says_what_it_needed_what_it_found_and_what_to_relax(case: Case) -> None:
    found = case.machine
    card = gpu(found.type.gpu_model)._replace(**case.card)
    reason = judged(floor(case.rule, case.value, **case.floor), found, card, burst=case.burst)
    assert reason == (Reason(case.rule, *case.says) if case.says else None)


@pytest.mark.parametrize("rule", RULES)
def test_no_rule_is_without_a_machine_that_meets_it_and_one_that_does_not(rule: str) -> None:
    answers = [case.says for case in CASES if case.rule == rule]
    assert None in answers
    assert any(says and UNKNOWN not in says[1] for says in answers) or rule == "int8"
    unknown = any(says and UNKNOWN in says[1] for says in answers)
    assert unknown != (rule in ALWAYS_KNOWN)


@pytest.mark.parametrize("rule", [*RULES, *NOT_IN_TABLE])
def test_every_rule_has_a_title_for_people(rule: str) -> None:
    assert title(rule)
    assert "_" not in title(rule)


@pytest.mark.parametrize(
    ("scaled", "bound"),
    [
        ({"per": "needed", "value": 0.5, "at_least": 4.0}, 12.0),
        ({"per": "needed", "value": 0.5, "at_least": 16.0}, 16.0),
        ({"per": "needed", "value": 4.0, "at_most": 32.0}, 32.0),
        ({"per": "gpu", "value": 12.0}, 12.0),
        ({"per": "installed", "value": 1.0}, 24.0),
        ({"value": 20.0}, 20.0),
    ],
    ids=lambda v: str(v),
)
def test_a_floor_scales_with_what_is_needed_installed_or_with_the_gpus(
    scaled: dict[str, Any], bound: float
) -> None:
    asked = floor("vcpu", scaled["value"], **{k: v for k, v in scaled.items() if k != "value"})
    just = machine(row("aws", G6)._replace(vcpus=int(bound)), memory_floor_gib=24.0)
    short = machine(row("aws", G6)._replace(vcpus=int(bound) - 1), memory_floor_gib=24.0)
    assert judged(asked, just) is None
    reason = judged(asked, short)
    assert reason is not None
    assert reason.needed == f"≥ {bound:g} vCPU"


@pytest.mark.parametrize(("gpus", "needed"), [(1, 24.0), (8, 192.0)])
def test_what_is_needed_and_installed_counts_all_gpus_of_the_machine(
    gpus: int, needed: float
) -> None:
    type_ = row("aws", "g6.48xlarge" if gpus == 8 else G6)
    assert machine(type_, memory_floor_gib=24.0).needed_gib == needed
    assert machine(type_).installed_gib == 24.0 * gpus


def a_size(gib: float, margin: float) -> Sizing:
    parts = (Part("weights", gib, "a test"), Part("margin", margin, "a test"))
    return Sizing(1, parts, 0.9, "a test", "good")


def test_a_sizings_needed_memory_leaves_its_margin_out() -> None:
    assert machine(row("aws", G6), sizing=a_size(10.0, 5.0)).needed_gib == 10.0


@pytest.mark.parametrize(
    ("per_gpu", "says"),
    [
        (0.9 * 22.0, None),
        (0.9 * 22.0 + 0.01, ("≥ 19.810 GiB per GPU", "19.800 GiB (90% of 22)")),
        (36.0, ("≥ 36 GiB per GPU", "19.8 GiB (90% of 22)")),
    ],
)
def test_a_model_fits_when_its_memory_is_within_the_limit_of_what_a_process_can_use(
    per_gpu: float, says: tuple[str, str] | None
) -> None:
    reason = model_fit(machine(row("aws", G6), sizing=a_size(per_gpu, 0.0)))
    assert (reason and (reason.needed, reason.has)) == says


def test_a_machine_without_a_model_has_nothing_to_fit() -> None:
    assert model_fit(machine(row("aws", G6F))) is None


@pytest.mark.parametrize(
    ("type_", "ssds", "speeds"),
    [
        (row("aws", H100), 0, (4000.0, 2000.0)),
        (row("aws", G5G), 0, (0.0, 148.5)),
        (row("gcp", "g2-standard-96"), 8, (4000.0, None)),
        (row("gcp", "g2-standard-96"), 0, (0.0, None)),
    ],
    ids=lambda v: getattr(v, "name", str(v)),
)
def test_disk_speed_is_500_mb_s_a_local_disk_and_what_the_machine_sustains_to_volumes(
    type_: Any, ssds: int, speeds: tuple[float, float | None]
) -> None:
    assert disk_speeds(machine(type_, ssds=ssds)) == speeds
