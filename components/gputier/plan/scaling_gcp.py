"""What makes a group on Google larger and smaller: an autoscaler, by a figure and by the clock.

A schedule of Google's raises the least number of machines for so long; it is no start and no stop.
So outside its hours the least is none. A group that goes by the clock alone is empty some ten
minutes later, whatever its machines do (measured: github.com/runatlantis/terraform-gce-atlantis,
pull request 139, 2024). One that goes by a figure too would keep what is busy: its most is taken to
none by the clock as well, and back.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import combinations, pairwise
from typing import NamedTuple

from gputier.errors import Problem
from gputier.plan.actions import five_fields
from gputier.plan.model import Chosen
from gputier.workload import cron, schedule

#: What the Ops Agent sends of each GPU, in percent (GoogleCloudPlatform/ops-agent@021cbf40d6,
#: apps/hostmetrics.go: the fraction that NVML's receiver has, times 100).
UTILIZATION = "agent.googleapis.com/gpu/utilization"
#: An autoscaler wants one series of a machine, and there is one for each GPU: the first is taken
#: (compute v1 discovery of 2026-11-06, customMetricUtilizations).
FIRST_GPU = 'resource.type = "gce_instance" AND metric.labels.gpu_number = "0"'
#: A schedule lasts five minutes at least, and there are 128 at most (same document).
SHORTEST_SECONDS, MOST_SCHEDULES = 300, 128
#: In steps, so that a release that changes a stage's limit changes no autoscaler; autohealing waits
#: an hour at most, and a boot is over by then.
ROUND_SECONDS, MOST_WARMUP_SECONDS = 300, 3600
#: Where clocks change a window is an hour longer or shorter; what differs by more has no length.
CLOCKS_MINUTES = 60


class Signal(NamedTuple):
    """A figure that is kept at `target`: one series of each machine, found by `filter`."""

    metric: str
    filter: str
    target: float


class Hours(NamedTuple):
    """From `cron` on, in `timezone`, `machines` at least, for so long. `key` names it, and never
    holds its place in a list; `ends` is the cron of its end."""

    key: str
    cron: str
    ends: str
    timezone: str
    seconds: int
    machines: int


class Bound(NamedTuple):
    """From `cron` on, in `timezone`, `most` machines and no more. `key` names it."""

    key: str
    cron: str
    timezone: str
    most: int


class Autoscaling(NamedTuple):
    """Machines at least and at most. For `warmup_seconds` after its start a machine's figures do
    not count: that is how long a boot may take."""

    least: int
    most: int
    warmup_seconds: int
    signal: Signal | None
    hours: tuple[Hours, ...]

    @property
    def bounds(self) -> tuple[Bound, ...]:
        """What the clock tells an autoscaler that goes by a figure too."""
        if self.signal is None:
            return ()
        return tuple(
            bound
            for one in self.hours
            for bound in (
                Bound(one.key, one.cron, one.timezone, self.most),
                Bound(one.key.replace("start", "stop", 1), one.ends, one.timezone, 0),
            )
        )


def autoscaling(chosen: Chosen, boot_seconds: int) -> Autoscaling | None:
    """The autoscaler of a group; None for one of fixed size."""
    plan = chosen.scaling
    hours = hours_of(chosen)
    if plan.max == plan.min and not hours:
        return None
    signal = None
    if plan.max > plan.min and plan.target is not None:
        signal = Signal(UTILIZATION, FIRST_GPU, float(plan.target))
    warmup = min(MOST_WARMUP_SECONDS, math.ceil(boot_seconds / ROUND_SECONDS) * ROUND_SECONDS)
    return Autoscaling(0 if hours else plan.min, plan.max, warmup, signal, hours)


def hours_of(chosen: Chosen) -> tuple[Hours, ...]:
    """The plan's schedule in Google's words: a start and a length."""
    keys = {a.key.partition("-")[2]: a for a in chosen.scaling.actions if a.what == "start"}
    found: list[Hours] = []
    for start, stop, timezone in chosen.scaling.schedule:
        begins, ends = five_fields(cron.parse(start)), five_fields(cron.parse(stop))
        same = (a for a in keys.values() if (a.recurrence, a.timezone) == (begins, timezone))
        action = next(same)
        minutes = _minutes(start, stop, timezone)
        length = max(SHORTEST_SECONDS, minutes * 60)
        found.append(Hours(action.key, begins, ends, timezone, length, action.desired))
    return tuple(dict.fromkeys(found))


def _minutes(start: str, stop: str, timezone: str) -> int:
    """How long it lasts, most often."""
    lengths = Counter(end - begin for begin, end in schedule.windows(start, stop, timezone))
    return lengths.most_common(1)[0][0] if lengths else 0


def hours_problems(
    entries: Sequence[tuple[str, str, str]], *, lone: bool, bounded: bool = False
) -> Iterator[Problem]:
    """What no schedule of Google's can be told, at the schedule's field. `bounded`: the end of an
    entry takes all machines, and not its own alone."""
    if bounded:
        yield from _meeting(entries)
    if len(entries) > MOST_SCHEDULES:
        message = f"{len(entries)} schedules, and an autoscaler takes {MOST_SCHEDULES}"
        yield Problem("schedule", message, "fewer entries")
    if lone and len(entries) > 1:
        message = f"a machine by itself takes one schedule on gcp, not {len(entries)}"
        yield Problem("schedule", message, "one entry, or `scale` for a group")
    for start, stop, timezone in entries:
        windows = schedule.windows(start, stop, timezone)
        lengths = [end - begin for begin, end in windows]
        # Its own middle: the first and the last may be cut by the calendar that is looked at.
        inner = lengths[1:-1] or lengths
        usual = Counter(inner).most_common(1)[0][0] if inner else 0
        if not lone and any(abs(one - usual) > CLOCKS_MINUTES for one in inner):
            message = f"`{start}` to `{stop}` is not always as long, and on gcp a schedule has a"
            hint = "an entry for each length"
            yield Problem("schedule", f"{message} start and a length", hint)
        for text in (start, stop):
            fires = cron.parse(text)
            if len(fires.days) < 31 and len(fires.weekdays) < 7:
                message = f"`{text}` names days of the month and of the week, and how gcp joins"
                hint = "restrict one of the two day fields"
                yield Problem("schedule", f"{message} them is not known", hint)


def _meeting(entries: Sequence[tuple[str, str, str]]) -> Iterator[Problem]:
    """Entries of which one would end what the other started."""
    spans = {entry: schedule.windows(*entry) for entry in dict.fromkeys(entries)}
    for one, other in combinations(spans, 2):
        both = pairwise(sorted([*spans[one], *spans[other]]))
        if any(begin <= end for (_, end), (begin, _) in both):
            yield Problem(
                "schedule",
                f"`{one[0]}` to `{one[1]}` and `{other[0]}` to `{other[1]}` meet: the end of one"
                " would end what the other started",
                "make one entry of the two, or leave a minute between them",
            )
