"""Deadline arithmetic: every stage's limit, reboots included, against what the cloud waits for.

A hook or an autohealer that gives up before the last stage had its time replaces good machines for
ever (github.com/runatlantis/terraform-gce-atlantis/issues/208). So the sum is made before anything
is deployed, and a plan whose sum does not fit is refused with the table.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from gputier.node import settings as node
from gputier.node.stages import AFTER, GATE, REBOOT_SECONDS, VALIDATE, applying

#: From the request for a machine to our first line: firmware, kernel, cloud-init's own stages.
#: Large machines take minutes until they run anything (our own allowance, unverified).
POWER_ON_SECONDS = 300
#: Of these, what is over when the kernel begins to count: a node's deadline is by its uptime.
UNCOUNTED_SECONDS = 120
#: A stage that finds its work done says so: after a reboot every earlier one looks again.
AGAIN_SECONDS = 5
#: No limit is cut below this part: under it, what takes its usual time would be called too slow. A
#: driver's installation is near its limit when all is well; the lock of the package manager is
#: mostly free at once, and Google's gate is a port that opens.
LEAST_PART = 0.5
LEAST_PARTS: Mapping[str, float] = {"packages": 0.27, "bundle": 0.4, "driver": 0.65, GATE: 0.45}
BUNDLE = "bundle"
#: What is as it is: nothing we set makes a machine start sooner, and cutting the checks' time would
#: leave checks out.
FIXED = ("power-on", "reboots", VALIDATE, "validate-again")

#: AWS: a hook waits its heartbeat timeout of 30 to 7,200 s after each sign of life, and 48 h or 100
#: times that in all, whichever is less (botocore, PutLifecycleHook; AWS documentation, lifecycle
#: hooks). The node sends one each minute; without signs it may be booting and fetching the bundle.
HOOK_SECONDS = (30, 7200)
HOOK_MOST_SECONDS = 48 * 3600
HOOK_TIMES = 100
HEARTBEATS_MISSED = 5
#: GCP: the autohealer's initial delay is 0 to 3,600 s and counts from the machine's creation; then
#: the health check has to find the endpoint open once.
INITIAL_DELAY_SECONDS = 3600
HEALTH_CHECK_SECONDS = 60
#: Where the cloud leaves the choice, a deadline is whole hours and at least two: the stages' own
#: limits bound the boot, and a release that changes one of them changes no user data.
ROUND_SECONDS, LEAST_SECONDS, HOOK_ROUND_SECONDS = 3600, 7200, 300


class Row(NamedTuple):
    """One part of the sum. `cut_from` is the stage's own limit where this plan leaves it less."""

    name: str
    title: str
    seconds: int
    why: str
    cut_from: int | None = None


class Deadline(NamedTuple):
    """The table. `allowed_seconds` is what the cloud waits at most, None for a lone machine;
    `hook_seconds` the hook's heartbeat timeout (AWS) or the autohealer's initial delay (GCP);
    `deadline_seconds` what the node holds itself to."""

    rows: tuple[Row, ...]
    allowed_seconds: int | None
    allowed_by: str
    hook_seconds: int | None
    deadline_seconds: int

    @property
    def total_seconds(self) -> int:
        return sum(row.seconds for row in self.rows)

    @property
    def fits(self) -> bool:
        return self.allowed_seconds is None or self.total_seconds <= self.allowed_seconds

    @property
    def cut(self) -> dict[str, int]:
        """Limits that this plan sets for stages, by name."""
        return {row.name: row.seconds for row in self.rows if row.cut_from is not None}


