"""The health check of a group on Google: how often it asks, and when it gives a machine up.

Between two answers a machine may reboot and has to prove itself again. A check with less patience
than that replaces good machines; one that asks too seldom does not see in time that a new machine
is good, for autohealing waits an hour and no longer. Both follow from the boot's own deadlines.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from gputier.boot.deadlines import (
    AGAIN_SECONDS,
    BUNDLE,
    HEALTH_CHECK_SECONDS,
    INITIAL_DELAY_SECONDS,
    Deadline,
)
from gputier.node.settings import HEALTH_ENDPOINT, HEALTH_PORT
from gputier.node.stages import REBOOT_SECONDS, VALIDATE
from gputier.plan.boot import GatePlan

#: What the node serves (docs/gates.md).
PATH = "/healthz"
#: Thresholds are 1 to 10, an interval 1 to 300 s, and a timeout no longer than it (compute v1
#: discovery of 2026-11-06, HealthCheck).
MOST_FAILURES, LONGEST_INTERVAL = 10, 300
TIMEOUT_SECONDS, ROUND_SECONDS = 5, 5
#: Parts of the sum that a reboot in service does not have once more.
ONCE = ("power-on", BUNDLE, "reboots", VALIDATE, "validate-again")
REPORT, OFF = "report", "off"


class HealthCheck(NamedTuple):
    """How a group asks its machines. `failures` in a row make one unhealthy, one good answer makes
    it healthy. `repairs`: an unhealthy machine is made anew; else it is only told of.

    `room_seconds` is how long a machine in service may not answer; `needed_seconds` what a reboot,
    the stages' look and the whole of a validation may take. Where it is more, one that uses up its
    limits after a reboot is made anew though it is good."""

    port: int
    path: str
    interval_seconds: int
    timeout_seconds: int
    failures: int
    initial_delay_seconds: int
    repairs: bool
    needed_seconds: int

    @property
    def room_seconds(self) -> int:
        return self.interval_seconds * self.failures

    @property
    def note(self) -> str | None:
        """What a person should know of it."""
        if self.room_seconds > self.needed_seconds or not self.repairs:
            return None
        return (
            f"a machine that reboots in service has {self.room_seconds} s to prove itself again,"
            f" and may take {self.needed_seconds}: one that is later is made anew"
        )


def health_check(found: Deadline, gate: GatePlan) -> HealthCheck | None:
    """The health check of machines with this gate; None for those that nobody asks.

    Raises `ValueError` for a boot that autohealing does not wait for, which `render` refuses."""
    if gate.kind != HEALTH_ENDPOINT or gate.mode == OFF:
        return None
    if not found.fits:
        raise ValueError(f"a boot of {found.total_seconds} s, and {found.allowed_by}")
    needed = reboot_seconds(found) + _seconds(found, VALIDATE)
    # A good answer is heard one interval after it could be given, at worst.
    spare = INITIAL_DELAY_SECONDS - found.total_seconds
    asked = math.ceil((needed + 1) / MOST_FAILURES / ROUND_SECONDS) * ROUND_SECONDS
    interval = min(max(asked, ROUND_SECONDS), max(spare, HEALTH_CHECK_SECONDS), LONGEST_INTERVAL)
    return HealthCheck(
        port=HEALTH_PORT,
        path=PATH,
        interval_seconds=interval,
        timeout_seconds=TIMEOUT_SECONDS,
        failures=MOST_FAILURES,
        initial_delay_seconds=INITIAL_DELAY_SECONDS,
        repairs=gate.mode != REPORT,
        needed_seconds=needed,
    )


def reboot_seconds(found: Deadline) -> int:
    """A reboot, and each stage's look that its work is done."""
    stages = sum(row.name not in ONCE for row in found.rows)
    return math.ceil(REBOOT_SECONDS) + AGAIN_SECONDS * (stages + 1)


def _seconds(found: Deadline, name: str) -> int:
    return sum(row.seconds for row in found.rows if row.name == name)
