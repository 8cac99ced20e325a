"""What is watched of a fleet: figures, alarms and a dashboard, and what they cost a month.

Alarms are kept to what somebody has to act on. Each says what it reads by the names under which the
machines' agent publishes it (`plan/metrics.py`), or AWS its own.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from gputier.catalog import Catalog
from gputier.plan import metrics
from gputier.plan.fleet import FleetPlan
from gputier.plan.metrics import Metric, of_gpus, of_group
from gputier.plan.scaling import ScalingPlan
from gputier.plan.verdict import Verdict
from gputier.units import HOURS_PER_MONTH
from gputier.workload import Budget

#: °C that a card reaches only when its cooling fails: data-centre cards slow down from about 85 to
#: 90 (`nvidia-smi -q -d TEMPERATURE`, GPU Slowdown Temp); our own figure.
HOT_CELSIUS = 85
#: Percent below which a GPU does nothing, and for how long until that is worth a word. Ours.
IDLE_PERCENT, IDLE_HOURS = 5, 2
#: How long a group may have fewer machines than it asked for: longer than a boot that installs a
#: driver takes to its gate. Ours.
SHORT_HOURS = 1
PERIOD_SECONDS = 300
PER_HOUR = 3600 // PERIOD_SECONDS
SAMPLES = PERIOD_SECONDS // metrics.INTERVAL_SECONDS
#: Target tracking makes two alarms of its own (catalogue, alarm-month).
TRACKING_ALARMS = 2

BELOW, ABOVE = "LessThanThreshold", "GreaterThanThreshold"
#: A fleet that is stopped sends nothing, and nothing is wrong then.
NOT_BREACHING = "notBreaching"


class Alarm(NamedTuple):
    """`expression` is metric math over the metrics' keys, None where there is one metric alone.
    `periods` of `period_seconds` must all breach; `missing` is what no data counts as."""

    key: str
    title: str
    metrics: tuple[Metric, ...]
    comparison: str
    threshold: float
    periods: int
    why: str
    expression: str | None = None
    period_seconds: int = PERIOD_SECONDS
    missing: str = NOT_BREACHING


class Widget(NamedTuple):
    """A panel. `search` is a search expression with a line for each GPU; else `metrics`, or an
    `expression` over them."""

    key: str
    title: str
    unit: str
    search: str | None
    metrics: tuple[Metric, ...]
    expression: str | None


class MonitoringPlan(NamedTuple):
    """`metrics` counts the series of all running machines; `usd_per_month` None when a price is
    unknown (Google bills metric data by volume, which nobody has measured here).

    `group_metrics` are AWS's own figures that the group is told to send, for nothing."""

    metrics: int
    usd_per_month: float | None
    borrowed: bool
    alarms: tuple[Alarm, ...]
    widgets: tuple[Widget, ...]
    group_metrics: tuple[str, ...]
    notes: tuple[str, ...]


class Watched(NamedTuple):
    """What is looked at."""

    chosen: Verdict
    fleet: FleetPlan
    scaling: ScalingPlan
    budget: Budget | None

    @property
    def grouped(self) -> bool:
        return self.fleet.shape == "group"


def plan_monitoring(
    catalog: Catalog, watched: Watched, running: tuple[int, float]
) -> MonitoringPlan:
    """CloudWatch prorates custom metrics by the hour they are sent."""
    machines, hours = running
    series = _series(watched, machines)
    if watched.chosen.type.cloud != "aws":
        return MonitoringPlan(series, None, False, (), (), (), ())
    cost = _cost(watched)
    alarms = (*_alarms(watched), *([cost] if cost else []))
    usd, borrowed = _price(catalog, watched, series * hours / HOURS_PER_MONTH, alarms)
    unknown = "no price is known: no alarm watches what the machines cost"
    return MonitoringPlan(
        series,
        usd,
        borrowed,
        alarms,
        tuple(_widgets(watched)),
        metrics.GROUP_METRICS if watched.grouped else (),
        (unknown,) if watched.grouped and cost is None else (),
    )


def _series(watched: Watched, machines: int) -> int:
    """Series that are billed: each GPU's, each machine's, and the rolled-up ones of the group, or
    of the lone machine, of all names."""
    each = len(metrics.GPU) * watched.chosen.machine.gpus + len(metrics.MACHINE)
    rolled = len(metrics.GPU) + len(metrics.MACHINE)
    if watched.chosen.type.cloud != "aws":
        return machines * each
    return machines * each + (rolled if machines else 0)


def _price(
    catalog: Catalog, watched: Watched, series: float, alarms: tuple[Alarm, ...]
) -> tuple[float | None, bool]:
    """USD a month of series, alarms (billed by the metric they read) and the dashboard."""
    read = sum(len(alarm.metrics) for alarm in alarms)
    read += TRACKING_ALARMS if watched.scaling.tracking else 0
    total, borrowed = 0.0, False
    for item, count in (("metric-month", series), ("alarm-month", read), ("dashboard-month", 1)):
        price = catalog.item("aws", item, watched.chosen.region)
        if price is None or price.usd is None:
            return None, False
        total += price.usd * count
        borrowed = borrowed or price.borrowed
    return total, borrowed


