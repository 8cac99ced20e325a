"""What is reserved on AWS, a reservation or a capacity block, against the fleet that is for it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from functools import partial
from typing import Any

from gputier.account import doctor_checks as checks
from gputier.account.answers import CannotAsk
from gputier.account.doctor import Finding, Question, bad, good, unknown
from gputier.account.doctor_aws import Aws
from gputier.account.doctor_targets import Target

_GONE = (
    "InvalidCapacityReservationId.NotFound",
    "InvalidCapacityReservationId.Malformed",
)
#: States before a reservation is active (EC2 API, CapacityReservationState).
_COMING = ("scheduled", "pending", "payment-pending", "assessing", "delayed", "unassigned")


def questions(aws: Aws, targets: Sequence[Target]) -> Iterator[Question]:
    """One for each fleet on what is reserved."""
    for t in targets:
        if t.market in ("reservation", "capacity_block"):
            about = f"{t.chosen.fleet.reservation_id or t.type} in {t.where}"
            yield Question(checks.RESERVATION_AWS, (t.name,), about, partial(_reserved, aws, t))


def _reserved(aws: Aws, target: Target) -> Finding:
    id_ = target.chosen.fleet.reservation_id
    if id_ and ":" in id_:
        return unknown(f"{id_} is a resource group: what is in it is not looked at")
    asked: dict[str, Any] = (
        {"CapacityReservationIds": [id_]}
        if id_
        else {"Filters": [{"Name": "instance-type", "Values": [target.type]},
                          {"Name": "state", "Values": ["active", "scheduled"]}]}
    )  # fmt: skip
    try:
        found = aws.session.every(
            "ec2",
            "describe_capacity_reservations",
            "CapacityReservations",
            target.region,
            **asked,
        )
    except CannotAsk as error:
        if error.code in _GONE:
            return bad(f"{id_} is not there in {target.region}", _declare(target))
        raise
    if not found:
        return bad(f"no reservation of {target.type} in {target.region}", _declare(target))
    wrong = [list(_unlike(one, target, aws.subject.now)) for one in found]
    best = min(range(len(found)), key=lambda n: len(wrong[n]))
    one = found[best]
    label = f"{one['CapacityReservationId']} {one['State']}"
    if wrong[best]:
        return bad(f"{label}: {'; '.join(wrong[best])}", _declare(target))
    count = f"{one.get('AvailableInstanceCount', 0)} of {one['TotalInstanceCount']} free"
    return good(f"{label}: {one['InstanceType']} in {_zone(one)}, {count}")


def _declare(target: Target) -> str:
    return f"`capacity` of {target.name}: id, instance_type, zone, count, start and end as reserved"


def _unlike(found: Mapping[str, Any], target: Target, now: str) -> Iterator[str]:
    """In what a reservation is not what the fleet needs."""
    choice, state = target.plan.choice, found["State"]
    starts = target.chosen.fleet.starts
    if state != "active" and not (state in _COMING and starts and starts > now):
        yield "it is not active"
    block = found.get("ReservationType") == "capacity-block"
    if block != (target.market == "capacity_block"):
        yield f"it is {'a capacity block' if block else 'no capacity block'}"
    if found["InstanceType"] != target.type:
        yield f"it is of {found['InstanceType']}, not {target.type}"
    zones = (found.get("AvailabilityZoneId"), found.get("AvailabilityZone"))
    if target.zones and not set(zones) & set(target.zones):
        yield f"it is in {_zone(found)}, not {', '.join(target.zones)}"
    if found["TotalInstanceCount"] < target.most:
        yield f"it holds {found['TotalInstanceCount']}, and the fleet has {target.most} at most"
    if str(found.get("InstancePlatform", "Linux/UNIX")) != "Linux/UNIX":
        yield f"it is for {found['InstancePlatform']}"
    for word, key, declared in (
        ("begins", "StartDate", choice.start),
        ("ends", "EndDate", choice.end),
    ):
        said = found.get(key)
        if declared and said is not None and abs(_minutes(said, declared)) > 1:
            yield f"it {word} at {said:%Y-%m-%dT%H:%M:%SZ}, not {declared}"


def _minutes(said: Any, declared: str) -> float:
    """Minutes between a time of botocore's and a declared one."""
    other = datetime.strptime(declared, "%Y-%m-%dT%H:%M:%SZ").replace(tzinfo=UTC)
    return (said - other).total_seconds() / 60


def _zone(found: Mapping[str, Any]) -> str:
    return str(found.get("AvailabilityZoneId") or found.get("AvailabilityZone"))
