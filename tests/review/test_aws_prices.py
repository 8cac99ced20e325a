"""What AWS resources cost a month, each with its arithmetic.

Hourly prices of us-east-1 are the catalogue's (prices.csv of 2026-07-20, spot of 2026-08) and stand
here once, so that a case is arithmetic and not a look-up of its own answer.
"""

from __future__ import annotations

from typing import Any

import pytest

from gputier.review.cost import Elsewhere, Priced, Unpriced
from gputier.review.preview import UNKNOWN, State
from gputier.review.prices import PRICERS, price
from gputier.workload import Discount
from tests.review.worlds import catalog, cost, known, made_from, state, world

H = 730.0
G4DN, G5, G6, G6E = 0.526, 1.006, 0.8048, 1.861
G5_12, P4D, P5, G4DN_METAL = 5.672, 21.9576, 55.04, 7.824
G5_SPOT, G6_SPOT, P4D_SPOT, P5_SPOT = 0.5089, 0.5375, 14.2313, 19.4933
GP3, IOPS, THROUGHPUT, IO2 = 0.08, 0.005, 0.04, 0.125  # a GiB, an IOPS, a MB/s, a GiB a month
NAT, ENDPOINT, IPV4 = 0.045, 0.01, 0.005  # an hour

INSTANCE = "aws:ec2/instance:Instance"
TEMPLATE = "aws:ec2/launchTemplate:LaunchTemplate"
GROUP = "aws:autoscaling/group:Group"
SCHEDULE = "aws:autoscaling/schedule:Schedule"
NODES = "aws:eks/nodeGroup:NodeGroup"
FLEET = "aws:ec2/fleet:Fleet"
VOLUME = "aws:ebs/volume:Volume"


def template(type_: str = "g6.xlarge", **more: Any) -> State:
    return known(state(TEMPLATE, "lt", instanceType=type_, **more), "lt-1")


def group(template_id: Any = "lt-1", **more: Any) -> State:
    return state(GROUP, "asg", launchTemplate={"id": template_id, "version": "3"}, **more)


def mixed(*overrides: Any, **distribution: Any) -> State:
    specification = {"launchTemplateId": "lt-1", "version": "1"}
    policy: dict[str, Any] = {
        "launchTemplate": {
            "launchTemplateSpecification": specification,
            "overrides": [o if isinstance(o, dict) else {"instanceType": o} for o in overrides],
        },
        "instancesDistribution": distribution,
    }
    return state(GROUP, "asg", minSize=0, maxSize=4, desiredCapacity=2, mixedInstancesPolicy=policy)


def disk(gib: int, **more: Any) -> dict[str, Any]:
    return {"deviceName": "/dev/sda1", "ebs": {"volumeSize": gib, "volumeType": "gp3", **more}}


