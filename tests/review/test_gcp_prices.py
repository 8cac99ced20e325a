"""What Google Cloud's resources cost a month, each with its arithmetic.

Hourly prices of us-central1 are the catalogue's (prices.csv of 2026-08-03, accelerators 2026-04;
items.csv for disks and addresses) and stand here once.
"""

from __future__ import annotations

from typing import Any

import pytest

from gputier.review import gcp_fleet, gcp_free, gcp_network, gcp_storage
from gputier.review.cost import Elsewhere, Priced, Unpriced
from gputier.review.preview import UNKNOWN, State
from tests.review.worlds import cost, known, state

PRICERS = {
    **gcp_fleet.PRICERS,
    **gcp_storage.PRICERS,
    **gcp_network.PRICERS,
    **gcp_free.PRICERS,
}
H = 730.0
G2, G2_SPOT, A2, N1_4, N1_4_SPOT = 0.7068, 0.3973, 3.6734, 0.19, 0.067
T4, T4_SPOT, VWS = 0.35, 0.175, 0.2
STANDARD, BALANCED, SSD, LOCAL, LOCAL_SPOT = 0.04, 0.1, 0.17, 0.08, 0.0354
IPV4, IDLE = 0.005, 0.01

INSTANCE = "gcp:compute/instance:Instance"
TEMPLATE = "gcp:compute/instanceTemplate:InstanceTemplate"
GROUP = "gcp:compute/instanceGroupManager:InstanceGroupManager"
REGIONAL = "gcp:compute/regionInstanceGroupManager:RegionInstanceGroupManager"
SCALER = "gcp:compute/autoscaler:Autoscaler"
NODES = "gcp:container/nodePool:NodePool"
DISK = "gcp:compute/disk:Disk"
ZONE = "us-central1-a"


def machine(type_: Any = "g2-standard-4", **more: Any) -> State:
    return state(INSTANCE, machineType=type_, zone=ZONE, **more)


def template(type_: str = "g2-standard-4", **more: Any) -> State:
    return known(state(TEMPLATE, "t", machineType=type_, **more), "t-1")


def group(type_: str = GROUP, **more: Any) -> State:
    return known(state(type_, "g", versions=[{"instanceTemplate": "t-1"}], **more), "g-1")


def scaler(least: int, most: int) -> State:
    policy = {"minReplicas": least, "maxReplicas": most}
    return state(SCALER, "s", target="g-1", zone=ZONE, autoscalingPolicy=policy)


def nodes(type_: str = "g2-standard-4", **more: Any) -> State:
    config = {"machineType": type_, **more.pop("config", {})}
    return (
        state(NODES, "n", location=ZONE, nodeConfig=config)
        if not more
        else state(NODES, "n", **{"location": ZONE, "nodeConfig": config, **more})
    )


def guests(name: str, count: int) -> list[dict[str, Any]]:
    return [{"type": name, "count": count}]


