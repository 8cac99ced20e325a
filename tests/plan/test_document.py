"""The plan as JSON: `gputier/plan/1` has the keys that others rely on, adds up, and is the same
bytes for the same input."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from typing import Any, cast

import pytest
from tests.plan.world import declared, held, planned

from gputier.catalog import load
from gputier.plan import AROUND, RULES, plan_declaration, plan_document
from gputier.plan.document import money, sizing_document
from gputier.plan.rules import NOT_IN_TABLE, title

STACK: dict[str, dict[str, Any]] = {
    "chat": {"tier": "entry", "purpose": "inference",
             "model": {"name": "llama-3.1-8b", "precision": "fp8", "context_tokens": 8192}},
    "tuner": {"tier": "mid", "capacity": "spot", "budget": {"usd_per_month": 300},
              "model": {"parameters": "13B", "precision": "nf4", "context_tokens": 4096,
                        "training": {"method": "qlora", "gradient_checkpointing": "full"}}},
    "foundation": {"tier": "high-end", "purpose": "training", "nodes": 4, "fabric": "any",
                   "capacity": held("p5.48xlarge", "use1-az4", 4).model_dump(exclude_none=True)},
    "cheap": {"gpu": {"models": ["T4"]}, "clouds": ["gcp"], "disk": {"scratch": "1TB"}},
    "impossible": {"gpu": {"count": 64}},
    "elsewhere": {"clouds": ["azure", "alibaba", "tencent"]},
}  # fmt: skip
DISCOUNTS = [{"cloud": "aws", "families": ["p5"], "percent": 27, "reason": "3-year savings plan"}]

TOP = {"schema", "name", "environment", "catalog", "usd_per_month", "warnings", "workloads"}
WORKLOAD = {
    "name", "purpose", "tier", "prefer", "bound_by", "need", "chosen", "alternatives", "rejected",
    "counts", "floor_costs", "leanings", "nearest_misses", "relaxations", "cheaper_unconfirmed",
    "cheaper_if", "rests_on_borrowed_price", "capacity", "skipped_capacities",
}  # fmt: skip
# What design and lock readers rely on; more keys may come, these stay.
CHOSEN = {
    "cloud", "region", "zones", "instance_type", "attached", "nodes", "gpu_model", "gpus_per_node",
    "gpu_memory_gib", "capacity", "availability", "usd_per_hour", "price_basis", "price_as_of",
    "usd_per_month", "hours_per_month", "around_usd_per_month",
}  # fmt: skip

Json = dict[str, Any]


def document(stack: Mapping[str, Any] = STACK) -> Json:
    made = plan_declaration(declared(stack, discounts=DISCOUNTS), load())
    return cast("Json", plan_document(made))


@pytest.fixture(scope="module")
def whole() -> Json:
    return document()


@pytest.fixture(scope="module")
def workloads(whole: Json) -> dict[str, Json]:
    return {w["name"]: w for w in whole["workloads"]}


def test_it_is_plain_json_with_the_schemas_name_first(whole: Json) -> None:
    text = json.dumps(whole, allow_nan=False)
    assert json.loads(text) == whole
    assert next(iter(whole.items())) == ("schema", "gputier/plan/1")


def test_the_top_names_the_stack_and_its_catalogue(whole: Json) -> None:
    assert set(whole) == TOP
    assert whole["catalog"] == {"id": load().id, "as_of": load().as_of}
    assert (whole["name"], whole["environment"]) == ("dev", "dev")


def test_workloads_stand_in_the_order_of_the_file(whole: Json) -> None:
    assert [w["name"] for w in whole["workloads"]] == list(STACK)


@pytest.mark.parametrize("name", STACK)
def test_every_workload_has_the_same_keys(name: str, workloads: dict[str, Json]) -> None:
    assert set(workloads[name]) == WORKLOAD


@pytest.mark.parametrize("name", [n for n in STACK if n != "impossible"])
def test_what_is_chosen_has_the_promised_keys(name: str, workloads: dict[str, Json]) -> None:
    chosen = workloads[name]["chosen"]
    assert set(chosen) >= CHOSEN
    assert tuple(chosen["around_usd_per_month"]) == AROUND


@pytest.mark.parametrize("name", STACK)
def test_accepted_and_rejected_are_all_that_was_considered(
    name: str, workloads: dict[str, Json]
) -> None:
    found = workloads[name]
    counts = found["counts"]
    clouds = STACK[name].get("clouds", ["aws", "gcp"])
    assert counts["considered"] == len(load().rows(clouds))
    assert counts["accepted"] + counts["rejected"] == counts["considered"]
    assert counts["rejected"] == len(found["rejected"])
    assert counts["accepted"] == len(found["alternatives"]) + (found["chosen"] is not None)
    rows = [(v["cloud"], v["instance_type"]) for v in found["rejected"]]
    assert rows == sorted(set(rows))


@pytest.mark.parametrize("name", STACK)
def test_every_rejection_says_rule_needed_has_and_what_to_relax(
    name: str, workloads: dict[str, Json]
) -> None:
    for rejected in workloads[name]["rejected"]:
        assert rejected["reasons"]
        for reason in rejected["reasons"]:
            assert set(reason) == {"rule", "title", "needed", "has", "relax"}
            assert reason["rule"] in RULES or reason["rule"] in NOT_IN_TABLE
            assert reason["title"] == title(reason["rule"])
            assert all(isinstance(reason[k], str) and reason[k] for k in reason)


def test_an_unplaced_workload_is_null_with_its_relaxations(workloads: dict[str, Json]) -> None:
    found = workloads["impossible"]
    assert found["chosen"] is None
    assert [v["cloud"] for v in found["relaxations"]] == ["aws", "gcp"]
    assert found["alternatives"] == []


def test_a_stack_with_an_unplaced_workload_has_no_sum_and_one_without_has(whole: Json) -> None:
    assert whole["usd_per_month"] is None
    rest = document({k: STACK[k] for k in ("chat", "tuner", "foundation")})
    each = [w["chosen"]["usd_per_month"] for w in rest["workloads"]]
    assert rest["usd_per_month"] == pytest.approx(sum(each), abs=1e-5)


def test_a_composed_machine_is_its_host_and_what_is_attached(workloads: dict[str, Json]) -> None:
    chosen = workloads["cheap"]["chosen"]
    assert chosen["instance_type"].startswith("n1-")
    assert chosen["catalog_type"].startswith("n1+nvidia-tesla-t4x")
    assert chosen["attached"] == {"model": "T4", "count": 1, "accelerator": "nvidia-tesla-t4"}
    assert chosen["attached_ssds"] == 3
    assert workloads["chat"]["chosen"]["attached"] is None


def test_prices_before_and_after_discounts_both_stand(workloads: dict[str, Json]) -> None:
    chosen = workloads["foundation"]["chosen"]
    before, after = chosen["usd_per_hour_before_discounts"], chosen["usd_per_hour"]
    assert after == pytest.approx(before * 0.73)
    assert chosen["usd_per_month"] == pytest.approx(after * 730)
    assert (chosen["nodes"], chosen["machines"], chosen["zones"]) == (4, 4, ["use1-az4"])


def test_machines_of_clouds_that_are_only_shown_say_so(workloads: dict[str, Json]) -> None:
    assert workloads["elsewhere"]["chosen"]["plan_only"] is True
    assert workloads["chat"]["chosen"]["plan_only"] is False


def test_every_floor_says_who_asks_and_the_size_adds_up(workloads: dict[str, Json]) -> None:
    need = workloads["tuner"]["need"]
    rules = [f["rule"] for f in need["floors"]]
    assert rules == sorted(rules)
    assert need["kept_free"] == 0.3
    origins = {f["origin"] for f in need["floors"]}
    assert origins == {"tier mid", "default", "workload"}
    size = need["size"]
    assert sum(size["parts"].values()) == pytest.approx(size["per_gpu_gib"], abs=1e-4)
    assert size["total_gib"] == pytest.approx(size["per_gpu_gib"] * size["gpus"], abs=1e-4)
    assert set(size["formulas"]) == set(size["parts"])
    assert workloads["cheap"]["need"]["size"] is None


def test_an_unplaced_workload_still_shows_its_size() -> None:
    model = {"name": "llama-3.1-405b", "precision": "fp16", "context_tokens": 8192}
    (found,) = document({"job": {"model": model, "gpu": {"count": 2, "models": ["L4"]}}})[
        "workloads"
    ]
    assert found["chosen"] is None
    plan = planned({"model": model, "gpu": {"count": 2, "models": ["L4"]}})
    sizing = plan.need.sizing(2)
    assert sizing is not None
    assert found["need"]["size"] == sizing_document(sizing)


@pytest.mark.parametrize(
    ("value", "shown"),
    [(None, None), (0.0, 0.0), (0.1 + 0.2, 0.3), (1.23456789, 1.234568), (1e-9, 0.0)],
)
def test_money_is_rounded_to_six_places_and_unknown_stays_null(
    value: float | None, shown: float | None
) -> None:
    assert money(value) == shown


def test_every_figure_of_money_is_rounded_and_none_is_made_up(whole: Json) -> None:
    seen = list(amounts(whole))
    assert len(seen) > 1000
    assert all(v is None or round(v, 6) == v for v in seen)
    assert None in seen
    assert 0.0 not in list(prices(whole))


def amounts(part: Any, key: str = "") -> Any:
    """Every value below a key that says USD."""
    if isinstance(part, dict):
        for name, inner in cast("Json", part).items():
            below = key if "usd" in key and isinstance(inner, (float, int, type(None))) else name
            yield from amounts(inner, below)
    elif isinstance(part, list):
        for inner in cast("list[Any]", part):
            yield from amounts(inner, key)
    elif "usd" in key and not isinstance(part, (str, bool)):
        yield part


def prices(part: Any) -> Any:
    """Every `usd_per_hour` of a machine; commitments and floor costs are not offers."""
    if isinstance(part, dict):
        found = cast("Json", part)
        if "instance_type" in found and "usd_per_hour" in found:
            yield found["usd_per_hour"]
        for inner in found.values():
            yield from prices(inner)
    elif isinstance(part, list):
        for inner in cast("list[Any]", part):
            yield from prices(inner)


PROGRAM = """
import json, sys
from gputier.catalog import load
from gputier.plan import plan_declaration, plan_document
from gputier.workload import read_text
made = plan_declaration(read_text(sys.stdin.read(), "dev.yaml"), load())
sys.stdout.write(json.dumps(plan_document(made)))
"""


def test_the_document_is_the_same_bytes_whatever_the_hash_seed() -> None:
    text = json.dumps({"workloads": STACK, "discounts": DISCOUNTS})
    outputs = {run(text, seed) for seed in ("0", "1", "4711")}
    assert len(outputs) == 1
    assert json.loads(outputs.pop()) == document()


def run(text: str, seed: str) -> str:
    return subprocess.run(
        [sys.executable, "-c", PROGRAM],
        input=text,
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "PYTHONHASHSEED": seed},
    ).stdout


def test_planning_twice_in_one_process_gives_the_same_bytes(whole: Json) -> None:
    assert json.dumps(document()) == json.dumps(whole)


def test_the_order_of_regions_and_clouds_in_the_file_changes_no_choice() -> None:
    one = {"clouds": ["aws", "gcp"], "regions": {"aws": ["us-east-1", "us-west-2"]}}
    other = {"regions": {"aws": ["us-west-2", "us-east-1"]}, "clouds": ["gcp", "aws"]}
    (first,) = document({"job": one})["workloads"]
    (second,) = document({"job": other})["workloads"]
    for key in ("chosen", "alternatives", "rejected", "nearest_misses", "floor_costs"):
        assert first[key] == second[key], key
