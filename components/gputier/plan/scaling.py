"""How many machines run, and for how many hours a month."""

from __future__ import annotations

from typing import NamedTuple

from gputier.plan.verdict import Verdict
from gputier.units import HOURS_PER_MONTH
from gputier.workload import Workload, hours_per_month


class ScalingPlan(NamedTuple):
    """Machines at least and at most, and hours a month each of the minimum runs.

    `hours_basis` says where the hours come from. `saved_usd_per_month` is what the schedule
    saves against running 730 hours; None without a schedule or a price.
    """

    min: int
    max: int
    metric: str | None
    target: float | None
    hours_per_month: float
    hours_basis: str
    schedule: tuple[tuple[str, str, str], ...]
    saved_usd_per_month: float | None


def hours_of(workload: Workload) -> tuple[float, str]:
    """Hours a month: declared, else from the schedule, else 730."""
    if workload.hours_per_month is not None:
        return workload.hours_per_month, "declared"
    if workload.schedule:
        return hours_per_month(workload.schedule), "schedule"
    return HOURS_PER_MONTH, "always on"


def plan_scaling(workload: Workload, chosen: Verdict) -> ScalingPlan:
    """Bounds of the fleet. Without `scale` it stays at the workload's nodes."""
    hours, basis = hours_of(workload)
    scale, nodes = workload.scale, chosen.machine.nodes
    low = nodes if scale.min is None else scale.min
    high = low if scale.max is None else scale.max
    saved = None
    if basis == "schedule" and chosen.total is not None:
        saved = chosen.total * (HOURS_PER_MONTH - hours) if low else 0.0
    return ScalingPlan(
        low,
        max(low, high),
        scale.metric if high > low else None,
        scale.target if high > low else None,
        hours,
        basis,
        tuple((s.start, s.stop, s.timezone) for s in workload.schedule),
        saved,
    )
