"""A machine to prepare: what is done to it stays done, until it is stopped or booted again.

`tests.node.machines` answers like a machine that is judged; this one changes. Its commands do to a
few dicts what the real ones do to disks and packages: a second run has something to look at.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any

from tests.node.stages.disk_model import AWS_DISK, EBS, GIB, Device, Point
from tests.node.stages.soft_model import Python, Software
from tests.node.stages.state import Answer

from gputier.node import expect, settings
from gputier.node.host import Host
from gputier.node.stages import Halt, StageResult, Work

__all__ = ["AWS_DISK", "EBS", "GIB", "Answer", "Box", "Device", "Point", "Python", "changes",
           "done", "work"]  # fmt: skip

READS = ("blkid", "dd", "mountpoint", "systemctl show", "systemctl is-active", "udevadm",
         "systemctl is-enabled", "systemctl cat", "xfs_info", "dumpe2fs", "dpkg-query", "rpm",
         "nvidia-ctk --version", "docker info", "docker image", "/usr/bin/docker image", "stat",
         "dpkg --audit", "getent", "apt-cache", "modinfo", "ip -o", "uname", "env -i",
         "/usr/bin/docker logs", "dpkg --print")  # fmt: skip


class Box(Software):
    """A bare Ubuntu machine of AWS."""

    def reboot(self) -> None:
        super().reboot()
        self.modules.discard("import_helper")
        self.files.pop("/dev/dmabuf_import_helper", None)
        for known in self.units.values():
            known["ActiveState"] = "inactive"
            known.pop("ExecMainStartTimestampMonotonic", None)


def work(box: Host, seconds: float = 900.0, wanted: Any = None, **declared: Any) -> Work:
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
    asked = re.compile(r"^\S*python3\S* -c ")
    return [c for c in box.calls[since:] if not c.startswith(READS) and not asked.match(c)]
