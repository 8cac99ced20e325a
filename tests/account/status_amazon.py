"""An AWS account with a fleet: what each service would say of it, checked by botocore."""

from __future__ import annotations

import io
import json
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from tests.account.amazon_account import (
    Amazon,
    _Client,  # pyright: ignore[reportPrivateUsage]
    _Pages,  # pyright: ignore[reportPrivateUsage]
)

NUMBER = "123456789012"
STARTED = "an instance was started in response to a difference between desired and actual capacity"
NOW = datetime(2026, 12, 10, 10, 45, tzinfo=UTC)


def ago(**span: float) -> datetime:
    return NOW - timedelta(**span)


class Account(Amazon):
    """`groups`, `activities`, `machines`, `objects` and `reservations` are what is there; a code in
    their place (`"AccessDenied"`) is a refusal."""

    def __init__(self) -> None:
        super().__init__()
        self.groups: Any = []
        self.activities: Any = []
        self.machines: Any = []
        self.reservations: Any = []
        self.objects: Any = {}
        self.has("sts", "get_caller_identity", {"Account": NUMBER})
        self.has("autoscaling", "describe_auto_scaling_groups", self._groups)
        self.has("autoscaling", "describe_scaling_activities", self._activities)
        self.has("ec2", "describe_instances", self._machines)
        self.has("ec2", "describe_capacity_reservations", self._reservations)
        self.has("s3", "list_objects_v2", self._keys)
        self.has("s3", "get_object", self._object)

    def client(self, service: str, region: str) -> Any:
        return _Paged(super().client(service, region)._client, self, service, region)

    def _groups(self, asked: Mapping[str, Any]) -> Any:
        if isinstance(self.groups, str):
            return self.groups
        names = asked["AutoScalingGroupNames"]
        return {"AutoScalingGroups": [g for g in self.groups if g["AutoScalingGroupName"] in names]}

    def _activities(self, asked: Mapping[str, Any]) -> Any:
        assert asked["IncludeDeletedGroups"] is True
        if isinstance(self.activities, str):
            return self.activities
        name = asked["AutoScalingGroupName"]
        return {"Activities": [a for a in self.activities if a["AutoScalingGroupName"] == name]}

    def _machines(self, asked: Mapping[str, Any]) -> Any:
        if isinstance(self.machines, str):
            return self.machines
        (wanted,) = asked["Filters"]
        assert wanted["Name"] == "tag:gputier:fleet"
        found = [m for m in self.machines if _fleet(m) in wanted["Values"]]
        return {"Reservations": [{"Instances": found}] if found else []}

    def _reservations(self, asked: Mapping[str, Any]) -> Any:
        if isinstance(self.reservations, str):
            return self.reservations
        ids = asked["CapacityReservationIds"]
        found = [r for r in self.reservations if r["CapacityReservationId"] in ids]
        return {"CapacityReservations": found}

    def _keys(self, asked: Mapping[str, Any]) -> Any:
        assert asked["ExpectedBucketOwner"] == NUMBER
        if isinstance(self.objects, str):
            return self.objects
        keys = sorted(key for key in self.objects if key.startswith(asked["Prefix"]))
        return {"Contents": [{"Key": key, "Size": 1} for key in keys]} if keys else {}

    def _object(self, asked: Mapping[str, Any]) -> Any:
        assert asked["ExpectedBucketOwner"] == NUMBER
        if isinstance(self.objects, str):
            return self.objects
        found = self.objects.get(asked["Key"])
        if found is None:
            return "NoSuchKey"
        text = found if isinstance(found, str) else json.dumps(found)
        return {"Body": io.BytesIO(text.encode())}


class _Paged(_Client):
    """A client whose pages honour `PaginationConfig`, as botocore's do."""

    def get_paginator(self, call: str) -> Any:
        return _Cut(self, call)


class _Cut(_Pages):
    def paginate(self, **parameters: Any) -> list[Any]:
        config = parameters.pop("PaginationConfig", {})
        (page,) = super().paginate(**parameters)
        most = config.get("MaxItems")
        if most is not None:
            page = {key: _first(value, most) for key, value in page.items()}
        return [page]


