"""Whatever a valid workload asks: a plan and never a traceback, a whole ledger, a choice that
meets every word of the declaration, the same answer twice, and no floor that makes things cheaper.

Whether a machine keeps every word is judged by second_opinion.py and not by the product's rules.
"""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import HealthCheck, assume, example, given, note, settings
from hypothesis import strategies as st
from tests.plan.second_opinion import breaches
from tests.plan.world import ask_of, chosen_without, declared, planned

from gputier.catalog import load
from gputier.errors import InvalidInput
from gputier.plan import StackPlan, WorkloadPlan, plan_declaration, plan_document
from gputier.plan.select import PRICE_DIGITS, select
from gputier.workload import Workload

Fields = dict[str, Any]

CLOUDS = ["aws", "gcp", "azure", "alibaba", "tencent"]
MODELS: list[Fields] = [
    {"name": "llama-3.1-8b", "context_tokens": 8192},
    {"name": "llama-3.1-70b", "precision": "int4-awq", "concurrent_sequences": 8,
     "context_tokens": 4096},
    {"parameters": "7B", "precision": "fp8", "context_tokens": 4096},
    {"parameters": "350M", "context_tokens": 2048},
    {"parameters": "30B", "active_parameters": "3B", "precision": "bf16", "context_tokens": 32768},
    {"parameters": "13B", "precision": "nf4", "context_tokens": 4096,
     "training": {"method": "qlora", "batch_per_gpu": 4, "gradient_checkpointing": "full"}},
    {"parameters": "3B", "context_tokens": 2048, "training": {"method": "full"}},
    {"name": "sdxl", "image": {"batch": 2}},
    {"measured_gib": 21.5},
    {"measured_gib": 70, "precision": "int8"},
]  # fmt: skip


def some(**fields: st.SearchStrategy[Any]) -> st.SearchStrategy[Fields]:
    """Any of the fields, each there or not; a map that is empty is left out by `tidy`."""
    return st.fixed_dictionaries({}, optional=fields)


gpus = some(
    models=st.sampled_from([["H100"], ["L4", "A10G"], ["A100-80GB"], ["T4"], ["B200", "H200"]]),
    exclude=st.sampled_from([["T4"], ["H200", "B300"], ["A10"]]),
    count=st.sampled_from([1, 2, 4, 8]),
    memory=st.sampled_from(["8GB", "24GB", "40GB", "48GB", "80GB", "141GB"]),
    total_memory=st.sampled_from(["160GB", "640GB"]),
    compute_capability=st.sampled_from([7.5, 8.0, 8.9, 9.0]),
    nvlink=st.sampled_from([True, False, "300GB/s", "900GB/s"]),
    fractional=st.sampled_from(["allow", "forbid"]),
    graphics=st.sampled_from([["opengl"], ["vulkan", "opengl"]]),
    video_encode=st.booleans(),
    video_decode=st.booleans(),
    vgpu=st.booleans(),
    mig=st.sampled_from([True, False, "1g.10gb"]),
)
disks = some(
    scratch=st.sampled_from(["100GB", "1TB", "6TB"]),
    data=st.sampled_from(["100GB", "4TB"]),
    throughput=st.sampled_from(["250MB/s", "1GB/s", "3GB/s"]),
    iops=st.sampled_from([3000, 30000]),
    persist=st.booleans(),
)
networks = some(
    bandwidth=st.sampled_from(["1Gbps", "10Gbps", "100Gbps"]),
    burst=st.booleans(),
    placement=st.sampled_from(["cluster", "spread", "none"]),
    egress=st.sampled_from(["nat", "public", "endpoints"]),
    vpc=st.just("vpc-0abc"),
)
ways = st.sampled_from([
    "on_demand", "spot", "flex_start", ["spot", "on_demand"],
    {"use": "spot", "on_demand_base": 1}, {"use": "on_demand", "max_usd_per_hour": 4},
    {"use": "on_demand", "instance_type": "g6.xlarge"}, {"use": "spot", "zone": "use1-az4"},
    {"use": "reservation", "instance_type": "p5.48xlarge", "zone": "use1-az4", "count": 4},
    {"use": "capacity_block", "instance_type": "p5.48xlarge", "zone": "use1-az6", "count": 2},
    {"use": "on_demand", "instance_type": "Standard_NC6s_v3"},
])  # fmt: skip
workloads = some(
    tier=st.sampled_from(["entry", "mid", "high-end"]),
    purpose=st.sampled_from(
        ["development", "inference", "fine-tuning", "training", "rendering", "hpc", "vdi"]
    ),
    model=st.sampled_from(MODELS),
    gpu=gpus,
    cpu=some(
        count=st.sampled_from([1, 8, 48]), architecture=st.sampled_from(["x86_64", "arm64", "any"])
    ),
    memory=st.sampled_from(["8GiB", "64GiB", "1TiB"]),
    nodes=st.sampled_from([1, 2, 4]),
    disk=disks,
    network=networks,
    fabric=st.sampled_from(["any", "efa", "gpudirect-tcpx", "roce", "none"]),
    clouds=st.lists(st.sampled_from(CLOUDS), min_size=1, max_size=3, unique=True),
    regions=st.sampled_from(
        [{"aws": ["us-east-1"]}, {"aws": ["us-gov-west-1"]}, {"gcp": ["europe-west4"]}]
    ),
    zones=st.sampled_from([["use1-az4"], ["us-east-1a"], ["us-central1-a", "usw2-az1"]]),
    capacity=ways,
    max_usd_per_hour=st.sampled_from([0.5, 3, 60]),
    prefer=st.sampled_from(["price", "value", "speed"]),
    hours_per_month=st.sampled_from([100, 744]),
    scale=some(min=st.sampled_from([0, 1, 3]), max=st.sampled_from([4, 6])),
    budget=st.just({"usd_per_month": 500, "alerts": [50]}),
)


