"""The machine is judged against the expectation; its report is what the gate acts on.

After a preparation that ended early it is judged quickly, for evidence: the stage that failed is
the report's first check, and what fails because of it is told as that. A host that was given back
before is given back again, and a machine that the provider is about to take is not judged at all.
"""

from __future__ import annotations

from gputier.node import gates, report, timeline, watching
from gputier.node.cloud import identity
from gputier.node.engine import Context, Verdict
from gputier.node.result import HEALTHY, INCONCLUSIVE, REPLACE, Result
from gputier.node.stages import StageResult, Work, ok
from gputier.node.verbs import common

# What is left of the stage's time when all checks are to be done: for the report.
REPORT_SECONDS = 15.0
KNOWN = Result(
    "known-host",
    "host given back before",
    REPLACE,
    "",
    "a host that was not given back",
    "bad-hosts of this workload in the stack's bucket",
    "give the machine back: it is the same bad host again",
    0.0,
    "preparation",
)
TAKEN = Result(
    timeline.INTERRUPTION,
    "notice of the provider",
    INCONCLUSIVE,
    "",
    "no notice while the machine is judged",
    "the metadata service",
    "nothing: the provider takes the machine, whatever its state",
    0.0,
    "end",
)


def run(work: Work) -> StageResult:
    """Judge; the stage's outcome is the node's."""
    ctx = Context(work.host, work.expect)
    ctx.end = work.deadline - REPORT_SECONDS
    depth = work.depth
    found = timeline.read(work.host)
    bad = timeline.failed(found.last) if found.boots else None
    if bad is not None:
        ctx.unprepared = timeline.as_result(bad)
    else:
        ctx.unprepared = known_host(work, ctx)
        depth = "quick" if ctx.unprepared else depth
    said = common.judge_in(ctx, depth, after=unless_taken).report
    outcome = str(said["outcome"])
    if outcome == HEALTHY:
        return ok(f"healthy, {len(said['checks'])} checks in {said['seconds']:g} s")
    causes = [check for check in said["checks"] if check["name"] in said["causes"]]
    evidence = "; ".join(f"{check['name']}: {check['evidence']}" for check in causes)
    return StageResult(outcome, evidence, remedy=str(said["remedy"]))


def known_host(work: Work, ctx: Context) -> Result | None:
    """The finding that this very host was given back before, None when it was not."""
    gate = gates.of(work.settings, identity.load(work.host), work.host)
    why = gate.known_bad(report.fingerprint(ctx))
    return KNOWN._replace(evidence=why) if why else None


def unless_taken(ctx: Context, verdict: Verdict) -> Verdict:
    """A notice that came meanwhile explains everything, and proves nothing of the machine."""
    words = watching.notice(ctx, str(report.machine(ctx)["cloud"] or ""))
    if not words:
        return verdict
    because = (TAKEN.name,)
    results = tuple(
        result._replace(outcome=INCONCLUSIVE, because=because)
        if result.counts and result.outcome != HEALTHY
        else result
        for result in verdict.results
    )
    return verdict._replace(
        outcome=INCONCLUSIVE, results=(*results, TAKEN._replace(evidence=words))
    )
