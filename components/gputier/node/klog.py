"""The kernel log of this boot, and what in it explains a GPU that does not work.

journalctl knows boots; dmesg only has this one. Older boots must not count: a machine that was
repaired, or stopped and started on another host, is not what its old log says.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from gputier.node.engine import Context

JOURNAL = ("journalctl", "-k", "-b", "0", "--no-pager", "-o", "short-iso")


class Log(NamedTuple):
    """`text` is None when neither journalctl nor dmesg could be read; `source` says which."""

    text: str | None
    source: str


class Sign(NamedTuple):
    """A line that names a configuration cause."""

    pattern: str
    cause: str
    remedy: str
    source: str
    about_loading: bool = False


SIGNS = (
    Sign(
        r"Key was rejected by service|Loading of unsigned module",
        "Secure Boot refused the unsigned module",
        "enrol the key that signed the module, or switch Secure Boot off in the machine's settings",
        "https://github.com/NVIDIA/gpu-driver-container/issues/44",
        about_loading=True,
    ),
    Sign(
        r"not supported by open nvidia\.ko|requires use of the NVIDIA proprietary",
        "the open kernel module does not know this card",
        "use an image with the proprietary module (pre-Turing cards have no GSP)",
        "https://github.com/negativo17/nvidia-driver/issues/158",
    ),
    Sign(
        r"requires use of the NVIDIA open kernel modules|nvidia-open.*required",
        "the proprietary kernel module does not know this card",
        "use an image with the open module (Blackwell has no other)",
        "https://github.com/Start9Labs/start-technologies/pull/3465",
    ),
    Sign(
        r"NVRM:.*(?:legacy|not supported by the NVIDIA \d+)|driver will ignore this GPU",
        "this driver branch no longer knows the card",
        "use an image with an older driver branch",
        "https://github.com/anomixer/proxmox-vgpu-installer/issues/29",
    ),
)


def kernel(ctx: Context, again: bool = False) -> Log:
    """The log, read once; `again` reads it anew (the last step of a run)."""
    if again:
        ctx.memory.pop("klog", None)
    return ctx.once("klog", lambda: _kernel(ctx))


def _kernel(ctx: Context) -> Log:
    done = ctx.run(*JOURNAL, limit=15.0)
    if done.ok and _has_lines(done.out):
        return Log(this_boot(done.out), "journalctl -k -b 0")
    ring = ctx.run("dmesg", limit=10.0)
    if ring.ok and ring.out.strip():
        return Log(ring.out, "dmesg")
    if done.ok:
        return Log("", "journalctl -k -b 0")
    return Log(None, f"journalctl: {done.says()}; dmesg: {ring.says()}")


def _has_lines(text: str) -> bool:
    return any(line.strip() and not line.startswith("-- ") for line in text.splitlines())


def this_boot(text: str) -> str:
    """What follows the last boot mark: some journalctl print earlier boots all the same."""
    return re.split(r"^-- (?:Boot [0-9a-f]+|Reboot) --.*$", text, flags=re.MULTILINE)[-1]


def signs(text: str) -> list[tuple[Sign, str]]:
    """Each configuration cause that the log names, with its line."""
    found: list[tuple[Sign, str]] = []
    for sign in SIGNS:
        line = next((row for row in text.splitlines() if re.search(sign.pattern, row)), None)
        if line:
            found.append((sign, line.strip()))
    return found
