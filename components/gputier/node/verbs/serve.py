"""`serve`: the health endpoint of a load balancer or an instance group.

200 while the gate is open, 503 otherwise, on every path; the body says why. It reads the gate's
file at each request and decides nothing itself. `--application-health` answers as Azure's extension
wants to hear it.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from gputier.node import cli, gate, health
from gputier.node.host import Host
from gputier.node.verbs import common

PORT = 8080
# A client that opens a connection and says nothing must not hold a thread for long.
CLIENT_SECONDS = 5.0


def handler(
    host: Host, answer: Callable[[gate.Gate], tuple[int, str]] = health.plain
) -> type[BaseHTTPRequestHandler]:
    """A request handler over one host."""

    class Health(BaseHTTPRequestHandler):
        timeout = CLIENT_SECONDS
        server_version = "gputier-node"
        sys_version = ""

        def do_GET(self) -> None:
            self._answer(body=True)

        def do_HEAD(self) -> None:
            self._answer(body=False)

        def _answer(self, body: bool) -> None:
            status, words = answer(gate.read(host))
            text = words.encode("utf-8")
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(text)))
            self.send_header("Cache-Control", "no-store")
            self.end_headers()
            if body:
                self.wfile.write(text)

        def log_message(self, format: str, *args: object) -> None:
            """Silent: a probe every few seconds would fill the journal."""

    return Health


def server(
    host: Host,
    bind: str,
    port: int,
    answer: Callable[[gate.Gate], tuple[int, str]] = health.plain,
) -> ThreadingHTTPServer:
    """The server, bound and not yet serving. Raises OSError."""
    ThreadingHTTPServer.daemon_threads = True
    return ThreadingHTTPServer((bind, port), handler(host, answer))


def main(arguments: list[str]) -> int:
    parser = common.parser("serve", "Answer health checks: 200 while the gate is open, else 503.")
    parser.add_argument("--port", type=int, default=PORT)
    # Health checkers come from the provider's own ranges; the firewall says who may ask.
    parser.add_argument("--bind", default="0.0.0.0", help="address; default all")  # noqa: S104
    parser.add_argument(
        "--application-health", action="store_true", help="answer Azure's extension"
    )
    options = parser.parse_args(arguments)
    answer = health.application if options.application_health else health.plain
    try:
        served = server(Host(cli.root()), options.bind, options.port, answer)
    except OSError as error:
        sys.stderr.write(f"gputier-node: cannot listen on {options.bind}:{options.port}: {error}\n")
        return 2
    try:
        served.serve_forever(poll_interval=1.0)
    except KeyboardInterrupt:
        return 0
    finally:
        served.server_close()
    return 0
