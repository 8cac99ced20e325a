"""How many machines run, for how many hours a month, and what makes them more or fewer."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from gputier.plan import actions
from gputier.plan.actions import Action, Sizes
from gputier.plan.fleet import FleetPlan
from gputier.plan.metrics import Metric, of_gpus
from gputier.plan.verdict import Verdict
from gputier.units import HOURS_PER_MONTH
from gputier.workload import Workload, hours_per_month

#: Until so long after it joined, a machine's figures are not counted: a model is being loaded, and
#: its idle GPUs would stop the growth that started it. AWS urges setting it (EC2 Auto Scaling user
#: guide, default instance warmup); the figure is ours.
WARMUP_SECONDS = 300
#: Target tracking takes periods of 10, 30 or 60 s; the agent sends each minute (botocore,
#: CustomizedMetricSpecification).
TRACKED_SECONDS = 60


class Tracking(NamedTuple):
    """A figure of the group that is kept at `target` by adding and removing machines. It is the
    series with the group as its only dimension, which a policy must name exactly."""

    metric: Metric
    target: float
    warmup_seconds: int


class ScalingPlan(NamedTuple):
    """Machines at least and at most, and hours a month each of the minimum runs.

    `hours_basis` says where the hours come from. `saved_usd_per_month` is what the schedule
    saves against running 730 hours; None without a schedule or a price. `desired` is how many a
    group begins with; `actions` are what changes it at fixed times.
    """

    min: int
    max: int
    metric: str | None
    target: float | None
    hours_per_month: float
    hours_basis: str
    schedule: tuple[tuple[str, str, str], ...]
    saved_usd_per_month: float | None
    desired: int
    tracking: Tracking | None
    actions: tuple[Action, ...]
    notes: tuple[str, ...]


def hours_of(workload: Workload) -> tuple[float, str]:
    """Hours a month: declared, else from the schedule, else 730."""
    if workload.hours_per_month is not None:
        return workload.hours_per_month, "declared"
    if workload.schedule:
        return hours_per_month(workload.schedule), "schedule"
    return HOURS_PER_MONTH, "always on"


def bounds(workload: Workload, chosen: Verdict) -> tuple[int, int]:
    """Machines at least and at most. Without `scale` it stays at the workload's nodes."""
    scale, nodes = workload.scale, chosen.machine.nodes
    low = nodes if scale.min is None else scale.min
    high = low if scale.max is None else scale.max
    return low, max(low, high)


def plan_scaling(workload: Workload, chosen: Verdict, fleet: FleetPlan) -> ScalingPlan:
    """Bounds of the fleet, and what moves it between them."""
    hours, basis = hours_of(workload)
    low, high = bounds(workload, chosen)
    scale, moves = workload.scale, high > low
    saved = None
    if basis == "schedule" and chosen.total is not None:
        saved = chosen.total * (HOURS_PER_MONTH - hours) if low else 0.0
    tracking = None
    if moves and chosen.type.cloud == "aws":
        metric = of_gpus("utilization_gpu", True, "Average", TRACKED_SECONDS)
        tracking = Tracking(metric, float(scale.target), WARMUP_SECONDS)
    # Asked to run when there is something to pay for: what is reserved comes later.
    sizes = Sizes(low, high, max(low, min(high, workload.nodes or low)))
    return ScalingPlan(
        low,
        high,
        scale.metric if moves else None,
        scale.target if moves else None,
        hours,
        basis,
        tuple((s.start, s.stop, s.timezone) for s in workload.schedule),
        saved,
        desired=0 if fleet.starts else sizes.desired,
        tracking=tracking,
        actions=(
            *actions.recurring(workload.schedule, sizes),
            *actions.once(fleet.starts, fleet.ends, sizes),
        ),
        notes=tuple(_notes(workload, low, fleet)),
    )


def _notes(workload: Workload, low: int, fleet: FleetPlan) -> Iterator[str]:
    if low == 0 and not workload.schedule:
        yield "an empty fleet sends no figures: it grows from zero only by hand or by a schedule"
    if workload.schedule and fleet.shape == "group":
        yield "a group made outside its hours runs until the next stop"
    if fleet.starts:
        yield f"no machine is asked for before what is reserved begins ({fleet.starts})"
    if fleet.ends:
        yield f"machines stop by {fleet.ends}, before the block takes them"
