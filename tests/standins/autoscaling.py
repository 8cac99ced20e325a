"""Auto Scaling's query API: one group, its launch hook, its nodes, its suspended processes.

Parameters are checked against the API's own model in botocore; a hook has its timeout, heartbeats
restart it, and its default result is ABANDON.
"""

from __future__ import annotations

import importlib
import re
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from tests.standins.server import Asked, Fault, Reply, StandIn
from tests.standins.signature import Credentials, Verifier, error

WAITING, IN_SERVICE, TERMINATING = "Pending:Wait", "InService", "Terminating"
WARM_WAITING = "Warmed:Pending:Wait"


@dataclass
class Node:
    state: str
    target: str
    until: float
    heartbeats: int = 0
    results: tuple[str, ...] = ()
    unhealthy: bool = False


class Autoscaling(StandIn):
    """`nodes` by instance id; `targets` hears of every change of what a node is on its way to."""

    def __init__(
        self,
        group: str = "tuner",
        hook: str = "tuner-launch",
        region: str = "us-east-1",
        credentials: Iterable[Credentials] = (),
        timeout: float = 3600.0,
        faults: Iterable[Fault] = (),
    ) -> None:
        super().__init__(faults)
        self.group = group
        self.hook = hook
        self.timeout = timeout
        self.nodes: dict[str, Node] = {}
        self.suspended: set[str] = set()
        self.denied: set[str] = set()
        self.targets: Callable[[str, str], None] = lambda _instance, _target: None
        self.verifier = Verifier(region, "autoscaling", self.now)
        for each in credentials:
            self.verifier.admit(each)

    def launch(self, instance: str, target: str = IN_SERVICE) -> Node:
        """A new node that waits for the hook."""
        waiting = WARM_WAITING if target.startswith("Warmed:") else WAITING
        node = Node(waiting, target, time.monotonic() + self.timeout)
        self.nodes[instance] = node
        self.targets(instance, target)
        return node

    def change(self, what: Mapping[str, Any]) -> None:
        """`{"launch": instance, "target": state}` or `{"denied": [actions]}`."""
        if "launch" in what:
            self.launch(str(what["launch"]), str(what.get("target", IN_SERVICE)))
        if "denied" in what:
            self.denied = {str(action) for action in what["denied"]}

    def calls(self, action: str = "") -> list[dict[str, str]]:
        """The parameters of each call that was answered well."""
        with self.lock:
            forms = [asked.form for asked in self.seen if asked.status == 200]
        return [form for form in forms if action in ("", form["Action"])]

    def reply(self, asked: Asked) -> Reply:
        refusal = self.verifier.wrong(asked)
        if refusal:
            return refusal
        form = asked.form
        action = form.get("Action", "")
        wrong = _against_model(action, form)
        if wrong:
            return error(400, "ValidationError", wrong, wrapped=True)
        if action in self.denied:
            return error(403, "AccessDenied", f"not authorized: autoscaling:{action}", True)
        do = {
            "CompleteLifecycleAction": self._complete,
            "RecordLifecycleActionHeartbeat": self._heartbeat,
            "SuspendProcesses": self._suspend,
            "SetInstanceHealth": self._health,
        }.get(action)
        if do is None:
            return error(400, "InvalidAction", action, wrapped=True)
        with self.lock:
            self._expire()
            return do(form) or Reply(
                200, f"<{action}Response/>".encode(), {"Content-Type": "text/xml"}
            )

    def _expire(self) -> None:
        for instance, node in self.nodes.items():
            if node.state in (WAITING, WARM_WAITING) and node.until < time.monotonic():
                self._end(instance, node, "ABANDON")

    def _end(self, instance: str, node: Node, result: str) -> None:
        node.results = (*node.results, result)
        node.state = node.target if result == "CONTINUE" else TERMINATING
        if result != "CONTINUE":
            node.target = "Terminated"
            self.targets(instance, "Terminated")

    def _waiting(self, form: Mapping[str, str]) -> Node | Reply:
        if form["AutoScalingGroupName"] != self.group:
            return error(400, "ValidationError", "AutoScalingGroup name not found", True)
        node = self.nodes.get(form["InstanceId"])
        right = node is not None and node.state in (WAITING, WARM_WAITING)
        if node is None or not right or form["LifecycleHookName"] != self.hook:
            words = f"No active Lifecycle Action found with instance ID {form['InstanceId']}"
            return error(400, "ValidationError", words, wrapped=True)
        return node

    def _complete(self, form: Mapping[str, str]) -> Reply | None:
        node = self._waiting(form)
        if isinstance(node, Reply):
            return node
        self._end(form["InstanceId"], node, form["LifecycleActionResult"])
        return None

    def _heartbeat(self, form: Mapping[str, str]) -> Reply | None:
        node = self._waiting(form)
        if isinstance(node, Reply):
            return node
        node.heartbeats += 1
        node.until = time.monotonic() + self.timeout
        return None

    def _suspend(self, form: Mapping[str, str]) -> Reply | None:
        if form["AutoScalingGroupName"] != self.group:
            return error(400, "ValidationError", "AutoScalingGroup name not found", True)
        self.suspended |= {v for k, v in form.items() if k.startswith("ScalingProcesses.member.")}
        return None

    def _health(self, form: Mapping[str, str]) -> Reply | None:
        node = self.nodes.get(form["InstanceId"])
        if node is None:
            return error(400, "ValidationError", "Instance Id not found", wrapped=True)
        node.unhealthy = form["HealthStatus"] == "Unhealthy"
        return None


_MODEL: dict[str, Any] = {}


def _against_model(action: str, form: Mapping[str, str]) -> str:
    """What is wrong with the parameters by AWS's own model, "" when nothing is."""
    if not _MODEL:
        loaders = importlib.import_module("botocore.loaders")
        model = importlib.import_module("botocore.model")
        data = loaders.Loader().load_service_model("autoscaling", "service-2")
        _MODEL["service"] = model.ServiceModel(data)
        _MODEL["validator"] = importlib.import_module("botocore.validate").ParamValidator()
    service = _MODEL["service"]
    if form.get("Version") != service.api_version:
        return f"Version {form.get('Version')}"
    if action not in service.operation_names:
        return f"there is no action {action}"
    shape = service.operation_model(action).input_shape
    given: dict[str, Any] = {}
    for name, value in form.items():
        if name in ("Action", "Version"):
            continue
        listed = re.fullmatch(r"(\w+)\.member\.\d+", name)
        if listed:
            given.setdefault(listed[1], []).append(value)
        elif name not in shape.members:
            return f"unknown parameter {name}"
        else:
            boolean = shape.members[name].type_name == "boolean"
            given[name] = (value == "true") if boolean else value
    found = _MODEL["validator"].validate(given, shape)
    return str(found.generate_report()) if found.has_errors() else ""
