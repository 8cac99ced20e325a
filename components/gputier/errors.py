"""What can be wrong and how it is said.

A check yields or returns `Problem`s: it never prints and never raises early. The edge (CLI,
program) raises one exception that carries all of them. `render` is the only place that knows
carets and colour.

    GputierError           exit 1 (our bug) unless a subclass says otherwise
    ├── InvalidInput       2  a mistake in a file or in what was typed
    ├── CannotPlace        3  no machine fits
    └── StaleLock          4  lock stale, missing or edited by hand
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import IntEnum


class ExitCode(IntEnum):
    """What the command line promises to scripts (docs/cli.md)."""

    OK = 0
    BUG = 1
    USAGE = 2
    CANNOT_PLACE = 3
    STALE_LOCK = 4
    OVER_THRESHOLD = 5
    BAD_PREVIEW = 6


@dataclass(frozen=True, slots=True)
class Position:
    """A place in a file. `line` and `column` count from 1; `length` is the caret's width."""

    file: str
    line: int
    column: int
    source_line: str
    length: int = 1


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing that is wrong: where (`path`, `position`), what (`message`), the way out (`hint`).

    `path` is dotted (`workloads.chat.gpu.count`) and empty when the whole input is meant.
    """

    path: str
    message: str
    hint: str = ""
    position: Position | None = None


class GputierError(Exception):
    """Base of everything gputier raises on purpose. `problems` is never empty."""

    exit_code: ExitCode = ExitCode.BUG

    def __init__(self, problems: Problem | Iterable[Problem]) -> None:
        self.problems: tuple[Problem, ...] = (
            (problems,) if isinstance(problems, Problem) else tuple(problems)
        )
        super().__init__(render(self.problems))


class InvalidInput(GputierError):
    """A mistake in a file or in an argument: the person can mend it."""

    exit_code = ExitCode.USAGE


class CannotPlace(GputierError):
    """Everything was understood, and no machine fits."""

    exit_code = ExitCode.CANNOT_PLACE


class StaleLock(GputierError):
    """The lock is missing, stale, edited by hand or holds a merge conflict."""

    exit_code = ExitCode.STALE_LOCK


def did_you_mean(word: str, options: Iterable[str], *, cutoff: float = 0.6) -> str | None:
    """The option closest to `word`, or None. Deterministic: ties go to the first in sort order."""
    by_folded: dict[str, str] = {}
    for option in sorted(options):
        by_folded.setdefault(option.casefold(), option)
    found = difflib.get_close_matches(word.casefold(), list(by_folded), n=1, cutoff=cutoff)
    return by_folded[found[0]] if found else None


def spelling_hint(word: str, options: Iterable[str], *, otherwise: str = "") -> str:
    """`did you mean …?`, or `otherwise` when nothing is close."""
    close = did_you_mean(word, options)
    return f"did you mean `{close}`?" if close else otherwise


def render(problems: Sequence[Problem], *, color: bool = False) -> str:
    """All problems as people read them: grouped by file, with the source line and a caret."""
    bold, red, cyan, off = ("\x1b[1m", "\x1b[31m", "\x1b[36m", "\x1b[0m") if color else ("",) * 4
    files = sorted({p.position.file for p in problems if p.position})
    count = f"{len(problems)} problem{'s' if len(problems) != 1 else ''}"
    lines: list[str] = []
    placed = [p for p in problems if p.position]
    loose = [p for p in problems if not p.position]
    for file in files:
        here = [p for p in placed if p.position and p.position.file == file]
        here.sort(key=lambda p: (p.position.line, p.position.column) if p.position else (0, 0))
        n = f"{len(here)} problem{'s' if len(here) != 1 else ''}"
        lines.append(f"{red}error:{off} {bold}{file}{off}: {n}")
        for problem in here:
            lines.append("")
            lines += _placed_lines(problem, cyan, off)
    if loose and files:
        lines.append("")
    if len(loose) > 1:
        lines.append(f"{red}error:{off} {count}" if not files else f"{red}error:{off} also")
    for problem in loose:
        where = f"{problem.path}: " if problem.path else ""
        lead = f"{red}error:{off} " if len(loose) == 1 else "  "
        first, *rest = problem.message.split("\n")
        lines.append(f"{lead}{where}{first}")
        lines += [f"  {line}" if line else "" for line in rest]
        if problem.hint:
            lines += _hint_lines(problem.hint, "" if len(loose) == 1 else "    ", cyan, off)
    return "\n".join(lines)


def _placed_lines(problem: Problem, cyan: str, off: str) -> list[str]:
    position = problem.position
    if position is None:
        return []
    lead = f"  {position.line}:{position.column}"
    # A tab would shift the caret; control characters would garble the terminal.
    source = "".join(c if c.isprintable() else " " for c in position.source_line.rstrip())
    column = position.column
    if len(source) > 140:  # keep the caret in view on machine-written one-line files
        start = max(0, column - 60)
        source, column = source[start : start + 120], column - start
    indent = len(source) - len(source.lstrip())
    pad = " " * (max(len(lead), 7) + 2)
    caret = " " * max(0, column - 1 - indent) + "^" * max(1, position.length)
    lines = [f"{lead:<{len(pad)}}{source.lstrip()}", f"{pad}{caret} {problem.message}"]
    if problem.hint:
        lines += _hint_lines(problem.hint, pad, cyan, off)
    return lines


def _hint_lines(hint: str, pad: str, cyan: str, off: str) -> list[str]:
    first, *rest = hint.split("\n")
    return [f"{pad}{cyan}hint:{off} {first}", *[f"{pad}      {line}" for line in rest]]