def _alarms(watched: Watched) -> Iterator[Alarm]:
    grouped = watched.grouped
    yield _dead(watched)
    yield Alarm(
        key="hot",
        title="A GPU is too hot",
        metrics=(of_gpus("temperature_gpu", grouped, "Maximum"),),
        comparison=ABOVE,
        threshold=HOT_CELSIUS,
        periods=3,
        why="a card this hot slows down, and all that wait for it with it",
    )
    yield Alarm(
        key="idle",
        title="GPUs are idle and paid for",
        metrics=(of_gpus("utilization_gpu", grouped, "Average"),),
        comparison=BELOW,
        threshold=IDLE_PERCENT,
        periods=IDLE_HOURS * PER_HOUR,
        why=f"under {IDLE_PERCENT} % for {IDLE_HOURS} hours: nobody uses what is billed",
    )
    if grouped:
        yield Alarm(
            key="short",
            title="Machines are refused, or cannot be had",
            metrics=(of_group("GroupDesiredCapacity", "wanted"), _in_service()),
            expression="wanted - machines",
            comparison=ABOVE,
            threshold=0,
            periods=SHORT_HOURS * PER_HOUR,
            why="the gate rejects what is launched, launches are stopped, or the cloud has no"
            " machine",
        )


def _dead(watched: Watched) -> Alarm:
    """GPUs that should send and do not, over the whole group: a share would hide one of many.
    Each sends a sample a minute. Half a GPU of room, for 15 minutes: samples come early or late."""
    gpus, grouped = watched.chosen.machine.gpus, watched.grouped
    samples = of_gpus("utilization_gpu", grouped, "SampleCount")._replace(key="samples")
    return Alarm(
        key="dead-gpu",
        title="A GPU sends nothing",
        metrics=(samples, _in_service()) if grouped else (samples,),
        expression=f"{gpus}{' * machines' if grouped else ''} - samples / {SAMPLES}",
        comparison=ABOVE,
        threshold=0.5,
        periods=3,
        why=f"not all {gpus} GPUs of each machine answer: one fell off its bus, or its driver hangs"
        if gpus > 1
        else "a GPU does not answer: it fell off its bus, or its driver hangs",
    )


def _in_service() -> Metric:
    return of_group("GroupInServiceInstances", "machines")


def _cost(watched: Watched) -> Alarm | None:
    """Machines in service times the price of one against what was planned: the budget spread over
    the hours that machines run, or without one the most machines that there may be."""
    price = watched.chosen.per_machine
    if price is None or not watched.grouped:
        return None
    if watched.budget is not None:
        most = watched.budget.usd_per_month / watched.scaling.hours_per_month
        why = f"kept up, this is more than ${watched.budget.usd_per_month:g} a month"
    else:
        # Half a machine of room: the product of two rounded figures is not compared for equality.
        most = price * (watched.scaling.max + 0.5)
        why = f"more than {watched.scaling.max} machines run"
    return Alarm(
        key="cost",
        title="The fleet costs more than planned",
        metrics=(_in_service(),),
        expression=_dollars(price),
        comparison=ABOVE,
        threshold=round(most, 6),
        periods=3,
        why=f"{why}; at the plan's price, USD per machine and hour",
    )


def _dollars(price: float) -> str:
    return f"machines * {price:.6f}".rstrip("0").rstrip(".")


_PER_GPU = (
    ("utilization", "Utilisation of each GPU", "%", "utilization_gpu"),
    ("temperature", "Temperature of each GPU", "°C", "temperature_gpu"),
    ("memory", "Memory in use of each GPU", "MiB", "memory_used"),
    ("power", "Power of each GPU", "W", "power_draw"),
)


def _widgets(watched: Watched) -> Iterator[Widget]:
    for key, title, unit, measurement in _PER_GPU:
        yield Widget(key, title, unit, search(measurement, watched.grouped), (), None)
    if not watched.grouped:
        return
    wanted = of_group("GroupDesiredCapacity", "wanted")
    both = (_in_service(), wanted)
    yield Widget("machines", "Machines in service and wanted", "", None, both, None)
    price = watched.chosen.per_machine
    if price is not None:
        each = (_in_service(),)
        yield Widget("cost", "USD per hour", "USD", None, each, _dollars(price))


def search(measurement: str, grouped: bool) -> str:
    """A line for each GPU. A search finds series with exactly these dimensions and no other."""
    own = (metrics.GROUP_DIMENSION, metrics.GROUP) if grouped else (
        metrics.INSTANCE_DIMENSION, metrics.INSTANCE)  # fmt: skip
    names = ",".join((metrics.AGENT, *dimensions(grouped)))
    name = metrics.PREFIX + measurement
    found = f'{{{names}}} MetricName="{name}" {own[0]}="{own[1]}"'
    return f"SEARCH('{found}', 'Average', {metrics.INTERVAL_SECONDS})"


def dimensions(grouped: bool) -> tuple[str, ...]:
    """The dimensions of one GPU's series."""
    machine = (metrics.INSTANCE_DIMENSION,)
    of = (metrics.GROUP_DIMENSION, *machine) if grouped else machine
    return (*of, *metrics.GPU_DIMENSIONS)
