"""Asking for a whole stack: its lock names the fleets, its settings who asks."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any, NamedTuple

from gputier.account import (
    session_aws,
    session_gcp,
    status,
    status_aws,
    status_errors,
    status_gcp,
)
from gputier.account.answers import CannotAsk
from gputier.account.stack import StackAccount
from gputier.account.status import Fleet, Missing, Stack
from gputier.account.status_facts import Ask, Facts, Questions, Unasked
from gputier.account.status_money import month_of
from gputier.account.status_reports import Listing, Reports, Shelf
from gputier.account.status_schedule import clock
from gputier.account.status_troubles import Trouble
from gputier.lock import Entry, Lock, lock_command
from gputier.lock.entries import stale_entry
from gputier.plan.names import names_of
from gputier.workload import Declaration

#: Fleets that are asked for at the same time.
TOGETHER = 4
#: Reports that explain something are of the last so many seconds.
EXPLAINED = 86400.0


class Sessions(NamedTuple):
    """How a cloud is asked; each raises `CannotAsk` where it cannot be."""

    aws: Callable[[StackAccount], Any] = lambda account: session_aws.session(account.aws)
    gcp: Callable[[StackAccount], Any] = lambda account: session_gcp.session(account.gcp)

    def of(self, cloud: str) -> Callable[[StackAccount], Any]:
        return self.aws if cloud == "aws" else self.gcp


class Asked(NamedTuple):
    """What is asked after: a declaration, its lock, and whose stack it is."""

    declaration: Declaration
    lock: Lock | None
    project: str
    account: StackAccount


class Clouds:
    """A session of each cloud, made once and kept, also between refreshes."""

    def __init__(self, account: StackAccount, sessions: Sessions) -> None:
        self._account, self._sessions = account, sessions
        self._made: dict[str, Any] = {}
        self._number = ""

    @property
    def known(self) -> bool:
        """Whether any has been asked before."""
        return bool(self._made)

    def session(self, cloud: str) -> Any:
        """Raises `CannotAsk`."""
        if cloud not in self._made:
            self._made[cloud] = self._sessions.of(cloud)(self._account)
        return self._made[cloud]

    def number(self) -> str:
        """The AWS account's. Raises `CannotAsk`."""
        self._number = self._number or status_aws.account_of(self.session("aws"))
        return self._number


def ask_stack(asked: Asked, clouds: Clouds, now: float, together: int = TOGETHER) -> Stack:
    """Everything there is to say of a stack at a moment. Never raises for what a cloud answers."""
    wanted = [_ask(asked, name, now) for name in sorted(asked.lock.entries if asked.lock else ())]
    whole = _sessions(clouds, {ask.entry.cloud for ask in wanted})
    pool = ThreadPoolExecutor(max(1, together))
    try:
        told = list(pool.map(partial(_fleet, clouds, whole), wanted))
    finally:
        # Who interrupts does not wait for answers that are still to come.
        pool.shutdown(wait=False, cancel_futures=True)
    unasked = [*whole.values(), *(one for _, found in told for one in found)]
    return Stack(
        asked.declaration.name,
        now,
        month_of(now),
        tuple(fleet for fleet, _ in told),
        tuple(_missing(asked)),
        tuple(dict.fromkeys(unasked)),
        tuple(_notes(asked)),
    )


def _ask(asked: Asked, name: str, now: float) -> Ask:
    lock, declared = asked.lock, asked.declaration.workloads.get(name)
    if lock is None:
        raise ValueError("no lock, no fleet")
    resources = (declared.was if declared else None) or name
    entry = lock.entries[name]
    names = names_of(entry.cloud, asked.project, asked.declaration.name, resources)
    return Ask(name, names, entry, declared, month_of(now), now)


def _sessions(clouds: Clouds, wanted: set[str]) -> dict[str, Unasked]:
    """Clouds that cannot be asked at all, and why: said once, not for each fleet."""
    found: dict[str, Unasked] = {}
    for cloud in sorted(wanted):
        try:
            clouds.session(cloud)
            if cloud == "aws":
                clouds.number()
        except CannotAsk as error:
            what = {"aws": "AWS", "gcp": "Google Cloud"}[cloud]
            found[cloud] = Unasked("", what, error.message, error.fix, error.kind)
    return found


def _fleet(clouds: Clouds, whole: Mapping[str, Unasked], ask: Ask) -> tuple[Fleet, list[Unasked]]:
    questions = Questions(ask.workload)
    times = clock(ask.declared, ask.entry.capacity, ask.now)
    if ask.entry.cloud in whole:
        silent = Reports(_Nothing(), ask.resources, questions)
        silent.asked = False
        return status.fleet(ask, Facts(known=False), silent, None, times), []
    session = clouds.session(ask.entry.cloud)
    shelf: Shelf
    if ask.entry.cloud == "aws":
        facts = status_aws.facts(session, ask, questions)
        shelf = status_aws.Bucket(session, ask, clouds.number())
    else:
        facts = status_gcp.facts(session, ask, questions)
        shelf = status_gcp.Bucket(session, ask)
    reports = Reports(shelf, ask.resources, questions)
    reports.load([live.reports for live in facts.live])
    reports.explain({live.reports for live in facts.live}, ask.now - EXPLAINED)
    found = status.fleet(ask, facts, reports, reports.count(), times)
    return found, questions.unasked


class _Nothing:
    """A bucket that nobody asks."""

    address = ""

    def keys(self, prefix: str, most: int) -> Listing:
        raise CannotAsk(f"{prefix} and {most} more are not asked for")

    def read(self, key: str) -> Mapping[str, Any] | None:
        raise CannotAsk(f"{key} is not asked for")


def _missing(asked: Asked) -> list[Missing]:
    held: Mapping[str, Entry] = asked.lock.entries if asked.lock else {}
    row = status_errors.ours(status_errors.NOT_LOCKED)
    fix = lock_command(asked.declaration)
    one = Trouble(row.code, row.cloud, True, row.words, fix, 1, None, None, False, (), "")
    return [Missing(name, one) for name in asked.declaration.workloads if name not in held]


def _notes(asked: Asked) -> list[str]:
    """What of the files a reader should know: the lock may be another day's than what runs."""
    found = list(asked.account.warnings)
    if asked.lock is None:
        return found
    for name in sorted(asked.lock.entries):
        if name not in asked.declaration.workloads:
            found.append(f"`{name}` is in the lock and no longer declared")
        elif stale := stale_entry(asked.lock, asked.declaration, name):
            found.append(f"{stale.message}; {stale.hint}")
    return found
