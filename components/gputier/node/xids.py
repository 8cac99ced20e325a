"""Xid codes → what we do, as a table, with what each public tool says of the same code.

Four public classifications disagree, so each row keeps them side by side:
adt     awslabs/awsome-distributed-ai (95b939c, 2026-07-23), the r590 catalogue of its health checks
dcgm    NVIDIA/DCGM 4.6.0 (2026-07-06), the health watch
azure   Azure/azurehpc-health-checks (0e0a1ac, 2026-05-01), fault dictionary and grepped list
Where ours is stricter or milder than all of them, `why` says so.
"""

# ruff: noqa: E501 (one row of the table, one line)
from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from gputier.node.result import HEALTHY, REBOOT, REPLACE, WARNING

DATE = "2026-08"
SOURCE = "NVIDIA Xid catalogue, https://docs.nvidia.com/deploy/xid-errors/ (2026-08)"
LINKS_DOWN = "links-down"
FOLLOW_TEXT = "follow-text"


class Xid(NamedTuple):
    """One code. `action` is an outcome, or how to find it: by link state, or by the line's text."""

    code: int
    meaning: str
    action: str
    adt: str
    dcgm: str
    azure: str
    why: str = ""


# fmt: off
XIDS = (
    Xid(13, "graphics engine exception", HEALTHY, "monitor", "-", "ignored", "an application's own fault"),
    Xid(31, "GPU memory page fault", HEALTHY, "monitor", "warn", "ignored", "an application's own fault"),
    Xid(43, "GPU stopped processing", HEALTHY, "monitor", "warn", "ignored", "an application's own fault"),
    Xid(45, "channel removed before its time", HEALTHY, "monitor", "-", "ignored", "an application's own fault"),
    Xid(48, "double-bit ECC error", REBOOT, "reset", "fail", "NHC2014", "the second time the machine is replaced"),
    Xid(54, "auxiliary power not connected", REPLACE, "isolate", "warn", "-", "nobody in the guest can plug a cable"),
    Xid(61, "internal microcontroller breakpoint", REPLACE, "-", "warn", "-"),
    Xid(62, "internal microcontroller halt", REPLACE, "-", "warn", "listed"),
    Xid(63, "row remapping recorded", HEALTHY, "monitor", "warn", "listed", "whether it is pending is what counts: check row-remap"),
    Xid(64, "row remapping failed", REPLACE, "isolate (pull request 1190; reset before)", "fail", "listed", "an RMA criterion"),
    Xid(74, "NVLink error", REBOOT, "reset", "fail", "listed"),
    Xid(79, "GPU has fallen off the bus", REPLACE, "reboot", "fail", "NHC2013", "a cloud machine that lost a GPU once loses it again"),
    Xid(92, "high rate of single-bit errors", WARNING, "monitor", "-", "listed"),
    Xid(94, "contained ECC error", WARNING, "monitor", "warn", "in its dictionary, never grepped"),
    Xid(95, "uncontained ECC error", REPLACE, "reset, reboot on A100 without MIG", "fail", "in its dictionary, never grepped"),
    Xid(109, "context switch timeout", REBOOT, "reset", "-", "-"),
    Xid(110, "security fault", REBOOT, "reset", "-", "-"),
    Xid(119, "GSP call timed out", REBOOT, "reset", "fail", "listed", "the second time the machine is replaced"),
    Xid(120, "GSP error", REBOOT, "reset", "fail", "listed", "the second time the machine is replaced"),
    Xid(136, "link training failed", REBOOT, "reset", "-", "-"),
    Xid(140, "unrecovered ECC error", REBOOT, "reset", "fail", "-"),
    Xid(143, "GPU initialisation failed", REBOOT, "reset", "-", "-"),
    Xid(144, "NVLink 5: SAW error", LINKS_DOWN, "monitor", "-", "-", "replace only with links down"),
    Xid(145, "NVLink 5: RLW error", LINKS_DOWN, "monitor", "-", "-", "replace only with links down"),
    Xid(146, "NVLink 5: TLW error", LINKS_DOWN, "monitor", "-", "-", "replace only with links down"),
    Xid(147, "NVLink 5: TREX error", LINKS_DOWN, "monitor", "-", "-", "replace only with links down"),
    Xid(148, "NVLink 5: NVLPW control error", LINKS_DOWN, "monitor", "-", "-", "replace only with links down"),
    Xid(149, "NVLink 5: NETIR error", LINKS_DOWN, "monitor", "-", "-", "replace only with links down"),
    Xid(150, "NVLink 5: MSE error", LINKS_DOWN, "monitor", "-", "-", "replace only with links down"),
    Xid(151, "key rotation error: restart the machine", REBOOT, "reboot", "-", "-"),
    Xid(154, "the driver names the recovery itself", FOLLOW_TEXT, "parse the text", "DCGM_FR_GPU_RECOVERY_*", "-"),
    Xid(155, "NVLink: software-defined error", REBOOT, "reset", "-", "-"),
    Xid(156, "resource retirement event", REBOOT, "reset", "-", "-"),
    Xid(157, "resource retirement failed: memory cannot be repaired", REPLACE, "-", "-", "-", "no repair is left"),
    Xid(158, "GPU fatal timeout", REBOOT, "reset", "-", "-"),
    Xid(168, "boot attempted again; ECC may have to be enabled", REBOOT, "reboot", "-", "-"),
)
# fmt: on
TABLE = {row.code: row for row in XIDS}

