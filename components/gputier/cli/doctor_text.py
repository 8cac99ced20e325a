"""The text of `gputier doctor`: what is bad first, each with why and the way out."""

from __future__ import annotations

from collections.abc import Sequence

from gputier.account.answers import BAD, GOOD, STATES, UNASKED, Answer
from gputier.account.doctor_examine import NAMES, NOBODY, Examined
from gputier.account.doctor_targets import Targets
from gputier.cli.console import Paint
from gputier.cli.text import Column, plural, table, wrap

WORDS = {BAD: "bad", UNASKED: "unknown", GOOD: "good"}
#: State, cloud, check, workloads, what was found.
_COLUMNS = (Column(), Column(), Column(), Column(wraps=True), Column(wraps=True))
_HANG = "         "
EVERYTHING = "account"


def screen(name: str, examined: Examined, found: Targets, shown: tuple[int, Paint]) -> list[str]:
    """The lines. `shown` is how wide, and in which colours."""
    width, paint = shown
    lines = [paint.bold(headline(name, examined)) + f"   {_about(found)}", ""]
    kept, left_out = _folded(examined.answers)
    for state in STATES:
        these = [one for one in kept if one.state == state]
        lines += _rows(these, kept, width, paint)
    return lines + left_out


def headline(name: str, examined: Examined) -> str:
    """`prod: 2 bad, 1 unknown, 14 good`."""
    counts = [(examined.count(state), WORDS[state]) for state in STATES]
    return f"{name}: " + ", ".join(f"{n} {word}" for n, word in counts if n or word != "unknown")


def _about(found: Targets) -> str:
    count = plural(len(found.found) + len(found.unplaced), "workload")
    return f"{count}, {found.basis}" if found.found else count


def _folded(answers: Sequence[Answer]) -> tuple[list[Answer], list[str]]:
    """Without those of a cloud that could not be asked anything, which are one line."""
    silent = {cloud: NOBODY.format(cloud=name) for cloud, name in NAMES.items()}
    kept = [one for one in answers if one.found != silent.get(one.cloud)]
    lines: list[str] = []
    for cloud, name in NAMES.items():
        count = sum(one.cloud == cloud and one.found == silent[cloud] for one in answers)
        if count:
            lines.append(f"unknown  {plural(count, 'more question')} of {name} were not asked")
    return kept, lines


def _rows(these: Sequence[Answer], kept: Sequence[Answer], width: int, paint: Paint) -> list[str]:
    """Rows of one state, aligned with all others; below each what is wrong and the way out."""
    colour = {BAD: paint.red, UNASKED: paint.yellow, GOOD: paint.green}
    whose = min(max((len(_whose(one)) for one in kept), default=0), 24)
    sizes = {0: 7, 1: 3, 2: max((len(one.check) for one in kept), default=0), 3: whose}
    sizes[4] = max(20, width - sum(sizes.values()) - 2 * len(sizes))
    lines: list[str] = []
    for one in these:
        row = (colour[one.state](WORDS[one.state]), one.cloud, one.check, _whose(one), one.found)
        lines += table(_COLUMNS, [row], width, sizes=sizes)
        if one.state != GOOD:
            lines += _below(one, width, paint)
    return lines


def _whose(one: Answer) -> str:
    return ", ".join(one.workloads) or EVERYTHING


def _below(one: Answer, width: int, paint: Paint) -> list[str]:
    """What was asked, why it matters and the way out. A command is never broken over lines."""
    lines: list[str] = []
    for label, text in (("asked", one.asked), ("why  ", one.why)):
        broken = wrap(text, width - len(_HANG) - 7)
        lines.append(f"{_HANG}{paint.dim(label)}  {broken[0]}")
        lines += [f"{_HANG}       {more}" for more in broken[1:]]
    return lines + [f"{_HANG}{paint.cyan('fix')}    {fix}" for fix in one.fixes]
