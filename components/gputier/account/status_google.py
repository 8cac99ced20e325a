"""Reading Google's answers: errors of groups, autoscalers and requests, and what became of
machines."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from typing import Any

from gputier.account.status_facts import INTERRUPTED, UNKNOWN, Failure, Life
from gputier.node import plain

PREEMPTED = "compute.instances.preempted"
#: Details of an autoscaler that say how it is, not that something is wrong (compute.v1,
#: AutoscalerStatusDetails.type). `MODE_OFF` is told as what stopped the fleet.
QUIET = (
    "ALL_INSTANCES_UNHEALTHY",
    "CAPPED_AT_MAX_NUM_REPLICAS",
    "MIN_EQUALS_MAX",
    "MODE_OFF",
    "MODE_ONLY_SCALE_OUT",
    "MODE_ONLY_UP",
    "UNKNOWN",
)


def at(text: Any) -> float | None:
    """Seconds since 1970 of an RFC 3339 text."""
    try:
        return datetime.fromisoformat(str(text)).timestamp() if text else None
    except ValueError:
        return None


def last(address: Any, back: int = 1) -> str:
    """The last part of an address, or one before it: the zone of an instance is the third."""
    parts = str(address or "").split("/")
    return parts[-back] if len(parts) >= back else ""


def _errors(holder: Mapping[str, Any] | None, key: str) -> Iterable[Mapping[str, Any]]:
    return _map((holder or {}).get(key)).get("errors") or ()


def _map(value: Any) -> dict[str, Any]:
    return plain.mapping(value) or {}


def _failure(error: Mapping[str, Any], when: float | None, zone: str = "") -> Failure:
    """An error with what its details say of a quota."""
    said = " ".join(str(error.get("message") or "").split())
    for detail in error.get("errorDetails") or ():
        quota = _map(detail.get("quotaInfo"))
        if quota.get("limitName") and quota["limitName"] not in said:
            said += f" ({quota['limitName']}: {quota.get('limit')})"
    return Failure(when, str(error.get("code") or "") or None, said, zone or None)


def attempts(managed: Iterable[Mapping[str, Any]]) -> Iterator[Failure]:
    """What keeps machines of a group from being made, now."""
    for member in managed:
        zone = last(member.get("instance"), 3)
        for error in _errors(member.get("lastAttempt"), "errors"):
            yield _failure(error, None, zone)


def reported(errors: Iterable[Mapping[str, Any]]) -> Iterator[Failure]:
    """What `listErrors` remembers."""
    for one in errors:
        where = last(_map(one.get("instanceActionDetails")).get("instance"), 3)
        yield _failure(_map(one.get("error")), at(one.get("timestamp")), where)


def bulk(group: Mapping[str, Any] | None) -> Iterator[Failure]:
    """What keeps all machines of a group from being made at once."""
    operation = _map(_map((group or {}).get("status")).get("bulkInstanceOperation"))
    check = _map(operation.get("lastProgressCheck"))
    if operation.get("inProgress"):
        for error in _errors(check, "error"):
            yield _failure(error, at(check.get("timestamp")))


def autoscaled(scaler: Mapping[str, Any] | None) -> Iterator[Failure]:
    """What an autoscaler complains of, now."""
    for detail in (scaler or {}).get("statusDetails") or ():
        if detail.get("type") not in QUIET:
            yield Failure(None, str(detail.get("type")), str(detail.get("message") or ""))


def requested(requests: Iterable[Mapping[str, Any]]) -> Iterator[Failure]:
    """Why flex-start requests failed, or have nothing yet."""
    for request in requests:
        status = _map(request.get("status"))
        if request.get("state") == "FAILED":
            when = at(request.get("creationTimestamp"))
            for error in _errors(status, "error"):
                yield _failure(error, when)


def lives(operations: Iterable[Mapping[str, Any]], present: set[str]) -> Iterator[Life]:
    """Machines that came and went, by what was done to them. A name comes again; a number never
    does."""
    told: dict[str, dict[str, Mapping[str, Any]]] = {}
    for operation in operations:
        kind, id_ = str(operation.get("operationType")), str(operation.get("targetId") or "")
        if id_ and id_ not in present and operation.get("status", "DONE") == "DONE":
            told.setdefault(id_, {})[kind] = operation
    for id_, kinds in told.items():
        end = kinds.get(PREEMPTED) or kinds.get("delete")
        begin = kinds.get("insert")
        if end is None or (begin or {}).get("error"):
            continue
        link = str(end.get("targetLink") or "")
        how = INTERRUPTED if PREEMPTED in kinds else UNKNOWN
        started = at((begin or {}).get("endTime"))
        ended = at(end.get("startTime")) or at(end.get("insertTime"))
        yield Life(id_, last(link, 3) or None, started, ended, how, "", last(link))
