"""What doctor takes from tables: the quotas of every machine, and the actions of a deployment."""

from __future__ import annotations

import re
from importlib import import_module
from pathlib import Path
from typing import Any, cast

import pytest
from tests.account import discovery
from tests.account.doctor_world import declared

from gputier.account import doctor_aws_rights, doctor_gcp_account
from gputier.account.doctor_aws_quotas import quotas_of
from gputier.account.doctor_aws_rights import actions
from gputier.account.doctor_gcp_quotas import Metric, metrics_of
from gputier.account.doctor_targets import Target
from gputier.catalog import load

Session: Any = import_module("botocore.session").Session

_TABLES = cast("dict[str, object]", dict(vars(doctor_aws_rights)))
ALL_ACTIONS = {
    name
    for table in _TABLES.values()
    if isinstance(table, tuple)
    for name in cast("tuple[str, ...]", table)
}
#: Actions that are called otherwise than the operation (service authorization reference).
OTHERWISE = {
    "budgets:ModifyBudget": "CreateBudget",
    "budgets:ViewBudget": "DescribeBudget",
    "s3:PutBucketPublicAccessBlock": "PutPublicAccessBlock",
    "s3:PutEncryptionConfiguration": "PutBucketEncryption",
    "s3:PutLifecycleConfiguration": "PutBucketLifecycleConfiguration",
}
#: No operation: what else takes it is checked.
NO_OPERATION = {"iam:PassRole"}
#: What makes each resource that `gputier.aws` has.
MADE_BY = {
    "autoscaling.Group": "autoscaling:CreateAutoScalingGroup",
    "autoscaling.LifecycleHook": "autoscaling:PutLifecycleHook",
    "autoscaling.Policy": "autoscaling:PutScalingPolicy",
    "autoscaling.Schedule": "autoscaling:PutScheduledUpdateGroupAction",
    "budgets.Budget": "budgets:ModifyBudget",
    "cloudwatch.LogGroup": "logs:CreateLogGroup",
    "costexplorer.AnomalyMonitor": "ce:CreateAnomalyMonitor",
    "costexplorer.AnomalySubscription": "ce:CreateAnomalySubscription",
    "lambda_.Function": "lambda:CreateFunction",
    "lambda_.FunctionEventInvokeConfig": "lambda:PutFunctionEventInvokeConfig",
    "lambda_.Permission": "lambda:AddPermission",
    "sns.TopicSubscription": "sns:Subscribe",
    "cloudwatch.Dashboard": "cloudwatch:PutDashboard",
    "cloudwatch.MetricAlarm": "cloudwatch:PutMetricAlarm",
    "ebs.Volume": "ec2:CreateVolume",
    "ec2.Eip": "ec2:AllocateAddress",
    "ec2.Instance": "ec2:RunInstances",
    "ec2.InternetGateway": "ec2:CreateInternetGateway",
    "ec2.LaunchTemplate": "ec2:CreateLaunchTemplate",
    "ec2.NatGateway": "ec2:CreateNatGateway",
    "ec2.PlacementGroup": "ec2:CreatePlacementGroup",
    "ec2.Route": "ec2:CreateRoute",
    "ec2.RouteTable": "ec2:CreateRouteTable",
    "ec2.RouteTableAssociation": "ec2:AssociateRouteTable",
    "ec2.SecurityGroup": "ec2:CreateSecurityGroup",
    "ec2.Subnet": "ec2:CreateSubnet",
    "ec2.VolumeAttachment": "ec2:AttachVolume",
    "ec2.Vpc": "ec2:CreateVpc",
    "ec2.VpcEndpoint": "ec2:CreateVpcEndpoint",
    "iam.InstanceProfile": "iam:CreateInstanceProfile",
    "iam.Policy": "iam:CreatePolicy",
    "iam.Role": "iam:CreateRole",
    "iam.RolePolicy": "iam:PutRolePolicy",
    "kms.Alias": "kms:CreateAlias",
    "kms.Grant": "kms:CreateGrant",
    "kms.Key": "kms:CreateKey",
    "s3.Bucket": "s3:CreateBucket",
    "s3.BucketLifecycleConfiguration": "s3:PutLifecycleConfiguration",
    "s3.BucketObjectv2": "s3:PutObject",
    "s3.BucketOwnershipControls": "s3:PutBucketOwnershipControls",
    "s3.BucketPolicy": "s3:PutBucketPolicy",
    "s3.BucketPublicAccessBlock": "s3:PutBucketPublicAccessBlock",
    "s3.BucketServerSideEncryptionConfiguration": "s3:PutEncryptionConfiguration",
    "scheduler.Schedule": "scheduler:CreateSchedule",
    "sns.Topic": "sns:CreateTopic",
    "sns.TopicPolicy": "sns:SetTopicAttributes",
    "vpc.SecurityGroupEgressRule": "ec2:AuthorizeSecurityGroupEgress",
    "vpc.SecurityGroupIngressRule": "ec2:AuthorizeSecurityGroupIngress",
}


def test_every_action_is_an_operation_of_its_service() -> None:
    session = Session()
    for action in sorted(ALL_ACTIONS - NO_OPERATION):
        service, name = action.split(":")
        operations = session.get_service_model(service).operation_names
        assert OTHERWISE.get(action, name) in operations, action


