"""Networks on Google: our own, an adopted one, those of a fabric, and who may talk to a fleet."""

from __future__ import annotations

from typing import Any

import pulumi
import pytest
from tests.gcp import world
from tests.gcp.world import planned

from gputier import testing
from gputier.errors import InvalidInput
from gputier.gcp import Doors, Existing, Network, firewall, place_of
from gputier.plan import WorkloadPlan
from gputier.plan.region_gcp import networks

L4: dict[str, Any] = {"gpu": {"models": ["L4"]}, "purpose": "inference"}
H100: dict[str, Any] = {"gpu": {"models": ["H100"], "count": 8}, "nodes": 2, "fabric": "any"}
H200: dict[str, Any] = {
    "gpu": {"models": ["H200"], "count": 8}, "nodes": 2, "fabric": "any", "capacity": "spot",
}  # fmt: skip
DOORS = Doors(health=8080, ports=(), joined=False)


def built(*plans: WorkloadPlan, existing: Existing | None = None) -> testing.Run:
    """The networks of these fleets, and where each fleet stands."""

    def program() -> None:
        made = {n: Network(p, existing=existing) for n, p in networks(plans).items()}
        for plan in plans:
            assert plan.chosen
            (network,) = made.values()
            stand = network.stand(plan.chosen.network, f"workloads.{plan.name}")
            pulumi.export(plan.name, [list(one) for one in stand.interfaces])

    return world.run(program)


def link(kind: str, name: str) -> str:
    return f"{world.LINK}/{kind}/{name}"


def test_a_network_of_our_own_is_private_and_goes_out_by_one_gateway_for_its_own_subnet() -> None:
    run = built(planned(**L4))
    network = run.find("Network us-central1-network").inputs
    assert network["autoCreateSubnetworks"] is False
    subnet = run.find("Subnetwork us-central1-nat").inputs
    assert subnet["privateIpGoogleAccess"] is True
    assert (subnet["ipCidrRange"], subnet["region"]) == ("10.0.0.0/17", "us-central1")
    nat = run.find("RouterNat us-central1-nat").inputs
    assert nat["sourceSubnetworkIpRangesToNat"] == "LIST_OF_SUBNETWORKS"
    (inside,) = nat["subnetworks"]
    assert inside["name"] == link("Subnetwork", "us-central1-nat")
    assert run.outputs["job"] == [["GVNIC", link("Network", "us-central1-network"), inside["name"]]]


@pytest.mark.parametrize("egress", ["public", "endpoints"])
def test_a_gateway_is_made_only_where_somebody_goes_out_by_it(egress: str) -> None:
    run = built(planned(**L4, network={"egress": egress}))
    assert run.of_type("Router") == run.of_type("RouterNat") == []


def test_machines_with_another_way_out_are_not_behind_the_gateway() -> None:
    run = built(planned("a", **L4), planned("b", **L4, network={"egress": "endpoints"}))
    (nat,) = run.of_type("RouterNat")
    assert [s["name"] for s in nat.inputs["subnetworks"]] == [link("Subnetwork", "us-central1-nat")]
    assert run.outputs["b"][0][2] == link("Subnetwork", "us-central1-endpoints")


def test_tcpxo_stands_in_nine_networks_in_their_order() -> None:
    run = built(planned(**H100))
    assert len(run.of_type("gcp:compute/network:Network")) == 9
    stands = run.outputs["job"]
    assert [kind for kind, _n, _s in stands] == ["GVNIC"] * 9
    assert [s for _k, _n, s in stands[1:]] == [
        link("Subnetwork", f"us-central1-gpudirect-tcpxo-{n}") for n in range(1, 9)
    ]
    (rule,) = [r for r in run.of_type("Firewall") if r.name.endswith("tcpxo-3")]
    assert rule.inputs["sourceRanges"] == ["10.3.0.0/16"]


