"""Scaling activities of an Auto Scaling group: who came, who went and why, and what failed."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any, NamedTuple

from gputier.account import status_errors
from gputier.account.status_facts import (
    BROKEN,
    FAILED,
    INTERRUPTED,
    REJECTED,
    REPLACED,
    SCALED_IN,
    SILENT,
    UNKNOWN,
    VANISHED,
    Failure,
    Life,
)
from gputier.node import plain

_LAUNCH = re.compile(r"Launching a new EC2 instance(?:: (i-[0-9a-f]+))?")
_TERMINATE = re.compile(r"Terminating EC2 instance: (i-[0-9a-f]+)")
OVER = ("Failed", "Cancelled")

#: Why a machine was taken out, by what the cause says. The first that fits counts: a cause tells a
#: story of several sentences. Most are of the EC2 Auto Scaling user guide, ts-as-healthchecks
#: (2023-06); "user health-check" is SetInstanceHealth, in public logs of 2026; those of rebalancing
#: are recalled and unverified.
_CAUSES: Sequence[tuple[str, str]] = (
    ("rebalance", INTERRUPTED),
    ("spot interruption", INTERRUPTED),
    ("spot instance interruption", INTERRUPTED),
    ("health check indicating it has been terminated or stopped", VANISHED),
    ("user health-check", BROKEN),
    ("status check failure", BROKEN),
    ("scheduled reboot", BROKEN),
    ("instance refresh", REPLACED),
    ("shrinking the capacity", SCALED_IN),
    ("user request", SCALED_IN),
)


class Story(NamedTuple):
    """What the activities tell. `started` has when each machine came, also of those still there;
    `oldest` is the first activity's time."""

    started: Mapping[str, float]
    gone: tuple[Life, ...]
    failures: tuple[Failure, ...]
    came: float | None
    oldest: float | None
    deleted: bool


def moment(value: Any) -> float | None:
    """Seconds since 1970 of what boto3 gives."""
    return value.timestamp() if isinstance(value, datetime) else None


def read(activities: Iterable[Mapping[str, Any]]) -> Story:
    """The story of a group, from its activities in any order."""
    teller = _Teller()
    for activity in sorted(activities, key=lambda a: moment(a.get("StartTime")) or 0.0):
        teller.hear(activity)
    return teller.story()


def named(story: Story, zones: Mapping[str, str]) -> Story:
    """The same with other names of zones, where there are any."""
    return story._replace(
        gone=tuple(one._replace(zone=zones.get(one.zone or "", one.zone)) for one in story.gone),
        failures=tuple(
            one._replace(zone=zones.get(one.zone or "", one.zone)) for one in story.failures
        ),
    )


class _Teller:
    def __init__(self) -> None:
        self.started: dict[str, float] = {}
        self.zones: dict[str, str | None] = {}
        self.gone: dict[str, Life] = {}
        self.failures: list[Failure] = []
        self.came: float | None = None
        self.oldest: float | None = None
        self.deleted = False

    def hear(self, activity: Mapping[str, Any]) -> None:
        begun = moment(activity.get("StartTime"))
        if self.oldest is None:
            self.oldest = begun
        # Of groups of one name the last one counts: an older one's state is history.
        self.deleted = activity.get("AutoScalingGroupState") == "Deleted"
        description = str(activity.get("Description", ""))
        launch, end = _LAUNCH.match(description), _TERMINATE.match(description)
        if launch:
            self._launched(activity, launch[1], begun)
        elif end:
            self._ended(activity, end[1], begun)

    def _launched(self, activity: Mapping[str, Any], id_: str | None, begun: float | None) -> None:
        status = activity.get("StatusCode")
        said, zone = str(activity.get("StatusMessage") or ""), zone_of(activity)
        if id_ and begun is not None:
            self.started[id_] = begun
            self.zones[id_] = zone
        if status in OVER:
            ended = moment(activity.get("EndTime"))
            code = status_errors.code_in(said)
            row = status_errors.known("aws", code, said)
            self.failures.append(Failure(ended or begun, row.code if row else code, said, zone))
            if id_:
                how = {status_errors.REJECTED: REJECTED, status_errors.SILENT: SILENT}
                why = how.get(row.code, FAILED) if row else FAILED
                self.gone[id_] = Life(id_, zone, begun, ended, why, said)
        elif status == "Successful":
            self.came = moment(activity.get("EndTime")) or begun

    def _ended(self, activity: Mapping[str, Any], id_: str, begun: float | None) -> None:
        zone = self.zones.get(id_) or zone_of(activity)
        known = self.gone.get(id_)
        if known is not None and known.how in (REJECTED, SILENT, FAILED):
            # Its launch says why; that it is then terminated adds nothing but the end.
            self.gone[id_] = known._replace(ended=known.ended or begun)
            return
        cause = " ".join(str(activity.get("Cause") or "").split())
        why = next((how for part, how in _CAUSES if part in cause.lower()), UNKNOWN)
        self.gone[id_] = Life(id_, zone, self.started.get(id_), begun, why, cause)

    def story(self) -> Story:
        return Story(
            self.started,
            tuple(self.gone.values()),
            tuple(self.failures),
            self.came,
            self.oldest,
            self.deleted,
        )


def zone_of(activity: Mapping[str, Any]) -> str | None:
    """The zone that an activity's details name."""
    try:
        details = plain.mapping(json.loads(activity.get("Details") or "{}")) or {}
    except ValueError:
        return None
    return details.get("Availability Zone")