def deadline(settings: node.Settings) -> Deadline:
    """The arithmetic of these settings, limits cut where the cloud would not wait so long.

    Raises `ValueError` for a time without signs of life that no hook can wait."""
    rows = tuple(_rows(settings, again=True))
    total = max(LEAST_SECONDS, _rounded(sum(row.seconds for row in rows), ROUND_SECONDS))
    kind, bundle = settings.gate_kind, settings.limits().get(BUNDLE, 0)
    if kind == node.LIFECYCLE_HOOK:
        quiet = POWER_ON_SECONDS + bundle + HEARTBEATS_MISSED * settings.heartbeat_seconds
        hook = max(HOOK_SECONDS[0], _rounded(max(quiet, REBOOT_SECONDS), HOOK_ROUND_SECONDS))
        if hook > HOOK_SECONDS[1]:
            raise ValueError(f"a hook waits {HOOK_SECONDS[1]:,} s for a sign of life, not {hook:,}")
        allowed = min(HOOK_MOST_SECONDS, HOOK_TIMES * hook)
        by = f"a launch hook waits 48 h, or {HOOK_TIMES} times its heartbeat timeout of {hook:,} s"
        return Deadline(rows, allowed, by, hook, total)
    if kind == node.HEALTH_ENDPOINT:
        allowed = INITIAL_DELAY_SECONDS - HEALTH_CHECK_SECONDS
        by = (
            f"autohealing waits {INITIAL_DELAY_SECONDS:,} s at most, {HEALTH_CHECK_SECONDS} s of"
            " them for the health check to see it"
        )
        if sum(row.seconds for row in rows) > allowed:
            rows = _fitted(tuple(_rows(settings, again=False)), allowed)
        own = allowed - UNCOUNTED_SECONDS
        return Deadline(rows, allowed, by, INITIAL_DELAY_SECONDS, own)
    return Deadline(rows, None, "nobody waits for a lone machine", None, total)


def _rows(settings: node.Settings, again: bool) -> Iterator[Row]:
    """The parts in their order, up to the verdict. Burn-in and workload come after it.

    `again`: a validation that asked for a reboot has its whole time once more. Without, it has what
    is left of the deadline, and is inconclusive when that is not enough.
    """
    stages = [stage for stage in applying(settings) if stage.name not in AFTER]
    yield Row("power-on", "from the request to our first line", POWER_ON_SECONDS, "our allowance")
    bundle = math.ceil(settings.limits().get(BUNDLE, 0))
    yield Row(BUNDLE, "node bundle", bundle, "late metadata and roles, throttled storage")
    for stage in stages:
        why = stage.default(settings).why
        yield Row(stage.name, stage.title, math.ceil(stage.seconds(settings)), why)
    # Of the preparation, and one that the validation may ask for (node/boots.py).
    reboots = settings.reboots + (settings.mode != "off")
    one = math.ceil(REBOOT_SECONDS) + AGAIN_SECONDS * (len(stages) + 1)
    why = f"{REBOOT_SECONDS:g} s each, and {AGAIN_SECONDS} s for each stage to look again"
    yield Row("reboots", f"reboots: {reboots}", reboots * one, why)
    judged = [stage for stage in stages if stage.name == VALIDATE]
    for stage in judged if again else ():
        why = "the whole of it once more after a reboot"
        yield Row("validate-again", stage.title, math.ceil(stage.seconds(settings)), why)


def _fitted(rows: tuple[Row, ...], room: int) -> tuple[Row, ...]:
    """The rows as they are where they fit, else each gives the same part of what it can spare."""
    total = sum(row.seconds for row in rows)
    if total <= room:
        return rows
    spare = {row.name: row.seconds - _least(row) for row in rows}
    part = min(1.0, (total - room) / max(1.0, sum(spare.values())))
    return tuple(
        row._replace(seconds=math.floor(row.seconds - part * spare[row.name]), cut_from=row.seconds)
        if spare[row.name]
        else row
        for row in rows
    )


def _least(row: Row) -> float:
    return row.seconds * (1.0 if row.name in FIXED else LEAST_PARTS.get(row.name, LEAST_PART))


def _rounded(seconds: float, to: int) -> int:
    return math.ceil(seconds / to) * to


def table(found: Deadline) -> list[str]:
    """The table as lines: name, seconds, the sum and what it is held against."""
    width = max(len(row.name) for row in found.rows)
    lines = [
        f"{row.name:<{width}}  {row.seconds:>6,} s"
        + (f"  cut from {row.cut_from:,} s" if row.cut_from else "")
        for row in found.rows
    ]
    total = f"{'sum':<{width}}  {found.total_seconds:>6,} s"
    if found.allowed_seconds is not None:
        total += f"  of {found.allowed_seconds:,} s"
    lines += [total, f"{'':<{width}}  {found.allowed_by}"]
    return lines


def document(found: Deadline) -> Mapping[str, object]:
    """The same for JSON."""
    return {
        "stages": [row._asdict() for row in found.rows],
        "total_seconds": found.total_seconds,
        "allowed_seconds": found.allowed_seconds,
        "allowed_by": found.allowed_by,
        "hook_seconds": found.hook_seconds,
        "deadline_seconds": found.deadline_seconds,
    }