def valid(fields: Fields) -> Workload:
    """The workload, or another example where the words contradict each other."""
    try:
        return Workload(**fields)
    except InvalidInput:
        assume(False)
        raise


def stack(fields: Fields, environment: str) -> StackPlan | None:
    """The plan; None where only the catalogue could tell that the words are wrong."""
    try:
        return plan_declaration(declared({"job": fields}, environment=environment), load())
    except InvalidInput:
        return None


SLOW = settings(max_examples=120, suppress_health_check=[HealthCheck.filter_too_much])


@SLOW
@given(workloads, st.sampled_from(["dev", "prod"]))
@example({"zones": ["use1-az4"], "clouds": ["aws", "gcp", "azure"]}, "dev")
@example({"tier": "mid", "purpose": "training", "model": MODELS[6]}, "prod")
@example({"capacity": {"use": "spot", "on_demand_base": 1}, "nodes": 2, "clouds": ["gcp"]}, "dev")
@example({"gpu": {"fractional": "allow"}, "purpose": "vdi", "clouds": CLOUDS}, "dev")
def test_every_valid_workload_gets_a_whole_plan_that_keeps_its_word(
    fields: Fields, environment: str
) -> None:
    workload = valid(fields)
    made = stack(fields, environment)
    if made is None:
        return
    (plan,) = made.workloads
    assert_whole(plan)
    for found in plan.order:
        broken = list(breaches(workload, environment, found))
        assert not broken, (found.type.name, broken)
    text = json.dumps(plan_document(made), allow_nan=False)
    assert text == json.dumps(plan_document(stack(fields, environment) or made))


def assert_whole(plan: WorkloadPlan) -> None:
    rows = load().rows(plan.market.clouds)
    assert [v.type.name for v in plan.verdicts] == [t.name for t in rows]
    assert {v.type for v in plan.order} | {v.type for v in plan.rejected} == set(rows)
    assert len(plan.order) + len(plan.rejected) == len(rows)
    assert (plan.chosen is None) == (not plan.order)
    if plan.chosen is None:
        assert plan.relaxations
        return
    assert plan.chosen.verdict is plan.order[0]
    money = [plan.chosen.usd_per_hour, plan.chosen.usd_per_month, *(v.total for v in plan.order)]
    assert all(m is None or m >= 0 for m in money)
    assert 0.0 not in [v.total for v in plan.order]


# ---- the same twice, and more never costs less ----------------------------------------------


