"""What nodes left in the stack's bucket: reports of their boots, and the breaker's count.

A report's key says who, when and what came out; only those that say why are read.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, NamedTuple, Protocol

from gputier.account.answers import CannotAsk
from gputier.account.status_facts import Questions
from gputier.node import breaker, plain
from gputier.node.report import SCHEMA
from gputier.node.result import HEALTHY, ORDER

#: Objects of one listing: more reports than a month's of a fleet that fails all day.
MOST_KEYS = 5000
#: Reports that are read: those that say why, the newest first.
MOST_READ = 12
_KEY = re.compile(r"reports/[^/]+/(?P<who>[^/]+)/(?P<at>\d{8}T\d{6}Z)-(?P<outcome>[a-z]+)\.json")


class Listing(NamedTuple):
    """Keys below a prefix. `whole` is False where there are more."""

    keys: Sequence[str]
    whole: bool


class Shelf(Protocol):
    """The stack's bucket. Both raise `CannotAsk`; `read` gives a JSON object, None for what is not
    there."""

    address: str

    def keys(self, prefix: str, most: int) -> Listing: ...
    def read(self, key: str) -> Mapping[str, Any] | None: ...


class Cause(NamedTuple):
    """A root cause: the check, what it saw, what to do."""

    check: str
    evidence: str
    remedy: str


class Verdict(NamedTuple):
    """What a node said of itself. `causes` are empty where its report was not read; `gate` is the
    mode it was judged in, "" where that is not known."""

    who: str
    at: float
    outcome: str
    key: str
    address: str
    causes: tuple[Cause, ...] = ()
    gate: str = ""
    depth: str = ""

    @property
    def healthy(self) -> bool:
        return self.outcome == HEALTHY


class Count(NamedTuple):
    """The breaker: nodes with the same reason since the last healthy one, and whether it has
    stopped the fleet."""

    tripped: bool
    nodes: int
    reason: str
    at: float | None


def prefix_of(resources: str) -> str:
    return f"reports/{resources}/"


class Reports:
    """Verdicts by machine, the newest of each."""

    def __init__(self, shelf: Shelf, resources: str, questions: Questions) -> None:
        self._shelf, self._resources, self._questions = shelf, resources, questions
        self.asked = True
        self.newest: dict[str, Verdict] = {}

    def load(self, present: Iterable[str]) -> None:
        """List them. `present` are machines that are there: theirs are looked for one by one
        where there are too many to list."""
        try:
            found = self._shelf.keys(prefix_of(self._resources), MOST_KEYS)
            keys = list(found.keys)
            if not found.whole:
                for who in present:
                    keys += self._shelf.keys(f"{prefix_of(self._resources)}{who}/", MOST_KEYS).keys
        except CannotAsk as error:
            self.asked = False
            self._questions.note(f"the reports in {self._shelf.address}", error)
            return
        for verdict in filter(None, (self._of(key) for key in keys)):
            before = self.newest.get(verdict.who)
            if before is None or _weight(before) < _weight(verdict):
                self.newest[verdict.who] = verdict

    def _of(self, key: str) -> Verdict | None:
        found = _KEY.fullmatch(key)
        if not found or found["outcome"] not in ORDER:
            return None
        try:
            at = datetime.strptime(found["at"], "%Y%m%dT%H%M%SZ").replace(tzinfo=UTC)
        except ValueError:
            return None
        address = f"{self._shelf.address}/{key}"
        return Verdict(found["who"], at.timestamp(), found["outcome"], key, address)

    def explain(self, present: Collection[str], since: float) -> None:
        """Read the reports that say why a machine is not healthy: of those that are there, and of
        others since a time."""
        told = [v for v in self.newest.values() if v.who in present or v.at >= since]
        wanted = [v for v in told if not v.healthy]
        for verdict in sorted(wanted, key=lambda v: -v.at)[:MOST_READ]:
            try:
                report = self._shelf.read(verdict.key)
            except CannotAsk as error:
                self._questions.note(f"the report {verdict.address}", error)
                return
            self.newest[verdict.who] = _filled(verdict, report or {})

    def count(self) -> Count | None:
        """The breaker's count; None where it could not be read."""
        key = breaker.key(self._resources)
        try:
            state = self._shelf.read(key)
        except CannotAsk as error:
            self._questions.note(f"the breaker's count in {self._shelf.address}/{key}", error)
            return None
        return counted(state or {})


def _weight(verdict: Verdict) -> tuple[float, bool]:
    """The newest counts; keys tell whole seconds, and of two in one the bad one."""
    return verdict.at, not verdict.healthy


def _filled(verdict: Verdict, report: Mapping[str, Any]) -> Verdict:
    if report.get("schema") != SCHEMA:
        return verdict
    causes = [str(name) for name in plain.sequence(report.get("causes")) or ()]
    checks = [plain.mapping(item) or {} for item in plain.sequence(report.get("checks")) or ()]
    found = [
        Cause(*(str(check.get(name) or "") for name in ("name", "evidence", "remedy")))
        for check in checks
        if check.get("name") in causes
    ]
    return verdict._replace(
        causes=tuple(found),
        gate=str(report.get("gate") or ""),
        depth=str(report.get("depth") or ""),
    )


def counted(state: Mapping[str, Any]) -> Count:
    """A breaker's state as its nodes wrote it."""
    nodes = [entry for entry in breaker.entries(state) if entry.outcome == "config"]
    tripped = plain.mapping(state.get("tripped")) or {}
    last = max(nodes, key=lambda entry: entry.at, default=None)
    reason = str(tripped.get("reason") or (last.reason if last else ""))
    alike = {entry.instance for entry in nodes if entry.reason == reason}
    at = tripped.get("at") if tripped else last.at if last else None
    return Count(
        bool(tripped), len(alike), reason, float(at) if isinstance(at, (int, float)) else None
    )
