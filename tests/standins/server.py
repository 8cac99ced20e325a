"""What all stand-ins share: a threaded server, what it was asked, and faults on order."""

from __future__ import annotations

import json
import re
import threading
import time
import urllib.parse
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self, cast

CONTROL = "/_standin/"


@dataclass
class Fault:
    """What goes wrong for requests that match, the next `times` of them (None: always).

    `status` answers that instead of acting; `drop` closes without acting, `lost` closes after
    acting; `delay` waits first, and is the only fault that still acts and answers.
    """

    path: str = ""
    method: str = ""
    body: str = ""
    status: int | None = None
    drop: bool = False
    lost: bool = False
    delay: float = 0.0
    times: int | None = None
    text: str = ""

    def meets(self, asked: Asked) -> bool:
        target = f"{asked.path}?{asked.query}" if asked.query else asked.path
        return (
            self.times != 0
            and self.method in ("", asked.method)
            and re.search(self.path, target) is not None
            and self.body in asked.body.decode("utf-8", "replace")
        )


@dataclass
class Asked:
    """One request. Header names are in lower case."""

    method: str
    path: str
    query: str
    headers: Mapping[str, str]
    body: bytes
    status: int = 0
    at: float = 0.0

    @property
    def parameters(self) -> dict[str, str]:
        return dict(urllib.parse.parse_qsl(self.query, keep_blank_values=True))

    @property
    def form(self) -> dict[str, str]:
        return dict(urllib.parse.parse_qsl(self.body.decode(), keep_blank_values=True))

    def json(self) -> dict[str, Any]:
        return cast("dict[str, Any]", json.loads(self.body or b"{}"))


@dataclass
class Reply:
    status: int = 200
    body: bytes = b""
    headers: dict[str, str] = field(default_factory=dict[str, str])

    @classmethod
    def json(cls, data: Any, status: int = 200) -> Reply:
        return cls(status, json.dumps(data).encode(), {"Content-Type": "application/json"})


class StandIn:
    """A service. Subclasses answer; `seen` is every request that reached it, with its status."""

    def __init__(self, faults: Iterable[Fault] = ()) -> None:
        self.faults = list(faults)
        self.seen: list[Asked] = []
        # Seconds that this service's clock is ahead.
        self.ahead = 0.0
        self.lock = threading.RLock()
        self._server: ThreadingHTTPServer | None = None
        self._listening = threading.Event()

    def reply(self, asked: Asked) -> Reply:
        raise NotImplementedError

    # --- running --------------------------------------------------------------------------------

    def start(self, bind: str = "127.0.0.1", port: int = 0, late: float = 0.0) -> Self:
        """Bind here and now (in the caller's network namespace) and answer from a thread.

        `late`: the port is taken and nothing listens yet, as a service that comes up slowly.
        """
        ThreadingHTTPServer.daemon_threads = True
        ThreadingHTTPServer.request_queue_size = 256
        server = ThreadingHTTPServer((bind, port), _handler(self), bind_and_activate=False)
        server.server_bind()
        self._server = server

        def serve() -> None:
            time.sleep(late)
            server.server_activate()
            self._listening.set()
            server.serve_forever(0.02)

        threading.Thread(target=serve, daemon=True).start()
        if not late:
            self._listening.wait()
        return self

    @property
    def url(self) -> str:
        assert self._server
        host, port = self._server.server_address[:2]
        return f"http://{host!s}:{port}"

    def stop(self) -> None:
        if self._server:
            self._listening.wait()
            self._server.shutdown()
            self._server.server_close()
            self._server = None

    # --- what happened --------------------------------------------------------------------------

    def requests(self, path: str = "", method: str = "") -> list[Asked]:
        with self.lock:
            return [a for a in self.seen if re.search(path, a.path) and method in ("", a.method)]

    def now(self) -> float:
        return time.time() + self.ahead

    # --- for a driver in another process --------------------------------------------------------

    def control(self, asked: Asked) -> Reply:
        """`GET /_standin/seen`, `POST /_standin/fault`, `POST /_standin/set` with JSON."""
        name = asked.path[len(CONTROL) :]
        if name == "seen":
            rows = [
                {"method": a.method, "path": a.path, "query": a.query, "status": a.status,
                 "body": a.body.decode("utf-8", "replace"), "at": a.at}
                for a in self.seen
            ]  # fmt: skip
            return Reply.json(rows)
        if name == "fault":
            self.faults.append(Fault(**asked.json()))
            return Reply.json({})
        if name == "set":
            self.change(asked.json())
            return Reply.json({})
        return Reply(404)

    def change(self, what: Mapping[str, Any]) -> None:
        """Set what a subclass lets a driver set."""
        raise NotImplementedError


class _Dropped(Exception):
    pass


def _answer(service: StandIn, asked: Asked) -> Reply:
    if asked.path.startswith(CONTROL):
        return service.control(asked)
    asked.at = time.time()
    with service.lock:
        service.seen.append(asked)
        fault = next((f for f in service.faults if f.meets(asked)), None)
        if fault and fault.times is not None:
            fault.times -= 1
    if fault is None:
        reply = service.reply(asked)
    else:
        time.sleep(fault.delay)
        if fault.drop:
            raise _Dropped
        if fault.status is not None:
            reply = Reply(fault.status, fault.text.encode())
        else:
            reply = service.reply(asked)
        if fault.lost:
            asked.status = reply.status
            raise _Dropped
    asked.status = reply.status
    return reply


def _handler(service: StandIn) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        server_version = "stand-in"
        sys_version = ""
        timeout = 10.0

        def _do(self) -> None:
            length = int(self.headers.get("Content-Length") or 0)
            address = urllib.parse.urlsplit(self.path)
            found = {name.lower(): value for name, value in self.headers.items()}
            asked = Asked(self.command, address.path, address.query, found, self.rfile.read(length))
            try:
                reply = _answer(service, asked)
            except _Dropped:
                self.close_connection = True
                self.connection.close()
                return
            self.send_response(reply.status)
            for name, value in reply.headers.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(reply.body)))
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(reply.body)

        do_GET = do_PUT = do_POST = do_PATCH = do_DELETE = do_HEAD = _do  # noqa: N815

        def date_time_string(self, timestamp: float | None = None) -> str:
            return super().date_time_string(service.now() if timestamp is None else timestamp)

        def log_message(self, format: str, *args: object) -> None:
            """Silent: what was asked is in `seen`."""

        def handle(self) -> None:
            try:
                super().handle()
            except (ConnectionError, ValueError, OSError):
                self.close_connection = True

    return Handler
