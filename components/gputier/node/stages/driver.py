"""The driver: of the image, or installed in exactly one version; loaded, answering, of one piece.

Whether it is there is asked by what it does (`nvidia-smi -L` ends with 0 and shows UUIDs), not by
whether a file exists (github.com/GoogleCloudPlatform/compute-gpu-installation/issues/10). Module,
library, Fabric Manager and IMEX have to be of one version, or some of them refuse to work.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from gputier.node import driver_install, kernels, smi, versions
from gputier.node.checks import driver as checks
from gputier.node.checks import gpus
from gputier.node.engine import Context
from gputier.node.result import CONFIG, HEALTHY, INCONCLUSIVE, REBOOT, REPLACE, Finding
from gputier.node.settings import INSTALL
from gputier.node.stages import StageResult, Work, config, ok

# Program → what it is; each prints its version to --version.
FABRIC_MANAGER, IMEX, PERSISTENCED = "nv-fabricmanager", "nvidia-imex", "nvidia-persistenced"
BAD = (REPLACE, REBOOT, CONFIG, INCONCLUSIVE)
HOLD = "use an image whose driver packages are of one version, and hold them"


def run(work: Work) -> StageResult:
    """Have the driver, and prove it."""
    lost = _judged(gpus.presence(work))
    if lost is not None and lost.outcome != INCONCLUSIVE:
        return lost
    changed = False
    if work.settings.text("driver.source") == INSTALL:
        changed = driver_install.install(work)
    elif checks.kernel_module(work).outcome != HEALTHY:
        changed = load(work)
    found = verify(work)
    later = kernels.trouble(work) if found.ok else None
    if later:
        work.warnings.append(later)
    return found._replace(changed=found.changed or changed)


def load(work: Work) -> bool:
    """Load the module of the image where nothing did yet; whether it is loaded now.

    Why it would not is in the kernel's log, where the verification finds it.
    """
    modules = work.host.read("/proc/modules") or ""
    if re.search(r"^nouveau\s", modules, re.M):
        return False
    done = work.run("modprobe", "nvidia", limit=60.0)
    work.memory.clear()
    if not done.ok and done.state == "exited":
        work.warnings.append(f"modprobe nvidia: {done.says()}")
    return done.ok


def verify(work: Work) -> StageResult:
    """Module, flavour, branch, `nvidia-smi`, and that all parts are of one version."""
    steps: tuple[Callable[[Context], Finding], ...] = (
        checks.kernel_module,
        checks.flavour,
        checks.branch,
        checks.driver,
        checks.match,
    )
    for step in steps:
        bad = _judged(step(work), step.__name__)
        if bad is not None:
            return bad
    version = checks.version(work) or ""
    other = _not_planned(work, version) or _of_another_version(work, version)
    if other is not None:
        return other
    flavour = "open" if "Open Kernel Module" in checks.module_text(work) else "proprietary"
    return ok(f"driver {version}, {flavour} module, {len(smi.gpus(work))} GPUs answer")


def _judged(finding: Finding, name: str = "pci") -> StageResult | None:
    """A check's finding as this stage's result, None when it is no reason to end."""
    if finding.outcome not in BAD:
        return None
    remedy = finding.remedy or REMEDIES.get((name, finding.outcome), "")
    found = StageResult(finding.outcome, finding.evidence, remedy=remedy)
    if finding.outcome == REBOOT:
        # Versions that still differ after a reboot are the image's, a GPU that hangs the host's.
        differ = name == "match" or finding.remedy == checks.HALF_DONE
        found = found._replace(then=CONFIG if differ else REPLACE, changed=True)
    return found


REMEDIES = {
    (check.run.__name__, outcome): remedy
    for check in checks.CHECKS_MODULE
    for outcome, remedy in check.remedies.items()
}


def _not_planned(work: Work, version: str) -> StageResult | None:
    planned, branch = work.settings.text("driver.version"), work.settings.text("driver.branch")
    if planned and versions.parse(planned) != versions.parse(version):
        return config(f"driver {version}, and the plan has {planned}", driver_install.OTHER_IMAGE)
    if branch and version and version.split(".")[0] != branch:
        return config(
            f"driver {version}, and the plan has branch {branch}", driver_install.OTHER_IMAGE
        )
    return None


def _of_another_version(work: Work, version: str) -> StageResult | None:
    """Fabric Manager and IMEX refuse another version's driver, the persistence daemon does not."""
    needed = {FABRIC_MANAGER: work.settings.flag("driver.fabric_manager"),
              IMEX: work.settings.flag("driver.imex"), PERSISTENCED: False}  # fmt: skip
    for program, must in needed.items():
        done = work.run(program, "--version", limit=10.0)
        found = re.search(r"(\d{3,4}\.\d+(?:\.\d+)?)", done.text) if done.ok else None
        if found is None:
            if must:
                words = "not installed" if done.state == "missing" else done.says()
                return config(f"{program} is needed on this machine: {words}", HOLD)
            continue
        if versions.parse(found[1]) == versions.parse(version):
            continue
        words = f"{program} is {found[1]}, the driver {version}"
        if must:
            # github.com/NVIDIA/gpu-driver-container/issues/735: a pattern took a newer branch.
            return config(words, HOLD)
        work.warnings.append(words)
    return None
