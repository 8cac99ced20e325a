"""Compute Engine's JSON API: one managed instance group, its autoscaler, its machines."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from tests.standins.object_store import google_error
from tests.standins.server import Asked, Fault, Reply, StandIn

GROUP = "zones/us-central1-a/instanceGroupManagers/tuner"


class Compute(StandIn):
    """`size` is the group's target; an action lands in `done` as (verb, machine)."""

    def __init__(
        self,
        project: str = "stand-in-project",
        group: str = GROUP,
        token: str = "stand-in-bearer-token",  # noqa: S107 (belongs to nobody)
        autoscaler: str | None = "tuner",
        faults: Iterable[Fault] = (),
    ) -> None:
        super().__init__(faults)
        self.project = project
        self.group = group
        self.place = "/".join(group.split("/")[:2])
        self.token = token
        self.autoscaler = autoscaler
        self.policy: dict[str, Any] = {"mode": "ON", "minNumReplicas": 1, "maxNumReplicas": 8}
        self.size = 4
        self.machines = {"tuner-x1k2"}
        self.reserved = True
        self.denied: set[str] = set()
        self.done: list[tuple[str, str]] = []

    def change(self, what: Mapping[str, Any]) -> None:
        """`{"machines": [...], "size": n, "denied": [verbs]}`."""
        self.machines = set(what.get("machines", self.machines))
        self.size = int(what.get("size", self.size))
        self.denied = set(what.get("denied", self.denied))

    def reply(self, asked: Asked) -> Reply:
        if asked.headers.get("authorization") != f"Bearer {self.token}":
            return google_error(401, "authError", "Invalid Credentials")
        root = f"/compute/v1/projects/{self.project}/"
        if not asked.path.startswith(root):
            return google_error(404, "notFound", "the resource was not found")
        path = asked.path[len(root) :]
        with self.lock:
            if path == self.group and asked.method == "GET":
                return self._get()
            if path == f"{self.place}/autoscalers" and asked.method == "PATCH":
                return self._patch(asked)
            if path.startswith(f"{self.group}/") and asked.method == "POST":
                return self._act(path.rsplit("/", 1)[-1], asked.json())
            if path.endswith("/reportHostAsFaulty") and asked.method == "POST":
                return self._faulty(path.split("/")[-2], asked.json())
        return google_error(404, "notFound", f"the resource was not found: {path}")

    def _may_not(self, verb: str) -> Reply | None:
        if verb in self.denied:
            return google_error(403, "forbidden", f"Required permission for {verb}")
        return None

    def _get(self) -> Reply:
        status: dict[str, Any] = {"isStable": False}
        if self.autoscaler:
            link = "https://www.googleapis.com/compute/v1/projects/stand-in-project"
            status["autoscaler"] = f"{link}/{self.place}/autoscalers/{self.autoscaler}"
        found = {"kind": "compute#instanceGroupManager", "targetSize": self.size, "status": status}
        return self._may_not("get") or Reply.json(found)

    def _patch(self, asked: Asked) -> Reply:
        if asked.parameters.get("autoscaler") != self.autoscaler:
            return google_error(404, "notFound", "no such autoscaler")
        refusal = self._may_not("patch")
        if refusal:
            return refusal
        self.policy.update(asked.json()["autoscalingPolicy"])
        return _operation("patch")

    def _act(self, verb: str, body: Mapping[str, Any]) -> Reply:
        refusal = self._may_not(verb)
        if refusal:
            return refusal
        if verb not in ("recreateInstances", "deleteInstances"):
            return google_error(404, "notFound", verb)
        for link in body["instances"]:
            zone, name = link.split("/")[1], link.rsplit("/", 1)[-1]
            if link != f"zones/{zone}/instances/{name}" or name not in self.machines:
                return google_error(400, "invalid", f"{link} is not a member of the group")
            self.done.append((verb, name))
            if verb == "deleteInstances":
                self.machines.discard(name)
                self.size -= 1
        return _operation(verb)

    def _faulty(self, name: str, body: Mapping[str, Any]) -> Reply:
        refusal = self._may_not("reportHostAsFaulty")
        if refusal:
            return refusal
        if not self.reserved:
            code = "INSTANCES_WITHOUT_RESERVATION_NOT_SUPPORTED"
            return google_error(400, "invalid", code)
        if not body.get("faultReasons"):
            return google_error(400, "invalid", "FAULT_REASONS_EMPTY_SHOULD_BE_SPECIFIED")
        self.done.append(("reportHostAsFaulty", name))
        return _operation("reportHostAsFaulty")


def _operation(kind: str) -> Reply:
    return Reply.json({"kind": "compute#operation", "operationType": kind, "status": "PENDING"})
