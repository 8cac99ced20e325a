"""What the validator costs, measured on the kept recording of an eight-GPU node; for `make bench`.

Processes are timed whole, from outside; of several runs the quickest counts.
"""

# ruff: noqa: E501 (one figure a line)
from __future__ import annotations

import json
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

from tests.node.standins import environment, lay_out

from gputier.node import build, recording

HEALTHY = Path(__file__).resolve().parents[1] / "golden/node/healthy"
WATCHED_SECONDS = 60
RUNS = 5


class Figure(NamedTuple):
    """A measurement: what, how much, in which unit, and what it has to reach."""

    name: str
    value: float
    unit: str
    reach: str


def figures() -> list[Figure]:
    """Start, quick check through real processes, replay, and the share of a core that `watch` takes."""
    with tempfile.TemporaryDirectory() as name:
        place = Path(name)
        bundle = place / "gputier-node.pyz"
        build.build(bundle)
        commands, root = lay_out(recording.load(str(HEALTHY)), place / "machine")
        base = [sys.executable, str(bundle)]
        plan = str(HEALTHY / "expect.json")
        check = [*base, "check", "--expect", plan]
        replay = [*base, "replay", str(HEALTHY), "--expect", plan]
        watch = [*base, "watch", "--replay", str(HEALTHY), "--expect", plan, "--seconds"]
        environ = environment(commands, root)
        share = least(lambda: processor([*watch, str(WATCHED_SECONDS)])) / WATCHED_SECONDS
        return [
            Figure("gputier-node --version", least(lambda: wall([*base, "--version"])), "s", "< 0.15"),
            Figure("check --depth quick, 8 GPUs, stand-ins", least(lambda: wall(check, environ)), "s", "≤ 60"),
            Figure("replay, 8 GPUs", least(lambda: wall(replay)), "s", "≤ 60"),
            Figure(f"watch, {WATCHED_SECONDS} s of replay, start included", 100 * share, "% of a core", "< 1"),
        ]  # fmt: skip


def least(measure: Callable[[], float]) -> float:
    return min(measure() for _ in range(RUNS))


def wall(command: Sequence[str], environ: dict[str, str] | None = None) -> float:
    started = time.perf_counter()
    done = subprocess.run(command, env=environ, capture_output=True, text=True, check=False)
    seconds = time.perf_counter() - started
    if done.returncode != 0:
        raise RuntimeError(
            f"{command}: {done.returncode}: {done.stdout[-400:]}{done.stderr[-400:]}"
        )
    return seconds


def processor(command: Sequence[str]) -> float:
    """Seconds of CPU time of a process and its children."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(command, capture_output=True, check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def as_json() -> str:
    return json.dumps([figure._asdict() for figure in figures()], indent=2)
