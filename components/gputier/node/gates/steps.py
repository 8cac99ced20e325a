"""What is done about a verdict: one table for all gates, which docs/gates.md shows.

`of` is the decision; `DOES` is how each gate does a step, None where it has none.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum

from gputier.node.gate import ENFORCE, OFF
from gputier.node.result import CONFIG, HEALTHY, INCONCLUSIVE, REBOOT, REPLACE
from gputier.node.settings import (
    APPLICATION_HEALTH,
    GATE_FILE,
    HEALTH_ENDPOINT,
    LIFECYCLE_HOOK,
)


class Step(Enum):
    """The steps, by what they are for."""

    SHUT = "shut"
    REPORT = "report"
    CLEAR = "clear"
    COUNT = "count"
    REMEMBER = "remember"
    STOP = "stop"
    ENTER = "enter"
    OPEN = "open"
    GIVE_UP = "give up"
    GO = "go"


# The verdict of a machine that the provider takes away while it is judged.
INTERRUPTED = "interrupted"
OUTCOMES = (HEALTHY, REPLACE, REBOOT, CONFIG, INCONCLUSIVE, INTERRUPTED)

COME_IN = (Step.REPORT, Step.CLEAR, Step.ENTER, Step.OPEN)
TOLD = (Step.REPORT, Step.ENTER, Step.OPEN)
UNASKED = (Step.ENTER, Step.OPEN)
# Given up at once: a machine that cannot be used is paid for by the second. A reboot that is still
# asked for here had its chance, or there was none left.
BAD = (Step.SHUT, Step.REPORT, Step.REMEMBER, Step.GIVE_UP)
OURS = (Step.SHUT, Step.REPORT, Step.COUNT, Step.GIVE_UP)
STOPPED = (Step.SHUT, Step.REPORT, Step.COUNT, Step.STOP, Step.GO)
TAKEN = (Step.SHUT, Step.REPORT)


def of(mode: str, outcome: str, tripped: bool = False) -> tuple[Step, ...]:
    """The steps for a verdict, in order. `tripped` is known after COUNT, which comes before it."""
    if outcome == INTERRUPTED:
        return TAKEN
    if mode == OFF:
        return UNASKED
    if outcome == HEALTHY:
        return COME_IN
    if mode != ENFORCE:
        return TOLD
    if outcome in (REPLACE, REBOOT):
        return BAD
    return STOPPED if tripped and outcome == CONFIG else OURS


LOCAL: Mapping[Step, str] = {
    Step.SHUT: "shut the node's own gate (503)",
    Step.REPORT: "upload the report, with retries",
    Step.CLEAR: "set the breaker back",
    Step.COUNT: "count the fault in the breaker",
    Step.REMEMBER: "remember the host as bad",
    Step.OPEN: "open the node's own gate: the workload starts",
}

# What a gate does not list, it does not do.
DOES: Mapping[str, Mapping[Step, str]] = {
    LIFECYCLE_HOOK: {
        **LOCAL,
        Step.STOP: "SuspendProcesses `Launch` on its own group",
        Step.ENTER: "CompleteLifecycleAction CONTINUE",
        Step.GIVE_UP: "CompleteLifecycleAction ABANDON (SetInstanceHealth where it had joined)",
        Step.GO: "CompleteLifecycleAction ABANDON (SetInstanceHealth where it had joined)",
    },
    HEALTH_ENDPOINT: {
        **LOCAL,
        Step.STOP: "the group's autoscaler to mode OFF",
        Step.GIVE_UP: "recreateInstances on itself; else the health check does it at its deadline",
        Step.GO: "deleteInstances on itself, which lowers the group's size: nothing comes after it",
    },
    APPLICATION_HEALTH: {
        Step.SHUT: "`Unhealthy`: the scale set repairs it; for `config` no valid answer, so that "
        "it is left alone",
        Step.OPEN: "`Healthy`: the workload starts",
    },
    GATE_FILE: {
        Step.SHUT: "no ready file; the exit status says the outcome",
        Step.REPORT: "upload the report where the stack has a bucket",
        Step.OPEN: "write the ready file: the workload starts",
    },
}
