"""The distribution's packages: who holds the lock, what is installed, install and hold.

Ubuntu and Debian by apt, Amazon Linux and Rocky by dnf. The lock is waited for, never raced: tries
that are seconds apart all fall into the minutes of one unattended upgrade
(github.com/danvk/mapsnap/issues/443).
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from gputier.node.host import Done
from gputier.node.stages import Halt, StageResult, Work, config, inconclusive

APT, DNF = "apt", "dnf"
APT_LOCKS = (
    "/var/lib/dpkg/lock-frontend",
    "/var/lib/dpkg/lock",
    "/var/lib/apt/lists/lock",
    "/var/cache/apt/archives/lock",
)
RPM_LOCKS = ("/usr/lib/sysimage/rpm/.rpm.lock", "/var/lib/rpm/.rpm.lock")
DNF_PIDS = ("/var/cache/dnf/metadata_lock.pid", "/var/lib/dnf/rpmdb_lock.pid", "/run/dnf.pid")
LOCK_SECONDS = 600.0
EVERY_SECONDS = 2.0
QUIET = {"DEBIAN_FRONTEND": "noninteractive", "NEEDRESTART_MODE": "l", "UCF_FORCE_CONFFOLD": "1"}
# The name cannot be found, nobody answers, or the answer breaks off: another try may well succeed.
UNREACHED = re.compile(
    r"could not resolve|temporary failure|timed? ?out|connection refused|unable to connect"
    r"|cannot initiate the connection|network is unreachable|no route to host|connection failed"
    r"|curl error \((?:6|7|28|35|52|56)\)|cannot download repomd",
    re.IGNORECASE,
)


def family(work: Work) -> str:
    """Which package manager rules here. Raises Halt (config) where there is neither."""
    if work.host.which("apt-get"):
        return APT
    if work.host.which("dnf"):
        return DNF
    raise Halt(config("neither apt-get nor dnf is on this machine", "use an image that has one"))


# --- the lock -----------------------------------------------------------------------------------


def holder(work: Work) -> str | None:
    """Which process holds the package manager's lock, in words; None when nobody does."""
    if family(work) == APT:
        return _locker(work, APT_LOCKS)
    for path in DNF_PIDS:
        pid = (work.host.read(path) or "").strip()
        name = (work.host.read(f"/proc/{pid}/comm") or "").strip() if pid.isdigit() else ""
        # The file outlives its process, and the number may be another's by now.
        if re.match(r"^(?:dnf|yum|rpm|packagekitd|microdnf)", name):
            return f"{name} (process {pid}) holds {path}"
    return _locker(work, RPM_LOCKS)


def _locker(work: Work, paths: Iterable[str]) -> str | None:
    """The kernel's list of locks has the inode, so nobody has to be asked with a tool."""
    present = [path for path in paths if work.host.exists(path)]
    if not present:
        return None
    done = work.run("stat", "-c", "%i %n", *present, limit=10.0)
    inodes = dict(line.split(" ", 1) for line in done.out.splitlines() if " " in line)
    for line in (work.host.read("/proc/locks") or "").splitlines():
        cells = line.split()
        # A process that waits for the lock is listed too, behind an arrow.
        if len(cells) < 6 or "->" in cells or cells[1] == "OFDLCK":
            continue
        path = inodes.get(cells[5].rsplit(":", 1)[-1])
        if path:
            name = (work.host.read(f"/proc/{cells[4]}/comm") or "").strip() or "a process"
            return f"{name} (process {cells[4]}) holds {path}"
    return None


def wait(work: Work, limit: float = LOCK_SECONDS) -> None:
    """Until nobody holds the lock. Raises Halt (inconclusive) with the holder's name."""
    trouble = work.wait(lambda: holder(work), EVERY_SECONDS, limit)
    if trouble:
        raise Halt(
            inconclusive(
                f"the package manager is still locked: {trouble}",
                "see what that process does; images with unattended upgrades off start faster",
            )
        )


# --- what is installed --------------------------------------------------------------------------


