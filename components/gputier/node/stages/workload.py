"""The workload itself, started only behind the open gate."""

from __future__ import annotations

import re

from gputier.node import having, proxies, registry
from gputier.node.cloud import identity
from gputier.node.stages import Halt, StageResult, Work, config, inconclusive, ok
from gputier.node.units import WORKLOAD

# How long a workload has to stay up to count as started: one that cannot start ends at once.
SEEN_SECONDS, STEP_SECONDS = 6.0, 2.0
ASKED = "LoadState,ActiveState,SubState,Result,ExecMainStatus,ExecMainStartTimestampMonotonic"
SEE = f"see journalctl -u {WORKLOAD}"


def run(work: Work) -> StageResult:
    """Its image pulled, its unit started, and seen to stay up."""
    before = _state(work)
    if before.get("LoadState") != "loaded":
        return config(f"there is no {WORKLOAD}", "run the stage `services` first")
    if before.get("ActiveState") == "active":
        return ok(f"{WORKLOAD} runs")
    if _ended_well(before):
        # In this boot it ran to its end already: running again is for whoever asks for it.
        return ok(f"{WORKLOAD} has run to its end in this boot")
    pulled = _pulled(work)
    work.must("start the workload", "systemctl", "start", WORKLOAD, limit=work.left())
    return _seen(work, pulled)


def _seen(work: Work, pulled: str) -> StageResult:
    """What became of it in the first seconds."""
    until = work.host.monotonic() + SEEN_SECONDS
    while True:
        state = _state(work)
        shown = f"{state.get('ActiveState')} ({state.get('SubState')})"
        if state.get("ActiveState") == "failed" or state.get("SubState") == "auto-restart":
            words = f"{state.get('Result')}, exit status {state.get('ExecMainStatus')}"
            return config(f"{WORKLOAD} does not stay up: {words}", SEE)
        if _ended_well(state):
            return ok(f"{WORKLOAD} ran to its end{pulled}", True)
        if state.get("ActiveState") == "inactive":
            return inconclusive(f"{WORKLOAD} was not started: is the gate open?", SEE)
        if work.host.monotonic() + STEP_SECONDS > until:
            return ok(f"{WORKLOAD} is {shown}{pulled}", True)
        work.host.sleep(STEP_SECONDS)


def _state(work: Work) -> dict[str, str]:
    done = work.run("systemctl", "show", "-p", ASKED, WORKLOAD, limit=15.0)
    return dict(line.split("=", 1) for line in done.out.splitlines() if "=" in line)


def _ended_well(state: dict[str, str]) -> bool:
    began = state.get("ExecMainStartTimestampMonotonic", "0") not in ("", "0")
    return began and state.get("ActiveState") == "inactive" and state.get("Result") == "success"


def _pulled(work: Work) -> str:
    """Have the image; words for what was done. Raises Halt.

    One that is there is not pulled again: a tag that moved must not change a machine that reboots.
    """
    image = work.settings.text("container.image")
    if image is None:
        return ""
    if work.run("docker", "image", "inspect", "--format", "{{.Id}}", image, limit=60.0).ok:
        return f", {image} is there"
    env = registry.login(work, image, identity.load(work.host))
    found = {**proxies.variables(work.settings), **env}
    done = work.run("docker", "pull", "--quiet", image, limit=max(1.0, work.left() - 30), env=found)
    if done.ok:
        return f", {image} pulled"
    denied = re.search(
        r"denied|unauthorized|authentication required|no basic auth", done.text, re.I
    )
    remedy = "let the machine's role pull from that registry" if denied else "see the image's name"
    raise Halt(having.failed(f"{image} was not pulled", done, remedy))
