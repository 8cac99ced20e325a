"""What `gputier status` does."""

from __future__ import annotations

import gc
import os
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from gputier.account.stack import read_account
from gputier.account.status import Stack
from gputier.account.status_ask import Asked, Clouds, Sessions, ask_stack
from gputier.account.status_document import document
from gputier.cli import console
from gputier.cli.console import Paint
from gputier.cli.inputs import json_text
from gputier.cli.status import StatusArguments
from gputier.cli.status_text import Screen
from gputier.errors import ExitCode, InvalidInput, Problem
from gputier.lock import lock_path, read_lock
from gputier.workload import Declaration, resolve
from gputier.workload.project import require

#: Clears a terminal and what it can scroll back to stays (ECMA-48, ED and CUP).
CLEAR = "\x1b[H\x1b[2J"
SESSIONS = Sessions()


def run(typed: StatusArguments) -> int:
    """Ask and print; the exit code."""
    if typed.watch is not None:
        return _watched(typed, typed.watch)
    found = [_ask(asked, {}) for asked in _asked(typed)]
    _show(found, typed)
    return _code(found)


def now() -> float:
    return time.time()


def wait(seconds: float) -> None:
    time.sleep(seconds)


def _watched(typed: StatusArguments, every: float) -> int:
    """Again and again, until Ctrl-C or until nobody reads any more."""
    gc.enable()  # a command of half a second goes without; this one may run for days
    clears = console.is_terminal(sys.stdout) and os.environ.get("TERM", "dumb") != "dumb"
    kept: dict[str, Clouds] = {}
    begins, lead = _is_read(), CLEAR if clears else ""
    try:
        while True:
            _show([_ask(one, kept) for one in _asked(typed)], typed, lead)
            if begins and not _is_read():
                return ExitCode.OK
            lead = CLEAR if clears else "\n"
            wait(every)
    except KeyboardInterrupt:
        return ExitCode.OK


def _asked(typed: StatusArguments) -> list[Asked]:
    """Read anew each time: a lock that was just written counts at the next look."""
    if typed.target == "-":
        raise InvalidInput(Problem("", "standard input has no lock beside it", "name a stack"))
    return [_files(declaration) for declaration in resolve(typed.target, Path.cwd())]


def _files(declaration: Declaration) -> Asked:
    project = require(Path(declaration.folder)).name
    lock = read_lock(lock_path(declaration), declaration.name)
    return Asked(declaration, lock, project, read_account(declaration))


def _ask(asked: Asked, kept: dict[str, Clouds]) -> Stack:
    name = asked.declaration.name
    clouds = kept.setdefault(name, Clouds(asked.account, SESSIONS))
    if console.is_terminal(sys.stderr) and console.is_terminal(sys.stdout) and not clouds.known:
        console.note(f"asking for the fleets of {name}")
    return ask_stack(asked, clouds, now())


def _show(found: Sequence[Stack], typed: StatusArguments, lead: str = "") -> None:
    """All stacks at once: a screen that is cleared first does not flicker."""
    if typed.as_json:
        console.out("".join(json_text(document(stack)) for stack in found))
        return
    paint, width = Paint(sys.stdout), console.width()
    console.out(lead + "\n\n".join(Screen(stack, width, paint).text() for stack in found))


def _code(found: Sequence[Stack]) -> int:
    """A status is a report: 0, however the fleets are. 2 where nothing could be asked."""
    silent = bool(found) and all(not stack.answered for stack in found)
    return ExitCode.USAGE if silent else ExitCode.OK


def _is_read() -> bool:
    """Whether somebody still reads: `console` points a pipe whose reader left at nothing."""
    try:
        own, nothing = os.fstat(sys.stdout.fileno()), os.stat(os.devnull)  # noqa: PTH116 (a pair)
    except (OSError, ValueError, AttributeError):
        return True
    return not os.path.samestat(own, nothing)
