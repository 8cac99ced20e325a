"""Autoscalers and health checks, of a zone, of a region and of all of them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, ClassVar, cast

from tests.engine import schema
from tests.engine.gcp import groups, links
from tests.engine.gcp.api import GoogleError
from tests.engine.gcp.request import Form, Name, Translation
from tests.engine.gcp.resource import Resource
from tests.engine.gcp.session import Session
from tests.engine.gcp.values import block, items
from tests.engine.wire import Props, is_unknown


def _schedules(_translation: Translation, value: Any) -> Any:
    found: Props = {}
    for schedule in value:
        if is_unknown(schedule):
            continue
        about = {k: v for k, v in schedule.items() if k not in ("name", "disabled")}
        replicas = about.pop("minRequiredReplicas", None)
        found[schedule.get("name", "")] = {
            **about,
            "minRequiredReplicas": replicas,
            "disabled": bool(schedule.get("disabled")),
        }
    return found


def _schedules_now(translation: Translation, live: Any, old: Any) -> Any:
    if _schedules(translation, old) == (live or {}):
        return old
    return [{"name": name, **about} for name, about in block(live).items()]


POLICY = "autoscalingPolicy"
NAMES: dict[str, Name] = {
    f"{POLICY}.minReplicas": "minNumReplicas",
    f"{POLICY}.maxReplicas": "maxNumReplicas",
    f"{POLICY}.cooldownPeriod": "coolDownPeriodSec",
    f"{POLICY}.cpuUtilization.target": "utilizationTarget",
    f"{POLICY}.loadBalancingUtilization.target": "utilizationTarget",
    f"{POLICY}.metrics": "customMetricUtilizations",
    f"{POLICY}.metrics.name": "metric",
    f"{POLICY}.metrics.target": "utilizationTarget",
    f"{POLICY}.metrics.type": "utilizationTargetType",
    f"{POLICY}.stabilizationPeriod": "stabilizationPeriodSec",
    f"{POLICY}.scalingSchedules": Form("scalingSchedules", _schedules, _schedules_now),
}


class Autoscaler(Resource):
    token = "gcp:compute/autoscaler:Autoscaler"
    collection, scope, changes = "compute.autoscalers", "zone", "update"
    names: ClassVar[Mapping[str, Name]] = NAMES
    beta = frozenset({"AutoscalingPolicy.scaleDownControl"})

    def check(self, gcp: Session, inputs: Props) -> Iterator[schema.Problem]:
        yield from super().check(gcp, inputs)
        policy: Any = inputs.get(POLICY) or {}
        if is_unknown(policy):
            return
        least, most = (policy.get(name) for name in ("minReplicas", "maxReplicas"))
        if isinstance(least, int) and isinstance(most, int) and least > most:
            yield f"{POLICY}.minReplicas", f"{least} is more than the {most} of maxReplicas"
        schedules = items(policy.get("scalingSchedules"))
        if is_unknown(schedules):
            return
        for index, schedule in enumerate(cast(list[Props], schedules)):
            yield from _schedule(f"{POLICY}.scalingSchedules[{index}]", schedule)

    def made(self, gcp: Session, key: str, body: Props) -> None:
        target = f"compute/{links.path(body['target'])}"
        for other, found in gcp.api.objects.items():
            if other != key and "/autoscalers/" in other and found.get("target") == body["target"]:
                raise GoogleError(409, f"{links.path(body['target'])} has an autoscaler already")
        self._scale(gcp, target, body)

    def patch(self, gcp: Session, key: str, body: Props) -> None:
        """An update takes the whole of it, and its name as a parameter."""
        where = self.parameters("update", key)
        where["autoscaler"] = key.rsplit("/", 1)[-1]
        whole = {**{k: v for k, v in gcp.api.get(key).items() if k in OWN}, **body}
        self.call(gcp, "update", {k: v for k, v in whole.items() if v is not None}, **where)
        gcp.api.patch(key, body)
        found = gcp.api.get(key)
        self._scale(gcp, f"compute/{links.path(found['target'])}", found)

    def difference(self, gcp: Session, olds: Props, news: Props, names: set[str]) -> Props:
        whole = self.request(gcp, news)
        return {key: whole.get(key) for key in OWN if key != "name"}

    def _scale(self, gcp: Session, target: str, body: Props) -> None:
        """The group gets at least, and at most, what the autoscaler says."""
        policy, group = body["autoscalingPolicy"], gcp.api.get(target)
        if policy.get("mode", "ON") == "OFF":
            return
        size = max(int(group.get("targetSize", 0)), int(policy.get("minNumReplicas", 0)))
        group["targetSize"] = min(size, int(policy["maxNumReplicas"]))
        groups.resized(gcp, target)


OWN = ("autoscalingPolicy", "description", "name", "target")


def _schedule(at: str, schedule: Props) -> Iterator[schema.Problem]:
    duration, when = schedule.get("durationSec"), schedule.get("schedule")
    if isinstance(duration, int) and duration < 300:
        yield f"{at}.durationSec", f"{duration} is less than 300"
    if isinstance(when, str) and not is_unknown(when) and not CRON.fullmatch(when):
        yield f"{at}.schedule", f"{when!r} is no cron expression"


CRON = re.compile(r"\S+ \S+ \S+ \S+ \S+( \S+)?")


class RegionAutoscaler(Autoscaler):
    token = "gcp:compute/regionAutoscaler:RegionAutoscaler"
    collection, scope = "compute.regionAutoscalers", "region"


KINDS = {
    "grpcHealthCheck": "GRPC",
    "grpcTlsHealthCheck": "GRPC_WITH_TLS",
    "http2HealthCheck": "HTTP2",
    "httpHealthCheck": "HTTP",
    "httpsHealthCheck": "HTTPS",
    "sslHealthCheck": "SSL",
    "tcpHealthCheck": "TCP",
}


class HealthCheck(Resource):
    token = "gcp:compute/healthCheck:HealthCheck"
    collection, changes = "compute.healthChecks", "update"
    defaults = {
        "checkIntervalSec": 5,
        "healthyThreshold": 2,
        "timeoutSec": 5,
        "unhealthyThreshold": 2,
    }
    chosen = frozenset({"logConfig"})
    restless = {"type": tuple(KINDS)}

    def check(self, gcp: Session, inputs: Props) -> Iterator[schema.Problem]:
        yield from super().check(gcp, inputs)
        timeout, interval = (inputs.get(name) for name in ("timeoutSec", "checkIntervalSec"))
        if isinstance(timeout, int) and isinstance(interval, int) and timeout > interval:
            yield "timeoutSec", f"{timeout} is more than the {interval} of checkIntervalSec"

    def request(self, gcp: Session, inputs: Props) -> Props:
        body = super().request(gcp, inputs)
        kinds = [kind for name, kind in KINDS.items() if inputs.get(name) is not None]
        return {**body, "type": kinds[0]} if kinds else body

    def difference(self, gcp: Session, olds: Props, news: Props, names: set[str]) -> Props:
        before, after = self.request(gcp, olds), self.request(gcp, news)
        return {**dict.fromkeys(before.keys() - after.keys()), **after}

    def patch(self, gcp: Session, key: str, body: Props) -> None:
        sent = {k: v for k, v in body.items() if v is not None}
        self.call(gcp, "update", sent, **self.parameters("update", key))
        gcp.api.patch(key, body)


class RegionHealthCheck(HealthCheck):
    token = "gcp:compute/regionHealthCheck:RegionHealthCheck"
    collection, scope = "compute.regionHealthChecks", "region"


TYPES: tuple[Resource, ...] = (
    Autoscaler(),
    RegionAutoscaler(),
    HealthCheck(),
    RegionHealthCheck(),
)
