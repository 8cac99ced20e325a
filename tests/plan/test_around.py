"""What stands around the machines, month by month: every figure here is computed by hand from the
item prices of the data (us-east-1 and us-central1 have their own, other regions borrow them)."""

from __future__ import annotations

from typing import Any

import pytest
from tests.plan.world import Doctored, declared, planned

from gputier.catalog import load
from gputier.plan import AROUND, Chosen, StackPlan, plan_declaration

AWS, GCP = "us-east-1", "us-central1"
NIGHTS = [{"start": "0 20 * * *", "stop": "0 6 * * *", "timezone": "UTC"}]  # 10 hours a day
HOURS_OF_NIGHTS = 10 * 1461 / 48  # over four years of 48 months


def chosen(instance_type: str, environment: str = "dev", **fields: Any) -> Chosen:
    """A plan on one named machine in the region whose items have prices of their own."""
    cloud = "gcp" if "-" in instance_type.split(".")[0] else "aws"
    base = {
        "capacity": {"use": "on_demand", "instance_type": instance_type},
        "clouds": [cloud],
        "regions": {cloud: [AWS if cloud == "aws" else GCP]},
    }
    plan = planned({**base, **fields}, environment=environment)
    assert plan.chosen is not None, [v.reasons for v in plan.relaxations]
    return plan.chosen


def test_the_parts_around_a_machine_are_always_the_same_six() -> None:
    assert tuple(chosen("g6.xlarge").around_usd_per_month) == AROUND
    assert AROUND == ("disk", "nat", "endpoints", "ipv4", "metrics", "licence")


# ---- disks ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("disk", "usd"),
    [
        ({}, 100 * 0.08),
        ({"data": "500GiB"}, (100 + 500) * 0.08),
        ({"data": "500GiB", "throughput": "125MB/s"}, (100 + 500) * 0.08),
        ({"data": "500GiB", "throughput": "525MB/s"}, (100 + 500) * 0.08 + 400 * 0.04),
        ({"data": "500GiB", "iops": 3000}, (100 + 500) * 0.08),
        ({"data": "500GiB", "iops": 8000}, (100 + 500) * 0.08 + 5000 * 0.005),
        # A quarter of a MB/s per IOPS is the most: 850 MB/s need 3,400 of them.
        (
            {"data": "500GiB", "throughput": "850MB/s"},
            (100 + 500) * 0.08 + 725 * 0.04 + 400 * 0.005,
        ),
        ({"data": "500GB"}, (100 + 466) * 0.08),  # 465.66 GiB, and volumes are whole ones
        ({"data": "500GiB", "kms_key": "alias/gpu"}, (100 + 500) * 0.08),
        ({"data": "500GiB", "kms_key": "create"}, (100 + 500) * 0.08 + 1.0),
        ({"iops": 8000, "throughput": "525MB/s"}, 100 * 0.08 + 400 * 0.04 + 5000 * 0.005),
        ({"scratch": "300GB"}, 100 * 0.08),
    ],
)
def test_gp3_volumes_cost_size_and_what_goes_beyond_the_included_speed(
    disk: dict[str, Any], usd: float
) -> None:
    found = chosen("g6.4xlarge", disk=disk)
    assert found.around_usd_per_month["disk"] == pytest.approx(usd)
    assert found.storage.kind == "gp3"


def test_a_data_volume_is_set_to_what_the_tier_asks_where_no_nvme_gives_it() -> None:
    fields: dict[str, Any] = {
        "tier": "mid",
        "cpu": {"architecture": "arm64", "count": 4},
        "memory": "8GiB",
        "gpu": {"memory": "16GB"},
        "network": {"bandwidth": "1Gbps"},
        "disk": {"data": "500GiB"},
    }
    found = chosen("g5g.8xlarge", **fields)
    assert found.storage.scratch_gib == 0
    assert found.storage.throughput_mb_s == 500
    assert found.around_usd_per_month["disk"] == pytest.approx(600 * 0.08 + 375 * 0.04)


