"""Alerts and the dashboard."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

import pulumi
import pulumi_gcp as gcp

from gputier.gcp.place import FLEET_LABEL, Place, project_of
from gputier.plan.monitoring_gcp import (
    PERIOD_SECONDS,
    Alert,
    LogAlert,
    Panel,
    Watched,
    alerts,
    entries,
    log_alerts,
    panels,
    query,
    series,
)

#: Panels lie in a grid of 48 columns (Monitoring API v1, MosaicLayout).
COLUMNS, WIDTH, HEIGHT = 48, 24, 16
#: A condition over log entries wants a limit of how often it tells (Monitoring API v3,
#: AlertStrategy.notificationRateLimit); ours.
TELLS_EVERY = "3600s"


class Monitoring(pulumi.ComponentResource):
    """The alerts of a fleet and its dashboard. `channels` are whom alerts tell: without any they
    are seen in the console alone, and an address is its owner's to give."""

    dashboard_url: pulumi.Output[str]

    def __init__(
        self,
        place: Place,
        plan: Watched,
        *,
        channels: tuple[pulumi.Input[str], ...] = (),
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        super().__init__("gputier:gcp:Monitoring", place.name, None, opts)
        self._place, self._channels = place, channels
        fleet = place.labels[FLEET_LABEL]
        for alert in alerts(plan):
            self._alert(alert, _condition(alert, fleet), None)
        for told in log_alerts(plan):
            filter_ = entries(told.filter, fleet, place.names.of("instance"))
            limit = {"notification_rate_limit": {"period": TELLS_EVERY}}
            self._alert(told, {"condition_matched_log": {"filter": filter_}}, limit)
        dashboard = gcp.monitoring.Dashboard(
            place.logical("dashboard"),
            dashboard_json=body(panels(plan), place.names.of("dashboard"), fleet),
            opts=pulumi.ResourceOptions(parent=self),
        )
        self.dashboard_url = pulumi.Output.all(dashboard.id, project_of(self).id).apply(
            lambda known: _url(*known)
        )
        self.register_outputs({"dashboard_url": self.dashboard_url})

    def _alert(self, alert: Alert | LogAlert, condition: dict[str, Any], strategy: Any) -> None:
        whole: Any = {"display_name": alert.title, **condition}
        place = self._place
        gcp.monitoring.AlertPolicy(
            place.logical(alert.key),
            display_name=f"{place.names.of('alarm')}: {alert.title}",
            combiner="OR",
            conditions=[whole],
            alert_strategy=strategy,
            documentation={"content": alert.why, "mime_type": "text/markdown"},
            notification_channels=list(self._channels),
            user_labels=place.labels,
            opts=pulumi.ResourceOptions(parent=self),
        )


def _url(dashboard: str, project: str) -> str:
    host = "https://console.cloud.google.com/monitoring/dashboards/builder"
    return f"{host}/{dashboard.rsplit('/', 1)[-1]}?project={project}"


def _condition(alert: Alert, fleet: str) -> dict[str, Any]:
    if alert.sent_first:
        asked = {
            "query": query(alert, fleet),
            "duration": f"{alert.seconds}s",
            "evaluation_interval": "60s",
            "disable_metric_validation": True,
        }
        return {"condition_prometheus_query_language": asked}
    aggregation = {
        "alignment_period": f"{PERIOD_SECONDS}s",
        "per_series_aligner": alert.aligner,
        "cross_series_reducer": alert.reducer,
        "group_by_fields": list(alert.by) or None,
    }
    return {
        "condition_threshold": {
            "filter": series(alert.metric, alert.more, fleet, alert.of),
            "comparison": alert.comparison,
            "threshold_value": alert.threshold,
            "duration": f"{alert.seconds}s",
            "aggregations": [aggregation],
        },
    }


def body(panels: Iterable[Panel], title: str, fleet: str) -> str:
    """The dashboard: two panels side by side, in the plan's order."""
    tiles = [
        {
            "xPos": at * WIDTH % COLUMNS,
            "yPos": at * WIDTH // COLUMNS * HEIGHT,
            "width": WIDTH,
            "height": HEIGHT,
            "widget": {"title": panel.title, "xyChart": _chart(panel, fleet)},
        }
        for at, panel in enumerate(panels)
    ]
    layout = {"columns": COLUMNS, "tiles": tiles}
    return json.dumps({"displayName": title, "mosaicLayout": layout})


def _chart(panel: Panel, fleet: str) -> dict[str, Any]:
    aggregation = {"alignmentPeriod": "60s", "perSeriesAligner": panel.aligner}
    asked = {
        "filter": series(panel.metric, panel.more, fleet, panel.of),
        "aggregation": aggregation,
    }
    shown = {"plotType": "LINE", "timeSeriesQuery": {"timeSeriesFilter": asked}}
    return {"dataSets": [shown], "yAxis": {"label": panel.unit, "scale": "LINEAR"}}
