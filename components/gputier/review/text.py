"""A review for a terminal: the same words, in columns."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from textwrap import wrap

from gputier.review import words
from gputier.review.preview import Violation
from gputier.review.review import Review

WIDTH = 80
#: What a name or a machine is never cut below, and how far a row's reason hangs.
_NARROWEST, _HANG = 12, 4


def text(found: Review, width: int = WIDTH) -> str:
    """The review; no line is wider, but for words and figures that are."""
    head = f"{found.stack}: {words.headline(found)}"
    return "\n".join([words.plain(head), *_body(found, width)])


def _body(found: Review, width: int) -> Iterator[str]:
    lines = [] if found.incomplete else words.lines(found)
    if lines:
        yield ""
        yield from _table(lines, width)
    marks = [(v.mark, _broken(v)) for v in found.violations]
    marks += [("⚠", risk.text) for risk in words.warnings(found)]
    if found.incomplete:
        yield ""
        yield from _wrapped("·", words.NOT_WHOLE, width)
    if marks:
        yield ""
        for mark, told in marks:
            yield from _wrapped(mark, told, width)
    if not found.incomplete:
        yield from _details(found, width)
    yield ""
    yield f"list prices after declared discounts, catalogue {found.catalog}, {found.catalog_as_of}"


def _broken(one: Violation) -> str:
    about = f" on {one.resource}" if one.resource else ""
    return f"{one.policy}{about} ({one.level}): {one.message}"


def _details(found: Review, width: int) -> Iterator[str]:
    left = words.left_out(found)
    notes = [risk.text for risk in words.remarks(found)]
    notes += [f"the totals leave out {', '.join(left)}"] if left else []
    notes += filter(None, [words.range_of(found)])
    notes += [f"{row.change.state.name}: {note}" for row in found.rows for note in row.priced.notes]
    if notes:
        yield ""
        for note in dict.fromkeys(notes):
            yield from _wrapped("·", note, width)
    if found.unpriced:
        yield ""
        yield "without a price:"
        for one in found.unpriced:
            told = f"{one.urn.rsplit('::', 1)[-1]} ({one.type}): {one.why}"
            yield from _wrapped(" ", told, width)


def _table(lines: Sequence[words.Line], width: int) -> Iterator[str]:
    """Figures are never cut; names are, where they take too much. What made the difference stands
    behind its row, or below it where that is too long."""
    rows = [("", "", "before", "after", "change"), *(tuple(line)[:5] for line in lines)]
    rows = [tuple(map(words.plain, row)) for row in rows]
    widths = [max(len(row[n]) for row in rows) for n in range(5)]
    for n, other in ((0, 1), (1, 0)):
        room = width - sum(widths[2:]) - 2 * 4 - widths[other]
        widths[n] = min(widths[n], max(_NARROWEST, room))
    for row, why in zip(rows, ["", *(line.why for line in lines)], strict=True):
        cells = [_cut(cell, size).ljust(size) for cell, size in zip(row[:2], widths, strict=False)]
        cells += [cell.rjust(size) for cell, size in zip(row[2:], widths[2:], strict=True)]
        shown = "  ".join(cells)
        reason = words.plain(why)
        if reason and len(shown) + 2 + len(reason) <= width:
            yield f"{shown}  {reason}"
            continue
        yield shown
        yield from wrap(reason, width, initial_indent=" " * _HANG, subsequent_indent=" " * _HANG)


def _cut(cell: str, size: int) -> str:
    return cell if len(cell) <= size else f"{cell[: size - 1]}…"


def _wrapped(mark: str, told: str, width: int) -> list[str]:
    """A sentence behind its mark."""
    return wrap(words.plain(told), width, initial_indent=f"{mark} ", subsequent_indent="  ")
