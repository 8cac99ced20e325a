"""What each floor costs, the nearest misses, the way out when nothing fits, and what would be
cheaper: each claim is tried by planning again from scratch."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from tests.plan.world import (
    Doctored,
    ask_of,
    best,
    chosen_without,
    held,
    judge,
    of,
    planned,
    row,
    rules_of,
)

from gputier.catalog import load
from gputier.plan import WorkloadPlan
from gputier.plan.select import Ask, select
from gputier.workload import hours_per_month

EVERYWHERE = ["aws", "gcp", "azure", "alibaba", "tencent"]
LLAMA = {"name": "llama-3.1-8b", "precision": "bf16", "context_tokens": 8192}
BIG = {"name": "llama-3.1-70b", "context_tokens": 4096,
       "training": {"method": "full", "gradient_checkpointing": "full"}}  # fmt: skip
NIGHTS = [{"start": "0 20 * * mon-fri", "stop": "0 6 * * tue-sat", "timezone": "Europe/Berlin"}]

WORKLOADS: dict[str, dict[str, Any]] = {
    "entry": {"tier": "entry", "purpose": "inference"},
    "entry chat": {"tier": "entry", "model": LLAMA},
    "entry chat on gcp": {"tier": "entry", "model": LLAMA, "clouds": ["gcp"]},
    "entry rendering on gcp, unconfirmed": {
        "tier": "entry", "purpose": "rendering", "clouds": ["gcp"]},
    "entry hpc on gcp": {"tier": "entry", "purpose": "hpc", "clouds": ["gcp"]},
    "mid": {"tier": "mid", "purpose": "fine-tuning"},
    "mid on aws": {"tier": "mid", "purpose": "fine-tuning", "clouds": ["aws"]},
    "mid on spot": {"tier": "mid", "purpose": "fine-tuning", "capacity": "spot"},
    "mid on a schedule": {"tier": "mid", "schedule": NIGHTS},
    "mid with a model": {"tier": "mid", "model": LLAMA},
    "mid on azure, plan only": {"tier": "mid", "clouds": ["azure"]},
    "mid under a ceiling": {"tier": "mid", "max_usd_per_hour": 2},
    "high-end": {"tier": "high-end", "purpose": "training"},
    "high-end on four nodes": {"tier": "high-end", "purpose": "training", "nodes": 4},
    "high-end on gcp": {"tier": "high-end", "purpose": "training", "nodes": 2, "clouds": ["gcp"]},
    "high-end training of 70B": {"tier": "high-end", "purpose": "training", "model": BIG},
    "training of 70B": {"purpose": "training", "model": BIG},
    "mid training of 70B": {"tier": "mid", "purpose": "training", "model": BIG},
    "rendering": {"purpose": "rendering"},
    "hpc": {"purpose": "hpc"},
    "desktops": {"purpose": "vdi", "model": {"seats": 4}},
    "fast": {"tier": "mid", "prefer": "speed"},
    "worth": {"tier": "mid", "prefer": "value"},
    "T4 with scratch": {"gpu": {"models": ["T4"]}, "disk": {"scratch": "1TB"}},
    "scratch on gcp": {
        "clouds": ["gcp"], "disk": {"scratch": "2TB", "throughput": "2GB/s"},
        "gpu": {"models": ["T4"]}, "cpu": {"count": 12}, "memory": "80GiB"},
    "own words": {
        "gpu": {"memory": "40GB", "count": 2, "exclude": ["A100"]}, "cpu": {"count": 32},
        "memory": "200GiB", "network": {"bandwidth": "25Gbps"}, "disk": {"throughput": "1GB/s"}},
    "iops": {"disk": {"iops": 20000}},
    "H100 by name": {"gpu": {"models": ["H100"], "count": 8}, "nodes": 2, "fabric": "any"},
    "arm": {"cpu": {"architecture": "arm64"}},
    "a reservation": {"capacity": held("p5.48xlarge", "use1-az4", 2), "tier": "high-end"},
    "spot, else on demand": {"capacity": ["spot", "on_demand"], "tier": "mid"},
    "every floor at once": {
        "gpu": {"count": 2, "memory": "40GB", "compute_capability": 8.9, "total_memory": "300GB"},
        "cpu": {"count": 100}, "memory": "500GiB", "network": {"bandwidth": "60Gbps"},
        "disk": {"scratch": "3TB", "throughput": "2GB/s"}},
}  # fmt: skip


@pytest.mark.parametrize("name", WORKLOADS)
def test_a_floor_costs_exactly_what_planning_without_it_saves(name: str) -> None:
    plan = planned(WORKLOADS[name])
    total = best(plan).total
    assert total is not None
    told = {c.rule: c for c in plan.floor_costs}
    for rule in plan.need.floors:
        if rule in {"price_ceiling", "gpu_exclude"}:
            continue
        again = chosen_without(WORKLOADS[name], rule)
        saved = total - again.total if again.total is not None else 0.0
        if saved > 1e-9:
            assert rule in told, f"{rule} binds by ${saved:.4f}/h and is not told"
            assert told[rule].usd_per_hour == pytest.approx(saved), rule
            assert told[rule].instead.type.name == again.type.name
            assert told[rule].instead.total == pytest.approx(again.total)
        else:
            assert rule not in told, f"{rule} is said to cost {told.get(rule)}"


@pytest.mark.parametrize("name", ["mid on a schedule", "mid on aws"])
def test_a_floors_monthly_cost_counts_the_hours_that_run(name: str) -> None:
    plan = planned(WORKLOADS[name])
    schedule = plan.need.workload.schedule
    hours = hours_per_month(schedule) if schedule else 730
    assert plan.floor_costs
    for cost in plan.floor_costs:
        assert cost.usd_per_month == pytest.approx(cost.usd_per_hour * hours)


def test_floors_are_told_dearest_first_with_who_asks_for_them() -> None:
    plan = planned(WORKLOADS["own words"])
    money = [c.usd_per_hour for c in plan.floor_costs]
    assert money == sorted(money, reverse=True)
    assert len(money) >= 2
    assert {c.origin for c in plan.floor_costs} <= {"workload", "default"}


def test_some_of_these_workloads_have_many_binding_floors_and_some_none() -> None:
    counts = [len(planned(fields).floor_costs) for fields in WORKLOADS.values()]
    assert min(counts) == 0
    assert max(counts) >= 3
    assert sum(counts) >= 40


def test_a_floor_may_cost_the_cheaper_way_of_buying() -> None:
    large = row("aws", "g6.8xlarge")._replace(spot=False)
    catalog = Doctored(types=[large], only=[("aws", "g6.8xlarge"), ("aws", "g6.xlarge")])
    plan = planned({"capacity": ["spot", "on_demand"], "cpu": {"count": 32}}, catalog=catalog)
    assert (plan.choice.use, best(plan).type.name) == ("on_demand", "g6.8xlarge")
    (cost,) = plan.floor_costs
    without = best(planned({"capacity": ["spot", "on_demand"]}, catalog=catalog))
    assert (without.use, without.type.name) == ("spot", "g6.xlarge")
    assert cost.instead == without
    assert cost.usd_per_hour == pytest.approx((best(plan).total or 0) - (without.total or 0))


def test_a_ceiling_that_only_attached_disks_pass_is_lifted_with_the_scratch_floor() -> None:
    rows = [("aws", "g6.8xlarge"), ("gcp", "g2-standard-24")]
    prices = {
        ("aws", "g6.8xlarge", "on_demand"): {"us-east-1": 2.02},
        ("gcp", "g2-standard-24", "on_demand"): {"us-central1": 2.0},
    }
    catalog = Doctored(only=rows, prices=prices)
    plan = planned({"disk": {"scratch": "700GB"}, "max_usd_per_hour": 2.05}, catalog=catalog)
    assert best(plan).type.name == "g6.8xlarge"
    assert rules_of(of(plan, "gcp", "g2-standard-24")) == ["price_ceiling"]
    (cost,) = plan.floor_costs
    assert (cost.rule, cost.instead.type.name) == ("scratch", "g2-standard-24")
    assert cost.usd_per_hour == pytest.approx(0.02)


def test_nothing_that_fits_has_no_floor_costs() -> None:
    assert planned({"gpu": {"count": 64}}).floor_costs == ()


# ---- nearest misses ------------------------------------------------------------------------


@pytest.mark.parametrize("name", WORKLOADS)
def test_nearest_misses_fail_by_exactly_one_rule_and_are_the_cheapest_that_do(name: str) -> None:
    plan = planned(WORKLOADS[name])
    meant = [v for v in plan.verdicts if v.named] or plan.verdicts
    one_short = [v for v in meant if len(v.reasons) == 1 and not v.plan_only]
    assert all(v in one_short for v in plan.misses)
    assert len(plan.misses) == min(3, len(one_short))
    prices = [v.total if v.total is not None else float("inf") for v in one_short]
    told = [v.total if v.total is not None else float("inf") for v in plan.misses]
    assert told == sorted(prices)[: len(told)]


# ---- the way out when nothing fits ---------------------------------------------------------

IMPOSSIBLE: dict[str, dict[str, Any]] = {
    "64 GPUs": {"gpu": {"count": 64}},
    "64 GPUs everywhere": {"gpu": {"count": 64}, "clouds": EVERYWHERE},
    "high-end rendering": {"tier": "high-end", "purpose": "rendering"},
    "too cheap": {"tier": "mid", "max_usd_per_hour": 0.05},
    "too fast a network": {"network": {"bandwidth": "10Tbps"}},
    "too much scratch": {"disk": {"scratch": "500TB"}, "clouds": ["gcp"]},
    "a host no N1 has": {"gpu": {"models": ["T4"]}, "memory": "700GiB", "clouds": ["gcp"]},
    "a region without it": {"gpu": {"models": ["B300"]}, "regions": {"aws": ["eu-west-3"]},
                            "clouds": ["aws"]},
    "MIG on graphics cards": {"gpu": {"mig": True, "video_encode": True, "models": ["A100"]}},
    "two floors": {"gpu": {"models": ["T4"], "memory": "80GB"}},
    "a held type that does not fit": {
        "tier": "high-end", "capacity": held("g6.xlarge", "use1-az1")},
}  # fmt: skip


@pytest.mark.parametrize("name", IMPOSSIBLE)
def test_each_clouds_relaxation_has_the_fewest_reasons_then_the_smallest_gap_then_the_price(
    name: str,
) -> None:
    plan = planned(IMPOSSIBLE[name])
    assert plan.chosen is None
    meant = [v for v in plan.verdicts if v.named] or plan.verdicts
    assert [v.type.cloud for v in plan.relaxations] == sorted({v.type.cloud for v in meant})
    for told in plan.relaxations:
        rows = [v for v in meant if v.type.cloud == told.type.cloud]
        fewest = min(len(v.reasons) for v in rows)
        near = [v for v in rows if len(v.reasons) == fewest]
        gap = min(sum(r.gap for r in v.reasons) for v in near)
        prices = [v.total for v in near if sum(r.gap for r in v.reasons) == gap]
        known = [price for price in prices if price is not None]
        assert len(told.reasons) == fewest
        assert sum(r.gap for r in told.reasons) == gap
        assert told.total == (min(known) if known else None)


# (cloud, what to relax): the nearest there is, not the cheapest that is far off.
NEAREST: dict[str, list[tuple[str, list[str]]]] = {
    "64 GPUs": [("aws", ["gpu.count: 8"]), ("gcp", ["gpu.count: 16"])],
    "high-end rendering": [("aws", ["gpu.nvlink"]), ("gcp", ["gpu.nvlink"])],
    "too cheap": [("aws", ["max_usd_per_hour: 1.33"]), ("gcp", ["max_usd_per_hour: 1.04"])],
    "too fast a network": [
        ("aws", ["network.bandwidth: 6400Gbps"]), ("gcp", ["network.bandwidth: 1800Gbps"])],
    "a host no N1 has": [("gcp", ["memory: 624GiB"])],
    "a region without it": [("aws", ["regions.aws: add one of them"])],
}  # fmt: skip


@pytest.mark.parametrize("name", NEAREST)
def test_the_smallest_relaxation_is_the_nearest_figure(name: str) -> None:
    found = planned(IMPOSSIBLE[name]).relaxations
    told = [(v.type.cloud, [r.relax for r in v.reasons]) for v in found]
    assert [cloud for cloud, _ in told] == [cloud for cloud, _ in NEAREST[name]]
    for (_, relaxed), (_, expected) in zip(told, NEAREST[name], strict=True):
        assert len(relaxed) == len(expected)
        assert all(r.startswith(e) for r, e in zip(relaxed, expected, strict=True)), relaxed


@pytest.mark.parametrize("name", IMPOSSIBLE)
def test_dropping_all_of_a_relaxations_rules_makes_its_row_fit(name: str) -> None:
    plan, ask = planned(IMPOSSIBLE[name]), ask_of(IMPOSSIBLE[name])
    for told in plan.relaxations:
        need = ask.need
        for rule in rules_of(told):
            need = need.without(rule)
        again = replace(ask, need=need, market=replace(ask.market, memo={}))
        left = next(v for v in select(again) if v.type == told.type)
        market_rules = {"availability", "capacity", "lifecycle", "model_fit", "nodes"}
        assert set(rules_of(left)) <= market_rules & set(rules_of(told))


def test_there_is_no_relaxation_when_something_fits() -> None:
    assert planned(WORKLOADS["mid"]).relaxations == ()


# Relaxations that a person can paste: what the reason says, written into the workload.
def pasted(fields: dict[str, Any], relax: str) -> dict[str, Any] | None:
    path, colon, value = relax.partition(": ")
    if not colon or " " in value or "…" in value or not path.replace(".", "").isidentifier():
        return None
    outer, _, inner = path.partition(".")
    plain = {"true": True, "false": False}.get(value, value)
    if not inner:
        return {**fields, outer: plain}
    return {**fields, outer: {**fields.get(outer, {}), inner: plain}}


ASKING: dict[str, dict[str, Any]] = {
    "count": {"gpu": {"count": 4}, "capacity": "spot"},
    "memory of a GPU": {"gpu": {"memory": "80GB"}},
    "total memory": {"gpu": {"total_memory": "300GB"}},
    "compute capability": {"gpu": {"compute_capability": 9.0}},
    "NVLink": {"gpu": {"nvlink": True}},
    "encoder": {"gpu": {"video_encode": True}},
    "decoder": {"gpu": {"video_decode": True}},
    "vGPU": {"gpu": {"vgpu": True}},
    "MIG": {"gpu": {"mig": True}},
    "slices": {},
    "vCPU": {"cpu": {"count": 96}},
    "host memory": {"memory": "500GiB"},
    "network": {"network": {"bandwidth": "200Gbps"}},
    "burst": {"network": {"bandwidth": "200Gbps", "burst": True}},
    "fabric": {"fabric": "any"},
    "placement": {"network": {"placement": "cluster"}},
    "scratch": {"disk": {"scratch": "50TB"}},
    "disk speed": {"disk": {"throughput": "9GB/s"}},
    "IOPS": {"disk": {"iops": 200000}},
    "ceiling": {"max_usd_per_hour": 0.3},
    "flex": {"capacity": "flex_start"},
    "high-end": {"tier": "high-end"},
    "mid": {"tier": "mid"},
}


@pytest.mark.parametrize("name", ASKING)
def test_pasting_what_a_reason_offers_really_lifts_the_reason(name: str) -> None:
    fields = {"clouds": EVERYWHERE, **ASKING[name]}
    asks: dict[str, Ask] = {}
    for found in planned(fields).rejected:
        for reason in found.reasons:
            if reason.relax not in asks:
                changed = pasted(fields, reason.relax)
                if changed is None:
                    continue
                asks[reason.relax] = ask_of(changed)
            left = judge(asks[reason.relax], found.type)
            assert reason.rule not in rules_of(left), (found.type.name, reason)
    assert asks


# ---- what would be cheaper -----------------------------------------------------------------


@pytest.mark.parametrize("name", WORKLOADS)
def test_the_cheapest_unconfirmed_machine_is_shown_whenever_it_undercuts(name: str) -> None:
    plan = planned(WORKLOADS[name])
    total = best(plan).total
    assert total is not None
    prices = [v.total for v in plan.order if v.unconfirmed and not v.plan_only and v.total]
    if prices and min(prices) < total:
        assert plan.cheaper_unconfirmed is not None
        assert plan.cheaper_unconfirmed.total == min(prices)
    else:
        assert plan.cheaper_unconfirmed is None


def test_spot_of_the_chosen_machine_is_suggested_with_its_saving() -> None:
    plan = planned({"clouds": ["aws"], "regions": {"aws": ["us-east-1"]}})
    other = plan.other_way
    assert other is not None
    spot = load().price("aws", best(plan).type.name, "us-east-1", "spot")
    assert spot is not None
    total = best(plan).total
    assert total is not None
    assert (other.use, other.region, other.usd_per_hour) == ("spot", "us-east-1", spot.usd_per_hour)
    assert other.saving_percent == pytest.approx(100 * (1 - spot.usd_per_hour / total))
    assert (other.basis, other.as_of) == ("listed", spot.as_of)


def test_spot_that_saves_nothing_is_not_suggested() -> None:
    catalog = Doctored(prices={("aws", "g6.xlarge", "spot"): {"us-east-1": 0.9},
                               ("aws", "g6.xlarge", "on_demand"): {"us-east-1": 0.8}},
                       only=[("aws", "g6.xlarge")])  # fmt: skip
    plan = planned({"regions": {"aws": ["us-east-1"]}}, catalog=catalog)
    assert best(plan).type.name == "g6.xlarge"
    assert plan.other_way is None


@pytest.mark.parametrize(
    "capacity",
    [
        "spot",
        held("g6.xlarge", "use1-az1"),
        {"use": "flex_start", "instance_type": "g2-standard-4"},
    ],
    ids=str,
)
def test_spot_is_suggested_only_for_what_is_bought_on_demand(capacity: Any) -> None:
    assert planned({"capacity": capacity}).other_way is None


def test_the_spot_suggestion_keeps_the_pinned_zone_and_ceiling() -> None:
    capacity = {"use": "on_demand", "instance_type": "g6.xlarge", "zone": "use2-az1"}
    plan = planned({"capacity": capacity})
    assert best(plan).region == "us-east-2"
    assert plan.other_way is not None
    assert plan.other_way.region == "us-east-2"
    assert load().price("aws", "g6.xlarge", "us-east-2", "spot") is not None


# ---- leanings ------------------------------------------------------------------------------


def test_a_leaning_that_is_met_offers_nothing_else() -> None:
    plan = planned({"tier": "high-end", "gpu": {"models": ["H100"], "count": 8}})
    nvlink = next(x for x in plan.leanings if x.rule == "nvlink")
    assert (nvlink.met, nvlink.instead, nvlink.origin) == (True, None, "tier high-end")


def test_a_leaning_that_is_not_met_shows_the_first_machine_that_meets_it() -> None:
    plan = planned({"tier": "high-end"})
    nvlink = next(x for x in plan.leanings if x.rule == "nvlink")
    assert best(plan).type.nvlink_gb_s_per_gpu == 600
    assert nvlink.met is False
    assert nvlink.instead is not None
    meeting = [v for v in plan.order if (v.type.nvlink_gb_s_per_gpu or 0) >= 900]
    assert nvlink.instead is meeting[0]


def test_a_leaning_nobody_knows_about_is_neither_met_nor_unmet() -> None:
    plan = planned({"tier": "mid", "clouds": ["aws"], "gpu": {"models": ["L4"]}})
    pcie = next(x for x in plan.leanings if x.rule == "host_pcie")
    assert best(plan).type.host_pcie_generation is None
    assert pcie.met is None


def test_leanings_never_reject_and_never_move_the_choice() -> None:
    found = planned({"tier": "entry", "clouds": ["gcp"], "model": {"measured_gib": 18}})
    host = next(x for x in found.leanings if x.rule == "host_memory")
    assert host.met is False
    assert best(found).accepted
    assert (best(found).machine.memory_gib or 0) < 4 * 18


def test_without_a_fit_there_is_nothing_to_lean_on() -> None:
    assert planned({"tier": "mid", "gpu": {"count": 64}}).leanings == ()


# ---- choices that rest on another region's price -------------------------------------------


def rests(*, aws: dict[str, float], gcp: dict[str, float], **fields: Any) -> WorkloadPlan:
    prices = {
        ("aws", "g6.xlarge", "on_demand"): aws,
        ("gcp", "g2-standard-4", "on_demand"): gcp,
    }
    catalog = Doctored(
        prices=prices, only=[("aws", "g6.xlarge"), ("aws", "g6.2xlarge"), ("gcp", "g2-standard-4")]
    )
    where = {"aws": ["us-east-1"], "gcp": ["us-central1"]}
    return planned({"regions": where, **fields}, catalog=catalog)


@pytest.mark.parametrize(
    ("aws", "gcp", "clouds", "says"),
    [
        ({"us-east-1": 0.5}, {"us-central1": 0.6}, ["aws", "gcp"], False),
        ({"us-west-2": 0.5}, {"us-central1": 0.6}, ["aws", "gcp"], True),
        ({"us-east-1": 0.5}, {"us-west1": 0.6}, ["aws", "gcp"], True),
        # g6.2xlarge (0.978) stands between: gcp's borrowed 1.5 still decided between the clouds.
        ({"us-east-1": 0.5}, {"us-west1": 1.5}, ["aws", "gcp"], True),
        ({"us-west-2": 0.5}, {"us-central1": 0.6}, ["aws"], False),
    ],
)
def test_a_choice_between_clouds_that_rests_on_a_borrowed_price_says_so(
    aws: dict[str, float], gcp: dict[str, float], clouds: list[str], says: bool
) -> None:
    regions = {c: r for c, r in (("aws", ["us-east-1"]), ("gcp", ["us-central1"])) if c in clouds}
    plan = rests(aws=aws, gcp=gcp, clouds=clouds, regions=regions)
    assert best(plan).type.name == "g6.xlarge"
    assert plan.rests_on_borrowed_price == says
