"""Calls of a platform's REST API: retried where that is safe, never past a deadline."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple
from urllib.parse import urlsplit

import urllib3

from gputier.errors import ExitCode, GputierError, Problem

#: Seconds for everything, and for one answer.
DEADLINE, EACH = 60.0, 15.0
#: Answers that another try may cure.
BUSY = frozenset((429, 500, 502, 503, 504))
#: Seconds before another try; the last is for all that follow.
PAUSES = (0.5, 1.0, 2.0, 4.0, 8.0)


class CannotPost(GputierError):
    """The review could not be posted. `expected`: as with a fork's token, which may not comment;
    nothing is wrong with the review or its settings then."""

    exit_code = ExitCode.USAGE

    def __init__(self, message: str, hint: str, *, expected: bool = False) -> None:
        super().__init__(Problem("--post", message, hint))
        self.expected = expected


class Lost(Exception):
    """Nobody knows whether a request was acted on."""


class Answer(NamedTuple):
    """What came back; header names are in lower case."""

    status: int
    headers: Mapping[str, str]
    data: Any


class Comment(NamedTuple):
    """A comment that is there. `url` is for people; `node` is GitHub's other name of it."""

    id: str
    body: str
    url: str
    node: str = ""


class Clock(NamedTuple):
    """How time passes: seconds that only grow, wall-clock seconds, and a pause."""

    monotonic: Callable[[], float] = time.monotonic
    now: Callable[[], float] = time.time
    sleep: Callable[[float], None] = time.sleep


class Calls:
    """One API of one host. Tokens are in headers alone; no message ever has them."""

    def __init__(
        self, base: str, headers: Mapping[str, str], name: str, clock: Clock | None = None
    ) -> None:
        self.base, self.name, self._headers = base.rstrip("/"), name, dict(headers)
        self._clock = clock or Clock()
        self._end = self._clock.monotonic() + DEADLINE
        parts = urlsplit(self.base)
        local = parts.hostname in ("localhost", "127.0.0.1", "::1")
        if parts.scheme != "https" and not (local and parts.scheme == "http"):
            raise CannotPost(f"{name} is asked at {base!r}, and not by https", "mend the address")
        # No redirect is followed: a token belongs to one host.
        self._pool = urllib3.PoolManager(retries=False, timeout=EACH)

    def ask(self, method: str, path: str, body: Mapping[str, Any] | None = None) -> Answer:
        """The answer, whatever its status but those that another try may cure. Raises `CannotPost`
        when there is none in time, and `Lost` when a POST may have been acted on."""
        tries = 0
        while True:
            found, trouble = self._once(method, path, body)
            wait = self._wait(found, tries) if found else PAUSES[min(tries, len(PAUSES) - 1)]
            if found is not None and wait is None:
                return found
            if method == "POST" and (found is None or found.status in (500, 502, 504)):
                raise Lost(trouble)
            tries += 1
            if self._clock.monotonic() + (wait or 0.0) >= self._end:
                raise CannotPost(f"{self.name} does not answer: {trouble}", "run it again later")
            self._clock.sleep(wait or 0.0)

    def _once(
        self, method: str, path: str, body: Mapping[str, Any] | None
    ) -> tuple[Answer | None, str]:
        data = None if body is None else json.dumps(body).encode()
        headers = {**self._headers, "Content-Type": "application/json"}
        try:
            found = self._pool.request(
                method, f"{self.base}{path}", body=data, headers=headers, redirect=False
            )
        except urllib3.exceptions.HTTPError as error:
            return None, type(error).__name__
        named = {name.lower(): value for name, value in found.headers.items()}
        return Answer(found.status, named, _json(found.data)), f"status {found.status}"

    def _wait(self, found: Answer, tries: int) -> float | None:
        """Seconds before another try; None where the answer is one."""
        limited = found.status == 403 and (
            "retry-after" in found.headers or found.headers.get("x-ratelimit-remaining") == "0"
        )
        if found.status not in BUSY and not limited:
            return None
        told = found.headers.get("retry-after", "")
        if told.isdigit():
            wait = float(told)
        elif limited and found.headers.get("x-ratelimit-reset", "").isdigit():
            wait = float(found.headers["x-ratelimit-reset"]) - self._clock.now()
        else:
            return PAUSES[min(tries, len(PAUSES) - 1)]
        if self._clock.monotonic() + wait >= self._end:
            raise CannotPost(
                f"{self.name} allows no more requests for {max(0.0, wait):.0f} s",
                "run it again then, or with a token of its own",
            )
        return max(wait, 0.0)


def _json(data: bytes) -> Any:
    try:
        return json.loads(data)
    except ValueError:
        return None
