"""Why something does not appear: errors of one kind together, and what is nobody's error."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from typing import NamedTuple

from gputier.account import status_errors
from gputier.account.status_errors import AUTOSCALER_OFF, Known
from gputier.account.status_facts import SERVING, STOPPED, Ask, Facts, Failure, Reservation
from gputier.account.status_reports import Count
from gputier.account.status_schedule import Clock
from gputier.plan.actions import START

#: How long an error is told after machines came again.
DAY = 86400.0
#: Tellings of one unknown error are shown up to so many characters.
SAID = 300


class Trouble(NamedTuple):
    """A reason, and how often and since when it was heard; times are None for what simply stands.

    `code` is the cloud's or ours, None where it gave none; `known` whether the table has it.
    `over`: machines have come since. `said` is the cloud's newest sentence."""

    code: str | None
    cloud: str
    known: bool
    words: str
    fix: str
    times: int
    first: float | None
    last: float | None
    over: bool
    zones: tuple[str, ...]
    said: str


def troubles(ask: Ask, facts: Facts, count: Count | None, clock: Clock) -> tuple[Trouble, ...]:
    """Everything that keeps machines away: what stands first, then errors, the newest first."""
    standing = list(_standing(ask, facts, count, clock))
    errors = sorted(_errors(ask, facts), key=lambda t: (t.over, -(t.last or ask.now)))
    if any(t.code == status_errors.BREAKER for t in standing):
        # The breaker stopped it for what the gate found: one reason told twice is two for a reader.
        errors = [t for t in errors if t.code != status_errors.REJECTED]
    return (*standing, *errors)


def _standing(ask: Ask, facts: Facts, count: Count | None, clock: Clock) -> Iterator[Trouble]:
    if facts.known and facts.shape is None:
        code = status_errors.DELETED if facts.before else status_errors.NOT_DEPLOYED
        yield _ours(ask, code, facts.came)
    if facts.stopped is not None:
        breaker = count is not None and count.tripped
        by_hand = {"aws": status_errors.SUSPENDED}.get(ask.entry.cloud, AUTOSCALER_OFF)
        code = status_errors.BREAKER if breaker else by_hand
        said = f"{count.nodes} machines: {count.reason}" if breaker and count else facts.stopped
        yield _ours(ask, code, count.at if breaker and count else None, said)
    elif count is not None and count.tripped and ask.entry.cloud != "aws":
        # A group without an autoscaler is stopped by making it smaller, which leaves no mark.
        yield _ours(ask, status_errors.BREAKER, count.at, f"{count.nodes}: {count.reason}")
    held = [] if facts.reservation is None else list(_reserved(ask, facts, facts.reservation))
    if facts.waiting:
        held.append(_ours(ask, status_errors.FLEX, None))
    yield from held
    wanted = facts.size.wanted if facts.size else None
    runs = any(live.stage != STOPPED for live in facts.live)
    if facts.shape is not None and wanted == 0 and not runs and not held:
        asleep = clock.runs is False or (clock.next is not None and clock.next.what == START)
        yield _ours(ask, status_errors.ASLEEP if asleep else status_errors.AT_ZERO, None)


def _reserved(ask: Ask, facts: Facts, held: Reservation) -> Iterator[Trouble]:
    if held.state == status_errors.HELD_GONE:
        yield _ours(ask, status_errors.HELD_GONE, None, held.id)
    elif held.state in ("scheduled", "pending", "payment-pending", "assessing", "delayed") or (
        held.starts is not None and held.starts > ask.now
    ):
        begins = f", and begins {_said(held.starts)}" if held.starts else ""
        yield _ours(ask, status_errors.BLOCK_EARLY, None, f"{held.id} is {held.state}{begins}")
    elif held.state != "active":
        ended = f", and ended {_said(held.ends)}" if held.ends else ""
        yield _ours(ask, status_errors.BLOCK_OVER, None, f"{held.id} is {held.state}{ended}")
    elif held.free == 0 and facts.size is not None and len(facts.live) < facts.size.wanted:
        yield _ours(ask, status_errors.HELD_FULL, None, f"0 of {held.total} free in {held.id}")


def _said(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%d %H:%M UTC")


def _ours(ask: Ask, code: str, at: float | None, said: str = "") -> Trouble:
    row = status_errors.ours(code)
    fix = _fix(ask, row)
    if code == status_errors.BREAKER:
        again = {"aws": status_errors.SUSPENDED}.get(ask.entry.cloud, AUTOSCALER_OFF)
        fix = f"{fix}\n{_fix(ask, status_errors.ours(again))}"
    return Trouble(code, status_errors.OURS, True, row.words, fix, 1, at, at, False, (), said)


def _errors(ask: Ask, facts: Facts) -> Iterator[Trouble]:
    """Errors of the last day, and older ones that nothing has come after."""
    kinds: dict[str, list[Failure]] = {}
    rows: dict[str, Known | None] = {}
    for failure in facts.failures:
        row = status_errors.known(ask.entry.cloud, failure.code, failure.said)
        kind = row.code if row else failure.code or status_errors.kind_of(failure.said)
        kinds.setdefault(kind, []).append(failure)
        rows[kind] = row
    for kind, heard in kinds.items():
        found = _grouped(ask, facts, rows[kind], heard)
        if not found.over or (found.last is not None and found.last >= ask.now - DAY):
            yield found


def _grouped(ask: Ask, facts: Facts, row: Known | None, heard: Sequence[Failure]) -> Trouble:
    times = sorted(failure.at for failure in heard if failure.at is not None)
    stands = len(times) < len(heard)
    last = times[-1] if times else None
    newest = max(heard, key=lambda failure: failure.at or ask.now)
    came = facts.came is not None and last is not None and facts.came > last
    enough = facts.size is not None and _serving(facts) >= facts.size.wanted
    return Trouble(
        row.code if row else newest.code,
        ask.entry.cloud,
        row is not None,
        row.words if row else newest.said[:SAID] or newest.code or "the cloud gives no reason",
        _fix(ask, row) if row else (facts.look[0] if facts.look else ""),
        len(times) or len(heard),
        times[0] if times else None,
        ask.now if stands else last,
        (came or enough) and not stands,
        tuple(sorted({failure.zone for failure in heard if failure.zone})),
        newest.said[:SAID],
    )


def _serving(facts: Facts) -> int:
    return sum(1 for live in facts.live if live.stage == SERVING)


def _fix(ask: Ask, row: Known) -> str:
    return row.fix.format(
        stack=ask.names.stack,
        workload=ask.workload,
        region=ask.entry.region,
        group=ask.names.of("group"),
        project=ask.names.project,
    )
