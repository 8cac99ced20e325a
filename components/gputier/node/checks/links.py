"""NVLink and NVSwitch: the fabric inside the machine."""

from __future__ import annotations

import re

from gputier.node import pci, smi, thresholds, versions
from gputier.node.checks.driver import CAUSES, card_of, version
from gputier.node.engine import Check, Context
from gputier.node.expect import Expectation
from gputier.node.result import (
    CONFIG,
    INCONCLUSIVE,
    REBOOT,
    USABLE,
    WARNING,
    Finding,
    Garbled,
    Wedged,
    healthy,
    inconclusive,
    unsupported,
    warning,
    worst,
)

SERVICE = "nvidia-fabricmanager"
NO_LINKS: list[smi.Link] = []
WAIT_SECONDS, STEP_SECONDS = 60.0, 5.0
CHEAT_SHEET = "github.com/awslabs/awsome-distributed-ai efa-cheatsheet.md (links per GPU)"


def fabric_manager(ctx: Context) -> Finding:
    """Only where there are NVSwitches: its service runs, its version fits, the fabric is up."""
    states = _states(ctx)
    switches = [device for device in pci.bus(ctx).devices if device.is_switch]
    if not switches and not states:
        # Virtual machines may hide the switches; a service that failed still says that it was
        # needed. `inactive` says nothing: so is a unit that does not exist.
        if _no_switch(ctx.expect) is None and _service(ctx) == "failed":
            return _judge_fabric("failed", states)
        return unsupported("no NVSwitch in this machine")
    mismatch = _other_version(ctx) if switches else None
    if mismatch:
        return mismatch
    service = _service(ctx) if switches else "not needed here"
    until = ctx.host.monotonic() + min(WAIT_SECONDS, ctx.left())
    while _pending(service, states) and ctx.host.monotonic() + STEP_SECONDS < until:
        ctx.host.sleep(STEP_SECONDS)
        for key in ("smi -q", "query gpu index,fabric.state,fabric.status"):
            ctx.memory.pop(key, None)
        states, service = _states(ctx), _service(ctx) if switches else service
    return _judge_fabric(service, states)


def _pending(service: str, states: list[tuple[str, str]]) -> bool:
    return service == "activating" or any(
        state.lower() in ("in progress", "not started") for state, _ in states
    )


def _states(ctx: Context) -> list[tuple[str, str]]:
    """Fabric state and status per GPU; empty where the driver has none (before Hopper)."""
    found = [
        (smi.look(tree, "Fabric", "State") or "", smi.look(tree, "Fabric", "Status") or "")
        for tree in smi.trees(ctx)
    ]
    if all(smi.absent(state) for state, _ in found):
        try:
            rows = smi.query(ctx, ("index", "fabric.state", "fabric.status"))
        except Wedged:
            raise
        except Garbled:
            return []
        found = [(row.get("fabric.state", ""), row.get("fabric.status", "")) for row in rows]
    return [pair for pair in found if not smi.absent(pair[0])]


def _service(ctx: Context) -> str:
    done = ctx.run("systemctl", "is-active", SERVICE, limit=10.0)
    if done.state != "exited":
        return "unknown"
    return (done.out.strip().splitlines() or ["unknown"])[0]


def _other_version(ctx: Context) -> Finding | None:
    """The manager must be of the driver's very version, or it refuses to start."""
    done = ctx.run("nv-fabricmanager", "--version", limit=10.0)
    found = re.search(r"(\d+\.\d+(?:\.\d+)?)", done.text) if done.ok else None
    driver = version(ctx)
    if found and driver and versions.parse(found[1]) != versions.parse(driver):
        words = f"fabric manager {found[1]}, driver {driver}"
        remedy = "install the fabric manager of the driver's version and hold both"
        source = "github.com/NVIDIA/gpu-driver-container/issues/735"
        return Finding(CONFIG, words, f"fabric manager {driver}", remedy, source)
    return None


def _judge_fabric(service: str, states: list[tuple[str, str]]) -> Finding:
    expected = f"{SERVICE} active; fabric state Completed, status Success"
    bad = [
        f"GPU {i}: state {state}, status {status or 'none'}"
        for i, (state, status) in enumerate(states)
        if state.lower() != "completed" or status.lower() not in ("success", "")
    ]
    if service in ("failed", "inactive", "activating", "deactivating"):
        return Finding(REBOOT, "; ".join([f"{SERVICE} is {service}", *bad]), expected)
    if bad:
        return Finding(REBOOT, "; ".join(bad), expected)
    if service == "unknown" and not states:
        return inconclusive("neither systemctl nor nvidia-smi tells of the fabric", expected)
    words = f"{SERVICE} {service}" + (", fabric completed" if states else "")
    return healthy(words, expected, short="fabric up")


def nvlink(ctx: Context) -> Finding:
    """As many links up as the plan says, on each GPU, each at its rate: counted, not searched."""
    wanted = ctx.expect.count("gpu.nvlinks") or 0
    card = card_of(ctx)
    expected = f"{wanted} links per GPU"
    done, found = smi.links(ctx)
    if not done.ok or not any(links for _, links in found):
        words = f"nvidia-smi nvlink -s: {done.says()}"
        if ctx.expect.mig() and done.state == "exited":
            return unsupported(f"not shown with MIG on: {done.says()}")
        return inconclusive(words, expected)
    named = {gpu for gpu, _ in found}
    # A GPU that is left out has no link up.
    every = found + [(gpu.number, NO_LINKS) for gpu in smi.gpus(ctx) if gpu.number not in named]
    findings = [_judge_links(gpu, links, wanted, expected) for gpu, links in every]
    if card and card.link_gb_s:
        findings += [_judge_rate(gpu, links, card.link_gb_s) for gpu, links in found]
    decided = worst(findings)
    return decided._replace(short=f"nvlink {wanted}/{wanted} ×{len(found)}")


