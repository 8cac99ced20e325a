"""What a rehearsal needs of the machine it runs on: root, packages, mounts. Asked once.

A machine that cannot is no failure of the product, so the tests are skipped with the reason; in
continuous integration (`CI` is set) it is a failure, for there nobody would miss what never ran.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from functools import cache
from pathlib import Path

#: Command that shows the package is there, and the Debian or Ubuntu package that has it.
PACKAGES = {
    "mmdebstrap": "mmdebstrap",
    "arch-test": "arch-test",
    "mke2fs": "e2fsprogs",
    "busybox": "busybox-static",
    "cpio": "cpio",
    "xz": "xz-utils",
    "zstd": "zstd",
    "ip": "iproute2",
    "systemd-nspawn": "systemd-container",
    "qemu-system-x86_64": "qemu-system-x86",
    "qemu-img": "qemu-utils",
    "setpriv": "util-linux",
    "unshare": "util-linux",
    "cc": "gcc",
}
KEYRING = Path("/usr/share/keyrings/debian-archive-keyring.gpg")
#: Packages that have no command to be known by.
FILES = {KEYRING: "debian-archive-keyring", Path("/usr/include/stdlib.h"): "libc6-dev"}
PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
APT_SECONDS = 600
#: Before a command: killed with the thread that started it, and its mounts and children with it.
NAMESPACES = (
    *("setpriv", "--pdeathsig", "KILL", "unshare", "--mount", "--propagation", "private"),
    *("--pid", "--fork", "--kill-child", "--mount-proc"),
)


class CannotRehearse(Exception):
    """This machine cannot run a rehearsal; the text says why and what would help."""


def say(text: str) -> None:
    """Progress, on the terminal itself: pytest and xdist keep standard error to themselves."""
    line = f"rehearsal: {text}\n"
    try:
        with Path("/dev/tty").open("w", encoding="utf-8") as terminal:
            terminal.write(line)
    except OSError:
        sys.__stderr__.write(line) if sys.__stderr__ else None


@contextmanager
def timed(what: str) -> Generator[None]:
    """Say what takes its time, before and after."""
    say(f"{what} …")
    started = time.monotonic()
    yield
    say(f"{what}: {time.monotonic() - started:.0f} s")


def cache_folder() -> Path:
    """Where images are kept between runs."""
    base = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    folder = Path(base) / "gputier" / "rehearsal"
    folder.mkdir(parents=True, exist_ok=True)
    return folder


@contextmanager
def alone(folder: Path, name: str) -> Generator[None]:
    """One process at a time: pytest's workers all want the same image."""
    with (folder / f".{name}.lock").open("w", encoding="utf-8") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _find(command: str) -> str | None:
    return shutil.which(command, path=PATH)


def missing(find: Callable[[str], str | None] = _find) -> list[str]:
    """Packages that are not installed."""
    wanted = {package for command, package in PACKAGES.items() if find(command) is None}
    return sorted(wanted | {package for file, package in FILES.items() if not file.exists()})


@cache
def ready() -> None:
    """Make sure that a rehearsal can run here, installing packages where that is possible.

    Raises `CannotRehearse`.
    """
    if sys.platform != "linux" or os.uname().machine != "x86_64":
        raise CannotRehearse("a rehearsal boots an x86-64 Linux; run it on such a machine")
    if os.geteuid() != 0:
        raise CannotRehearse("mounts and network namespaces need root; run it as root")
    with alone(cache_folder(), "packages"):
        lacking = missing()
        if lacking:
            _install(lacking)
    _mounts_work()


def _install(packages: list[str]) -> None:
    if shutil.which("apt-get", path=PATH) is None:
        raise CannotRehearse(
            f"{', '.join(packages)} are missing, and without apt-get they cannot be installed here"
        )
    environment = {**os.environ, "PATH": PATH, "DEBIAN_FRONTEND": "noninteractive"}
    wait = ["-o", "DPkg::Lock::Timeout=300"]
    steps = (["update"], ["install", "--yes", "--no-install-recommends", *packages])
    with timed(f"installing {', '.join(packages)}"):
        for step in steps:
            done = subprocess.run(
                ["apt-get", *wait, *step],
                env=environment,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                timeout=APT_SECONDS,
                check=False,
            )
            if done.returncode:
                tail = done.stderr.strip().splitlines()[-3:]
                raise CannotRehearse(f"apt-get {' '.join(step)} failed: {' / '.join(tail)}")
    if missing():
        raise CannotRehearse(f"still missing after apt-get install: {', '.join(missing())}")


def _mounts_work() -> None:
    """Root in a container that may not mount, or a root on overlay, cannot boot another one."""
    folder = cache_folder() / f".mount-{os.getpid()}"
    script = (
        'mkdir -p "$0"/low "$0"/up "$0"/work "$0"/root && '
        'mount -t overlay overlay -o "lowerdir=$0/low,upperdir=$0/up,workdir=$0/work" "$0"/root'
    )
    try:
        done = subprocess.run(
            [*NAMESPACES, "unshare", "--net", "--time", "--fork", "sh", "-c", script, str(folder)],
            env={**os.environ, "PATH": PATH},
            capture_output=True,
            text=True,
            timeout=30,
            check=False,
        )
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    if done.returncode:
        raise CannotRehearse(
            f"overlay mounts in namespaces of their own do not work here: {done.stderr.strip()}"
        )
