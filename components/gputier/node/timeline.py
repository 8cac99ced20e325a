"""What a boot did, stage by stage: kept as it goes, so that a boot that was cut off is seen too.

`/var/lib/gputier/timeline.json` has the last boots of this instance. Times are of the monotonic
clock since power-on: the wall clock may jump while a machine starts.
"""

from __future__ import annotations

import json
import re
from typing import Any, NamedTuple

from gputier.node import boots, plain
from gputier.node.engine import DEFAULT_REMEDIES, PREPARATION
from gputier.node.host import Host
from gputier.node.result import HEALTHY, REBOOT, Result

SCHEMA = "gputier/timeline/1"
FILE = "/var/lib/gputier/timeline.json"
RUNNING, INTERRUPTED = "running", "interrupted"
# The name that a notice of the provider has among the checks of a report.
INTERRUPTION = "interruption"
KEPT = 16
EVIDENCE_LIMIT = 400


class Entry(NamedTuple):
    """One stage of one boot. `at`: seconds from power-on to its start; `outcome` may be running."""

    name: str
    title: str
    at: float
    seconds: float
    limit: float
    outcome: str
    evidence: str
    changed: bool = False
    remedy: str = ""
    then: str = ""


class Boot(NamedTuple):
    """One boot of this instance. `end` says what it came to, empty while it goes on.

    `up_seconds`: how long the machine had been on when this was last written; `since`: how long
    when this arrival began, above 0 where an earlier one in the same boot had come to its end.
    """

    boot_id: str
    began: int
    up_seconds: float
    end: str
    stages: tuple[Entry, ...]
    since: float = 0.0


class Timeline(NamedTuple):
    machine: str
    boots: tuple[Boot, ...]

    @property
    def last(self) -> Boot:
        return self.boots[-1]


# What a boot came to. Behind a verdict a new arrival begins; ASIDE is the warm pool's.
ADMITTED, REFUSED, ASIDE, REBOOTING = "admitted", "refused", "kept aside", "rebooting"
SETTLED = (ADMITTED, REFUSED, ASIDE)


def up(host: Host) -> float:
    """Seconds since power-on; 0 where the kernel does not tell."""
    found = re.match(r"^(\d+(?:\.\d+)?)", host.read("/proc/uptime") or "")
    return float(found[1]) if found else 0.0


def read(host: Host) -> Timeline:
    """The boots so far; another instance's do not count, nor what cannot be read."""
    machine = boots.machine_id(host)
    try:
        data = plain.mapping(json.loads(host.read(FILE) or "{}")) or {}
        if data.get("schema") == SCHEMA and data.get("machine") == machine:
            found = tuple(_boot(boot) for boot in plain.sequence(data.get("boots")) or ())
            return Timeline(machine, found)
    except (ValueError, KeyError, TypeError):
        pass
    return Timeline(machine, ())


def _boot(data: Any) -> Boot:
    stages = tuple(Entry(**stage) for stage in data["stages"])
    up_seconds, since = float(data["up_seconds"]), float(data.get("since", 0.0))
    end = str(data["end"])
    return Boot(str(data["boot_id"]), int(data["began"]), up_seconds, end, stages, since)


def to_json(found: Timeline) -> str:
    data = {
        "schema": SCHEMA,
        "machine": found.machine,
        "boots": [
            {**boot._asdict(), "stages": [entry._asdict() for entry in boot.stages]}
            for boot in found.boots
        ],
    }
    return json.dumps(data, indent=2) + "\n"


def failed(boot: Boot, judges: str = "validate") -> Entry | None:
    """The stage that ended the preparation in this boot's last run, None when none did."""
    before = [entry for entry in boot.stages if entry.name != judges]
    good = (HEALTHY, REBOOT, RUNNING, INTERRUPTED)
    return before[-1] if before and before[-1].outcome not in good else None


def as_result(entry: Entry) -> Result:
    """A stage as a check of a report."""
    return Result(
        name=f"stage-{entry.name}",
        title=entry.title,
        outcome=entry.outcome,
        evidence=entry.evidence,
        expected=f"done within {entry.limit:g} s",
        source="docs/boot.md, stages",
        remedy=entry.remedy or DEFAULT_REMEDIES[entry.outcome],
        seconds=entry.seconds,
        stage=PREPARATION,
    )


