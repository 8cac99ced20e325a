"""A machine to prepare: what is done to it stays done, until it is stopped or booted again.

`tests.node.machines` answers like a machine that is judged; this one changes. Its commands do to a
few dicts what the real ones do to disks and packages: a second run has something to look at.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from tests.node.stages.disk_model import AWS_DISK, EBS, GIB, Device, Disks, Point
from tests.node.stages.state import Answer

from gputier.node import expect, settings
from gputier.node.stages import Halt, StageResult, Work

__all__ = ["AWS_DISK", "EBS", "GIB", "Answer", "Box", "Device", "Point", "changes", "done", "work"]

READS = ("blkid", "dd", "mountpoint", "systemctl show", "systemctl is-active", "udevadm",
         "systemctl is-enabled", "systemctl cat", "xfs_info", "dumpe2fs", "dpkg-query", "rpm",
         "nvidia-ctk --version", "nvidia-ctk cdi list", "nvidia-smi", "docker info", "fi_info",
         "docker image", "stat", "dpkg --audit", "getent", "lspci", "@python")  # fmt: skip
COMMANDS = ("systemctl", "apt-get", "dpkg", "dpkg-query", "stat", "modprobe", "ln", "rm", "install",
            "getent", "chown", "systemd-analyze")  # fmt: skip


class Box(Disks):
    """A bare Ubuntu machine of AWS."""

    def __init__(self) -> None:
        super().__init__(COMMANDS)
        self.installed: dict[str, str] = {}
        # Packages of the repositories, and the commands that each brings.
        self.offers: dict[str, tuple[str, ...]] = {
            "mdadm": ("mdadm",),
            "xfsprogs": ("mkfs.xfs", "xfs_growfs", "xfs_info"),
            "e2fsprogs": ("mkfs.ext4", "resize2fs", "dumpe2fs"),
        }
        self.units: dict[str, dict[str, str]] = {}
        self.modules: set[str] = set()
        self.absent_modules: tuple[str, ...] = ()
        self.network = True

    def read(self, path: str) -> str | None:
        if path == "/proc/modules":
            return "".join(f"{name} 1 0 - Live 0x0\n" for name in sorted(self.modules))
        return super().read(path)

    # --- packages, modules ------------------------------------------------------------------

    def _dpkg_query(self, rest: list[str]) -> Answer:
        names = rest[rest.index("-f") + 2 :]
        rows = [f"ii |{n}|{self.installed[n]}\n" for n in names if n in self.installed]
        return (0 if len(rows) == len(names) else 1), "".join(rows), ""

    def _apt_get(self, rest: list[str]) -> Answer:
        if not self.network:
            return 100, "", "E: Failed to fetch http://…: Could not resolve 'archive.ubuntu.com'"
        if "install" not in rest:
            return 0, "", ""
        for name in rest[rest.index("install") + 1 :]:
            plain, _, version = name.partition("=")
            if plain not in self.offers:
                return 100, "", f"E: Unable to locate package {plain}"
            self.installed[plain] = version or "1.0"
            self.commands.update(self.offers[plain])
        return 0, "", ""

    def _modprobe(self, rest: list[str]) -> Answer:
        if rest[-1] in self.absent_modules:
            return 1, "", f"modprobe: FATAL: Module {rest[-1]} not found in directory /lib/modules"
        self.modules.add(rest[-1].replace("-", "_"))
        return 0, "", ""

    # --- systemd ----------------------------------------------------------------------------

    def _systemctl(self, rest: list[str]) -> Answer:
        verb, names = rest[0], [word for word in rest[1:] if not word.startswith("-")]
        if verb == "show":
            wanted = names[-1]
            cells = {"LoadState": "not-found", **self.units.get(wanted, {})}
            return 0, "".join(f"{key}={value}\n" for key, value in cells.items()), ""
        if verb == "is-active":
            state = self.units.get(names[-1], {}).get("ActiveState", "inactive")
            return (0 if state == "active" else 3), state + "\n", ""
        if verb == "is-enabled":
            state = self.units.get(names[-1], {}).get("UnitFileState", "disabled")
            return (0 if state == "enabled" else 1), state + "\n", ""
        for name in names:
            known = self.units.setdefault(name, {"LoadState": "loaded"})
            if verb in ("start", "restart", "reload-or-restart"):
                known["ActiveState"] = "active"
            elif verb in ("stop",):
                known["ActiveState"] = "inactive"
            elif verb in ("enable", "disable", "mask"):
                known["UnitFileState"] = f"{verb}d"
                if "--now" in rest:
                    known["ActiveState"] = "active" if verb == "enable" else "inactive"
        return 0, "", ""


def work(box: Box, seconds: float = 900.0, wanted: Any = None, **declared: Any) -> Work:
    """A stage's work on it with these settings."""
    text = json.dumps({"schema": settings.SCHEMA, "cloud": "aws", **declared})
    return Work(box, expect.read(json.dumps(wanted or {})), settings.read(text), seconds)


def done(run: Callable[[Work], StageResult], job: Work) -> StageResult:
    """How a stage ends, whether it returns or raises."""
    try:
        return run(job)
    except Halt as halt:
        return halt.result


def changes(box: Box, since: int = 0) -> list[str]:
    """What was done to the machine: its calls without those that only ask."""
    return [call for call in box.calls[since:] if not call.startswith(READS)]
