"""The table of steps is whole, and the boot leaves time for every try of every step."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from gputier.node import gate
from gputier.node.cloud import autoscaling, compute, shared
from gputier.node.gates import base, lifecycle_hook, steps
from gputier.node.gates.steps import DOES, OUTCOMES, Step
from gputier.node.settings import GATE_KINDS, HEALTH_ENDPOINT, LIFECYCLE_HOOK
from gputier.node.stages import BY_NAME, GATE, MARGIN_SECONDS

MODES = (gate.ENFORCE, gate.REPORT, gate.OFF)


def test_every_kind_of_gate_says_how_it_does_what() -> None:
    assert set(DOES) == set(GATE_KINDS)
    for words in DOES.values():
        assert {Step.SHUT, Step.OPEN} <= set(words)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("outcome", OUTCOMES)
@pytest.mark.parametrize("tripped", [True, False])
def test_the_report_comes_before_anything_that_may_end_the_machine(
    mode: str, outcome: str, tripped: bool
) -> None:
    order = steps.of(mode, outcome, tripped)
    for last in (Step.GIVE_UP, Step.GO, Step.ENTER, Step.OPEN):
        if last in order and mode != gate.OFF:
            assert order.index(Step.REPORT) < order.index(last)
    assert (Step.OPEN in order) != (Step.SHUT in order)
    assert (Step.STOP in order) == (tripped and outcome == "config" and mode == gate.ENFORCE)


def test_what_trips_the_breaker_was_counted_first() -> None:
    """The walk goes on behind COUNT by the other row, so both have to begin alike."""
    begin = steps.OURS[: steps.OURS.index(Step.COUNT) + 1]
    assert steps.STOPPED[: len(begin)] == begin


def test_every_try_of_every_step_fits_into_the_gates_own_stage() -> None:
    report, count = base.REPORT_PATIENCE.seconds, shared.RACE.seconds
    state = lifecycle_hook.LATE_TRIES * lifecycle_hook.LATE_SECONDS
    spent = {
        LIFECYCLE_HOOK: autoscaling.STOP.seconds + autoscaling.SURE.seconds + state,
        HEALTH_ENDPOINT: 2 * compute.STOP.seconds + compute.SURE.seconds,
    }
    for seconds in spent.values():
        assert report + count + seconds <= BY_NAME[GATE].limits[0].seconds - MARGIN_SECONDS


def rows() -> list[str]:
    """The table of docs/gates.md: what each gate does, by mode and outcome."""
    found = ["| mode | outcome | " + " | ".join(f"`{kind}`" for kind in GATE_KINDS) + " |"]
    found.append("|---" * (2 + len(GATE_KINDS)) + "|")
    for mode in MODES:
        for outcome in OUTCOMES:
            found.append(row(mode, outcome, False))
            if steps.of(mode, outcome, True) != steps.of(mode, outcome):
                found.append(row(mode, outcome, True))
    return found


def row(mode: str, outcome: str, tripped: bool) -> str:
    order = steps.of(mode, outcome, tripped)
    cells = [", ".join(s.value for s in order if s in DOES[kind]) for kind in GATE_KINDS]
    name = f"{outcome}, the same on several new nodes" if tripped else outcome
    return f"| {mode} | {name} | " + " | ".join(cells) + " |"


def test_the_page_shows_what_each_gate_does_when(
    generated: Callable[[str, str, str], None],
) -> None:
    generated("docs/gates.md", "actions", "\n".join(rows()))


def test_the_page_shows_how_each_gate_does_it(generated: Callable[[str, str, str], None]) -> None:
    lines = ["| step | " + " | ".join(f"`{kind}`" for kind in GATE_KINDS) + " |"]
    lines.append("|---" * (1 + len(GATE_KINDS)) + "|")
    for step in Step:
        cells = [DOES[kind].get(step, "–") for kind in GATE_KINDS]
        lines.append(f"| {step.value} | " + " | ".join(cells) + " |")
    generated("docs/gates.md", "steps", "\n".join(lines))
