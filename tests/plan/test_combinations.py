"""What may be combined on AWS: every combination against rules written a second time, as the
sources say them, and each row by an example of its own."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from typing import Any

import pytest
from tests.plan.world import planned

from gputier.errors import InvalidInput
from gputier.plan import Chosen, combinations
from gputier.plan.combinations import AWS, OTHERS, Row, Situation, decide

PARTS: dict[str, tuple[str, ...]] = {
    "placement": ("cluster", "spread", "none"),
    "market": ("on_demand", "spot", "reservation", "capacity_block", "flex_start"),
    "zones": ("one", "several"),
    "types": ("one", "several"),
    "fabric": ("yes", "no"),
    "shape": ("group", "lone"),
    "rollout": ("new-machines", "rolling"),
    "egress": ("nat", "public", "endpoints"),
    "interfaces": ("one", "several"),
    "rebalance": ("yes", "no"),
}


def every() -> Iterator[Situation]:
    for values in product(*PARTS.values()):
        yield Situation(**dict(zip(PARTS, values, strict=True)))


def refused(asked: Situation) -> set[str]:
    """Why not, by the fields that are to blame."""
    found: set[str] = set()
    held = asked.market in {"reservation", "capacity_block"}
    if asked.market == "flex_start":
        found.add("capacity")
    if asked.types == "several" and held:
        found.add("capacity.instance_type")
    if asked.types == "several" and asked.fabric == "yes":
        found.add("fabric")
    if asked.shape == "lone" and asked.rollout == "rolling":
        found.add("rollout")
    if asked.shape == "group" and (asked.placement, asked.market) == ("spread", "capacity_block"):
        found.add("network.placement")
    if asked.egress == "public" and asked.interfaces == "several":
        found.add("network.egress")
    return found


def settled(asked: Situation) -> dict[str, str]:
    """What is left of it: placement, zones, and how machines are replaced."""
    placement = asked.placement
    grouped, held = asked.shape == "group", asked.market in {"reservation", "capacity_block"}
    if not grouped or (placement == "cluster" and held):
        placement = "none"
    close = placement == "cluster"
    in_one = asked.zones == "one" or held or close or asked.fabric == "yes"
    alone = asked.rebalance == "yes" and not close and asked.fabric == "no"
    first = asked.rollout == "rolling" and (held or close)
    return {
        "placement": placement,
        "zones": "one" if in_one else "several",
        "rebalance": "yes" if alone else "no",
        "order": "terminate-first" if first else "launch-first",
    }


def test_every_combination_is_refused_changed_or_left_as_the_sources_say() -> None:
    count = 0
    for asked in every():
        found = decide("aws", asked)
        assert {row.field for row in found.refusals} == refused(asked), asked
        left = found.situation._asdict()
        assert {part: left[part] for part in settled(asked)} == settled(asked), asked
        kept = set(PARTS) - set(settled(asked))
        assert {part: left[part] for part in kept} == {p: getattr(asked, p) for p in kept}, asked
        count += 1
    assert count == 3 * 5 * 3 * 2**7


def test_what_was_changed_is_said_and_what_was_not_is_not() -> None:
    for asked in every():
        found = decide("aws", asked)
        told = {row.change[0] for row in found.warnings if row.change}
        left = found.situation
        changed = {p for p in ("placement", "zones") if getattr(left, p) != getattr(asked, p)}
        changed |= {"order"} if left.order != asked.order else set()
        assert told == changed, asked


def test_a_second_look_changes_nothing_more() -> None:
    for asked in every():
        once = decide("aws", asked).situation
        assert decide("aws", once).situation == once


@pytest.mark.parametrize("row", AWS + OTHERS, ids=lambda row: row.key)
def test_every_row_speaks_for_some_situation_and_is_whole(row: Row) -> None:
    table = AWS if row in AWS else OTHERS
    cloud = "aws" if table is AWS else "gcp"
    assert any(row in decide(cloud, asked).rows for asked in every())
    assert set(row.when) <= set(Situation._fields)
    assert row.source
    assert row.why
    assert (row.verdict == "changed") == (row.change is not None)
    assert (row.verdict == "refused") == bool(row.field and row.way_out)


@pytest.mark.parametrize("table", [AWS, OTHERS])
def test_rows_have_names_of_their_own(table: tuple[Row, ...]) -> None:
    assert len({row.key for row in table}) == len(table)


P4D: dict[str, Any] = {"clouds": ["aws"], "gpu": {"models": ["A100-40GB"], "count": 8}, "nodes": 4}


def held(use: str, **more: Any) -> dict[str, Any]:
    """Four p4d that are reserved, or in a block."""
    return {
        "clouds": ["aws"], "regions": {"aws": ["us-east-1"]}, "nodes": 4,
        "capacity": {"use": use, "id": "cr-0abc", "instance_type": "p4d.24xlarge",
                     "zone": "use1-az6", "count": 4},
        **more,
    }  # fmt: skip


def chosen(fields: dict[str, Any]) -> Chosen:
    plan = planned(fields)
    assert plan.chosen is not None, [v.reasons for v in plan.relaxations]
    return plan.chosen


def test_46_a_reservation_is_not_forced_into_a_placement_group_of_ours() -> None:
    """eksctl-io/eksctl#7949: 11 of 16 reserved machines came, the group was in the way."""
    found = chosen(held("reservation", network={"placement": "cluster"}))
    assert found.network.placement == found.fleet.placement == "none"
    assert any("cannot be moved into a placement group" in note for note in found.notes)


