"""`boot`: every stage in order, the validation, the gate, then a burn-in, and the workload.

Each stage is a process of its own with a limit of its own, so nothing that hangs in one keeps the
verdict from being given. All may end at any point and start again: what was done is found done. One
deadline stands above all limits; past it the verdict is inconclusive rather than late.
"""

from __future__ import annotations

import json
import sys
from typing import NamedTuple

from gputier.node import boots, gate, kernels, processes, report, stages, timeline
from gputier.node.engine import DEFAULT_REMEDIES, Context, Verdict
from gputier.node.expect import Expectation
from gputier.node.heartbeat import Heartbeat
from gputier.node.host import SELF, Done, Host
from gputier.node.result import CONFIG, EXIT, HEALTHY, INCONCLUSIVE, REBOOT
from gputier.node.settings import Settings
from gputier.node.stages import Stage, StageResult, burn_in
from gputier.node.timeline import Entry

# What a stage prints last, before its result as JSON.
MARK = "gputier-stage:"
# Before an inconclusive validation is tried once more: services that start late have started.
AGAIN_SECONDS = 20.0
# Of a short deadline, telling the cloud keeps at most this share for itself.
TELLING_SHARE = 0.2


class Inputs(NamedTuple):
    """What a boot is given. `problem`: why the expectation cannot be used, empty when it can."""

    host: Host
    settings: Settings
    expect: Expectation
    problem: str = ""


