"""What holds a GPU back although it works: clocks, temperature, its PCIe link."""

from __future__ import annotations

from gputier.node import plain, smi
from gputier.node.engine import Check, Context
from gputier.node.expect import Expectation
from gputier.node.result import (
    HEALTHY,
    INCONCLUSIVE,
    REBOOT,
    REPLACE,
    WARNING,
    Finding,
    healthy,
    inconclusive,
    unsupported,
    warning,
    worst,
)

# The field was renamed with driver 535.54.03; older and newer branches know only one of the two.
REASONS = ("index", "clocks_event_reasons.active", "clocks_throttle_reasons.active")
# Asked once; the report shows what of it no check judges.
FIGURES = ("index", "temperature.gpu", "utilization.gpu", "memory.used", "memory.total")
HARDWARE = ((0x8, "HW slowdown"), (0x40, "HW thermal slowdown"), (0x80, "HW power brake"))
SOFTWARE_THERMAL = 0x20
LINK = (
    "index",
    "pcie.link.gen.current",
    "pcie.link.gen.max",
    "pcie.link.width.current",
    "pcie.link.width.max",
    "utilization.gpu",
)


def throttle(ctx: Context) -> Finding:
    """No hardware slowdown: not the idle and power-cap reasons, which are ordinary."""
    expected = "no HW slowdown (0x8), HW thermal (0x40), HW power brake (0x80)"
    findings: list[Finding] = []
    for row in smi.query(ctx, REASONS):
        text = row.get(REASONS[1], row.get(REASONS[2], ""))
        if smi.absent(text):
            findings.append(unsupported(f"GPU {row['index']}: not shown"))
            continue
        findings.append(_judge_reasons(f"GPU {row['index']}", text, expected))
    return worst(findings) if findings else inconclusive("nvidia-smi lists no GPU", expected)


def _judge_reasons(gpu: str, text: str, expected: str) -> Finding:
    try:
        bits = int(text, 16)
    except ValueError:
        return inconclusive(f"{gpu}: {text!r} is no mask of reasons", expected)
    named = [name for bit, name in HARDWARE if bits & bit]
    if named:
        return Finding(REPLACE, f"{gpu}: {', '.join(named)} ({text})", expected)
    if bits & SOFTWARE_THERMAL:
        return warning(f"{gpu}: SW thermal slowdown ({text})", expected)
    return healthy(f"{gpu}: {text}", expected, short="no throttling")


def temperature(ctx: Context) -> Finding:
    """Below the card's own slowdown point; above it at idle, the cooling is broken."""
    rows = smi.query(ctx, FIGURES)
    details = smi.trees(ctx)
    findings: list[Finding] = []
    for i, row in enumerate(rows):
        tree = details[i] if i < len(details) else {}
        now = smi.number(row.get("temperature.gpu"))
        limit = smi.number(smi.look(tree, "Temperature", "GPU Slowdown Temp"))
        margin = smi.number(smi.look(tree, "Temperature", "GPU T.Limit Temp"))
        busy = (smi.number(row.get("utilization.gpu")) or 0) > 10
        gpu = f"GPU {row['index']}"
        if now is None:
            findings.append(unsupported(f"{gpu}: no temperature shown"))
        elif (limit is not None and now >= limit) or (margin is not None and margin <= 0):
            words = f"{gpu}: {now:.0f} °C, slows down at {limit or now + (margin or 0):.0f} °C"
            outcome = WARNING if busy else REBOOT
            findings.append(Finding(outcome, words, "below the slowdown temperature"))
        else:
            words = f"{gpu}: {now:.0f} °C"
            findings.append(healthy(words, "below the slowdown temperature", short=f"{now:.0f} °C"))
    return worst(findings) if findings else inconclusive("nvidia-smi lists no GPU")


def pcie(ctx: Context) -> Finding:
    """The link's width now, and its generation as far as an idle link can tell.

    Idle links drop to generation 1, so a low current generation counts only on a busy GPU; what
    card and slot can reach together (gen.max) counts always.
    """
    width, generation = ctx.expect.count("pcie.width"), ctx.expect.count("pcie.generation")
    expected = plain.joined(" ", generation and f"Gen{generation}", width and f"x{width}")
    findings: list[Finding] = []
    for row in smi.query(ctx, LINK):
        current, top = (smi.number(row.get(f"pcie.link.gen.{when}")) for when in ("current", "max"))
        lanes = smi.number(row.get("pcie.link.width.current"))
        gpu = f"GPU {row['index']}"
        words = f"{gpu}: Gen{_plain(current)} (max {_plain(top)}) x{_plain(lanes)}"
        busy = (smi.number(row.get("utilization.gpu")) or 0) > 10
        short = (width and lanes is not None and lanes < width) or _slow(
            generation, current if busy else None, top
        )
        if lanes is None and current is None:
            findings.append(unsupported(f"{gpu}: no PCIe link shown"))
        elif short:
            findings.append(Finding(REBOOT, words, expected))
        else:
            findings.append(Finding(HEALTHY, words, expected, short=f"PCIe x{_plain(lanes)}"))
    return worst(findings) if findings else inconclusive("nvidia-smi lists no GPU", expected)


def _slow(wanted: int | None, current: float | None, top: float | None) -> bool:
    if not wanted:
        return False
    return any(value is not None and value < wanted for value in (current, top))


def _plain(value: float | None) -> str:
    return "?" if value is None else f"{value:.0f}"


def _no_pcie(expect: Expectation) -> str | None:
    asked = expect.has("pcie.width") or expect.has("pcie.generation")
    return None if asked else "the plan names no PCIe link"


CHECKS = (
    Check("pcie", "PCIe link", pcie, "health",
          {REBOOT: "reboot once; the second time the machine is replaced",
           INCONCLUSIVE: "see what nvidia-smi shows of the link"},
          "the plan, by instance type: T4, A10G, L4 and L40S are x8 on AWS", needs=("driver",),
          applies=_no_pcie),
    Check("throttle", "throttling", throttle, "health",
          {REPLACE: "cooling or power of this host is bad: give the machine back",
           WARNING: "it is warm; `watch` keeps an eye on it",
           INCONCLUSIVE: "see what nvidia-smi shows as clock event reasons"},
          "NVML clocks event reasons; github.com/Azure/azurehpc-health-checks", needs=("driver",)),
    Check("temperature", "temperature", temperature, "health",
          {REBOOT: "reboot once; if it is as hot at idle again, the machine is replaced",
           WARNING: "it is hot under load; `watch` keeps an eye on it",
           INCONCLUSIVE: "see what nvidia-smi shows as temperature"},
          "the card's own slowdown temperature (nvidia-smi -q -d TEMPERATURE)",
          needs=("driver",)),
)  # fmt: skip
