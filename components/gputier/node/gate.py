"""The gate: what a node must pass before it takes work, and what shuts it again.

Its state is one file below /run, gone with every boot, so that no node opens on the word of an
earlier one. `ready` beside it exists only while the gate is open, for systemd's conditions.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from gputier.node.host import Host
from gputier.node.result import HEALTHY

FILE = "/run/gputier/gate.json"
READY = "/run/gputier/ready"
OFF, REPORT, ENFORCE = "off", "report", "enforce"


class Gate(NamedTuple):
    """`open`, the node's last outcome, the reasons in words, and since when (seconds of 1970)."""

    open: bool
    outcome: str
    mode: str
    reasons: tuple[str, ...]
    since: int

    def to_json(self) -> str:
        return json.dumps({**self._asdict(), "reasons": list(self.reasons)}, sort_keys=True) + "\n"


def read(host: Host) -> Gate:
    """The gate as it stands; shut when its file is absent or cannot be read."""
    try:
        data: Any = json.loads(host.read(FILE) or "")
        return Gate(
            bool(data["open"]),
            str(data["outcome"]),
            str(data["mode"]),
            tuple(str(reason) for reason in data["reasons"]),
            int(data["since"]),
        )
    except (ValueError, KeyError, TypeError):
        return Gate(False, "unknown", ENFORCE, ("no verdict yet in this boot",), 0)


def settle(host: Host, mode: str, report: Mapping[str, Any]) -> Gate:
    """Open or shut by a report: `report` mode says what it would do and opens all the same."""
    outcome = str(report["outcome"])
    reasons = tuple(
        f"{check['name']}: {check['evidence']}"
        for check in report["checks"]
        if check["name"] in report["causes"]
    )
    opened = mode != ENFORCE or outcome == HEALTHY
    return write(host, Gate(opened, outcome, mode, reasons, int(host.now())))


def write(host: Host, gate: Gate) -> Gate:
    """Keep the state; `ready` follows it. Raises OSError when neither can be written."""
    if not gate.open:
        host.remove(READY)
    host.write(FILE, gate.to_json())
    if gate.open:
        host.write(READY, gate.outcome + "\n")
    return gate


def shut(host: Host, outcome: str, reasons: Sequence[str]) -> Gate:
    """Take the node out of service; in mode `report` or `off` only the reasons are kept."""
    before = read(host)
    stays = before.open and before.mode != ENFORCE
    return write(host, Gate(stays, outcome, before.mode, tuple(reasons), int(host.now())))
