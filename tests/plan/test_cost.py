"""What a workload costs: spot, discounts, attached disks, mixed fleets, commitments."""

from __future__ import annotations

from itertools import product

import pytest
from tests.plan.world import Doctored, best, discount, in_file, machine, of, planned, row, rules_of

from gputier.catalog import load
from gputier.plan.machine import Machine
from gputier.plan.price import (
    HOURS_PER_MONTH,
    commitments,
    cost_of,
    discount_for,
    machine_price,
    scratch_price,
)
from gputier.workload import CapacityChoice, Discount

ON_DEMAND = CapacityChoice(use="on_demand")
G6 = machine(row("aws", "g6.xlarge"))
T4X1 = row("gcp", "n1+nvidia-tesla-t4x1")


# ---- spot is never dearer ------------------------------------------------------------------


def no_savings() -> list[tuple[str, str]]:
    """(type, region) where the data's spot price is no less than on demand."""
    found: list[tuple[str, str]] = []
    for type_ in load().rows(["aws"]):
        full = load().prices("aws", type_.name, "on_demand")
        for region, spot in load().prices("aws", type_.name, "spot").items():
            if region in full and spot.usd_per_hour >= full[region].usd_per_hour:
                found.append((type_.name, region))
    return found


def test_the_data_has_spot_prices_that_save_nothing() -> None:
    assert len(no_savings()) >= 5


@pytest.mark.parametrize(("name", "region"), no_savings())
def test_spot_at_or_above_on_demand_is_rejected_in_a_region_without_saving(
    name: str, region: str
) -> None:
    plan = planned(
        {
            "capacity": {"use": "spot", "instance_type": name},
            "gpu": {"fractional": "allow"},
            "regions": {"aws": [region]},
            "clouds": ["aws"],
        }
    )
    assert plan.chosen is None
    assert "spot_saving" in rules_of(of(plan, "aws", name))


def test_a_region_where_spot_saves_is_taken_before_one_where_it_does_not() -> None:
    catalog = Doctored(prices={
        ("aws", "g6.xlarge", "on_demand"): {"us-east-1": 0.4, "us-west-2": 0.9},
        ("aws", "g6.xlarge", "spot"): {"us-east-1": 0.4, "us-west-2": 0.5},
    }, only=[("aws", "g6.xlarge")])  # fmt: skip
    found = best(planned({"capacity": "spot"}, catalog=catalog))
    assert (found.region, found.total) == ("us-west-2", 0.5)


def test_no_plan_ever_pays_on_demand_money_for_spot() -> None:
    seen = 0
    for fields in ({}, {"gpu": {"count": 8}}, {"gpu": {"memory": "40GB"}}):
        for verdict in planned({**fields, "capacity": "spot"}).order:
            full = machine_price(load(), verdict.machine, verdict.region, "on_demand")
            if verdict.per_machine is not None and full.usd is not None:
                seen += 1
                assert verdict.per_machine < full.usd
    assert seen > 50


# ---- unknown prices ------------------------------------------------------------------------


def test_an_unpriced_machine_is_accepted_after_every_priced_one_and_never_free() -> None:
    plan = planned({"gpu": {"models": ["H200"]}, "clouds": ["aws"]})
    unpriced = of(plan, "aws", "p5e.48xlarge")
    assert not load().prices("aws", "p5e.48xlarge", "on_demand")
    assert unpriced.accepted
    assert (unpriced.total, unpriced.per_machine) == (None, None)
    assert unpriced.cost is not None
    assert unpriced.cost.basis == "unknown"
    confirmed = [v for v in plan.order if v.confirmed]
    assert confirmed[-1] is unpriced
    assert all(v.total is not None for v in confirmed[:-1])


def test_a_plan_of_an_unpriced_machine_has_no_sums() -> None:
    plan = planned({"gpu": {"models": ["H200"]}, "capacity": {
        "use": "reservation", "instance_type": "p5e.48xlarge", "zone": "use2-az1"}})  # fmt: skip
    assert plan.chosen is not None
    assert plan.chosen.usd_per_hour is None
    assert plan.chosen.usd_per_month is None
    assert plan.chosen.usd_per_month_of_one is None
    assert plan.chosen.usd_per_month_at_max is None
    assert any("price unknown" in note for note in plan.chosen.notes)


