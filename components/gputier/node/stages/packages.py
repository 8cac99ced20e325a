"""The package manager is ours: nothing upgrades behind our back, kernel and driver stay.

An unattended upgrade that replaces the driver's library under a loaded module breaks the GPUs days
later (github.com/lyulyul/shine-cluster/issues/30), and one that brings a kernel takes the module
away at the next boot (github.com/PierreBeucher/cloudypad/issues/179).
"""

from __future__ import annotations

import re

from gputier.node import distro
from gputier.node.stages import StageResult, Work, ok

# Units that install or refresh by themselves, of both families; those not there are left out.
UPGRADERS = (
    "apt-daily.timer",
    "apt-daily-upgrade.timer",
    "apt-daily.service",
    "apt-daily-upgrade.service",
    "unattended-upgrades.service",
    "dnf-automatic.timer",
    "dnf-automatic.service",
    "dnf-automatic-install.timer",
    "dnf-automatic-install.service",
    "dnf-makecache.timer",
    "dnf-makecache.service",
    "packagekit.service",
)
APT_CONF = "/etc/apt/apt.conf.d/99-gputier"
APT_TEXT = """\
// Nothing is installed unattended here, and whoever installs waits for the lock.
APT::Periodic::Enable "0";
APT::Periodic::Update-Package-Lists "0";
APT::Periodic::Unattended-Upgrade "0";
DPkg::Lock::Timeout "600";
Unattended-Upgrade::Package-Blacklist { "nvidia-.*"; "libnvidia-.*"; "cuda-.*"; };
"""
# Held where installed: a new kernel has no module for the driver, a new driver no Fabric Manager.
APT_HELD = (
    "linux-image-*",
    "linux-headers-*",
    "linux-modules-*",
    "linux-aws*",
    "linux-gcp*",
    "linux-azure*",
    "linux-generic*",
    "linux-virtual*",
    "linux-kvm*",
    "nvidia-*",
    "libnvidia-*",
    "cuda-drivers*",
    "cuda-compat-*",
    "xserver-xorg-video-nvidia-*",
)
# An exclusion of dnf forbids installing too: nothing in it that a workload may want to add.
DNF_CONF = "/etc/dnf/dnf.conf"
DNF_HELD = (
    "kernel",
    "kernel-core",
    "kernel-modules*",
    "kernel6*",
    "kmod-nvidia*",
    "nvidia-driver*",
    "nvidia-open*",
    "nvidia-kmod*",
    "nvidia-fabric*",
    "nvidia-persistenced*",
    "nvidia-imex*",
    "nvlsm*",
    "libnvidia-ml*",
    "libnvidia-cfg*",
    "cuda-drivers*",
    "cuda-compat*",
)


def run(work: Work) -> StageResult:
    """Upgraders off, the lock free, what was cut off finished, kernel and driver held."""
    family = distro.family(work)
    changed = _upgraders_off(work)
    if family == distro.APT:
        changed = work.put(APT_CONF, APT_TEXT) or changed
    distro.wait(work, min(distro.LOCK_SECONDS, work.left() - 30.0))
    repaired = distro.repair(work)
    held = hold(work)
    words = ["nothing upgrades unattended", f"{held} packages newly held" if held else "held"]
    if repaired:
        words.append("an interrupted dpkg was finished")
    return ok(", ".join(words), changed or repaired or held > 0)


def _upgraders_off(work: Work) -> bool:
    """Stop and mask them; whether one was on. Not waited for: the lock says when it is done."""
    listed = work.run(
        "systemctl", "list-unit-files", "--no-legend", "--no-pager", *UPGRADERS, limit=20.0
    )
    if not listed.ok and not listed.out.strip():
        # Also what systemctl says where none of them is installed.
        return False
    rows = [line.split() for line in listed.out.splitlines()]
    units = [row[0] for row in rows if len(row) >= 2 and row[0] in UPGRADERS and row[1] != "masked"]
    if not units:
        return False
    work.run("systemctl", "stop", "--no-block", *units, limit=20.0)
    done = work.run("systemctl", "mask", *units, limit=30.0)
    if not done.ok:
        # A unit file of somebody's own in /etc cannot be masked. apt's own settings and the wait
        # for the lock still hold.
        work.warnings.append(f"not masked: {', '.join(units)}: {done.how}: {done.says()}")
    return done.ok


def hold(work: Work) -> int:
    """Hold kernel and driver at their versions; how many packages were not held before.

    Runs again behind the driver's installation, for what that brought.
    """
    if distro.family(work) == distro.DNF:
        return len(DNF_HELD) if _exclude(work) else 0
    have = set(distro.installed(work, *APT_HELD))
    held = work.must("list held packages", "apt-mark", "showhold", limit=30.0)
    missing = sorted(have - {line.strip().split(":")[0] for line in held.out.splitlines()})
    if missing:
        work.must("hold kernel and driver", "apt-mark", "hold", *missing, limit=60.0)
    return len(missing)


def _exclude(work: Work) -> bool:
    """The exclusion in dnf's own file, beside what the image excludes already."""
    rows = (work.host.read(DNF_CONF) or "[main]\n").splitlines()
    at = next((i for i, row in enumerate(rows) if re.match(r"\s*exclude(?:pkgs)?\s*=", row)), None)
    names = re.split(r"[\s,]+", rows[at].partition("=")[2].strip()) if at is not None else []
    missing = [name for name in DNF_HELD if name not in names]
    if not missing:
        return False
    line = "excludepkgs=" + ",".join([*filter(None, names), *missing])
    if at is not None:
        rows[at] = line
    else:
        main = next((i for i, row in enumerate(rows) if row.strip() == "[main]"), None)
        rows = (
            [*rows, "[main]", line]
            if main is None
            else [*rows[: main + 1], line, *rows[main + 1 :]]
        )
    return work.put(DNF_CONF, "\n".join(rows) + "\n")
