"""`interruption`: watch for the provider's notices, from the start of a boot to the end."""

from __future__ import annotations

import sys

from gputier.node import cli
from gputier.node.cloud import endpoints, identity, metadata
from gputier.node.cloud.http import Web
from gputier.node.cloud.identity import Identity
from gputier.node.host import Host
from gputier.node.interruption import INTERVAL_SECONDS, Watcher
from gputier.node.verbs import common


def main(arguments: list[str]) -> int:
    parser = common.parser("interruption", "Watch for the provider's notices; shut and stop.")
    parser.add_argument("--seconds", type=float, help="stop after this long")
    options = parser.parse_args(arguments)
    host = Host(cli.root())
    until = None if options.seconds is None else host.monotonic() + options.seconds
    try:
        return loop(host, until)
    except KeyboardInterrupt:
        return 0


def loop(host: Host, until: float | None) -> int:
    """Look until the time is up; 0. A cloud without notices has nothing to be watched."""
    who = _known(host, until)
    if who is None:
        return 0
    service = metadata.of(who.cloud, Web(host), endpoints.read(host))
    if service is None:
        say(f"no notices are known of {who.cloud}")
        return 0
    watcher, said = Watcher(host, service, who, say), ""
    while True:
        trouble = watcher.step().trouble or ""
        if trouble != said:
            say(trouble or "the metadata service answers again")
            said = trouble
        if until is not None and host.monotonic() + INTERVAL_SECONDS > until:
            return 0
        host.sleep(INTERVAL_SECONDS if trouble or who.cloud != "gcp" else 0.5)


def _known(host: Host, until: float | None) -> Identity | None:
    """Who this is, once the fetcher has found out; None when the time is up."""
    while True:
        found = identity.load(host)
        if found is not None:
            return found
        if until is not None and host.monotonic() + INTERVAL_SECONDS > until:
            return None
        host.sleep(INTERVAL_SECONDS)


def say(words: str) -> None:
    """One line for the journal, at once."""
    sys.stderr.write(f"gputier-node: {words}\n")
    sys.stderr.flush()
