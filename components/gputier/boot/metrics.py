"""What the metrics agent of a machine is told to send: per GPU, per machine, rolled up per group.

The same figures that `plan/monitoring.py` reads, by the names of `plan/metrics.py`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gputier.plan.metrics import GPU, GROUP_DIMENSION, INSTANCE_DIMENSION, INTERVAL_SECONDS

#: Of the hostmetrics receiver, one series per process and GPU: dear, and nobody's alarm
#: (github.com/GoogleCloudPlatform/ops-agent 2.71.0).
PER_PROCESS = ("agent.googleapis.com/gpu/processes/*", "agent.googleapis.com/processes/*")
#: Of DCGM (receiver version 2) what hostmetrics lacks stays: temperature, ECC errors, Xids.
DCGM_LEFT_OUT = tuple(
    f"workload.googleapis.com/gpu.dcgm.{name}"
    for name in (
        "utilization", "sm.*", "pipe.*", "codec.*", "memory.*", "pcie.*", "nvlink.*", "clock.*",
        "energy_consumption",
    )
)  # fmt: skip

AGENTS = {"aws": "cloudwatch", "gcp": "ops-agent"}


def metrics(cloud: str, grouped: bool) -> Mapping[str, Any]:
    """The `metrics` section of the settings. `grouped`: the machine is one of a group, whose mean
    is what scaling goes by."""
    agent = AGENTS.get(cloud, "none")
    if agent == "cloudwatch":
        return {"agent": agent, "config": _cloudwatch(grouped)}
    if agent == "ops-agent":
        return {"agent": agent, "config": _ops_agent()}
    return {"agent": agent}


def _cloudwatch(grouped: bool) -> Mapping[str, Any]:
    """Target tracking and alarms need a series with the group as its only dimension, or the lone
    machine, which `aggregation_dimensions` makes (CloudWatch-Agent-Configuration-File-Details,
    2026-08)."""
    names = (GROUP_DIMENSION, INSTANCE_DIMENSION) if grouped else (INSTANCE_DIMENSION,)
    sent: dict[str, Any] = {
        "aggregation_dimensions": [[names[0]]],
        "append_dimensions": {name: f"${{aws:{name}}}" for name in names},
        "metrics_collected": {
            "nvidia_gpu": {"measurement": list(GPU)},
            "mem": {"measurement": ["used_percent"]},
            "disk": {"measurement": ["used_percent"], "resources": ["/"]},
        },
    }
    return {"agent": {"metrics_collection_interval": INTERVAL_SECONDS}, "metrics": sent}


def _ops_agent() -> Mapping[str, Any]:
    """The agent finds the GPUs by itself; temperature comes from DCGM alone."""
    every = f"{INTERVAL_SECONDS}s"
    return {
        "metrics": {
            "receivers": {
                "hostmetrics": {"type": "hostmetrics", "collection_interval": every},
                "dcgm": {"type": "dcgm", "receiver_version": 2, "collection_interval": every},
            },
            "processors": {
                "processes": {"type": "exclude_metrics", "metrics_pattern": list(PER_PROCESS)},
                "most": {"type": "exclude_metrics", "metrics_pattern": list(DCGM_LEFT_OUT)},
            },
            "service": {
                "pipelines": {
                    "default_pipeline": {
                        "receivers": ["hostmetrics"], "processors": ["processes"],
                    },
                    "dcgm": {"receivers": ["dcgm"], "processors": ["most"]},
                }
            },
        }
    }  # fmt: skip