Case = tuple[float, list[State]]
CASES: dict[str, Case] = {
    # One machine, all month.
    "an instance": (G6 * H, [state(INSTANCE, instanceType="g6.xlarge")]),
    "with a root disk": (
        G6 * H + 100 * GP3,
        [state(INSTANCE, instanceType="g6.xlarge",
               rootBlockDevice={"volumeSize": 100, "volumeType": "gp3"})],
    ),
    # A figure may be text, as Terraform's providers write it.
    "with a size that is written as text": (
        G6 * H + 100 * GP3,
        [state(INSTANCE, instanceType="g6.xlarge",
               rootBlockDevice={"volumeSize": "100", "volumeType": "gp3"})],
    ),
    "with a public address": (
        G6 * H + IPV4 * H,
        [state(INSTANCE, instanceType="g6.xlarge", associatePublicIpAddress=True)],
    ),
    "on spot": (
        G6_SPOT * H,
        [state(INSTANCE, instanceType="g6.xlarge", instanceMarketOptions={"marketType": "spot"})],
    ),
    # Metal sizes are machines like others (infracost#3472 priced them at $0).
    "row 74: a metal size": (G4DN_METAL * H, [state(INSTANCE, instanceType="g4dn.metal")]),
    "a spot request": (
        G5_SPOT * H,
        [state("aws:ec2/spotInstanceRequest:SpotInstanceRequest", instanceType="g5.xlarge")],
    ),
    # Groups: the desired count, else the minimum.
    "a group by its desired count": (
        3 * G6 * H, [group(minSize=1, maxSize=8, desiredCapacity=3), template()],
    ),
    "a group without one by its minimum": (2 * G6 * H, [group(minSize=2, maxSize=8), template()]),
    "an empty group": (0.0, [group(minSize=0, maxSize=8), template()]),
    "row 72: type and disks from the template": (
        2 * (P5 * H + 500 * GP3 + (6000 - 3000) * IOPS + (500 - 125) * THROUGHPUT),
        [group(minSize=2, maxSize=2),
         template("p5.48xlarge", blockDeviceMappings=[disk(500, iops=6000, throughput=500)])],
    ),
    "row 72: through a template that is made in the same preview": (
        2 * G6 * H,
        [made_from(group(UNKNOWN, minSize=2, maxSize=2), launchTemplate=state(TEMPLATE, "lt")),
         state(TEMPLATE, "lt", instanceType="g6.xlarge")],
    ),
    "a group whose template asks for spot": (
        2 * G6_SPOT * H,
        [group(minSize=2, maxSize=2), template(instanceMarketOptions={"marketType": "spot"})],
    ),
    "a group with public addresses": (
        2 * (G6 + IPV4) * H,
        [group(minSize=2, maxSize=2),
         template(networkInterfaces=[{"associatePublicIpAddress": "true"}])],
    ),
    # Half of each day, over the calendar of 2025 to 2028.
    "a group by its schedule": (
        4 * G6 * 12 * 1461 / 48,  # the days and the months of four years, as in a plan
        [group(minSize=0, maxSize=4), template(),
         state(SCHEDULE, "on", autoscalingGroupName="asg-1", recurrence="0 7 * * *",
               minSize=4, desiredCapacity=4),
         state(SCHEDULE, "off", autoscalingGroupName="asg-1", recurrence="0 19 * * *",
               minSize=0, desiredCapacity=0)],
    ),
    # Mixed: 2 machines, the first override is asked for first.
    "row 71: a mixed policy's likely machine is its first": (
        2 * P5 * H, [mixed("p5.48xlarge", "p4d.24xlarge"), template()],
    ),
    "a mixed policy all on spot": (
        2 * P5_SPOT * H,
        [mixed("p5.48xlarge", onDemandBaseCapacity=0, onDemandPercentageAboveBaseCapacity=0),
         template()],
    ),
    "a base on demand and the rest on spot": (
        (1 * P5 + 1 * P5_SPOT) * H,
        [mixed("p5.48xlarge", onDemandBaseCapacity=1, onDemandPercentageAboveBaseCapacity=0),
         template()],
    ),
    "a share on demand": (
        (2 * 0.5 * P5 + 2 * 0.5 * P5_SPOT) * H,
        [mixed("p5.48xlarge", onDemandPercentageAboveBaseCapacity=50), template()],
    ),
    # A desired capacity of 2, and each machine counts for 2.
    "a weight": (
        1 * P4D * H,
        [mixed({"instanceType": "p4d.24xlarge", "weightedCapacity": "2"}), template()],
    ),
    # Fleets: 4 in all, 1 of them on demand.
    "an EC2 fleet": (
        (1 * G5 + 3 * G5_SPOT) * H,
        [state(FLEET, launchTemplateConfigs=[
            {"launchTemplateSpecification": {"launchTemplateId": "lt-1"},
             "overrides": [{"instanceType": "g5.xlarge"}]}],
            targetCapacitySpecification={
                "totalTargetCapacity": 4, "onDemandTargetCapacity": 1,
                "defaultTargetCapacityType": "spot"}),
         template()],
    ),
    "a spot fleet request": (
        (1 * G5 + 2 * G5_SPOT) * H,
        [state("aws:ec2/spotFleetRequest:SpotFleetRequest", targetCapacity=3,
               onDemandTargetCapacity=1, launchSpecifications=[{"instanceType": "g5.xlarge"}])],
    ),
    # EKS: nodes at their desired size; a list of types is a range.
    "an EKS node group": (
        3 * G5 * H,
        [state(NODES, instanceTypes=["g5.xlarge"], diskSize=100,
               scalingConfig={"minSize": 1, "desiredSize": 3, "maxSize": 5})],
    ),
    "row 69: an EKS node group on spot": (
        3 * G5_SPOT * H,
        [state(NODES, instanceTypes=["g5.xlarge"], capacityType="SPOT",
               scalingConfig={"minSize": 1, "desiredSize": 3, "maxSize": 5})],
    ),
    # 96 vCPUs of machines with 48: two of them.
    "a Batch environment": (
        2 * G5_12 * H,
        [state("aws:batch/computeEnvironment:ComputeEnvironment", computeResources={
            "type": "EC2", "instanceTypes": ["g5.12xlarge"], "minVcpus": 96, "maxVcpus": 480})],
    ),
    "held capacity, used or not": (
        2 * P4D * H,
        [state("aws:ec2/capacityReservation:CapacityReservation",
               instanceType="p4d.24xlarge", instanceCount=2)],
    ),
    # Storage.
    "a gp3 volume": (
        1000 * GP3 + (16000 - 3000) * IOPS + (1000 - 125) * THROUGHPUT,
        [state(VOLUME, size=1000, type="gp3", iops=16000, throughput=1000)],
    ),
    "a gp3 volume within what is free": (
        500 * GP3, [state(VOLUME, size=500, type="gp3", iops=3000, throughput=125)],
    ),
    "an io2 volume": (
        100 * IO2 + 32000 * 0.065 + (40000 - 32000) * 0.0455,
        [state(VOLUME, size=100, type="io2", iops=40000)],
    ),
    # Around.
    "a NAT gateway": (NAT * H, [state("aws:ec2/natGateway:NatGateway")]),
    "an interface endpoint in two zones": (
        2 * ENDPOINT * H,
        [state("aws:ec2/vpcEndpoint:VpcEndpoint", vpcEndpointType="Interface",
               subnetIds=[UNKNOWN, UNKNOWN])],
    ),
    "an address": (IPV4 * H, [state("aws:ec2/eip:Eip")]),
    "an alarm": (0.1, [state("aws:cloudwatch/metricAlarm:MetricAlarm")]),
    "a dashboard": (3.0, [state("aws:cloudwatch/dashboard:Dashboard")]),
    "a key": (1.0, [state("aws:kms/key:Key")]),
}  # fmt: skip


