"""A status as a screen: the answer first, each workload and what keeps it, what is not known."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence

from gputier.account import status, status_facts
from gputier.account.status import Fleet, Gone, Machine, Missing, Stack
from gputier.account.status_errors import CALM, OURS
from gputier.account.status_facts import Unasked
from gputier.account.status_reports import Verdict
from gputier.account.status_troubles import Trouble
from gputier.cli.console import Paint
from gputier.cli.money import UNKNOWN, amount
from gputier.cli.plan_words import USES
from gputier.cli.status_words import (
    CLOUDS,
    HOW,
    age,
    clock,
    headline,
    money,
    per_hour,
    shown,
    size,
    so_far,
)
from gputier.cli.text import (
    Column,
    columns_of,
    flow,
    left,
    listed,
    plural,
    table,
    table_widths,
    wrap,
)

#: Codes that say little without the cloud's own sentence: which quota, which constraint.
SAID = ("QUOTA_EXCEEDED", "CONDITION_NOT_MET", "PERMISSIONS_ERROR", "RESOURCE_NOT_FOUND")
#: What a line begins with that is a command.
COMMANDS = ("aws ", "gcloud ", "pulumi ", "gputier ", "pip ")
#: Rows of machines that are shown; of those that work the rest is counted.
MOST_ROWS, MOST_GONE = 20, 6
_GOOD = (status.HEALTHY, status.UNPROVED)
_BAD = (status.FAILING, status.REJECTED)
_COLUMNS = (
    Column(),
    Column(),
    Column(drop=2),
    Column(),
    Column(),
    Column(right=True, drop=1),
    Column(right=True),
)


class Screen:
    """A stack's screen, at most `width` wide but for words that are."""

    def __init__(self, found: Stack, width: int, paint: Paint) -> None:
        self._found, self._width, self._paint = found, width, paint

    def text(self) -> str:
        return "\n".join(self._lines())

    def _lines(self) -> Iterator[str]:
        found = self._found
        head = f"{found.name}: {headline(found)}"
        spent = money(found)
        yield from self._side(self._paint.bold(head), spent)
        for fleet in found.fleets:
            yield ""
            yield from self._fleet(fleet)
        for one in found.missing:
            yield ""
            yield from self._missing(one)
        yield from self._unasked()
        yield from self._foot()

    def _side(self, one: str, other: str) -> Iterator[str]:
        """Two parts in a line, or in two where it is too narrow."""
        if other and columns_of(one) + 3 + columns_of(other) > self._width:
            yield from wrap(one, self._width)
            yield f"  {other}"
        else:
            yield f"{one}   {other}".rstrip()

    def _fleet(self, fleet: Fleet) -> Iterator[str]:
        paint = self._paint
        spend = fleet.spend
        use = USES.get(fleet.capacity, fleet.capacity) if fleet.capacity != "on_demand" else ""
        parts = [size(fleet), f"{fleet.cloud} {fleet.region}", fleet.what, use]
        if fleet.state != status.UNKNOWN and (fleet.shape is not None or spend.usd):
            parts.append(per_hour(spend.usd_per_hour))
            counted = not spend.not_counted
            parts.append(so_far(spend.usd, counted, spend.since))
        name = left(paint.bold(fleet.name), max(12, len(fleet.name) + 2))
        lines = flow([part for part in parts if part], self._width, columns_of(name))
        yield name + lines[0]
        yield from lines[1:]
        yield from self._machines(fleet)
        for trouble in fleet.troubles:
            yield from self._trouble(trouble, fleet.look)
        yield from self._around(fleet)

    def _machines(self, fleet: Fleet) -> Iterator[str]:
        order = sorted(fleet.machines, key=lambda machine: machine.state in _GOOD)
        rows = [(self._row(machine), machine.verdict) for machine in order[:MOST_ROWS]]
        bad = [one for one in fleet.gone if one.how != status_facts.SCALED_IN][:MOST_GONE]
        rows += [(self._left(one), one.verdict) for one in bad]
        sizes = table_widths(_COLUMNS, [row for row, _ in rows], self._width - 2)
        for row, verdict in rows:
            yield from table(_COLUMNS, [row], self._width, "  ", sizes)
            if verdict is not None and not verdict.healthy:
                yield from self._verdict(verdict)
        more = len(order) - MOST_ROWS
        if more > 0:
            states = {machine.state for machine in order[MOST_ROWS:]}
            yield f"    and {more} more: {listed(sorted(states))}"
        others = len(fleet.gone) - len(bad)
        if others > 0:
            yield f"    {others}{' more' if rows else ''} went in the last day"

    def _row(self, machine: Machine) -> list[str]:
        now = self._found.at
        since = "" if machine.since is None else f"for {age(now - machine.since)}"
        return [
            self._mark(machine.state),
            machine.id,
            machine.zone or "",
            machine.state,
            since,
            "" if machine.hours is None else f"{machine.hours:,.1f} h",
            UNKNOWN if machine.usd is None else amount(machine.usd),
        ]

    def _left(self, one: Gone) -> list[str]:
        now = self._found.at
        bad = one.how not in (status_facts.REPLACED, status_facts.UNKNOWN)
        return [
            self._paint.red("✗") if bad else self._paint.dim("·"),
            one.id,
            one.zone or "",
            HOW.get(one.how, one.how),
            "" if one.at is None else f"{age(now - one.at)} ago",
            "" if one.hours is None else f"{one.hours:,.1f} h",
            UNKNOWN if one.usd is None else amount(one.usd),
        ]

    def _mark(self, state: str) -> str:
        if state in _GOOD:
            return self._paint.green("✓")
        return self._paint.red("✗") if state in _BAD else self._paint.yellow("·")

    def _verdict(self, verdict: Verdict) -> Iterator[str]:
        for cause in verdict.causes:
            yield from self._hanging("", shown(f"{cause.check}: {cause.evidence}"), 6)
        for remedy in dict.fromkeys(cause.remedy for cause in verdict.causes if cause.remedy):
            yield from self._way_out(shown(remedy), 6)
        if not verdict.causes:
            yield from self._hanging("", f"its report says {shown(verdict.outcome)}", 6)
        yield f"      {self._paint.dim(shown(verdict.address))}"

    def _trouble(self, one: Trouble, look: Sequence[str] = ()) -> Iterator[str]:
        paint, now = self._paint, self._found.at
        heard: list[str] = []
        if one.times > 1:
            heard.append(f"{one.times:,} times")
        if one.first is not None:
            heard.append(f"since {clock(one.first, now)}" if one.times > 1 else "")
            heard.append(f"last {clock(one.last or one.first, now)}" if one.times > 1 else "")
            heard.append(f"at {clock(one.first, now)}" if one.times == 1 else "")
        heard += [listed(one.zones)] if one.zones else []
        calm = one.cloud == OURS and one.code in CALM
        mark = paint.dim("·") if one.over or calm else paint.red("✗")
        words = shown(one.words) if one.known else f"the cloud says: {shown(one.words)}"
        # Names of our own for what clouds only describe mean nothing to a reader.
        named = one.code and not one.code.islower() and one.code != one.words
        code = f" ({shown(one.code or '')})" if named else ""
        over = "over: " if one.over else ""
        told = ", ".join(part for part in heard if part)
        text = f"{over}{words}{code}" + (f"; {told}" if told else "")
        yield from self._hanging(f"{mark} ", text, 2, 4)
        if one.over:
            return
        if one.said and one.known and (one.cloud == OURS or one.code in SAID):
            yield from self._hanging("", shown(one.said), 6)
        if one.fix and one.fix not in look:
            for line in one.fix.splitlines():
                yield from self._way_out(shown(line), 6)

    def _around(self, fleet: Fleet) -> Iterator[str]:
        paint, now = self._paint, self._found.at
        count = fleet.breaker
        if count is not None and count.nodes and not count.tripped:
            told = f"breaker: {plural(count.nodes, 'machine')} failed for {shown(count.reason)}"
            yield from self._hanging(paint.yellow("· "), told, 2, 4)
        if fleet.interruptions:
            told = f"interrupted {plural(fleet.interruptions, 'time')} this month"
            yield from self._hanging(paint.dim("· "), told, 2, 4)
        if fleet.next is not None:
            ahead = age(fleet.next.at - now)
            told = f"machines {fleet.next.what} at {clock(fleet.next.at, now)}"
            yield from self._hanging(paint.dim("· "), f"{told}, in {ahead}", 2, 4)
        trouble = any(not one.over and one.code not in CALM for one in fleet.troubles)
        trouble = trouble or fleet.state == status.SHORT
        if trouble and fleet.shape is not None:
            yield from (f"  {paint.dim('· look:')} {command}" for command in fleet.look)

    def _missing(self, one: Missing) -> Iterator[str]:
        yield f"{self._paint.bold(one.name)}  not locked"
        yield from self._trouble(one.trouble)

    def _unasked(self) -> Iterator[str]:
        if self._found.unasked:
            yield ""
        for one in self._found.unasked:
            yield from self._hanging(self._paint.yellow("⚠ "), _could_not(one), 0, 2)
            if one.fix:
                yield from self._way_out(shown(one.fix), 4)

    def _foot(self) -> Iterator[str]:
        found = self._found
        notes = [shown(note) for note in found.notes]
        for fleet in found.fleets:
            if fleet.state != status.UNKNOWN:
                notes += [f"{fleet.name}: not counted: {one}" for one in fleet.spend.not_counted]
        if notes:
            yield ""
        for note in notes:
            yield from self._hanging("· ", note, 0, 2)
        if found.fleets and found.answered:
            yield ""
            text = (
                f"asked {clock(found.at, found.at)} UTC; money is machine hours at the lock's"
                " prices, without disks, network, logs and tax"
            )
            yield from (self._paint.dim(line) for line in wrap(text, self._width))

    def _way_out(self, fix: str, indent: int) -> Iterator[str]:
        """What to do. A command stays on one line, however long: it is there to be copied."""
        if fix.startswith(COMMANDS):
            yield f"{' ' * indent}→ {fix}"
        else:
            yield from self._hanging("→ ", fix, indent)

    def _hanging(self, mark: str, text: str, indent: int, hang: int = 0) -> Iterator[str]:
        """A paragraph behind a mark. Words stay whole: many are there to be copied."""
        start = " " * indent + mark
        lines = textwrap.wrap(
            text,
            self._width,
            initial_indent=" " * columns_of(start),
            subsequent_indent=" " * (hang or columns_of(start)),
            break_long_words=False,
            break_on_hyphens=False,
        )
        yield start + lines[0].lstrip() if lines else start.rstrip()
        yield from lines[1:]


def _could_not(one: Unasked) -> str:
    where = f"{one.workload}: " if one.workload else ""
    what = one.what if one.what in CLOUDS.values() else f"for {shown(one.what)}"
    return f"{where}could not ask {what}: {shown(one.why)}"
