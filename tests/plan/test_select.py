"""A verdict for every row, with every reason, its best composition and its best region."""

from __future__ import annotations

from collections.abc import Iterator
from math import inf
from typing import Any

import pytest
from tests.plan.world import Doctored, ask_of, best, held, of, planned, rules_of

from gputier.catalog import load
from gputier.plan import RULES, Verdict
from gputier.plan.machine import Machine
from gputier.plan.market import (
    availability_reason,
    capacity_reason,
    lifecycle_reason,
    places,
)
from gputier.plan.price import cost_of
from gputier.plan.reasons import Context
from gputier.plan.rules_gpu import model_fit
from gputier.plan.select import Ask, select
from gputier.workload import CapacityChoice

EVERYWHERE = ["aws", "gcp", "azure", "alibaba", "tencent"]
LLAMA_8B = {"name": "llama-3.1-8b", "precision": "bf16", "context_tokens": 8192}

WORKLOADS: dict[str, dict[str, Any]] = {
    "nothing declared": {},
    "entry chat": {"tier": "entry", "model": LLAMA_8B},
    "mid fine-tuning": {"tier": "mid", "purpose": "fine-tuning"},
    "mid on five clouds": {"tier": "mid", "clouds": EVERYWHERE},
    "high-end training": {"tier": "high-end", "purpose": "training", "nodes": 4},
    "rendering": {"tier": "entry", "purpose": "rendering"},
    "desktops": {"purpose": "vdi", "model": {"seats": 4}},
    "hpc on spot": {"purpose": "hpc", "capacity": "spot"},
    "everything at once": {
        "tier": "high-end", "purpose": "vdi", "gpu": {"count": 16, "exclude": ["A100"]},
        "max_usd_per_hour": 1, "regions": {"aws": ["eu-west-1"]}, "capacity": "flex_start",
    },
    "a reservation": {"capacity": held("p5.48xlarge", "use1-az4", 2)},
    "T4 with scratch": {"gpu": {"models": ["T4"]}, "disk": {"scratch": "1TB"}},
    "arm": {"cpu": {"architecture": "arm64"}},
    "slices": {"gpu": {"fractional": "allow", "vgpu": True}},
    "old prices refused": {"capacity": "spot"},
}  # fmt: skip


def ask_for(name: str) -> Ask:
    age = 100 if name == "old prices refused" else None
    return ask_of(WORKLOADS[name], max_price_age_days=age)


@pytest.mark.parametrize("name", WORKLOADS)
def test_every_row_of_the_allowed_clouds_has_one_verdict_in_the_catalogues_order(name: str) -> None:
    ask = ask_for(name)
    found = select(ask)
    rows = load().rows(ask.market.clouds)
    assert [(v.type.cloud, v.type.name) for v in found] == [(t.cloud, t.name) for t in rows]
    accepted = [v for v in found if v.accepted]
    rejected = [v for v in found if v.reasons]
    assert len(accepted) + len(rejected) == len(rows)


@pytest.mark.parametrize("name", WORKLOADS)
def test_a_rejected_row_carries_every_reason_and_an_accepted_one_has_none(name: str) -> None:
    ask = ask_for(name)
    for found in select(ask):
        assert rules_of(found) == list(every_broken_rule(ask, found)), found.type.name
        for reason in found.reasons:
            assert reason.needed, reason
            assert reason.has, reason
            assert reason.relax, reason


def every_broken_rule(ask: Ask, found: Verdict) -> Iterator[str]:
    """Each rule asked by itself about the composition that represents the row."""
    choice, m = ask.choice, found.machine
    here = places(ask.catalog, m.type, ask.market, choice)
    if lifecycle_reason(m.type, choice.instance_type or ""):
        yield "lifecycle"
    if capacity_reason(m.type, choice, choice.instance_type or ""):
        yield "capacity"
    if availability_reason(ask.catalog, m.type, ask.market, (here, choice.zone or "")):
        yield "availability"
    context = Context(ask.need.workload.network.burst, m.nodes > 1)
    card = ask.catalog.gpus[m.type.gpu_model]
    for rule in RULES.values():
        floor = ask.need.floors.get(rule.name)
        if floor is not None and rule.check(floor, m, card, context):
            yield rule.name
    if model_fit(m):
        yield "model_fit"
    if choice.count is not None and (ask.machines or m.nodes) > choice.count:
        yield "nodes"
    yield from broken_money_rules(ask, found)


