"""GPU metrics of a fleet and what they cost a month."""

from __future__ import annotations

from typing import NamedTuple

from gputier.catalog import Catalog
from gputier.plan.verdict import Verdict
from gputier.units import HOURS_PER_MONTH

#: Per GPU: utilisation, temperature, memory (requirement 19). Per machine: disk and memory used.
METRICS_PER_GPU = 3
METRICS_PER_MACHINE = 2


class MonitoringPlan(NamedTuple):
    """`metrics` is for all running machines; `usd_per_month` None when the price is unknown
    (Google bills metric data by volume, which nobody has measured here)."""

    metrics: int
    usd_per_month: float | None
    borrowed: bool


def plan_monitoring(
    catalog: Catalog, chosen: Verdict, running: tuple[int, float]
) -> MonitoringPlan:
    """CloudWatch prorates custom metrics by the hour they are sent."""
    machines, hours = running
    metrics = machines * (METRICS_PER_GPU * chosen.machine.gpus + METRICS_PER_MACHINE)
    price = catalog.item(chosen.type.cloud, "metric-month", chosen.region)
    if price is None or price.usd is None:
        return MonitoringPlan(metrics, None, False)
    return MonitoringPlan(metrics, price.usd * metrics * hours / HOURS_PER_MONTH, price.borrowed)
