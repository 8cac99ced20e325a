"""How machines may be bought: lifecycles, ways of buying, held capacity, clouds only shown."""

from __future__ import annotations

import pytest
from tests.plan.world import best, held, of, planned, row, rules_of

from gputier.catalog import InstanceType, load
from gputier.errors import InvalidInput
from gputier.plan import DEPLOYABLE, Reason, Verdict, WorkloadPlan
from gputier.plan.market import (
    CLOSED_LIFECYCLES,
    UNCONFIRMED,
    lifecycle_reason,
    sold_as,
)

EVERYWHERE = ["aws", "gcp", "azure", "alibaba", "tencent"]


def notes(plan: WorkloadPlan) -> tuple[str, ...]:
    assert plan.chosen is not None
    return plan.chosen.notes


# ---- lifecycle -----------------------------------------------------------------------------

CLOSED = [t for t in load().rows(EVERYWHERE) if t.lifecycle in CLOSED_LIFECYCLES]


def test_the_catalogue_has_every_closed_lifecycle_and_every_other_is_open() -> None:
    assert {t.lifecycle for t in CLOSED} == set(CLOSED_LIFECYCLES)
    others = {t.lifecycle for t in load().rows(EVERYWHERE)} - set(CLOSED_LIFECYCLES)
    assert others == {"current", "previous-generation"}


@pytest.mark.parametrize("type_", CLOSED, ids=lambda t: t.name)
def test_what_is_not_on_sale_is_rejected_unless_it_is_named(type_: InstanceType) -> None:
    reason = lifecycle_reason(type_, "")
    assert reason is not None
    assert reason.has.startswith(type_.lifecycle)
    assert type_.name in reason.relax
    assert lifecycle_reason(type_, "another") == reason
    assert lifecycle_reason(type_, type_.name) is None


def test_naming_a_preview_type_admits_it_and_only_it() -> None:
    plan = planned({
        "gpu": {"fractional": "allow"},
        "capacity": {"use": "on_demand", "instance_type": "g4-standard-24"},
    })  # fmt: skip
    assert best(plan).type.name == "g4-standard-24"
    assert [v.type.name for v in plan.order] == ["g4-standard-24"]


@pytest.mark.parametrize(
    ("name", "says"), [("g5.xlarge", "previous generation"), ("g4dn.metal", "bare metal")]
)
def test_previous_generations_and_bare_metal_are_accepted_with_a_note(name: str, says: str) -> None:
    plan = planned({"capacity": {"use": "on_demand", "instance_type": name}})
    assert best(plan).type.name == name
    assert any(note.startswith(says) for note in notes(plan))


# ---- ways of buying ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("cloud", "name", "ways"),
    [
        ("aws", "g6.xlarge", ("on_demand", "spot", "reservation")),
        ("aws", "p5.48xlarge", ("on_demand", "spot", "reservation", "capacity_block")),
        ("gcp", "a3-highgpu-1g", ("spot", "flex_start")),
        ("gcp", "a3-ultragpu-8g", ("spot", "reservation", "flex_start")),
        ("gcp", "a4x-highgpu-4g", ("reservation",)),
        ("gcp", "g2-standard-4", ("on_demand", "spot", "reservation", "flex_start")),
    ],
)
def test_each_type_is_sold_in_known_ways(cloud: str, name: str, ways: tuple[str, ...]) -> None:
    assert sold_as(row(cloud, name)) == ways


def test_a_type_that_is_not_sold_on_demand_says_how_it_is_sold() -> None:
    plan = planned({"clouds": ["gcp"]})
    small = of(plan, "gcp", "a3-highgpu-1g")
    assert small.reasons == (
        Reason("capacity", "on_demand", "sold as spot, flex_start", "capacity: spot"),
    )
    assert of(
        planned({"clouds": ["gcp"], "capacity": "flex_start"}), "gcp", "a3-highgpu-1g"
    ).accepted


def test_a_base_on_demand_needs_a_type_that_is_sold_on_demand() -> None:
    plan = planned({"clouds": ["gcp"], "capacity": {"use": "spot", "on_demand_base": 1}})
    assert of(plan, "gcp", "a3-ultragpu-8g").reasons == (
        Reason(
            "capacity",
            "on_demand for its base",
            "sold as spot, reservation, flex_start",
            "capacity.on_demand_base: 0",
        ),
    )
    none = planned({"clouds": ["gcp"], "capacity": {"use": "spot", "on_demand_base": 0}})
    assert of(none, "gcp", "a3-ultragpu-8g").accepted


