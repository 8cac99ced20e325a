"""Asking every question of a stack at once, each with a limit; what is not answered is said.

from gputier.account.doctor import Subject, examine
answers = examine(Subject(declaration, targets, account, project), Sessions())
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Hashable, Iterable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from typing import Any, NamedTuple, TypeVar

from gputier.account.answers import BAD, GOOD, UNASKED, WAY, Answer, CannotAsk
from gputier.account.doctor_checks import CHECKS, Check
from gputier.account.doctor_targets import Target
from gputier.account.stack import StackAccount
from gputier.catalog import Catalog

#: Questions at the same time, seconds until one counts as not answered, and between two words on
#: how far it is.
TOGETHER = 12
LIMIT = 45.0
EACH = 1.0

T = TypeVar("T")


class Finding(NamedTuple):
    """What one question found, in a few words, and what to do about it."""

    state: str
    found: str
    fixes: tuple[str, ...] = ()


def good(found: str) -> Finding:
    return Finding(GOOD, found)


def bad(found: str, *fixes: str) -> Finding:
    return Finding(BAD, found, fixes)


def unknown(found: str, *fixes: str) -> Finding:
    """Asked, and yet not known."""
    return Finding(UNASKED, found, fixes)


class Question(NamedTuple):
    """One question: of which check, about which workloads, of what, and how it is asked. `ask`
    raises `CannotAsk`; `known` is the answer where nobody needs to be asked."""

    check: Check
    workloads: tuple[str, ...]
    about: str
    ask: Callable[[], Finding]
    known: Finding | None = None


class Subject(NamedTuple):
    """What is examined: a stack's fleets, and who deploys them. `command` is the stack or the file
    as it is typed; `now` is the time, ISO 8601 in UTC."""

    name: str
    command: str
    project: str
    production: bool
    targets: tuple[Target, ...]
    account: StackAccount
    catalog: Catalog
    now: str


class Once:
    """What several questions need is asked once. A failure is remembered like an answer."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._found: dict[Hashable, Future[Any]] = {}

    def get(self, key: Hashable, make: Callable[[], T]) -> T:
        """The answer of the first who asks. Raises what `make` raised."""
        with self._lock:
            mine = key not in self._found
            found: Future[T] = self._found.setdefault(key, Future())
        if mine:
            try:
                found.set_result(make())
            except BaseException as error:
                found.set_exception(error)
        return found.result()


Said = tuple[Finding, str]
"""A finding, and why there is no better one: one of the kinds of `CannotAsk`, else ""."""


def ask_all(
    questions: Sequence[Question], say: Callable[[int, int], object], limit: float = LIMIT
) -> list[Said]:
    """What each question found, in their order. `say(answered, of)` is told each second."""
    if not questions:
        return []
    pool = ThreadPoolExecutor(min(TOGETHER, len(questions)), "doctor")
    asked = [pool.submit(_said, question) for question in questions]
    ends = time.monotonic() + limit
    try:
        while (left := ends - time.monotonic()) > 0:
            done, waiting = wait(asked, min(EACH, left))
            if not waiting:
                break
            say(len(done), len(asked))
    finally:
        # A thread that hangs is left to itself: its call gives up by its own limit.
        pool.shutdown(wait=False, cancel_futures=True)
    late = unknown(f"no answer in {limit:.0f} s", "run it again")
    return [one.result() if one.done() and not one.cancelled() else (late, WAY) for one in asked]


def _said(question: Question) -> Said:
    try:
        return question.known or question.ask(), ""
    except CannotAsk as error:
        return unknown(error.message, *filter(None, [error.fix])), error.kind


def answer(question: Question, finding: Finding) -> Answer:
    """The finding with what its check says of it."""
    check = question.check
    calls = ", ".join(check.calls)
    asked = f"{calls}: {question.about}" if calls else question.about
    return Answer(
        check.name,
        check.cloud,
        question.workloads,
        finding.state,
        asked,
        finding.found,
        check.why,
        finding.fixes,
    )


def ordered(answers: Iterable[Answer]) -> list[Answer]:
    """In the order of the checks; workloads in their own."""
    places = {(check.name, check.cloud): place for place, check in enumerate(CHECKS)}
    return sorted(answers, key=lambda one: places[one.check, one.cloud])
