"""The host around the GPUs: its size, and the hygiene that only ever warns."""

from __future__ import annotations

import re
from collections.abc import Callable

from gputier.node import thresholds
from gputier.node.engine import Check, Context
from gputier.node.expect import Expectation
from gputier.node.result import (
    CONFIG,
    INCONCLUSIVE,
    WARNING,
    Finding,
    healthy,
    inconclusive,
    unsupported,
    warning,
)

HYGIENE = "github.com/facebookresearch/gcm checks storage, dstate, zombie"


def vcpus(ctx: Context) -> Finding:
    """vCPUs online, from /sys, /proc/cpuinfo or nproc."""
    wanted = ctx.expect.count("host.vcpus") or 0
    found, source = online(ctx)
    expected = f"{wanted} vCPUs"
    if found is None:
        return inconclusive("neither /sys, /proc/cpuinfo nor nproc tells the vCPUs", expected)
    words = f"{found} vCPUs ({source})"
    return Finding(CONFIG, words, expected) if found < wanted else healthy(words, expected)


def online(ctx: Context) -> tuple[int | None, str]:
    """vCPUs that are online, and what tells so; None when nothing does."""
    told = (ctx.host.read("/sys/devices/system/cpu/online") or "").strip()
    if re.match(r"^\d+(?:-\d+)?(?:,\d+(?:-\d+)?)*$", told):
        return sum(map(_span, told.split(","))), "/sys/devices/system/cpu/online"
    listed = re.findall(r"^processor\s*:", ctx.host.read("/proc/cpuinfo") or "", re.M)
    if listed:
        return len(listed), "/proc/cpuinfo"
    done = ctx.run("nproc", "--all", limit=5.0)
    text = done.out.strip()
    return (int(text), "nproc") if done.ok and text.isdigit() else (None, "")


def _span(text: str) -> int:
    first, _, last = text.partition("-")
    return int(last or first) - int(first) + 1


def memory(ctx: Context) -> Finding:
    """MemTotal; the kernel and the firmware keep a part of what is sold."""
    wanted = ctx.expect.number("host.memory_gib") or 0.0
    room = thresholds.HOST_MEMORY_ROOM
    expected = f"{wanted:.0f} GiB − {room:.0%}"
    found = re.search(r"^MemTotal:\s+(\d+) kB", ctx.host.read("/proc/meminfo") or "", re.M)
    if found:
        gib = int(found[1]) / 2**20
    else:
        done = ctx.run("free", "-b", limit=5.0)
        total = re.search(r"^Mem:\s+(\d+)", done.out, re.M)
        if total is None:
            return inconclusive("neither /proc/meminfo nor free tells the memory", expected)
        gib = int(total[1]) / 2**30
    words = f"{gib:.0f} GiB"
    # Small machines lose a larger share: half a GiB more for firmware and crash kernel.
    short = gib < wanted * (1 - room) - 0.5
    return Finding(CONFIG, words, expected) if short else healthy(words, expected)


def clock(ctx: Context) -> Finding:
    """A clock that is not synchronised breaks signatures, logs and leases."""
    if ctx.host.exists("/run/systemd/timesync/synchronized"):
        return healthy("synchronised")
    done = ctx.run("timedatectl", "show", "-p", "NTPSynchronized", "--value", limit=5.0)
    text = done.out.strip().lower()
    if done.ok and text in ("yes", "no"):
        return healthy("synchronised") if text == "yes" else warning("not synchronised")
    chrony = ctx.run("chronyc", "-n", "tracking", limit=5.0)
    status = re.search(r"^Leap status\s*:\s*(.+)$", chrony.out, re.M)
    if status:
        good = status[1].strip() == "Normal"
        return healthy("synchronised") if good else warning(f"chrony: {status[1].strip()}")
    return unsupported("neither timedatectl nor chronyc tells")


