"""How many GPUs, which ones, how much memory: on the bus and through the driver."""

from __future__ import annotations

import re

from gputier.node import cards, klog, pci, smi, thresholds, xids
from gputier.node.checks.driver import CAUSES, card_of
from gputier.node.engine import Check, Context
from gputier.node.expect import Expectation
from gputier.node.result import (
    CONFIG,
    INCONCLUSIVE,
    REBOOT,
    REPLACE,
    WARNING,
    Finding,
    healthy,
    inconclusive,
    only,
    unsupported,
    warning,
    worst,
)

WRONG = "the machine is not what the plan names: check the instance type and the declaration"
MIG_MOST = 7
IDENTITY = ("index", "uuid", "pci.bus_id", "name", "memory.total")


def presence(ctx: Context) -> Finding:
    """GPUs on the PCI bus, which no driver and no script of ours can take away."""
    found = pci.bus(ctx)
    wanted = ctx.expect.count("gpu.count")
    expected = f"{wanted} GPUs" if wanted is not None else "at least one GPU"
    if found.problem:
        return inconclusive(found.problem, expected)
    count = len(found.gpus)
    dead = [gpu.line for gpu in found.gpus if gpu.dead]
    if dead:
        return Finding(REPLACE, f"the bus answers ff for {'; '.join(dead)}", expected)
    words = f"{count} GPUs on the PCI bus ({found.source})"
    if count < (1 if wanted is None else wanted):
        return Finding(REPLACE, words, expected)
    if wanted is not None and count > wanted:
        return Finding(CONFIG, words, expected)
    return healthy(words, expected, short=f"{count} GPUs on the bus")


def count(ctx: Context) -> Finding:
    """GPUs that the driver sees, against the plan and against the bus."""
    seen = len(smi.gpus(ctx))
    bus = pci.bus(ctx)
    on_bus = len(bus.gpus)
    wanted = ctx.expect.count("gpu.count")
    expected = f"{on_bus if wanted is None else wanted} GPUs"
    words = f"{seen} of {on_bus if wanted is None else wanted} visible"
    if seen < (on_bus if wanted is None else wanted):
        return Finding(REPLACE, f"{words}: {_where_lost(ctx, on_bus, seen)}", expected)
    if wanted is not None and seen > wanted:
        return Finding(CONFIG, words, expected, WRONG)
    return healthy(words, expected, short=f"{seen} GPUs")


def _where_lost(ctx: Context, on_bus: int, seen: int) -> str:
    words = f"the bus shows {on_bus}, the driver sees {seen}"
    lost = [e for e in xids.find(klog.kernel(ctx).text or "") if e.code in (79, 119, 120)]
    return f"{words}; {lost[0].line}" if lost else words


def model(ctx: Context) -> Finding:
    """The name that nvidia-smi prints and the PCI device id are the plan's card."""
    names = sorted({gpu.name for gpu in smi.gpus(ctx)})
    ids = sorted({gpu.device for gpu in pci.bus(ctx).gpus if gpu.device})
    wanted, right_ids = ctx.expect.text("gpu.model"), _ids(ctx.expect)
    expected = ", ".join(filter(None, (wanted, " or ".join(sorted(right_ids)))))
    words = f"{', '.join(names)} ({', '.join(ids) or 'device id unknown'})"
    if len(names) > 1:
        return Finding(CONFIG, f"different cards in one machine: {words}", expected)
    if wanted and not all(is_model(name, wanted) for name in names):
        return Finding(CONFIG, words, expected)
    strange = [device for device in ids if right_ids and device not in right_ids]
    if strange:
        return Finding(CONFIG, f"device id {', '.join(strange)} of {words}", expected)
    return healthy(words, expected, short=names[0] if names else "")


def is_model(name: str, wanted: str) -> bool:
    """Whether a printed name is the card that a catalogue name or another printed name means."""
    card, meant = cards.by_text(name), cards.by_text(wanted)
    if card and meant:
        return card is meant
    plain, text = (re.sub(r"[^a-z0-9]+", " ", t.lower()).split() for t in (name, wanted))
    return set(text) - {"nvidia", "tesla"} <= set(plain)