def test_every_resource_that_is_made_on_aws_has_its_action(root: Path) -> None:
    made: set[str] = set()
    for file in sorted((root / "components/gputier/aws").glob("*.py")):
        found = re.findall(r"\baws\.([a-z0-9_]+\.[A-Z]\w*)\(", file.read_text("utf-8"))
        made |= {name for name in found if not name.endswith(("Args", "ArgsDict", "Metric"))}
    assert made <= set(MADE_BY), "say which action makes it, and add it to doctor_aws_rights"
    assert set(MADE_BY.values()) <= ALL_ACTIONS


def test_a_deployment_asks_for_what_it_has_and_no_more() -> None:
    of = {
        name: set(actions(declared(name)[1].found)) for name in ("aws", "own-network", "reserved")
    }
    assert "autoscaling:PutScalingPolicy" in of["aws"]
    assert "budgets:ModifyBudget" in of["aws"]
    assert "budgets:ModifyBudget" not in of["reserved"]
    assert "lambda:CreateFunction" not in of["aws"]
    assert "ec2:CreateVpc" in of["aws"]
    assert "ec2:CreateVpc" not in of["own-network"]
    assert "kms:CreateKey" in of["own-network"] - of["aws"]
    assert "autoscaling:CreateAutoScalingGroup" not in of["own-network"]
    assert of["aws"] | of["own-network"] | of["reserved"] <= ALL_ACTIONS


def test_every_permission_of_google_is_one_of_a_method_s() -> None:
    """Permissions are named after methods; those that are not are listed."""
    otherwise = {"use", "updatePolicy", "actAs", "create", "delete", "update"}
    named = {one for role in doctor_gcp_account.ROLES.values() for one in role}
    compute = discovery.document("compute.v1")["resources"]
    for permission in sorted(named):
        service, resource, verb = permission.split(".")
        if service == "compute":
            assert resource in compute, permission
            assert verb in compute[resource]["methods"] or verb in otherwise, permission
    assert len(named) <= 100, "as many as may be asked at once"


def test_every_machine_of_aws_has_a_quota_on_spot_and_all_but_a_few_on_demand() -> None:
    catalog = load()
    families = {row.family for row in catalog.rows(["aws"])}
    without = {one for one in families if not quotas_of(catalog, one, spot=False)}
    # In no row of the table: old, or sold by appointment.
    assert without == {"g3", "g3s", "p2", "p6e-gb200"}
    assert all(quotas_of(catalog, one, spot=True) for one in families)


@pytest.mark.parametrize(
    ("family", "spot", "codes"),
    [
        ("g6", False, ["L-DB2E81BA"]),
        ("g6", True, ["L-3819A6DF"]),
        ("p5", False, ["L-417A185B"]),
        ("p5", True, ["L-C4BD4855", "L-7212CCBC"]),
        ("p4d", True, ["L-7212CCBC"]),
        ("m7i", False, []),
    ],
)
def test_a_family_counts_against_its_quota(family: str, spot: bool, codes: list[str]) -> None:
    assert [one.code for one in quotas_of(load(), family, spot=spot)] == codes


def metrics(name: str, *, spot: bool) -> list[str]:
    catalog = load()
    target = declared("gcp")[1].found[0]
    row = catalog.types["gcp", name]
    verdict = target.chosen.verdict._replace(type=row)
    moved = Target("x", target.plan, target.chosen._replace(verdict=verdict), locked=False)
    return [one.label for one in metrics_of(catalog, moved, spot=spot)]


@pytest.mark.parametrize(
    ("name", "spot", "wanted"),
    [
        ("g2-standard-4", False, ["NVIDIA_L4_GPUS", "GPUS_PER_GPU_FAMILY of NVIDIA_L4"]),
        ("g2-standard-4", True, ["PREEMPTIBLE_NVIDIA_L4_GPUS"]),
        ("n1+nvidia-tesla-t4x1", False, ["NVIDIA_T4_GPUS"]),
        ("a2-highgpu-1g", False, ["NVIDIA_A100_GPUS"]),
        ("a2-megagpu-16g", True, ["PREEMPTIBLE_NVIDIA_A100_GPUS"]),
        ("a2-ultragpu-1g", False, ["NVIDIA_A100_80GB_GPUS"]),
        ("a3-highgpu-8g", True, ["PREEMPTIBLE_NVIDIA_H100_GPUS"]),
        ("a3-megagpu-8g", False, ["GPUS_PER_GPU_FAMILY of NVIDIA_H100_MEGA"]),
        ("a4-highgpu-8g", False, ["GPUS_PER_GPU_FAMILY of NVIDIA_B200"]),
    ],
)
def test_a_machine_of_google_counts_against_its_quota(
    name: str, spot: bool, wanted: list[str]
) -> None:
    assert metrics(name, spot=spot) == wanted


def test_every_machine_of_google_counts_against_some_quota() -> None:
    for row in load().rows(["gcp"]):
        both = metrics(row.name, spot=False), metrics(row.name, spot=True)
        assert any(both), row.name
        assert all(len(one) <= 2 for one in both), (row.name, both)


def test_quotas_are_called_as_cloud_quotas_calls_them() -> None:
    assert Metric("NVIDIA_L4_GPUS").id == "NVIDIA-L4-GPUS-per-project-region"
    assert Metric("GPUS_ALL_REGIONS").id == "GPUS-ALL-REGIONS-per-project"
    family = Metric("GPUS_PER_GPU_FAMILY", "NVIDIA_H100")
    assert family.id == "GPUS-PER-GPU-FAMILY-per-project-region"