class Writer:
    """The timeline of a boot that goes on; each change is on disk before the next thing happens."""

    def __init__(self, host: Host) -> None:
        self.host = host
        self.trouble = ""
        found = read(host)
        boot = boots.boot_id(host) or "unknown"
        if not found.boots or found.last.boot_id != boot:
            new = Boot(boot, int(host.now()), up(host), "", ())
            found = found._replace(boots=(*found.boots, new)[-KEPT:])
        self.found = found
        # A run before this one, in the same boot, was killed in the middle of a stage.
        cut = [
            entry._replace(outcome=INTERRUPTED, evidence="the run ended in the middle of it")
            if entry.outcome == RUNNING
            else entry
            for entry in self.boot.stages
        ]
        # The verdict was given, and somebody asks again: out of a warm pool, or by hand.
        since = up(host) if self.boot.end in SETTLED else self.boot.since
        self._keep(self.boot._replace(end="", stages=tuple(cut), since=since))

    @property
    def boot(self) -> Boot:
        return self.found.last

    def begin(self, name: str, title: str, limit: float) -> None:
        at = round(up(self.host), 1)
        entry = Entry(name, title, at, 0.0, round(limit, 1), RUNNING, "")
        self._keep(self.boot._replace(stages=(*self.boot.stages, entry)))

    def done(self, **changes: Any) -> None:
        """How the stage that runs came out."""
        if "evidence" in changes:
            changes["evidence"] = str(changes["evidence"])[:EVIDENCE_LIMIT]
        entry = self.boot.stages[-1]._replace(**changes)
        self._keep(self.boot._replace(stages=(*self.boot.stages[:-1], entry)))

    def end(self, what: str) -> None:
        self._keep(self.boot._replace(end=what))

    def spent(self, per_reboot: float) -> float:
        """Seconds since this arrival began, with a share for each reboot on the way."""
        total = up(self.host) - self.boot.since
        if self.boot.since:
            return total
        for boot in reversed(self.found.boots[:-1]):
            if boot.end in SETTLED:
                break
            total += boot.up_seconds - boot.since + per_reboot
            if boot.since:
                break
        return total

    def _keep(self, boot: Boot) -> None:
        boot = boot._replace(up_seconds=round(up(self.host), 1))
        self.found = self.found._replace(boots=(*self.found.boots[:-1], boot))
        try:
            self.host.write(FILE, to_json(self.found))
        except OSError as error:
            # Preparation is worth more than its record; the report says that there is none.
            self.trouble = f"the timeline was not kept: {FILE}: {error}"


def text(found: Timeline, boots_shown: int = 0) -> str:
    """The boots as aligned columns, the last `boots_shown` or all."""
    shown = found.boots[-boots_shown:] if boots_shown else found.boots
    if not shown:
        return "no boot of this machine is on record\n"
    return "\n".join(_screen(boot) for boot in shown)


def _screen(boot: Boot) -> str:
    head = ("at", "stage", "took", "limit", "outcome", "evidence")
    rows = [
        (
            f"{entry.at:.1f} s",
            entry.name,
            f"{entry.seconds:.1f} s",
            f"{entry.limit:g} s",
            entry.outcome + (" *" if entry.changed else ""),
            entry.evidence,
        )
        for entry in boot.stages
    ]
    widths = [max(len(row[i]) for row in (head, *rows)) for i in range(5)]
    right = (0, 2, 3)
    lines = [
        "  ".join(
            [cell.rjust(w) if i in right else cell.ljust(w) for i, (cell, w) in cells] + [row[5]]
        ).rstrip()
        for row in (head, *rows)
        for cells in [list(enumerate(zip(row, widths)))]
    ]
    total = sum(entry.seconds for entry in boot.stages)
    limit = sum(entry.limit for entry in boot.stages)
    lines.append(f"{boot.end or 'going on'}: {total:.1f} s in stages, of {limit:g} s allowed")
    mark = "  * changed the machine\n" if any(entry.changed for entry in boot.stages) else ""
    return f"boot {boot.boot_id}\n" + "".join(f"  {line}\n" for line in lines) + mark
