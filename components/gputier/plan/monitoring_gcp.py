"""What is watched of a fleet on Google: alerts and a dashboard, by the names of the Ops Agent.

A fleet's series are found by the label that all its machines have. Alerts are kept to what somebody
has to act on, and to what the agent sends: that a GPU sends nothing is not among them, for a
machine that is gone sends nothing either.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from gputier.plan.monitoring import HOT_CELSIUS, IDLE_HOURS, IDLE_PERCENT
from gputier.plan.scaling_gcp import UTILIZATION

#: What DCGM adds, by the agent's receiver of version 2 (GoogleCloudPlatform/ops-agent@588c4b9625,
#: 2026-08-05); the agent of a machine is told to send temperature, ECC errors and Xids
#: (boot/metrics.py).
TEMPERATURE = "workload.googleapis.com/gpu.dcgm.temperature"
MEMORY = "agent.googleapis.com/gpu/memory/bytes_used"
ECC = "workload.googleapis.com/gpu.dcgm.ecc_errors"
#: What stands for the fleet's label in a filter.
FLEET = "{fleet}"
#: Series of one fleet's machines (docs.cloud.google.com/monitoring/api/v3/filters, metadata labels;
#: recalled and so unverified).
MACHINES = 'resource.type = "gce_instance" AND metadata.user_labels."gputier-fleet" = "{fleet}"'
PERIOD_SECONDS = 300
ABOVE, BELOW = "COMPARISON_GT", "COMPARISON_LT"
MEAN, MOST, RATE = "ALIGN_MEAN", "ALIGN_MAX", "ALIGN_DELTA"


class Alert(NamedTuple):
    """What a series is compared with, and for how many seconds it has to stay there. `aligner`
    makes one value of each period, `reducer` one of all series (None: each is looked at)."""

    key: str
    title: str
    metric: str
    more: str
    aligner: str
    reducer: str | None
    comparison: str
    threshold: float
    seconds: int
    why: str


class Panel(NamedTuple):
    """A line for each GPU of a metric; `more` is what else is asked of a series."""

    title: str
    metric: str
    more: str
    aligner: str
    unit: str


def alerts() -> Iterator[Alert]:
    """The alerts of any fleet."""
    yield Alert(
        key="hot",
        title="A GPU is too hot",
        metric=TEMPERATURE,
        more="",
        aligner=MOST,
        reducer=None,
        comparison=ABOVE,
        threshold=HOT_CELSIUS,
        seconds=3 * PERIOD_SECONDS,
        why="a card this hot slows down, and all that wait for it with it",
    )
    yield Alert(
        key="idle",
        title="GPUs are idle and paid for",
        metric=UTILIZATION,
        more="",
        aligner=MEAN,
        reducer="REDUCE_MEAN",
        comparison=BELOW,
        threshold=IDLE_PERCENT,
        seconds=IDLE_HOURS * 3600,
        why=f"under {IDLE_PERCENT} % for {IDLE_HOURS} hours: nobody uses what is billed",
    )
    yield Alert(
        key="ecc",
        title="A GPU's memory has an error that is not corrected",
        metric=ECC,
        more=' AND metric.labels.error_type = "dbe"',
        aligner=RATE,
        reducer=None,
        comparison=ABOVE,
        threshold=0,
        seconds=0,
        why="what was in it is lost: the card, or its machine, has to be replaced",
    )


PANELS = (
    Panel("Utilisation of each GPU", UTILIZATION, "", MEAN, "%"),
    Panel("Temperature of each GPU", TEMPERATURE, "", MOST, "°C"),
    Panel(
        "Memory in use of each GPU",
        MEMORY,
        ' AND metric.labels.memory_state = "used"',
        MEAN,
        "bytes",
    ),
)


def series(metric: str, more: str, fleet: str) -> str:
    """The filter of a metric's series of one fleet."""
    machines = MACHINES.replace(FLEET, fleet)
    return f'metric.type = "{metric}" AND {machines}{more}'