RECOVERY_CODE = 154
# The recovery action in the text of Xid 154, most severe first.
RECOVERY = (
    ("node reboot required", REBOOT),
    ("gpu reset required", REBOOT),
    ("drain and reset", REBOOT),
    ("drain p2p", WARNING),
    ("none", HEALTHY),
)

# The number after the closing bracket: the bus address before it matches naive patterns.
_LINE = re.compile(r"\bNVRM: Xid \(([^)]*)\):\s*(\d+)\b(.*)")
_SXID = re.compile(r"\bSXid \(([^)]*)\):\s*(\d+)\b(.*)", re.IGNORECASE)


class Event(NamedTuple):
    """One Xid or SXid in the log: whose it is, which, and the line it stands in."""

    device: str
    code: int
    detail: str
    line: str


def find(log: str) -> tuple[Event, ...]:
    """Every Xid of a kernel log, in its order."""
    return tuple(_events(log, _LINE))


def find_switch(log: str) -> tuple[Event, ...]:
    """Every NVSwitch error (SXid) of a kernel log, in its order."""
    return tuple(_events(log, _SXID))


def _events(log: str, pattern: re.Pattern[str]) -> list[Event]:
    found: list[Event] = []
    for line in log.splitlines():
        hit = pattern.search(line)
        if hit:
            device = re.sub(r"^PCI:", "", hit[1].split()[0].rstrip(",")) if hit[1] else "?"
            found.append(Event(device, int(hit[2]), hit[3].strip(" ,"), line.strip()))
    return found


def latest(events: Sequence[Event]) -> list[Event]:
    """Without the recovery actions that a later one of the same device replaced."""
    last = {event.device: event for event in events if event.code == RECOVERY_CODE}
    return [e for e in events if e.code != RECOVERY_CODE or e is last[e.device]]


def action(event: Event, links_down: bool) -> str:
    """The outcome that one event asks for; a code that the table lacks is a warning."""
    row = TABLE.get(event.code)
    if row is None:
        return WARNING
    if row.action == LINKS_DOWN:
        return REPLACE if links_down else WARNING
    if row.action == FOLLOW_TEXT:
        # "changed from 0x1 (GPU Reset Required) to 0x0 (None)": what it is now counts.
        text = event.detail.lower().rpartition(" to ")[2]
        return next((outcome for words, outcome in RECOVERY if words in text), REBOOT)
    return row.action
