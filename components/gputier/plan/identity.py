"""What a machine may do: its role, and each right with the reason that it is needed.

Rights are the plan's, in the words of AWS's policies, with placeholders for what is known only when
they are made: {partition} {region} {account} {bucket} {group}. No action is a wildcard; `*` as a
resource stands only where the service knows no other, with the reason. What each of them allows
that it need not is said in docs/gates.md.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from gputier.plan.boot import GROUP_GATES, BootPlan
from gputier.plan.fleet import FleetPlan
from gputier.plan.identity_gcp import Grant, grants
from gputier.plan.metrics import AGENT
from gputier.workload import Workload

BUCKET = "arn:{partition}:s3:::{bucket}"
#: The group's id in its ARN is not known before the group is, and the group needs the role.
GROUP_ARN = (
    "arn:{partition}:autoscaling:{region}:{account}:autoScalingGroup:*:autoScalingGroupName/{group}"
)
EVERYTHING = "*"

Condition = tuple[str, str, str]


class Statement(NamedTuple):
    """One right. `conditions` are (operator, key, value)."""

    sid: str
    actions: tuple[str, ...]
    resources: tuple[str, ...]
    conditions: tuple[Condition, ...]
    why: str


class IdentityPlan(NamedTuple):
    """Whose rights the machines have. `role` is an existing one, else one is made with
    `statements` (AWS) or `grants` (Google), bounded by `permissions_boundary`; `reports` keep or
    remove."""

    role: str | None
    permissions_boundary: str | None
    reports: str
    statements: tuple[Statement, ...]
    grants: tuple[Grant, ...] = ()


def plan_identity(workload: Workload, cloud: str, fleet: FleetPlan, boot: BootPlan) -> IdentityPlan:
    """The rights of one workload's machines. An existing role needs the same ones."""
    given = workload.identity
    statements = tuple(_aws(fleet, boot)) if cloud == "aws" else ()
    rights = tuple(grants(fleet, boot)) if cloud == "gcp" else ()
    return IdentityPlan(given.role, given.permissions_boundary, given.reports, statements, rights)


def _aws(fleet: FleetPlan, boot: BootPlan) -> Iterator[Statement]:
    """Least rights on AWS (service authorization reference: which actions know a resource)."""
    name = fleet.resources
    here: tuple[Condition, ...] = (("StringEquals", "s3:ResourceAccount", "{account}"),)
    yield Statement(
        "ReadBundle",
        ("s3:GetObject",),
        (f"{BUCKET}/bundles/*",),
        here,
        "fetch the bundle that prepares and checks the machine",
    )
    yield Statement(
        "WriteReports",
        ("s3:PutObject",),
        (f"{BUCKET}/reports/{name}/*",),
        here,
        "leave a report of each boot where it outlives the machine",
    )
    yield Statement(
        "KeepFleetState",
        ("s3:GetObject", "s3:PutObject"),
        (f"{BUCKET}/breaker/{name}.json", f"{BUCKET}/bad-hosts/{name}.json"),
        here,
        "stop a fleet whose machines all fail alike, and know a bad host again",
    )
    if boot.gate.kind == GROUP_GATES["aws"]:
        yield from _GROUP
    yield from _ANYWHERE


_GROUP = (
    Statement(
        "PassGate",
        ("autoscaling:CompleteLifecycleAction", "autoscaling:RecordLifecycleActionHeartbeat"),
        (GROUP_ARN,),
        (),
        "join the group when every check passed, or be replaced",
    ),
    Statement(
        "StopLaunches",
        ("autoscaling:SuspendProcesses",),
        (GROUP_ARN,),
        (),
        "end a loop of machines that are bought and fail for the same reason",
    ),
    Statement(
        "GiveUp",
        ("autoscaling:SetInstanceHealth",),
        (GROUP_ARN,),
        (),
        "be replaced when a card fails in service",
    ),
)
#: What the services offer on everything alone.
_ANYWHERE = (
    Statement(
        "SessionManager",
        (
            "ssm:UpdateInstanceInformation",
            "ssmmessages:CreateControlChannel",
            "ssmmessages:CreateDataChannel",
            "ssmmessages:OpenControlChannel",
            "ssmmessages:OpenDataChannel",
        ),
        (EVERYTHING,),
        (),
        "a shell without an open port; these actions know no resource",
    ),
    Statement(
        "PublishMetrics",
        ("cloudwatch:PutMetricData",),
        (EVERYTHING,),
        (("StringEquals", "cloudwatch:namespace", AGENT),),
        "send what the GPUs do; the action knows no resource, so its namespace is the bound",
    ),
    Statement(
        "ReadTags",
        ("ec2:DescribeTags",),
        (EVERYTHING,),
        (("StringEquals", "ec2:Region", "{region}"),),
        "the metrics agent learns the group's name from a tag; the action knows no resource",
    ),
)
