"""What a deployment of a stack calls on AWS, as actions of a policy.

They follow from the resources that `gputier.aws` makes and from what the provider reads of them
(pulumi-aws 7.51); a test holds each against the names of the services' own operations.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from gputier.account.doctor_targets import Target


def _of(service: str, names: str) -> tuple[str, ...]:
    return tuple(f"{service}:{name}" for name in names.split())


ALWAYS = (
    *_of(
        "ec2",
        "RunInstances CreateTags DescribeInstances DescribeInstanceTypes DescribeImages"
        " DescribeVpcs DescribeSubnets DescribeSecurityGroups CreateSecurityGroup"
        " AuthorizeSecurityGroupEgress AuthorizeSecurityGroupIngress DeleteSecurityGroup",
    ),
    *_of(
        "s3",
        "CreateBucket PutObject GetObject PutBucketPolicy PutBucketPublicAccessBlock"
        " PutBucketOwnershipControls PutEncryptionConfiguration PutLifecycleConfiguration",
    ),
    *_of("cloudwatch", "PutMetricAlarm PutDashboard"),
    *_of("sns", "CreateTopic SetTopicAttributes"),
)
GROUP = (
    *_of("ec2", "CreateLaunchTemplate CreateLaunchTemplateVersion DeleteLaunchTemplate"),
    *_of(
        "autoscaling",
        "CreateAutoScalingGroup UpdateAutoScalingGroup DeleteAutoScalingGroup"
        " DescribeAutoScalingGroups DescribeScalingActivities PutLifecycleHook"
        " EnableMetricsCollection CreateOrUpdateTags",
    ),
)
ROLLING = _of("autoscaling", "StartInstanceRefresh DescribeInstanceRefreshes")
TRACKING = _of("autoscaling", "PutScalingPolicy")
HOURS_OF_GROUP = _of("autoscaling", "PutScheduledUpdateGroupAction")
LONE = _of("ec2", "ModifyInstanceAttribute StopInstances StartInstances TerminateInstances")
HOURS_OF_LONE = _of("scheduler", "CreateSchedule DeleteSchedule")
VOLUME = _of("ec2", "CreateVolume AttachVolume DetachVolume DeleteVolume")
PLACEMENT = _of("ec2", "CreatePlacementGroup DeletePlacementGroup")
ROLE = _of(
    "iam",
    "CreateRole DeleteRole GetRole PutRolePolicy PassRole CreateInstanceProfile"
    " AddRoleToInstanceProfile DeleteInstanceProfile",
)
PASSES = _of("iam", "GetRole PassRole CreateInstanceProfile AddRoleToInstanceProfile")
NETWORK = _of(
    "ec2",
    "CreateVpc ModifyVpcAttribute DeleteVpc CreateSubnet CreateRouteTable AssociateRouteTable"
    " CreateRoute CreateVpcEndpoint",
)
GATEWAY = _of("ec2", "CreateInternetGateway AttachInternetGateway")
NAT = _of("ec2", "CreateNatGateway AllocateAddress")
KEY = _of("kms", "CreateKey CreateAlias PutKeyPolicy CreateGrant DescribeKey")
GRANT = _of("kms", "CreateGrant DescribeKey")
BUDGET = _of("budgets", "ModifyBudget ViewBudget")
#: What stops a fleet that is over its budget.
STOP = (
    *_of("lambda", "CreateFunction AddPermission PutFunctionEventInvokeConfig DeleteFunction"),
    *_of("logs", "CreateLogGroup PutRetentionPolicy"),
    *_of("iam", "CreateRole PutRolePolicy CreatePolicy PassRole"),
    *_of("sns", "Subscribe"),
)
ANOMALIES = _of("ce", "CreateAnomalyMonitor CreateAnomalySubscription")
FAMILY = _of("ssm", "GetParameter")


def actions(targets: Iterable[Target]) -> tuple[str, ...]:
    """Every action that deploying these fleets takes, sorted."""
    return tuple(sorted({action for target in targets for action in _actions(target)}))


def _actions(target: Target) -> Iterator[str]:
    chosen = target.chosen
    fleet, scaling, storage = chosen.fleet, chosen.scaling, chosen.storage
    group = fleet.shape == "group"
    parts = [
        (ALWAYS, True),
        (GROUP, group),
        (ROLLING, group and fleet.refresh is not None),
        (TRACKING, group and scaling.tracking is not None),
        (HOURS_OF_GROUP, group and bool(scaling.actions)),
        (LONE, not group),
        (HOURS_OF_LONE, not group and bool(scaling.actions)),
        (VOLUME, not group and storage.data is not None),
        (PLACEMENT, fleet.placement != "none"),
        (ROLE, chosen.identity.role is None),
        (PASSES, chosen.identity.role is not None),
        (NETWORK, not chosen.network.adopted),
        (GATEWAY, not chosen.network.adopted and chosen.network.egress in ("nat", "public")),
        (NAT, not chosen.network.adopted and chosen.network.egress == "nat"),
        (KEY, storage.key is not None and storage.key.create),
        (GRANT, storage.key is not None and storage.key.grant and not storage.key.create),
        (BUDGET, chosen.budget is not None),
        (STOP, chosen.budget is not None and chosen.budget.stops),
        (ANOMALIES, chosen.budget is not None and chosen.budget.anomalies is not None),
        (FAMILY, chosen.boot.image.id is None),
    ]
    for names, wanted in parts:
        if wanted:
            yield from names
