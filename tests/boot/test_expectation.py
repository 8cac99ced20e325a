"""The expectation rendered from a plan is one that the validator reads whole, without a word."""

from __future__ import annotations

import json
from typing import Any

import pytest

from gputier.boot import expectation, expectation_text
from gputier.boot.expectation import nvlinks
from gputier.catalog import load
from gputier.node import cards, expect
from gputier.plan import WorkloadPlan, plan_workload
from gputier.workload import Workload


def planned(environment: str = "dev", **fields: Any) -> WorkloadPlan:
    return plan_workload("job", Workload(**fields), load(), environment)


def rendered(plan: WorkloadPlan) -> dict[str, Any]:
    return dict(expectation(plan, load()))


def text(plan: WorkloadPlan) -> str:
    return expectation_text(plan, load())


CASES: dict[str, dict[str, Any]] = {
    "one L4": {"tier": "entry", "gpu": {"models": ["L4"]}, "clouds": ["aws"]},
    "an N1 with a T4": {"gpu": {"models": ["T4"]}, "clouds": ["gcp"], "cpu": {"count": 4}},
    "four machines with EFA": {"tier": "high-end", "purpose": "training", "nodes": 4,
                               "gpu": {"models": ["A100-80GB"], "count": 8}, "clouds": ["aws"]},
    "a slice": {"purpose": "vdi", "clouds": ["aws"], "gpu": {"memory": "12GB", "models": ["L4"]}},
    "MIG": {"gpu": {"mig": "1g.10gb", "count": 8}, "clouds": ["aws"]},
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_the_validator_reads_what_the_plan_renders_without_a_warning(name: str) -> None:
    found = expect.read(text(planned(**CASES[name])))
    assert not found.warnings


def test_a_fleet_with_a_fabric_expects_its_interfaces_and_its_disks() -> None:
    found = dict(rendered(planned(**CASES["four machines with EFA"])))
    assert found["gpu"] == {"model": "A100-80GB", "count": 8, "nvlinks": 12}
    assert found["cuda"] == {"min": "11.0"}
    assert found["fabric"] == {"kind": "efa", "interfaces": 4}
    assert found["scratch"] == {"count": 8, "gib": 7450.6, "mount": "/scratch"}
    assert found["host"] == {"vcpus": 96, "memory_gib": 1152}
    assert found["depth"] == "burn-in"


def test_a_lone_machine_expects_no_fabric() -> None:
    alone: dict[str, Any] = {**CASES["four machines with EFA"], "nodes": 1}
    assert "fabric" not in rendered(planned("dev", **alone))


def test_only_a_measured_memory_is_expected() -> None:
    assert dict(rendered(planned(**CASES["one L4"])))["gpu"] == {
        "model": "L4", "count": 1, "memory_mib": 22888,
    }  # fmt: skip


@pytest.mark.parametrize(("environment", "gate"), [("dev", "report"), ("prod", "enforce")])
def test_the_gate_is_enforced_in_prod_and_reports_elsewhere(environment: str, gate: str) -> None:
    assert rendered(planned(environment, **CASES["one L4"]))["gate"] == gate


def test_the_text_is_the_same_for_the_same_plan() -> None:
    first, second = (text(planned(**CASES["one L4"])) for _ in range(2))
    assert first == second
    assert json.loads(first)["machine"]["instance_type"].startswith("g6")


def test_nothing_is_expected_of_a_machine_that_was_not_chosen() -> None:
    nothing = planned(gpu={"memory": "80GB"}, max_usd_per_hour=0.1)
    with pytest.raises(ValueError, match="no machine was chosen for job"):
        rendered(nothing)


@pytest.mark.parametrize(
    ("model", "links"),
    [
        ("H100-80GB", 18),
        ("H200-141GB", 18),
        ("B200", 18),
        ("A100-40GB", 12),
        ("L4", None),
        ("V100-16GB", None),
    ],
)
def test_the_links_behind_a_switch_are_expected_as_the_validators_table_has_them(
    model: str, links: int | None
) -> None:
    catalog = load()
    types = [
        t
        for t in catalog.types.values()
        if t.gpu_model == model and t.gpu_devices == 8 and t.cloud != "azure"
    ]
    assert types
    assert {nvlinks(catalog.gpus[model], one) for one in types} == {links}
    card = cards.by_text(model)
    assert card
    assert links in (None, card.nvlinks)


def test_a_card_that_drivers_leave_behind_has_a_ceiling() -> None:
    fields: dict[str, Any] = {"gpu": {"models": ["V100-16GB"]}, "clouds": ["gcp"]}
    found = rendered(planned(**fields))
    assert found["driver"] == {"min": "396", "max": "580"}


def test_the_framework_is_expected_with_the_cuda_and_the_index_it_was_planned_for() -> None:
    software: dict[str, Any] = {"software": {"framework": "pytorch==2.12"}}
    found = rendered(planned(**CASES["one L4"] | software))
    assert found["framework"] == {
        "name": "pytorch", "version": "2.12", "cuda": "13.0",
        "index": "https://download.pytorch.org/whl/cu130",
    }  # fmt: skip
    assert found["driver"] == {"min": "580"}
    read = expect.read(text(planned(**CASES["one L4"] | software)))
    assert read.text("framework.name") == "torch"
    assert not read.warnings


def test_mig_is_expected_with_as_many_instances_as_the_card_holds() -> None:
    for model, count in (("A100-40GB", 4), ("A100-80GB", 7)):
        gpu = {"mig": "1g.10gb", "count": 8, "models": [model]}
        found = rendered(planned(gpu=gpu, clouds=["aws"]))
        assert found["gpu"]["mig"] == {"profile": "1g.10gb", "count": count}


def test_a_declared_gate_and_depth_are_expected() -> None:
    declared: dict[str, Any] = {"validation": {"gate": "off", "depth": "standard"}}
    found = rendered(planned("prod", **CASES["one L4"] | declared))
    assert (found["gate"], found["depth"]) == ("off", "standard")
