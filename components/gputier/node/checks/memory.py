"""GPU memory that errs: ECC counters, row remapping, retired pages.

Two ways of asking (fields and `nvidia-smi -q`), because drivers differ in what each shows; the
worse of the two counts. Aggregate counters alone condemn nobody: what was repaired is repaired.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from gputier.node import cards, smi, thresholds
from gputier.node.engine import Check, Context
from gputier.node.result import (
    CONFIG,
    INCONCLUSIVE,
    REBOOT,
    REPLACE,
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

U, C = "ecc.errors.uncorrected", "ecc.errors.corrected"
ECC = (
    "index",
    "ecc.mode.current",
    f"{U}.volatile.sram",
    f"{U}.volatile.dram",
    f"{U}.volatile.total",
    f"{C}.volatile.sram",
    f"{C}.volatile.dram",
    f"{U}.aggregate.sram",
)
REMAP = ("remapped_rows.uncorrectable", "remapped_rows.pending", "remapped_rows.failure")
PAGES = (
    "index",
    "retired_pages.single_bit_ecc.count",
    "retired_pages.double_bit.count",
    "retired_pages.pending",
)


class Counts(NamedTuple):
    """ECC of one GPU; None where the driver shows no figure."""

    mode: bool | None
    sram: float | None
    dram: float | None
    total: float | None
    fixed_sram: float | None
    fixed_dram: float | None
    old_sram: float | None
    over: bool | None
    repair: bool | None
    beyond: bool | None


def most(*values: float | None) -> float | None:
    known = [value for value in values if value is not None]
    return max(known) if known else None


def counts(row: dict[str, str], tree: dict[str, Any]) -> Counts:
    """Both ways of asking, joined: the larger figure, the worse flag."""

    def field(name: str) -> float | None:
        return smi.number(row.get(name))

    def tell(*path: str) -> float | None:
        return smi.number(smi.look(tree, "ECC Errors", *path))

    def sram(when: str) -> float | None:
        split = [tell(when, f"SRAM Uncorrectable{kind}") for kind in (" Parity", " SEC-DED")]
        known = [value for value in split if value is not None]
        return most(tell(when, "SRAM Uncorrectable"), sum(known) if known else None)

    return Counts(
        mode=_either(row.get("ecc.mode.current"), smi.look(tree, "ECC Mode", "Current")),
        sram=most(field(f"{U}.volatile.sram"), sram("Volatile")),
        dram=most(field(f"{U}.volatile.dram"), tell("Volatile", "DRAM Uncorrectable")),
        total=field(f"{U}.volatile.total"),
        fixed_sram=most(field(f"{C}.volatile.sram"), tell("Volatile", "SRAM Correctable")),
        fixed_dram=most(field(f"{C}.volatile.dram"), tell("Volatile", "DRAM Correctable")),
        old_sram=most(field(f"{U}.aggregate.sram"), sram("Aggregate")),
        over=smi.yes(smi.look(tree, "ECC Errors", "Aggregate", "SRAM Threshold Exceeded")),
        repair=_either(
            smi.look(tree, "ECC Errors", "Channel Repair Pending"),
            smi.look(tree, "ECC Errors", "TPC Repair Pending"),
        ),
        beyond=smi.yes(smi.look(tree, "ECC Errors", "Unrepairable Memory")),
    )


def _either(*texts: str | None) -> bool | None:
    known = [value for value in map(smi.yes, texts) if value is not None]
    return any(known) if known else None


def ecc(ctx: Context) -> Finding:
    """No uncorrected error since the driver started, and ECC on where the card has it."""
    rows, details = smi.query(ctx, ECC), smi.trees(ctx)
    if not rows:
        return inconclusive("nvidia-smi lists no GPU")
    findings: list[Finding] = []
    for i, row in enumerate(rows):
        found = counts(row, details[i] if i < len(details) else {})
        findings.append(_judge_ecc(f"GPU {row['index']}", found, ctx.card))
    return worst(findings)


def _judge_ecc(gpu: str, found: Counts, card: cards.Card | None) -> Finding:
    expected = "ECC on, no uncorrected error"
    if found.beyond:
        return Finding(REPLACE, f"{gpu}: Unrepairable Memory: Yes", expected)
    if found.over:
        return Finding(REPLACE, f"{gpu}: SRAM Threshold Exceeded: Yes", expected)
    if found.sram:
        return Finding(REPLACE, f"{gpu}: {found.sram:.0f} uncorrected SRAM errors", expected)
    if found.dram or found.total:
        many = found.dram or found.total or 0
        return Finding(REBOOT, f"{gpu}: {many:.0f} uncorrected errors since boot", expected)
    if found.repair:
        return Finding(REBOOT, f"{gpu}: a memory repair is pending", expected)
    if found.mode is None:
        if card and card.hbm:
            return inconclusive(f"{gpu}: the driver shows no ECC mode", expected)
        return unsupported(f"{gpu}: no ECC to be seen")
    if not found.mode:
        if card and not card.hbm:
            return warning(f"{gpu}: ECC is off", expected)
        return Finding(CONFIG, f"{gpu}: ECC is off", expected)
    if found.sram is None and found.dram is None and found.total is None:
        return inconclusive(f"{gpu}: ECC is on, but its counters cannot be read", expected)
    return _corrected(gpu, found, expected)


def _corrected(gpu: str, found: Counts, expected: str) -> Finding:
    for value, limit in (
        (found.fixed_sram, thresholds.SRAM_CORRECTABLE),
        (found.fixed_dram, thresholds.DRAM_CORRECTABLE),
    ):
        if value is not None and value > limit.value:
            words = f"{gpu}: {value:.0f} corrected errors, more than {limit.value:.0f}"
            return Finding(WARNING, words, expected, source=limit.source)
    if found.old_sram:
        return warning(f"{gpu}: {found.old_sram:.0f} SRAM errors over its life", expected)
    return healthy(f"{gpu}: on, none", expected, short="ECC clean")


def row_remap(ctx: Context) -> Finding:
    """Rows that wait for a reset, or could not be replaced; [N/A] with MIG on."""
    expected = "nothing pending, no failure"
    try:
        rows = smi.query(ctx, REMAP, "remapped-rows")
    except Wedged:
        raise
    except Garbled as error:
        rows = []
        if not smi.trees(ctx):
            return inconclusive(str(error), expected)
    found = [
        (
            smi.yes(row.get("remapped_rows.pending")),
            smi.yes(row.get("remapped_rows.failure")),
            smi.number(row.get("remapped_rows.uncorrectable")),
        )
        for row in rows
    ]
    if all(pending is None and failed is None for pending, failed, _ in found):
        found = [_remap_of(tree) for tree in smi.trees(ctx)]
    findings: list[Finding] = []
    for i, (pending, failed, many) in enumerate(found):
        findings.append(_judge_remap(f"GPU {i}", pending, failed, many))
    return worst(findings) if findings else inconclusive("nvidia-smi lists no GPU", expected)


def _remap_of(tree: dict[str, Any]) -> tuple[bool | None, bool | None, float | None]:
    return (
        smi.yes(smi.look(tree, "Remapped Rows", "Pending")),
        smi.yes(smi.look(tree, "Remapped Rows", "Remapping Failure Occurred")),
        smi.number(smi.look(tree, "Remapped Rows", "Uncorrectable Error")),
    )


def _judge_remap(
    gpu: str, pending: bool | None, failed: bool | None, many: float | None
) -> Finding:
    expected = "nothing pending, no failure"
    limit = thresholds.REMAPPED_ROWS
    if failed:
        return Finding(REPLACE, f"{gpu}: row remapping failed", expected)
    if many is not None and many > limit.value:
        words = f"{gpu}: {many:.0f} rows remapped for uncorrectable errors"
        return Finding(REPLACE, words, f"at most {limit.value:.0f}", source=limit.source)
    if pending:
        return Finding(REBOOT, f"{gpu}: row remapping is pending", expected)
    if pending is None or failed is None:
        return unsupported(f"{gpu}: not shown (MIG is on, or a slice)")
    return healthy(f"{gpu}: nothing pending, no failure", expected, short="no remap pending")


def retired_pages(ctx: Context) -> Finding:
    """The older cards' way of repair: a table of 64 pages."""
    limit = thresholds.RETIRED_PAGES
    expected = f"none pending, fewer than {limit.value:.0f}"
    findings: list[Finding] = []
    details = smi.trees(ctx)
    for i, row in enumerate(smi.query(ctx, PAGES)):
        tree = details[i] if i < len(details) else {}
        pending = _either(
            row.get(PAGES[3]), smi.look(tree, "Retired Pages", "Pending Page Blacklist")
        )
        many = (smi.number(row.get(PAGES[1])) or 0) + (smi.number(row.get(PAGES[2])) or 0)
        gpu = f"GPU {row['index']}"
        if many >= limit.value:
            words = f"{gpu}: {many:.0f} pages retired"
            findings.append(Finding(REPLACE, words, expected, source=limit.source))
        elif pending:
            findings.append(Finding(REBOOT, f"{gpu}: a page waits to be retired", expected))
        elif pending is None:
            findings.append(unsupported(f"{gpu}: not shown"))
        else:
            findings.append(healthy(f"{gpu}: {many:.0f} pages retired", expected))
    return worst(findings) if findings else inconclusive("nvidia-smi lists no GPU", expected)