def _judge_links(gpu: int, links: list[smi.Link], wanted: int, expected: str) -> Finding:
    up = [link for link in links if link.speed]
    words = f"GPU {gpu}: {len(up)} of {wanted} up"
    if len(up) < wanted:
        down = [f"link {link.number} {link.said}" for link in links if not link.speed]
        return Finding(REBOOT, f"{words} ({', '.join(down) or 'the rest is not listed'})", expected)
    return healthy(words, expected)


def _judge_rate(gpu: int, links: list[smi.Link], rate: float) -> Finding:
    expected = f"{rate} GB/s per link"
    slow = [
        f"link {link.number} {link.speed}"
        for link in links
        if link.speed and link.speed < rate * (1 - thresholds.LINK_ROOM)
    ]
    if slow:
        return Finding(REBOOT, f"GPU {gpu}: {', '.join(slow)} GB/s", expected)
    return healthy(f"GPU {gpu}: at rate", expected)


def nvlink_errors(ctx: Context) -> Finding:
    """Counters of each link; recovery is bad, a few CRC errors are ordinary."""
    done = smi.ask(ctx, "nvlink", "-e")
    counted = re.findall(r"Link (\d+): (?:(\w+) )?.*?Errors?\s*:\s*(\d+)", done.out)
    if not done.ok or not counted:
        return unsupported(f"no counters: {done.says()}")
    limits = {"Recovery": 0, "Replay": 0}
    bad = [
        f"link {link} {kind} {many}"
        for link, kind, many in counted
        if int(many) > limits.get(kind, 100)
    ]
    if bad:
        return warning("; ".join(bad[:8]), "no replay or recovery, CRC ≤ 100")
    return healthy(f"{len(counted)} counters", "no replay or recovery")


def topology(ctx: Context) -> Finding:
    """Every pair of GPUs sees the other through all its NVLinks."""
    wanted = ctx.expect.count("gpu.nvlinks") or 0
    expected = f"NV{wanted} between all GPUs"
    done = smi.ask(ctx, "topo", "-m")
    rows = smi.matrix(done.out) if done.ok else {}
    gpus = [name for name in rows if name.startswith("GPU")]
    if not gpus:
        return inconclusive(f"nvidia-smi topo -m: {done.says()}", expected)
    bad = [
        f"{a}–{b} {rows[a].get(b, 'missing')}"
        for a in gpus
        for b in gpus
        if a < b and rows[a].get(b) != f"NV{wanted}"
    ]
    if bad:
        return Finding(REBOOT, ", ".join(bad[:8]), expected)
    return healthy(f"{len(gpus)} GPUs, all pairs NV{wanted}", expected)


def no_links(expect: Expectation) -> str | None:
    return None if expect.count("gpu.nvlinks") else "the plan names no NVLinks"


def _no_switch(expect: Expectation) -> str | None:
    # Without NVSwitch (V100) pairs have different numbers of links.
    whole = not expect.mig()
    if whole and expect.count("gpu.nvlinks") in (12, 18) and (expect.count("gpu.count") or 0) > 1:
        return None
    return "the plan names no NVSwitch machine"


def usable(ctx: Context, name: str) -> bool:
    return ctx.outcome(name) in (None, *USABLE)


AGAIN = "reboot once; the second time the machine is replaced"
CHECKS = (
    Check("fabric-manager", "fabric manager", fabric_manager, "fabric",
          {REBOOT: "reboot once (CUDA error 802 otherwise); then the machine is replaced",
           CONFIG: "install the fabric manager of the driver's version and hold both",
           INCONCLUSIVE: "see systemctl status nvidia-fabricmanager"},
          "github.com/pytorch/pytorch/issues/35710; github.com/NVIDIA/gpu-operator/issues/544",
          seconds=75.0, needs=("driver",), explained_by=CAUSES),
    Check("nvlink", "NVLink", nvlink, "fabric",
          {REBOOT: AGAIN, INCONCLUSIVE: "see what nvidia-smi nvlink -s says"},
          CHEAT_SHEET, needs=("driver",), explained_by=(*CAUSES, "mig"), applies=no_links),
    Check("nvlink-errors", "NVLink errors", nvlink_errors, "fabric",
          {WARNING: "a marginal link; if it repeats, give the machine back"},
          "github.com/awslabs/awsome-distributed-ai health checks", needs=("driver",),
          applies=no_links, advisory=True),
    Check("topology", "topology", topology, "fabric",
          {REBOOT: AGAIN,
           INCONCLUSIVE: "see what nvidia-smi topo -m says"},
          "nvidia-smi topo -m: NV12 on A100, NV18 on Hopper and Blackwell", needs=("gpu-count",),
          explained_by=("mig",), depth="standard", applies=_no_switch),
)  # fmt: skip