# ---- discounts -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("use", "covered"),
    [("on_demand", True), ("reservation", True), ("spot", False), ("capacity_block", False),
     ("flex_start", False)],
)  # fmt: skip
def test_a_discount_covers_what_savings_plans_cover(use: str, covered: bool) -> None:
    found = discount_for([discount(20, "g6")], row("aws", "g6.xlarge"), use)
    assert (found is not None) == covered


@pytest.mark.parametrize(
    ("given", "percent"),
    [
        ([discount(20, "g6"), discount(35, "p5", "g6"), discount(10, "g6")], 35),
        ([discount(35, "p5")], None),
        ([discount(35, "g6", cloud="gcp")], None),
        ([], None),
    ],
)
def test_the_largest_discount_of_the_family_counts_and_they_do_not_add_up(
    given: list[Discount], percent: float | None
) -> None:
    found = discount_for(given, row("aws", "g6.xlarge"), "on_demand")
    assert (found and found.percent) == percent


def test_a_discount_lowers_every_figure_and_the_price_before_it_is_kept() -> None:
    listed = in_file("aws", "us-east-1", "g6.xlarge", "on_demand")
    found = cost_of(load(), G6, "us-east-1", ON_DEMAND, [discount(25, "g6")], 3)
    assert found.listed == listed
    assert found.per_machine == pytest.approx(0.75 * listed)
    assert found.total == pytest.approx(3 * 0.75 * listed)
    assert found.listed_total == pytest.approx(3 * listed)


def test_a_discount_changes_the_choice_and_the_plan_says_what_it_was_before() -> None:
    fields = {"gpu": {"memory": "24GB"}, "clouds": ["aws"], "memory": "60GiB"}
    before = best(planned(fields))
    other = next(
        v for v in planned(fields).order if v.type.family != before.type.family and v.total
    )
    assert other.total is not None
    assert before.total is not None
    percent = 100 * (1 - before.total / other.total) + 1
    plan = planned(fields, discounts=[discount(percent, other.type.family)])
    assert best(plan).type.name == other.type.name
    assert plan.chosen is not None
    assert plan.chosen.listed_usd_per_hour == pytest.approx(other.total)
    assert plan.chosen.usd_per_hour == pytest.approx(other.total * (1 - percent / 100))
    assert any(note.startswith(f"{percent:g} % off for") for note in plan.chosen.notes)


def test_attached_scratch_is_not_discounted() -> None:
    with_ssd = machine(row("gcp", "g2-standard-12"), ssds=1)
    each = [discount(50, "g2", cloud="gcp")]
    found = cost_of(load(), with_ssd, "us-central1", ON_DEMAND, each, 1)
    plain = in_file("gcp", "us-central1", "g2-standard-12", "on_demand")
    assert found.per_machine == pytest.approx(plain / 2 + found.scratch)
    assert found.listed == pytest.approx(plain + found.scratch)
    assert found.scratch > 0


# ---- attached local SSD --------------------------------------------------------------------


@pytest.mark.parametrize(("use", "item"), [("on_demand", "local-ssd"), ("spot", "local-ssd-spot")])
@pytest.mark.parametrize("count", [1, 4])
def test_attached_local_ssd_is_billed_by_gib_month(use: str, item: str, count: int) -> None:
    price = load().item("gcp", item, "us-central1")
    assert price is not None
    assert price.usd is not None
    with_ssd = machine(T4X1, on="n1-standard-4", ssds=count)
    found = scratch_price(load(), with_ssd, "us-central1", use)
    assert found.usd == pytest.approx(price.usd * 375 * count / HOURS_PER_MONTH)
    assert found.basis == "listed"


def test_local_ssd_in_a_region_without_its_own_price_is_borrowed_and_says_so() -> None:
    with_ssd = machine(row("gcp", "g2-standard-12"), ssds=1)
    found = cost_of(load(), with_ssd, "us-east4", ON_DEMAND, (), 1)
    assert found.basis == "local SSD borrowed from us-central1"
    assert found.borrowed


