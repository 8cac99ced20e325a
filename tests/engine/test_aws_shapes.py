"""What fleets of every shape are in AWS, as the engine makes them: cards, markets, hours."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.engine import ours
from tests.engine.ours import DESK, GPU, group_of, locked, project, template_of
from tests.engine.stack import Engine, Result
from tests.engine.wire import Props

RESERVATION, BLOCK = "cr-0123456789abcdef0", "cr-0fedcba9876543210"
HOURS = {"start": "0 7 * * mon-fri", "stop": "0 19 * * mon-fri", "timezone": "America/New_York"}
SHAPES: dict[str, Any] = {
    "joined": {
        "purpose": "training",
        "gpu": {"models": ["H100"], "count": 8},
        "nodes": 2,
        "network": {"placement": "cluster"},
    },
    "cheap": {
        "purpose": "inference",
        "gpu": GPU,
        "capacity": [{"use": "spot", "on_demand_base": 1}],
        "scale": {"min": 1, "max": 4, "metric": "gpu_utilization", "target": 60},
    },
    "held": {
        "purpose": "inference",
        "gpu": GPU,
        "capacity": [
            {
                "use": "reservation",
                "id": RESERVATION,
                "instance_type": "g4dn.xlarge",
                "zone": "use1-az1",
            }
        ],
    },
    "nights": {"purpose": "rendering", "gpu": GPU, "schedule": [HOURS]},
    "desk": {**DESK, "purpose": "vdi", "schedule": [HOURS]},
}
GONE_WITH_IT = {"identity": {"reports": "remove"}}


def test_every_shape_comes_up_as_planned_stays_and_goes(engine: Engine, tmp_path: Path) -> None:
    workloads = {name: {**GONE_WITH_IT, **shape} for name, shape in SHAPES.items()}
    stack = locked(engine, project(tmp_path, {"dev": {"workloads": workloads}}))
    made = stack.up()
    _joined(engine)
    _cheap(engine)
    _held(engine)
    _nights(engine)
    _desk(engine, made)
    assert stack.up().changed == {}
    assert stack.refresh().changed == {}
    stack.destroy()
    assert engine.aws.inventory() == []


def _of(engine: Engine, name: str) -> tuple[Props, Props]:
    group = group_of(engine, f"gputier-dev-{name}")
    return group, template_of(engine, group)


def _joined(engine: Engine) -> None:
    group, template = _of(engine, "joined")
    cards: list[Props] = template["NetworkInterfaces"]
    assert {card["NetworkCardIndex"] for card in cards} == set(range(32)), "a p5 has 32 cards"
    first, *others = cards
    assert (first["NetworkCardIndex"], first["DeviceIndex"]) == (0, 0)
    assert "InterfaceType" not in first, "the first is an ordinary one"
    assert {card["InterfaceType"] for card in others} == {"efa-only"}
    assert all("AssociatePublicIpAddress" not in card for card in cards), "AWS refuses to be told"
    assert len(group["VPCZoneIdentifier"].split(",")) == 1, "EFA does not cross zones"
    assert group["PlacementGroup"] == "gputier-dev-joined-close"
    assert (group["MinSize"], group["DesiredCapacity"], group["MaxSize"]) == (2, 2, 2)
    (own,) = {name for card in cards for name in card["Groups"]}
    rules = engine.aws.client("ec2").describe_security_group_rules(
        Filters=[{"Name": "group-id", "Values": [own]}]
    )["SecurityGroupRules"]
    among = [rule["IsEgress"] for rule in rules if "ReferencedGroupInfo" in rule]
    assert sorted(among) == [False, True], "EFA wants its own group in both directions"
    assert [r for r in rules if not r["IsEgress"] and "ReferencedGroupInfo" not in r] == []


def _cheap(engine: Engine) -> None:
    group, template = _of(engine, "cheap")
    spread = group["MixedInstancesPolicy"]["InstancesDistribution"]
    assert spread["OnDemandBaseCapacity"] == 1
    assert spread["OnDemandPercentageAboveBaseCapacity"] == 0
    assert "InstanceMarketOptions" not in template, "spot is the group's to ask for"
    assert group["CapacityRebalance"] is True
    policies = engine.aws.client("autoscaling").describe_policies(
        AutoScalingGroupName="gputier-dev-cheap"
    )["ScalingPolicies"]
    assert [policy["PolicyType"] for policy in policies] == ["TargetTrackingScaling"]


def _held(engine: Engine) -> None:
    group, template = _of(engine, "held")
    target = template["CapacityReservationSpecification"]["CapacityReservationTarget"]
    assert target == {"CapacityReservationId": RESERVATION}
    assert len(group["VPCZoneIdentifier"].split(",")) == 1, "it lies in one zone"


def _nights(engine: Engine) -> None:
    scaling = engine.aws.client("autoscaling")
    actions = scaling.describe_scheduled_actions(AutoScalingGroupName="gputier-dev-nights")[
        "ScheduledUpdateGroupActions"
    ]
    sizes = {action["Recurrence"]: action["DesiredCapacity"] for action in actions}
    assert sizes == {"0 7 * * 1-5": 1, "0 19 * * 1-5": 0}
    assert {action["TimeZone"] for action in actions} == {"America/New_York"}


def _desk(engine: Engine, made: Result) -> None:
    (machine,) = engine.aws.client("ec2").describe_instances(
        Filters=[{"Name": "tag:Name", "Values": ["gputier-dev-desk"]}]
    )["Reservations"][0]["Instances"]
    shown = made.outputs["desk"]
    assert shown["group_name"] is None
    assert shown["connect"]["shell"].endswith(f"--target {machine['InstanceId']}")
    hours = engine.aws.client("scheduler")
    names = [found["Name"] for found in hours.list_schedules()["Schedules"]]
    assert len(names) == 2, "it is started, and it is stopped"
    for name in names:
        found = hours.get_schedule(Name=name)
        assert found["ScheduleExpressionTimezone"] == "America/New_York"
        assert machine["InstanceId"] in found["Target"]["Input"]


SOMEBODYS = """
import gputier
from gputier.aws import Existing, Given, GpuFleet, Network, Store

