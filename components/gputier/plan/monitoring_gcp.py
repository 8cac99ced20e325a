"""What is watched of a fleet on Google: alerts and a dashboard, by the names of the Ops Agent.

The alerts are those of `plan/monitoring.py` by key and title, as far as Google has the signal: the
agent's figures, the size of a group, and the log of what became of machines. A fleet's series are
found by the label that all its machines have. docs/gcp.md says which there is none for, and why.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from gputier.plan.model import Chosen
from gputier.plan.monitoring import HOT_CELSIUS, IDLE_HOURS, IDLE_PERCENT
from gputier.plan.scaling_gcp import UTILIZATION, autoscaling

#: What DCGM adds, by the agent's receiver of version 2 (GoogleCloudPlatform/ops-agent@588c4b9625,
#: 2026-08-05); the agent of a machine is told to send temperature, ECC errors and Xids
#: (boot/metrics.py).
TEMPERATURE = "workload.googleapis.com/gpu.dcgm.temperature"
MEMORY = "agent.googleapis.com/gpu/memory/bytes_used"
ECC = "workload.googleapis.com/gpu.dcgm.ecc_errors"
#: Google's own figure of a group, which costs nothing (Cloud Monitoring, Google Cloud metrics;
#: the resource and its label as public Terraform modules have them, 2026).
SIZE = "compute.googleapis.com/instance_group/size"
#: What stands in a filter for the fleet's label, which is the group's name too, and for what the
#: names of its machines begin with.
FLEET, MACHINE = "{fleet}", "{machine}"
#: Series of one fleet's machines (docs.cloud.google.com/monitoring/api/v3/filters, metadata labels;
#: recalled and so unverified), and of its group.
MACHINES = 'resource.type = "gce_instance" AND metadata.user_labels."gputier-fleet" = "{fleet}"'
GROUP = 'resource.type = "instance_group" AND resource.labels.instance_group_name = "{fleet}"'
#: Metrics of this domain are known to a project once a machine sent one, and an alert over one that
#: is not known is refused (github.com/world-federation-of-advertisers/cross-media-measurement,
#: issue 4350 of 2026-08): those are asked for in PromQL, where that can be waived (Monitoring API
#: v3, PrometheusQueryLanguageCondition.disableMetricValidation).
SENT_FIRST = "workload.googleapis.com/"
#: As MACHINES in PromQL, whose names of labels have no dash (Cloud Monitoring, PromQL, mapping of
#: metadata labels, 2026; that a dash becomes a low line is unverified).
PROMQL = '{{"{0}", monitored_resource="gce_instance", metadata_user_gputier_fleet="{1}"{2}}}'
PERIOD_SECONDS = 300
ABOVE, BELOW = "COMPARISON_GT", "COMPARISON_LT"
MEAN, MOST, RATE = "ALIGN_MEAN", "ALIGN_MAX", "ALIGN_DELTA"
#: Entries that say that a machine is made anew or goes: by its health check, or asked for by itself
#: at its gate (node/cloud/compute.py); and that none could be made. Names of methods as audit logs
#: have them (Cloud Audit Logs of Compute Engine; public logs of 2018 to 2026).
REPAIRED = 'protoPayload.methodName = "compute.instances.repair.recreateInstance"'
NOT_MADE = '(protoPayload.methodName : "compute.instances.insert" AND severity >= ERROR)'
OF_MACHINE = 'protoPayload.resourceName : "/instances/{machine}-"'
REFUSED = (
    '(protoPayload.methodName : ("recreateInstances" OR "deleteInstances")'
    ' AND protoPayload.resourceName : "/instanceGroupManagers/{fleet}")'
)
#: What no alert of Google's tells that one of AWS's does, and why.
UNTOLD = {
    "dead-gpu": "a machine with one card that sends nothing is not told from one that does not run",
}


class Watched(NamedTuple):
    """What is looked at. `most` is how many machines are as dear as planned, None where no price is
    known; `spot` machines are made anew whenever they are taken; `clocked`: jobs bound its size."""

    gpus: int
    grouped: bool
    spot: bool
    most: float | None
    budget: float | None
    clocked: bool = False


class Alert(NamedTuple):
    """What a series is compared with, and for how many seconds it has to stay there. `aligner`
    makes one value of each period, `reducer` one of all series (None: each is looked at), or one of
    each `by`. `of` finds the series; `more` is what else is asked of one, in the language of
    filters, or of PromQL where its metric is `sent_first`."""

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
    by: tuple[str, ...] = ()
    of: str = MACHINES

    @property
    def sent_first(self) -> bool:
        """Whether its metric is not known before a machine sent it."""
        return self.metric.startswith(SENT_FIRST)


class LogAlert(NamedTuple):
    """Told when the log has an entry that `filter` finds, once in an hour."""

    key: str
    title: str
    filter: str
    why: str


class Panel(NamedTuple):
    """A line for each series of a metric; `more` is what else is asked of a series, `of` finds
    those of the fleet."""

    title: str
    metric: str
    more: str
    aligner: str
    unit: str
    of: str = MACHINES


def watched(chosen: Chosen) -> Watched:
    """What there is to look at of a planned fleet."""
    price, budget, scaling = chosen.verdict.per_machine, chosen.budget, chosen.scaling
    limit = budget.usd_per_month if budget else None
    if limit is not None and price:
        most = limit / scaling.hours_per_month / price
    else:
        # Half a machine of room, as on AWS.
        most = scaling.max + 0.5 if price else None
    spot = chosen.fleet.market == "spot"
    grouped = chosen.fleet.shape == "group"
    scaled = autoscaling(chosen, 0) if grouped else None
    clocked = scaled is not None and bool(scaled.bounds)
    return Watched(chosen.verdict.machine.gpus, grouped, spot, most, limit, clocked)


def alerts(fleet: Watched) -> Iterator[Alert]:
    """The alerts over series."""
    if fleet.gpus > 1:
        yield Alert(
            key="dead-gpu",
            title="A GPU sends nothing",
            metric=UTILIZATION,
            more="",
            aligner=MEAN,
            # So many cards of a machine have a series; a machine that is gone has none at all.
            reducer="REDUCE_COUNT",
            by=("resource.labels.instance_id",),
            comparison=BELOW,
            threshold=fleet.gpus - 0.5,
            seconds=3 * PERIOD_SECONDS,
            why=f"not all {fleet.gpus} GPUs of each machine answer: one fell off its bus, or its"
            " driver hangs",
        )
    yield from _ALWAYS
    if fleet.grouped and fleet.most is not None:
        yield Alert(
            key="cost",
            title="The fleet costs more than planned",
            metric=SIZE,
            more="",
            of=GROUP,
            aligner=MEAN,
            reducer="REDUCE_SUM",
            comparison=ABOVE,
            threshold=round(fleet.most, 6),
            seconds=3 * PERIOD_SECONDS,
            why=f"kept up, so many machines are more than ${fleet.budget:g} a month"
            if fleet.budget is not None
            else f"more than {fleet.most - 0.5:g} machines run",
        )


def log_alerts(fleet: Watched) -> Iterator[LogAlert]:
    """The alerts over the log of what became of machines. A spot machine that was taken is made
    anew as one that failed its check is, and nobody has to act on that."""
    if fleet.grouped:
        own = NOT_MADE if fleet.spot else f"({REPAIRED} OR {NOT_MADE})"
        yield LogAlert(
            key="short",
            title="Machines are refused, or cannot be had",
            filter=f"({own} AND {OF_MACHINE}) OR {REFUSED}",
            why="the gate rejects what is launched, a loop of machines that fail alike was ended,"
            " or the cloud has no machine",
        )
    if fleet.clocked:
        yield LogAlert(
            key="clock",
            title="A schedule did not come through",
            filter='resource.type = "cloud_scheduler_job" AND severity >= ERROR'
            ' AND resource.labels.job_id : "{fleet}-"',
            why="the job that ends the machines, or lets them come again, was refused: they run on"
            " and are paid for, or do not come",
        )


_ALWAYS = (
    Alert(
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
    ),
    Alert(
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
    ),
    Alert(
        key="ecc",
        title="A GPU's memory has an error that is not corrected",
        metric=ECC,
        more=', error_type="dbe"',
        aligner=RATE,
        reducer=None,
        comparison=ABOVE,
        threshold=0,
        seconds=0,
        why="what was in it is lost: the card, or its machine, has to be replaced",
    ),
)


_PANELS = (
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


def panels(fleet: Watched) -> Iterator[Panel]:
    """The dashboard's, in their order."""
    yield from _PANELS
    if fleet.grouped:
        yield Panel("Machines", SIZE, "", MEAN, "", GROUP)


def series(metric: str, more: str, fleet: str, of: str = MACHINES) -> str:
    """The filter of a metric's series of one fleet."""
    return f'metric.type = "{metric}" AND {of.replace(FLEET, fleet)}{more}'


def query(alert: Alert, fleet: str) -> str:
    """An alert over a metric that machines have to send first, in PromQL."""
    over = {MEAN: "avg_over_time", MOST: "max_over_time", RATE: "increase"}[alert.aligner]
    sign = {ABOVE: ">", BELOW: "<"}[alert.comparison]
    found = PROMQL.format(alert.metric, fleet, alert.more)
    return f"{over}({found}[{PERIOD_SECONDS}s]) {sign} {alert.threshold:g}"


def entries(text: str, fleet: str, machine: str) -> str:
    """The filter of log entries of one fleet."""
    return text.replace(FLEET, fleet).replace(MACHINE, machine)
