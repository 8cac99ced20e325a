"""NVIDIA's own diagnostic, read for what it tested and not for what its exit status says.

Level 2 passes with every NVLink down unless it is told to look (github.com/NVIDIA/DCGM/issues/198),
and a memory test that could not get memory is a Pass with a warning (issue 284): severities are
read per warning, from every result, never only from the first.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from gputier.node import plain, thresholds, tools
from gputier.node.checks.driver import card_of
from gputier.node.checks.load import divided
from gputier.node.checks.tool import missing
from gputier.node.engine import Check, Context
from gputier.node.host import Done
from gputier.node.result import (
    CONFIG,
    HEALTHY,
    INCONCLUSIVE,
    REBOOT,
    REPLACE,
    WARNING,
    Finding,
    Garbled,
    healthy,
    inconclusive,
    only,
    unsupported,
    worst,
)

ROOTS = ("DCGM Diagnostic", "DCGM GPU Diagnostic")


class Item(NamedTuple):
    """One warning of one test on one entity; `error`, `severity`: None where DCGM has none."""

    test: str
    entity: str
    status: str
    text: str
    error: int | None
    severity: int | None


def parse(text: str) -> tuple[list[Item], Any]:
    """Every failed result and every warning, and the root. Raises Garbled when it is no such JSON.

    DCGM 3 and 4 differ in the root's name, in where the message is, and in the entity's key; plain
    text may stand before the JSON.
    """
    start = re.search(r"^\{", text, re.M)
    try:
        data = plain.mapping(json.loads(text[start.start() :])) if start else None
    except ValueError as error:
        raise Garbled(f"dcgmi printed: {text.strip()[:200]!r} ({error})") from None
    root = plain.mapping(next((data[name] for name in ROOTS if data and name in data), None))
    if root is None or "test_categories" not in root:
        raise Garbled(f"dcgmi printed no diagnostic: {text.strip()[:200]!r}")
    return list(_items(root)), root


def _items(root: Any) -> Iterator[Item]:
    for category in root["test_categories"]:
        for test in category.get("tests", ()):
            for result in test.get("results", ()):
                yield from _of_result(str(test.get("name", "?")), result)


def _of_result(test: str, result: Any) -> Iterator[Item]:
    status = str(result.get("status", "")).lower()
    entity = next(
        (str(result[key]) for key in ("entity_id", "gpu_id", "gpu_ids") if key in result), "all"
    )
    held: Any = result.get("warnings") or []
    several = plain.sequence(held)
    for one in [held] if several is None else several:
        warning = plain.mapping(one)
        if warning is None:
            yield Item(test, entity, status, str(one), None, None)
            continue
        text = str(warning.get("warning", warning.get("warnings", "")))
        yield Item(
            test, entity, status, text, warning.get("error_id"), warning.get("error_severity")
        )
    if not result.get("warnings") and status == "fail":
        yield Item(test, entity, status, "failed without a word", None, None)


def diag(level: int) -> Callable[[Context], Finding]:
    """`dcgmi diag -r LEVEL`, judged."""

    def run(ctx: Context) -> Finding:
        arguments = ["dcgmi", "diag", "-r", str(level), "-j"]
        links = ctx.expect.count("gpu.nvlinks")
        if level > 1 and links:
            arguments += ["-p", f"pcie.gpu_nvlinks_expected_up={links}"]
        done = ctx.run(*arguments)
        expected = f"dcgmi diag -r {level}: no failure"
        if done.state == "missing":
            return missing(ctx, f"dcgm-{level}", "dcgmi", expected)
        return judge(ctx, done, level, expected)

    return run


def judge(ctx: Context, done: Done, level: int, expected: str) -> Finding:
    """The exit status says whether there is a verdict at all; the JSON says which."""
    if done.state != "exited" or done.rc not in tools.DCGM_VERDICTS:
        row = tools.DCGM_STATUS.get(done.rc if done.rc is not None else -1)
        meaning = f" ({row.meaning})" if row else ""
        return inconclusive(f"dcgmi diag: {done.how}{meaning}: {done.says()}", expected)
    try:
        items, root = parse(done.out)
    except Garbled:
        if done.rc == 205:
            return Finding(REPLACE, f"dcgmi ended with 205 (isolate): {done.says()}", expected)
        raise
    ctx.memory[f"dcgm {level}"] = root
    findings = [_judge_item(ctx, item, expected) for item in items]
    bad = [finding for finding in findings if finding.outcome != HEALTHY]
    if done.rc == 205 and all(finding.outcome != REPLACE for finding in bad):
        bad.append(Finding(REPLACE, "dcgmi ended with 205: an error that isolates a GPU", expected))
    if done.rc == 226 and not bad and not findings:
        bad.append(inconclusive("dcgmi ended with 226, but its JSON names no error", expected))
    if bad:
        return worst(bad)
    return healthy(f"level {level}: no failure", expected, short=f"DCGM level {level}")


def _judge_item(ctx: Context, item: Item, expected: str) -> Finding:
    words = f"{item.test} on {item.entity}: {item.text} (error {item.error}, {item.status})"
    if item.error in tools.DCGM_PCIE:
        return _judge_pcie(ctx, words, expected)
    override = tools.OVERRIDES.get(item.error if item.error is not None else -1)
    if override:
        return Finding(override.outcome, f"{words}: {override.why}", expected)
    if item.severity is not None:
        outcome = tools.SEVERITY.get(int(item.severity), INCONCLUSIVE)
        if outcome == HEALTHY and item.status == "fail":
            outcome = INCONCLUSIVE
        return Finding(outcome, words, expected)
    if item.status == "fail":
        return Finding(REBOOT, f"{words}: no severity (an old DCGM)", expected)
    return Finding(WARNING, words, expected)


def _judge_pcie(ctx: Context, words: str, expected: str) -> Finding:
    """DCGM wants the card's width; the instance type's is what was paid for."""
    if ctx.outcome("pcie") in (HEALTHY, WARNING):
        return Finding(HEALTHY, f"{words}: as planned, says our own check", expected)
    if ctx.outcome("pcie") is None:
        return Finding(WARNING, f"{words}: the plan names no PCIe link to compare", expected)
    return Finding(REBOOT, words, expected)


def memory_bandwidth(ctx: Context) -> Finding:
    """The figure of level 3's memory_bandwidth test against our own floor, not DCGM's."""
    card, root = card_of(ctx), ctx.memory.get("dcgm 3")
    floor = thresholds.floor(thresholds.MEMORY, card.name if card else None)
    if root is None:
        return unsupported("DCGM level 3 left no result to read")
    text = json.dumps(
        [
            test
            for category in root["test_categories"]
            for test in category.get("tests", ())
            if "memory" in str(test.get("name", "")).lower()
            and "bandwidth" in str(test.get("name", "")).lower()
        ]
    )
    found = [
        float(value) / (1000 if unit.lower().startswith("mb") else 1)
        for value, unit in re.findall(r"([\d.]+)\s*(GB/s|MB/s|GB/sec|MB/sec)", text)
    ]
    if floor is None or not found:
        return unsupported("no figure, or no floor with a source for this card")
    expected = f"≥ {floor.value:g} {floor.unit}"
    if min(found) < floor.value:
        return Finding(REPLACE, f"{min(found):.0f} GB/s", expected, source=floor.source)
    return healthy(f"{min(found):.0f} GB/s at least", expected)


REMEDIES = {
    REPLACE: "DCGM isolates a GPU: give the machine back",
    REBOOT: "reboot once; the second time the machine is replaced",
    CONFIG: "fix what DCGM names in the image",
    WARNING: "keep an eye on it",
    INCONCLUSIVE: "run the diagnostic alone and see what it says",
}
TOOLS = ("dcgm", "dcgmi")
CHECKS_QUICK = (
    Check("dcgm-1", "DCGM level 1", diag(1), "software", REMEDIES, tools.DCGM_SOURCE,
          seconds=45.0, needs=("driver",), tools=TOOLS),
)  # fmt: skip
CHECKS_LOAD = (
    Check("dcgm-2", "DCGM level 2", diag(2), "load", REMEDIES, tools.DCGM_SOURCE, seconds=700.0,
          needs=("gpu-count", "cuda-kernel"), depth="standard"),
    Check("dcgm-3", "DCGM level 3", diag(3), "load", REMEDIES, tools.DCGM_SOURCE, seconds=2400.0,
          needs=("gpu-count", "cuda-kernel"), depth="burn-in", applies=divided),
    Check("memory-bandwidth", "HBM bandwidth", memory_bandwidth, "load", only(REMEDIES, REPLACE),
          thresholds.DCGM_SKUS, needs=("dcgm-3",), depth="burn-in"),
)  # fmt: skip
