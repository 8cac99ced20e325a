"""What all gates share: the steps in order, the report before anything that ends the machine."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from gputier.node import bad_hosts, boots, gate, plain
from gputier.node.breaker import Breaker, Decision
from gputier.node.cloud import Refused, Trouble
from gputier.node.cloud.here import Here
from gputier.node.cloud.http import Patience
from gputier.node.cloud.identity import Identity
from gputier.node.gates import Gate, Settled, steps
from gputier.node.gates.steps import DOES, INTERRUPTED, Step
from gputier.node.host import Host
from gputier.node.result import CONFIG, EXIT, HEALTHY, INCONCLUSIVE
from gputier.node.settings import Settings

# A verdict that nobody can read helps nobody, and ABANDON ends the machine at once.
REPORT_PATIENCE = Patience(90.0)
JOINED = "/var/lib/gputier/joined.json"


class Base(Gate):
    """The steps of a verdict. A gate fills in `enter`, `stop`, `give_up` and `go`, which raise
    Trouble for what they could not do."""

    kind = ""

    def __init__(self, settings: Settings, identity: Identity | None, host: Host) -> None:
        self.settings = settings
        self.host = host
        self.cloud = Here(host, settings, identity) if identity else None
        self.notes: list[str] = []
        # The verdict that is being settled, and whether the cloud lets the node in.
        self.report: Mapping[str, Any] = {}
        self.entered = True

    # --- what a gate fills in -------------------------------------------------------------------

    def heartbeat(self) -> str | None:
        return None

    def enter(self) -> None:
        """Tell the cloud that the node comes in."""

    def stop(self) -> None:
        """Have the fleet make no more machines."""

    def give_up(self) -> None:
        """Have this machine replaced."""

    def go(self) -> None:
        """Have this machine taken away and not replaced."""
        self.give_up()

    # --- what callers use -----------------------------------------------------------------------

    def settle(self, report: Mapping[str, Any]) -> Settled:
        healthy = str(report.get("outcome")) == HEALTHY
        return self.admit(report) if healthy else self.refuse(report)

    def admit(self, report: Mapping[str, Any]) -> Settled:
        mode = self.settings.mode
        outcome = str(report.get("outcome"))
        if mode == gate.ENFORCE and outcome != HEALTHY:
            # Somebody's own word over the verdict: then it is let in as mode `report` would.
            mode = gate.REPORT
        return self._walk(report, steps.of(mode, outcome))

    def refuse(self, report: Mapping[str, Any]) -> Settled:
        outcome = str(report.get("outcome"))
        return self._walk(report, steps.of(self.settings.mode, outcome))

    def leave(self, report: Mapping[str, Any]) -> Settled:
        return self._walk(report, steps.of(self.settings.mode, INTERRUPTED))

    def revoke(
        self, outcome: str, reasons: Sequence[str], report: Mapping[str, Any] | None = None
    ) -> Settled:
        self.notes, self.report = [], report or {"outcome": outcome}
        state = gate.shut(self.host, outcome, reasons)
        does = DOES[self.kind]
        order = [step for step in (Step.REPORT,) if report and step in does]
        if not state.open:
            order += [step for step in (Step.REMEMBER,) if report and step in does]
            order.append(Step.GIVE_UP)
        done: list[Step] = [Step.SHUT]
        failed: list[Step] = []
        for step in order:
            (done if self._try(step, self._doing(step, [])) else failed).append(step)
        return self._settled(outcome, tuple(done), tuple(failed))

    def tell(self, report: Mapping[str, Any]) -> tuple[str, ...]:
        self.notes, self.report = [], report
        if Step.REPORT in DOES[self.kind]:
            self._try(Step.REPORT, self._upload)
        return tuple(self.notes)

    def known_bad(self, fingerprint: Mapping[str, Any]) -> str | None:
        if self.cloud is None:
            return None
        try:
            return bad_hosts.met(self.cloud.store, self.workload, fingerprint)
        except Trouble as error:
            self.notes.append(f"whether this host is known to be bad: {error}")
            return None

    @property
    def workload(self) -> str:
        return self.settings.text("workload") or "workload"

    # --- the steps ------------------------------------------------------------------------------

    def _walk(self, report: Mapping[str, Any], order: Sequence[Step]) -> Settled:
        outcome = str(report.get("outcome"))
        self.notes, self.report, self.entered = [], report, True
        done: list[Step] = []
        failed: list[Step] = []
        waiting = [step for step in order if step in DOES[self.kind]]
        while waiting:
            step = waiting.pop(0)
            if step is Step.OPEN and (Step.ENTER in failed or not self.entered):
                # The cloud does not know, or keeps it aside: then no work may come to it.
                self._shut()
                continue
            (done if self._try(step, self._doing(step, waiting)) else failed).append(step)
        return self._settled(outcome, tuple(done), tuple(failed))

    def _doing(self, step: Step, waiting: list[Step]) -> Callable[[], None]:
        def count() -> None:
            if self._count().tripped:
                after = steps.of(self.settings.mode, CONFIG, tripped=True)
                rest = after[after.index(Step.COUNT) + 1 :]
                waiting[:] = [other for other in rest if other in DOES[self.kind]]

        return {
            Step.SHUT: self._shut,
            Step.REPORT: self._upload,
            Step.CLEAR: self._clear,
            Step.COUNT: count,
            Step.REMEMBER: self._remember,
            Step.STOP: self.stop,
            Step.ENTER: self.enter,
            Step.OPEN: self._open,
            Step.GIVE_UP: self.give_up,
            Step.GO: self.go,
        }[step]

    def _try(self, step: Step, do: Callable[[], None]) -> bool:
        try:
            do()
        except (Trouble, OSError) as error:
            self.notes.append(f"{step.value}: {error}")
            return False
        return True

    def _settled(self, outcome: str, done: tuple[Step, ...], failed: tuple[Step, ...]) -> Settled:
        state = gate.read(self.host)
        mode = self.settings.mode
        words = f"gate {'open' if state.open else 'shut'} ({mode}, {outcome})"
        steps_done = ", ".join(step.value for step in done)
        fine = state.open or (outcome == HEALTHY and not failed)
        ends = 0 if fine else EXIT.get(outcome) or EXIT[INCONCLUSIVE]
        return Settled(state.open, done, failed, f"{words}: {steps_done}", tuple(self.notes), ends)

    def _shut(self) -> None:
        outcome = str(self.report.get("outcome"))
        # Where the cloud keeps a node aside its note is what tells that it comes out again.
        notes = () if self.entered else tuple(self.notes)
        reasons = (*notes, *_reasons(self.report)) or tuple(self.notes) or (outcome,)
        now = int(self.host.now())
        gate.write(self.host, gate.Gate(False, outcome, gate.ENFORCE, reasons, now))

    def _open(self) -> None:
        mode = self.settings.mode
        outcome = "unchecked" if mode == gate.OFF else str(self.report.get("outcome"))
        now = int(self.host.now())
        gate.write(self.host, gate.Gate(True, outcome, mode, _reasons(self.report), now))
        # The instance is for stage 0's fetcher, which knows itself by nothing else.
        instance = self.cloud.known.instance_id if self.cloud else ""
        who = {"machine": boots.machine_id(self.host), "instance": instance}
        try:
            self.host.write(JOINED, json.dumps(who) + "\n")
        except OSError as error:
            self.notes.append(f"that it joined is not kept: {error}")

    def joined(self) -> bool:
        """Whether this instance came in before: then it is no new one."""
        try:
            data = plain.mapping(json.loads(self.host.read(JOINED) or "{}")) or {}
        except ValueError:
            return False
        return data.get("machine") == boots.machine_id(self.host)

    def here(self) -> Here:
        """The cloud. Raises Trouble where the machine could not find out who it is."""
        if self.cloud is None:
            raise Trouble("the machine does not know who it is")
        return self.cloud

    def _upload(self) -> None:
        cloud = self.here()
        text = json.dumps(self.report, indent=2, sort_keys=True) + "\n"
        cloud.store.put(report_key(cloud, self.report), text.encode(), REPORT_PATIENCE)

    def _breaker(self) -> Breaker:
        found = self.settings
        window = found.breaker_window_seconds
        return Breaker(self.here().store, self.workload, found.breaker_after, window)

    def _clear(self) -> None:
        # A node that comes back says nothing about new ones.
        if not self.joined():
            self._breaker().clear()

    def _count(self) -> Decision:
        if self.joined():
            return Decision(False, (), "not a new node")
        try:
            found = self._breaker().count(self.here().identity.instance_id, self.report)
        except Refused as error:
            # 404 is the bucket's: a key that is not there is no hindrance to write it.
            refused = error.denied or error.status == 404
            if not refused or self.report.get("outcome") != CONFIG:
                raise
            # It refuses every node of the fleet alike, so nobody counts, ever (as the fetcher).
            found = Decision(True, (), f"nobody may count: {error}")
        self.notes.append(f"breaker: {found.words}")
        return found

    def _remember(self) -> None:
        cloud = self.here()
        shown = plain.mapping(self.report.get("host")) or {}
        reason, who = ", ".join(_causes(self.report)), cloud.identity.instance_id
        if not bad_hosts.add(cloud.store, self.workload, shown, who, reason):
            self.notes.append("this host shows nothing to know it by again")


def report_key(cloud: Here, report: Mapping[str, Any]) -> str:
    """`reports/<workload>/<instance>/<utc>-<outcome>.json`: never the same twice."""
    at = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime(cloud.host.now()))
    workload = cloud.settings.text("workload") or "workload"
    return f"reports/{workload}/{cloud.identity.instance_id}/{at}-{report.get('outcome')}.json"


def _causes(report: Mapping[str, Any]) -> list[str]:
    return [str(name) for name in plain.sequence(report.get("causes")) or ()]


def _reasons(report: Mapping[str, Any]) -> tuple[str, ...]:
    causes = _causes(report)
    checks = [plain.mapping(item) or {} for item in plain.sequence(report.get("checks")) or ()]
    return tuple(
        f"{check['name']}: {check.get('evidence', '')}"
        for check in checks
        if check.get("name") in causes
    )