def priced(found: object) -> Priced:
    assert isinstance(found, Priced), found
    return found


@pytest.mark.parametrize(("usd", "states"), CASES.values(), ids=CASES)
def test_a_resource_costs(usd: float, states: list[State]) -> None:
    one, *others = states
    if one.type == GROUP and one.id is None:
        one = known(one, "asg-1")
    found = priced(cost(PRICERS, one, *others))
    assert found.usd_per_month == pytest.approx(usd)
    assert found.low <= found.usd_per_month + 1e-9 <= found.high + 1e-6


def test_a_part_says_its_arithmetic_its_basis_and_its_date() -> None:
    found = priced(cost(PRICERS, group(minSize=2, maxSize=8), template()))
    part = found.parts["machines"]
    assert part.text == "2 × $0.8048 × 730 h"
    assert (part.basis, part.as_of) == ("listed", "2026-07-20")
    assert (found.machine, found.capacity, found.quantity) == ("g6.xlarge", "on_demand", 2)


def test_row_71_a_mixed_policy_is_a_range_over_its_overrides() -> None:
    found = priced(cost(PRICERS, mixed("p5.48xlarge", "p4d.24xlarge"), template()))
    assert (found.low, found.high) == (pytest.approx(2 * P4D * H), pytest.approx(2 * P5 * H))
    assert found.machine == "p5.48xlarge or p4d.24xlarge"
    cheap = priced(cost(PRICERS, mixed("p4d.24xlarge", "p5.48xlarge"), template()))
    assert (cheap.low, cheap.high) == (found.low, found.high)
    assert cheap.usd_per_month == pytest.approx(2 * P4D * H), "the first is asked for first"


