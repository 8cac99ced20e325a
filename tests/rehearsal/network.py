"""A network of its own for each rehearsed machine: a thread that lives in a new network namespace.

Servers that are made in it listen there, children that are started in it live there, and when the
process ends, however it ends, the namespace is gone: nothing is left to clean up. Nothing in it
leads out, so a rehearsed machine can never reach the real metadata service of the machine that
rehearses, its DNS, or a package server.
"""

from __future__ import annotations

import ctypes
import queue
import subprocess
import threading
from collections.abc import Callable
from typing import Any, TypeVar

from tests.rehearsal.needs import PATH

T = TypeVar("T")
CLONE_NEWNET = 0x40000000
#: The link-local address of every cloud's metadata service.
METADATA = "169.254.169.254"
#: Where the stand-ins of the other services listen. Not loopback: a virtual machine of QEMU's user
#: network reaches it by the same address as a container that shares the namespace.
SERVICES = "169.254.169.250"


class Network:
    """A network namespace with loopback and the two addresses of the stand-ins."""

    def __init__(self) -> None:
        self._jobs: queue.Queue[Callable[[], None] | None] = queue.Queue()
        self._started = threading.Event()
        self._problem: BaseException | None = None
        self._thread = threading.Thread(target=self._live, daemon=True, name="network")
        self._thread.start()
        self._started.wait()
        if self._problem:
            raise self._problem

    def call(self, job: Callable[[], T]) -> T:
        """Run `job` inside; its result, or what it raised."""
        done = threading.Event()
        outcome: list[Any] = []

        def work() -> None:
            try:
                outcome.append((True, job()))
            except BaseException as error:
                outcome.append((False, error))
            done.set()

        self._jobs.put(work)
        done.wait()
        fine, value = outcome[0]
        if not fine:
            raise value
        return value

    def close(self) -> None:
        self._jobs.put(None)
        self._thread.join()

    def _live(self) -> None:
        try:
            self._enter()
        except BaseException as error:
            self._problem = error
            self._started.set()
            return
        self._started.set()
        while (job := self._jobs.get()) is not None:
            job()

    def _enter(self) -> None:
        libc = ctypes.CDLL(None, use_errno=True)
        if libc.unshare(CLONE_NEWNET):
            raise OSError(ctypes.get_errno(), "a new network namespace was refused")
        for command in (
            ["ip", "link", "set", "lo", "up"],
            ["ip", "address", "add", f"{METADATA}/32", "dev", "lo"],
            ["ip", "address", "add", f"{SERVICES}/32", "dev", "lo"],
        ):
            subprocess.run(command, check=True, env={"PATH": PATH}, capture_output=True)