def test_a_tiers_disk_speed_that_local_nvme_gives_costs_nothing_on_the_volume() -> None:
    found = chosen("g6.4xlarge", tier="mid", disk={"data": "500GiB"})
    assert found.storage.throughput_mb_s is None
    assert found.around_usd_per_month["disk"] == pytest.approx(600 * 0.08)


@pytest.mark.parametrize(
    ("fields", "root", "data", "persist"),
    [
        # A group's volumes come and go with its machines; a lone desk keeps them while stopped.
        ({"purpose": "inference"}, "hours", "hours", False),
        ({"purpose": "inference", "disk": {"data": "500GiB", "persist": True}},
         "hours", "month", True),
        ({"purpose": "development"}, "month", "month", True),
        ({"purpose": "vdi"}, "month", "month", True),
        ({"purpose": "development", "disk": {"data": "500GiB", "persist": False}},
         "month", "hours", False),
        ({"purpose": "development", "nodes": 2}, "hours", "hours", False),
        ({"purpose": "development", "scale": {"min": 1, "max": 2}}, "hours", "hours", False),
    ],
    ids=str,
)  # fmt: skip
def test_volumes_are_paid_for_the_hours_they_exist(
    fields: dict[str, Any], root: str, data: str, persist: bool
) -> None:
    part = {"hours": HOURS_OF_NIGHTS / 730, "month": 1.0}
    asked: dict[str, Any] = {"disk": {"data": "500GiB"}, **fields}
    found = chosen("g6.4xlarge", schedule=NIGHTS, **asked)
    machines = found.scaling.min
    usd = machines * (100 * 0.08 * part[root] + 500 * 0.08 * part[data])
    assert found.around_usd_per_month["disk"] == pytest.approx(usd)
    assert found.storage.persist == persist
    assert any("data volume stays" in note for note in found.notes) == persist


@pytest.mark.parametrize(
    ("name", "kind", "each"),
    [("g2-standard-4", "pd-balanced", 0.1), ("g4-standard-48", "hyperdisk-balanced", 0.08)],
)
def test_gcp_volumes_are_of_the_kind_the_family_takes(name: str, kind: str, each: float) -> None:
    found = chosen(name, disk={"data": "200GiB"})
    assert found.storage.kind == kind
    assert found.around_usd_per_month["disk"] == pytest.approx(300 * each)


def test_volumes_of_a_cloud_without_item_prices_are_unknown_and_not_free() -> None:
    plan = planned({"clouds": ["azure"]})
    assert plan.chosen is not None
    assert plan.chosen.around_usd_per_month["disk"] is None
    assert plan.chosen.around_total is None


# ---- the way out ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("environment", "fields", "gateways"),
    [
        ("dev", {}, 1),
        ("prod", {}, 3),  # the region's zones, three at most
        ("prod", {"zones": ["use1-az1"]}, 1),
        ("prod", {"zones": ["use1-az1", "use1-az2"]}, 2),
    ],
)
def test_prod_has_a_nat_gateway_and_its_address_in_each_zone(
    environment: str, fields: dict[str, Any], gateways: int
) -> None:
    found = chosen("g6.xlarge", environment, **fields)
    around = found.around_usd_per_month
    assert around["nat"] == pytest.approx(gateways * 0.045 * 730)
    assert around["ipv4"] == pytest.approx(gateways * 0.005 * 730)
    assert around["endpoints"] == 0


@pytest.mark.parametrize("machines", [1, 4, 40])
def test_gcp_bills_its_nat_by_machine_up_to_32_and_one_address(machines: int) -> None:
    around = chosen("g2-standard-4", nodes=machines).around_usd_per_month
    assert around["nat"] == pytest.approx(min(machines, 32) * 0.0014 * 730)
    assert around["ipv4"] == pytest.approx(0.005 * 730)