def test_47_a_reservation_keeps_its_own_placement() -> None:
    """terraform-aws-eks#3661: a forced group broke the reservation. Not asked, it is not said."""
    found = chosen(held("reservation"))
    assert found.fleet.placement == "none"
    assert not any("placement group" in note for note in found.notes)


def test_48_the_warning_says_which_rule_and_what_to_do() -> None:
    found = chosen(held("reservation", network={"placement": "cluster"}))
    (note,) = [note for note in found.notes if "placement group" in note]
    assert "make it in a cluster placement group" in note


def test_a_block_takes_no_placement_group_and_says_so() -> None:
    found = chosen(held("capacity_block", network={"placement": "cluster"}))
    assert found.fleet.placement == "none"
    assert any("close together already" in note for note in found.notes)


REFUSED: dict[str, tuple[dict[str, Any], str, str, str]] = {
    "a spread block": (
        held("capacity_block", network={"placement": "spread"}), "network.placement",
        "the machines of a capacity block lie close together and take no placement group",
        "`placement: none`, or another way of buying",
    ),
    "public addresses on several interfaces": (
        {**P4D, "fabric": "efa", "network": {"egress": "public"}}, "network.egress",
        "a machine with several network interfaces gets no public address",
        "`egress: nat`, or `fabric: none`",
    ),
    "a lone machine in turns": (
        {"clouds": ["aws"], "purpose": "vdi", "rollout": "rolling"}, "rollout",
        "one machine by itself cannot be replaced in turns",
        "`rollout: new-machines`, or `scale` for a group",
    ),
    "too many machines apart": (
        {"clouds": ["aws"], "gpu": {"models": ["L4"]}, "zones": ["use1-az4"],
         "scale": {"min": 1, "max": 8}, "network": {"placement": "spread"}}, "network.placement",
        "8 machines are to be spread, and a spread group takes 7 in a zone: 7 in 1",
        "`placement: none`, or fewer machines",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_be_combined_is_refused_with_the_way_out(name: str) -> None:
    fields, path, message, hint = REFUSED[name]
    with pytest.raises(InvalidInput) as caught:
        planned(fields)
    (problem,) = caught.value.problems
    assert (problem.path, problem.message, problem.hint) == (path, message, hint)


def test_seven_machines_a_zone_may_be_spread() -> None:
    found = chosen({"clouds": ["aws"], "gpu": {"models": ["L4"]}, "zones": ["use1-az4"],
                    "scale": {"min": 1, "max": 7}, "network": {"placement": "spread"}})  # fmt: skip
    assert found.fleet.placement == "spread"


def test_without_a_fabric_several_interfaces_are_not_in_the_way_of_an_address() -> None:
    found = chosen({**P4D, "fabric": "none", "network": {"egress": "public"}})
    assert found.network.public_ip
    assert len(found.network.interfaces) == 1
    assert found.network.fabric == "none"
    assert len(found.zones) > 1


def test_machines_joined_by_efa_lie_in_one_zone_of_those_that_sell_them() -> None:
    found = chosen({**P4D, "fabric": "efa"})
    assert len(found.zones) == 1
    assert any("EFA does not cross zones" in note for note in found.notes)


def test_the_names_of_the_table_are_those_of_the_schema() -> None:
    assert combinations.ONE == "one"
    assert set(PARTS) | {"order"} == set(Situation._fields)
