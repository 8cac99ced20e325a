"""docs/node.md lists what the tables hold."""

# ruff: noqa: E501 (tables of cases, one row a line)
from __future__ import annotations

from collections.abc import Callable

from tests.node import public_logs
from tests.node.cases import CASES
from tests.node.machines import KINDS

from gputier.node import expect, thresholds, tools, xids
from gputier.node.cards import CARDS
from gputier.node.checks import ALL
from gputier.node.engine import Check
from gputier.node.thresholds import FLOORS

Generated = Callable[[str, str, str], None]
PAGE = "docs/node.md"


def table(*rows: tuple[str, ...]) -> str:
    head, *rest = rows
    lines = [head, tuple("---" for _ in head), *rest]
    return "\n".join(
        "| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |" for row in lines
    )


def supported(check: Check) -> str:
    names = [card.name for card in CARDS if check.card(card)]
    return "all" if len(names) == len(CARDS) else ", ".join(names)


def test_the_expectation_is_documented(generated: Generated) -> None:
    rows = [(f"`{path}`", kind.phrase, words) for path, (kind, words) in expect.FIELDS.items()]
    generated(PAGE, "expectation", table(("key", "value", "meaning"), *rows))


def test_the_checks_are_documented(generated: Generated) -> None:
    rows: list[tuple[str, ...]] = []
    for check in ALL:
        for outcome, remedy in check.remedies.items():
            if check.advisory and outcome != "warning":
                continue
            rows.append(
                (f"`{check.name}`", check.depth, supported(check), outcome, remedy, check.source)
            )
    head = ("check", "depth", "cards", "outcome", "remedy", "source")
    generated(PAGE, "checks", table(head, *rows))


def test_the_thresholds_are_documented(generated: Generated) -> None:
    counters = (thresholds.SRAM_CORRECTABLE, thresholds.DRAM_CORRECTABLE, thresholds.REMAPPED_ROWS,
                thresholds.RETIRED_PAGES, thresholds.LINK_FLAPS, thresholds.MEMLOCK_GIB)  # fmt: skip
    rows = [
        (f.measure, f.key, f"{f.value:g} {f.unit}", f"{f.nominal:g}", f.source, f.date, f.derating)
        for f in (*FLOORS, *counters)
    ]
    head = ("measure", "card or family", "value", "nominal", "source", "date", "derating")
    generated(PAGE, "thresholds", table(head, *rows))


def test_the_xids_are_documented(generated: Generated) -> None:
    rows = [
        (str(x.code), x.meaning, x.action, x.adt, x.dcgm, x.azure, x.why or "–") for x in xids.XIDS
    ]
    head = ("Xid", "meaning", "ours", "AWS sample", "DCGM 4.6", "Azure NHC", "why")
    generated(PAGE, "xids", table(head, *rows))


def test_the_overrides_of_dcgm_are_documented(generated: Generated) -> None:
    rows = [(str(o.error), o.name, o.outcome, o.why) for o in tools.OVERRIDES.values()]
    generated(PAGE, "dcgm", table(("error", "name", "outcome", "why"), *rows))


def test_the_machines_are_counted(generated: Generated) -> None:
    rows = [
        (f"`{k.name}`", k.cloud, f"{k.count} × {k.shown}", k.driver, k.fabric, "synthesised")
        for k in KINDS.values()
    ]
    head = ("machine", "cloud", "GPUs", "driver", "fabric", "origin")
    text = table(head, *rows)
    text += (
        f"\n\n{len(KINDS)} healthy and {len(CASES)} faulty recordings are synthesised; "
        f"{len(public_logs.ALL)} excerpts are from public logs, with their addresses in "
        "`tests/node/public_logs.py`; none is from a machine of our own yet."
    )
    generated(PAGE, "machines", text)