@pytest.mark.parametrize("name", ["g6.xlarge", "g2-standard-4"])
def test_public_machines_pay_an_address_each_for_the_hours_they_run(name: str) -> None:
    around = chosen(name, nodes=3, network={"egress": "public"}, hours_per_month=200)
    assert around.around_usd_per_month["nat"] == 0
    assert around.around_usd_per_month["ipv4"] == pytest.approx(3 * 200 * 0.005)


@pytest.mark.parametrize(("environment", "zones"), [("dev", 3), ("prod", 3)])
def test_endpoints_are_paid_in_each_zone_and_need_no_gateway(environment: str, zones: int) -> None:
    around = chosen("g6.xlarge", environment, network={"egress": "endpoints"}).around_usd_per_month
    assert around["endpoints"] == pytest.approx(7 * zones * 0.01 * 730)
    assert (around["nat"], around["ipv4"]) == (0, 0)


def test_endpoints_of_gcp_are_free() -> None:
    around = chosen("g2-standard-4", network={"egress": "endpoints"}).around_usd_per_month
    assert (around["endpoints"], around["nat"], around["ipv4"]) == (0, 0, 0)


@pytest.mark.parametrize("egress", ["nat", "endpoints"])
def test_an_adopted_network_costs_nothing_here(egress: str) -> None:
    found = chosen("g6.xlarge", "prod", network={"vpc": "vpc-0abc", "egress": egress})
    around = found.around_usd_per_month
    assert (around["nat"], around["endpoints"], around["ipv4"]) == (0, 0, 0)
    assert found.network.adopted


def test_public_addresses_are_paid_in_an_adopted_network_too() -> None:
    found = chosen("g6.xlarge", network={"vpc": "vpc-0abc", "egress": "public"})
    assert found.around_usd_per_month["ipv4"] == pytest.approx(730 * 0.005)


def stack(workloads: dict[str, dict[str, Any]]) -> StackPlan:
    here = {"clouds": ["aws"], "regions": {"aws": [AWS]}}
    return plan_declaration(declared({k: {**here, **w} for k, w in workloads.items()}), load())


def nats(plan: StackPlan) -> list[float | None]:
    return [w.chosen.around_usd_per_month["nat"] for w in plan.workloads if w.chosen]


@pytest.mark.parametrize(
    ("workloads", "shares"),
    [
        ({"a": {}, "b": {}}, [1 / 2, 1 / 2]),
        ({"a": {}, "b": {}, "c": {"regions": {"aws": ["us-west-2"]}}}, [1 / 2, 1 / 2, 1]),
        ({"a": {}, "b": {"network": {"egress": "public"}}}, [1, 0]),
        ({"a": {}, "b": {"network": {"egress": "endpoints"}}}, [1, 0]),
        ({"a": {}, "b": {"network": {"vpc": "vpc-0abc"}}}, [1, 0]),
    ],
    ids=["two", "another region", "one public", "one inside", "one adopted"],
)
def test_workloads_of_a_region_share_one_gateway_and_its_cost(
    workloads: dict[str, dict[str, Any]], shares: list[float]
) -> None:
    plan = stack(workloads)
    assert nats(plan) == [pytest.approx(share * 0.045 * 730) for share in shares]
    told = [any("NAT shared" in n for n in w.chosen.notes) for w in plan.workloads if w.chosen]
    assert told == [0 < share < 1 for share in shares]


def test_gcp_workloads_do_not_share_what_is_billed_by_machine() -> None:
    here = {"clouds": ["gcp"], "regions": {"gcp": [GCP]}}
    plan = plan_declaration(declared({"a": here, "b": {**here, "nodes": 2}}), load())
    assert nats(plan) == [pytest.approx(n * 0.0014 * 730) for n in (1, 2)]


