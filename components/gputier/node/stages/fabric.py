"""The fabric between machines: its modules, its devices, its plugin for NCCL.

What makes NCCL take the fabric is prepared here; that it really takes it is measured by the
validation. One kind of fabric has one function; a kind that is not here cannot be declared.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from gputier.node import distro, efa, gpudirect, having
from gputier.node.checks import network
from gputier.node.stages import Halt, StageResult, Work, config, ok

GIB, GIB_CONF = "/usr/local/gib", "/etc/ld.so.conf.d/gputier-gib.conf"
# Google's plugin for RoCE by architecture (docs.cloud.google.com/ai-hypercomputer, 2026-04).
GIB_PACKAGES = {"x86_64": "nccl-gib", "aarch64": "nccl-plugin-gib-arm64"}
MODULES = {
    "roce": ("ib_uverbs", "mlx5_ib"),
    "infiniband": ("ib_uverbs", "mlx5_ib", "ib_umad"),
    "erdma": ("ib_uverbs", "erdma"),
}
LATE_SECONDS, STEP_SECONDS = 30.0, 3.0


def run(work: Work) -> StageResult:
    """The plan's kind."""
    return KINDS[work.settings.fabric or ""](work)


def roce(work: Work) -> StageResult:
    """RoCE with Google's gIB plugin, which a container may bring instead."""
    found = verbs(work)
    if not found.ok or work.settings.text("cloud") != "gcp":
        return found
    changed = found.changed
    if not work.host.names(f"{GIB}/lib64"):
        if work.settings.has("container"):
            work.warnings.append("no gIB on the machine: the container has to bring it")
            return found
        _install_gib(work)
        changed = True
    # Found by the loader, so that nobody has to set LD_LIBRARY_PATH for it.
    if work.put(GIB_CONF, f"{GIB}/lib64\n"):
        work.must("tell the loader", "ldconfig", limit=60.0)
        changed = True
    return ok(f"{found.evidence}, gIB in {GIB}", changed)


def _install_gib(work: Work) -> None:
    machine = (work.run("uname", "-m", limit=10.0).out).strip()
    package = GIB_PACKAGES.get(machine, GIB_PACKAGES["x86_64"])
    if distro.family(work) != distro.APT:
        raise Halt(config("gIB is not in the image", f"put {package} into the image"))
    if not distro.candidates(work, package):
        gpudirect.artifact_registry(work, "gpudirect-gib-apt")
    having.packages(work, (package,), "gIB is not in the image", f"put {package} into the image")


def verbs(work: Work) -> StageResult:
    """RDMA devices with the kernel's own drivers; their number and state the validation judges."""
    kind = work.settings.fabric or ""
    loaded = {line.split()[0] for line in (work.host.read("/proc/modules") or "").splitlines()}
    wanted = [name for name in MODULES[kind] if name not in loaded]
    for name in wanted:
        done = work.run("modprobe", name, limit=30.0)
        if not done.ok:
            return config(
                f"{name} does not load: {done.says()}", f"use an image whose kernel has {name}"
            )
    count = work.settings.count("fabric.interfaces") or 1

    def too_few() -> str | None:
        found = len(network.ports(work, kind))
        return None if found >= count else f"{found} of {count} devices"

    late = work.wait(too_few, STEP_SECONDS, LATE_SECONDS)
    return ok(f"{kind}: {late or f'{len(network.ports(work, kind))} devices'}", bool(wanted))


KINDS: Mapping[str, Callable[[Work], StageResult]] = {
    "efa": efa.prepare,
    "gpudirect-tcpx": gpudirect.prepare,
    "gpudirect-tcpxo": gpudirect.prepare,
    "roce": roce,
    "infiniband": verbs,
    "erdma": verbs,
}
