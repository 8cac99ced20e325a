"""A Google project with a fleet: what each API says of it, checked by its discovery document."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any
from urllib.parse import unquote

from tests.account import discovery
from tests.account.google_account import GONE, PROJECT, Google, Refusal

from gputier.account.session_gcp import APIS, Reply

ZONE = "us-central1-a"
API = f"{APIS['compute']}projects/{PROJECT}"
_MEDIA = re.compile(
    re.escape(APIS["storage"]) + r"b/(?P<bucket>[^/]+)/o/(?P<key>[^?/]+)\?alt=media"
)


class Project(Google):
    """`objects` are what the bucket holds, or a refusal. What a test does not set is not there."""

    def __init__(self, group: str = "demo-prod-chat", place: str = f"zones/{ZONE}") -> None:
        super().__init__()
        self.group, self.place = group, place
        self.objects: Any = {}
        self.machines([])
        self.operations([])

    def carry(self, url: str, method: str = "GET", *rest: Any, **more: Any) -> Reply:
        if url.startswith(APIS["storage"]):
            return self._stored(url, method)
        return super().carry(url, method, *rest, **more)

    def _stored(self, url: str, method: str) -> Reply:
        media = _MEDIA.fullmatch(url)
        if media is None:
            found = self._listed(url)
            self.asked.append(discovery.check(method, url, None, found))
        else:
            _, described = discovery.find(method, url)
            assert described["supportsMediaDownload"]
            self.asked.append(described["id"])
            if isinstance(self.objects, Refusal):
                found = self.objects
            else:
                found = self.objects.get(unquote(media["key"]), GONE)
        if isinstance(found, Refusal) or isinstance(self.objects, Refusal):
            refusal = found if isinstance(found, Refusal) else self.objects
            return Reply(refusal.http, {}, json.dumps(refusal.document()).encode())
        return Reply(200, {}, json.dumps(found).encode())

    def _listed(self, url: str) -> dict[str, Any]:
        if isinstance(self.objects, Refusal):
            return {}
        prefix = unquote(re.findall(r"prefix=([^&]*)", url)[0])
        keys = sorted(key for key in self.objects if key.startswith(prefix))
        return {"items": [{"name": key} for key in keys]} if keys else {}

    def managed(self, group: Mapping[str, Any], members: Sequence[Mapping[str, Any]] = ()) -> None:
        """The group, and its machines as it lists them."""
        path = f"projects/{{project}}/{self.place}/instanceGroupManagers/{self.group}"
        self.has("compute", path, {"name": self.group, **group})
        self.has("compute", f"{path}/listManagedInstances", {"managedInstances": list(members)})
        self.has("compute", f"{path}/listErrors", {"items": []})

    def errors(self, *errors: Mapping[str, Any]) -> None:
        path = f"projects/{{project}}/{self.place}/instanceGroupManagers/{self.group}/listErrors"
        self.has("compute", path, {"items": list(errors)})

    def requests(self, *requests: Mapping[str, Any]) -> None:
        path = f"projects/{{project}}/{self.place}/instanceGroupManagers/{self.group}"
        self.has("compute", f"{path}/resizeRequests", {"items": list(requests)})

    def autoscaler(self, answer: Mapping[str, Any]) -> str:
        """Its address, for the group."""
        self.has("compute", f"projects/{{project}}/{self.place}/autoscalers/{self.group}", answer)
        return f"{API}/{self.place}/autoscalers/{self.group}"

    def machines(self, machines: Sequence[Mapping[str, Any]], zone: str = ZONE) -> None:
        path = f"projects/{{project}}/zones/{zone}/instances"
        self.has("compute", path, {"items": list(machines)})

    def operations(self, operations: Sequence[Mapping[str, Any]], zone: str = ZONE) -> None:
        path = f"projects/{{project}}/zones/{zone}/operations"
        self.has("compute", path, {"items": list(operations)})


def address(name: str, zone: str = ZONE) -> str:
    return f"{API}/zones/{zone}/instances/{name}"


def stamp(at: datetime) -> str:
    return at.isoformat()


def member(
    name: str, id_: str, action: str = "NONE", status: str = "RUNNING", **more: Any
) -> dict[str, Any]:
    """A machine as its group lists it."""
    return {
        "name": name,
        "instance": address(name),
        "currentAction": action,
        **({"id": id_, "instanceStatus": status} if status else {}),
        **more,
    }


def instance(name: str, id_: str, started: datetime, **more: Any) -> dict[str, Any]:
    """A machine as Compute Engine tells it."""
    return {
        "name": name,
        "id": id_,
        "status": "RUNNING",
        "machineType": f"{API}/zones/{ZONE}/machineTypes/g2-standard-8",
        "zone": f"{API}/zones/{ZONE}",
        "creationTimestamp": stamp(started),
        "lastStartTimestamp": stamp(started),
        **more,
    }


def failure(code: str, message: str, **details: Any) -> dict[str, Any]:
    """`lastAttempt` of a machine that could not be made."""
    error: dict[str, Any] = {"code": code, "message": message}
    if details:
        error["errorDetails"] = [details]
    return {"errors": {"errors": [error]}}


def group_error(at: datetime, name: str, code: str, message: str) -> dict[str, Any]:
    """One of `listErrors`."""
    return {
        "timestamp": stamp(at),
        "error": {"code": code, "message": message},
        "instanceActionDetails": {"action": "CREATING", "instance": address(name)},
    }


def operation(kind: str, name: str, id_: str, at: datetime) -> dict[str, Any]:
    """Something that was done to a machine."""
    return {
        "operationType": kind,
        "targetLink": address(name),
        "targetId": id_,
        "startTime": stamp(at),
        "endTime": stamp(at),
        "insertTime": stamp(at),
        "status": "DONE",
    }
