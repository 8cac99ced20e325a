"""The order of machines that fit: price, value or speed, and the tie-breakers in their order."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from tests.plan.world import Doctored, best, gpu, machine, planned, row

from gputier.catalog import InstanceType, load
from gputier.plan import Verdict, need_of
from gputier.plan.price import Cost
from gputier.plan.rank import bound_by, ranked, speed
from gputier.workload import Workload

TRAINED = {"parameters": "7B", "training": {"method": "qlora"}}


def accepted(
    type_: InstanceType,
    usd: float | None = 1.0,
    *,
    nodes: int = 1,
    availability: str = "confirmed",
) -> Verdict:
    """A verdict as if selection had accepted the row at this price for all machines."""
    each = None if usd is None else usd / nodes
    cost = Cost(each, each, 0.0, nodes, usd, usd, "listed", None, False, None)
    return Verdict(type_, machine(type_, nodes=nodes), "r", (), availability, "on_demand", cost, ())


def order(*verdicts: Verdict, **fields: Any) -> list[str]:
    """Names, best first; the answer must not depend on the order they came in."""
    need = need_of("job", Workload(**fields))
    names = [v.type.name for v in ranked(need, load(), verdicts)]
    assert names == [v.type.name for v in ranked(need, load(), reversed(verdicts))]
    return names


L4 = row("aws", "g6.xlarge")
BASE = L4._replace(memory_gib=16.0)


def test_rejected_rows_are_not_ranked() -> None:
    plan = planned({"gpu": {"count": 8}})
    assert plan.rejected
    assert {v.type.name for v in plan.order}.isdisjoint({v.type.name for v in plan.rejected})


def test_the_cheapest_total_comes_first() -> None:
    names = order(
        accepted(BASE._replace(name="b"), 2.0, nodes=4), accepted(BASE._replace(name="c"), 1.9)
    )
    assert names == ["c", "b"]


TIES: Mapping[str, tuple[Verdict, Verdict]] = {
    "newer GPU generation": (
        accepted(BASE._replace(name="z", gpu_model="L4", memory_gib=8.0)),
        accepted(BASE._replace(name="a", gpu_model="A10G", memory_gib=64.0)),
    ),
    "more host memory": (
        accepted(BASE._replace(name="z", memory_gib=32.0), nodes=2),
        accepted(BASE._replace(name="a", memory_gib=16.0), nodes=1),
    ),
    "fewer nodes": (
        accepted(BASE._replace(name="z"), nodes=1),
        accepted(BASE._replace(name="a"), nodes=2),
    ),
    "the name": (accepted(BASE._replace(name="a")), accepted(BASE._replace(name="z"))),
}


@pytest.mark.parametrize("tie", TIES)
def test_at_one_price_ties_are_broken_in_the_documented_order(tie: str) -> None:
    first, second = TIES[tie]
    assert order(second, first) == [first.type.name, second.type.name]


@pytest.mark.parametrize("prefer", ["price", "value", "speed"])
def test_deployable_confirmed_and_priced_come_before_everything_else(prefer: str) -> None:
    rows = {
        "1 confirmed": accepted(BASE._replace(name="1 confirmed"), 90.0),
        "2 confirmed, no price": accepted(BASE._replace(name="2 confirmed, no price"), None),
        "3 unconfirmed": accepted(
            BASE._replace(name="3 unconfirmed"), 0.5, availability="unconfirmed"
        ),
        "4 unconfirmed, no price": accepted(
            BASE._replace(name="4 unconfirmed, no price"), None, availability="unconfirmed"
        ),
        "5 plan only": accepted(BASE._replace(name="5 plan only", cloud="azure"), 0.1),
    }
    assert order(*rows.values(), prefer=prefer) == list(rows)


@pytest.mark.parametrize(
    ("fields", "unit"),
    [
        ({}, "GB/s of GPU memory bandwidth"),
        ({"purpose": "inference"}, "GB/s of GPU memory bandwidth"),
        ({"purpose": "development"}, "GB/s of GPU memory bandwidth"),
        ({"purpose": "vdi"}, "GB/s of GPU memory bandwidth"),
        ({"purpose": "hpc"}, "FP64 TFLOPS"),
        ({"purpose": "rendering"}, "FP32 TFLOPS"),
        ({"purpose": "training"}, "bf16 tensor TFLOPS"),
        ({"purpose": "fine-tuning"}, "bf16 tensor TFLOPS"),
        ({"model": TRAINED}, "bf16 tensor TFLOPS"),
        ({"model": {**TRAINED, "precision": "fp8"}}, "fp8 tensor TFLOPS"),
        ({"model": {**TRAINED, "precision": "nf4"}}, "bf16 tensor TFLOPS"),
        ({"model": {"name": "sdxl", "image": {"batch": 1}}}, "bf16 tensor TFLOPS"),
        ({"model": {"parameters": "7B", "precision": "int8"}}, "GB/s of GPU memory bandwidth"),
    ],
    ids=str,
)
def test_each_purpose_is_bound_by_something_and_the_plan_can_say_what(
    fields: dict[str, Any], unit: str
) -> None:
    assert bound_by(need_of("job", Workload(**fields))) == unit


UNITS: Mapping[str, tuple[dict[str, Any], str]] = {
    "bandwidth": ({"purpose": "inference"}, "memory_bandwidth_gb_s"),
    "FP64": ({"purpose": "hpc"}, "fp64_tflops"),
    "FP32": ({"purpose": "rendering"}, "fp32_tflops"),
    "bf16": ({"purpose": "training"}, "bf16_tflops"),
    "fp16": ({"model": {**TRAINED, "precision": "fp16"}}, "fp16_tflops"),
    "fp8": ({"model": {**TRAINED, "precision": "fp8"}}, "fp8_tflops"),
    "int8": ({"model": {**TRAINED, "precision": "int8"}}, "int8_tops"),
    "fp32 by TF32": ({"model": {**TRAINED, "precision": "fp32"}}, "tf32_tflops"),
    "fp4": ({"model": {**TRAINED, "precision": "nvfp4"}}, "fp4_tflops"),
}


@pytest.mark.parametrize("unit", UNITS)
@pytest.mark.parametrize(
    ("name", "gpus", "nodes"), [("p5.48xlarge", 8, 2), ("g6.xlarge", 1, 1), ("g6f.large", 0.125, 3)]
)
def test_speed_counts_the_unit_over_all_gpus_and_slices_of_all_machines(
    unit: str, name: str, gpus: float, nodes: int
) -> None:
    fields, column = UNITS[unit]
    found = accepted(row("aws", name), nodes=nodes)
    each = getattr(gpu(found.type.gpu_model), column)
    expected = None if each is None else pytest.approx(each * gpus * nodes)
    assert speed(need_of("job", Workload(**fields)), load(), found) == expected


@pytest.mark.parametrize("unit", UNITS)
@pytest.mark.parametrize("prefer", ["value", "speed"])
def test_value_and_speed_order_real_plans_by_that_unit(unit: str, prefer: str) -> None:
    fields, column = UNITS[unit]
    plan = planned({**fields, "prefer": prefer})
    confirmed = [v for v in plan.order if v.confirmed and v.total is not None]
    rates = [getattr(gpu(v.type.gpu_model), column) for v in confirmed]
    known = [(v, r * v.type.gpu_count) for v, r in zip(confirmed, rates, strict=True) if r]
    assert len(known) > 1
    keys = [r if prefer == "speed" else (v.total or 0) / r for v, r in known]
    assert keys == sorted(keys, reverse=prefer == "speed")
    first_unknown = next((i for i, rate in enumerate(rates) if not rate), len(rates))
    assert not any(rates[first_unknown:]), "machines without the figure come last"


def test_speed_takes_the_cheaper_of_two_equally_fast_machines() -> None:
    fast = accepted(BASE._replace(name="z"), 2.0)
    assert order(fast, accepted(BASE._replace(name="a"), 3.0), prefer="speed") == ["z", "a"]


def test_value_is_not_always_the_cheapest_nor_the_fastest() -> None:
    fields = {"purpose": "inference", "clouds": ["aws"], "gpu": {"memory": "24GB"}}
    cheapest, worth, fastest = (
        best(planned({**fields, "prefer": prefer})) for prefer in ("price", "value", "speed")
    )
    assert cheapest.type.gpu_model != worth.type.gpu_model
    assert (cheapest.total or 0) < (worth.total or 0) < (fastest.total or 0)


@pytest.mark.parametrize("unit", ["int8", "FP64"])
def test_a_newer_generation_that_lost_the_unit_is_not_ranked_by_its_generation(unit: str) -> None:
    """B300 lost INT8 and FP64 (0.15 POPS, 1.25 TFLOPS), B200 has them."""
    old, new = gpu("B200"), gpu("B300")
    column = UNITS[unit][1]
    assert new.generation > old.generation
    assert getattr(new, column) < getattr(old, column) / 20
    fields = {**UNITS[unit][0], "prefer": "speed"}
    b200, b300 = row("aws", "p6-b200.48xlarge"), row("aws", "p6-b300.48xlarge")
    assert order(accepted(b300), accepted(b200), **fields) == [b200.name, b300.name]


def test_b300_is_no_machine_for_double_precision() -> None:
    plan = planned({"purpose": "hpc"})
    (found,) = [v for v in plan.verdicts if v.type.name == "p6-b300.48xlarge"]
    assert "fp64" in [r.rule for r in found.reasons]


def test_a_tie_on_real_rows_goes_to_the_newer_generation() -> None:
    prices = {
        ("aws", name, "on_demand"): {"us-east-1": 1.0} for name in ("g4dn.4xlarge", "g6.4xlarge")
    }
    catalog = Doctored(only=[("aws", "g4dn.4xlarge"), ("aws", "g6.4xlarge")], prices=prices)
    assert [v.type.name for v in planned({}, catalog=catalog).order] == [
        "g6.4xlarge",
        "g4dn.4xlarge",
    ]
