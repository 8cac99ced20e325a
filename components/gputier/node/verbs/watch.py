"""`watch`: keep looking at a node that joined; a fault shuts the gate."""

from __future__ import annotations

import json
import sys
from typing import Any

from gputier.node import cli, gate, gates, load_cause, recording, settings
from gputier.node.cloud import identity
from gputier.node.engine import Context
from gputier.node.expect import Expectation
from gputier.node.host import Host
from gputier.node.verbs import common
from gputier.node.watching import Event, Watch

# A spot machine on GCP has 30 seconds from its notice to its end.
INTERVAL = 15.0
EVERY = 4


def main(arguments: list[str]) -> int:
    parser = common.parser("watch", "Watch this node; a fault shuts the gate.")
    common.add_expect(parser)
    parser.add_argument(
        "--interval",
        type=float,
        default=INTERVAL,
        help=f"seconds between looks for notices; the rest at every {EVERY}th",
    )
    parser.add_argument("--seconds", type=float, help="stop after this long")
    parser.add_argument("--replay", metavar="DIR", help="watch a recording instead")
    parser.add_argument("--json", action="store_true", help="one JSON object per line")
    options = parser.parse_args(arguments)
    if options.interval <= 0:
        parser.error("--interval must be above 0")
    host = recording.Replay(recording.load(options.replay)) if options.replay else _here()
    wanted = common.read_expectation(host, options.expect)
    until = None if options.seconds is None else host.monotonic() + options.seconds
    return loop(host, wanted, options.interval, until, options.json)


def _here() -> Host:
    return Host(cli.root())


def loop(
    host: Host, wanted: Expectation, interval: float, until: float | None, as_json: bool
) -> int:
    """Look, tell, sleep; until the time is up or the process is stopped."""
    watch = Watch(Context(host, wanted), EVERY)
    try:
        while True:
            events = watch.step()
            _shut(host, [event for event in events if event.shuts])
            _tell(host, watch, events, as_json)
            if until is not None and host.monotonic() + interval > until:
                return 0
            host.sleep(interval)
    except KeyboardInterrupt:
        return 0


def _shut(host: Host, events: list[Event]) -> None:
    if not events:
        return
    words = [event.words for event in events]
    try:
        fault = next((event.outcome for event in events if not event.notice), None)
        # A machine that the provider takes needs no one to replace it; nor one without a plan.
        if fault is None or host.read(settings.FILE) is None:
            gate.shut(host, events[0].outcome, words)
            return
        told = gates.of(settings.read(host.read(settings.FILE) or ""), identity.load(host), host)
        for note in told.revoke(fault, words).notes:
            sys.stderr.write(f"gputier-node: {note}\n")
    except OSError as error:
        sys.stderr.write(f"gputier-node: the gate cannot be shut: {error}\n")


def _tell(host: Host, watch: Watch, events: list[Event], as_json: bool) -> None:
    if as_json:
        found: dict[str, Any] = {
            "at": int(host.now()),
            "events": [event._asdict() for event in events],
            "gpus": watch.figures(),
            "load": load_cause.as_json(watch.cause.judge()),
            "suppressed": watch.suppressed,
        }
        sys.stdout.write(json.dumps(found) + "\n")
    else:
        for event in events:
            sys.stdout.write(f"gputier-node: {event.outcome.upper()}   {event.words}\n")
    sys.stdout.flush()
