"""The parts of a chosen machine's plan as JSON (docs/json.md)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import cast

from gputier.plan.boot import BootPlan
from gputier.plan.fleet import FleetPlan
from gputier.plan.identity import IdentityPlan
from gputier.plan.metrics import Metric
from gputier.plan.monitoring import Alarm, MonitoringPlan, Widget
from gputier.plan.network import NetworkPlan
from gputier.plan.scaling import ScalingPlan
from gputier.plan.storage import StoragePlan

Json = Mapping[str, object]


def boot_document(boot: BootPlan) -> Json:
    """What a machine is given at boot; None is what does not apply."""
    return {name: _plain(value) for name, value in boot._asdict().items()}


def scaling_document(scaling: ScalingPlan) -> Json:
    """How many machines run, and what changes that."""
    tracking = scaling.tracking
    return {
        "min": scaling.min,
        "max": scaling.max,
        "metric": scaling.metric,
        "target": scaling.target,
        "schedule": [
            {"start": start, "stop": stop, "timezone": zone}
            for start, stop, zone in scaling.schedule
        ],
        "desired": scaling.desired,
        "tracking": None
        if tracking is None
        else {
            "metric": _metric(tracking.metric),
            "target": tracking.target,
            "warmup_seconds": tracking.warmup_seconds,
        },
        "actions": [_plain(action) for action in scaling.actions],
    }


def storage_document(storage: StoragePlan) -> Json:
    """Volumes of each machine."""
    return {
        "root_gib": storage.root_gib,
        "data_gib": storage.data_gib,
        "kind": storage.kind,
        "throughput_mb_s": storage.throughput_mb_s,
        "iops": storage.iops,
        "scratch_gib": storage.scratch_gib,
        "attached_ssds": storage.attached_ssds,
        "persist": storage.persist,
        "root": _plain(storage.root),
        "data": _plain(storage.data),
        "key": _plain(storage.key),
    }


def network_document(network: NetworkPlan) -> Json:
    """Where machines stand and how they get out."""
    return {
        "placement": network.placement,
        "fabric": network.fabric,
        "egress": network.egress,
        "adopted": network.adopted,
        "vpc": network.vpc,
        "subnets": list(network.subnets),
        "interfaces": [_plain(one) for one in network.interfaces],
        "public_ip": network.public_ip,
        "nat_gateways": network.nat_gateways,
        "endpoints": list(network.endpoints),
    }


def monitoring_document(monitoring: MonitoringPlan) -> Json:
    """What is watched."""
    return {
        "metrics": monitoring.metrics,
        "group_metrics": list(monitoring.group_metrics),
        "alarms": [_alarm(alarm) for alarm in monitoring.alarms],
        "widgets": [_widget(widget) for widget in monitoring.widgets],
    }


def _alarm(alarm: Alarm) -> Json:
    found = {name: _plain(value) for name, value in alarm._asdict().items()}
    return {**found, "metrics": [_metric(metric) for metric in alarm.metrics]}


def _widget(widget: Widget) -> Json:
    found = {name: _plain(value) for name, value in widget._asdict().items()}
    return {**found, "metrics": [_metric(metric) for metric in widget.metrics]}


def _metric(metric: Metric) -> Json:
    return {**metric._asdict(), "dimensions": dict(metric.dimensions)}


def fleet_document(fleet: FleetPlan) -> Json:
    """The fleet: its shape, its purchase, how a change reaches it."""
    # Its notes are told with all others.
    return {name: _plain(value) for name, value in fleet._asdict().items() if name != "notes"}


def identity_document(identity: IdentityPlan) -> Json:
    """Whose rights the machines have."""
    return {
        "role": identity.role,
        "permissions_boundary": identity.permissions_boundary,
        "reports": identity.reports,
        "statements": [
            {
                "sid": one.sid,
                "actions": list(one.actions),
                "resources": list(one.resources),
                "conditions": [
                    {"operator": operator, "key": key, "value": value}
                    for operator, key, value in one.conditions
                ],
                "why": one.why,
            }
            for one in identity.statements
        ],
    }


def _plain(value: object) -> object:
    """A part of a plan as JSON has it: records and maps are objects, sequences lists."""
    record: Callable[[], dict[str, object]] | None = getattr(value, "_asdict", None)
    if record is not None:
        return {name: _plain(inner) for name, inner in record().items()}
    if isinstance(value, tuple):
        return [_plain(inner) for inner in cast("tuple[object, ...]", value)]
    if isinstance(value, Mapping):
        return dict(cast("Mapping[str, object]", value))
    return value
