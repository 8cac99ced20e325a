"""Volumes and their key: what they are set to, under which name, and what no volume can be."""

from __future__ import annotations

from typing import Any

import pytest
from tests.plan.world import planned

from gputier.errors import InvalidInput
from gputier.plan import Chosen, KeyPlan, Volume

G6: dict[str, Any] = {"clouds": ["aws"], "regions": {"aws": ["us-east-1"]},
                      "capacity": {"use": "on_demand", "instance_type": "g6.48xlarge"}}  # fmt: skip


def chosen(**fields: Any) -> Chosen:
    plan = planned({**G6, **fields})
    assert plan.chosen is not None, [v.reasons for v in plan.relaxations]
    return plan.chosen


def test_a_root_volume_has_what_is_in_the_price() -> None:
    storage = chosen().storage
    assert storage.root == Volume("gp3", 100, 3000, 125, "/dev/sda1", None, False)
    assert (storage.data, storage.key) == (None, None)


@pytest.mark.parametrize(
    ("os", "device"),
    [("ubuntu-22.04", "/dev/sda1"), ("ubuntu-24.04", "/dev/sda1"),
     ("amazon-linux-2023", "/dev/xvda")],
)  # fmt: skip
def test_the_root_has_the_name_that_its_system_gives_it(os: str, device: str) -> None:
    assert chosen(software={"image": {"os": os}}).storage.root.device == device


@pytest.mark.parametrize(
    ("disk", "iops", "speed"),
    [
        ({}, 3000, 125),
        ({"throughput": "500MB/s"}, 3000, 500),
        ({"throughput": "850MB/s"}, 3400, 850),  # four IOPS to each MB/s
        ({"iops": 12000}, 12000, 125),
        ({"iops": 12000, "throughput": "1GB/s"}, 12000, 1000),
    ],
    ids=str,
)
def test_a_data_volume_meets_the_plan(disk: dict[str, Any], iops: int, speed: int) -> None:
    data = chosen(disk={"data": "500GiB", **disk}).storage.data
    assert data == Volume("gp3", 500, iops, speed, "/dev/sdf", None, False)


def test_without_a_data_volume_the_root_gives_the_speed() -> None:
    root = chosen(disk={"iops": 12000}).storage.root
    assert (root.iops, root.throughput_mb_s) == (12000, 125)
    assert chosen(disk={"iops": 12000, "data": "500GiB"}).storage.root.iops == 3000


def test_a_group_has_a_volume_for_each_machine_and_says_what_is_on_it() -> None:
    blank = "each machine of the group has a data volume of its own, which starts blank"
    assert blank in chosen(disk={"data": "500GiB"}).notes
    found = chosen(disk={"data": "500GiB", "snapshot": "snap-0abc"})
    assert any("which starts as snap-0abc" in note for note in found.notes)
    assert found.storage.data is not None
    assert found.storage.data.snapshot == "snap-0abc"


def test_a_lone_machines_volumes_stay() -> None:
    found = chosen(purpose="development", disk={"data": "500GiB"})
    assert found.storage.data is not None
    assert (found.storage.root.stays, found.storage.data.stays) == (True, True)
    assert not any("of the group" in note for note in found.notes)


@pytest.mark.parametrize(
    ("fields", "key"),
    [
        ({"disk": {"kms_key": "alias/gpu"}}, KeyPlan("alias/gpu", False, True)),
        ({"disk": {"kms_key": "create"}}, KeyPlan(None, True, True)),
        ({"disk": {"kms_key": "alias/gpu"}, "purpose": "development"},
         KeyPlan("alias/gpu", False, False)),
    ],
    ids=str,
)  # fmt: skip
def test_a_key_of_ones_own_is_granted_to_what_launches_a_group(
    fields: dict[str, Any], key: KeyPlan
) -> None:
    assert chosen(**fields).storage.key == key


