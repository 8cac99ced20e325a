"""What is asked of a machine: who asks for it, what wins, and what is recorded."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from gputier.plan import Need, need_of, purposes, tiers
from gputier.plan.need import Override
from gputier.workload import Workload


def need(environment: str = "dev", **fields: Any) -> Need:
    return need_of("job", Workload(**fields), environment)


def values(found: Need) -> dict[str, object]:
    return {rule: floor.value for rule, floor in found.floors.items()}


DEFAULTS = {"architecture": "x86_64", "fractional": "forbid", "consumer_card": "forbid"}


def test_nothing_declared_asks_only_for_the_defaults() -> None:
    found = need()
    assert values(found) == DEFAULTS
    assert {f.origin for f in found.floors.values()} == {"default"}
    assert found.purpose == ""
    assert not found.overrides
    assert not found.leanings
    assert found.kept_free == 0


@pytest.mark.parametrize("name", list(tiers()))
def test_a_tier_brings_its_floors_and_leanings_under_its_name(name: str) -> None:
    found = need(tier=name)
    for floor in tiers()[name].require:
        assert found.floors[floor.rule] == floor
    assert found.leanings == tiers()[name].prefer


@pytest.mark.parametrize("name", list(purposes()))
def test_a_purpose_brings_its_floors_and_leanings_under_its_name(name: str) -> None:
    found = need(purpose=name)
    for floor in purposes()[name].require:
        assert found.floors[floor.rule] == floor
    assert found.leanings == purposes()[name].prefer


@pytest.mark.parametrize(
    ("tier", "purpose", "memory", "origin"),
    [
        ("entry", "rendering", 48, "purpose rendering"),
        ("entry", "vdi", 8, "tier entry"),
        ("mid", "hpc", 32, "purpose hpc"),
        ("mid", "vdi", 24, "tier mid"),
        ("high-end", "hpc", 80, "tier high-end"),
        ("high-end", "rendering", 80, "tier high-end"),
    ],
)
def test_of_tier_and_purpose_the_larger_floor_counts(
    tier: str, purpose: str, memory: float, origin: str
) -> None:
    floor = need(tier=tier, purpose=purpose).floors["gpu_memory"]
    assert (floor.number, floor.origin) == (memory, origin)


def test_leanings_of_tier_and_purpose_both_count() -> None:
    found = need(tier="mid", purpose="training")
    assert [x.origin for x in found.leanings] == ["tier mid", "purpose training"]


@pytest.mark.parametrize(("tier", "free"), [("entry", 0.0), ("mid", 0.3), ("high-end", 0.3)])
def test_what_the_tier_keeps_free_reaches_the_sizing(tier: str, free: float) -> None:
    model = {"name": "llama-3.1-8b", "precision": "bf16", "context_tokens": 4096}
    found = need(tier=tier, model=model)
    assert found.kept_free == free
    sizing, plain = found.sizing(1), need(model=model).sizing(1)
    assert sizing is not None
    assert plain is not None
    assert sizing.needed_gib == pytest.approx(plain.needed_gib)
    assert (sizing.per_gpu_gib > plain.per_gpu_gib) == bool(free)


# One own word per floor: (fields, rule, value). The path is what the plan calls the floor's why.
OWN: Mapping[str, tuple[dict[str, Any], str, object]] = {
    "gpu.models": ({"gpu": {"models": ["L4", "A10G"]}}, "gpu_model", ("L4", "A10G")),
    "gpu.exclude": ({"gpu": {"exclude": ["T4"]}}, "gpu_exclude", ("T4",)),
    "gpu.count": ({"gpu": {"count": 4}}, "gpu_count", 4),
    "gpu.memory": ({"gpu": {"memory": "40GB"}}, "gpu_memory", 40),
    "gpu.total_memory": ({"gpu": {"total_memory": "320GB"}}, "total_memory", 320),
    "gpu.compute_capability": ({"gpu": {"compute_capability": 8.9}}, "compute_capability", 8.9),
    "gpu.nvlink": ({"gpu": {"nvlink": "900GB/s"}}, "nvlink", 900),
    "gpu.graphics": ({"gpu": {"graphics": ["vulkan"]}}, "graphics", ("vulkan",)),
    "gpu.video_encode": ({"gpu": {"video_encode": True}}, "video_encode", True),
    "gpu.video_decode": ({"gpu": {"video_decode": True}}, "video_decode", True),
    "gpu.vgpu": ({"gpu": {"vgpu": True}}, "vgpu", True),
    "gpu.mig": ({"gpu": {"mig": "1g.10gb"}}, "mig", "1g.10gb"),
    "cpu.count": ({"cpu": {"count": 16}}, "vcpu", 16),
    "memory": ({"memory": "64GiB"}, "host_memory", 64),
    "network.bandwidth": ({"network": {"bandwidth": "25Gbps"}}, "network", 25),
    "network.placement": ({"network": {"placement": "spread"}}, "placement", "spread"),
    "fabric": ({"fabric": "efa"}, "fabric", "efa"),
    "disk.scratch": ({"disk": {"scratch": "2TiB"}}, "scratch", 2048),
    "disk.throughput": ({"disk": {"throughput": "2GB/s"}}, "disk_throughput", 2000),
    "disk.iops": ({"disk": {"iops": 20_000}}, "disk_iops", 20_000),
    "max_usd_per_hour": ({"max_usd_per_hour": "$2.50/h"}, "price_ceiling", 2.5),
    "model.precision": (
        {"model": {"parameters": "7B", "precision": "fp8"}}, "precision", "fp8",
    ),
}  # fmt: skip


@pytest.mark.parametrize("path", OWN)
def test_an_own_word_becomes_a_floor_that_names_its_field(path: str) -> None:
    fields, rule, value = OWN[path]
    floor = need(**fields).floors[rule]
    assert floor.value == value
    assert (floor.origin, floor.why) == ("workload", path)


@pytest.mark.parametrize("path", OWN)
def test_an_own_word_alone_overrides_nothing(path: str) -> None:
    fields = {"purpose": "development", **OWN[path][0]}
    assert need(**fields).overrides == ()


# Own words below what the tier or purpose asks: (tier and purpose, fields, override).
LOWERED: Mapping[str, tuple[dict[str, str], dict[str, Any], Override]] = {
    "memory per GPU": (
        {"tier": "mid"}, {"gpu": {"memory": "16GB"}},
        Override("gpu_memory", "tier mid", 24, 16),
    ),
    "memory below the purpose's": (
        {"tier": "entry", "purpose": "rendering"}, {"gpu": {"memory": "24GB"}},
        Override("gpu_memory", "purpose rendering", 48, 24),
    ),
    "vCPU": (
        {"tier": "high-end"}, {"cpu": {"count": 48}},
        Override("vcpu", "tier high-end", 12, 48, "gpu"),
    ),
    "host memory": (
        {"tier": "high-end"}, {"memory": "256GiB"},
        Override("host_memory", "tier high-end", 1, 256, "installed"),
    ),
    "one GPU": (
        {"tier": "high-end"}, {"gpu": {"count": 1}},
        Override("gpu_count", "tier high-end", 2, 1),
    ),
    "slower NVLink": (
        {"tier": "high-end"}, {"gpu": {"nvlink": "300GB/s"}},
        Override("nvlink", "tier high-end", 600, 300),
    ),
    "any NVLink": (
        {"tier": "high-end"}, {"gpu": {"nvlink": True}},
        Override("nvlink", "tier high-end", 600, True),
    ),
    "no NVLink": (
        {"tier": "high-end"}, {"gpu": {"nvlink": False}},
        Override("nvlink", "tier high-end", 600, None),
    ),
    "network": (
        {"tier": "mid"}, {"network": {"bandwidth": "5Gbps"}},
        Override("network", "tier mid", 10, 5),
    ),
    "disk": (
        {"tier": "mid"}, {"disk": {"throughput": "250MB/s"}},
        Override("disk_throughput", "tier mid", 500, 250),
    ),
    "no fabric": (
        {"tier": "high-end"}, {"fabric": "none"},
        Override("fabric", "tier high-end", "rdma", None),
    ),
    "any fabric": (
        {"tier": "high-end"}, {"fabric": "any"},
        Override("fabric", "tier high-end", "rdma", "any"),
    ),
    "no placement": (
        {"tier": "high-end"}, {"network": {"placement": "none"}},
        Override("placement", "tier high-end", "cluster", None),
    ),
    "spread placement": (
        {"tier": "high-end"}, {"network": {"placement": "spread"}},
        Override("placement", "tier high-end", "cluster", "spread"),
    ),
    "one graphics interface": (
        {"purpose": "rendering"}, {"gpu": {"graphics": ["vulkan"]}},
        Override("graphics", "purpose rendering", ("opengl", "vulkan"), ("vulkan",)),
    ),
    "no encoder": (
        {"purpose": "vdi"}, {"gpu": {"video_encode": False}},
        Override("video_encode", "purpose vdi", True, None),
    ),
    "no vGPU": (
        {"purpose": "vdi"}, {"gpu": {"vgpu": False}}, Override("vgpu", "purpose vdi", True, None),
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", LOWERED)
def test_an_own_word_that_lowers_a_floor_wins_and_is_recorded(case: str) -> None:
    base, fields, override = LOWERED[case]
    found = need(**base, **fields)
    assert found.overrides == (override,)
    if override.now is None:
        assert override.rule not in found.floors
    else:
        assert found.floors[override.rule].value == override.now
        assert found.floors[override.rule].origin == "workload"


# Own words that ask for as much or more: nothing of the tier is given up.
RAISED: Mapping[str, tuple[dict[str, str], dict[str, Any], str]] = {
    "more memory": ({"tier": "mid"}, {"gpu": {"memory": "48GB"}}, "gpu_memory"),
    "the same memory": ({"tier": "mid"}, {"gpu": {"memory": "24GB"}}, "gpu_memory"),
    "more GPUs": ({"tier": "high-end"}, {"gpu": {"count": 8}}, "gpu_count"),
    "faster NVLink": ({"tier": "high-end"}, {"gpu": {"nvlink": "900GB/s"}}, "nvlink"),
    "faster network": ({"tier": "mid"}, {"network": {"bandwidth": "100Gbps"}}, "network"),
    "faster disk": ({"tier": "mid"}, {"disk": {"throughput": "1GB/s"}}, "disk_throughput"),
    "more scratch": ({"tier": "high-end"}, {"disk": {"scratch": "1TB"}}, "scratch"),
    "the same placement": (
        {"tier": "high-end"}, {"network": {"placement": "cluster"}}, "placement",
    ),
    "the same encoder": ({"purpose": "vdi"}, {"gpu": {"video_encode": True}}, "video_encode"),
    "the same graphics": (
        {"purpose": "rendering"}, {"gpu": {"graphics": ["opengl", "vulkan"]}}, "graphics",
    ),
    "the same graphics in another order": (
        {"purpose": "rendering"}, {"gpu": {"graphics": ["vulkan", "opengl"]}}, "graphics",
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", RAISED)
def test_an_own_word_that_asks_for_no_less_is_not_called_an_override(case: str) -> None:
    base, fields, rule = RAISED[case]
    found = need(**base, **fields)
    assert found.floors[rule].origin == "workload"
    assert found.overrides == ()


@pytest.mark.parametrize(
    ("architecture", "expected"),
    [
        ({}, ("x86_64", "default")),
        ({"architecture": "x86_64"}, ("x86_64", "workload")),
        ({"architecture": "arm64"}, ("arm64", "workload")),
        ({"architecture": "any"}, None),
    ],
)
def test_x86_64_is_asked_for_unless_another_or_any_is_declared(
    architecture: dict[str, str], expected: tuple[str, str] | None
) -> None:
    floor = need(cpu=architecture).floors.get("architecture")
    assert (floor and (floor.value, floor.origin)) == expected


@pytest.mark.parametrize(
    ("purpose", "declared", "refused"),
    [
        ("inference", None, True),
        ("development", None, True),
        ("vdi", None, False),
        ("vdi", "forbid", True),
        ("vdi", "allow", False),
        ("inference", "allow", False),
    ],
)
def test_slices_are_refused_by_default_except_for_desktops(
    purpose: str, declared: str | None, refused: bool
) -> None:
    gpu = {"fractional": declared} if declared else {}
    assert ("fractional" in need(purpose=purpose, gpu=gpu).floors) == refused


@pytest.mark.parametrize(
    ("environment", "purpose", "origin"),
    [
        ("dev", "development", None),
        ("staging", "development", None),
        ("prod", "development", "environment prod"),
        ("production", "development", "environment production"),
        ("dev", "inference", "default"),
        ("dev", None, "default"),
        ("prod", "inference", "environment prod"),
    ],
)
def test_consumer_cards_are_for_development_outside_prod_only(
    environment: str, purpose: str | None, origin: str | None
) -> None:
    floor = need(environment, purpose=purpose).floors.get("consumer_card")
    assert (floor and floor.origin) == origin


@pytest.mark.parametrize(
    ("model", "purpose"),
    [
        ({"parameters": "7B"}, "inference"),
        ({"parameters": "7B", "training": {"method": "qlora"}}, "fine-tuning"),
    ],
)
def test_a_model_implies_a_purpose_and_its_floors(model: dict[str, Any], purpose: str) -> None:
    found = need(model=model)
    assert found.purpose == purpose
    assert all(f.rule in found.floors for f in purposes()[purpose].require)


@pytest.mark.parametrize("rule", ["gpu_memory", "kept_free", "architecture", "price_ceiling"])
def test_without_drops_one_floor_and_leaves_the_original_alone(rule: str) -> None:
    before = need(tier="mid", max_usd_per_hour=3)
    names = list(before.floors)
    after = before.without(rule)
    assert list(after.floors) == [name for name in names if name != rule]
    assert list(before.floors) == names
    assert after.workload is before.workload


def test_without_what_is_kept_free_sizing_asks_for_less() -> None:
    found = need(tier="mid", model={"measured_gib": 20})
    before, after = found.sizing(1), found.without("kept_free").sizing(1)
    assert before is not None
    assert after is not None
    assert after.per_gpu_gib < before.per_gpu_gib
    assert after.needed_gib == pytest.approx(before.needed_gib)


def test_without_a_model_the_memory_floor_stands_in_for_what_is_needed() -> None:
    assert need(tier="mid").memory_floor_gib == 24
    assert need().memory_floor_gib == 0
    assert need().sizing(1) is None


@pytest.mark.parametrize(
    ("fields", "spreads"),
    [
        ({"purpose": "training"}, True),
        ({"purpose": "training", "nodes": 2}, False),
        ({"purpose": "training", "scale": {"min": 1, "max": 4}}, False),
        ({"purpose": "fine-tuning"}, False),
        ({"purpose": "inference"}, False),
        ({}, False),
    ],
)
def test_only_training_without_a_declared_number_takes_as_many_machines_as_it_needs(
    fields: dict[str, Any], spreads: bool
) -> None:
    assert need(**fields).spreads == spreads


TRAINED = {"name": "llama-3.1-8b", "context_tokens": 2048}


@pytest.mark.parametrize(
    ("model", "floor"),
    [
        ({**TRAINED}, None),
        ({**TRAINED, "training": {"method": "full"}}, ("bf16", "default")),
        ({**TRAINED, "training": {"method": "lora"}}, ("bf16", "default")),
        ({**TRAINED, "training": {"method": "qlora"}}, None),
        ({**TRAINED, "precision": "fp16", "training": {"method": "full"}}, ("fp16", "workload")),
        ({"name": "deepseek-v3", "context_tokens": 2048}, ("fp8", "model")),
        ({"measured_gib": 20}, None),
    ],
    ids=str,
)
def test_a_silent_precision_asks_only_for_what_cannot_run_in_another(
    model: dict[str, Any], floor: tuple[str, str] | None
) -> None:
    found = need(model=model).floors.get("precision")
    assert (found and (found.value, found.origin)) == floor
