"""The node's long-lived services: every unit is written and known to systemd before the gate.

Behind the gate nothing reloads systemd any more: running containers could lose their GPUs by it.
"""

from __future__ import annotations

from gputier.node import gpudirect, running, services, stages, units
from gputier.node.settings import APPLICATION_HEALTH, HEALTH_ENDPOINT
from gputier.node.stages import StageResult, Work, collectives, config, ok

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
    changed = _forgotten(work, {one.name for one in made}) or changed
    changed = units.install(work, *made) or changed
    changed = units.enable(work, path.name, *(one.name for one in (*early, *late))) or changed
    for one in (*early, path):
        changed = units.start(work, one.name, again=one in stale) or changed
    return ok(", ".join(one.name for one in made), changed)


def _forgotten(work: Work, made: set[str]) -> bool:
    """What an earlier plan left behind, on this disk or on that of the image: units that nobody
    wants any more, NCCL's variables of another fabric. Whether there was any."""
    stays = {
        **{name: name in made for name in (services.SERVE, units.WORKLOAD)},
        services.METRICS: work.settings.agent is not None,
        gpudirect.RXDM: (work.settings.fabric or "").startswith("gpudirect"),
    }
    gone = [
        name
        for name, wanted in stays.items()
        if not wanted and work.host.exists(f"{units.FOLDER}/{name}")
    ]
    for name in gone:
        work.run("systemctl", "disable", "--now", name, limit=60.0)
        work.host.remove(f"{units.FOLDER}/{name}")
    if gone:
        units.reload(work)
    unused = stages.BY_NAME["collectives"].applies(work.settings) is not None
    return (unused and collectives.forget(work)) or bool(gone)
