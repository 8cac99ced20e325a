"""Two wishes to the Linux kernel about processes that outlive the one that started them.

Apart from `processes`, for ctypes is slow to load and most verbs need neither.
"""

from __future__ import annotations

import contextlib
import ctypes
import signal

PR_SET_PDEATHSIG = 1
PR_SET_CHILD_SUBREAPER = 36


def adopt() -> None:
    """Become the parent of what our commands leave behind, instead of process 1."""
    _prctl(PR_SET_CHILD_SUBREAPER, 1)


def die_with_parent() -> None:
    """Get SIGTERM when the process that started us ends, however it ends."""
    _prctl(PR_SET_PDEATHSIG, int(signal.SIGTERM))


def _prctl(option: int, value: int) -> None:
    # Not on Linux, or not allowed: what is left behind is then systemd's, which kills the unit.
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None, use_errno=True).prctl(option, value, 0, 0, 0)
