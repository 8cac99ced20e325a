"""A Google account that answers what it was told to, each request and answer checked."""

from __future__ import annotations

import json
import threading
from collections.abc import Mapping
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from tests.account import discovery

from gputier.account.answers import CannotAsk
from gputier.account.session_gcp import APIS, GcpSession, Reply

PROJECT = "acme-ml"


class Refusal(NamedTuple):
    """An error of Google's: HTTP status, its name, its words, a reason and the service meant."""

    http: int
    status: str
    message: str = "no"
    reason: str = ""
    service: str = ""

    def document(self) -> dict[str, Any]:
        info = {"@type": "type.googleapis.com/google.rpc.ErrorInfo", "reason": self.reason}
        if self.service:
            info["metadata"] = {"service": self.service}  # type: ignore[assignment]
        details = [info] if self.reason else []
        error = {"code": self.http, "status": self.status, "message": self.message}
        return {"error": {**error, "details": details} if details else error}


FORBIDDEN = Refusal(403, "PERMISSION_DENIED", "Required permission is missing")
GONE = Refusal(404, "NOT_FOUND", "The resource was not found")


class Nobody:
    """Credentials that need no token."""

    def before_request(self, _request: Any, _method: str, _url: str, headers: Any) -> None:
        headers["Authorization"] = "Bearer a-token"


class Google:
    """What each path answers, by API and path as `GcpSession` is asked; else 404.

    `asked` are the methods that were called, by Google's names."""

    def __init__(self) -> None:
        self.answers: dict[str, Any] = {}
        self.asked: list[str] = []
        self.sent: list[tuple[str, Mapping[str, str], Any]] = []
        self._lock = threading.Lock()

    def has(self, api: str, path: str, answer: Any) -> None:
        """A dict, a `Refusal`, or `CannotAsk` for what never comes back."""
        self.answers[APIS[api] + path.replace("{project}", PROJECT)] = answer

    def session(self) -> GcpSession:
        return GcpSession(PROJECT, Nobody(), self.carry)

    def carry(
        self,
        url: str,
        method: str = "GET",
        body: bytes | None = None,
        headers: Mapping[str, str] | None = None,
        **_more: Any,
    ) -> Reply:
        plain = url.partition("?")[0]
        answer = self.answers.get(url, self.answers.get(plain, GONE))
        if callable(answer):
            answer = answer(dict(_query(url)))
        good = isinstance(answer, dict)
        with self._lock:
            self.asked.append(discovery.check(method, url, body, answer if good else {}))
            self.sent.append((url, headers or {}, None if body is None else json.loads(body)))
        if isinstance(answer, CannotAsk):
            raise answer
        if isinstance(answer, Refusal):
            return Reply(answer.http, {}, json.dumps(answer.document()).encode())
        return Reply(200, {}, json.dumps(answer).encode())


def _query(url: str) -> list[tuple[str, str]]:
    pairs = [pair.partition("=") for pair in urlsplit(url).query.split("&") if pair]
    return [(name, value) for name, _, value in pairs]
