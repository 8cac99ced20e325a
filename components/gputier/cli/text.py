"""Plain text in columns: what every screen is made of.

Cells may carry colour; widths are counted without it. A line is never longer than `width`; a word
is broken only where it is wider than its column.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

_SGR = re.compile(r"\x1b\[[0-9;]*m")
#: The narrowest a column is squeezed to before the least needed one is dropped.
_SQUEEZED = 14
_GAP = "  "


def columns_of(text: str) -> int:
    """How many columns a text takes on a terminal."""
    return len(_SGR.sub("", text))


def left(text: str, width: int) -> str:
    """Padded on the right."""
    return text + " " * (width - columns_of(text))


def right(text: str, width: int) -> str:
    """Padded on the left."""
    return " " * (width - columns_of(text)) + text


class Column(NamedTuple):
    """`wraps`: its cells may be broken over lines. `drop`: which column goes first where the
    terminal is narrow (higher first); 0 never goes."""

    title: str = ""
    right: bool = False
    wraps: bool = False
    drop: int = 0


def table(
    columns: Sequence[Column],
    rows: Sequence[Sequence[str]],
    width: int,
    indent: str = "",
    sizes: Mapping[int, int] | None = None,
) -> list[str]:
    """Aligned rows, with a heading where any column has a title. Columns that are empty in every
    row are left out. `sizes` lays several tables out alike: the `table_widths` of all their rows.
    """
    sizes = table_widths(columns, rows, width - len(indent)) if sizes is None else sizes
    kept, widths = list(sizes), list(sizes.values())
    lines: list[str] = []
    used = [columns[n] for n in kept]
    if any(column.title for column in used):
        lines += _row(used, [column.title for column in used], widths, indent)
    for row in rows:
        lines += _row(used, [row[n] for n in kept], widths, indent)
    return lines


def table_widths(
    columns: Sequence[Column], rows: Sequence[Sequence[str]], room: int
) -> dict[int, int]:
    """The columns that `room` holds, as places in `columns`, and how wide each is."""
    kept = [n for n in range(len(columns)) if any(row[n] for row in rows)]
    while True:
        widths = _widths(columns, rows, kept, room)
        droppable = [n for n in kept if columns[n].drop]
        if sum(widths) + len(_GAP) * (len(kept) - 1) <= room or not droppable:
            return dict(zip(kept, widths, strict=True))
        kept.remove(max(droppable, key=lambda n: columns[n].drop))


def _widths(
    columns: Sequence[Column], rows: Sequence[Sequence[str]], kept: Sequence[int], room: int
) -> list[int]:
    widths = [
        max([columns_of(columns[n].title), *(columns_of(row[n]) for row in rows)]) for n in kept
    ]
    over = sum(widths) + len(_GAP) * (len(kept) - 1) - room
    # The widest of the columns that wrap gives way first.
    while over > 0:
        loose = [i for i, n in enumerate(kept) if columns[n].wraps and widths[i] > _SQUEEZED]
        if not loose:
            break
        widest = max(loose, key=lambda i: widths[i])
        widths[widest] -= 1
        over -= 1
    return widths


def _row(
    columns: Sequence[Column], cells: Sequence[str], widths: Sequence[int], indent: str
) -> list[str]:
    broken = [
        wrap(cell, size) if column.wraps else [cell]
        for column, cell, size in zip(columns, cells, widths, strict=True)
    ]
    lines: list[str] = []
    for n in range(max(map(len, broken), default=0)):
        parts = [
            (right if column.right else left)(cell[n] if n < len(cell) else "", size)
            for column, cell, size in zip(columns, broken, widths, strict=True)
        ]
        lines.append((indent + _GAP.join(parts)).rstrip())
    return lines


def wrap(text: str, width: int) -> list[str]:
    """A paragraph in lines of at most `width`; never no line."""
    if columns_of(text) <= width:
        return [text]
    return (
        textwrap.wrap(text, width, break_on_hyphens=False) or [""]
        if not _SGR.search(text)
        else [text]
    )


def flow(parts: Iterable[str], width: int, hang: int, gap: str = "   ") -> list[str]:
    """Parts side by side, as many to a line as fit; lines after the first hang by `hang`.

    The first line is expected to start at column `hang` too: the caller puts a label there.
    """
    room = max(20, width - hang)
    lines: list[str] = []
    current = ""
    for part in parts:
        if not part:
            continue
        if current and columns_of(current) + columns_of(gap) + columns_of(part) <= room:
            current += gap + part
            continue
        if current:
            lines.append(current.rstrip())
        *whole, current = wrap(part, room)
        lines += whole
    if current:
        lines.append(current)
    return [lines[0], *(" " * hang + line for line in lines[1:])] if lines else []


def labelled(label: str, parts: Iterable[str], width: int, hang: int) -> list[str]:
    """A label and what follows it, hanging by `hang`; nothing when there is nothing to say."""
    lines = flow(parts, width, hang)
    return [left(label, hang) + lines[0], *lines[1:]] if lines else []


def bar(value: float, full: float, cells: int) -> str:
    """A bar of at most `cells` blocks; what is more than nothing shows at least one."""
    if value <= 0 or full <= 0:
        return ""
    return "█" * max(1, round(cells * value / full))


def listed(words: Sequence[str], last: str = "and") -> str:
    """`a, b and c`."""
    if len(words) < 2:
        return "".join(words)
    return f"{', '.join(words[:-1])} {last} {words[-1]}"


def plural(count: int, one: str, many: str = "") -> str:
    """`1 type`, `2 types`, `1,234 types`."""
    return f"{count:,} {one if count == 1 else many or one + 's'}"


class Letters:
    """Long names that repeat, as letters with a legend."""

    def __init__(self, names: Iterable[str]) -> None:
        self._letters = {name: _letter(n) for n, name in enumerate(sorted(set(names)))}

    def of(self, names: Iterable[str]) -> str:
        """`ac`: the letters of these names, each once."""
        return "".join(sorted({self._letters[name] for name in names}))

    @property
    def legend(self) -> list[str]:
        """`a karpenter-aws`, one part each."""
        return [f"{letter} {name}" for name, letter in self._letters.items()]


def _letter(place: int) -> str:
    return chr(ord("a") + place) if place < 26 else f"({place + 1})"
