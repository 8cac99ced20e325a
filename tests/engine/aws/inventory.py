"""What is in the account that somebody made: a destroyed stack leaves none of it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from tests.engine.aws import request
from tests.engine.aws.session import Session
from tests.engine.wire import Props

# type: service, operation, its arguments, the list in the answer, the name of one
LISTED: Mapping[str, tuple[str, str, Props, str, str]] = {
    "address": ("ec2", "DescribeAddresses", {}, "Addresses", "AllocationId"),
    "alarm": ("cloudwatch", "DescribeAlarms", {}, "MetricAlarms", "AlarmName"),
    "alias": ("kms", "ListAliases", {}, "Aliases", "AliasName"),
    "bucket": ("s3", "ListBuckets", {}, "Buckets", "Name"),
    "dashboard": ("cloudwatch", "ListDashboards", {}, "DashboardEntries", "DashboardName"),
    "endpoint": ("ec2", "DescribeVpcEndpoints", {}, "VpcEndpoints", "VpcEndpointId"),
    "function": ("lambda", "ListFunctions", {}, "Functions", "FunctionName"),
    "group": (
        "autoscaling",
        "DescribeAutoScalingGroups",
        {},
        "AutoScalingGroups",
        "AutoScalingGroupName",
    ),
    "instance-profile": (
        "iam",
        "ListInstanceProfiles",
        {},
        "InstanceProfiles",
        "InstanceProfileName",
    ),
    "interface": (
        "ec2",
        "DescribeNetworkInterfaces",
        {},
        "NetworkInterfaces",
        "NetworkInterfaceId",
    ),
    "internet-gateway": (
        "ec2",
        "DescribeInternetGateways",
        {},
        "InternetGateways",
        "InternetGatewayId",
    ),
    "launch-template": (
        "ec2",
        "DescribeLaunchTemplates",
        {},
        "LaunchTemplates",
        "LaunchTemplateId",
    ),
    "log-group": ("logs", "DescribeLogGroups", {}, "logGroups", "logGroupName"),
    "nat-gateway": ("ec2", "DescribeNatGateways", {}, "NatGateways", "NatGatewayId"),
    "parameter": ("ssm", "DescribeParameters", {}, "Parameters", "Name"),
    "policy": ("iam", "ListPolicies", {"Scope": "Local"}, "Policies", "Arn"),
    "role": ("iam", "ListRoles", {}, "Roles", "RoleName"),
    "route-table": ("ec2", "DescribeRouteTables", {}, "RouteTables", "RouteTableId"),
    "schedule": ("scheduler", "ListSchedules", {}, "Schedules", "Name"),
    "security-group": ("ec2", "DescribeSecurityGroups", {}, "SecurityGroups", "GroupId"),
    "subnet": ("ec2", "DescribeSubnets", {}, "Subnets", "SubnetId"),
    "subscription": ("sns", "ListSubscriptions", {}, "Subscriptions", "SubscriptionArn"),
    "topic": ("sns", "ListTopics", {}, "Topics", "TopicArn"),
    "volume": ("ec2", "DescribeVolumes", {}, "Volumes", "VolumeId"),
    "vpc": ("ec2", "DescribeVpcs", {}, "Vpcs", "VpcId"),
}
# What AWS itself puts into an account, and what is as good as gone.
NOT_OURS: Mapping[str, Callable[[Props], Any]] = {
    "alias": lambda found: found["AliasName"].startswith("alias/aws/"),
    "endpoint": lambda found: found["State"].lower().startswith("delet"),
    "nat-gateway": lambda found: found["State"].startswith("delet"),
    "parameter": lambda found: found["Name"].startswith("/aws/"),
    "role": lambda found: found["Path"].startswith("/aws-service-role/"),
    "route-table": lambda found: any(a.get("Main") for a in found["Associations"]),
    "security-group": lambda found: found["GroupName"] == "default",
    "subnet": lambda found: found["DefaultForAz"],
    "vpc": lambda found: found["IsDefault"],
}


def made(aws: Session) -> Iterator[tuple[str, str]]:
    """Of everything that somebody made in the session's region: its type and name."""
    machines = set(_machines(aws))
    for kind, (service, operation, arguments, items, name) in LISTED.items():
        found = request.method(aws.client(service), operation)(**arguments)
        skip = NOT_OURS.get(kind, lambda _: False)
        for item in found[items]:
            owners = {a.get("InstanceId") for a in _attachments(item)} - {None}
            if not skip(item) and (owners & machines or not owners):
                yield kind, item[name]
    yield from (("instance", name) for name in machines)
    yield from (("key", name) for name in _keys(aws))
    for kind in ("anomalymonitor", "anomalysubscription", "placement-group"):
        yield from ((kind, name) for name in aws.kept(kind))
    budgets = aws.client("budgets").describe_budgets(AccountId=aws.account)["Budgets"]
    yield from (("budget", budget["BudgetName"]) for budget in budgets)


def _attachments(found: Props) -> list[Props]:
    """What is still attached to a machine that is gone goes with it, and moto leaves it behind: its
    interfaces, and the disk of the image that another one was laid over. A volume that outlives its
    machine is detached."""
    one: Props | None = found.get("Attachment")
    several: list[Props] = found.get("Attachments") or []
    return [one] if one else several


def _machines(aws: Session) -> Iterator[str]:
    pages = aws.client("ec2").describe_instances()["Reservations"]
    for machine in (machine for page in pages for machine in page["Instances"]):
        if machine["State"]["Name"] not in ("terminated", "shutting-down"):
            yield machine["InstanceId"]


def _keys(aws: Session) -> Iterator[str]:
    """Without AWS's own and those that are to be deleted, which is as far as one can get."""
    kms = aws.client("kms")
    aliases = kms.list_aliases()["Aliases"]
    aws_s = {a.get("TargetKeyId") for a in aliases if NOT_OURS["alias"](a)}
    for key in kms.list_keys()["Keys"]:
        found = kms.describe_key(KeyId=key["KeyId"])["KeyMetadata"]
        if found["KeyState"] != "PendingDeletion" and found["KeyId"] not in aws_s:
            yield found["KeyId"]
