"""Dashboards, alerts and whom they tell, metrics of logs, topics, budgets and jobs by the hour."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any, ClassVar

from tests.engine import schema
from tests.engine.gcp.api import GoogleError
from tests.engine.gcp.request import Form, Name, Translation
from tests.engine.gcp.resource import Resource
from tests.engine.gcp.services import Service
from tests.engine.gcp.session import Session
from tests.engine.gcp.values import block
from tests.engine.provider import Refused
from tests.engine.wire import Props, is_unknown


class Dashboard(Service):
    token = "gcp:monitoring/dashboard:Dashboard"
    collection, kind = "monitoring.projects.dashboards", "dashboards"

    def request(self, gcp: Session, inputs: Props) -> Props:
        text = inputs["dashboardJson"]
        if is_unknown(text):
            return {}
        try:
            return dict(json.loads(text))
        except ValueError as error:
            raise Refused("dashboardJson", f"is no JSON: {error}") from error

    def read(self, gcp: Session, live: Props, inputs: Props) -> Props:
        """The document that was written, unless somebody drew something else."""
        shown = {k: v for k, v in live.items() if k not in ("name", "etag")}
        written = {k: v for k, v in self.request(gcp, inputs).items() if k not in ("name", "etag")}
        return inputs if shown == written else {**inputs, "dashboardJson": json.dumps(shown)}

    def patch(self, gcp: Session, key: str, body: Props) -> None:
        """A dashboard is drawn anew."""
        self.call(gcp, "patch", body, **self.parameters("patch", key))
        gcp.api.objects[key] = {**body, "name": key.partition("/")[2]}

    def difference(self, gcp: Session, olds: Props, news: Props, names: set[str]) -> Props:
        return self.request(gcp, news)

    def describe(self, gcp: Session, id_: str, live: Props, inputs: Props) -> Props:
        return {"project": gcp.project, "dashboardJson": json.dumps(live)}


class AlertPolicy(Service):
    token = "gcp:monitoring/alertPolicy:AlertPolicy"
    collection, parent, kind = "monitoring.projects.alertPolicies", "name", "alertPolicies"
    masked = True
    defaults = {"enabled": True}
    names: ClassVar[Mapping[str, Name]] = {
        "alertStrategy.notificationChannelStrategies": "notificationChannelStrategy",
        "conditions.conditionSql.booleanTest": "booleanTest",
    }
    chosen = frozenset({"severity"})

    def check(self, gcp: Session, inputs: Props) -> Iterator[schema.Problem]:
        yield from super().check(gcp, inputs)
        conditions: Any = inputs.get("conditions") or []
        for number, condition in enumerate(() if is_unknown(conditions) else conditions):
            at = f"conditions[{number}]"
            text: Any = (condition.get("conditionThreshold") or {}).get("filter", "")
            if isinstance(text, str) and SENT_FIRST.search(text):
                yield f"{at}.conditionThreshold.filter", "Cannot find metric(s) that match type"
            if condition.get("conditionMatchedLog"):
                if len(conditions) > 1:
                    yield at, "a condition over log entries stands alone"
                strategy: Any = inputs.get("alertStrategy") or {}
                if not is_unknown(strategy) and not strategy.get("notificationRateLimit"):
                    yield "alertStrategy", "a condition over log entries wants a rate limit"

    def made(self, gcp: Session, key: str, body: Props) -> None:
        for channel in body.get("notificationChannels", ()):
            gcp.api.get(f"monitoring/{channel}")
        for number, condition in enumerate(body.get("conditions", ())):
            condition["name"] = f"{body['name']}/conditions/{number}"


# Known to a project once somebody sent one (github.com/world-federation-of-advertisers/
# cross-media-measurement, issue 4350 of 2026-08).
SENT_FIRST = re.compile(r'metric\.type\s*=\s*"(workload|custom)\.googleapis\.com/')


SECRET_LABELS = {"authToken": "auth_token", "password": "password", "serviceKey": "service_key"}


def _secret_labels(_translation: Translation, value: Any) -> Any:
    unknown = sorted(value.keys() - SECRET_LABELS.keys())
    if unknown:
        raise Refused(f"sensitiveLabels.{unknown[0]}", "the API's labels have none for it")
    return {SECRET_LABELS[name]: text for name, text in value.items()}


def _open_labels(_translation: Translation, live: Any, old: Any) -> Any:
    """Google shows no secret ones."""
    found = {k: v for k, v in block(live).items() if k not in SECRET_LABELS.values()}
    return old if found == old else found


class NotificationChannel(Service):
    token = "gcp:monitoring/notificationChannel:NotificationChannel"
    collection, parent = "monitoring.projects.notificationChannels", "name"
    kind, masked = "notificationChannels", True
    apart = frozenset({"forceDelete"})
    names: ClassVar[Mapping[str, Name]] = {
        "labels": Form("labels", lambda _translation, value: {**value}, _open_labels),
        "sensitiveLabels": Form("labels", _secret_labels, lambda _translation, _live, old: old),
    }
    defaults = {"enabled": True, "forceDelete": False}
    chosen = frozenset({"verificationStatus"})

    def delete(self, gcp: Session, id_: str, inputs: Props) -> None:
        users = [
            key
            for key, body in gcp.api.objects.items()
            if id_ in body.get("notificationChannels", ())
        ]
        if users and not inputs.get("forceDelete"):
            raise GoogleError(400, f"Cannot delete {id_}: it is used by {users[0]}")
        super().delete(gcp, id_, inputs)


class LogMetric(Service):
    token = "gcp:logging/metric:Metric"
    collection, kind, changes = "logging.projects.metrics", "metrics", "update"
    named = ("name", "{}")
    chosen = frozenset({"metricDescriptor"})

    def own_name(self, gcp: Session, inputs: Props, body: Props) -> str:
        return str(inputs["name"])

    def create(self, gcp: Session, inputs: Props) -> str:
        name = super().create(gcp, inputs)
        gcp.api.get(f"logging/{name}")["name"] = inputs["name"]
        return str(inputs["name"])

    def key_of(self, id_: str, inputs: Props) -> str:
        if id_.startswith("projects/"):
            return f"logging/{id_}"
        return f"logging/projects/{inputs.get('project')}/metrics/{id_}"

    def look(self, gcp: Session, id_: str, inputs: Props) -> Props | None:
        return gcp.api.objects.get(f"logging/projects/{gcp.project}/metrics/{id_}")

    def update(self, gcp: Session, id_: str, olds: Props, news: Props) -> None:
        key = f"logging/projects/{gcp.project}/metrics/{id_}"
        body = self.request(gcp, news)
        self.call(gcp, "update", body, **self.parameters("update", key))
        gcp.api.objects[key] = body

    def delete(self, gcp: Session, id_: str, inputs: Props) -> None:
        super().delete(gcp, f"projects/{gcp.project}/metrics/{id_}", inputs)


class Topic(Service):
    token = "gcp:pubsub/topic:Topic"
    collection, parent, kind = "pubsub.projects.topics", "name", "topics"
    labelled, named = "labels", ("name", "{}")
    apart = frozenset({"name"})

    def where(self, gcp: Session) -> Props:
        own = gcp.inputs.get("name")
        name = "topic" if own is None or is_unknown(own) else own
        return {"name": f"projects/{gcp.project}/topics/{name}"}

    def own_name(self, gcp: Session, inputs: Props, body: Props) -> str:
        return str(inputs["name"])

    def describe(self, gcp: Session, id_: str, live: Props, inputs: Props) -> Props:
        return {
            **super().describe(gcp, id_, live, inputs),
            "name": inputs.get("name") or id_.rsplit("/", 1)[-1],
        }

    def patch(self, gcp: Session, key: str, body: Props) -> None:
        topic = {"name": key.partition("/")[2], **{k: v for k, v in body.items() if v is not None}}
        sent = {"topic": topic, "updateMask": ",".join(sorted(body))}
        self.call(gcp, "patch", sent, **self.parameters("patch", key))
        gcp.api.patch(key, body)


class Budget(Service):
    token = "gcp:billing/budget:Budget"
    collection, kind, masked = "billingbudgets.billingAccounts.budgets", "budgets", True
    apart = frozenset({"billingAccount"})
    names: ClassVar[Mapping[str, Name]] = {
        "allUpdatesRule": "notificationsRule",
        "amount.lastPeriodAmount": Form(
            "lastPeriodAmount",
            lambda _translation, value: {} if value else None,
            lambda _translation, live, _old: live is not None,
        ),
    }
    chosen = frozenset({"budgetFilter", "ownershipScope"})

    def around(self, gcp: Session) -> str:
        account = gcp.inputs.get("billingAccount")
        return f"billingAccounts/{account}"

    def check(self, gcp: Session, inputs: Props) -> Iterator[schema.Problem]:
        yield from super().check(gcp, inputs)
        account = inputs.get("billingAccount")
        if account and not is_unknown(account) and not ACCOUNT.fullmatch(account):
            yield (
                "billingAccount",
                f"{account!r} is no billing account, such as 01ABCD-23EF45-678901",
            )

    def made(self, gcp: Session, key: str, body: Props) -> None:
        rule: Props = body.get("notificationsRule", {})
        if topic := rule.get("pubsubTopic"):
            gcp.api.get(f"pubsub/{topic}")
        for channel in rule.get("monitoringNotificationChannels", ()):
            gcp.api.get(f"monitoring/{channel}")


ACCOUNT = re.compile(r"[0-9A-F]{6}-[0-9A-F]{6}-[0-9A-F]{6}")


class Job(Service):
    token = "gcp:cloudscheduler/job:Job"
    collection, kind, scope, masked = (
        "cloudscheduler.projects.locations.jobs",
        "jobs",
        "region",
        True,
    )
    apart = frozenset({"name", "paused"})
    named = ("name", "{}")
    defaults = {"attemptDeadline": "180s", "timeZone": "Etc/UTC"}
    chosen = frozenset({"paused"})

    def around(self, gcp: Session) -> str:
        return f"projects/{gcp.project}/locations/{gcp.region}"

    def own_name(self, gcp: Session, inputs: Props, body: Props) -> str:
        return str(inputs["name"])

    def request(self, gcp: Session, inputs: Props) -> Props:
        body = super().request(gcp, inputs)
        own = inputs.get("name")
        return body if own is None else {**body, "name": f"{self.around(gcp)}/jobs/{own}"}

    def check(self, gcp: Session, inputs: Props) -> Iterator[schema.Problem]:
        yield from super().check(gcp, inputs)
        when = inputs.get("schedule")
        if when and not is_unknown(when) and len(str(when).split()) != 5:
            yield "schedule", f"{when!r} is no cron expression"

    def made(self, gcp: Session, key: str, body: Props) -> None:
        body["state"] = "PAUSED" if gcp.inputs.get("paused") else "ENABLED"

    def read(self, gcp: Session, live: Props, inputs: Props) -> Props:
        found = super().read(gcp, live, inputs)
        if "paused" in inputs:
            found["paused"] = live["state"] == "PAUSED"
        return found

    def describe(self, gcp: Session, id_: str, live: Props, inputs: Props) -> Props:
        found = super().describe(gcp, id_, live, inputs)
        return {**found, "name": id_.rsplit("/", 1)[-1]}

    def patch(self, gcp: Session, key: str, body: Props) -> None:
        super().patch(gcp, key, {k: v for k, v in body.items() if k != "name"})

    def _pause(self, gcp: Session, key: str, _olds: Props, news: Props) -> None:
        verb = "pause" if news.get("paused") else "resume"
        self.call(gcp, verb, {}, **self.parameters(verb, key))
        gcp.api.patch(key, {"state": "PAUSED" if news.get("paused") else "ENABLED"})

    in_place = {"paused": _pause}


TYPES: tuple[Resource, ...] = (
    Dashboard(),
    AlertPolicy(),
    NotificationChannel(),
    LogMetric(),
    Topic(),
    Budget(),
    Job(),
)
