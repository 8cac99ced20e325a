"""Every floor and leaning has words, and the words carry its figure."""

from __future__ import annotations

import json

import pytest
from tests.cli.world import Run

from gputier.cli.floors import floor_text
from gputier.plan import RULES, Floor, purposes, tiers
from gputier.plan.rules import NOT_IN_TABLE

#: Floors by rule with what people read; `market` rules are verdicts and never floors.
WORDS = {
    "gpu_model": (("L4", "A10G"), "L4 or A10G"),
    "gpu_exclude": (("T4",), "not T4"),
    "gpu_count": (8.0, "≥ 8 GPUs"),
    "gpu_memory": (24.0, "≥ 24 GB per GPU"),
    "total_memory": (640.0, "≥ 640 GB of GPU memory"),
    "compute_capability": (8.9, "compute capability ≥ 8.9"),
    "precision": ("fp8", "fp8 arithmetic"),
    "int8": (True, "INT8 tensor cores"),
    "fp64": (0.45, "FP64 ≥ 0.45 × FP32"),
    "nvlink": (600.0, "NVLink ≥ 600 GB/s per GPU"),
    "ecc": (True, "ECC memory"),
    "graphics": (("opengl", "vulkan"), "OpenGL and Vulkan"),
    "video_encode": (True, "hardware encoding"),
    "video_decode": (True, "hardware decoding"),
    "vgpu": (True, "vGPU or a provider's slice"),
    "mig": ("1g.10gb", "MIG profile 1g.10gb"),
    "consumer_card": ("forbid", "no consumer card"),
    "fractional": ("forbid", "whole GPUs"),
    "vcpu": (16.0, "≥ 16 vCPU"),
    "host_memory": (64.0, "≥ 64 GiB of host memory"),
    "architecture": ("arm64", "arm64"),
    "network": (10.0, "≥ 10 Gbps sustained"),
    "fabric": ("rdma", "RDMA between machines"),
    "placement": ("cluster", "cluster placement"),
    "scratch": (600.0, "≥ 600 GiB of local NVMe"),
    "disk_throughput": (500.0, "≥ 500 MB/s from disk"),
    "disk_iops": (20000.0, "≥ 20,000 IOPS"),
    "kept_free": (0.3, "30 % of the card kept free"),
    "price_ceiling": (3.0, "≤ $3.00/h a machine"),
    "software": ("pytorch==2.9", "runs pytorch==2.9"),
}


@pytest.mark.parametrize(("rule", "expected"), WORDS.items(), ids=WORDS)
def test_a_floor_reads_with_its_figure_and_unit(
    rule: str, expected: tuple[float | bool | str | tuple[str, ...], str]
) -> None:
    assert floor_text(Floor(rule, expected[0], "workload")) == expected[1]


def test_every_rule_that_can_be_a_floor_is_above() -> None:
    never_floors = {
        "model_fit", "lifecycle", "availability", "capacity", "spot_saving", "price_age", "nodes",
    }  # fmt: skip
    assert set(RULES) | (set(NOT_IN_TABLE) - never_floors) == set(WORDS)


SCALED = {
    Floor("vcpu", 0.5, "", per="needed", at_least=8): "≥ 0.5 vCPU per GiB needed, at least 8",
    Floor("vcpu", 12, "", per="gpu"): "≥ 12 vCPU per GPU",
    Floor("host_memory", 4, "", per="needed", at_most=32): (
        "host memory ≥ 4 × GPU memory needed, up to 32 GiB"
    ),
    Floor("host_memory", 1, "", per="installed"): "host memory ≥ GPU memory installed",
    Floor("host_memory", 64, "", per="gpu"): "host memory ≥ 64 GiB per GPU",
    Floor("fabric", "any", ""): "a fabric between machines",
    Floor("fabric", "efa", "", when_nodes=True): "efa, with several machines",
    Floor("nvlink", True, ""): "NVLink",
    Floor("mig", True, ""): "MIG",
    Floor("scratch", 1, ""): "local NVMe",
    Floor("gpu_count", 1, ""): "≥ 1 GPU",
}


@pytest.mark.parametrize(("floor", "words"), SCALED.items(), ids=SCALED.values())
def test_a_floor_that_is_scaled_says_by_what(floor: Floor, words: str) -> None:
    assert floor_text(floor) == words


def test_every_floor_and_leaning_of_tiers_toml_is_printed(run: Run) -> None:
    text = " ".join(run("tiers", columns=160).out.split())
    document = json.loads(run("tiers", "--json").out)
    for group in (*tiers().values(), *purposes().values()):
        for floor in (*group.require, *group.prefer):
            assert floor_text(floor) in text
            assert floor.why in text
    names = [tier["name"] for tier in (*document["tiers"], *document["purposes"])]
    assert names == [*tiers(), *purposes()]
