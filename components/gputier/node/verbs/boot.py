"""`boot`: prepare this machine, judge it, tell the cloud; started by systemd at every boot."""

from __future__ import annotations

import fcntl
import os
import sys
from collections.abc import Callable

from gputier.node import cli, gates, prctl
from gputier.node.cloud import identity
from gputier.node.heartbeat import Heartbeat
from gputier.node.host import Host
from gputier.node.runner import Inputs, Runner
from gputier.node.settings import Settings
from gputier.node.verbs import common

LOCK = "/run/gputier/boot.lock"


def main(arguments: list[str]) -> int:
    parser = common.parser("boot", "Prepare, judge and admit this machine, by its settings.")
    parser.parse_args(arguments)
    host = Host(cli.root())
    given = Inputs(host, *common.given(host))
    settings = given.settings
    for problem in given.problem.splitlines():
        sys.stderr.write(f"gputier-node: {problem}\n")
    for warning in (*settings.warnings, *given.expect.warnings):
        sys.stderr.write(f"gputier-node: warning: {warning}\n")
    handle = _alone(host)
    if handle is None:
        sys.stderr.write("gputier-node: another boot is under way\n")
        return 2
    try:
        prctl.adopt()
        beat = Heartbeat(_beat(host, settings), settings.heartbeat_seconds)
        return Runner(given, beat).boot()
    finally:
        os.close(handle)


def _alone(host: Host) -> int | None:
    """A lock that ends with this process, None when another one has it."""
    path = host.root / LOCK.lstrip("/")
    path.parent.mkdir(parents=True, exist_ok=True)
    handle = os.open(str(path), os.O_RDWR | os.O_CREAT, 0o600)
    os.set_inheritable(handle, False)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(handle)
        return None
    return handle


def _beat(host: Host, settings: Settings) -> Callable[[], str | None]:
    """A sign of life; who this machine is may be written only a little later."""
    made: list[gates.Gate] = []

    def beat() -> str | None:
        if not made:
            made.append(gates.of(settings, identity.load(host), host))
        return made[0].heartbeat()

    return beat
