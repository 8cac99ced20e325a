"""Volumes on Google: which kind, what it is set to and costs, and what none can be."""

from __future__ import annotations

from typing import Any

import pytest
from tests.plan.world import machine, planned, row

from gputier.catalog import load
from gputier.catalog.disks import Most
from gputier.errors import InvalidInput
from gputier.plan import Chosen, Volume
from gputier.plan.disks_gcp import disk_problems, kind_of, parts_of, settings_of


def chosen(name: str, **fields: Any) -> Chosen:
    capacity: dict[str, Any] = {"use": "on_demand", "instance_type": name}
    plan = planned({"clouds": ["gcp"], "capacity": capacity, **fields})
    assert plan.chosen is not None, [v.reasons for v in plan.relaxations]
    return plan.chosen


def data(name: str, **disk: Any) -> Volume:
    found = chosen(name, disk=disk).storage.data
    assert found
    return found


@pytest.mark.parametrize(
    ("disk", "kind"),
    [
        ({"data": "500GiB"}, "pd-balanced"),
        ({"data": "500GiB", "throughput": "280MB/s"}, "pd-balanced"),  # 140 + 0.28 * 500
        ({"data": "500GiB", "throughput": "281MB/s"}, "pd-ssd"),
        ({"data": "500GiB", "iops": 6000}, "pd-balanced"),  # 3,000 + 6 * 500
        ({"data": "500GiB", "iops": 6001}, "pd-ssd"),
    ],
    ids=str,
)
def test_the_cheapest_kind_that_gives_the_speed_at_this_size_is_taken(
    disk: dict[str, Any], kind: str
) -> None:
    found = data("g2-standard-16", **disk)
    assert found.kind == kind
    assert (found.iops, found.throughput_mb_s) == (None, None), "it follows from the size"


def test_another_kind_costs_what_it_costs() -> None:
    fields: dict[str, Any] = {"disk": {"data": "500GiB", "iops": 9000}}
    usd = chosen("g2-standard-16", **fields).around_usd_per_month["disk"]
    assert usd == pytest.approx(100 * 0.10 + 500 * 0.17)


def test_local_ssds_are_not_bought_where_the_data_volume_gives_the_speed() -> None:
    found = chosen("g2-standard-16", disk={"data": "1000GiB", "throughput": "400MB/s"})
    assert found.verdict.machine.ssd_count == 0
    only = chosen("g2-standard-16", disk={"throughput": "400MB/s"})
    assert only.verdict.machine.ssd_count == 1


def test_a_tier_s_speed_is_of_local_ssds_and_makes_no_disk_larger() -> None:
    found = chosen("g2-standard-16", tier="mid")
    assert found.verdict.machine.ssd_count == 1
    assert found.storage.root == Volume("pd-balanced", 100, None, None, "/dev/sda1", None, False)


REFUSED: dict[str, tuple[dict[str, Any], str, str]] = {
    "too small at all": (
        {"data": "5GiB"}, "a pd-balanced volume is 10 GiB at least, and this is 5",
        "`disk.data: 10GiB`",
    ),
    "too large": (
        {"data": "100TB"}, "a pd-balanced volume is 65,536 GiB at most, and this is 93,133",
        "less, or `disk.scratch` for local NVMe",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_what_no_volume_can_be_is_refused_with_the_size_that_can(name: str) -> None:
    disk, message, hint = REFUSED[name]
    with pytest.raises(InvalidInput) as caught:
        chosen("g2-standard-16", disk=disk)
    (problem,) = caught.value.problems
    assert (problem.path, problem.message, problem.hint) == ("disk.data", message, hint)


def test_a_machine_is_taken_only_where_a_volume_of_the_declared_size_gives_the_speed() -> None:
    """Another cloud's machine may; on this one the reason says how much there would be."""
    only: dict[str, Any] = {"use": "on_demand", "instance_type": "g2-standard-16"}
    asked: dict[str, Any] = {"clouds": ["gcp"], "capacity": only}
    small = planned({**asked, "disk": {"data": "466GiB", "iops": 20000}})
    assert small.chosen is None
    (reason,) = small.relaxations[0].reasons
    assert (reason.rule, reason.has) == ("disk_iops", "19,980 IOPS sustained")
    assert planned({**asked, "disk": {"data": "467GiB", "iops": 20000}}).chosen


def test_what_a_volume_cannot_give_local_ssds_do() -> None:
    found = chosen("g2-standard-16", disk={"data": "100GiB", "throughput": "500MB/s"})
    assert found.verdict.machine.ssd_count == 1
    assert found.storage.data is not None
    assert found.storage.data.kind == "pd-balanced"


def test_a_machine_that_takes_no_more_is_not_chosen() -> None:
    only: dict[str, Any] = {"use": "on_demand", "instance_type": "g2-standard-4"}
    for disk in ({"data": "9TiB", "throughput": "900MB/s"}, {"data": "9TiB", "iops": 15001}):
        plan = planned({"clouds": ["gcp"], "capacity": only, "disk": disk})
        assert plan.chosen is None


def test_an_n1_machine_takes_what_its_vcpus_are_for() -> None:
    t4 = row("gcp", "n1+nvidia-tesla-t4x1")
    assert machine(t4, on="n1-standard-4").volume_mb_s == 240
    assert machine(t4, on="n1-standard-16").volume_iops == 20_000


def test_a_hyperdisk_is_set_to_what_is_in_its_price_and_more_is_billed() -> None:
    root = chosen("g4-standard-48").storage.root
    assert (root.kind, root.iops, root.throughput_mb_s) == ("hyperdisk-balanced", 3000, 140)
    catalog, kind = load(), "hyperdisk-balanced"
    assert settings_of(catalog, kind, Most(1000, 0)) == (4000, 1000)  # four IOPS to each MiB/s
    assert dict(parts_of(catalog, kind, 500, (4000, 1000))) == {
        kind: 500, f"{kind}-iops": 1000, f"{kind}-throughput": 860,
    }  # fmt: skip


def test_a_kind_is_not_counted_on_where_nobody_knows_what_the_machine_takes_of_it() -> None:
    a3 = machine(row("gcp", "a3-highgpu-8g"))
    assert "hyperdisk-balanced" in a3.type.boot_volumes
    assert kind_of(load(), a3, 200, Most(800, 0)) == "pd-ssd"
    (problem,) = disk_problems(load(), a3, ("pd-ssd", 200), Most(800, 0))
    assert problem.hint == "`disk.data: 1167GiB`, or less speed"
