"""Parts of a status in a few words each: ages, times, states, money so far."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime

from gputier import units
from gputier.account import status, status_facts
from gputier.account.status import Fleet, Stack
from gputier.cli.money import UNKNOWN, amount
from gputier.cli.text import listed, plural

MINUTE, HOUR, DAY = 60, 3600, 86400
#: What a machine that has gone is called.
HOW = {
    status_facts.REJECTED: "rejected",
    status_facts.SILENT: "silent",
    status_facts.FAILED: "failed",
    status_facts.INTERRUPTED: "interrupted",
    status_facts.VANISHED: "ended by EC2",
    status_facts.BROKEN: "replaced, broken",
    status_facts.REPLACED: "replaced",
    status_facts.SCALED_IN: "scaled in",
    status_facts.UNKNOWN: "gone",
}
CLOUDS = {"aws": "AWS", "gcp": "Google Cloud"}


def shown(text: str) -> str:
    """Text of anybody in one line, with a mark for what a terminal obeys instead of showing."""
    return "".join(c if c.isprintable() else "�" for c in " ".join(text.split()))


def age(seconds: float) -> str:
    """`41 s`, `12 min`, `4 h 5 min`, `3 d 4 h`."""
    whole = max(0, int(seconds))
    if whole < MINUTE:
        return f"{whole} s"
    if whole < HOUR:
        return f"{whole // MINUTE} min"
    if whole < DAY:
        hours, minutes = whole // HOUR, whole % HOUR // MINUTE
        return f"{hours} h {minutes} min" if minutes else f"{hours} h"
    days, hours = whole // DAY, whole % DAY // HOUR
    return f"{days} d {hours} h" if hours else f"{days} d"


def clock(at: float, now: float) -> str:
    """`09:12` of the same day, else `30 Nov 09:12`; UTC."""
    then, today = datetime.fromtimestamp(at, UTC), datetime.fromtimestamp(now, UTC)
    return f"{then:%H:%M}" if then.date() == today.date() else f"{then.day} {then:%b %H:%M}"


def day(at: float) -> str:
    """`1 Dec`."""
    then = datetime.fromtimestamp(at, UTC)
    return f"{then.day} {then:%b}"


def headline(found: Stack) -> str:
    """The answer."""
    if not found.fleets:
        return "the lock has no machine, so nothing is deployed from here"
    if not found.answered:
        asked = sorted({CLOUDS.get(fleet.cloud, fleet.cloud) for fleet in found.fleets})
        return f"{listed(asked)} could not be asked"
    parts = [_works(found), *_beside(found)]
    unknown = [fleet.name for fleet in found.fleets if fleet.state == status.UNKNOWN]
    if unknown:
        parts.append(f"{listed(unknown)} could not be asked for")
    return ", ".join(filter(None, parts))


def _works(found: Stack) -> str:
    there = [fleet for fleet in found.fleets if fleet.state != status.UNKNOWN]
    wanted = sum(fleet.size.wanted for fleet in there if fleet.size)
    if all(fleet.shape is None for fleet in there):
        gone = any(fleet.state == status.DELETED for fleet in there)
        return "everything was deleted" if gone else "nothing is deployed"
    if not wanted and not found.working:
        return "no machine is wanted now"
    if found.working >= wanted:
        return {1: "its machine works", 2: "both machines work"}.get(
            found.working, f"all {plural(found.working, 'machine')} work"
        )
    verb = "work" if wanted > 1 else "works"
    return f"{found.working} of {plural(wanted, 'machine')} {verb}"


def _beside(found: Stack) -> Sequence[str]:
    """What else a person should hear at once: of now, and of the last day."""
    machines = [machine for fleet in found.fleets for machine in fleet.machines]
    gone = [one for fleet in found.fleets for one in fleet.gone]
    states = [machine.state for machine in machines]
    how = [one.how for one in gone]
    rejected = states.count(status.REJECTED) + how.count(status_facts.REJECTED)
    parts = [
        _count(states.count(status.FAILING), "fails", "fail"),
        _count(rejected, "was rejected by the gate", "were rejected by the gate"),
        _count(how.count(status_facts.INTERRUPTED), "was interrupted", "were interrupted"),
        _count(states.count(status.PROVING), "proves itself", "prove themselves"),
        _count(states.count(status_facts.STARTING), "starts", "start"),
        _count(states.count(status_facts.STOPPED), "is stopped", "are stopped"),
    ]
    deleted = [f.name for f in found.fleets if f.state == status.DELETED]
    never = [f.name for f in found.fleets if f.state == status.NOT_DEPLOYED]
    if any(fleet.shape is not None for fleet in found.fleets):
        parts += [_are(deleted, "deleted"), _are(never, "not deployed")]
    return [part for part in parts if part]


def _count(count: int, one: str, many: str) -> str:
    return f"{count} {one if count == 1 else many}" if count else ""


def _are(names: Sequence[str], what: str) -> str:
    return f"{listed(names)} {'is' if len(names) == 1 else 'are'} {what}" if names else ""


def money(found: Stack) -> str:
    """`$31.20/h now, $4,120 since 1 Dec`; unknown is said."""
    nothing = all(fleet.shape is None for fleet in found.fleets) and not found.usd
    if not found.answered or nothing:
        return ""
    now = per_hour(found.usd_per_hour)
    if any(fleet.spend.usd_per_hour is None for fleet in found.fleets) and now != UNKNOWN:
        now = f"at least {now}"
    return f"{now} now, {so_far(found.usd, found.counted, found.since)}"


def per_hour(usd: float | None) -> str:
    """`$31.20/h`, `$0/h`."""
    if usd is None:
        return UNKNOWN
    return units.usd_per_hour(usd) if usd else "$0/h"


def so_far(usd: float | None, counted: bool, since: float) -> str:
    """`$812 since 1 Dec`, with `at least` where something is not counted."""
    if usd is None or not (usd or counted):
        return f"{UNKNOWN} since {day(since)}"
    return f"{'' if counted else 'at least '}{amount(usd)} since {day(since)}"


def size(fleet: Fleet) -> str:
    """`5 of 6 work (1–8)`."""
    if fleet.state == status.UNKNOWN:
        return "not known"
    if fleet.shape is None:
        return "deleted" if fleet.state == status.DELETED else "not deployed"
    if fleet.size is None:
        return f"{fleet.working} work"
    least, most = fleet.size.least, fleet.size.most
    bounds = f" ({least}–{most})" if (least, most) != (fleet.size.wanted,) * 2 else ""
    if not fleet.size.wanted and not fleet.working:
        return f"none wanted{bounds}"
    return f"{fleet.working} of {fleet.size.wanted} work{bounds}"
