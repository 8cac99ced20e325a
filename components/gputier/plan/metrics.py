"""The figures that a fleet's machines send, by the names under which the cloud knows them.

One home for the agent that publishes them (`gputier.boot`), the alarms and dashboards that read
them, and the scaling that goes by them.
"""

from __future__ import annotations

from typing import NamedTuple

#: What the CloudWatch agent is told to measure on each GPU. Names are the agent's own; CloudWatch
#: shows them with `nvidia_smi_` before (docs.aws.amazon.com, CloudWatch-Agent-NVIDIA-GPU; agent
#: 1.300071.0 of 2026-07-22).
GPU = ("utilization_gpu", "temperature_gpu", "memory_used", "power_draw")
PREFIX = "nvidia_smi_"
#: And of each machine: the share of memory and of the root disk in use.
MACHINE = ("mem_used_percent", "disk_used_percent")
INTERVAL_SECONDS = 60
#: Dimensions of one GPU's series beside those of its machine; the agent drops the UUID
#: (amazon-cloudwatch-agent@ab55b8d, translate/metrics/config/deny_list_tags.go).
GPU_DIMENSIONS = ("index", "name", "arch")

AGENT = "CWAgent"
AUTO_SCALING = "AWS/AutoScaling"
GROUP_DIMENSION, INSTANCE_DIMENSION = "AutoScalingGroupName", "InstanceId"
#: What stands for the group and the machine in a dimension's value: known when they are made.
GROUP, INSTANCE = "{group}", "{instance}"
#: AWS's own figures of a group; they cost nothing, and are there once the group is told to send
#: them (autoscaling API 2011-01-01, EnableMetricsCollection).
GROUP_METRICS = ("GroupInServiceInstances", "GroupDesiredCapacity")


class Metric(NamedTuple):
    """One series. `key` is what an expression calls it; `statistic` over `period_seconds`."""

    key: str
    namespace: str
    name: str
    dimensions: tuple[tuple[str, str], ...]
    statistic: str
    period_seconds: int


def whole(grouped: bool) -> tuple[tuple[str, str], ...]:
    """The dimensions of the series that is rolled up over all GPUs of a group, or of a machine."""
    return ((GROUP_DIMENSION, GROUP) if grouped else (INSTANCE_DIMENSION, INSTANCE),)


def of_gpus(measurement: str, grouped: bool, statistic: str, period_seconds: int = 300) -> Metric:
    """A figure of all GPUs together."""
    key = measurement.partition("_")[0]
    return Metric(key, AGENT, PREFIX + measurement, whole(grouped), statistic, period_seconds)


def of_group(name: str, key: str, period_seconds: int = 300) -> Metric:
    """One of AWS's own figures of the group."""
    return Metric(key, AUTO_SCALING, name, whole(grouped=True), "Average", period_seconds)
