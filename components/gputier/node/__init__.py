"""What runs on the machine: a node proves that it is what was paid for.

Python 3.8 standard library only, and nothing of the rest of gputier: the whole folder becomes one
zipapp (`build.py`) that an image of any age can start. Everything a check learns of the machine
comes through `host.Host` (commands, files, clock): a recorded machine is judged by the same code.
"""

from __future__ import annotations

__version__ = "0.1.0"


class WrongInput(Exception):
    """A file that was named cannot be used; `lines` says where and why."""

    def __init__(self, *lines: str) -> None:
        super().__init__("; ".join(lines))
        self.lines = lines
