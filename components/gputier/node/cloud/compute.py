"""The node's own managed instance group on Google: replace, leave for good, tell of a bad host.

Zonal and regional groups have the same methods under different paths (compute v1 discovery).
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from gputier.node import plain
from gputier.node.cloud.aws import Send
from gputier.node.cloud.credentials import ServiceToken
from gputier.node.cloud.http import Answer, Patience, Web
from gputier.node.cloud.store import JSON, bearer, google_refused

SURE = Patience(120.0)
# Stopping the fleet comes before the node's own end, and must not keep it from that.
STOP = Patience(30.0)
# instances.reportHostAsFaulty takes these machine types only, and only bound to a reservation.
TOLD_FAMILIES = ("a3-highgpu-8g", "a3-megagpu-8g", "a3-ultragpu-8g", "a4-highgpu-8g", "a4x-")


class Compute:
    """`group` is `zones/Z/instanceGroupManagers/NAME` or `regions/R/…`, as in `created-by`."""

    def __init__(self, web: Web, token: ServiceToken, base: str, project: str) -> None:
        self.web = web
        self.token = token
        self.root = f"{base}/compute/v1/projects/{project}"

    def recreate(self, group: str, zone: str, name: str) -> None:
        """Have this node made anew under its name; the group keeps its size."""
        self._post(f"{group}/recreateInstances", {"instances": [f"zones/{zone}/instances/{name}"]})

    def leave(self, group: str, zone: str, name: str) -> None:
        """Delete this node and lower the group's target size by it: nothing takes its place."""
        body = {"instances": [f"zones/{zone}/instances/{name}"]}
        answer = self._ask("POST", f"{group}/deleteInstances", body, SURE)
        # After a lost answer the group may know this machine no more: that was it.
        if not (answer.unsure and answer.status in (400, 404)):
            _good("deleteInstances", answer)

    def autoscaler(self, group: str) -> str | None:
        """The path of the group's autoscaler, None for a group of fixed size."""
        answer = _good("get the group", self._ask("GET", group, None, STOP))
        status = plain.mapping(answer.json().get("status")) or {}
        found = str(status.get("autoscaler") or "")
        place = "/".join(group.split("/")[:2])
        return f"{place}/autoscalers/{found.rsplit('/', 1)[-1]}" if found else None

    def switch_off(self, autoscaler: str) -> None:
        """Mode OFF: the autoscaler neither adds nor removes; its rules stay as they are."""
        place, _, name = autoscaler.rpartition("/")
        body = {"autoscalingPolicy": {"mode": "OFF"}}
        _good("autoscalers.patch", self._ask("PATCH", f"{place}?autoscaler={name}", body, STOP))

    def report_host(self, zone: str, name: str, words: str) -> None:
        """Tell Google that the host is bad: it moves the machine and takes the host out."""
        fault = {"behavior": "UNRECOVERABLE_GPU_ERROR", "description": words[:500]}
        found = {"disruptionSchedule": "IMMEDIATE", "faultReasons": [fault]}
        self._post(f"zones/{zone}/instances/{name}/reportHostAsFaulty", found)

    def _post(self, path: str, body: Mapping[str, Any]) -> None:
        _good(path.rsplit("/", 1)[-1], self._ask("POST", path, body, SURE))

    def _ask(
        self, method: str, path: str, body: Mapping[str, Any] | None, patience: Patience
    ) -> Answer:
        text = b"" if body is None else json.dumps(body).encode()
        what = Send(method, f"{self.root}/{path}", {"Content-Type": JSON}, text)
        return bearer(self.web, self.token, what, patience)


def _good(verb: str, answer: Answer) -> Answer:
    if not answer.ok:
        raise google_refused(verb, answer)
    return answer