def test_the_machine_that_is_certain_has_no_range() -> None:
    found = priced(cost(PRICERS, group(minSize=2, maxSize=8), template()))
    assert found.low == found.high == found.usd_per_month


def test_the_scaling_range_is_apart_and_has_the_disks_in_it() -> None:
    disks = template(blockDeviceMappings=[disk(100)])
    found = priced(cost(PRICERS, group(minSize=1, maxSize=8, desiredCapacity=2), disks))
    each = G6 * H + 100 * GP3
    assert (found.least, found.most) == (pytest.approx(each), pytest.approx(8 * each))


def test_hours_of_a_schedule_are_said() -> None:
    one = known(group(minSize=0, maxSize=4), "asg-1")
    by = {"autoscalingGroupName": "asg-1", "timeZone": "Europe/Berlin"}
    on = state(SCHEDULE, "on", recurrence="0 7 * * *", minSize=4, desiredCapacity=4, **by)
    off = state(SCHEDULE, "off", recurrence="0 19 * * *", minSize=0, desiredCapacity=0, **by)
    found = priced(cost(PRICERS, one, template(), on, off))
    assert found.hours == pytest.approx(365, abs=0.5)
    assert found.quantity == 4
    assert found.parts["machines"].text.startswith("4 × $0.8048 × 365 h")
    assert "hours by its scheduled actions" in found.notes


def test_a_lone_machines_schedule_counts_and_its_disk_stays() -> None:
    machine = known(
        state(INSTANCE, instanceType="g6.xlarge", rootBlockDevice={"volumeSize": 100,
              "volumeType": "gp3"}), "i-0123")  # fmt: skip

    def timed(name: str, call: str, when: str) -> State:
        target = {"arn": f"arn:aws:scheduler:::aws-sdk:ec2:{call}",
                  "input": '{"InstanceIds": ["i-0123"]}'}  # fmt: skip
        return state("aws:scheduler/schedule:Schedule", name, scheduleExpression=when,
                     scheduleExpressionTimezone="UTC", target=target)  # fmt: skip

    on = timed("on", "startInstances", "cron(0 7 ? * MON-FRI *)")
    off = timed("off", "stopInstances", "cron(0 19 ? * 2-6 *)")
    found = priced(cost(PRICERS, machine, on, off))
    assert found.usd_per_month == pytest.approx(G6 * H * 12 / 24 * 5 / 7 + 100 * GP3, rel=0.001)
    unrelated = known(machine, "i-9")
    assert priced(cost(PRICERS, unrelated, on, off)).hours == H


def test_discounts_are_on_what_they_cover_and_never_on_spot() -> None:
    ours = Discount(cloud="aws", families=("p5",), percent=25, reason="ours")  # type: ignore[arg-type]
    one = state(INSTANCE, instanceType="p5.48xlarge")
    found = priced(cost(PRICERS, one, discounts=[ours]))
    assert found.usd_per_month == pytest.approx(P5 * 0.75 * H)
    assert "25 % off: ours" in found.notes
    spot = state(INSTANCE, instanceType="p5.48xlarge", instanceMarketOptions={"marketType": "spot"})
    assert priced(cost(PRICERS, spot, discounts=[ours])).usd_per_month == pytest.approx(P5_SPOT * H)