# ---- metrics and licences ------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "nodes", "gpus"), [("g6.xlarge", 1, 1), ("g6.12xlarge", 1, 4), ("g6.12xlarge", 3, 4)]
)
def test_metrics_are_four_a_gpu_two_a_machine_and_six_of_the_group_by_the_hour(
    name: str, nodes: int, gpus: int
) -> None:
    found = chosen(name, nodes=nodes, hours_per_month=365)
    assert found.monitoring.metrics == nodes * (4 * gpus + 2) + 6
    series = (nodes * (4 * gpus + 2) + 6) * 0.3 * 365 / 730
    # Five alarms, one of which reads two figures and one more two; a dashboard; both all month.
    assert found.around_usd_per_month["metrics"] == pytest.approx(series + 7 * 0.1 + 3.0)


def test_a_lone_machine_is_watched_by_three_alarms_that_read_one_figure_each() -> None:
    found = chosen("g6.xlarge", purpose="development")
    assert [alarm.key for alarm in found.monitoring.alarms] == ["dead-gpu", "hot", "idle"]
    series = (4 + 2 + 6) * 0.3
    assert found.around_usd_per_month["metrics"] == pytest.approx(series + 3 * 0.1 + 3.0)


def test_a_fleet_that_scales_pays_for_the_two_alarms_of_its_policy() -> None:
    still, moving = chosen("g6.xlarge"), chosen("g6.xlarge", scale={"min": 1, "max": 4})
    more = [c.around_usd_per_month["metrics"] or 0 for c in (moving, still)]
    assert more[0] - more[1] == pytest.approx(0.2)


def test_alarms_without_a_price_leave_the_cost_of_watching_unknown() -> None:
    catalog = Doctored(items={("aws", "alarm-month"): None})
    plan = planned({"clouds": ["aws"]}, catalog=catalog)
    assert plan.chosen is not None
    assert plan.chosen.around_usd_per_month["metrics"] is None


def test_metrics_of_gcp_are_billed_by_volume_which_nobody_knows() -> None:
    assert chosen("g2-standard-4").around_usd_per_month["metrics"] is None


def test_desktops_pay_a_licence_per_gpu_hour_on_gcp() -> None:
    found = chosen("g2-standard-24", purpose="vdi", nodes=2, hours_per_month=100)
    assert found.around_usd_per_month["licence"] == pytest.approx(2 * 2 * 100 * 0.2)


def test_the_licence_of_desktops_elsewhere_is_unknown_and_others_need_none() -> None:
    assert chosen("g6.xlarge", purpose="vdi").around_usd_per_month["licence"] is None
    assert chosen("g6.xlarge", purpose="inference").around_usd_per_month["licence"] == 0


# ---- borrowed ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("cloud", "region", "network", "borrowed"),
    [
        ("aws", AWS, {}, False),
        ("aws", "eu-west-2", {}, True),
        ("gcp", GCP, {}, False),
        ("gcp", "europe-west4", {}, True),
        ("gcp", "europe-west4", {"egress": "public"}, True),
    ],
)
def test_figures_of_another_region_are_said_to_be_borrowed(
    cloud: str, region: str, network: dict[str, Any], borrowed: bool
) -> None:
    plan = planned({"clouds": [cloud], "regions": {cloud: [region]}, "network": network})
    assert plan.chosen is not None
    assert plan.chosen.around_borrowed == borrowed


def test_a_borrowed_address_alone_makes_the_network_borrowed() -> None:
    plan = planned({"clouds": ["gcp"], "regions": {"gcp": ["europe-west4"]},
                    "network": {"egress": "public"}})  # fmt: skip
    assert plan.chosen is not None
    assert plan.chosen.network.borrowed


def test_an_item_without_a_price_leaves_its_part_unknown() -> None:
    catalog = Doctored(items={("aws", "nat-hour"): None, ("aws", "public-ipv4-hour"): None})
    plan = planned({"clouds": ["aws"]}, catalog=catalog)
    assert plan.chosen is not None
    around = plan.chosen.around_usd_per_month
    assert (around["nat"], around["ipv4"]) == (None, None)
    assert around["disk"] is not None
    assert plan.chosen.around_total is None
