"""tiers.toml is whole and honest, and every tier can be bought."""

from __future__ import annotations

import re
import sys
import tomllib
from itertools import product
from pathlib import Path
from typing import get_args

import pytest
from tests.plan.designed import DESIGNED, Figure
from tests.plan.world import machine, planned

from gputier.catalog import load
from gputier.plan import DEPLOYABLE, RULES, Floor, Tier, purposes, tiers, title
from gputier.plan.rules import NOT_IN_TABLE, meets_leaning
from gputier.workload import model as schema

FILE = Path(__file__).resolve().parents[2] / "components" / "gputier" / "tiers.toml"
SETS = [*tiers().values(), *purposes().values()]
ASKED = [(s, f) for s in SETS for f in s.require]
LEANINGS = [(s, f) for s in SETS for f in s.prefer]
KNOWN_KEYS = {"rule", "value", "requirement", "why", "per", "at_least", "at_most", "when"}
SET_KEYS = {
    "for", "requirement", "kept_free", "kept_free_requirement", "require", "prefer", "depth",
    "depth_requirement",
}  # fmt: skip
#: Leanings about the host, which no rule of the ledger rejects by.
ONLY_LEANINGS = {"host_pcie", "sockets"}

# What no cloud sells, with the one floor that stands in the way: cards that draw (RT cores, NVENC,
# full OpenGL) have no NVLink of 600 GB/s, and cards with NVLink of 600 GB/s do not draw.
NOT_SOLD = {
    ("high-end", purpose, cloud): "nvlink"
    for purpose, cloud in product(("rendering", "vdi"), DEPLOYABLE)
}


def named(pair: object) -> str:
    if isinstance(pair, Tier):
        return pair.name
    return pair.rule if isinstance(pair, Floor) else str(pair)


def test_tiers_are_entry_mid_and_high_end_in_this_order() -> None:
    assert list(tiers()) == ["entry", "mid", "high-end"]


def test_the_file_and_the_schema_name_the_same_sets() -> None:
    assert tuple(tiers()) == get_args(schema.Tier)
    assert tuple(purposes()) == get_args(schema.Purpose)


def test_every_key_of_the_file_is_read_by_somebody() -> None:
    data = tomllib.loads(FILE.read_text(encoding="utf-8"))
    assert set(data) == {"tier", "purpose"}
    for body in [*data["tier"].values(), *data["purpose"].values()]:
        assert set(body) <= SET_KEYS
        for entry in [*body.get("require", ()), *body.get("prefer", ())]:
            assert set(entry) <= KNOWN_KEYS, entry
            assert {"rule", "value", "requirement", "why"} <= set(entry), entry
            assert entry.get("per", "needed") in {"needed", "gpu", "installed"}, entry
            assert entry.get("when", "nodes") == "nodes", entry


@pytest.mark.parametrize(("asks", "floor"), ASKED, ids=named)
def test_every_floor_has_a_rule_that_judges_it_and_a_title(asks: Tier, floor: Floor) -> None:
    assert floor.rule in RULES or floor.rule in NOT_IN_TABLE
    assert title(floor.rule)
    assert floor.origin == f"{asks.kind} {asks.name}"


@pytest.mark.parametrize(("asks", "floor"), [*ASKED, *LEANINGS], ids=named)
def test_every_floor_says_why_and_whose_requirement_it_is(asks: Tier, floor: Floor) -> None:
    assert len(floor.why.split()) >= 2, f"{asks.name}: {floor.rule} needs a reason"
    page = FILE.parents[2] / "docs" / "requirements.md"
    numbers = set(re.findall(r"^\| *(\d+) *\|", page.read_text(encoding="utf-8"), re.MULTILINE))
    assert floor.requirement in numbers


@pytest.mark.parametrize("asks", SETS, ids=named)
def test_every_set_says_what_it_is_for(asks: Tier) -> None:
    assert asks.purpose_text
    assert asks.requirement


@pytest.mark.parametrize("asks", SETS, ids=named)
def test_the_floors_are_those_of_the_design(asks: Tier) -> None:
    found: dict[str, Figure] = {
        f.rule: (f.value, f.per, f.at_least, f.at_most) for f in asks.require
    }
    assert found == DESIGNED[asks.name]


def test_only_fabric_and_placement_wait_for_several_machines() -> None:
    waiting = {(s.name, f.rule) for s, f in ASKED if f.when_nodes}
    assert waiting == {("high-end", "fabric"), ("high-end", "placement")}


@pytest.mark.parametrize(("name", "free"), [("entry", 0.0), ("mid", 0.3), ("high-end", 0.3)])
def test_mid_and_high_end_keep_30_percent_of_the_card_free(name: str, free: float) -> None:
    assert tiers()[name].kept_free == free
    assert tiers()[name].kept_free_requirement == ("12" if free else "")


@pytest.mark.parametrize(
    ("name", "depth", "requirement"),
    [("entry", "quick", "9"), ("mid", "standard", "21"), ("high-end", "burn-in", "23")],
)
def test_each_tier_has_its_depth_of_validation(name: str, depth: str, requirement: str) -> None:
    assert (tiers()[name].depth, tiers()[name].depth_requirement) == (depth, requirement)


@pytest.mark.parametrize("rule", ["gpu_memory", "network", "disk_throughput"])
def test_a_higher_tier_never_asks_for_less(rule: str) -> None:
    figures = [next((f.number for f in t.require if f.rule == rule), 0.0) for t in tiers().values()]
    assert figures == sorted(figures)
    assert figures[0] < figures[-1]


@pytest.mark.parametrize(("asks", "leaning"), LEANINGS, ids=named)
def test_every_leaning_can_be_judged_on_a_machine(asks: Tier, leaning: Floor) -> None:
    assert leaning.rule in RULES or leaning.rule in ONLY_LEANINGS, asks.name
    answers = {
        meets_leaning(leaning, machine(type_, memory_floor_gib=24.0), load())
        for type_ in load().rows(DEPLOYABLE)
        if type_.vcpu_range is None
    }
    assert True in answers
    assert len(answers) > 1, "a leaning that every machine meets says nothing"


@pytest.mark.parametrize(
    "combination", list(product(tiers(), purposes(), DEPLOYABLE)), ids="-".join
)
def test_each_tier_purpose_and_cloud_has_a_machine_or_is_known_not_to(
    combination: tuple[str, str, str],
) -> None:
    tier, purpose, cloud = combination
    plan = planned({"tier": tier, "purpose": purpose, "clouds": [cloud]})
    obstacle = NOT_SOLD.get(combination)
    if obstacle is None:
        assert plan.chosen is not None, [(v.type.name, v.reasons) for v in plan.relaxations]
        found = plan.chosen.verdict
        assert found.confirmed or found.unconfirmed
        assert found.total is not None
        sys.stdout.write(
            f"{tier:9}{purpose:12}{cloud:4} ${found.total:8.4f}/h {found.type.gpu_count:g} × "
            f"{found.type.gpu_model:16}{found.machine.instance_type} ({found.availability})\n"
        )
        return
    assert plan.chosen is None, "it is sold now: take it off the list"
    sys.stdout.write(f"{tier:9}{purpose:12}{cloud:4} nobody sells it: {obstacle}\n")
    assert all([r.rule for r in v.reasons] == [obstacle] for v in plan.relaxations)
    without = planned(
        {"tier": tier, "purpose": purpose, "clouds": [cloud], "gpu": {"nvlink": False}}
    )
    assert without.chosen is not None, "the obstacle is not the only one"