near = pulumi.ResourceOptions(provider=aws.Provider("near", region="us-east-1"))
far = pulumi.ResourceOptions(provider=aws.Provider("far", region="us-west-2"))


def planned(name, region, **more):
    where = {"clouds": ["aws"], "regions": {"aws": [region]}, "gpu": {"memory": "16GB"}}
    return gputier.plan(gputier.Workload(**where, **more), name=name)


one = GpuFleet("one", planned("one", "us-east-1", purpose="inference"), opts=near)
vpc = aws.ec2.Vpc("own", cidr_block="10.8.0.0/16", opts=far)
subnet = aws.ec2.Subnet(
    "own", vpc_id=vpc.id, cidr_block="10.8.0.0/24", availability_zone_id="usw2-az1", opts=far
)
topic = aws.sns.Topic("own", opts=far)
two = GpuFleet(
    "two",
    planned("two", "us-west-2", purpose="development"),
    network=Existing(vpc.id, (subnet.id,), subnet.availability_zone),
    given=Given(topic=topic.arn),
    opts=far,
)
pulumi.export("group", one.group_name)
pulumi.export("shell", two.connect.apply(lambda ways: ways["shell"]))
"""


def test_fleets_live_in_somebody_else_s_program_in_two_regions_with_parts_of_theirs(
    engine: Engine, tmp_path: Path
) -> None:
    folder = tmp_path / "theirs"
    folder.mkdir()
    (folder / "Pulumi.yaml").write_text("name: theirs\nruntime: python\n", encoding="utf-8")
    imports = "import pulumi\nimport pulumi_aws as aws\n"
    (folder / "__main__.py").write_text(imports + SOMEBODYS, encoding="utf-8")
    for region in ("us-east-1", "us-west-2"):
        engine.aws.publish(FAMILY, ours.AMI, region)
    stack = engine.stack(folder)
    made = stack.up()
    assert made.outputs["group"] == "theirs-dev-one"
    assert group_of(engine, "theirs-dev-one")["DesiredCapacity"] == 1
    west = engine.aws.client("ec2", "us-west-2").describe_instances()["Reservations"]
    (machine,) = [m for page in west for m in page["Instances"]]
    assert made.outputs["shell"].endswith(f"--region us-west-2 --target {machine['InstanceId']}")
    assert not [label for label in made.changed if label.startswith("Topic two")], "theirs is used"
    assert stack.up().changed == {}
    assert stack.refresh().changed == {}
    stack.destroy()
    left = engine.aws.inventory()
    assert [name.split()[0] for name in left] == ["bucket", "bucket"], "each region's reports"


FAMILY = (
    "/aws/service/deeplearning/ami/x86_64/base-oss-nvidia-driver-gpu-ubuntu-24.04/latest/ami-id"
)