def broken_money_rules(ask: Ask, found: Verdict) -> Iterator[str]:
    catalog, row_, region = ask.catalog, found.type, found.region
    if ask.choice.use == "spot" and found.machine.host is None:
        spot = catalog.price(row_.cloud, row_.name, region, "spot")
        full = catalog.price(row_.cloud, row_.name, region, "on_demand")
        if spot and full and spot.usd_per_hour >= full.usd_per_hour:
            yield "spot_saving"
    as_of = found.cost.as_of if found.cost else None
    if ask.max_price_age_days is not None and as_of and as_of < "2026-05-18":  # 100 days before
        yield "price_age"
    limit = ask.need.workload.max_usd_per_hour
    price = found.per_machine
    if limit is not None and found.region and (price is None or price > limit):
        yield "price_ceiling"


def test_the_oldest_price_let_through_is_as_old_as_allowed() -> None:
    assert load().as_of == "2026-08-26", "broken_money_rules counts its 100 days from this date"


def test_every_rule_of_the_ledger_is_seen_in_these_workloads_or_in_the_rules_own_tests() -> None:
    seen = {rule for name in WORKLOADS for v in select(ask_for(name)) for rule in rules_of(v)}
    assert {
        "lifecycle",
        "capacity",
        "availability",
        "model_fit",
        "price_age",
        "price_ceiling",
    } <= seen
    assert len(seen & set(RULES)) >= 12


# ---- best region ---------------------------------------------------------------------------


@pytest.mark.parametrize(("use", "base"), [("on_demand", None), ("spot", None), ("spot", 2)])
def test_the_region_is_the_cheapest_with_a_listed_price(use: str, base: int | None) -> None:
    choice = CapacityChoice.model_validate({"use": use, "on_demand_base": base})
    ask = ask_of({"capacity": choice, "nodes": 3, "gpu": {"fractional": "allow"}})
    seen = 0
    for found in select(ask):
        if not found.accepted or found.machine.host or found.cost is None:
            continue
        where = places(ask.catalog, found.type, ask.market, choice).regions
        listed = [r for r in where if saves(found, r, use)]
        if listed:
            seen += 1
            least = min(total(ask, found.machine, r) for r in listed)
            # Sources round to four decimals, so a fleet of three may be off by three of those.
            dear = inf if found.total is None else found.total
            assert dear == pytest.approx(least, abs=3e-4)
    assert seen > 40


def saves(found: Verdict, region: str, use: str) -> bool:
    own = load().price(found.type.cloud, found.type.name, region, use)
    full = load().price(found.type.cloud, found.type.name, region, "on_demand")
    if own is None:
        return False
    return use != "spot" or full is None or own.usd_per_hour < full.usd_per_hour


def total(ask: Ask, machine_: Machine, region: str) -> float:
    cost = cost_of(ask.catalog, machine_, region, ask.choice, ask.discounts, 3)
    return inf if cost.total is None else cost.total


def test_a_region_with_its_own_price_comes_before_a_cheaper_borrowed_one() -> None:
    catalog = Doctored(
        only=[("aws", "g6.xlarge")],
        prices={("aws", "g6.xlarge", "spot"): {"eu-west-2": 0.7},
                ("aws", "g6.xlarge", "on_demand"): {"eu-west-2": 0.9, "us-east-1": 0.8}},
    )  # fmt: skip
    found = best(planned({"capacity": "spot"}, catalog=catalog))
    assert (found.region, found.total) == ("eu-west-2", 0.7)


def test_at_one_price_the_region_is_the_first_by_name() -> None:
    catalog = Doctored(
        only=[("aws", "g6.xlarge")],
        prices={("aws", "g6.xlarge", "on_demand"): {"us-west-2": 1.0, "us-east-2": 1.0}},
    )
    assert best(planned({}, catalog=catalog)).region == "us-east-2"


