"""A review for a terminal: the same words, in columns."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from textwrap import wrap

from gputier.review import words
from gputier.review.review import Review

WIDTH = 100


def text(found: Review) -> str:
    """The review, every line of it no wider than a terminal where words allow."""
    return "\n".join([f"{found.stack}: {words.headline(found)}", *_body(found)])


def _body(found: Review) -> Iterator[str]:
    if not found.incomplete:
        lines = words.lines(found)
        if lines:
            yield ""
            yield from _table([("", "", "before", "after", "change"), *map(tuple, lines)])
    marks = [*(("✗", f"{v.policy} ({v.level}): {v.message}") for v in found.violations)]
    marks += [("⚠", risk.text) for risk in words.warnings(found)]
    if marks:
        yield ""
        for mark, told in marks:
            yield from _wrapped(mark, told)
    notes = [risk.text for risk in words.remarks(found)]
    if found.incomplete:
        notes.insert(0, "the preview is not whole, so neither its cost nor its risk is known")
    else:
        left = words.left_out(found)
        notes += [f"the totals leave out {', '.join(left)}"] if left else []
        notes += [r for r in [words.range_of(found)] if r]
        notes += [
            f"{row.change.state.name}: {note}" for row in found.rows for note in row.priced.notes
        ]
    if notes:
        yield ""
        for note in dict.fromkeys(notes):
            yield from _wrapped("·", note)
    if found.unpriced:
        yield ""
        yield "without a price:"
        for one in found.unpriced:
            yield from _wrapped(" ", f"{one.urn.rsplit('::', 1)[-1]} ({one.type}): {one.why}")
    yield ""
    yield f"list prices after declared discounts, catalogue {found.catalog}, {found.catalog_as_of}"


def _table(rows: Sequence[Sequence[str]]) -> Iterator[str]:
    widths = [max(len(row[n]) for row in rows) for n in range(len(rows[0]))]
    for row in rows:
        cells = [
            cell.ljust(width) if n < 2 else cell.rjust(width)
            for n, (cell, width) in enumerate(zip(row, widths, strict=True))
        ]
        yield "  ".join(cells).rstrip()


def _wrapped(mark: str, told: str) -> list[str]:
    return wrap(" ".join(told.split()), WIDTH, initial_indent=f"{mark} ", subsequent_indent="  ")