def test_roce_is_one_network_of_a_zone_with_eight_subnets_and_no_rule() -> None:
    run = built(planned(**H200))
    roce = run.find("Network us-central1-roce-us-central1-b").inputs
    assert roce["mtu"] == 8896
    assert roce["networkProfile"] == (
        f"projects/{world.PROJECT}/global/networkProfiles/us-central1-b-vpc-roce"
    )
    assert [kind for kind, _n, _s in run.outputs["job"]] == ["GVNIC", "GVNIC", *["MRDMA"] * 8]
    assert [r.name for r in run.of_type("Firewall")] == ["us-central1-roce-1"]


def test_two_fleets_of_a_fabric_share_its_networks() -> None:
    run = built(planned("a", **H100), planned("b", **H100))
    assert len(run.of_type("gcp:compute/network:Network")) == 9
    assert run.outputs["a"] == run.outputs["b"]


def test_an_adopted_network_is_looked_up_and_its_only_subnet_here_taken() -> None:
    run = built(planned(**L4, network={"vpc": "one"}))
    assert [r.label for r in run.records if not r.component] == []
    assert run.outputs["job"] == [
        ["GVNIC", f"{world.LINK}/global/networks/one",
         f"{world.LINK}/regions/us-central1/subnetworks/inside"],
    ]  # fmt: skip


def test_a_network_of_another_project_is_adopted_by_its_path() -> None:
    path = "projects/host/global/networks/two"
    run = built(planned(**L4, network={"vpc": path, "subnets": ["other"]}))
    (_kind, network, subnet) = run.outputs["job"][0]
    assert "/projects/host/" in network
    assert subnet.endswith("/projects/host/regions/us-central1/subnetworks/other")


@pytest.mark.parametrize(
    ("network", "words"),
    [
        ({"vpc": "two"}, "two has 2 subnets in us-central1"),
        ({"vpc": "elsewhere"}, "elsewhere has no subnet in us-central1"),
        ({"vpc": "shut", "egress": "endpoints"}, "has no Private Google Access"),
    ],
)
def test_a_network_that_cannot_be_stood_in_is_refused_with_the_field(
    network: dict[str, Any], words: str
) -> None:
    with pytest.raises(InvalidInput, match=words) as raised:
        built(planned(**L4, network=network))
    (problem,) = raised.value.problems
    assert problem.path.startswith("workloads.job.network.")
    assert problem.hint


def test_a_network_that_is_passed_in_is_not_looked_up() -> None:
    run = built(planned(**L4), existing=Existing("net", "sub"))
    assert run.outputs["job"] == [["GVNIC", "net", "sub"]]
    assert [r.label for r in run.records if not r.component] == []


def rules(doors: Doors) -> dict[str, Any]:
    def program() -> None:
        top = pulumi.ComponentResource("test:index:Top", "top")
        firewall(place_of(planned(**L4)), "net", "node@acme", doors, top)

    return {r.name: r.inputs for r in world.run(program).of_type("Firewall")}


def test_only_health_checks_and_tunnels_come_in_and_to_the_fleets_machines_alone() -> None:
    found = rules(DOORS)
    assert set(found) == {"job-from-health-checks", "job-from-tunnels"}
    checks, tunnels = found["job-from-health-checks"], found["job-from-tunnels"]
    assert checks["sourceRanges"] == ["130.211.0.0/22", "35.191.0.0/16"]
    assert checks["allows"] == [{"protocol": "tcp", "ports": ["8080"]}]
    assert tunnels["sourceRanges"] == ["35.235.240.0/20"]
    assert tunnels["allows"] == [{"protocol": "tcp", "ports": ["22"]}]
    assert all(r["targetServiceAccounts"] == ["node@acme"] for r in found.values())
    assert not any("0.0.0.0/0" in r["sourceRanges"] for r in found.values())


def test_without_a_health_check_nobody_asks_and_a_containers_ports_are_by_tunnel() -> None:
    found = rules(Doors(health=None, ports=(8000, 22), joined=False))
    assert set(found) == {"job-from-tunnels"}
    assert found["job-from-tunnels"]["allows"][0]["ports"] == ["22", "8000"]


def test_machines_that_work_together_hear_each_other_and_nobody_else() -> None:
    rule = rules(DOORS._replace(joined=True))["job-from-each-other"]
    assert rule["sourceServiceAccounts"] == rule["targetServiceAccounts"] == ["node@acme"]
    assert "sourceRanges" not in rule
