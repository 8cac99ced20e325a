"""Where text goes: data to stdout, talk to stderr; on any terminal, and on none.

Nothing printed here can fail for want of a character or of a reader: what an encoding lacks is
written with ASCII look-alikes, and a reader that has left (`| head -1`) is no error. The exit code
then still says what the command found.
"""

from __future__ import annotations

import os
import shutil
import sys
from typing import TextIO

from gputier.cli.ascii import plain

#: Columns where nobody's terminal says how many: in a file, a pipe, a log.
WITHOUT_TERMINAL = 120
NARROWEST, WIDEST = 60, 160


def out(text: str) -> None:
    """Data: what the command was asked for. One write, so that a reader sees whole lines."""
    _write(sys.stdout, text)


def err(text: str) -> None:
    """Talk: errors, notes, progress."""
    _write(sys.stderr, text)


def note(text: str) -> None:
    """Something a person should know that is not what they asked for."""
    err(f"{Paint(sys.stderr).dim('note:')} {text}")


def width() -> int:
    """Columns to lay a screen out in: `COLUMNS`, else the terminal's, else 120."""
    columns = shutil.get_terminal_size((0, 0)).columns if _sized() else WITHOUT_TERMINAL
    return max(NARROWEST, min(WIDEST, columns or WITHOUT_TERMINAL))


def _sized() -> bool:
    return os.environ.get("COLUMNS", "").isdigit() or is_terminal(sys.stdout)


def is_terminal(stream: TextIO | None) -> bool:
    """Whether a person is reading. A stream that is closed or was never there has no reader."""
    try:
        return stream is not None and stream.isatty()
    except ValueError:
        return False


class Paint:
    """Colour where a person reads and did not refuse it; else the text as it is.

    Colour never carries meaning alone.
    """

    def __init__(self, stream: TextIO | None) -> None:
        self.on = (
            is_terminal(stream)
            and not os.environ.get("NO_COLOR")
            and os.environ.get("TERM", "") != "dumb"
        )

    def bold(self, text: str) -> str:
        return self._sgr("1", text)

    def dim(self, text: str) -> str:
        return self._sgr("2", text)

    def red(self, text: str) -> str:
        return self._sgr("31", text)

    def green(self, text: str) -> str:
        return self._sgr("32", text)

    def yellow(self, text: str) -> str:
        return self._sgr("33", text)

    def cyan(self, text: str) -> str:
        return self._sgr("36", text)

    def _sgr(self, code: str, text: str) -> str:
        return f"\x1b[{code}m{text}\x1b[0m" if self.on and text else text


def _write(stream: TextIO | None, text: str) -> None:
    if stream is None:  # started without one (pythonw, some daemons)
        return
    line = text if text.endswith("\n") else f"{text}\n"
    try:
        stream.write(plain(line, getattr(stream, "encoding", None) or "utf-8"))
        stream.flush()
    except OSError as error:
        _point_at_nothing(stream)
        if not isinstance(error, BrokenPipeError):
            raise


def _point_at_nothing(stream: TextIO) -> None:
    # Python flushes the streams once more when it exits, and would complain there.
    nothing = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nothing, stream.fileno())
    os.close(nothing)
