"""The verdict is told: the report first, then the cloud, then the machine's own gate."""

from __future__ import annotations

from gputier.node import gates, interruption, report, timeline
from gputier.node.cloud import identity
from gputier.node.gate import ENFORCE
from gputier.node.result import HEALTHY, INCONCLUSIVE
from gputier.node.stages import StageResult, Work, inconclusive, ok


def run(work: Work) -> StageResult:
    """Admit or refuse by the report on disk; healthy when it is open, or all was told."""
    found = report.load(work.host)
    if found is None:
        # Without a report nothing is known, and nobody is let in on that.
        return inconclusive(f"there is no report in {report.FILE}")
    who = identity.load(work.host)
    gate = gates.of(work.settings, who, work.host)
    opens = found["outcome"] == HEALTHY or work.settings.mode != ENFORCE
    # The notice may have come behind the validation: no work is begun on a machine that goes.
    words = interruption.noticed(work.host, who) if opens else None
    if words:
        gate.leave(found)
        return inconclusive(f"the gate stays shut: {words}")
    leaves = timeline.INTERRUPTION in found["causes"]
    settled = gate.leave(found) if leaves else gate.settle(found)
    work.warnings += settled.notes
    # An open gate needs no more; what could not be told besides stands among the warnings.
    if settled.failed and not settled.open:
        steps = ", ".join(step.value for step in settled.failed)
        return StageResult(INCONCLUSIVE, f"{settled.words}; not done: {steps}")
    return ok(settled.words, changed=True)