def _ids(expect: Expectation) -> set[str]:
    """`10de:2330`, `0x2330` and `2330` name one device."""
    return {re.sub(r"^0x", "", text.lower().split(":")[-1]) for text in expect.texts("gpu.pci_ids")}


def memory(ctx: Context) -> Finding:
    """memory.total of every GPU: a wrong shape, a slice, or memory that is gone.

    Without a figure in the plan, what its model is known to show; of a slice nothing is known.
    """
    planned = ctx.expect.number("gpu.memory_mib")
    sliced = any(cards.is_slice(gpu.name) for gpu in smi.gpus(ctx))
    known = ctx.card.memory_mib if ctx.card else ()
    if planned is None and (sliced or not known):
        return unsupported("the plan names no memory, and the table of cards none for it")
    wanted = known if planned is None else (planned,)
    expected = " or ".join(f"{figure:.0f} MiB" for figure in wanted)
    expected += f" ± {thresholds.MEMORY_ROOM:.0%}"
    findings: list[Finding] = []
    for row in smi.query(ctx, IDENTITY):
        size = smi.number(row.get("memory.total"))
        words = f"GPU {row['index']}: {row.get('memory.total', 'no figure')}"
        if size is None:
            findings.append(inconclusive(words, expected))
        elif any(_fits(ctx, size, figure, sliced) for figure in wanted):
            findings.append(healthy(words, expected, short=f"{size:.0f} MiB each"))
        elif size > max(wanted) or sliced:
            # More, or a slice where a card is planned: another machine would be as wrong.
            findings.append(Finding(CONFIG, words, expected, WRONG))
        else:
            findings.append(Finding(REPLACE, words, expected))
    return worst(findings) if findings else inconclusive("nvidia-smi lists no GPU", expected)


def _fits(ctx: Context, size: float, wanted: float, sliced: bool) -> bool:
    room = thresholds.SLICE_ROOM if sliced else thresholds.MEMORY_ROOM
    if abs(size - wanted) <= wanted * room:
        return True
    # A plan may carry the figure that the card is sold as; ECC and firmware take their part of it.
    card = card_of(ctx)
    known = card.memory_mib if card else ()
    is_known = any(abs(size - figure) <= 0.005 * figure for figure in known)
    return is_known and any(abs(wanted - figure) <= 0.005 * figure for figure in known)


def vbios(ctx: Context) -> Finding:
    """One VBIOS for all: several mean a host that was serviced in part."""
    rows = smi.query(ctx, ("index", "vbios_version"))
    found = sorted(
        {row["vbios_version"] for row in rows if not smi.absent(row.get("vbios_version"))}
    )
    if len(found) > 1:
        return warning(f"VBIOS {', '.join(found)}", "one VBIOS on all GPUs")
    if not found:
        return unsupported("the driver tells no VBIOS version")
    return healthy(f"VBIOS {found[0]}", "one VBIOS on all GPUs")


def persistence(ctx: Context) -> Finding:
    """Persistence mode, switched on where it is off: without it every start of CUDA is slow."""
    expected = "Enabled on all GPUs"
    off = _not_persistent(ctx)
    if off is None:
        return unsupported("the driver tells no persistence mode")
    if not off:
        return healthy("Enabled", expected)
    done = ctx.run(smi.SMI, "-pm", "1", limit=smi.ASK_SECONDS)
    ctx.memory.pop("query gpu index,persistence_mode", None)
    if not _not_persistent(ctx):
        return healthy(f"was off on GPU {', '.join(off)}; switched on", expected)
    return warning(f"Disabled on GPU {', '.join(off)}; nvidia-smi -pm 1: {done.says()}", expected)


def _not_persistent(ctx: Context) -> list[str] | None:
    rows = smi.query(ctx, ("index", "persistence_mode"))
    known = [row for row in rows if not smi.absent(row.get("persistence_mode"))]
    if not known:
        return None
    return [row["index"] for row in known if smi.yes(row["persistence_mode"]) is False]


