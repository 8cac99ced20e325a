"""The loop breaker: the same configuration fault on every new node stops the fleet.

A bad host is cured by another host; a bad image or declaration is not, and every replacement costs
money until somebody looks. So nodes count their faults together, in one object of the stack's
bucket: `breaker/<workload>.json`.

    {"schema": "gputier/breaker/1",
     "nodes": [{"instance": "i-1", "outcome": "config", "reason": "mig@health", "at": 9}],
     "tripped": {"instance": "i-2", "reason": "mig@health", "at": 12}}

`nodes` are those since the last healthy one, each once, times by the store's clock. Only outcome
`config` can trip it: hardware reasons keep replacing, and what could not be judged proves nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from gputier.node import plain
from gputier.node.cloud import shared
from gputier.node.cloud.store import Store
from gputier.node.result import CONFIG

SCHEMA = "gputier/breaker/1"
KEPT = 200


class Entry(NamedTuple):
    """One node's fault."""

    instance: str
    outcome: str
    reason: str
    at: float


class Decision(NamedTuple):
    """Whether the fleet stops, the nodes that have this fault, and both in words."""

    tripped: bool
    same: tuple[str, ...]
    words: str


def key(workload: str) -> str:
    return f"breaker/{workload}.json"


def reason(report: Mapping[str, Any]) -> str:
    """What tells one fault from another: names and stages of the root causes, never evidence,
    which holds addresses, times and counts."""
    causes = {str(name) for name in plain.sequence(report.get("causes")) or ()}
    found: set[str] = set()
    for item in plain.sequence(report.get("checks")) or ():
        check = plain.mapping(item) or {}
        if check.get("name") in causes and check.get("outcome") == report.get("outcome"):
            found.add(f"{check['name']}@{check.get('stage') or '-'}")
    return ",".join(sorted(found)) or "unknown"


def entries(data: Mapping[str, Any]) -> list[Entry]:
    """The nodes of a state, as far as they can be read."""
    found: list[Entry] = []
    for item in plain.sequence(data.get("nodes")) or ():
        node = plain.mapping(item) or {}
        at = node.get("at")
        if isinstance(at, (int, float)) and not isinstance(at, bool):
            instance, outcome, why = (
                str(node.get(name) or "") for name in ("instance", "outcome", "reason")
            )
            found.append(Entry(instance, outcome, why, float(at)))
    return found


def added(before: Sequence[Entry], entry: Entry, window: float) -> list[Entry]:
    """With this node's entry, once; without those that are too old to count."""
    kept = [e for e in before if e.instance != entry.instance and entry.at - e.at <= window]
    return [*kept, entry][-KEPT:]


def same(nodes: Sequence[Entry], entry: Entry) -> tuple[str, ...]:
    """The instances with this very configuration fault, none when it is not one."""
    if entry.outcome != CONFIG:
        return ()
    alike = (e.instance for e in nodes if (e.outcome, e.reason) == (CONFIG, entry.reason))
    return tuple(sorted(set(alike)))


class Breaker:
    """The state of one workload. `count` and `clear` raise Trouble."""

    def __init__(self, store: Store, workload: str, after: int, window: float) -> None:
        self.store = store
        self.key = key(workload)
        self.after = after
        self.window = window

    def count(self, instance: str, report: Mapping[str, Any]) -> Decision:
        """Add this node's fault; whether it is one too many. Counting a node twice is once."""
        outcome, why = str(report.get("outcome")), reason(report)

        def change(data: Mapping[str, Any]) -> Mapping[str, Any] | None:
            entry = Entry(instance, outcome, why, round(self.store.now(), 1))
            if any(e[:3] == entry[:3] for e in entries(data)):
                return None
            nodes = added(entries(data), entry, self.window)
            found: dict[str, Any] = {"schema": SCHEMA, "nodes": [e._asdict() for e in nodes]}
            tripped = plain.mapping(data.get("tripped"))
            if len(same(nodes, entry)) >= self.after:
                tripped = {"instance": instance, "reason": why, "at": entry.at}
            return {**found, "tripped": tripped} if tripped else found

        data = shared.update(self.store, self.key, change)
        mine = Entry(instance, outcome, why, self.store.now())
        alike = same(added(entries(data), mine, self.window), mine)
        tripped = len(alike) >= self.after
        words = f"{len(alike)} of {self.after} nodes in a row with {why}"
        return Decision(tripped, alike, words if alike else f"{outcome} does not count")

    def clear(self) -> bool:
        """A new node is healthy: what was counted before it proves nothing now. Whether there was
        anything; a fleet that boots well writes nothing."""
        found = shared.read(self.store, self.key)
        if not found.get("nodes") and not found.get("tripped"):
            return False

        def change(data: Mapping[str, Any]) -> Mapping[str, Any] | None:
            empty = not data.get("nodes") and not data.get("tripped")
            return None if empty else {"schema": SCHEMA, "nodes": []}

        shared.update(self.store, self.key, change)
        return True
