"""A status as JSON: schema `gputier/status/1`. Times are UTC; what is not known is null."""

from __future__ import annotations

from datetime import UTC, datetime

from gputier.account.status import NOT_LOCKED, Fleet, Gone, Machine, Missing, Stack
from gputier.account.status_money import Spend
from gputier.account.status_reports import Count, Verdict
from gputier.account.status_troubles import Trouble
from gputier.plan import money

SCHEMA = "gputier/status/1"


def moment(at: float | None) -> str | None:
    """`2026-12-01T09:12:00Z`."""
    return None if at is None else datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def document(found: Stack) -> dict[str, object]:
    """The whole of a stack."""
    workloads = [*map(_fleet, found.fleets), *map(_missing, found.missing)]
    return {
        "schema": SCHEMA,
        "name": found.name,
        "at": moment(found.at),
        "answered": found.answered,
        "working": found.working,
        "wanted": found.wanted,
        "usd_per_hour": money(found.usd_per_hour),
        "usd": money(found.usd),
        "since": moment(found.since),
        "unasked": [one._asdict() for one in found.unasked],
        "notes": list(found.notes),
        "workloads": sorted(workloads, key=lambda one: str(one["name"])),
    }


def _fleet(fleet: Fleet) -> dict[str, object]:
    size = fleet.size
    return {
        "name": fleet.name,
        "state": fleet.state,
        "cloud": fleet.cloud,
        "region": fleet.region,
        "machine": fleet.what,
        "capacity": fleet.capacity,
        "shape": fleet.shape,
        "group": fleet.group,
        "wanted": size.wanted if size else None,
        "min": size.least if size else None,
        "max": size.most if size else None,
        "working": fleet.working,
        "machines": [_machine(machine) for machine in fleet.machines],
        "gone": [_gone(one) for one in fleet.gone],
        "interruptions": fleet.interruptions,
        "troubles": [_trouble(one) for one in fleet.troubles],
        "breaker": _breaker(fleet.breaker),
        "launches_stopped": fleet.launches_stopped,
        "next": {"what": fleet.next.what, "at": moment(fleet.next.at)} if fleet.next else None,
        "spend": _spend(fleet.spend),
        "look": list(fleet.look),
    }


def _missing(one: Missing) -> dict[str, object]:
    """A workload without a machine: everything else is not there."""
    absent = ("cloud", "region", "machine", "capacity", "shape", "group", "wanted", "min", "max")
    return {
        "name": one.name,
        "state": NOT_LOCKED,
        **dict.fromkeys(absent),
        "working": 0,
        "machines": [],
        "gone": [],
        "interruptions": None,
        "troubles": [_trouble(one.trouble)],
        "breaker": None,
        "launches_stopped": None,
        "next": None,
        "spend": None,
        "look": [],
    }


def _machine(machine: Machine) -> dict[str, object]:
    return {
        "id": machine.id,
        "zone": machine.zone,
        "type": machine.type,
        "spot": machine.spot,
        "state": machine.state,
        "started": moment(machine.started),
        "since": moment(machine.since),
        "hours": _hours(machine.hours),
        "usd": money(machine.usd),
        "verdict": _verdict(machine.verdict),
    }


def _gone(one: Gone) -> dict[str, object]:
    return {
        "id": one.id,
        "zone": one.zone,
        "how": one.how,
        "at": moment(one.at),
        "hours": _hours(one.hours),
        "usd": money(one.usd),
        "said": one.said,
        "verdict": _verdict(one.verdict),
    }


def _verdict(verdict: Verdict | None) -> dict[str, object] | None:
    if verdict is None:
        return None
    return {
        "outcome": verdict.outcome,
        "at": moment(verdict.at),
        "gate": verdict.gate or None,
        "depth": verdict.depth or None,
        "causes": [cause._asdict() for cause in verdict.causes],
        "report": verdict.address,
    }


def _trouble(one: Trouble) -> dict[str, object]:
    return {
        "code": one.code,
        "from": one.cloud,
        "known": one.known,
        "words": one.words,
        "fix": one.fix,
        "times": one.times,
        "first": moment(one.first),
        "last": moment(one.last),
        "over": one.over,
        "zones": list(one.zones),
        "said": one.said,
    }


def _breaker(count: Count | None) -> dict[str, object] | None:
    if count is None:
        return None
    return {
        "tripped": count.tripped,
        "nodes": count.nodes,
        "reason": count.reason or None,
        "at": moment(count.at),
    }


def _spend(spend: Spend) -> dict[str, object]:
    return {
        "hours": _hours(spend.hours),
        "usd": money(spend.usd),
        "usd_per_hour": money(spend.usd_per_hour),
        "not_counted": list(spend.not_counted),
    }


def _hours(hours: float | None) -> float | None:
    return None if hours is None else round(hours, 3)
