"""An AWS account in which every check of doctor is good, and parts of one that is not."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any

from tests.account.amazon_account import Amazon

ACCOUNT = "111122223333"
ROLE = f"arn:aws:iam::{ACCOUNT}:role/path/deploy"
AMI = "ami-0abc12345678def00"
BLOCK = "cr-0abc12345678def00"


def zones_of(region: str) -> list[str]:
    """Ids of a region's zones, as AWS has them: enough of them."""
    short = {"us-east-1": "use1", "eu-central-1": "euc1"}[region]
    return [f"{short}-az{n}" for n in range(1, 7)]


def role(name: str) -> dict[str, Any]:
    return {
        "Role": {
            "Path": "/",
            "RoleName": name,
            "RoleId": "AROAEXAMPLEEXAMPLE",
            "Arn": ROLE if name == "deploy" else f"arn:aws:iam::{ACCOUNT}:role/{name}",
            "CreateDate": datetime(2026, 1, 1, tzinfo=UTC),
        }
    }


def simulated(
    decision: str = "allowed", of: str = "", missing: tuple[str, ...] = ()
) -> Callable[[Mapping[str, Any]], dict[str, Any]]:
    """What a simulation says of every action, or of those that match."""

    def answer(parameters: Mapping[str, Any]) -> dict[str, Any]:
        found: list[dict[str, Any]] = []
        for name in parameters["ActionNames"]:
            meant = re.search(of, name) is not None
            one = {"EvalActionName": name, "EvalDecision": decision if meant else "allowed"}
            found.append(one | ({"MissingContextValues": list(missing)} if meant else {}))
        return {"EvaluationResults": found}

    return answer


def image(**changed: Any) -> dict[str, Any]:
    root = {"DeviceName": "/dev/sda1", "Ebs": {"VolumeSize": 75}}
    found = {"ImageId": AMI, "State": "available", "Architecture": "x86_64",
             "RootDeviceName": "/dev/sda1", "BlockDeviceMappings": [root]}  # fmt: skip
    return {"Images": [found | changed]}


def reservation(**changed: Any) -> dict[str, Any]:
    found = {
        "CapacityReservationId": BLOCK,
        "State": "active",
        "InstanceType": "p5.48xlarge",
        "InstancePlatform": "Linux/UNIX",
        "AvailabilityZone": "us-east-1a",
        "AvailabilityZoneId": "use1-az4",
        "TotalInstanceCount": 4,
        "AvailableInstanceCount": 4,
        "ReservationType": "default",
    }
    return {"CapacityReservations": [found | changed]}


def block(**changed: Any) -> dict[str, Any]:
    dates = {"StartDate": datetime(2026, 12, 10, 11, 30, tzinfo=UTC),
             "EndDate": datetime(2026, 12, 20, 11, 30, tzinfo=UTC)}  # fmt: skip
    return reservation(**{"ReservationType": "capacity-block", "State": "scheduled"}
                       | dates | changed)  # fmt: skip


def machine(type_: str, stack: str = "", lifecycle: str = "", **more: Any) -> dict[str, Any]:
    """A running machine, of one of our stacks or of nobody's."""
    found: dict[str, Any] = {"InstanceType": type_, **more}
    if lifecycle:
        found["InstanceLifecycle"] = lifecycle
    tags = {"gputier:project": "shop", "gputier:stack": stack} if stack else {}
    found["Tags"] = [{"Key": key, "Value": value} for key, value in tags.items()]
    return found


def machines(*found: dict[str, Any]) -> dict[str, Any]:
    return {"Reservations": [{"Instances": list(found)}]}


def quota(value: float) -> Callable[[Mapping[str, Any]], dict[str, Any]]:
    return lambda asked: {"Quota": {"QuotaCode": asked["QuotaCode"], "Value": value}}


def subnets(**changed: Any) -> dict[str, Any]:
    first = {"SubnetId": "subnet-0aaa", "AvailabilityZone": "us-east-1a",
             "AvailabilityZoneId": "use1-az1", "AvailableIpAddressCount": 250}  # fmt: skip
    second = {"SubnetId": "subnet-0bbb", "AvailabilityZone": "us-east-1b",
              "AvailabilityZoneId": "use1-az2", "AvailableIpAddressCount": 250,
              "Tags": [{"Key": "Name", "Value": "private-b"}]}  # fmt: skip
    return {"Subnets": [first | changed, second | changed]}


def tags(status: str) -> dict[str, Any]:
    one = {"TagKey": "gputier:fleet", "Type": "UserDefined", "Status": status}
    return {"CostAllocationTags": [one]}


def budget(kind: str = "COST") -> dict[str, Any]:
    found = {"BudgetName": "shop-aws-chat", "TimeUnit": "MONTHLY", "BudgetType": kind,
             "BudgetLimit": {"Amount": "600.0", "Unit": "USD"}}  # fmt: skip
    return {"Budget": found}


def _get_role(asked: Mapping[str, Any]) -> dict[str, Any]:
    return role(asked["RoleName"])


def _offerings(asked: Mapping[str, Any]) -> dict[str, Any]:
    type_ = asked["Filters"][0]["Values"][0]
    kind = asked["LocationType"]
    names = [f"us-east-1{letter}" for letter in "abcdef"]
    zones = names if kind == "availability-zone" else zones_of("us-east-1")
    found = [{"InstanceType": type_, "Location": zone, "LocationType": kind} for zone in zones]
    return {"InstanceTypeOfferings": found}


MONITOR = f"arn:aws:ce::{ACCOUNT}:anomalymonitor/5f0c9a1e-0000-4000-8000-000000000001"


def monitors(*arns: str) -> dict[str, Any]:
    """The account's monitors of unusual cost, in pages of their own."""
    made = [
        {"MonitorArn": arn, "MonitorName": "services", "MonitorType": "DIMENSIONAL"} for arn in arns
    ]
    return {"AnomalyMonitors": made}


def well_amazon() -> Amazon:
    """An AWS account in which every check is good."""
    amazon = Amazon()
    caller = f"arn:aws:sts::{ACCOUNT}:assumed-role/deploy/ann"
    amazon.has("sts", "get_caller_identity", {"Account": ACCOUNT, "Arn": caller, "UserId": "x"})
    amazon.has("iam", "get_role", _get_role)
    amazon.has("iam", "simulate_principal_policy", simulated())
    amazon.has("ec2", "describe_instance_type_offerings", _offerings)
    amazon.has("ec2", "describe_images", image())
    amazon.has("ec2", "describe_instances", machines())
    amazon.has("ec2", "describe_capacity_reservations", reservation())
    amazon.has("ec2", "describe_vpcs", {"Vpcs": [{"VpcId": "vpc-0aaa"}]})
    amazon.has("ec2", "describe_subnets", subnets())
    efa = {"EfaSupported": True, "EfaInfo": {"MaximumEfaInterfaces": 32}}
    amazon.has("ec2", "describe_instance_types", {"InstanceTypes": [{"NetworkInfo": efa}]})
    amazon.has("ssm", "get_parameter", {"Parameter": {"Value": AMI}})
    amazon.has("service-quotas", "get_service_quota", quota(5000))
    empty: dict[str, Any] = {"RequestedQuotas": []}
    amazon.has("service-quotas", "list_requested_service_quota_change_history_by_quota", empty)
    amazon.has("ce", "list_cost_allocation_tags", tags("Active"))
    amazon.has("ce", "get_anomaly_monitors", monitors(MONITOR))
    amazon.has("budgets", "describe_budget", "NotFoundException")
    return amazon