NONE: dict[str, tuple[str, list[State]]] = {
    "a machine without GPUs": ("m7i.large: not in the catalogue",
                               [state(INSTANCE, instanceType="m7i.large")]),
    "row 73: not offered there": ("g5.12xlarge: not offered in us-west-1",
                                  [state(INSTANCE, instanceType="g5.12xlarge",
                                         region="us-west-1")]),
    "a type that is not known yet": ("its instance type is unknown in the preview",
                                     [state(INSTANCE, instanceType=UNKNOWN)]),
    "no type at all": ("no instance type is named", [state(INSTANCE)]),
    "a template that is elsewhere": ("the template that it starts from is not in the preview",
                                     [group("lt-9", minSize=1, maxSize=1)]),
    "traits": ("chosen by their traits",
               [mixed({"instanceRequirements": {"vcpuCount": {"min": 4}}}), template()]),
    "a capacity block": ("priced by quotation",
                         [state(INSTANCE, instanceType="p5.48xlarge",
                                instanceMarketOptions={"marketType": "capacity-block"})]),
    "Batch's own choice": ("Batch chooses machines itself (optimal)",
                           [state("aws:batch/computeEnvironment:ComputeEnvironment",
                                  computeResources={"type": "EC2", "instanceTypes": ["optimal"],
                                                    "minVcpus": 4})]),
    "SageMaker": ("SageMaker has prices of its own; on EC2 it is $1.01 an hour",
                  [state("aws:sagemaker/endpointConfiguration:EndpointConfiguration",
                         productionVariants=[{"instanceType": "ml.g5.xlarge",
                                              "initialInstanceCount": 1}])]),
    "a volume of unknown size": ("its size is not in the preview", [state(VOLUME, size=UNKNOWN)]),
    "a group of unknown size": ("its desiredCapacity is unknown in the preview",
                                [group(minSize=0, maxSize=4, desiredCapacity=UNKNOWN),
                                 template()]),
    "a group whose least is unknown": ("its minSize is unknown in the preview",
                                       [group(minSize=UNKNOWN, maxSize=4), template()]),
    "nodes of unknown types": ("its instanceTypes is unknown in the preview",
                               [state(NODES, instanceTypes=UNKNOWN,
                                      scalingConfig={"minSize": 1, "maxSize": 2})]),
    "a Batch environment of unknown size": ("how many vCPUs it has is not in the preview",
                                            [state("aws:batch/computeEnvironment:ComputeEnvironment",
                                                   computeResources={
                                                       "type": "EC2", "minVcpus": UNKNOWN,
                                                       "instanceTypes": ["g5.12xlarge"]})]),
    "an endpoint of unknown kind": ("its vpcEndpointType is unknown in the preview",
                                    [state("aws:ec2/vpcEndpoint:VpcEndpoint",
                                           vpcEndpointType=UNKNOWN)]),
    "a bucket": ("billed by use", [state("aws:s3/bucket:Bucket")]),
    "a type that nobody knows": ("no price is known for aws:new/thing:Thing",
                                 [state("aws:new/thing:Thing")]),
}  # fmt: skip


@pytest.mark.parametrize(("words", "states"), NONE.values(), ids=NONE)
def test_what_has_no_price_says_why_and_is_never_zero(words: str, states: list[State]) -> None:
    one, *others = states
    found = price(world(one, *others), one)
    assert isinstance(found, Unpriced), found
    assert words in found.why


@pytest.mark.parametrize(
    "type_", ["aws:ec2/subnet:Subnet", TEMPLATE, SCHEDULE, "random:index/randomId:RandomId"]
)
def test_what_costs_nothing_by_itself_says_so(type_: str) -> None:
    one = state(type_)
    assert isinstance(price(world(one), one), Elsewhere)


def test_what_is_priced_in_part_says_what_is_missing() -> None:
    one = state(INSTANCE, instanceType="g6.xlarge", rootBlockDevice={"volumeSize": 8})
    found = priced(cost(PRICERS, one))
    assert found.usd_per_month == pytest.approx(G6 * H)
    assert found.gaps == ("disk: no price is known for gp2",)


