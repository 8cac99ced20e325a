"""Alerts and the dashboard."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

import pulumi
import pulumi_gcp as gcp

from gputier.gcp.place import FLEET_LABEL, Place, project_of
from gputier.plan.monitoring_gcp import PANELS, PERIOD_SECONDS, Alert, Panel, alerts, series

#: Panels lie in a grid of 48 columns (Monitoring API v1, MosaicLayout).
COLUMNS, WIDTH, HEIGHT = 48, 24, 16


class Monitoring(pulumi.ComponentResource):
    """The alerts of a fleet and its dashboard. `channels` are whom alerts tell: without any they
    are seen in the console alone, and an address is its owner's to give."""

    dashboard_url: pulumi.Output[str]

    def __init__(
        self,
        place: Place,
        *,
        channels: tuple[pulumi.Input[str], ...] = (),
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        super().__init__("gputier:gcp:Monitoring", place.name, None, opts)
        fleet = place.labels[FLEET_LABEL]
        for alert in alerts():
            condition: Any = _condition(alert, fleet)
            gcp.monitoring.AlertPolicy(
                place.logical(alert.key),
                display_name=f"{place.names.of('alarm')}: {alert.title}",
                combiner="OR",
                conditions=[condition],
                documentation={"content": alert.why, "mime_type": "text/markdown"},
                notification_channels=list(channels),
                user_labels=place.labels,
                opts=pulumi.ResourceOptions(parent=self),
            )
        dashboard = gcp.monitoring.Dashboard(
            place.logical("dashboard"),
            dashboard_json=body(PANELS, place.names.of("dashboard"), fleet),
            opts=pulumi.ResourceOptions(parent=self),
        )
        self.dashboard_url = pulumi.Output.all(dashboard.id, project_of(self).id).apply(
            lambda known: _url(*known)
        )
        self.register_outputs({"dashboard_url": self.dashboard_url})


def _url(dashboard: str, project: str) -> str:
    host = "https://console.cloud.google.com/monitoring/dashboards/builder"
    return f"{host}/{dashboard.rsplit('/', 1)[-1]}?project={project}"


def _condition(alert: Alert, fleet: str) -> dict[str, Any]:
    aggregation = {
        "alignment_period": f"{PERIOD_SECONDS}s",
        "per_series_aligner": alert.aligner,
        "cross_series_reducer": alert.reducer,
    }
    return {
        "display_name": alert.title,
        "condition_threshold": {
            "filter": series(alert.metric, alert.more, fleet),
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
    asked = {"filter": series(panel.metric, panel.more, fleet), "aggregation": aggregation}
    shown = {"plotType": "LINE", "timeSeriesQuery": {"timeSeriesFilter": asked}}
    return {"dataSets": [shown], "yAxis": {"label": panel.unit, "scale": "LINEAR"}}
