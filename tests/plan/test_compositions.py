"""What a candidate is made of: the N1 host, the number of machines, the disks that are attached."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from typing import Any

import pytest
from tests.plan.world import ask_of, best, held, machine, of, planned, row, rules_of

from gputier import sizing
from gputier.catalog import InstanceType, load
from gputier.plan.machine import Machine
from gputier.plan.market import places
from gputier.plan.price import cost_of
from gputier.plan.reasons import Context
from gputier.plan.select import Ask, active_checks, verdict

LLAMA_8B = {"name": "llama-3.1-8b", "precision": "bf16", "context_tokens": 8192}

# ---- N1: which host carries the GPUs --------------------------------------------------------

N1_FLOORS: dict[str, dict[str, Any]] = {
    "no floor": {},
    "vCPU": {"cpu": {"count": 6}},
    "memory": {"memory": "20GiB"},
    "both": {"cpu": {"count": 16}, "memory": "100GiB"},
    "more memory than most": {"memory": "300GiB"},
    "entry": {"tier": "entry"},
    "with scratch": {"disk": {"scratch": "700GB"}, "cpu": {"count": 8}},
    "one region": {"regions": {"gcp": ["europe-west4"]}, "cpu": {"count": 4}},
    "with a ceiling": {"max_usd_per_hour": 0.5},
}


@pytest.mark.parametrize("use", ["on_demand", "spot"])
@pytest.mark.parametrize("floors", N1_FLOORS)
def test_an_n1_rows_composition_is_the_best_of_all_hosts_regions_and_disks(
    floors: str, use: str
) -> None:
    ask = ask_of({**N1_FLOORS[floors], "clouds": ["gcp"], "capacity": use})
    active = active_checks(ask.need)
    accepted = 0
    for type_ in load().rows(["gcp"]):
        if type_.vcpu_range is None:
            continue
        found = verdict(ask, type_, active)
        fitting = sorted(brute_force(ask, type_))
        assert found.accepted == bool(fitting), (type_.name, found.reasons)
        if fitting:
            accepted += 1
            assert found.total == pytest.approx(fitting[0][0]), type_.name
            names = {name for price, name in fitting if price <= fitting[0][0] + 1e-9}
            assert found.machine.instance_type in names
    assert accepted


def brute_force(ask: Ask, type_: InstanceType) -> Iterator[tuple[float, str]]:
    """(price, host) of every host × number of disks × region in which all rules are met."""
    assert type_.vcpu_range is not None
    assert type_.memory_range is not None
    floor_gib = ask.need.memory_floor_gib
    regions = places(ask.catalog, type_, ask.market, ask.choice).regions
    disk_counts = (0, *type_.attachable_ssd_counts) if "scratch" in ask.need.floors else (0,)
    for host, disks in product(ask.catalog.hosts(), disk_counts):
        low, high = type_.vcpu_range
        least, most = type_.memory_range
        if not (low <= host.vcpus <= high and least <= host.memory_gib <= most):
            continue
        m = machine(type_, on=host.name, ssds=disks, memory_floor_gib=floor_gib)
        context = Context(burst=False, several_nodes=False)
        card = ask.catalog.gpus[type_.gpu_model]
        if any(check(floor, m, card, context) for check, floor in active_checks(ask.need)):
            continue
        for region, zones in regions.items():
            if zones and not room_in(type_, zones, m):
                continue
            cost = cost_of(ask.catalog, m, region, ask.choice, (), 1)
            if cost.total is None or cost.basis.startswith("borrowed"):
                continue
            if all(cost.total <= ceiling for ceiling in ask.ceilings.values()):
                yield cost.total, host.name


def room_in(type_: InstanceType, zones: tuple[str, ...], m: Machine) -> bool:
    caps = {cap.zone: cap for cap in type_.zone_caps}
    return any(
        zone not in caps
        or ((m.vcpus or 0) <= caps[zone].vcpus and (m.memory_gib or 0) <= caps[zone].memory_gib)
        for zone in zones
    )


def capped() -> list[tuple[str, str]]:
    return [(t.name, cap.zone) for t in load().rows(["gcp"]) for cap in t.zone_caps]


@pytest.mark.parametrize(("name", "zone"), capped())
def test_a_host_larger_than_a_zones_cap_is_not_offered_there(name: str, zone: str) -> None:
    fields = {"zones": [zone], "clouds": ["gcp"]}
    small = of(planned({**fields, "cpu": {"count": 64}}), "gcp", name)
    assert small.accepted
    assert (small.machine.vcpus, small.zones) == (64, (zone,))
    large = of(planned({**fields, "cpu": {"count": 65}}), "gcp", name)
    assert [(r.rule, r.needed, r.has) for r in large.reasons] == [
        (
            "availability",
            f"96 vCPU and {large.machine.memory_gib:g} GiB",
            "at most 64 vCPU and 208 GiB in the allowed zones",
        )
    ]


def test_a_region_keeps_only_the_zones_with_room_for_the_host() -> None:
    name = "n1+nvidia-tesla-p100x4"
    region = "us-east1"
    zones = load().zones("gcp", name)[region]
    capped_here = {cap.zone for cap in row("gcp", name).zone_caps} & set(zones)
    assert capped_here
    assert capped_here < set(zones)
    plan = planned({"cpu": {"count": 96}, "regions": {"gcp": [region]}, "clouds": ["gcp"]})
    found = of(plan, "gcp", name)
    assert found.accepted
    assert set(found.zones) == set(zones) - capped_here


# ---- nodes ---------------------------------------------------------------------------------

TRAINED = {"name": "llama-3.1-70b", "context_tokens": 4096,
           "training": {"method": "full", "gradient_checkpointing": "full"}}  # fmt: skip


def test_training_takes_the_fewest_machines_that_hold_the_model() -> None:
    plan = planned({"purpose": "training", "model": TRAINED})
    several = [v for v in plan.order if v.machine.nodes > 1]
    assert several
    workload = plan.need.workload
    for found in several:
        gpus, nodes, usable = found.machine.gpus, found.machine.nodes, found.type.usable_gib
        enough = sizing.size(workload, gpus=gpus * nodes)
        fewer = sizing.size(workload, gpus=gpus * (nodes - 1))
        assert enough is not None
        assert fewer is not None
        assert enough.fits(usable)
        assert not fewer.fits(usable)
        assert found.machine.sizing == enough
        assert found.cost is not None
        assert found.cost.machines == nodes


def test_what_would_need_more_than_64_machines_does_not_fit() -> None:
    plan = planned({"purpose": "training", "model": {**TRAINED, "name": "llama-3.1-405b"},
                    "gpu": {"models": ["T4"]}})  # fmt: skip
    assert all(v.machine.nodes <= 64 for v in plan.verdicts)
    assert "model_fit" in rules_of(of(plan, "aws", "g4dn.xlarge"))


@pytest.mark.parametrize(
    ("fields", "nodes", "machines"),
    [
        ({}, 1, 1),
        ({"nodes": 3}, 3, 3),
        ({"scale": {"min": 2, "max": 5}}, 1, 2),
        ({"scale": {"min": 0, "max": 5}}, 1, 1),
        ({"scale": {"max": 5}}, 1, 1),
        ({"capacity": held("g6.xlarge", "use1-az4", 4)}, 4, 4),
        ({"capacity": held("g6.xlarge", "use1-az4", 4), "nodes": 2}, 2, 2),
    ],
    ids=str,
)
def test_how_many_machines_work_together_and_how_many_are_paid(
    fields: dict[str, Any], nodes: int, machines: int
) -> None:
    found = best(planned(fields))
    assert found.machine.nodes == nodes
    assert found.cost is not None
    assert found.cost.machines == machines
    assert found.total == pytest.approx(machines * (found.per_machine or 0))


def test_inference_of_what_no_machine_holds_is_not_spread_over_several() -> None:
    plan = planned({"model": {**LLAMA_8B, "name": "llama-3.1-405b"}, "gpu": {"models": ["L4"]}})
    assert plan.chosen is None
    assert {v.machine.nodes for v in plan.verdicts} == {1}


# ---- attached local SSD --------------------------------------------------------------------


@pytest.mark.parametrize("scratch", [None, "300GB", "375GiB", "376GiB", "1TB", "3TB"])
@pytest.mark.parametrize("speed", [None, "500MB/s", "1GB/s", "2GB/s"])
def test_the_fewest_permitted_disks_that_meet_size_and_speed_are_attached(
    scratch: str | None, speed: str | None
) -> None:
    disk = {k: v for k, v in (("scratch", scratch), ("throughput", speed)) if v}
    ask = ask_of({"disk": disk, "clouds": ["gcp"]})
    active = active_checks(ask.need)
    attachable = [t for t in load().rows(["gcp"]) if t.attachable_ssd_counts]
    assert len(attachable) > 20
    for type_ in attachable:
        found = verdict(ask, type_, active)
        enough = [
            count for count in (0, *type_.attachable_ssd_counts) if holds(ask, found.machine, count)
        ]
        broken = {"scratch", "disk_throughput"} & set(rules_of(found))
        assert bool(enough) == (not broken), type_.name
        if enough:
            assert found.machine.ssd_count == min(enough), type_.name


def holds(ask: Ask, m: Machine, count: int) -> bool:
    """Whether so many disks meet both floors, counted here by hand: 375 GiB and 500 MB/s each."""
    scratch, speed = ask.need.floors.get("scratch"), ask.need.floors.get("disk_throughput")
    gib = count * 375 + (m.type.local_nvme_gib or 0)
    mb_s = 500 * (count + (m.type.local_nvme_count or 0))
    return (scratch is None or (gib > 0 and gib >= scratch.number)) and (
        speed is None or mb_s >= speed.number
    )


def test_without_a_floor_nothing_is_attached() -> None:
    assert {v.machine.ssd_count for v in planned({"clouds": ["gcp"]}).verdicts} == {0}


def test_attached_disks_are_in_the_price_that_ranks() -> None:
    fields = {
        "clouds": ["gcp"],
        "capacity": {"use": "on_demand", "instance_type": "g2-standard-12"},
    }
    without, with_ = best(planned(fields)), best(planned({**fields, "disk": {"scratch": "300GB"}}))
    assert with_.machine.ssd_count == 1
    assert with_.cost is not None
    assert with_.total == pytest.approx((without.total or 0) + with_.cost.scratch)
    assert with_.cost.scratch > 0