def test_a_machine_without_any_price_is_shown_in_the_clouds_home_region() -> None:
    plan = planned({"clouds": ["gcp"], "capacity": "flex_start"})
    assert of(plan, "gcp", "a4x-highgpu-4g").region == "us-central1"


def test_a_row_without_a_saving_anywhere_is_shown_where_it_is_cheapest() -> None:
    prices = {"us-east-1": 1.0, "us-east-2": 0.9, "us-west-2": 1.1}
    catalog = Doctored(
        only=[("aws", "g6.xlarge")],
        prices={("aws", "g6.xlarge", use): prices for use in ("on_demand", "spot")},
    )
    where = {"aws": list(prices)}
    (found,) = select(ask_of({"capacity": "spot", "regions": where}, catalog=catalog))
    assert (found.region, rules_of(found)) == ("us-east-2", ["spot_saving"])


# ---- price ceiling and age -----------------------------------------------------------------


def test_the_workloads_and_the_capacitys_ceiling_both_count() -> None:
    capacity = {"use": "on_demand", "max_usd_per_hour": 0.6}
    both = ask_of({"capacity": capacity, "max_usd_per_hour": 2}).ceilings
    assert both == {"max_usd_per_hour": 2, "capacity.max_usd_per_hour": 0.6}
    assert ask_of({}).ceilings == {}


def test_a_ceiling_is_per_machine_and_met_at_exactly_the_price() -> None:
    found = best(planned({"clouds": ["aws"], "nodes": 2}))
    exactly = planned({"clouds": ["aws"], "nodes": 2, "max_usd_per_hour": found.per_machine})
    assert best(exactly).type == found.type
    below = planned(
        {"clouds": ["aws"], "nodes": 2, "max_usd_per_hour": (found.per_machine or 0) - 0.0001}
    )
    assert below.chosen is None or best(below).type != found.type
    assert rules_of(of(below, "aws", found.type.name)) == ["price_ceiling"]


def test_pasting_what_a_ceiling_offers_makes_the_machine_fit() -> None:
    rejected = of(planned({"max_usd_per_hour": 0.01}), "aws", "g6.xlarge")
    (reason,) = rejected.reasons
    field, _, value = reason.relax.partition(": ")
    assert field == "max_usd_per_hour"
    assert of(planned({"max_usd_per_hour": float(value)}), "aws", "g6.xlarge").accepted


def test_a_machine_without_a_price_cannot_pass_a_ceiling() -> None:
    plan = planned({"gpu": {"models": ["H200"]}, "max_usd_per_hour": 1000})
    (reason,) = of(plan, "aws", "p5e.48xlarge").reasons
    assert (reason.rule, reason.has) == ("price_ceiling", "price unknown")


def test_old_prices_are_refused_only_when_an_age_is_set() -> None:
    free = [v.cost.as_of for v in select(ask_of({"capacity": "spot"})) if v.accepted and v.cost]
    assert min(as_of for as_of in free if as_of) < "2026-01"
    for found in select(ask_of({"capacity": "spot"}, max_price_age_days=90)):
        if found.accepted and found.cost and found.cost.as_of:
            assert found.cost.as_of >= "2026-05-28"


def test_with_an_age_set_a_fresher_dearer_region_is_taken_before_a_stale_cheaper_one() -> None:
    def price(usd: float, as_of: str) -> Any:
        one = load().price("aws", "g6.xlarge", "us-east-1", "on_demand")
        assert one is not None
        return one._replace(usd_per_hour=usd, as_of=as_of)

    prices = {"us-east-1": price(0.5, "2024-01-01"), "us-west-2": price(0.9, "2026-08-01")}
    catalog = Doctored(
        only=[("aws", "g6.xlarge")], prices={("aws", "g6.xlarge", "on_demand"): prices}
    )
    (free,) = select(ask_of({}, catalog=catalog))
    (strict,) = select(ask_of({}, catalog=catalog, max_price_age_days=60))
    assert (free.region, strict.region) == ("us-east-1", "us-west-2")
    (never,) = select(ask_of({}, catalog=catalog, max_price_age_days=1))
    assert rules_of(never) == ["price_age"]