def _remaps(card: cards.Card) -> bool:
    return card.remap


def _retires(card: cards.Card) -> bool:
    return not card.remap and card.arch in ("Volta", "Turing")


CHECKS = (
    Check("ecc", "ECC", ecc, "health",
          {REPLACE: "the memory is bad: give the machine back",
           REBOOT: "reboot once; the second time the machine is replaced",
           CONFIG: "switch ECC on (nvidia-smi -e 1) in the image and reboot",
           WARNING: "keep an eye on it",
           INCONCLUSIVE: "see why the driver shows no counters"},
          thresholds.AZNHC_README, needs=("driver",)),
    Check("row-remap", "row remapping", row_remap, "health",
          {REPLACE: "the card can no longer repair itself: give the machine back",
           REBOOT: "reboot once: the remapping takes effect with a reset",
           INCONCLUSIVE: "see what nvidia-smi --query-remapped-rows says"},
          "https://docs.nvidia.com/deploy/a100-gpu-mem-error-mgmt/", needs=("driver",),
          card=_remaps),
    Check("retired-pages", "retired pages", retired_pages, "health",
          {REPLACE: "the table is nearly full: give the machine back",
           REBOOT: "reboot once: the retirement takes effect with a reset",
           INCONCLUSIVE: "see what nvidia-smi --query-gpu=retired_pages.pending says"},
          thresholds.RETIRED_PAGES.source, needs=("driver",), card=_retires),
)  # fmt: skip