def installed(work: Work, *patterns: str) -> dict[str, str]:
    """Version by name of the installed packages that these names or patterns fit."""
    if family(work) == APT:
        # Its exit status is 1 as soon as one pattern fits nothing.
        done = work.run(
            "dpkg-query", "-W", "-f", "${db:Status-Abbrev}|${Package}|${Version}\\n",
            *patterns, limit=30.0,
        )  # fmt: skip
        rows = (line.split("|") for line in done.out.splitlines() if line.count("|") == 2)
        return {row[1]: row[2] for row in rows if row[0].strip()[1:2] == "i"}
    done = work.run(
        "rpm", "-qa", "--qf", "%{NAME}|%|EPOCH?{%{EPOCH}:}|%{VERSION}-%{RELEASE}\\n",
        *patterns, limit=30.0,
    )  # fmt: skip
    pairs = (line.split("|", 1) for line in done.out.splitlines() if "|" in line)
    return {name: version.replace("|", "") for name, version in pairs}


def candidates(work: Work, name: str) -> tuple[str, ...]:
    """The versions of a package that the repositories offer, as the package manager writes them."""
    if family(work) == APT:
        done = work.run("apt-cache", "madison", name, limit=30.0)
        rows = [line.split("|") for line in done.out.splitlines()]
        return tuple(dict.fromkeys(row[1].strip() for row in rows if len(row) >= 3))
    done = work.run(
        "dnf", "-q", "repoquery", "--disableexcludes=all", "--showduplicates",
        "--qf", "%{version}-%{release}\\n", name, limit=120.0,
    )  # fmt: skip
    return tuple(dict.fromkeys(line.strip() for line in done.out.splitlines() if line.strip()))


def upstream(version: str) -> str:
    """`580.95.05-0ubuntu0.24.04.2` or `3:580.95.05-1.el9` → 580.95.05."""
    return re.sub(r"^\d+:", "", version).split("-", 1)[0]


# --- changes ------------------------------------------------------------------------------------


def repair(work: Work) -> bool:
    """Finish what a cut-off dpkg left half done; whether there was anything."""
    if family(work) != APT or not work.run("dpkg", "--audit", limit=60.0).out.strip():
        return False
    work.must("finish what dpkg began", "dpkg", "--force-confold", "--configure", "-a", env=QUIET)
    return True


def refresh(work: Work) -> None:
    """Fetch the package lists; lists that are there already may do, so failing is a warning."""
    argv = ("dnf", "-q", "makecache")
    if family(work) == APT:
        argv = ("apt-get", *_options(work), "-o", "Acquire::Retries=3", "update")
    done = work.run(*argv, limit=300.0, env=QUIET)
    if not done.ok:
        work.warnings.append(f"the package lists were not fetched: {done.how}: {done.says()}")


def install(work: Work, *packages: str, held: bool = False, limit: float = 1200.0) -> Done:
    """Install packages, with `=version` (apt) or `-version` (dnf) where one is meant.

    `held` lets packages change that are held. Raises Halt: inconclusive where the network or the
    time failed, config where the package manager refused.
    """
    wait(work)
    repair(work)
    if family(work) == APT:
        extra = ("--allow-change-held-packages", "--allow-downgrades") if held else ()
        argv = ("apt-get", *_options(work), "-o", "Acquire::Retries=3", "-y", "-q",
                "--no-install-recommends", *extra, "install", *packages)  # fmt: skip
    else:
        argv = ("dnf", "-y", "-q", *(("--disableexcludes=main",) if held else ()), "install",
                *packages)  # fmt: skip
    done = work.run(*argv, limit=limit, env=QUIET)
    if not done.ok:
        raise Halt(_refused(done, packages))
    return done


def _refused(done: Done, packages: tuple[str, ...]) -> StageResult:
    """What the package manager complained of: its last words say it, not its first."""
    lines = [line.strip() for line in done.text.splitlines() if line.strip()]
    errors = [line for line in lines if re.match(r"^(?:E:|Err|Error|dpkg: error)", line)]
    said = " / ".join((errors or lines)[-3:])[:400] or done.how
    words = f"{', '.join(packages)} cannot be installed: {said}"
    if done.state == "timeout":
        return inconclusive(f"{', '.join(packages)} not installed: {done.how}: {said}")
    if UNREACHED.search(done.text) and not re.search(r"\b404\b", done.text):
        return inconclusive(words, "see whether the repositories can be reached from the subnet")
    return config(words, "name packages and versions that the image's repositories have")


def _options(work: Work) -> tuple[str, ...]:
    seconds = max(1, int(min(LOCK_SECONDS, work.left())))
    return ("-o", f"DPkg::Lock::Timeout={seconds}", "-o", "Dpkg::Options::=--force-confold")