def mig(ctx: Context) -> Finding:
    """The MIG layout of every GPU; a mode that waits for a reset is a reboot."""
    profile, wanted = ctx.expect.text("gpu.mig.profile"), ctx.expect.count("gpu.mig.count")
    sliced = ctx.expect.mig()
    expected = "MIG off"
    if sliced:
        expected = f"{wanted or 'at least 1'} × {profile or 'any profile'} per GPU"
    findings: list[Finding] = []
    rows = smi.query(ctx, ("index", "mig.mode.current", "mig.mode.pending"))
    gpus = smi.gpus(ctx)
    if wanted is not None and wanted > MIG_MOST and gpus and wanted % len(gpus) == 0:
        # No card has more than seven instances: this is the count of the whole machine.
        wanted //= len(gpus)
    for row in rows:
        now, next_ = (smi.yes(row.get(f"mig.mode.{when}")) for when in ("current", "pending"))
        words = f"GPU {row['index']}: MIG {row.get('mig.mode.current', 'unknown')}"
        if now is None and not sliced:
            continue
        if next_ is not None and next_ != now:
            words += f", {row['mig.mode.pending']} pending"
            findings.append(Finding(REBOOT, words, expected))
        elif bool(now) != sliced:
            findings.append(Finding(CONFIG, words, expected))
        elif sliced:
            findings.append(_layout(gpus, int(row["index"]), profile, wanted, expected))
        else:
            findings.append(healthy(words, expected))
    return worst(findings) if findings else unsupported("these GPUs have no MIG")


def _layout(
    gpus: tuple[smi.Gpu, ...], index: int, profile: str | None, wanted: int | None, expected: str
) -> Finding:
    found = [name for gpu in gpus if gpu.number == index for name, _ in gpu.mig]
    words = f"GPU {index}: {len(found)} instances ({', '.join(sorted(set(found))) or 'none'})"
    right = found.count(profile) if profile else len(found)
    if right != len(found) or right < 1 or (wanted is not None and right != wanted):
        return Finding(CONFIG, words, expected)
    return healthy(words, expected, short=f"{right} × {profile or 'MIG'}")


def _no_model(expect: Expectation) -> str | None:
    asked = expect.has("gpu.model") or expect.has("gpu.pci_ids")
    return None if asked else "the plan names no GPU model"


def _no_memory(expect: Expectation) -> str | None:
    asked = expect.has("gpu.memory_mib") or expect.has("gpu.model")
    return None if asked else "the plan names neither GPU memory nor model"


LOST = {
    REPLACE: "this host is bad: give the machine back",
    CONFIG: WRONG,
    INCONCLUSIVE: "see why it could not be read and run the check again",
}
CHECKS_BUS = (
    Check("pci", "GPUs on the bus", presence, "hardware", LOST,
          "the plan; class 0302 and 0300 of vendor 10de"),
)  # fmt: skip
CHECKS_GPU = (
    Check("gpu-count", "gpu count", count, "health", LOST, "the plan",
          needs=("driver",), explained_by=CAUSES),
    Check("gpu-model", "gpu model", model, "health", only(LOST, CONFIG), "the plan",
          needs=("driver",), applies=_no_model),
    Check("gpu-memory", "gpu memory", memory, "health", LOST,
          "the plan; room for ECC and firmware", needs=("driver", "gpu-model"),
          applies=_no_memory),
    Check("vbios", "VBIOS", vbios, "health", {WARNING: "ask the provider about a mixed host"},
          "github.com/Azure/azurehpc-health-checks check_vbios_version", needs=("driver",),
          advisory=True),
    Check("persistence", "persistence mode", persistence, "health",
          {WARNING: "start nvidia-persistenced"}, "DCGM_FR_PERSISTENCE_MODE",
          needs=("driver",), advisory=True),
    Check("mig", "MIG layout", mig, "health",
          {REBOOT: "reboot once: the MIG mode waits for a reset",
           CONFIG: "`gputier-node stage mig` makes the planned layout"},
          "the plan; github.com/NVIDIA/mig-parted/issues/9", needs=("driver",)),
)  # fmt: skip
