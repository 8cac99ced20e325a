"""The interfaces of a machine on Google beside its first, and the networks that they lie in."""

from __future__ import annotations

from typing import Any

import pytest
from tests.gcp.world import planned

from gputier.errors import InvalidInput
from gputier.plan import WorkloadPlan
from gputier.plan.rails import Rail, kinds
from gputier.plan.region_gcp import networks

H100: dict[str, Any] = {"gpu": {"models": ["H100"], "count": 8}, "nodes": 2, "fabric": "any"}
H200: dict[str, Any] = {"gpu": {"models": ["H200"], "count": 8}, "nodes": 2, "fabric": "any"}
L4: dict[str, Any] = {"gpu": {"models": ["L4"]}, "purpose": "inference"}


def rails(plan: WorkloadPlan) -> tuple[Rail, ...]:
    assert plan.chosen
    return plan.chosen.network.rails


def test_tcpxo_has_a_network_of_its_own_for_each_of_eight_interfaces() -> None:
    found = rails(planned(**H100, capacity="on_demand"))
    assert [r.place for r in found] == list(range(1, 9))
    assert {r.kind for r in found} == {"GVNIC"}
    assert [r.network for r in found] == [f"gpudirect-tcpxo-{n}" for n in range(1, 9)]
    assert {r.mtu for r in found} == {8244}
    assert {r.profile for r in found} == {None}


def test_roce_has_one_plain_interface_and_eight_in_one_network_of_its_zone() -> None:
    found = rails(planned(**H200, capacity="spot"))
    assert [r.kind for r in found] == ["GVNIC", *["MRDMA"] * 8]
    assert found[0].network == "roce-1"
    assert {(r.network, r.profile) for r in found[1:]} == {
        ("roce-us-central1-b", "us-central1-b-vpc-roce")
    }
    assert {r.mtu for r in found} == {8896}


@pytest.mark.parametrize(
    "fields", [H100, {**H200, "capacity": "spot"}, {**L4, "nodes": 2}], ids=["tcpxo", "roce", "l4"]
)
def test_no_two_interfaces_of_a_machine_have_addresses_in_common(fields: dict[str, Any]) -> None:
    plan = planned(**fields)
    (network,) = networks([plan]).values()
    ranges = [s.cidr for s in network.subnets] + [r.cidr for r in rails(plan)]
    assert len({tuple(r.split(".")[:2]) for r in ranges}) == len(ranges)


@pytest.mark.parametrize(
    "fields",
    [{**H100, "nodes": 1, "fabric": "none"}, {**H100, "nodes": 1}, L4, {**H100, "fabric": "none"}],
)
def test_a_machine_of_no_fabric_has_one_interface(fields: dict[str, Any]) -> None:
    assert rails(planned(**fields)) == ()


def row(kinds: str, number: int) -> dict[str, str]:
    return {
        "machine_type": "m", "nic_types": kinds, "nics_for_full_gpu_bandwidth": str(number),
    }  # fmt: skip


def test_kinds_with_a_number_are_all_there_and_of_others_one_will_do() -> None:
    assert list(kinds(row("GVNIC x2|MRDMA x3", 5))) == ["GVNIC"] * 2 + ["MRDMA"] * 3
    assert list(kinds(row("GVNIC (recommended above 50 Gbps)|VIRTIO_NET", 1))) == ["GVNIC"]
    with pytest.raises(ValueError, match="is no kind of interface"):
        list(kinds(row("none", 1)))


def test_amazon_has_no_rails() -> None:
    where: dict[str, Any] = {"clouds": ["aws"], "regions": {"aws": ["us-east-1"]}}
    assert rails(planned(**{**H100, **where})) == ()


def test_fleets_of_a_region_share_a_network_and_each_way_out_has_a_subnet() -> None:
    one, other = planned("one", **L4), planned("other", **L4, network={"egress": "public"})
    (network,) = networks([one, other]).values()
    assert (network.name, network.nat, network.asked_by) == ("us-central1", True, "one")
    assert [(s.way, s.cidr) for s in network.subnets] == [
        ("nat", "10.0.0.0/17"),
        ("public", "10.0.192.0/18"),
    ]


def test_without_a_way_out_there_is_no_gateway() -> None:
    (network,) = networks([planned(**L4, network={"egress": "endpoints"})]).values()
    assert not network.nat


def test_an_adopted_network_is_made_no_part_of_but_its_rails() -> None:
    plan = planned(**H100, network={"vpc": "lab", "subnets": ["gpu"]})
    (network,) = networks([plan]).values()
    assert (network.vpc, network.adopted, network.subnets) == ("lab", "gpu", ())
    assert not network.nat
    assert len(network.rails) == 8


def test_several_subnets_and_unknown_zones_are_refused_at_once() -> None:
    plan = planned(**L4, network={"vpc": "lab", "subnets": ["a", "b"]})
    chosen = plan.chosen
    assert chosen
    nowhere = chosen.network._replace(zones=())
    with pytest.raises(InvalidInput) as raised:
        networks([plan._replace(chosen=chosen._replace(network=nowhere))])
    assert [p.path for p in raised.value.problems] == [
        "workloads.job.zones",
        "workloads.job.network.subnets",
    ]
