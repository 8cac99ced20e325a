"""What the provider says about a machine it will take: paths of the metadata services, readers.

The service `interruption` and whoever judges or watches the machine share this table. A notice that
is `taken` means minutes at most; the others are advice, and shut nothing.
"""

from __future__ import annotations

import calendar
import json
import time
from collections.abc import Callable, Mapping
from typing import NamedTuple

from gputier.node import plain

# Of an event that is planned ahead, this near is now.
NEAR_SECONDS = 900.0


class Notice(NamedTuple):
    words: str
    taken: bool


class Asked(NamedTuple):
    """What a reader may know beside the text: the time, and the machine's own name."""

    now: float
    name: str = ""


def spot(text: str, _: Asked) -> Notice | None:
    """Spot: two minutes' notice. docs.aws.amazon.com/AWSEC2 spot-instance-termination-notices."""
    if '"action"' not in text:
        return None
    return Notice(f"spot notice: {_line(text)}", taken=True)


def rebalance(text: str, _: Asked) -> Notice | None:
    """More likely than before to be taken, and maybe never: the group may send a successor."""
    return (
        Notice(f"rebalance recommendation: {_line(text)}", False)
        if '"noticeTime"' in text
        else None
    )


def scheduled(text: str, asked: Asked) -> Notice | None:
    """Scheduled events of AWS are told days ahead."""
    try:
        events = [plain.mapping(item) or {} for item in plain.sequence(json.loads(text)) or ()]
    except ValueError:
        return None
    active = [event for event in events if event.get("State", "active") == "active"]
    if not active:
        return None
    near = any(_starts(event, asked.now) <= asked.now + NEAR_SECONDS for event in active)
    codes = ", ".join(
        f"{event.get('Code')} from {event.get('NotBefore', 'now')}" for event in active
    )
    return Notice(f"maintenance notice: {codes}", near)


def _starts(event: Mapping[str, object], now: float) -> float:
    try:
        moment = time.strptime(str(event["NotBefore"]), "%d %b %Y %H:%M:%S GMT")
    except (KeyError, ValueError):
        return now
    return float(calendar.timegm(moment))


def leaving(text: str, _: Asked) -> Notice | None:
    """The group lets the machine go: it was scaled in, replaced, or refreshed."""
    ends = text in ("Terminated", "Warmed:Terminated")
    return Notice("the group is terminating this machine", taken=True) if ends else None


def preempted(text: str, _: Asked) -> Notice | None:
    """Spot on Google: 30 seconds."""
    return Notice("spot notice: the machine is preempted", True) if text == "TRUE" else None


def maintenance(text: str, _: Asked) -> Notice | None:
    """Machines with GPUs are ended for maintenance; a migration keeps them running."""
    if text in ("", "NONE"):
        return None
    return Notice(f"maintenance notice: {_line(text)}", text.startswith("TERMINATE"))


def events(text: str, asked: Asked) -> Notice | None:
    """Scheduled events of Azure name the machines that they are for; Freeze is a pause."""
    try:
        rows = plain.sequence((plain.mapping(json.loads(text)) or {}).get("Events")) or ()
    except ValueError:
        return None
    kinds: list[str] = []
    for item in rows:
        event = plain.mapping(item) or {}
        named = plain.sequence(event.get("Resources"))
        if named is None or not asked.name or asked.name in named:
            kinds.append(str(event.get("EventType")))
    if not kinds:
        return None
    return Notice(f"scheduled event: {', '.join(kinds)}", any(kind != "Freeze" for kind in kinds))


# Paths below the service's root (AWS: /latest, Google: /computeMetadata/v1, Azure: /metadata).
TABLE: Mapping[str, Mapping[str, Callable[[str, Asked], Notice | None]]] = {
    "aws": {
        "meta-data/spot/instance-action": spot,
        "meta-data/autoscaling/target-lifecycle-state": leaving,
        "meta-data/events/maintenance/scheduled": scheduled,
        "meta-data/events/recommendations/rebalance": rebalance,
    },
    "gcp": {"instance/preempted": preempted, "instance/maintenance-event": maintenance},
    "azure": {"scheduledevents?api-version=2020-07-01": events},
}


def _line(text: str) -> str:
    return " ".join(text.split())[:300]