def test_a_machine_in_a_reservation_of_the_same_stack_is_paid_for_once() -> None:
    held = known(state("aws:ec2/capacityReservation:CapacityReservation", "cr",
                       instanceType="p4d.24xlarge", instanceCount=1), "cr-1")  # fmt: skip
    target = {"capacityReservationTarget": {"capacityReservationId": "cr-1"}}
    one = state(INSTANCE, instanceType="p4d.24xlarge", capacityReservationSpecification=target)
    assert priced(cost(PRICERS, one, held)).usd_per_month == 0
    assert priced(cost(PRICERS, one)).usd_per_month == pytest.approx(P4D * H), "it is elsewhere"


def test_a_machine_whose_disk_is_the_images_is_priced_in_part() -> None:
    found = priced(cost(PRICERS, state(INSTANCE, instanceType="g6.xlarge")))
    assert found.gaps == ("disk: its image says how large the root is",)


def test_a_weight_that_does_not_divide_a_size_takes_a_machine_more() -> None:
    one = mixed({"instanceType": "p4d.24xlarge", "weightedCapacity": "3"})
    assert priced(cost(PRICERS, one, template())).usd_per_month == pytest.approx(1 * P4D * H)
    five = one._replace(inputs={**one.inputs, "desiredCapacity": 5, "maxSize": 9})
    assert priced(cost(PRICERS, five, template())).usd_per_month == pytest.approx(2 * P4D * H)


def test_a_type_of_a_mixed_policy_without_a_price_is_said() -> None:
    found = priced(cost(PRICERS, mixed("p5.48xlarge", "m7i.large"), template()))
    assert found.low == found.high == pytest.approx(2 * P5 * H)
    assert any("m7i.large" in gap for gap in found.gaps)


def test_figures_of_these_cases_are_the_catalogues() -> None:
    def of(name: str, purchase: str = "on_demand") -> float:
        found = catalog().price("aws", name, "us-east-1", purchase)
        assert found
        return found.usd_per_hour

    assert (of("g6.xlarge"), of("g5.xlarge"), of("p5.48xlarge")) == (G6, G5, P5)
    assert (of("p5.48xlarge", "spot"), of("g5.xlarge", "spot")) == (P5_SPOT, G5_SPOT)


def test_a_scheduled_action_that_names_no_size_sets_it_to_nothing() -> None:
    one = known(group(minSize=0, maxSize=4), "asg-1")
    on = state(SCHEDULE, "on", autoscalingGroupName="asg-1", recurrence="0 7 * * *",
               minSize=4, maxSize=4, desiredCapacity=4)  # fmt: skip
    off = state(SCHEDULE, "off", autoscalingGroupName="asg-1", recurrence="0 19 * * *",
                minSize=0, maxSize=4)  # fmt: skip
    found = priced(cost(PRICERS, one, template(), on, off))
    assert found.usd_per_month == pytest.approx(4 * G6 * H / 2, rel=1e-3)


def test_a_single_date_beside_a_schedule_does_not_undo_it() -> None:
    one = known(group(minSize=0, maxSize=4), "asg-1")
    on = state(SCHEDULE, "on", autoscalingGroupName="asg-1", recurrence="0 7 * * *",
               minSize=4, maxSize=4, desiredCapacity=4)  # fmt: skip
    off = state(SCHEDULE, "off", autoscalingGroupName="asg-1", recurrence="0 19 * * *",
                minSize=0, maxSize=4, desiredCapacity=0)  # fmt: skip
    once = state(SCHEDULE, "once", autoscalingGroupName="asg-1", startTime="2026-12-24T00:00:00Z",
                 minSize=0, maxSize=0, desiredCapacity=0)  # fmt: skip
    found = priced(cost(PRICERS, one, template(), on, off, once))
    assert found.usd_per_month == pytest.approx(4 * G6 * H / 2, rel=1e-3)


def test_a_price_of_no_date_has_none() -> None:
    assert priced(cost(PRICERS, state("aws:kms/key:Key"))).parts["key"].as_of is None
