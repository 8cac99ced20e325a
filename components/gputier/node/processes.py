"""Ending a command with everything that it started, groups and sessions of its own included.

Every command of a stage has a session of its own, so killing the stage's group would leave an
apt-get behind that holds the lock. Linux only, by /proc; elsewhere nothing is found.
"""

from __future__ import annotations

import contextlib
import os
import signal
from pathlib import Path

PROC = Path("/proc")
ROUNDS = 5


def parents() -> dict[int, int]:
    """Parent by process, of all that run."""
    found: dict[int, int] = {}
    try:
        names = [entry.name for entry in PROC.iterdir() if entry.name.isdigit()]
    except OSError:
        return {}
    for name in names:
        try:
            text = (PROC / name / "stat").read_text(encoding="utf-8", errors="replace")
            # The command's name stands in parentheses and may hold any character.
            found[int(name)] = int(text.rpartition(")")[2].split()[1])
        except (OSError, ValueError, IndexError):
            continue  # it ended meanwhile
    return found


def below(pid: int) -> list[int]:
    """Everything that descends from a process, children first."""
    listed = parents()
    found = [child for child, parent in listed.items() if parent == pid]
    for at in found:
        found += [child for child, parent in listed.items() if parent == at and child not in found]
    return found


def end(pid: int) -> None:
    """Kill a process and all below it. First all are stopped: none starts another meanwhile."""
    stopped: set[int] = set()
    for _ in range(ROUNDS):
        new = {pid, *below(pid)} - stopped
        if not new:
            break
        for one in new:
            _send(one, signal.SIGSTOP)
        stopped |= new
    for one in stopped:
        _send(one, signal.SIGKILL)


def end_below() -> None:
    """Kill all that descends from this process, not this process."""
    for child in below(os.getpid()):
        end(child)


def sweep() -> int:
    """Kill what ended stages left to us, and reap it; how many there were.

    Only to be called while no command of our own runs.
    """
    left = below(os.getpid())
    for pid in left:
        _send(pid, signal.SIGKILL)
    while True:
        try:
            pid, _ = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return len(left)
        if pid == 0:
            return len(left)


def _send(pid: int, number: signal.Signals) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.kill(pid, number)
