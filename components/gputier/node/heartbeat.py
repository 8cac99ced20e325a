"""Signs of life to the cloud while long stages run, from a thread of their own."""

from __future__ import annotations

import threading
from collections.abc import Callable


class Heartbeat:
    """Calls `beat` at once and then every `seconds`, until `stop`; it gives what was wrong.

    A beat that fails is no reason to end the boot: the cloud's own timeout is the last word. How
    often it failed, and the last words, are told in `trouble`.
    """

    def __init__(self, beat: Callable[[], str | None], seconds: float) -> None:
        self._beat = beat
        self._seconds = seconds
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, name="heartbeat", daemon=True)
        self.sent = 0
        self.failed = 0
        self.last = ""

    def start(self) -> None:
        self._thread.start()

    def stop(self, wait: float = 5.0) -> None:
        """No beat is begun from now on; one that is under way is given a moment to end."""
        self._ended.set()
        if self._thread.is_alive():
            self._thread.join(wait)

    @property
    def trouble(self) -> str:
        if not self.failed:
            return ""
        return f"{self.failed} of {self.sent + self.failed} signs of life failed: {self.last}"

    def _run(self) -> None:
        while True:
            try:
                trouble = self._beat()
            except Exception as error:
                trouble = f"{type(error).__name__}: {error}"
            self.sent += trouble is None
            self.failed += trouble is not None
            self.last = trouble or self.last
            if self._ended.wait(self._seconds):
                return