NODE_DISK = 100 * BALANCED
CASES: dict[str, tuple[float, list[State]]] = {
    "an instance": (G2 * H, [machine()]),
    "a type by its link": (G2 * H, [machine("zones/us-central1-a/machineTypes/g2-standard-4")]),
    "2b row 6, rows 67 and 68: a built-in GPU is in the price once": (
        G2 * H, [machine(guestAccelerators=guests("nvidia-l4", 1))]),
    "row 69: spot": (G2_SPOT * H, [machine(scheduling={"provisioningModel": "SPOT"})]),
    "row 70: a preemptible machine with GPUs attached": (
        (N1_4_SPOT + 2 * T4_SPOT) * H,
        [machine("n1-standard-4", scheduling={"preemptible": True},
                 guestAccelerators=guests("nvidia-tesla-t4", 2))]),
    "2b row 7: no sustained-use discount is taken off attached GPUs": (
        (N1_4 + T4) * H,
        [machine("n1-standard-4", guestAccelerators=guests("nvidia-tesla-t4", 1))]),
    "a workstation licence": (
        (N1_4 + T4 + VWS) * H,
        [machine("n1-standard-4", guestAccelerators=guests("nvidia-tesla-t4-vws", 1))]),
    "a boot disk and local SSDs": (
        A2 * H + 50 * SSD + 2 * 375 * LOCAL,
        [machine("a2-highgpu-1g", scratchDisks=[{}, {}],
                 bootDisk={"initializeParams": {"size": 50, "type": "pd-ssd"}})]),
    "a local SSD on spot": (
        G2_SPOT * H + 375 * LOCAL_SPOT,
        [machine(scratchDisks=[{}], scheduling={"provisioningModel": "SPOT"})]),
    "a disk that is there already is not counted twice": (
        G2 * H, [machine(bootDisk={"source": "d-1"}, attachedDisks=[{"source": "d-2"}])]),
    "a public address": ((G2 + IPV4) * H, [machine(networkInterfaces=[{"accessConfigs": [{}]}])]),
    "a stopped machine keeps its disk": (
        50 * STANDARD,
        [machine(desiredStatus="TERMINATED", bootDisk={"initializeParams": {"size": 50}})]),
    "row 72: a group by its template": (
        3 * (G2 * H + 100 * BALANCED),
        [group(zone=ZONE, targetSize=3),
         template(disks=[{"boot": True, "diskSizeGb": 100, "diskType": "pd-balanced"}])]),
    "a regional group's size is for all zones": (
        3 * G2 * H, [group(REGIONAL, region="us-central1", targetSize=3), template()]),
    "an autoscaler's minimum": (2 * G2 * H, [group(zone=ZONE), template(), scaler(2, 5)]),
    "a node pool of a zone": (2 * (G2 * H + NODE_DISK), [nodes(nodeCount=2)]),
    "a node pool of three zones": (
        6 * (G2 * H + NODE_DISK), [nodes(nodeCount=2, location="us-central1")]),
    "a node pool of two zones that are named": (
        4 * (G2 * H + NODE_DISK),
        [nodes(nodeCount=2, location="us-central1", nodeLocations=[ZONE, "us-central1-b"])]),
    "row 69: spot nodes": (
        2 * (G2_SPOT * H + NODE_DISK), [nodes(nodeCount=2, config={"spot": True})]),
    "a total minimum is not taken per zone": (
        2 * (G2 * H + NODE_DISK),
        [nodes(location="us-central1", autoscaling={"totalMinNodeCount": 2})]),
    "a reservation is paid for, used or not": (
        2 * A2 * H,
        [state("gcp:compute/reservation:Reservation", zone=ZONE, specificReservation={
            "count": 2, "instanceProperties": {"machineType": "a2-highgpu-1g"}})]),
    "a disk": (200 * SSD, [state(DISK, zone=ZONE, size=200, type="pd-ssd")]),
    # Hyperdisk Balanced: 3,000 IOPS and 140 MiB/s are in the price.
    "hyperdisk with more than is included": (
        100 * 0.08 + 1000 * 0.005 + 60 * 0.04,
        [state(DISK, zone=ZONE, size=100, type="hyperdisk-balanced",
               provisionedIops=4000, provisionedThroughput=200)]),
    "a regional disk": (
        100 * 0.2,
        [state("gcp:compute/regionDisk:RegionDisk", region="us-central1", size=100,
               type="pd-balanced")]),
    "an idle address": (IDLE * H, [state("gcp:compute/address:Address", region="us-central1")]),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_a_resource_costs_what_its_arithmetic_says(case: str) -> None:
    expected, states = CASES[case]
    found = cost(PRICERS, *states)
    assert isinstance(found, Priced), found
    assert found.usd_per_month == pytest.approx(expected, abs=0.01)


def test_an_autoscaled_group_has_a_range() -> None:
    found = cost(PRICERS, group(zone=ZONE, targetSize=3), template(), scaler(2, 5))
    assert isinstance(found, Priced)
    assert (found.least, found.usd_per_month, found.most) == pytest.approx(
        (2 * G2 * H, 3 * G2 * H, 5 * G2 * H)
    )


@pytest.mark.parametrize(("type_", "noted"), [("n1-standard-4", True), ("a2-highgpu-1g", False)])
def test_the_sustained_use_discount_is_a_note_on_families_that_have_it(
    type_: str, noted: bool
) -> None:
    found = cost(PRICERS, machine(type_))
    assert isinstance(found, Priced)
    assert (gcp_fleet.SUSTAINED in found.notes) is noted


def test_half_of_a_day_by_a_policy_is_half_of_the_hours() -> None:
    plan = {"vmStartSchedule": {"schedule": "0 7 * * *"}, "timeZone": "UTC",
            "vmStopSchedule": {"schedule": "0 19 * * *"}}  # fmt: skip
    policy = state("gcp:compute/resourcePolicy:ResourcePolicy", "p", instanceSchedulePolicy=plan)
    disk = {"initializeParams": {"size": 50}}
    found = cost(PRICERS, machine(resourcePolicies="p-1", bootDisk=disk), known(policy, "p-1"))
    assert isinstance(found, Priced)
    assert found.usd_per_month == pytest.approx(G2 * H / 2 + 50 * STANDARD, rel=1e-3)


@pytest.mark.parametrize(
    "one",
    [
        machine(UNKNOWN),
        machine("e2-medium"),
        group(zone=ZONE, targetSize=3),
        state(NODES, "n", location=ZONE, nodeCount=1),
        state("gcp:compute/routerNat:RouterNat", region="us-central1"),
        state("gcp:container/cluster:Cluster", location=ZONE, removeDefaultNodePool=True),
        state("gcp:storage/bucket:Bucket"),
    ],
    ids=lambda one: one.type,
)
def test_what_nobody_can_price_is_unpriced_and_never_zero(one: State) -> None:
    assert isinstance(cost(PRICERS, one), Unpriced)


def test_what_is_free_costs_nothing_by_itself() -> None:
    for type_ in gcp_free.PRICERS:
        assert isinstance(cost(PRICERS, state(type_)), Elsewhere)


def several(*versions: tuple[str, dict[str, float] | None]) -> State:
    given = [
        {"instanceTemplate": id_, **({"targetSize": size} if size else {})}
        for id_, size in versions
    ]
    return known(state(GROUP, "g", versions=given, targetSize=5, zone=ZONE), "g-1")


def test_a_group_of_several_templates_is_each_at_its_share() -> None:
    big = known(state(TEMPLATE, "big", machineType="a2-highgpu-1g"), "t-2")
    one = several(("t-1", None), ("t-2", {"fixed": 2}))
    found = cost(PRICERS, one, template(), big)
    assert isinstance(found, Priced)
    assert found.usd_per_month == pytest.approx((3 * G2 + 2 * A2) * H)
    assert (found.machine, found.quantity) == ("3 × g2-standard-4 and 2 × a2-highgpu-1g", 5)
    third = several(("t-1", None), ("t-2", {"percent": 30}))
    rounded = cost(PRICERS, third, template(), big)
    assert isinstance(rounded, Priced)
    assert rounded.usd_per_month == pytest.approx((3 * G2 + 2 * A2) * H), "1.5 machines are 2"
    assert isinstance(cost(PRICERS, one, template()), Unpriced), "a template is not here"


def test_an_autoscalers_schedule_counts_for_its_hours() -> None:
    """4 machines for 12 hours of each day, 1 at other times: 2.5 on average."""
    nine = {"minRequiredReplicas": 4, "schedule": "0 9 * * *", "durationSec": 12 * 3600,
            "timeZone": "UTC"}  # fmt: skip
    policy = {"minReplicas": 1, "maxReplicas": 6, "scalingSchedules": [nine]}
    on = state(SCALER, "s", target="g-1", zone=ZONE, autoscalingPolicy=policy)
    found = cost(PRICERS, group(zone=ZONE), template(), on)
    assert isinstance(found, Priced)
    assert found.usd_per_month == pytest.approx(2.5 * G2 * H, rel=0.001)
    assert (found.quantity, "hours by its scaling schedules" in found.notes) == (4, True)
    off = {**policy, "scalingSchedules": [{**nine, "disabled": True}]}
    plain = on._replace(inputs={**on.inputs, "autoscalingPolicy": off})
    assert cost(PRICERS, group(zone=ZONE), template(), plain) != found


NAT = "gcp:compute/routerNat:RouterNat"


@pytest.mark.parametrize(("machines", "counted"), [(3, 3), (40, 32)])
def test_a_gateway_costs_by_the_machines_behind_it(machines: int, counted: int) -> None:
    behind = group(targetSize=machines, zone=ZONE)
    found = cost(PRICERS, state(NAT, "nat", region="us-central1"), behind, template())
    assert isinstance(found, Priced)
    assert found.usd_per_month == pytest.approx(counted * 0.0014 * H)


def test_a_gateway_that_no_machine_is_known_behind_has_no_price() -> None:
    alone = cost(PRICERS, state(NAT, "nat", region="us-central1"))
    assert isinstance(alone, Unpriced)
    assert "none is here" in alone.why
