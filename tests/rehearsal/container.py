"""The quick tier: the image as a systemd container, booted in about a second and a half.

Everything that a start needs (the overlay, the processes) hangs on one process in namespaces of
its own: when that is gone, however it went, all of it is gone. A reboot inside is a reboot: the
container is started again on the same root.
"""

from __future__ import annotations

import shutil
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

from tests.rehearsal.image import Image
from tests.rehearsal.layer import Layer
from tests.rehearsal.needs import NAMESPACES, PATH
from tests.rehearsal.network import Network

STOP_SECONDS = 10.0
EVERY_SECONDS = 0.1
# systemd-nspawn clears a folder below /run/systemd at a reboot, and refuses where /run is a disk.
# It ends with 133 when the machine inside reboots; each boot counts its time from its own start.
START = """
set -eu
mkdir -p /run/systemd
mount -t tmpfs tmpfs /run/systemd
mount -t overlay overlay -o "lowerdir=$LOWER,upperdir=$PLACE/up,workdir=$PLACE/work" "$PLACE/root"
ended=133
while [ "$ended" = 133 ]; do
  up=$(cut -d. -f1 /proc/uptime)
  ended=0
  unshare --time --boottime "-$up" --monotonic "-$up" --fork --kill-child \
    systemd-nspawn --register=no --keep-unit --network-namespace-path=/proc/self/ns/net \
    --resolv-conf=off --timezone=off --link-journal=no --console=read-only --boot \
    --directory="$PLACE/root" || ended=$?
done
exit "$ended"
"""


class Container:
    """One rehearsed machine as a container."""

    tier = "container"

    def __init__(self, image: Image, layer: Layer, network: Network, place: Path) -> None:
        self.place, self.network = place, network
        for name in ("up", "work", "root"):
            (place / name).mkdir(parents=True)
        adapted(layer).write(place / "up")
        self._console = (place / "console.log").open("wb")
        self.started = time.monotonic()
        self._process = network.call(lambda: self._start(image))

    def _start(self, image: Image) -> subprocess.Popen[bytes]:
        """Runs in the network's own thread: the machine lives in its namespace, and is killed
        with it."""
        return subprocess.Popen(
            [*NAMESPACES, "sh", "-c", START],
            env={
                "PATH": PATH,
                "LOWER": str(image.tree),
                "PLACE": str(self.place),
                "SYSTEMD_NSPAWN_UNIFIED_HIERARCHY": "1",
            },
            stdin=subprocess.DEVNULL,
            stdout=self._console,
            stderr=self._console,
        )

    # --- what a test asks -----------------------------------------------------------------------

    @property
    def seconds(self) -> float:
        return time.monotonic() - self.started

    @property
    def runs(self) -> bool:
        return self._process.poll() is None

    def console(self) -> str:
        return (self.place / "console.log").read_text(encoding="utf-8", errors="replace")

    def read(self, path: str) -> str | None:
        """A file of the machine's disk, None when it is not there."""
        try:
            return (self.place / "up" / path.lstrip("/")).read_text(encoding="utf-8")
        except (FileNotFoundError, NotADirectoryError):
            return None

    def write(self, path: str, text: str) -> None:
        """Put a file into the running machine (through its own root: an overlay's upper folder
        must not be changed from outside)."""
        target = self._inside() / path.lstrip("/")
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text, encoding="utf-8")

    def seen(self, path: str) -> str | None:
        """A file as the running machine sees it, /run included."""
        try:
            return (self._inside() / path.lstrip("/")).read_text(encoding="utf-8")
        except OSError:
            return None

    def run(self, *argv: str, limit: float = 30.0) -> str:
        """The output of a command on the machine."""
        init = self._init()
        assert init, "the machine is not up"
        done = subprocess.run(
            ["nsenter", "--target", str(init), "--all", "--", *argv],
            env={"PATH": PATH},
            capture_output=True,
            text=True,
            timeout=limit,
            check=False,
        )
        return done.stdout + done.stderr

    def wait(self, ask: Callable[[], bool], limit: float) -> bool:
        """Whether `ask` came true within `limit` seconds, while the machine ran."""
        until = time.monotonic() + limit
        while time.monotonic() < until:
            if ask():
                return True
            if not self.runs:
                return ask()
            time.sleep(EVERY_SECONDS)
        return False

    def stop(self) -> None:
        """End everything, and remove what it wrote."""
        if self.runs:
            self._process.send_signal(signal.SIGKILL)
        self._process.wait(STOP_SECONDS)
        self._console.close()

    def remove(self) -> None:
        self.stop()
        shutil.rmtree(self.place, ignore_errors=True)

    # --- its processes --------------------------------------------------------------------------

    def _inside(self) -> Path:
        init = self._init()
        if init is None:
            raise FileNotFoundError("the machine is not up")
        return Path(f"/proc/{init}/root")

    def _init(self) -> int | None:
        """The container's PID 1: the first systemd below us."""
        waiting = [self._process.pid]
        while waiting:
            pid = waiting.pop()
            try:
                task = f"/proc/{pid}/task/{pid}"
                if Path(f"{task}/comm").read_text(encoding="utf-8").strip() == "systemd":
                    return pid
                waiting += map(int, Path(f"{task}/children").read_text(encoding="utf-8").split())
            except (OSError, ValueError):
                continue
        return None


def adapted(layer: Layer) -> Layer:
    """The layer with what only a container needs."""
    # cloud-init looks for hardware that a container has not; the policy says to start all the same.
    layer.put("/etc/cloud/ds-identify.cfg", "policy: enabled\n")
    layer.link(
        "/etc/systemd/system/multi-user.target.wants/cloud-init.target",
        "/lib/systemd/system/cloud-init.target",
    )
    # No link ever comes up here: it would wait two minutes for one.
    layer.link("/etc/systemd/system/systemd-networkd-wait-online.service", "/dev/null")
    return layer


def boots_of(machine: Container) -> int:
    """How often it has started."""
    return int(machine.read("/var/lib/rehearsal/boots") or 0)
