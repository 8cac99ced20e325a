"""The long tests, behind the open gate and before the workload: once for each arrival.

A machine joins on the standard validation, so that no cloud has to wait for hours; what only load
for an hour shows comes then. A fault takes it out of service again, as one that `watch` sees does.
"""

from __future__ import annotations

import json
from typing import Any

from gputier.node import boots, gates, plain, report
from gputier.node.cloud import identity
from gputier.node.engine import Context
from gputier.node.host import Host
from gputier.node.result import HEALTHY, REBOOT, REPLACE
from gputier.node.stages import StageResult, Work, ok
from gputier.node.stages.validate import unless_taken
from gputier.node.verbs import common

DEPTH = "burn-in"
# On the root disk, which stays: that it was done is no state of another disk.
FILE = "/var/lib/gputier/burn-in.json"
# Of the stage's time, for the report (90 s of trying) and for having the machine replaced (180 s).
TELLING_SECONDS = 300.0


def run(work: Work) -> StageResult:
    """Judge at full depth; a machine that is found bad is given back, with its report."""
    ctx = Context(work.host, work.expect)
    ctx.end = work.deadline - TELLING_SECONDS
    found = common.judge_in(ctx, DEPTH, after=unless_taken).report
    outcome = str(found["outcome"])
    causes = [check for check in found["checks"] if check["name"] in found["causes"]]
    words = tuple(f"{check['name']}: {check['evidence']}" for check in causes)
    told = gates.of(work.settings, identity.load(work.host), work.host)
    if outcome in (REPLACE, REBOOT):
        work.warnings += told.revoke(outcome, words, found).notes
    else:
        if outcome != HEALTHY:
            # Another machine would be no better, or nothing is proven: both are no reason to stop.
            found["warnings"].append(f"the burn-in is {outcome}; the workload starts all the same")
            trouble = report.save(work.host, found)
            if trouble:
                work.warnings.append(f"the report was not kept: {trouble}")
        work.warnings += told.tell(found)
    if outcome == HEALTHY:
        return ok(f"healthy, {len(found['checks'])} checks in {found['seconds']:g} s")
    return StageResult(outcome, "; ".join(words), remedy=str(found["remedy"]))


def done(host: Host) -> bool:
    """Whether this instance is proven, or was put to the test in this boot.

    What was cut off, or proved nothing, is tried again at the next boot: not in this one, in which
    the workload may be running.
    """
    try:
        found = plain.mapping(json.loads(host.read(FILE) or "{}")) or {}
    except ValueError:
        return False
    if found.get("machine") != boots.machine_id(host):
        return False
    return found.get("outcome") == HEALTHY or found.get("boot") == boots.boot_id(host)


def record(host: Host, outcome: str) -> str | None:
    """Keep how it came out, also of one that was ended at its limit; what was in the way."""
    data: dict[str, Any] = {
        "machine": boots.machine_id(host),
        "boot": boots.boot_id(host),
        "outcome": outcome,
    }
    try:
        host.write(FILE, json.dumps(data) + "\n")
    except OSError as error:
        return f"that it was burnt in is not kept: {FILE}: {error}"
    return None
