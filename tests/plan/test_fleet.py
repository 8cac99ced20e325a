"""The fleet: its shape, how it is bought, how a change reaches it, what it is called."""

from __future__ import annotations

from typing import Any, get_args

import pytest
from tests.plan.world import declared, planned

from gputier.catalog import load
from gputier.errors import InvalidInput
from gputier.plan import Chosen, FleetPlan, RefreshPlan, plan_declaration
from gputier.plan.fleet import deploy_problems, rollout_of
from gputier.workload.model import Purpose

L4: dict[str, Any] = {"clouds": ["aws"], "regions": {"aws": ["us-east-1"]},
                      "gpu": {"models": ["L4"]}}  # fmt: skip
SPOT: dict[str, Any] = {"capacity": {"use": "spot", "instance_type": "g6.xlarge"}}
NIGHTS = [{"start": "0 20 * * *", "stop": "0 6 * * *"}]


def chosen(**fields: Any) -> Chosen:
    plan = planned({**L4, **fields})
    assert plan.chosen is not None, [v.reasons for v in plan.relaxations]
    return plan.chosen


def held(use: str, **more: Any) -> FleetPlan:
    capacity = {"use": use, "id": "cr-0abc", "instance_type": "p5.48xlarge", "zone": "use1-az4",
                "count": 4, **more}  # fmt: skip
    return chosen(gpu={}, nodes=4, capacity=capacity).fleet


@pytest.mark.parametrize(
    ("fields", "shape"),
    [
        ({"purpose": "development"}, "lone"),
        ({"purpose": "vdi"}, "lone"),
        ({"purpose": "development", "nodes": 2}, "group"),
        ({"purpose": "development", "scale": {"max": 2}}, "group"),
        ({"purpose": "inference"}, "group"),
        ({}, "group"),
    ],
    ids=str,
)
def test_one_machine_for_somebody_is_lone_and_all_else_a_group(
    fields: dict[str, Any], shape: str
) -> None:
    found = chosen(**fields)
    assert found.fleet.shape == shape
    assert (found.boot.gate.kind == "file") == (shape == "lone")
    assert any("its gate reports" in note for note in found.notes) == (shape == "lone")


@pytest.mark.parametrize("purpose", get_args(Purpose))
def test_only_a_service_is_replaced_in_turns_unless_somebody_says_so(purpose: str) -> None:
    assert rollout_of(purpose) == ("rolling" if purpose == "inference" else "new-machines")


def test_without_a_purpose_a_change_ends_nothing_that_runs() -> None:
    fleet = chosen().fleet
    assert (fleet.rollout, fleet.refresh) == ("new-machines", None)


@pytest.mark.parametrize(
    ("fields", "refresh"),
    [
        # Explicitly 100 and 100: a new machine comes before an old one goes.
        ({}, RefreshPlan(100, 100, True)),
        ({"scale": {"min": 1, "max": 6}}, RefreshPlan(100, 100, True)),
        ({"network": {"placement": "cluster"}, "nodes": 4}, RefreshPlan(75, None, True)),
        ({"network": {"placement": "cluster"}, "nodes": 40}, RefreshPlan(90, None, True)),
    ],
    ids=str,
)
def test_a_service_is_refreshed_with_rollback(fields: dict[str, Any], refresh: RefreshPlan) -> None:
    assert chosen(purpose="inference", **fields).fleet.refresh == refresh


@pytest.mark.parametrize("use", ["reservation", "capacity_block"])
def test_what_is_reserved_is_replaced_by_terminating_first(use: str) -> None:
    plan = planned({
        **L4, "gpu": {}, "nodes": 4, "rollout": "rolling",
        "capacity": {"use": use, "id": "cr-0abc", "instance_type": "p5.48xlarge",
                     "zone": "use1-az4", "count": 4},
    })  # fmt: skip
    assert plan.chosen is not None
    assert plan.chosen.fleet.refresh == RefreshPlan(75, None, True)
    assert any("the old machine goes before the new one comes" in n for n in plan.chosen.notes)


def test_one_reserved_machine_is_replaced_with_none_left() -> None:
    capacity = {"use": "reservation", "instance_type": "g6.xlarge", "zone": "use1-az4"}
    fleet = chosen(capacity=capacity, purpose="inference").fleet
    assert fleet.refresh == RefreshPlan(0, None, True)


def test_a_spot_group_replaces_machines_at_risk_and_a_lone_one_stops() -> None:
    group = chosen(**SPOT).fleet
    assert (group.market, group.capacity_rebalance, group.interruption) == (
        "spot", True, "terminate",
    )  # fmt: skip
    assert group.spot_allocation == "price-capacity-optimized"
    lone = chosen(**SPOT, purpose="development").fleet
    assert (lone.capacity_rebalance, lone.interruption, lone.spot_allocation) == (
        False, "stop", None,
    )  # fmt: skip
    assert chosen().fleet.interruption is None