@settings(max_examples=40, suppress_health_check=[HealthCheck.filter_too_much])
@given(workloads)
def test_what_was_planned_before_never_changes_a_plan(fields: Fields) -> None:
    workload = valid(fields)
    try:
        plan = planned(workload)
    except InvalidInput:
        return
    if len(workload.capacity) == 1:
        assert select(ask_of(workload)) == plan.verdicts


@settings(max_examples=25, suppress_health_check=[HealthCheck.filter_too_much])
@given(workloads)
def test_every_floors_cost_is_what_a_new_plan_without_it_saves(fields: Fields) -> None:
    plan = plan_or_none(fields)
    if plan is None or plan.chosen is None or plan.chosen.usd_per_hour is None:
        return
    told = {c.rule: c.usd_per_hour for c in plan.floor_costs}
    for rule in set(plan.need.floors) - {"price_ceiling", "gpu_exclude"}:
        again = chosen_without(plan.need.workload, rule).total
        saved = 0.0 if again is None else plan.chosen.usd_per_hour - again
        note(f"{rule} saves {saved}")
        assert told.get(rule, 0.0) == pytest.approx(saved if saved > 1e-9 else 0.0)


FLOORS: list[Fields] = [
    {"gpu": {"count": 2}}, {"gpu": {"count": 8}}, {"gpu": {"memory": "24GB"}},
    {"gpu": {"memory": "80GB"}}, {"gpu": {"total_memory": "160GB"}},
    {"gpu": {"compute_capability": 8.9}}, {"gpu": {"nvlink": True}},
    {"gpu": {"graphics": ["vulkan"]}}, {"gpu": {"video_encode": True}}, {"gpu": {"mig": True}},
    {"gpu": {"exclude": ["T4", "L4"]}}, {"gpu": {"models": ["A100", "H100", "L4"]}},
    {"cpu": {"count": 16}}, {"cpu": {"count": 90}}, {"memory": "100GiB"}, {"memory": "1TiB"},
    {"network": {"bandwidth": "20Gbps"}}, {"network": {"bandwidth": "100Gbps"}},
    {"network": {"placement": "cluster"}}, {"fabric": "any"}, {"fabric": "efa"},
    {"disk": {"scratch": "500GB"}}, {"disk": {"throughput": "1GB/s"}}, {"disk": {"iops": 20000}},
    {"max_usd_per_hour": 5}, {"regions": {"aws": ["us-west-2"], "gcp": ["us-west1"]}},
    {"clouds": ["gcp"]}, {"zones": ["use2-az1", "us-central1-b"]},
]  # fmt: skip
plain = some(
    model=st.sampled_from(MODELS), gpu=gpus, cpu=some(count=st.sampled_from([1, 8])),
    memory=st.sampled_from(["8GiB", "64GiB"]), nodes=st.sampled_from([1, 2]), disk=disks,
    network=networks, capacity=st.sampled_from(["on_demand", "spot"]),
)  # fmt: skip


@settings(max_examples=120, suppress_health_check=[HealthCheck.filter_too_much])
@given(plain, st.sampled_from(FLOORS))
def test_asking_for_more_never_costs_less(fields: Fields, floor: Fields) -> None:
    ((outer, value),) = floor.items()
    more: Fields = {**fields, outer: value}
    if outer in {"gpu", "cpu", "disk", "network"}:
        here: Fields = fields.get(outer, {})
        assume(not set(value) & set(here))  # a word replaces the one that stood
        more[outer] = {**here, **value}
    else:
        assume(outer not in fields)
    before, after = (plan_or_none(f) for f in (fields, more))
    assume(before is not None and after is not None)
    assert before is not None
    assert after is not None
    if after.chosen is None:
        return
    assert before.chosen is not None, "more is asked, and suddenly something fits"
    old, new = before.chosen.verdict, after.chosen.verdict
    note(f"{old.type.name} {old.total} -> {new.type.name} {new.total}")
    if old.availability == new.availability and old.total is not None and new.total is not None:
        # Regions whose prices differ behind the fourth decimal are a tie.
        assert new.total >= old.total - 10**-PRICE_DIGITS


def plan_or_none(fields: Fields) -> WorkloadPlan | None:
    workload = valid(fields)
    try:
        return planned(workload)
    except InvalidInput:
        return None
