"""Persistence mode: the driver's state stays between processes, and CUDA starts fast."""

from __future__ import annotations

from gputier.node import smi
from gputier.node.result import Garbled, Wedged
from gputier.node.stages import StageResult, Work, ok

DAEMON = "nvidia-persistenced"


def run(work: Work) -> StageResult:
    """By its daemon, else by the driver itself; a driver without it is no reason to stop."""
    if _on(work):
        return ok("on already")
    work.run("systemctl", "enable", "--now", DAEMON, limit=30.0)
    if _on(work):
        return ok(f"on, by {DAEMON}", changed=True)
    done = work.run(smi.SMI, "-pm", "1", limit=60.0)
    if _on(work):
        return ok("on, by nvidia-smi", changed=True)
    # The validator warns of it too: CUDA only starts slower without.
    work.warnings.append(f"persistence mode stays off: nvidia-smi -pm 1: {done.says()}")
    return ok("off; this driver does not keep it on")


def _on(work: Work) -> bool:
    """Whether every GPU says so. Raises Wedged when the driver hangs."""
    fields = ("index", "persistence_mode")
    work.memory.pop(f"query gpu {','.join(fields)}", None)
    try:
        rows = smi.query(work, fields)
        return bool(rows) and all(smi.yes(row.get("persistence_mode")) for row in rows)
    except Wedged:
        raise
    except Garbled:
        return False
