"""What a person types to look at a fleet: commands of the AWS CLI, ready to copy."""

from __future__ import annotations

import shlex

from gputier.deploy.fleet import SSH


def shell(region: str, target: str) -> str:
    """A shell on a machine by Session Manager, without an open port."""
    return f"aws ssm start-session --region {region} --target {target}"


def forward(region: str, target: str, port: int) -> str:
    """A port of a machine on one's own."""
    local = 2222 if port == SSH else port
    ports = shlex.quote(f"portNumber={port},localPortNumber={local}")
    document = "--document-name AWS-StartPortForwardingSession"
    return f"{shell(region, target)} {document} --parameters {ports}"


def first_of_group(region: str, group: str) -> str:
    """A machine of a group that is in service, as the shell finds it when the command runs."""
    query = "AutoScalingGroups[0].Instances[?LifecycleState=='InService']|[0].InstanceId"
    asked = f"aws autoscaling describe-auto-scaling-groups --region {region}"
    named = f"--auto-scaling-group-names {group}"
    return f'"$({asked} {named} --query "{query}" --output text)"'


def group_state(region: str, group: str) -> str:
    """Every machine of a group and how far it is: Pending:Wait is before the gate."""
    query = "AutoScalingGroups[0].Instances[].[InstanceId,LifecycleState,HealthStatus]"
    return (
        f"aws autoscaling describe-auto-scaling-groups --region {region}"
        f" --auto-scaling-group-names {group} --query '{query}' --output table"
    )


def machine_state(region: str, bucket: str, workload: str) -> str:
    """The reports of a lone machine, the newest last."""
    return f"aws s3 ls --region {region} --recursive s3://{bucket}/reports/{workload}/"