def test_a_machine_whose_scratch_has_no_price_has_no_price() -> None:
    catalog = Doctored(items={("gcp", "local-ssd"): None})
    with_ssd = machine(row("gcp", "g2-standard-12"), ssds=1)
    assert cost_of(catalog, with_ssd, "us-central1", ON_DEMAND, (), 1).total is None


# ---- a spot fleet on an on-demand base -----------------------------------------------------


@pytest.mark.parametrize(("base", "machines"), list(product((0, 1, 3), (1, 3, 5))))
def test_a_base_on_demand_under_a_spot_fleet_is_priced_on_demand(base: int, machines: int) -> None:
    spot = in_file("aws", "us-east-1", "g6.xlarge", "spot")
    full = in_file("aws", "us-east-1", "g6.xlarge", "on_demand")
    choice = CapacityChoice(use="spot", on_demand_base=base)
    found = cost_of(load(), G6, "us-east-1", choice, (), machines)
    firm = min(base, machines)
    assert found.total == pytest.approx(firm * full + (machines - firm) * spot)
    assert found.per_machine == spot


def test_the_discount_covers_the_on_demand_base_of_a_spot_fleet_and_not_the_rest() -> None:
    spot = in_file("aws", "us-east-1", "g6.xlarge", "spot")
    full = in_file("aws", "us-east-1", "g6.xlarge", "on_demand")
    choice = CapacityChoice(use="spot", on_demand_base=1)
    found = cost_of(load(), G6, "us-east-1", choice, [discount(50, "g6")], 3)
    assert found.total == pytest.approx(full / 2 + 2 * spot)
    assert found.listed_total == pytest.approx(full + 2 * spot)


def test_a_base_whose_on_demand_price_is_borrowed_makes_the_cost_borrowed() -> None:
    catalog = Doctored(prices={
        ("aws", "g6.xlarge", "spot"): {"us-east-1": 0.2},
        ("aws", "g6.xlarge", "on_demand"): {"us-west-2": 0.9},
    })  # fmt: skip
    choice = CapacityChoice(use="spot", on_demand_base=1)
    found = cost_of(catalog, G6, "us-east-1", choice, (), 2)
    assert found.total == pytest.approx(1.1)
    assert found.borrowed
    assert found.basis == "borrowed from us-west-2"


# ---- commitments ---------------------------------------------------------------------------


@pytest.mark.parametrize(("term", "purchase"), [("1y", "reserved_1y"), ("3y", "reserved_3y")])
def test_a_commitment_pays_from_the_hours_at_which_it_costs_as_much_as_the_hour(
    term: str, purchase: str
) -> None:
    full = in_file("aws", "us-east-1", "g6.xlarge", "on_demand")
    committed = in_file("aws", "us-east-1", "g6.xlarge", purchase)
    found = {c.term: c for c in commitments(load(), G6, "us-east-1", full)}[term]
    assert found.usd_per_hour == committed
    assert found.break_even_hours == pytest.approx(committed * 730 / full)


@pytest.mark.parametrize(
    ("unpriced", "region"),
    [
        (machine(row("aws", "p5e.48xlarge")), "us-west-2"),
        (machine(T4X1, on="n1-standard-4"), "us-central1"),
    ],
    ids=["p5e.48xlarge", "t4x1"],
)
def test_a_commitment_without_a_price_is_unknown(unpriced: Machine, region: str) -> None:
    found = commitments(load(), unpriced, region, 10.0)
    assert [(c.term, c.usd_per_hour, c.break_even_hours) for c in found] == [
        ("1y", None, None),
        ("3y", None, None),
    ]


def test_attached_scratch_is_left_out_of_the_break_even_of_the_machine() -> None:
    fields = {"gpu": {"models": ["L4"]}, "clouds": ["gcp"], "regions": {"gcp": ["us-central1"]}}
    plain = planned({**fields, "capacity": {"use": "on_demand", "instance_type": "g2-standard-12"}})
    scratch = planned(
        {
            **fields,
            "capacity": {"use": "on_demand", "instance_type": "g2-standard-12"},
            "disk": {"scratch": "375GiB"},
        }
    )
    assert best(scratch).machine.ssd_count == 1
    assert plain.chosen is not None
    assert scratch.chosen is not None
    assert plain.chosen.commitments[0].break_even_hours is not None
    assert scratch.chosen.commitments == plain.chosen.commitments