class Runner:
    """One run of a boot. `boot` is its exit status."""

    def __init__(self, given: Inputs, heartbeat: Heartbeat) -> None:
        self.host, self.settings, self.expect, self.problem = given
        self.heartbeat = heartbeat
        self.written = timeline.Writer(self.host)
        left = self.settings.deadline_seconds - self.written.spent(stages.REBOOT_SECONDS)
        self.until = self.host.monotonic() + left

    # --- the whole ----------------------------------------------------------------------------

    def boot(self) -> int:
        """Prepare, judge, tell; 0 when the node joins or reboots, else what the outcome says."""
        if gate.read(self.host).open:
            # In this boot it joined already, and may be at work: nothing is prepared under it.
            _say("the gate is open since an earlier run of this boot")
            return self._serve()
        self.heartbeat.start()
        try:
            bad = self._prepare()
            if bad is not None and bad.outcome == REBOOT:
                return self._reboot(bad.evidence)
            outcome = self._judge(bad)
            if outcome == REBOOT and self._may_reboot():
                return self._reboot("the validation asks for it")
        finally:
            self.heartbeat.stop()
        return self._tell(outcome)

    def _prepare(self) -> Entry | None:
        """The stages before the validation; the one that ended it, None when all came out well."""
        if self.problem:
            self.written.begin("settings", "settings and expectation", 0.0)
            remedy = "render the stack again with the gputier that its lock names"
            self.written.done(outcome=CONFIG, evidence=self.problem, remedy=remedy)
            return self.written.boot.stages[-1]
        for stage in stages.preparing(self.settings):
            entry = self._stage(stage)
            if entry.outcome == REBOOT:
                entry = self._counted(entry)
            if entry.outcome != HEALTHY:
                return entry
        return None

    def _judge(self, bad: Entry | None) -> str:
        """The outcome, with a report on disk whatever happened."""
        if self.settings.mode == gate.OFF:
            self._report(bad)
            return bad.outcome if bad else HEALTHY
        stage = stages.BY_NAME[stages.VALIDATE]
        depth = self.settings.depth if bad is None else "quick"
        outcome = self._validation(stage, depth, bad)
        seconds = stage.seconds(self.settings)
        again = bad is None and outcome == INCONCLUSIVE and not interrupted(self.host)
        if again and self._left() > seconds + AGAIN_SECONDS:
            self.host.sleep(AGAIN_SECONDS)
            outcome = self._validation(stage, depth, bad)
        return outcome

    def _validation(self, stage: Stage, depth: str, bad: Entry | None) -> str:
        # Only this run's report counts: without one, what follows makes it.
        before = None
        try:
            self.host.remove(report.FILE)
        except OSError as error:
            before = report.load(self.host)
            _say(f"an earlier report cannot be removed: {error}")
        self._stage(stage, "--depth", depth)
        found = report.load(self.host)
        return str(found["outcome"]) if found and found != before else self._report(bad)

    def _report(self, bad: Entry | None) -> str:
        """A report of the stages alone; its outcome."""
        last = self.written.boot.stages[-1] if self.written.boot.stages else None
        entry = bad or (last if last and last.outcome != HEALTHY else None)
        results = () if entry is None else (timeline.as_result(entry),)
        outcome = HEALTHY if entry is None else entry.outcome
        ctx = Context(self.host, self.expect)
        ctx.end = self.host.monotonic()  # no command: what could be asked did not answer
        warnings = (*self.settings.warnings, "no check was run")
        verdict = Verdict(outcome, results, (), warnings, sum(r.seconds for r in results))
        found = report.build(ctx, verdict, self.settings.depth)
        trouble = report.save(self.host, {**found, "gate": self.settings.mode})
        if trouble:
            _say(f"the report was not kept: {trouble}")
        return outcome

    def _tell(self, outcome: str) -> int:
        """The gate, and behind an open one the workload."""
        if self.heartbeat.trouble:
            _say(self.heartbeat.trouble)
        told = self._stage(stages.BY_NAME[stages.GATE])
        if not gate.read(self.host).open:
            # A warm pool keeps a healthy node aside: it is proved again when it comes out.
            aside = outcome == HEALTHY and told.outcome == HEALTHY
            self.written.end(timeline.ASIDE if aside else timeline.REFUSED)
            _say(f"{'kept aside' if aside else 'refused'}: {outcome}")
            return 0 if aside else EXIT[outcome] or EXIT[INCONCLUSIVE]
        self.written.end(timeline.ADMITTED)
        boots.arrived(Context(self.host, self.expect))
        _say(f"admitted: {outcome}")
        return self._serve()

    def _serve(self) -> int:
        """What comes behind the open gate: the burn-in where there is one, then the workload."""
        # The verdict is given: what is left of the deadline no longer counts.
        self.until = float("inf")
        if stages.burns_in(self.settings, self.expect) is None and not burn_in.done(self.host):
            entry = self._stage(stages.BY_NAME[stages.BURN_IN])
            self.written.end(timeline.ADMITTED)
            trouble = burn_in.record(self.host, entry.outcome)
            if trouble:
                _say(trouble)
            if not gate.read(self.host).open:
                self.written.end(timeline.REFUSED)
                _say(f"taken out of service: {entry.outcome}")
                return EXIT[entry.outcome] or EXIT[INCONCLUSIVE]
        return self._workload()

    def _workload(self) -> int:
        stage = stages.BY_NAME[stages.WORKLOAD]
        if stage.applies(self.settings) is not None:
            return 0
        entry = self._stage(stage)
        self.written.end(timeline.ADMITTED)
        return EXIT[entry.outcome]

    # --- one stage ----------------------------------------------------------------------------

    def _stage(self, stage: Stage, *arguments: str) -> Entry:
        """Run a stage in a process of its own, at most until its limit or the deadline."""
        limit = stage.seconds(self.settings)
        allowed = min(limit, self._left() if stage.name != stages.GATE else limit)
        self.written.begin(stage.name, stage.title, limit)
        started = self.host.monotonic()
        if allowed <= 0:
            whole = f"{self.settings.deadline_seconds:g} s"
            found = stages.inconclusive(f"not begun: the deadline of {whole} is used up")
        else:
            found = self._process(stage, allowed, arguments)
        seconds = round(self.host.monotonic() - started, 1)
        self.written.done(
            seconds=seconds,
            outcome=found.outcome,
            evidence=found.evidence,
            changed=found.changed,
            remedy=found.remedy,
            then=found.then,
        )
        for warning in found.warnings:
            _say(f"stage {stage.name}: warning: {warning}")
        _say(f"stage {stage.name}: {found.outcome}, {seconds:g} of {limit:g} s: {found.evidence}")
        return self.written.boot.stages[-1]

    def _process(self, stage: Stage, allowed: float, arguments: tuple[str, ...]) -> StageResult:
        within = max(allowed - stages.MARGIN_SECONDS, allowed / 2)
        argv = (SELF, "stage", stage.name, "--json", "--seconds", f"{within:.1f}", *arguments)
        done = self.host.run(argv, allowed)
        if done.state == "timeout":
            processes.sweep()
        return parse(done, allowed)

    def _left(self) -> float:
        """Seconds until the deadline, less what telling the cloud may take."""
        whole = self.settings.deadline_seconds * TELLING_SHARE
        telling = min(stages.BY_NAME[stages.GATE].seconds(self.settings), whole)
        return self.until - self.host.monotonic() - telling

    # --- reboots ------------------------------------------------------------------------------

    def _counted(self, entry: Entry) -> Entry:
        """The stage's wish for a reboot, or what it comes to when that may not be."""
        ctx = Context(self.host, self.expect)
        why = self._unsafe(ctx)
        outcome = CONFIG if why else entry.then
        if why is None and self._left() < stages.REBOOT_SECONDS:
            why, outcome = "the deadline leaves no time for it", INCONCLUSIVE
        why = why or boots.prepare(ctx, self.settings.reboots)
        if why is None:
            return entry
        evidence = f"{entry.evidence}; not rebooted: {why}"
        self.written.done(outcome=outcome, evidence=evidence, remedy=DEFAULT_REMEDIES[outcome])
        _say(f"stage {entry.name}: {outcome}: {evidence}")
        return self.written.boot.stages[-1]

    def _unsafe(self, ctx: Context) -> str | None:
        """Why a reboot would make it worse: the next kernel has no module of the driver."""
        return kernels.trouble(ctx) if self.settings.has("driver") else None

    def _may_reboot(self) -> bool:
        """Whether a reboot that the validation asks for is done; it has counted it already."""
        if self.settings.mode != gate.ENFORCE or self._left() < stages.REBOOT_SECONDS:
            return False
        why = self._unsafe(Context(self.host, self.expect))
        if why:
            _say(f"not rebooted: {why}")
        return why is None

    def _reboot(self, why: str) -> int:
        self.written.end(timeline.REBOOTING)
        _say(f"rebooting: {why}")
        done = self.host.run(("systemctl", "reboot"), 60.0)
        if done.ok:
            return 0
        # Nothing more can be done from here; the cloud's own timeout gives the machine back.
        _say(f"systemctl reboot: {done.how}: {done.says()}")
        return EXIT[INCONCLUSIVE]


def interrupted(host: Host) -> bool:
    """Whether the provider takes the machine: then there is nothing to be tried again."""
    found = report.load(host)
    return found is not None and timeline.INTERRUPTION in found["causes"]


def parse(done: Done, allowed: float) -> StageResult:
    """What a stage's process said, or how it ended without a word."""
    for line in reversed(done.out.splitlines()):
        if line.startswith(MARK):
            try:
                found = json.loads(line[len(MARK) :])
                return StageResult(**found)._replace(warnings=tuple(found["warnings"]))
            except (ValueError, TypeError, KeyError):
                break
    if done.state == "timeout":
        return stages.inconclusive(f"no end within {allowed:g} s; it was killed")
    return stages.inconclusive(f"it ended without a result: {done.how}: {done.says()}")


def _say(words: str) -> None:
    """One line for the journal and the console, at once."""
    sys.stderr.write(f"gputier-node: {words}\n")
    sys.stderr.flush()
