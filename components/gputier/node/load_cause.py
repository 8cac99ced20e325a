"""Why the GPUs idle: the input is too slow, the batch is too small, or the CPU is too busy.

Told apart by what the rest of the machine does meanwhile. A job that waits for its data leaves CPU
time in iowait; one whose preprocessing is too heavy fills the cores; one that launches many small
kernels leaves both alone, and most of the GPU's memory and power too.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from gputier.node import plain, smi
from gputier.node.host import Host

INPUT, BATCH, CPU, IDLE, BUSY, UNKNOWN = (
    "input too slow",
    "batch too small",
    "CPU too busy",
    "no job",
    "GPUs busy",
    "cause not found",
)
# Below this a GPU that is paid for is not used.
LOW_PERCENT = 50.0
CPU_BUSY, CORE_BUSY = 0.85, 0.95
IO_WAIT, IO_PRESSURE = 0.10, 10.0
SMALL_MEMORY, SMALL_POWER = 0.5, 0.6
JOB_MIB = 400.0
# Steps that are looked at together: a pause between epochs is no cause.
STEPS = 4


class Sample(NamedTuple):
    """One look: percent of the GPUs, shares of memory and power, CPU counters per core."""

    gpu: float | None
    memory: float | None
    power: float | None
    job: bool
    cores: tuple[tuple[float, ...], ...]
    pressure: float | None


class Cause(NamedTuple):
    """One of the names above, and what was measured, in words."""

    name: str
    words: str


def sample(host: Host, rows: Sequence[Mapping[str, str]]) -> Sample:
    """What the machine does now."""
    used = [smi.number(row.get("memory.used")) or 0.0 for row in rows]
    return Sample(
        gpu=_mean([smi.number(row.get("utilization.gpu")) for row in rows]),
        memory=_share(rows, "memory.used", "memory.total"),
        power=_share(rows, "power.draw", "power.limit"),
        job=any(mib > JOB_MIB for mib in used),
        cores=_cores(host.read("/proc/stat") or ""),
        pressure=_pressure(host.read("/proc/pressure/io") or ""),
    )


def _mean(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return sum(known) / len(known) if known else None


def _share(rows: Sequence[Mapping[str, str]], part: str, whole: str) -> float | None:
    shares: list[float | None] = []
    for row in rows:
        left, right = smi.number(row.get(part)), smi.number(row.get(whole))
        shares.append(left / right if left is not None and right else None)
    return _mean(shares)


def _cores(text: str) -> tuple[tuple[float, ...], ...]:
    """user, nice, system, idle, iowait, irq, softirq of each core."""
    return tuple(
        tuple(float(part) for part in found[1].split()[:7])
        for found in re.finditer(r"^cpu\d+ (.+)$", text, re.M)
    )


def _pressure(text: str) -> float | None:
    found = re.search(r"^some avg10=([\d.]+)", text, re.M)
    return float(found[1]) if found else None


class Window:
    """The last few samples."""

    def __init__(self) -> None:
        self.samples: list[Sample] = []

    def add(self, one: Sample) -> None:
        self.samples = [*self.samples[-STEPS:], one]

    def judge(self) -> Cause | None:
        """The cause over the window, None until it is full."""
        if len(self.samples) <= STEPS:
            return None
        gpu = _mean([one.gpu for one in self.samples])
        if gpu is None:
            return None
        if not any(one.job for one in self.samples) and gpu < 1:
            return Cause(IDLE, "no process holds GPU memory")
        if gpu >= LOW_PERCENT:
            return Cause(BUSY, f"{gpu:.0f} % utilisation")
        return self._low(gpu)

    def _low(self, gpu: float) -> Cause:
        first = next((one.cores for one in self.samples if one.cores), ())
        busy, waiting, full = _cpu(first, self.samples[-1].cores)
        pressure = _mean([one.pressure for one in self.samples])
        memory = _mean([one.memory for one in self.samples])
        power = _mean([one.power for one in self.samples])
        words = plain.joined(
            ", ",
            f"GPU {gpu:.0f} %",
            f"CPU {busy:.0%} busy, {full} cores full, {waiting:.0%} waiting for disk",
            pressure is not None and f"I/O pressure {pressure:.0f} %",
            memory is not None and f"GPU memory {memory:.0%}",
            power is not None and f"power {power:.0%} of its limit",
        )
        return Cause(_name(Load(busy, waiting, full, pressure, memory, power)), words)


class Load(NamedTuple):
    """Shares over a window; `full` counts cores at 95 % or more."""

    busy: float
    waiting: float
    full: int
    pressure: float | None
    memory: float | None
    power: float | None


def _name(load: Load) -> str:
    if load.busy >= CPU_BUSY:
        return CPU
    if load.waiting >= IO_WAIT or (load.pressure or 0.0) >= IO_PRESSURE:
        return INPUT
    # One Python process that decodes all images fills one core while the others sleep.
    if load.full:
        return CPU
    small = load.memory is not None and load.memory < SMALL_MEMORY
    cool = load.power is None or load.power < SMALL_POWER
    return BATCH if small and cool else UNKNOWN


def _cpu(
    before: Sequence[Sequence[float]], after: Sequence[Sequence[float]]
) -> tuple[float, float, int]:
    """Share busy and share in iowait over all cores, and how many cores are full."""
    busy = waiting = total = 0.0
    full = 0
    for i in range(min(len(before), len(after))):
        spent = [max(0.0, after[i][n] - before[i][n]) for n in range(len(after[i]))]
        whole = sum(spent)
        idle = spent[3] + spent[4] if len(spent) > 4 else 0.0
        busy, waiting, total = busy + whole - idle, waiting + spent[4], total + whole
        full += bool(whole) and (whole - idle) / whole >= CORE_BUSY
    if not total:
        return 0.0, 0.0, 0
    return busy / total, waiting / total, full


def as_json(cause: Cause | None) -> dict[str, Any] | None:
    """For the report of `watch --json`."""
    return None if cause is None else {"cause": cause.name, "measured": cause.words}
