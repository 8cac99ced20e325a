"""What the health endpoint answers, for each kind of asker; decided by the gate's state alone."""

from __future__ import annotations

import json

from gputier.node.gate import Gate
from gputier.node.result import INCONCLUSIVE, REBOOT, REPLACE

FIELD = "ApplicationHealthState"
REPAIRED = (REPLACE, REBOOT, INCONCLUSIVE)


def plain(state: Gate) -> tuple[int, str]:
    """Status and body for whoever asks by the status: 200 while the gate is open, else 503."""
    return (200 if state.open else 503), state.to_json()


def application(state: Gate) -> tuple[int, str]:
    """Status and body for Azure's application health extension with rich health states.

    An answer 200 with `{"ApplicationHealthState": "Healthy"}` or `"Unhealthy"` counts; any other
    answer leaves the machine Initializing within its grace period and Unknown after it. A scale set
    repairs Unhealthy machines and leaves Unknown ones alone, which is what a configuration fault
    wants: https://learn.microsoft.com/azure/virtual-machine-scale-sets/virtual-machine-scale-sets-health-extension
    """
    if state.open:
        return 200, json.dumps({FIELD: "Healthy"}) + "\n"
    if state.outcome in REPAIRED:
        return 200, json.dumps({FIELD: "Unhealthy"}) + "\n"
    return 503, state.to_json()
