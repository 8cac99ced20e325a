"""Fabric Manager, where there are NVSwitches: of the driver's version, running, the fabric up.

Without it CUDA ends with error 802 although nvidia-smi looks well
(github.com/pytorch/pytorch/issues/35710). Where there is no switch it fails by itself
(github.com/NVIDIA/gpu-operator/issues/610), so then it is left alone.
"""

from __future__ import annotations

from gputier.node.checks import links
from gputier.node.result import CONFIG, HEALTHY, REBOOT, UNSUPPORTED, WARNING, Finding
from gputier.node.stages import StageResult, Work, ok, reboot

TRIES = 3
PAUSE_SECONDS = 5.0
REMEDIES = {check.name: check.remedies for check in links.CHECKS}


def run(work: Work) -> StageResult:
    """Start it where it does not run, and wait for the fabric; a start may lose a race at boot
    (github.com/Azure/azhpc-images/issues/365), so it is tried again."""
    changed, found = False, Finding(REBOOT, "not asked", "")
    for turn in range(TRIES):
        work.memory.clear()
        if _enabled(work):
            changed = True
        found = links.fabric_manager(work)
        if found.outcome in (HEALTHY, WARNING):
            return ok(found.evidence, changed)
        if found.outcome == UNSUPPORTED:
            return ok(f"{found.evidence}: it is not needed")
        if found.outcome == CONFIG or turn == TRIES - 1 or work.left() < links.WAIT_SECONDS:
            break
        work.run("systemctl", "restart", links.SERVICE, limit=60.0)
        changed = True
        work.host.sleep(PAUSE_SECONDS)
    remedy = found.remedy or REMEDIES["fabric-manager"].get(found.outcome, "")
    if found.outcome == REBOOT:
        return reboot(found.evidence, remedy)
    return StageResult(found.outcome, found.evidence, changed, remedy)


def _enabled(work: Work) -> bool:
    """Have it start at every boot, and now; whether it did not before."""
    if work.run("systemctl", "is-enabled", "--quiet", links.SERVICE, limit=10.0).ok:
        return False
    return work.run("systemctl", "enable", "--now", links.SERVICE, limit=60.0).ok