def _first(value: Any, most: int) -> Any:
    return value[:most] if isinstance(value, list) else value  # pyright: ignore[reportUnknownVariableType]


def _fleet(machine: Mapping[str, Any]) -> str | None:
    return next((t["Value"] for t in machine["Tags"] if t["Key"] == "gputier:fleet"), None)


def group(
    name: str,
    members: Sequence[tuple[str, str]] = (),
    size: tuple[int, int, int] = (1, 1, 1),
    suspended: Sequence[str] = (),
    type_: str = "g6.4xlarge",
) -> dict[str, Any]:
    """A group; `size` is wanted, least, most; `members` are ids and their life cycle's state."""
    wanted, least, most = size
    return {
        "AutoScalingGroupName": name,
        "MinSize": least,
        "MaxSize": most,
        "DesiredCapacity": wanted,
        "DefaultCooldown": 300,
        "AvailabilityZones": ["us-east-1a"],
        "HealthCheckType": "EC2",
        "CreatedTime": ago(days=40),
        "SuspendedProcesses": [
            {"ProcessName": process, "SuspensionReason": "User suspended at 2026-12-10T10:00:00Z"}
            for process in suspended
        ],
        "Instances": [
            {
                "InstanceId": id_,
                "InstanceType": type_,
                "AvailabilityZone": "us-east-1a",
                "LifecycleState": state,
                "HealthStatus": "Healthy",
                "ProtectedFromScaleIn": False,
            }
            for id_, state in members
        ],
    }


def machine(
    fleet: str, id_: str, started: datetime, state: str = "running", **more: Any
) -> dict[str, Any]:
    """A machine as EC2 tells it."""
    return {
        "InstanceId": id_,
        "InstanceType": "g6.4xlarge",
        "LaunchTime": started,
        "State": {"Name": state},
        "Placement": {"AvailabilityZone": "us-east-1a", "AvailabilityZoneId": "use1-az4"},
        "Tags": [{"Key": "gputier:fleet", "Value": fleet}],
        **more,
    }


def launch(
    name: str,
    begun: datetime,
    id_: str = "",
    status: str = "Successful",
    said: str = "",
    ended: datetime | None = None,
) -> dict[str, Any]:
    """An activity that launched, or did not."""
    description = "Launching a new EC2 instance" + (f": {id_}" if id_ else "")
    return _activity(name, description, begun, status, said, ended or begun, STARTED)


def terminate(name: str, begun: datetime, id_: str, cause: str) -> dict[str, Any]:
    """An activity that ended a machine."""
    description = f"Terminating EC2 instance: {id_}"
    return _activity(name, description, begun, "Successful", "", begun, cause)


def _activity(
    name: str,
    description: str,
    begun: datetime,
    status: str,
    said: str,
    ended: datetime,
    cause: str,
) -> dict[str, Any]:
    return {
        "ActivityId": f"a-{description[-4:]}-{begun.timestamp():.0f}",
        "AutoScalingGroupName": name,
        "Description": description,
        "Cause": f"At {begun:%Y-%m-%dT%H:%M:%SZ} {cause}.",
        "StartTime": begun,
        "EndTime": ended,
        "StatusCode": status,
        **({"StatusMessage": said} if said else {}),
        "Progress": 100,
        "Details": '{"Subnet ID":"subnet-0abc","Availability Zone":"us-east-1a"}',
    }


def report_key(resources: str, id_: str, at: datetime, outcome: str) -> str:
    return f"reports/{resources}/{id_}/{at:%Y%m%dT%H%M%SZ}-{outcome}.json"


def report(outcome: str, *causes: tuple[str, str, str], gate: str = "enforce") -> dict[str, Any]:
    """A node's report with what is read of it: causes are check, evidence and remedy."""
    checks = [
        {"name": name, "outcome": outcome, "evidence": evidence, "remedy": remedy, "stage": "gpu"}
        for name, evidence, remedy in causes
    ]
    return {
        "schema": "gputier/node/1",
        "outcome": outcome,
        "causes": [name for name, _, _ in causes],
        "checks": [{"name": "driver", "outcome": "healthy", "evidence": "580"}, *checks],
        "gate": gate,
        "depth": "standard",
    }
