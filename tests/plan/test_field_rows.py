"""Defects that users of other tools reported, each shown not to be one of this planner.

The numbers are those of the collected reports: 2b read in source, 3A GPU metadata, 3B selection,
3C capacity, 3D prices. Rows about the catalogue's data are tested with it, rows about something
else are in docs/adr/0010 with the reason.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from tests.plan.world import (
    Doctored,
    best,
    declared,
    discount,
    held,
    in_file,
    of,
    planned,
    row,
    rules_of,
)

from gputier.catalog import load
from gputier.errors import InvalidInput
from gputier.plan import DEPLOYABLE, WorkloadPlan, plan_declaration, plan_document

ROOT = Path(__file__).resolve().parents[2]
ROWS = {
    "2b": [str(n) for n in range(1, 11)],
    "3a": [str(n) for n in range(1, 17)],
    "3b": [*(str(n) for n in range(17, 33)), "32a", "32b"],
    "3c": [str(n) for n in range(33, 55)],
    "3d": [str(n) for n in range(55, 76)],
}
TESTED_ELSEWHERE = [ROOT / "tests" / "catalog" / "test_field_rows.py"]
NAMED = re.compile(r"^def test_field_(2b|3[abcd])_0*(\d+[ab]?)_", re.MULTILINE)
LISTED = re.compile(r"^\| (2b|3[ABCD]) (\d+[ab]?) \|", re.MULTILINE)


@pytest.mark.parametrize("section", ROWS)
def test_every_reported_row_is_tested_or_listed_with_the_reason_why_not(section: str) -> None:
    files = [Path(__file__), *TESTED_ELSEWHERE]
    text = "\n".join(file.read_text(encoding="utf-8") for file in files)
    page = ROOT / "docs" / "adr" / "0010-field-rows-left-out.md"
    tested = {number for part, number in NAMED.findall(text) if part == section}
    left_out = {
        number
        for part, number in LISTED.findall(page.read_text(encoding="utf-8"))
        if part.lower() == section
    }
    assert tested | left_out == set(ROWS[section])
    assert not tested & left_out, "a row that is tested does not belong on the list"


# ---- 2b: defects read in source ------------------------------------------------------------


@pytest.mark.parametrize("name", ["g2-standard-4", "a2-highgpu-1g"])
def test_field_2b_06_built_in_gpus_are_not_added_to_the_machines_price(name: str) -> None:
    found = of(planned({"regions": {"gcp": ["us-central1"]}, "clouds": ["gcp"]}), "gcp", name)
    assert found.total == in_file("gcp", "us-central1", name, "on_demand")
    assert found.machine.host is None


@pytest.mark.parametrize(
    ("models", "told"), [(["T4"], True), (["L4"], False), (["A100-40GB"], False)]
)
def test_field_2b_07_the_sustained_use_discount_is_told_by_family_and_never_counted(
    models: list[str], told: bool
) -> None:
    plan = planned({"gpu": {"models": models}, "clouds": ["gcp"]})
    assert plan.chosen is not None
    assert any("sustained-use" in note for note in plan.chosen.notes) == told
    assert plan.chosen.usd_per_hour == plan.chosen.listed_usd_per_hour


# ---- 3A: GPU metadata ----------------------------------------------------------------------


def test_field_3a_14_a_gpu_is_never_put_on_a_host_that_cannot_carry_it() -> None:
    plan = planned({"gpu": {"models": ["RTX-PRO-6000-SE"]}, "clouds": ["gcp"]})
    assert plan.order
    assert {v.type.family for v in plan.order} == {"g4"}
    assert all(v.machine.host is None for v in plan.order)
    for verdict in planned({"clouds": ["gcp"]}).verdicts:
        assert (verdict.machine.host is not None) == verdict.type.name.startswith("n1+")


# ---- 3B: selection and "nothing fits" ------------------------------------------------------


def test_field_3b_17_nothing_fits_comes_with_every_rows_reasons() -> None:
    plan = planned({"gpu": {"count": 64}})
    assert plan.chosen is None
    assert len(plan.rejected) == len(load().rows(DEPLOYABLE))
    assert all(v.reasons for v in plan.rejected)


def test_field_3b_18_the_reason_names_what_was_needed_and_what_there_is() -> None:
    (reason,) = of(planned({"memory": "20GiB"}), "aws", "g6.xlarge").reasons
    assert (reason.rule, reason.needed, reason.has) == ("host_memory", "≥ 20 GiB", "16 GiB")


def test_field_3b_19_all_reasons_stand_and_not_the_first_alone() -> None:
    plan = planned({"memory": "20GiB", "cpu": {"count": 8}, "gpu": {"count": 2}})
    assert rules_of(of(plan, "aws", "g6.xlarge")) == ["gpu_count", "vcpu", "host_memory"]


def test_field_3b_20_each_cloud_has_a_relaxation_that_works_when_it_is_pasted() -> None:
    plan = planned({"gpu": {"count": 64}})
    assert [v.type.cloud for v in plan.relaxations] == ["aws", "gcp"]
    for found in plan.relaxations:
        (reason,) = found.reasons
        field, _, count = reason.relax.partition(": ")
        assert field == "gpu.count"
        relaxed = planned({"gpu": {"count": int(count)}})
        assert of(relaxed, found.type.cloud, found.type.name).accepted


def test_field_3b_21_requirements_that_exclude_each_other_are_both_named() -> None:
    plan = planned({"gpu": {"models": ["T4"], "memory": "80GB"}})
    assert rules_of(of(plan, "aws", "g4dn.xlarge")) == ["gpu_memory"]
    assert rules_of(of(plan, "aws", "p5.48xlarge")) == ["gpu_model"]
    assert rules_of(of(plan, "aws", "g6.xlarge")) == ["gpu_model", "gpu_memory"]


def test_field_3b_23_why_spot_was_not_taken_is_said() -> None:
    prices = {
        ("aws", "g6.xlarge", "on_demand"): {"us-east-1": 0.8},
        ("aws", "g6.xlarge", "spot"): {"us-east-1": 0.8},
    }
    catalog = Doctored(only=[("aws", "g6.xlarge")], prices=prices)
    where = {"regions": {"aws": ["us-east-1"]}, "clouds": ["aws"]}
    plan = planned({**where, "capacity": ["spot", "on_demand"]}, catalog=catalog)
    assert plan.choice.use == "on_demand"
    assert plan.skipped == (
        "spot: nothing fits; g6.xlarge: spot $0.80/h is no less than on demand in us-east-1",
    )


@pytest.mark.parametrize("memory", [16, 24, 40, 48, 80, 141])
def test_field_3b_24_machines_are_selected_by_gpu_memory_without_naming_a_model(
    memory: int,
) -> None:
    plan = planned({"gpu": {"memory": f"{memory}GB"}})
    assert best(plan).type.memory_class_gb >= memory
    assert all(v.type.memory_class_gb >= memory for v in plan.order)
    small = [v for v in plan.verdicts if v.type.memory_class_gb < memory]
    assert all("gpu_memory" in rules_of(v) for v in small)


def test_field_3b_25_the_whole_decision_is_in_every_plan() -> None:
    for fields in ({}, {"gpu": {"count": 64}}, {"tier": "mid", "capacity": "spot"}):
        document: Any = plan_document(plan_declaration(declared({"job": fields}), load()))
        (found,) = document["workloads"]
        assert found["counts"]["considered"] == len(load().rows(DEPLOYABLE))
        assert found["chosen"] or found["relaxations"]
        assert found["nearest_misses"]


@pytest.mark.parametrize(("model", "count"), [("V100", 4), ("V100", 8), ("A100", 16), ("L4", 8)])
def test_field_3b_26_counts_are_the_catalogues(model: str, count: int) -> None:
    plan = planned({"gpu": {"models": [model], "count": count}})
    counts = {v.machine.gpus for v in plan.order}
    assert count in counts
    assert min(counts) >= count


def test_field_3b_27_several_candidates_stand_in_order() -> None:
    plan = planned({"clouds": ["gcp"], "gpu": {"memory": "16GB"}})
    confirmed = [v.total for v in plan.order if v.confirmed and v.total is not None]
    assert len(confirmed) > 5
    assert all(a <= b for a, b in pairwise(confirmed))


def test_field_3b_28_the_memory_of_a_model_is_known_before_anything_runs() -> None:
    plan = planned({"model": {"name": "llama-3.1-8b", "precision": "bf16", "context_tokens": 8192}})
    sizing = best(plan).machine.sizing
    assert sizing is not None
    assert 15 < sizing.needed_gib < 20
    assert {p.name for p in sizing.parts} >= {"weights", "kv_cache"}


def test_field_3b_29_the_memory_of_a_model_becomes_a_machine_that_holds_it() -> None:
    model = {"precision": "bf16", "context_tokens": 8192}
    small, large = (
        best(planned({"model": {**model, "name": name}}))
        for name in ("llama-3.2-1b", "llama-3.1-70b")
    )
    for found in (small, large):
        assert found.machine.sizing is not None
        assert found.machine.sizing.fits(found.type.usable_gib)
    assert (small.total or 0) < (large.total or 0)


PROGRAM = (
    "import gputier; from gputier.plan import plan_workload; from gputier.catalog import load;"
    "print(plan_workload('x', gputier.Workload(tier='mid'), load()).chosen.verdict.type.name)"
)


def test_field_3b_32_planning_needs_no_account_and_no_home(tmp_path: Path) -> None:
    python = {k: v for k, v in os.environ.items() if k in {"PATH", "SYSTEMROOT", "VIRTUAL_ENV"}}
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        env={**python, "HOME": str(tmp_path)},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == best(planned({"tier": "mid"})).type.name
    assert list(tmp_path.iterdir()) == []


def test_field_3b_32a_at_one_price_the_machine_with_more_memory_is_taken() -> None:
    small, large = row("aws", "g6.xlarge"), row("aws", "g6.2xlarge")
    assert (small.memory_gib or 0) < (large.memory_gib or 0)
    prices = {("aws", t.name, "on_demand"): {"us-east-1": 1.0} for t in (small, large)}
    catalog = Doctored(only=[("aws", small.name), ("aws", large.name)], prices=prices)
    assert best(planned({}, catalog=catalog)).type.name == large.name


@pytest.mark.parametrize(
    "fields",
    [
        {"max_usd_per_hour": 1},
        {"disk": {"scratch": "1GB"}},
        {"gpu": {"exclude": ["T4"]}},
        {"cpu": {"count": 1}},
        {"memory": "1GiB"},
        {"network": {"bandwidth": "100Mbps"}},
        {"scale": {"max": 3}},
    ],
    ids=lambda f: next(iter(f)),
)
def test_field_3b_32b_one_bound_alone_leaves_offers(fields: dict[str, Any]) -> None:
    assert len(planned(fields).order) > 5


# ---- 3C: capacity, as far as picking and prices go -----------------------------------------


def test_field_3c_33_all_zones_of_the_region_that_sell_the_type_are_listed() -> None:
    plan = planned({"regions": {"aws": ["us-east-1"]}, "clouds": ["aws"]})
    found = best(plan)
    assert plan.chosen is not None
    assert len(plan.chosen.zones) > 1
    assert plan.chosen.zones == load().zones("aws", found.type.name)["us-east-1"]


def test_field_3c_39_types_are_tried_in_the_declared_order() -> None:
    region = "ap-southeast-2"
    assert region not in load().zones("aws", "g7e.2xlarge")
    where = {"regions": {"aws": [region]}, "clouds": ["aws"]}
    ways = [{"use": "spot", "instance_type": n} for n in ("g7e.2xlarge", "g6.2xlarge", "g6.xlarge")]
    plan = planned({**where, "capacity": ways})
    assert best(plan).type.name == "g6.2xlarge", "the cheaper g6.xlarge comes later in the list"
    (skipped,) = plan.skipped
    assert skipped.startswith("spot: nothing fits; g7e.2xlarge: sold in ")


def test_field_3c_43_the_start_of_a_capacity_block_is_part_of_the_plan() -> None:
    block = held("p5.48xlarge", "use1-az4", 2, use="capacity_block", start="2026-11-01T11:30:00Z")
    capacity = block.model_dump(exclude_none=True)
    made = plan_declaration(declared({"job": {"capacity": capacity}}), load())
    document: Any = plan_document(made)
    assert document["workloads"][0]["capacity"]["start"] == "2026-11-01T11:30:00Z"
    assert made.workloads[0].choice.start == "2026-11-01T11:30:00Z"


@pytest.mark.parametrize(
    ("name", "zone", "region"),
    [("p5.48xlarge", "use1-az4", "us-east-1"), ("g6.12xlarge", "us-east-1b", "us-east-1")],
)
def test_field_3c_45_an_on_demand_reservation_is_a_way_to_buy(
    name: str, zone: str, region: str
) -> None:
    found = best(planned({"capacity": held(name, zone, 3)}))
    assert (found.type.name, found.region, found.zones) == (name, region, (zone,))
    assert found.per_machine == in_file("aws", region, name, "on_demand")


@pytest.mark.parametrize("name", ["a3-ultragpu-8g", "g2-standard-4"])
def test_field_3c_49_reservations_work_on_gcp_as_well(name: str) -> None:
    region, zones = next(iter(load().zones("gcp", name).items()))
    found = best(planned({"capacity": held(name, zones[0], 2)}))
    assert (found.type.name, found.region, found.machine.nodes) == (name, region, 2)


def test_field_3c_50_capacity_blocks_are_a_way_to_buy_without_a_list_price() -> None:
    plan = planned({"capacity": held("p5.48xlarge", "use1-az4", 2, use="capacity_block")})
    assert best(plan).use == "capacity_block"
    assert plan.chosen is not None
    assert plan.chosen.usd_per_hour is None
    assert plan.chosen.network.placement == "none"


def test_field_3c_51_flex_start_is_a_plain_switch() -> None:
    plan = planned({"capacity": "flex_start", "gpu": {"models": ["H100"]}})
    assert best(plan).use == "flex_start"
    assert best(plan).type.family.startswith("a3")


def test_field_3c_53_prices_of_one_plan_never_leak_into_the_next() -> None:
    fields = {"tier": "mid", "clouds": ["aws"]}
    before = plan_text(planned(fields))
    planned(fields, discounts=[discount(90, "g6", "g5", "g6e")])
    planned({**fields, "capacity": {"use": "spot", "on_demand_base": 1}})
    planned({**fields, "max_usd_per_hour": 0.01})
    assert plan_text(planned(fields)) == before


def plan_text(plan: WorkloadPlan) -> str:
    rows = [(v.type.name, v.region, v.total, rules_of(v)) for v in plan.verdicts]
    return json.dumps([rows, best(plan).type.name])


def test_field_3c_54_spot_is_never_taken_at_or_above_on_demand() -> None:
    for fields in ({}, {"gpu": {"count": 8}}, {"gpu": {"models": ["H100"]}}):
        for found in planned({**fields, "capacity": "spot", "clouds": ["aws"]}).order:
            full = load().price("aws", found.type.name, found.region, "on_demand")
            if full is not None and found.total is not None:
                assert found.total < full.usd_per_hour


# ---- 3D: prices ----------------------------------------------------------------------------


def test_field_3d_63_a_discount_is_an_input() -> None:
    plain = planned({"capacity": {"use": "on_demand", "instance_type": "g6.xlarge"}})
    less = planned(plain.need.workload, discounts=[discount(20, "g6")])
    assert best(less).total == pytest.approx(0.8 * (best(plain).total or 0))


def test_field_3d_64_savings_plans_count_in_the_choice_and_not_only_in_the_bill() -> None:
    fields = {"gpu": {"count": 8, "memory": "80GB"}, "clouds": ["aws"]}
    plain, less = planned(fields), planned(fields, discounts=[discount(80, "p5")])
    assert best(plain).type.family != "p5"
    assert best(less).type.family == "p5"


def test_field_3d_65_a_ceiling_per_hour_rejects_what_is_dearer() -> None:
    plan = planned({"gpu": {"memory": "24GB"}, "max_usd_per_hour": 1.0})
    assert plan.order
    assert all((v.per_machine or 9) <= 1.0 for v in plan.order)
    dearer = of(plan, "aws", "g6.48xlarge")
    assert rules_of(dearer) == ["price_ceiling"]


def test_field_3d_66_a_budget_is_held_against_the_whole_month() -> None:
    plan = planned({"clouds": ["aws"], "budget": {"usd_per_month": 10}})
    assert plan.chosen is not None
    assert plan.chosen.budget is not None
    assert plan.chosen.budget.exceeded


def test_field_3d_67_an_l4_on_gcp_is_priced() -> None:
    plan = planned({"gpu": {"models": ["L4"]}, "clouds": ["gcp"]})
    assert best(plan).type.name == "g2-standard-4"
    assert all(v.total for v in plan.order)


@pytest.mark.parametrize("cloud", ["aws", "gcp"])
def test_field_3d_69_spot_is_priced_as_spot(cloud: str) -> None:
    plan = planned({"capacity": "spot", "clouds": [cloud], "gpu": {"models": ["L4"]}})
    found = best(plan)
    spot, full = (in_file(cloud, found.region, found.type.name, p) for p in ("spot", "on_demand"))
    assert found.total == spot
    assert spot < full


@pytest.mark.parametrize(
    ("model", "accelerator"),
    [("T4", "nvidia-tesla-t4"), ("V100", "nvidia-tesla-v100"), ("P100", "nvidia-tesla-p100"),
     ("P4", "nvidia-tesla-p4")],
)  # fmt: skip
def test_field_3d_70_an_attached_spot_gpu_costs_the_spot_gpu_and_the_spot_host(
    model: str, accelerator: str
) -> None:
    where = {"clouds": ["gcp"], "regions": {"gcp": ["us-central1"]}}
    found = best(planned({**where, "capacity": "spot", "gpu": {"models": [model]}}))
    host = in_file("gcp", "us-central1", found.machine.instance_type, "spot")
    each = in_file("gcp", "us-central1", f"accelerator:{accelerator}", "spot")
    assert found.total == pytest.approx(host + found.type.attached_count * each)


def test_field_3d_71_a_mixed_or_growing_fleet_shows_its_range() -> None:
    capacity = {"use": "spot", "on_demand_base": 1, "instance_type": "g6.xlarge"}
    where = {"clouds": ["aws"], "regions": {"aws": ["us-east-1"]}}
    plan = planned({**where, "capacity": capacity, "scale": {"min": 2, "max": 6}})
    full, spot = (in_file("aws", "us-east-1", "g6.xlarge", p) for p in ("on_demand", "spot"))
    assert plan.chosen is not None
    assert plan.chosen.usd_per_month == pytest.approx((full + spot) * 730)
    assert plan.chosen.usd_per_month_at_max == pytest.approx((full + 5 * spot) * 730)


# ---- rows tested with the data that selection must honour too -------------------------------


def test_hardware_nobody_knows_is_an_answer_and_not_a_crash() -> None:
    with pytest.raises(InvalidInput, match="NVIDIA"):
        planned({"gpu": {"models": ["inferentia2"]}})


def test_a_known_gpu_that_no_cloud_sells_ends_in_a_ledger() -> None:
    plan = planned({"gpu": {"models": ["L40"]}})
    assert plan.chosen is None
    assert all("gpu_model" in rules_of(v) for v in plan.verdicts)


def test_a_machine_with_exactly_the_memory_asked_for_qualifies() -> None:
    plan = planned({"memory": "2048GiB", "gpu": {"models": ["H100"]}})
    assert of(plan, "aws", "p5.48xlarge").accepted
    more = planned({"memory": "2049GiB", "gpu": {"models": ["H100"]}})
    assert rules_of(of(more, "aws", "p5.48xlarge")) == ["host_memory"]