REFUSED: dict[str, tuple[dict[str, Any], str, str]] = {
    "too small for its IOPS": (
        {"data": "5GiB", "iops": 5000}, "disk.data",
        "a gp3 volume gives 500 IOPS a GiB, 2,500 of 5, and 5,000 are asked for",
    ),
    "too small for its speed": (
        {"data": "5GiB", "throughput": "1GB/s"}, "disk.data",
        "a gp3 volume gives 500 IOPS a GiB, 2,500 of 5, and 4,000 are asked for",
    ),
    "too large": ({"data": "100TB"}, "disk.data",
                  "a gp3 volume is 65,536 GiB at most, and this is 93,133"),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_what_no_volume_can_be_is_refused(name: str) -> None:
    disk, path, message = REFUSED[name]
    only = {"use": "on_demand", "instance_type": "p5.48xlarge"}
    with pytest.raises(InvalidInput) as caught:
        planned({**G6, "capacity": only, "disk": disk})
    (problem,) = caught.value.problems
    assert (problem.path, problem.message) == (path, message)
    assert problem.hint


EGRESS: dict[str, tuple[dict[str, Any], str]] = {
    "a framework": ({"framework": "pytorch==2.9"}, "software.framework"),
    "packages": ({"packages": ["htop"]}, "software.packages"),
    "a container": ({"container": {"image": "vllm/vllm-openai:v0.11.0"}},
                    "software.container.image"),
}  # fmt: skip
MIRRORS = {"pip": "https://pip.internal/simple", "apt": "http://apt.internal/ubuntu",
           "container": "registry.internal:5000"}  # fmt: skip


@pytest.mark.parametrize("name", EGRESS)
def test_software_of_the_internet_is_refused_where_only_the_cloud_is_reached(name: str) -> None:
    software, path = EGRESS[name]
    inside = {"egress": "endpoints"}
    with pytest.raises(InvalidInput) as caught:
        planned({**G6, "network": inside, "software": software})
    (problem,) = caught.value.problems
    assert problem.path == path
    assert "reaches AWS's own services alone" in problem.message
    for way in ({"software": {**software, "mirrors": MIRRORS}, "network": inside},
                {"software": {**software, "proxy": "http://p:3128"}, "network": inside},
                {"software": software, "network": {**inside, "vpc": "vpc-0abc"}},
                {"software": software}):  # fmt: skip
        assert chosen(**way)


def test_a_network_of_our_own_has_its_endpoints_and_gateways_and_an_adopted_one_has_none() -> None:
    inside = chosen(network={"egress": "endpoints"}).network
    assert {"ssm", "ssmmessages", "autoscaling", "monitoring"} < set(inside.endpoints)
    assert (inside.nat_gateways, inside.public_ip) == (0, False)
    assert chosen().network.nat_gateways == 1
    adopted = chosen(network={"vpc": "vpc-0abc", "subnets": ["subnet-1"]}).network
    assert (adopted.vpc, adopted.subnets) == ("vpc-0abc", ("subnet-1",))
    assert (adopted.nat_gateways, adopted.endpoints) == (0, ())


@pytest.mark.parametrize(("egress", "public"), [("public", True), ("nat", False)])
def test_77_machines_have_a_public_address_only_where_it_is_asked_for(
    egress: str, public: bool
) -> None:
    assert chosen(network={"egress": egress}).network.public_ip == public


@pytest.mark.parametrize(
    ("name", "nodes", "interfaces"),
    [("p5.48xlarge", 4, 33), ("p5.48xlarge", 1, 1), ("p6-b300.48xlarge", 2, 17),
     ("g6.8xlarge", 2, 2), ("g6.xlarge", 2, 1)],
)  # fmt: skip
def test_76_machines_that_work_together_have_every_card_and_others_one(
    name: str, nodes: int, interfaces: int
) -> None:
    only = {"use": "on_demand", "instance_type": name}
    plan = planned({"clouds": ["aws"], "capacity": only, "nodes": nodes})
    assert plan.chosen is not None, [v.reasons for v in plan.relaxations]
    assert len(plan.chosen.network.interfaces) == interfaces
    told = any(f"{interfaces} network interfaces a machine" in n for n in plan.chosen.notes)
    assert told == (interfaces > 1)
