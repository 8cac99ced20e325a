"""The node's long-lived services: every unit is written and known to systemd before the gate.

Behind the gate nothing reloads systemd any more: running containers could lose their GPUs by it.
"""

from __future__ import annotations

from gputier.node import running, services, units
from gputier.node.settings import APPLICATION_HEALTH, HEALTH_ENDPOINT
from gputier.node.stages import StageResult, Work, config, ok

SERVED = (HEALTH_ENDPOINT, APPLICATION_HEALTH)


def run(work: Work) -> StageResult:
    """Those that this gate and this workload need, enabled, and started where they start early."""
    early = [services.interruption()]
    if work.settings.gate_kind in SERVED:
        early.insert(0, services.serve(work.settings))
    target, path = services.joined()
    late = [services.watch()]
    try:
        own = running.unit(work)
        changed = running.files(work)
    except ValueError as error:
        return config(f"the workload cannot be written for systemd: {error}",
                      "mend that text in the declaration")  # fmt: skip
    stale = [one for one in early if work.host.read(one.path) not in (None, one.text)]
    made = [*early, target, path, *late, *([own] if own else [])]
    changed = units.install(work, *made) or changed
    changed = units.enable(work, path.name, *(one.name for one in (*early, *late))) or changed
    for one in (*early, path):
        changed = units.start(work, one.name, again=one in stale) or changed
    return ok(", ".join(one.name for one in made), changed)
