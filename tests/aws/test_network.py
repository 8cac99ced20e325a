"""A region's network: of our own or adopted, shared by its fleets."""

from __future__ import annotations

from collections.abc import Mapping
from ipaddress import ip_network
from itertools import combinations
from typing import Any

import pytest
from tests.aws import world
from tests.aws.world import alone, planned

from gputier import testing
from gputier.aws import Deployment, deploy
from gputier.errors import InvalidInput
from gputier.lock import current_bundle
from gputier.plan import WorkloadPlan
from gputier.plan.region import BLOCKS, cidr_of, network_name, networks

L4: dict[str, Any] = {"gpu": {"models": ["L4"]}, "purpose": "inference"}


def together(*plans: WorkloadPlan) -> testing.Run:
    given = [Deployment(plan, current_bundle()) for plan in plans]
    return world.run(lambda: deploy(given, world.catalog()))


def subnets(run: testing.Run) -> Mapping[str, str]:
    return {s.name: s.inputs["cidrBlock"] for s in run.of_type("aws:ec2/subnet:Subnet")}


def test_fleets_of_a_region_share_one_network_and_one_store() -> None:
    run = together(planned("one", **L4), planned("two", **L4))
    assert len(run.of_type("Vpc")) == len(run.of_type("aws:s3/bucket:Bucket")) == 1
    assert len(run.of_type("NatGateway")) == 1
    assert len(run.of_type("BucketObjectv2")) == 1, "both run the same bundle"


def test_each_region_has_its_own() -> None:
    far: dict[str, Any] = {"regions": {"aws": ["eu-central-1"]}}
    run = together(planned("near", **L4), planned("far", **L4, **far))
    assert {vpc.inputs["region"] for vpc in run.of_type("Vpc")} == {"us-east-1", "eu-central-1"}
    for record in run.records:
        if record.parent.startswith("Group ") and "region" in record.inputs:
            wanted = "eu-central-1" if record.name.startswith("far") else "us-east-1"
            assert record.inputs["region"] == wanted, record.label


def test_a_gateway_outside_production_and_one_for_each_zone_in_it() -> None:
    assert len(alone(**L4).of_type("NatGateway")) == 1
    plan = world.image(planned(environment="prod", **L4), id=world.AMI, pinned=True)
    assert len(world.fleet(plan).of_type("NatGateway")) == 3


def test_every_private_subnet_goes_out_by_a_gateway_its_own_where_it_has_one() -> None:
    plan = world.image(planned(environment="prod", **L4), id=world.AMI, pinned=True)
    run = world.fleet(plan)
    routes = {r.inputs["routeTableId"]: r.inputs for r in run.of_type("aws:ec2/route:Route")}
    for link in run.of_type("RouteTableAssociation"):
        route = routes[link.inputs["routeTableId"]]
        if "-nat-" not in link.name:
            assert "gatewayId" in route
            continue
        zone = link.name.rpartition("nat-")[2]
        own = f"us-east-1-nat-{zone}-id"
        has_own = any(n.name == f"us-east-1-nat-{zone}" for n in run.of_type("NatGateway"))
        assert route["natGatewayId"] == (own if has_own else "us-east-1-nat-use1-az1-id")


def test_endpoints_alone_mean_no_gateway_and_no_way_to_the_internet() -> None:
    run = alone(**L4, network={"egress": "endpoints"})
    assert run.of_type("NatGateway") == run.of_type("InternetGateway") == []
    assert [r.name for r in run.of_type("aws:ec2/route:Route")] == []
    services = {e.inputs["serviceName"].rpartition(".")[2] for e in run.of_type("VpcEndpoint")}
    assert services >= {"s3", "ssm", "ssmmessages", "autoscaling", "monitoring"}
    (rule,) = run.of_type("SecurityGroupIngressRule")
    assert (rule.inputs["fromPort"], rule.inputs["toPort"]) == (443, 443)


def test_s3_is_reached_inside_every_network() -> None:
    for egress in ("nat", "public", "endpoints"):
        run = alone(**L4, network={"egress": egress})
        s3 = run.find("VpcEndpoint us-east-1-s3").inputs
        assert s3["vpcEndpointType"] == "Gateway"
        assert len(s3["routeTableIds"]) == len(run.of_type("RouteTable"))


def test_a_subnets_range_is_its_zones_and_moves_for_nobody() -> None:
    one, both = alone(**L4), together(planned("one", **L4), planned("two", tier="mid"))
    shared = subnets(one).keys() & subnets(both).keys()
    assert shared
    assert {name: subnets(one)[name] for name in shared} == {
        name: subnets(both)[name] for name in shared
    }


def test_no_two_ranges_of_a_network_overlap() -> None:
    zones = [f"use1-az{n}" for n in range(1, 8)] + ["use1-dfw2-az1"]
    ranges = [ip_network(cidr_of(zone, way)) for way in BLOCKS for zone in zones]
    assert len(ranges) == 24
    assert not any(a.overlaps(b) for a, b in combinations(ranges, 2))


def test_zones_are_told_by_id() -> None:
    """A zone's name is another zone in another account."""
    for subnet in alone(**L4).of_type("aws:ec2/subnet:Subnet"):
        assert subnet.inputs["availabilityZoneId"].startswith("use1-az")
        assert subnet.inputs["mapPublicIpOnLaunch"] is False
    with pytest.raises(InvalidInput, match="name it by id, such as use1-az1"):
        networks([planned(**L4, zones=["us-east-1a"])])


def test_row_34_an_adopted_network_gives_the_subnets_in_zones_that_sell_the_machine() -> None:
    """skypilot#1730."""
    run = alone(**L4, network={"vpc": "vpc-0123"})
    (group,) = run.of_type("aws:autoscaling/group:Group")
    assert group.inputs["vpcZoneIdentifiers"] == ["subnet-0a", "subnet-0b"]
    assert run.of_type("Vpc") == run.of_type("NatGateway") == []
    assert run.find("SecurityGroup job-security-group").inputs["vpcId"] == "vpc-0123"


def test_an_adopted_network_may_be_named_by_its_tags() -> None:
    run = alone(**L4, network={"vpc": "main", "subnets": ["private-b"]})
    (group,) = run.of_type("aws:autoscaling/group:Group")
    assert group.inputs["vpcZoneIdentifiers"] == ["subnet-0b"]


def test_an_adopted_network_without_a_fitting_zone_is_refused_and_says_which_would() -> None:
    with pytest.raises(InvalidInput) as refused:
        alone(**L4, network={"vpc": "vpc-0123", "subnets": ["subnet-0f"]})
    (problem,) = refused.value.problems
    assert problem.path == "workloads.job.network.subnets"
    assert "subnets are in use1-az3" in problem.message
    assert "use1-az1" in problem.message


def test_fleets_in_different_adopted_networks_have_a_network_each() -> None:
    plans = [planned("own", **L4), planned("theirs", **L4, network={"vpc": "vpc-0123"})]
    assert sorted(networks(plans)) == ["us-east-1", "us-east-1-vpc-0123"]
    assert [network_name(plan.chosen) for plan in plans if plan.chosen] == [
        "us-east-1",
        "us-east-1-vpc-0123",
    ]
