"""Alarms, the dashboard, and the topic that people subscribe to."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping

import pulumi
import pulumi_aws as aws

from gputier.aws.place import Place, account_of
from gputier.plan.metrics import GROUP, INSTANCE, Metric
from gputier.plan.monitoring import Alarm, MonitoringPlan, Widget

#: Widgets lie in a grid of 24 columns (CloudWatch user guide, dashboard body structure).
COLUMNS, WIDTH, HEIGHT = 24, 12, 6
#: The console's host by partition.
CONSOLES = {
    "aws": "console.aws.amazon.com",
    "aws-cn": "console.amazonaws.cn",
    "aws-us-gov": "console.amazonaws-us-gov.com",
}
#: Services that tell a topic something (CloudWatch and Budgets user guides).
TELLS = ("cloudwatch", "budgets")
#: And that tells of unusual cost (Cost Management user guide, SNS topic for anomaly notifications).
TELLS_ANOMALIES = "costalerts"


class Alerts(pulumi.ComponentResource):
    """The topic of a fleet's alarms and budget alerts, which these services may tell. Nobody is
    subscribed: an address is theirs to give, and has to be confirmed by them."""

    topic: pulumi.Output[str]

    def __init__(
        self,
        place: Place,
        *,
        services: tuple[str, ...] = TELLS,
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        super().__init__("gputier:aws:Alerts", place.name, None, opts)
        options = pulumi.ResourceOptions(parent=self)
        topic = aws.sns.Topic(
            place.logical("alerts"),
            name=place.names.of("alarm"),
            region=place.region,
            tags=place.tags,
            opts=options,
        )
        self.topic = topic.arn
        account = account_of(self)
        aws.sns.TopicPolicy(
            place.logical("alerts"),
            arn=topic.arn,
            policy=pulumi.Output.all(topic.arn, account.id).apply(
                lambda known: topic_policy(*known, services=services)
            ),
            region=place.region,
            opts=options,
        )
        self.register_outputs({"topic": self.topic})


def topic_policy(
    topic: str, account: str, services: Iterable[str] = TELLS, sid: str = "AlarmsAndBudgets"
) -> str:
    """Who may publish: these services, for this account."""
    allowed = {
        "Sid": sid,
        "Effect": "Allow",
        "Principal": {"Service": [f"{service}.amazonaws.com" for service in services]},
        "Action": "sns:Publish",
        "Resource": topic,
        "Condition": {"StringEquals": {"aws:SourceAccount": account}},
    }
    return json.dumps({"Version": "2012-10-17", "Statement": [allowed]})


class Monitoring(pulumi.ComponentResource):
    """Alarms and a dashboard over what the machines send. `own` is what stands for the fleet in a
    metric's dimension: the group's name, or a lone machine's id."""

    dashboard_url: pulumi.Output[str]

    def __init__(
        self,
        place: Place,
        plan: MonitoringPlan,
        *,
        own: pulumi.Input[str],
        topic: pulumi.Input[str],
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        super().__init__("gputier:aws:Monitoring", place.name, None, opts)
        self._place, self._topic = place, topic
        self._own = pulumi.Output.from_input(own)
        for alarm in plan.alarms:
            self._alarm(alarm)
        name, region = place.names.of("dashboard"), place.region
        aws.cloudwatch.Dashboard(
            place.logical("dashboard"),
            dashboard_name=name,
            dashboard_body=self._own.apply(lambda own: body(plan.widgets, region, own)),
            region=region,
            opts=pulumi.ResourceOptions(parent=self),
        )
        self.dashboard_url = account_of(self).partition.apply(
            lambda partition: dashboard_url(partition, region, name)
        )
        self.register_outputs({"dashboard_url": self.dashboard_url})

    def _alarm(self, alarm: Alarm) -> None:
        place, alone = self._place, alarm.metrics[0] if alarm.expression is None else None
        aws.cloudwatch.MetricAlarm(
            place.logical(f"alarm-{alarm.key}"),
            name=f"{place.names.of('alarm')}-{alarm.key}",
            alarm_description=f"{alarm.title}: {alarm.why}",
            comparison_operator=alarm.comparison,
            threshold=alarm.threshold,
            evaluation_periods=alarm.periods,
            treat_missing_data=alarm.missing,
            namespace=alone and alone.namespace,
            metric_name=alone and alone.name,
            dimensions=alone and self._dimensions(alone),
            statistic=alone and alone.statistic,
            period=alone and alarm.period_seconds,
            metric_queries=self._queries(alarm) if alarm.expression else None,
            alarm_actions=[self._topic],
            ok_actions=[self._topic],
            region=place.region,
            tags=place.tags,
            opts=pulumi.ResourceOptions(parent=self),
        )

    def _queries(self, alarm: Alarm) -> list[aws.cloudwatch.MetricAlarmMetricQueryArgs]:
        told = aws.cloudwatch.MetricAlarmMetricQueryArgs(
            id="told", expression=alarm.expression, label=alarm.title, return_data=True
        )
        read = [
            aws.cloudwatch.MetricAlarmMetricQueryArgs(
                id=metric.key,
                metric=aws.cloudwatch.MetricAlarmMetricQueryMetricArgs(
                    namespace=metric.namespace,
                    metric_name=metric.name,
                    dimensions=self._dimensions(metric),
                    stat=metric.statistic,
                    period=alarm.period_seconds,
                ),
            )
            for metric in alarm.metrics
        ]
        return [told, *read]

    def _dimensions(self, metric: Metric) -> dict[str, pulumi.Input[str]]:
        return {
            name: self._own if value in (GROUP, INSTANCE) else value
            for name, value in metric.dimensions
        }


def dashboard_url(partition: str, region: str, name: str) -> str:
    """Where a dashboard is looked at."""
    host = f"{region}.{CONSOLES.get(partition, CONSOLES['aws'])}"
    return f"https://{host}/cloudwatch/home?region={region}#dashboards/dashboard/{name}"


def body(widgets: Iterable[Widget], region: str, own: str) -> str:
    """The dashboard: two panels side by side, in the plan's order."""
    made = [
        {
            "type": "metric",
            "x": at * WIDTH % COLUMNS,
            "y": at * WIDTH // COLUMNS * HEIGHT,
            "width": WIDTH,
            "height": HEIGHT,
            "properties": {
                "title": widget.title,
                "region": region,
                "view": "timeSeries",
                "yAxis": {"left": {"label": widget.unit, "min": 0}},
                "metrics": _series(widget, own),
            },
        }
        for at, widget in enumerate(widgets)
    ]
    return json.dumps({"widgets": made})


def _series(widget: Widget, own: str) -> list[object]:
    if widget.search:
        return [[{"id": widget.key, "expression": _filled(widget.search, own)}]]
    shown = widget.expression is None
    told: list[object] = [[{"id": "told", "label": widget.title, "expression": widget.expression}]]
    return [*([] if shown else told), *(_line(metric, own, shown) for metric in widget.metrics)]


def _line(metric: Metric, own: str, shown: bool) -> list[object]:
    dimensions = [part for name, value in metric.dimensions for part in (name, _filled(value, own))]
    how: Mapping[str, object] = {
        "id": metric.key,
        "stat": metric.statistic,
        "period": metric.period_seconds,
        "visible": shown,
    }
    return [metric.namespace, metric.name, *dimensions, how]


def _filled(text: str, own: str) -> str:
    """A search has braces of its own, so the two placeholders are replaced and nothing else."""
    return text.replace(GROUP, own).replace(INSTANCE, own)
