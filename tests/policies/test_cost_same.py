"""Selection, review and policy say the same number, discounts included."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.aws import world
from tests.conftest import ROOT
from tests.policies import cases

from gputier.plan import Chosen, plan_declaration
from gputier.review import prices
from gputier.review.preview import State
from gputier.review.world import World
from gputier.workload import Discount, read_file
from gputier_policies import cost
from gputier_policies.fleets import Fleet
from gputier_policies.values import Stack

SAMPLE = ROOT / "tests" / "review" / "samples" / "prod-export.json"
ENVIRONMENTS = ("dev", "staging", "prod")


@cache
def declared(environment: str) -> Mapping[str, Any]:
    file = Path(world.STACKS) / f"Pulumi.{environment}.yaml"
    return yaml.safe_load(file.read_text(encoding="utf-8"))["config"]


def told(environment: str) -> dict[str, str]:
    """The config as a program and a pack get it."""
    return {k: v if isinstance(v, str) else json.dumps(v) for k, v in declared(environment).items()}


@cache
def chosen(environment: str) -> Mapping[str, Chosen]:
    file = Path(world.STACKS) / f"Pulumi.{environment}.yaml"
    plans = plan_declaration(read_file(file), world.catalog()).workloads
    return {plan.name: plan.chosen for plan in plans if plan.chosen}


def months(stack: Stack) -> dict[str, tuple[Fleet, cost.Month]]:
    """By workload, which each fleet's name begins with."""
    return {f.runner.name.rpartition("-")[0]: (f, month) for f, month in cost.months(stack)}


@pytest.mark.parametrize("environment", ENVIRONMENTS)
def test_a_fleet_costs_what_the_plan_says_at_its_largest(environment: str) -> None:
    found = months(cases.recorded(world.example(environment), told(environment), environment))
    assert found.keys() == chosen(environment).keys()
    for name, one in chosen(environment).items():
        fleet, month = found[name]
        assert one.verdict.cost
        price, hours = one.verdict.cost.per_machine, one.scaling.hours_per_month
        assert price is not None
        assert month.usd_per_hour == pytest.approx(price)
        if one.scaling.hours_basis == "declared":
            # Nothing stops the machines after the hours that somebody means to use.
            assert month.hours == 730
        else:
            assert month.hours == pytest.approx(hours)
            assert month.usd == pytest.approx(price * hours * one.scaling.max)
        assert fleet.most == one.scaling.max


def test_the_discounts_of_production_are_in_the_number() -> None:
    found = months(cases.recorded(world.example("prod"), told("prod"), "prod"))
    _, month = found["simulation"]
    (_, full) = months(cases.recorded(world.example("prod"), {}, "prod"))["simulation"]
    assert month.usd == pytest.approx(full.usd * 0.73)
    assert "27 % off: 3-year savings plan" in month.note


def reviewed(discounts: list[Discount]) -> dict[str, float]:
    """What `gputier review` has for the machines of each resource of the export, per month."""
    states: dict[str, State] = {}
    for entry in json.loads(SAMPLE.read_text(encoding="utf-8"))["deployment"]["resources"]:
        inputs, outputs = entry.get("inputs", {}), entry.get("outputs", {})
        made_from = {k: tuple(v) for k, v in entry.get("propertyDependencies", {}).items()}
        states[entry["urn"]] = State(
            entry["urn"], entry["type"], entry.get("id"), inputs, outputs, made_from,
            entry.get("parent"), entry.get("provider"), False,
        )  # fmt: skip
    side = World(states, told("prod"), world.catalog(), discounts)
    found: dict[str, float] = {}
    for state in states.values():
        parts = getattr(prices.price(side, state), "parts", {})
        if "machines" in parts:
            found[state.urn] = parts["machines"].usd_per_month
    return found


def test_a_fleet_costs_what_the_review_says_of_the_same_state() -> None:
    discounts = [Discount(**one) for one in declared("prod")["gputier:discounts"]]
    theirs = reviewed(discounts)
    ours = {f.runner.urn: m for f, m in cost.months(cases.exported(SAMPLE, told("prod")))}
    assert theirs.keys() == ours.keys()
    assert len(ours) == 4
    for urn, month in ours.items():
        assert month.usd == pytest.approx(theirs[urn]), urn
