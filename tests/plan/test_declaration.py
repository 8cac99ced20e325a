"""A whole declaration planned: every mistake at once and at its place; the stack's sum."""

from __future__ import annotations

import pytest
from tests.plan.world import discount, planned

from gputier.catalog import load
from gputier.errors import InvalidInput
from gputier.plan import StackPlan, plan_declaration, unplaced_problems
from gputier.plan.known import KnownModels, KnownNames
from gputier.workload import Declaration, Model, read_text

WRONG = """\
discounts:
- {cloud: aws, families: [g66], percent: 5, reason: a plan}
workloads:
  chat: {gpu: {models: [H1000]}}
  tuner: {model: {name: llama-9}}
  far: {regions: {aws: [moon-1]}, zones: [nowhere]}
  typo: {capacity: [spot, {use: on_demand, instance_type: g6.xlage}]}
  fine: {tier: entry}
"""


def declaration(text: str) -> Declaration:
    return read_text(text, "team.yaml")


def made(text: str) -> StackPlan:
    return plan_declaration(declaration(text), load())


def test_every_mistake_of_every_workload_is_told_at_once_with_its_line() -> None:
    with pytest.raises(InvalidInput) as refused:
        made(WRONG)
    told = {p.path: p for p in refused.value.problems}
    assert set(told) == {
        "discounts[0].families",
        "workloads.chat.gpu.models",
        "workloads.tuner.model.name",
        "workloads.far.regions.aws",
        "workloads.far.zones",
        "workloads.typo.capacity[1].instance_type",
    }
    lines = {path: p.position.line if p.position else None for path, p in told.items()}
    assert lines == {
        "discounts[0].families": 2,
        "workloads.chat.gpu.models": 4,
        "workloads.tuner.model.name": 5,
        "workloads.far.regions.aws": 6,
        "workloads.far.zones": 6,
        "workloads.typo.capacity[1].instance_type": 7,
    }
    assert all(p.hint for p in told.values())


@pytest.mark.parametrize(
    ("family", "hint"), [("g66", "did you mean `g6"), ("q", "families of aws: ")]
)
def test_a_discount_for_a_family_nobody_sells_is_refused(family: str, hint: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        planned({}, discounts=[discount(5, family)])
    (problem,) = refused.value.problems
    assert problem.message == f"`{family}` is not a machine family of aws in the catalogue"
    assert problem.hint.startswith(hint)


def test_a_workload_that_fits_nowhere_does_not_keep_the_others_from_being_planned() -> None:
    text = "workloads:\n  huge: {gpu: {count: 64}}\n  fine: {tier: entry}\n"
    plan = made(text)
    assert [w.name for w in plan.unplaced] == ["huge"]
    assert plan.workloads[1].chosen is not None
    assert plan.usd_per_month is None
    (problem,) = unplaced_problems(plan, declaration(text))
    assert problem.path == "workloads.huge"
    assert problem.position is not None
    assert problem.position.line == 2
    assert problem.message.startswith("no machine fits workload `huge` (0 of ")
    lines = problem.hint.splitlines()
    assert lines[0] == "smallest relaxation per cloud:"
    assert [line.split()[0] for line in lines[1:]] == ["aws", "gcp"]
    assert all("(≥ 64 GPUs, it has " in line for line in lines[1:])


def test_a_stacks_month_is_the_sum_of_its_workloads() -> None:
    plan = made("workloads: {a: {tier: entry}, b: {tier: mid, nodes: 2}}")
    each = [w.chosen.usd_per_month or 0.0 for w in plan.workloads if w.chosen]
    assert len(each) == 2
    assert plan.usd_per_month == pytest.approx(sum(each))
    assert (plan.catalog_id, plan.catalog_as_of) == (load().id, load().as_of)
    assert (plan.name, plan.source) == ("team", "team.yaml")


NAMES = KnownNames(load())


@pytest.mark.parametrize("name", ["H100", "l4", "A100-80GB"])
def test_known_gpus_are_known_by_any_of_their_names(name: str) -> None:
    assert NAMES.gpu(name) is None


def test_unknown_names_come_with_a_way_out() -> None:
    for unknown in (NAMES.gpu("H1000"), NAMES.region("aws", "us-eas-1")):
        assert unknown is not None
        assert "did you mean" in unknown.hint
    assert NAMES.region("aws", "us-east-1") is None
    elsewhere = NAMES.region("gcp", "us-east-1")
    assert elsewhere is not None
    assert "aws" in elsewhere.hint


def test_known_instance_types_are_those_of_the_catalogue() -> None:
    assert NAMES.instance_type("g6.xlarge") is None
    unknown = NAMES.instance_type("g6.xlage")
    assert unknown is not None
    assert "g6.xlarge" in unknown.hint


def test_a_model_of_the_table_is_known_and_a_missing_file_is_not() -> None:
    assert list(NAMES.model(Model(name="llama-3.1-8b"))) == []
    ((field, unknown),) = NAMES.model(Model(config="no-such-config.json"))
    assert field == "config"
    assert "no-such-config.json" in unknown.after


def test_sizing_asks_after_models_alone() -> None:
    names = KnownModels()
    assert names.gpu("H1000") is None
    assert names.region("aws", "moon-1") is None
    assert names.instance_type("g6.xlage") is None
    assert list(names.model(Model(config="no-such-config.json")))