def test_a_group_that_works_together_is_not_given_one_machine_more() -> None:
    fleet = chosen(
        gpu={"models": ["A100-40GB"], "count": 8}, nodes=2, fabric="efa", capacity="spot"
    ).fleet
    assert fleet.market == "spot"
    assert not fleet.capacity_rebalance


def test_machines_on_demand_stand_under_a_spot_fleet() -> None:
    capacity = {"use": "spot", "instance_type": "g6.xlarge", "on_demand_base": 2}
    assert chosen(capacity=capacity, nodes=3).fleet.on_demand_base == 2
    assert chosen(nodes=3).fleet.on_demand_base == 0


@pytest.mark.parametrize(
    ("fields", "manages"),
    [
        ({}, True),
        ({"nodes": 3}, True),
        ({"scale": {"min": 1, "max": 4}}, False),
        ({"scale": {"min": 2}}, False),
        ({"schedule": NIGHTS}, False),
        ({"budget": {"usd_per_month": 5000}}, True),
    ],
    ids=str,
)
def test_the_number_of_machines_is_not_set_where_it_changes_by_itself(
    fields: dict[str, Any], manages: bool
) -> None:
    assert chosen(**fields).fleet.manages_desired == manages


def test_43_a_block_begins_when_it_begins_and_its_machines_go_before_it_ends() -> None:
    fleet = held("capacity_block", start="2026-12-01T11:30:00Z", end="2026-12-08T11:30:00Z")
    assert (fleet.reservation_id, fleet.starts) == ("cr-0abc", "2026-12-01T11:30:00Z")
    assert fleet.ends == "2026-12-08T10:45:00Z"  # AWS takes them from 11:00 on
    assert not fleet.manages_desired


def test_45_a_reservation_that_ends_leaves_its_machines_and_says_so() -> None:
    plan = planned({
        **L4, "gpu": {}, "nodes": 4,
        "capacity": {"use": "reservation", "id": "cr-0abc", "instance_type": "p5.48xlarge",
                     "zone": "use1-az4", "count": 4, "end": "2026-12-08"},
    })  # fmt: skip
    assert plan.chosen is not None
    assert (plan.chosen.fleet.market, plan.chosen.fleet.ends) == ("reservation", None)
    assert any("run on and are billed on demand" in note for note in plan.chosen.notes)


def test_a_block_without_its_id_is_planned_and_not_deployed() -> None:
    unnamed = held("capacity_block", id=None)
    (problem,) = deploy_problems(unnamed, "workloads.job")
    assert problem.path == "workloads.job.capacity.id"
    assert "by its id" in problem.message
    assert list(deploy_problems(held("capacity_block"), "x")) == []
    assert list(deploy_problems(held("reservation", id=None), "x")) == []


def test_52_several_ways_of_buying_are_tried_when_planning_and_that_is_said() -> None:
    told = "tried when planning, not when a machine cannot be had"
    assert any(told in note for note in chosen(capacity=["spot", "on_demand"]).notes)
    assert not any(told in note for note in chosen(capacity=["spot"]).notes)


def test_tags_are_the_declared_ones() -> None:
    assert chosen(tags={"team": "vision", "cost": 4711}).fleet.tags == {
        "cost": "4711", "team": "vision",
    }  # fmt: skip
    assert chosen().fleet.tags == {}


def test_everything_is_made_under_the_name_that_the_workload_first_had() -> None:
    assert chosen().fleet.resources == "job"
    fleet = chosen(was="former").fleet
    assert (fleet.was, fleet.resources) == ("former", "former")


@pytest.mark.parametrize(
    ("workloads", "where", "message"),
    [
        ({"a": {"was": "b"}, "b": {}}, "workloads.a.was", "`b` is a workload that is declared"),
        ({"a": {"was": "a"}}, "workloads.a.was", "`a` is its own name"),
        ({"a": {"was": "x"}, "b": {"was": "x"}}, "workloads.b.was",
         "`x` is also what `a` was called"),
    ],
    ids=str,
)  # fmt: skip
def test_two_workloads_cannot_have_the_same_machines(
    workloads: dict[str, Any], where: str, message: str
) -> None:
    with pytest.raises(InvalidInput) as caught:
        plan_declaration(declared(workloads), load())
    (problem,) = caught.value.problems
    assert (problem.path, problem.message) == (where, message)


def test_every_workload_that_cannot_be_combined_is_named_at_once() -> None:
    desk = {"clouds": ["aws"], "purpose": "vdi", "rollout": "rolling"}
    with pytest.raises(InvalidInput) as caught:
        plan_declaration(declared({"a": desk, "b": desk, "c": {}}), load())
    assert [p.path for p in caught.value.problems] == ["workloads.a.rollout", "workloads.b.rollout"]


def test_google_knows_no_permissions_boundary() -> None:
    fields = {"clouds": ["gcp"],
              "identity": {"permissions_boundary": "arn:aws:iam::1:policy/b"}}  # fmt: skip
    with pytest.raises(InvalidInput, match="gcp knows no permissions boundary"):
        planned(fields)