def test_capacity_blocks_are_for_types_that_have_them() -> None:
    plan = planned({"capacity": held("p5.48xlarge", "use1-az4", use="capacity_block")})
    assert best(plan).type.name == "p5.48xlarge"
    other = planned({"capacity": held("g6.xlarge", "use1-az4", use="capacity_block")})
    assert other.chosen is None
    assert rules_of(of(other, "aws", "g6.xlarge")) == ["capacity"]


@pytest.mark.parametrize("use", ["reservation", "capacity_block"])
def test_held_capacity_fixes_type_zone_and_count(use: str) -> None:
    plan = planned({"capacity": held("p5.48xlarge", "use1-az4", 4, use=use)})
    chosen = best(plan)
    assert [v.type.name for v in plan.order] == ["p5.48xlarge"]
    assert (chosen.region, chosen.zones) == ("us-east-1", ("use1-az4",))
    assert chosen.machine.nodes == 4
    assert chosen.cost is not None
    assert chosen.cost.machines == 4
    others = [v for v in plan.verdicts if v.type.name != "p5.48xlarge"]
    assert all("capacity" in rules_of(v) for v in others)


def test_a_held_zone_that_no_list_names_is_believed_and_labelled() -> None:
    assert "use1-az4" not in load().zones("aws", "g7e.2xlarge")["us-east-1"]
    plan = planned({"capacity": held("g7e.2xlarge", "use1-az4")})
    chosen = best(plan)
    assert (chosen.availability, chosen.zones) == (UNCONFIRMED, ("use1-az4",))


def test_a_reservation_smaller_than_the_nodes_is_a_reason() -> None:
    with pytest.raises(InvalidInput, match="count"):
        planned({"nodes": 4, "capacity": held("p5.48xlarge", "use1-az4", 2)})


def test_capacities_are_tried_in_their_order_and_the_skipped_say_why() -> None:
    fields = {"gpu": {"models": ["H200"]}, "clouds": ["gcp"]}
    plan = planned({**fields, "capacity": ["on_demand", "spot"]})
    assert plan.choice.use == "spot"
    assert best(plan).type.name.startswith("a3-ultragpu-8g")
    assert plan.skipped == (
        "on_demand: nothing fits; a3-ultragpu-8g: sold as spot, reservation, flex_start",
    )
    first = planned({**fields, "capacity": ["spot", "on_demand"]})
    assert (first.choice.use, first.skipped) == ("spot", ())


def test_an_earlier_capacity_with_only_an_unconfirmed_fit_gives_way_to_a_confirmed_one() -> None:
    fields = {"gpu": {"models": ["RTX-PRO-6000-SE"]}, "clouds": ["gcp"]}
    capacity = [{"use": "spot", "instance_type": "g4-standard-48"}, "on_demand"]
    plan = planned({**fields, "capacity": capacity, "gpu": {}})
    assert plan.choice.use == "on_demand"
    assert plan.skipped == ("spot: g4-standard-48 fits, but its availability is unconfirmed",)
    only = planned({**fields, "capacity": ["spot", "on_demand"]})
    assert only.choice.use == "spot"


def test_when_no_capacity_fits_the_last_ones_ledger_is_shown() -> None:
    plan = planned({"gpu": {"count": 64}, "capacity": ["spot", "on_demand"]})
    assert plan.chosen is None
    assert plan.choice.use == "on_demand"
    assert len(plan.skipped) == 1


# ---- clouds that are shown and never locked ------------------------------------------------


def shown(verdicts: tuple[Verdict, ...]) -> list[str]:
    return [v.type.cloud for v in verdicts]


def test_clouds_that_are_plan_only_are_shown_and_never_first_while_others_fit() -> None:
    plan = planned({"clouds": EVERYWHERE, "gpu": {"memory": "24GB"}})
    clouds = shown(plan.order)
    first_other = min(i for i, c in enumerate(clouds) if c not in DEPLOYABLE)
    assert set(clouds[first_other:]) & set(DEPLOYABLE) == set()
    assert set(clouds) >= {"aws", "gcp", "azure"}
    azure = next(v for v in plan.order if v.type.cloud == "azure" and v.total is not None)
    assert azure.plan_only
    assert (azure.total or 0) < max(v.total or 0 for v in plan.order if v.type.cloud == "aws")


def test_a_workload_for_a_plan_only_cloud_alone_is_planned_and_labelled() -> None:
    plan = planned({"clouds": ["azure"]})
    assert best(plan).plan_only
    assert any(note.startswith("plan only") for note in notes(plan))