def disk_space(ctx: Context) -> Finding:
    """Room on the root disk for logs and reports."""
    done = ctx.run("df", "-P", "-k", "/", limit=5.0)
    found = re.search(r"^\S+\s+(\d+)\s+\d+\s+(\d+)\s+(\d+)%\s+/\s*$", done.out, re.M)
    if not done.ok or found is None:
        return unsupported(f"df: {done.says()}")
    free, used = int(found[2]) / 2**20, int(found[3])
    words = f"{free:.1f} GiB free, {used} % used"
    return warning(words, "≥ 2 GiB free") if free < 2 or used >= 97 else healthy(words)


def stuck(ctx: Context) -> Finding:
    """Processes in state D (waiting for a device that does not answer) and zombies."""
    done = ctx.run("ps", "-eo", "stat=,comm=", limit=5.0)
    if not done.ok:
        return unsupported(f"ps: {done.says()}")
    rows = [line.split(None, 1) for line in done.out.splitlines() if line.strip()]
    hung = [row[-1] for row in rows if row[0].startswith("D")]
    dead = [row[-1] for row in rows if row[0].startswith("Z")]
    if hung or len(dead) > 20:
        return warning(f"state D: {', '.join(hung[:5]) or 'none'}; {len(dead)} zombies", "none")
    return healthy(f"none in state D, {len(dead)} zombies")


def container(ctx: Context) -> Finding:
    """nvidia-smi inside a container sees the GPUs, as a container of the plan will."""
    image = ctx.expect.text("container.image") or ""
    expected = f"nvidia-smi -L works in {image}"
    for tool in ("docker", "nerdctl", "podman"):
        gpus = ("--device", "nvidia.com/gpu=all") if tool == "podman" else ("--gpus", "all")
        done = ctx.run(tool, "run", "--rm", *gpus, image, "nvidia-smi", "-L", limit=60.0)
        if done.state == "missing":
            continue
        if done.state == "timeout":
            return inconclusive(f"{tool}: {done.how}", expected)
        if not done.ok or "UUID" not in done.out:
            return Finding(CONFIG, f"{tool}: {done.says()}", expected)
        seen = done.out.count("(UUID: GPU-")
        wanted = ctx.expect.count("gpu.count")
        if wanted is not None and seen < wanted:
            return Finding(CONFIG, f"{tool}: {seen} GPUs in the container", f"{wanted} GPUs")
        return healthy(f"{tool}: {seen} GPUs", expected)
    return Finding(CONFIG, "none of docker, nerdctl, podman is installed", expected)


def _lacks(path: str, words: str) -> Callable[[Expectation], str | None]:
    def check(expect: Expectation) -> str | None:
        return None if expect.has(path) else words

    return check


CHECKS = (
    Check("vcpus", "vCPUs", vcpus, "host",
          {CONFIG: "this is another instance type than planned",
           INCONCLUSIVE: "see why /sys and /proc are not readable"},
          "the plan", applies=_lacks("host.vcpus", "the plan names no vCPUs")),
    Check("host-memory", "host memory", memory, "host",
          {CONFIG: "this is another instance type than planned",
           INCONCLUSIVE: "see why /proc/meminfo is not readable"},
          "the plan", applies=_lacks("host.memory_gib", "the plan names no host memory")),
    Check("clock-sync", "clock", clock, "host", {WARNING: "start chrony or systemd-timesyncd"},
          HYGIENE, advisory=True),
    Check("disk-space", "root disk", disk_space, "host", {WARNING: "use a larger root volume"},
          HYGIENE, advisory=True),
    Check("stuck-processes", "stuck processes", stuck, "host",
          {WARNING: "see what the process waits for"}, HYGIENE, advisory=True),
    Check("container", "GPU in a container", container, "software",
          {CONFIG: "install nvidia-container-toolkit and its CDI specification",
           INCONCLUSIVE: "see why the container engine does not answer"},
          "github.com/NVIDIA/gpu-operator toolkit validation", seconds=90.0, needs=("driver",),
          applies=_lacks("container.image", "the plan names no container")),
)  # fmt: skip
