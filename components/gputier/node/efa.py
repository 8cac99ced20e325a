"""AWS's Elastic Fabric Adapter: module, devices, libfabric; installed where the image lacks it.

https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/efa-start.html (2026-10)
"""

from __future__ import annotations

import re

from gputier.node import distro, fetched, having
from gputier.node.checks import network
from gputier.node.fetched import FOLDER, Signed
from gputier.node.stages import Halt, StageResult, Work, config, ok

# The installer that the Deep Learning AMIs of 2026-10 have; it brings the plugin for NCCL too.
VERSION = "1.50.0"
SITE = "https://efa-installer.amazonaws.com"
FINGERPRINT = "4E9091BCBB97A96B26B15E59A05480B1DD2D3CCC"
NAME = f"aws-efa-installer-{VERSION}.tar.gz"
INSTALLER = Signed(
    NAME, f"{SITE}/{NAME}", f"{SITE}/{NAME}.sig", f"{SITE}/aws-efa-installer.key", FINGERPRINT
)
# p5en enumerates its devices late.
LATE_SECONDS, STEP_SECONDS = 15.0, 3.0
UVERBS = "/dev/infiniband"


def prepare(work: Work) -> StageResult:
    """EFA as NCCL wants to find it; how many devices there are is judged by the validation."""
    changed = False
    if work.host.which("fi_info") is None or not _module_there(work):
        _install(work)
        changed = True
    changed = _loaded(work) or changed
    wanted = work.settings.count("fabric.interfaces") or 1

    def too_few() -> str | None:
        found = len(network.ports(work, "efa"))
        return None if found >= wanted else f"{found} of {wanted} devices"

    late = work.wait(too_few, STEP_SECONDS, LATE_SECONDS)
    words = late or f"{len(network.ports(work, 'efa'))} devices"
    if not late and not any(n.startswith("uverbs") for n in work.host.names(UVERBS)):
        return config(f"{words}, but nothing in {UVERBS}", "load ib_uverbs in the image")
    return ok(f"EFA: {words}, {_notes(work)}", changed)


def _notes(work: Work) -> str:
    """The parts that speed it up, where they are."""
    plugin = any(
        name.startswith("libnccl-net")
        for place in network.PLUGINS
        for name in work.host.names(place)
    )
    if not plugin and not work.settings.has("container"):
        work.warnings.append("no NCCL plugin for EFA: NCCL would fall back to TCP")
    copies = "gdrcopy" if "gdrdrv" in _modules(work) else "no gdrcopy (small messages are slower)"
    return f"NCCL plugin {'there' if plugin else 'absent'}, {copies}"


def _modules(work: Work) -> set[str]:
    return {line.split()[0] for line in (work.host.read("/proc/modules") or "").splitlines()}


def _module_there(work: Work) -> bool:
    """Whether this kernel has the module, loaded or not."""
    return "efa" in _modules(work) or work.run("modinfo", "efa", limit=10.0).ok


def _loaded(work: Work) -> bool:
    wanted = [name for name in ("ib_uverbs", "efa") if name not in _modules(work)]
    for name in wanted:
        done = work.run("modprobe", name, limit=30.0)
        if not done.ok:
            raise Halt(_not_loaded(work, name, done.says()))
    return bool(wanted)


def _not_loaded(work: Work, name: str, said: str) -> StageResult:
    """Mellanox's own modules replace those that efa was built against, and break it."""
    if work.host.which("ofed_info"):
        return config(
            f"{name} does not load beside Mellanox OFED: {said}",
            "take OFED out of the image: EFA is built against the kernel's own RDMA "
            "(github.com/amzn/amzn-drivers/issues/308)",
        )
    return config(
        f"{name} does not load: {said}", "build the efa module for this kernel in the image"
    )


def _install(work: Work) -> None:
    """AWS's installer, with AWS's signature on it. Raises Halt."""
    path = fetched.signed(work, INSTALLER, limit=120.0)
    work.must("unpack the installer", "tar", "-xzf", path, "-C", FOLDER, limit=60.0)
    # It looks for its packages in the folder that it is started in.
    script = 'cd "$0/aws-efa-installer" && exec ./efa_installer.sh -y'
    distro.wait(work, min(distro.LOCK_SECONDS, work.left() - 60.0))
    limit = max(1.0, work.left() - 20.0)
    done = work.run("bash", "-c", script, FOLDER, limit=limit, env=distro.QUIET)
    if not done.ok:
        raise Halt(having.failed("EFA was not installed", done, "use an image that has EFA"))
    if work.host.which("fi_info") is None:
        raise Halt(config("EFA's installer ended well, but there is no fi_info",
                          f"see {FOLDER}: {re.sub(r'.tar.gz$', '', NAME)}"))  # fmt: skip
