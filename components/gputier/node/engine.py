"""Runs the checks in order and finds the node's outcome among the root causes.

A check whose needs failed is inconclusive *because of* them and does not count; neither does one
whose symptom a configuration cause found earlier explains (no module, no count). A check that
breaks is inconclusive too: could not run is not broken, and never silently absent.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from gputier.node import cards
from gputier.node.expect import DEPTHS, Expectation
from gputier.node.host import Done, Host
from gputier.node.result import (
    CONFIG,
    HEALTHY,
    INCONCLUSIVE,
    ORDER,
    REBOOT,
    REPLACE,
    UNSUPPORTED,
    USABLE,
    WARNING,
    Finding,
    Garbled,
    Result,
    Wedged,
    inconclusive,
    unsupported,
)

# What is judged here, and what needs one of it, is about GPUs.
GPU_STAGES = ("driver", "health")
PREPARATION = "preparation"
STAGES = (
    PREPARATION,
    "hardware",
    "driver",
    "health",
    "fabric",
    "disks",
    "host",
    "software",
    "load",
    "end",
)
# What a machine that was not prepared to the end can still be found guilty of: a bad host.
PROOF = ("hardware", "health")
# Every command of a quick check together; a boot has an hour at the very most.
TOTAL_SECONDS = {"quick": 180.0, "standard": 1200.0, "burn-in": 5400.0}
WEDGED_REMEDY = "reboot once: the driver or a GPU is stuck; the second time the machine is replaced"
UNKNOWN_CARD = "the table of cards does not know this model"


class Check(NamedTuple):
    """One test a node runs on itself.

    `remedies` maps every outcome that it may have to what is to be done; `needs` are checks that
    must be usable; `explained_by` are checks whose `config` explains a bad outcome of this one.
    `applies` says whether the plan asks for it at all (else why not), `card` whether this card can.
    """

    name: str
    title: str
    run: Callable[[Context], Finding]
    stage: str
    remedies: Mapping[str, str]
    source: str
    seconds: float = 20.0
    needs: tuple[str, ...] = ()
    explained_by: tuple[str, ...] = ()
    depth: str = "quick"
    applies: Callable[[Expectation], str | None] = lambda _: None
    card: Callable[[cards.Card], bool] = lambda _: True
    advisory: bool = False
    tools: tuple[str, ...] = ()


class Context:
    """What a check sees: the host, the expectation, earlier results, and its own deadline."""

    def __init__(self, host: Host, expect: Expectation) -> None:
        self.host = host
        self.expect = expect
        self.results: dict[str, Result] = {}
        self.memory: dict[str, Any] = {}
        self.deadline = float("inf")
        self.end = float("inf")
        self.card = cards.by_text(expect.text("gpu.model"))
        self.unprepared: Result | None = None

    def left(self) -> float:
        """Seconds until this check has to be done."""
        return min(self.deadline, self.end) - self.host.monotonic()

    def run(self, *argv: str, limit: float = 600.0, **kept: Any) -> Done:
        """Run a command within its limit and within what is left of the check's time."""
        allowed = min(limit, self.left())
        if allowed <= 0:
            return Done(argv, None, "", "", 0.0, "timeout")
        return self.host.run(argv, allowed, **kept)

    def once(self, key: str, make: Callable[[], Any]) -> Any:
        """The value made at the first call with this key, or the same failure again."""
        if key not in self.memory:
            try:
                self.memory[key] = make()
            except Garbled as error:
                self.memory[key] = error
        kept = self.memory[key]
        if isinstance(kept, Garbled):
            raise kept
        return kept

    def outcome(self, name: str) -> str | None:
        """How an earlier check came out, None when it did not run."""
        result = self.results.get(name)
        return result.outcome if result else None

    def requires(self, check: Check) -> bool:
        wanted = self.expect.texts("require")
        return check.name in wanted or any(tool in wanted for tool in check.tools)


class Verdict(NamedTuple):
    """A whole run: the node's outcome, its checks, and what did not apply with the reason."""

    outcome: str
    results: tuple[Result, ...]
    not_applicable: tuple[tuple[str, str], ...]
    warnings: tuple[str, ...]
    seconds: float

    @property
    def causes(self) -> tuple[Result, ...]:
        """The checks that the outcome comes from."""
        return tuple(r for r in self.results if r.counts and r.outcome == self.outcome)


def run(ctx: Context, checks: Sequence[Check], depth: str) -> Verdict:
    """Every check that applies, in order, at this depth; first what ended the preparation."""
    started = ctx.host.monotonic()
    total = ctx.expect.number("limits.total_seconds") or TOTAL_SECONDS[depth]
    ctx.end = min(ctx.end, started + total)
    if ctx.unprepared:
        ctx.results[ctx.unprepared.name] = ctx.unprepared
    skipped: list[tuple[str, str]] = []
    of_gpus: set[str] = set()
    for check in checks:
        if check.stage in GPU_STAGES or not of_gpus.isdisjoint(check.needs):
            of_gpus.add(check.name)
        why = not_asked(check, ctx, depth)
        if ctx.expect.count("gpu.count") == 0 and check.name in of_gpus:
            why = "the plan has no GPU"
        if why:
            skipped.append((check.name, why))
            continue
        ctx.results[check.name] = _one(check, ctx)
    results = tuple(ctx.results.values())
    warnings = (*ctx.expect.warnings, *_unknown_names(ctx.expect, checks))
    seconds = ctx.host.monotonic() - started
    return Verdict(outcome_of(results), results, tuple(skipped), warnings, seconds)


def outcome_of(results: Iterable[Result]) -> str:
    """The first of replace, reboot, config, inconclusive, healthy among root causes."""
    found = {result.outcome for result in results if result.counts}
    return next((outcome for outcome in ORDER if outcome in found), HEALTHY)


def not_asked(check: Check, ctx: Context, depth: str) -> str | None:
    """Why a check is not for this plan or this depth, None when it is."""
    why = check.applies(ctx.expect)
    if why and not ctx.requires(check):
        return why
    if DEPTHS.index(check.depth) > DEPTHS.index(depth) and not ctx.requires(check):
        return f"depth {depth}; it belongs to {check.depth}"
    return None


def _one(check: Check, ctx: Context) -> Result:
    started = ctx.host.monotonic()
    ctx.deadline = started + ctx.expect.limits().get(check.name, check.seconds)
    failed = tuple(name for name in check.needs if _blocks(ctx, name))
    if ctx.card is not None and not check.card(ctx.card):
        finding, because = unsupported(f"{ctx.card.name} does not have it"), ()
    elif failed:
        words = ", ".join(f"{name} is {ctx.results[name].outcome}" for name in failed)
        finding, because = inconclusive(f"not judged: {words}"), failed
    elif ctx.end - started <= 0:
        finding, because = inconclusive("not judged: the time for all checks is used up"), ()
    else:
        finding, because = _explained(check, ctx, _tried(check, ctx))
    return _result(check, finding, because, ctx.host.monotonic() - started)


def _blocks(ctx: Context, name: str) -> bool:
    """A need that was not run at all (the plan does not ask for it) does not block."""
    result = ctx.results.get(name)
    return result is not None and result.outcome not in USABLE


def _tried(check: Check, ctx: Context) -> Finding:
    try:
        return check.run(ctx)
    except Wedged as error:
        return Finding(REBOOT, str(error), "an answer", WEDGED_REMEDY)
    except Garbled as error:
        return inconclusive(f"unreadable: {error}")
    except Exception as error:
        return inconclusive(f"the check itself failed: {type(error).__name__}: {error}")


def _explained(check: Check, ctx: Context, finding: Finding) -> tuple[Finding, tuple[str, ...]]:
    """A symptom behind a configuration cause says nothing about the hardware."""
    causes = tuple(name for name in check.explained_by if ctx.outcome(name) == CONFIG)
    if ctx.unprepared and not causes and finding.outcome in ORDER[:-1]:
        proof = finding.outcome == REPLACE and check.stage in PROOF
        causes = () if proof else (ctx.unprepared.name,)
        if causes and finding.outcome == CONFIG:
            words = f"{finding.evidence} (the machine was not prepared to the end)"
            return inconclusive(words, finding.expected), causes
    if finding.outcome not in (REPLACE, REBOOT, INCONCLUSIVE) or not causes:
        return finding, ()
    words = f"{finding.evidence} (explained by {', '.join(causes)})"
    return inconclusive(words, finding.expected), causes


def _result(check: Check, finding: Finding, because: tuple[str, ...], seconds: float) -> Result:
    if check.advisory and finding.outcome not in USABLE and not because:
        finding = finding._replace(outcome=WARNING)
    remedy = finding.remedy
    if remedy is None:
        remedy = check.remedies.get(finding.outcome, DEFAULT_REMEDIES[finding.outcome])
    if because:
        remedy = f"see {', '.join(because)}"
    return Result(
        name=check.name,
        title=check.title,
        outcome=finding.outcome,
        evidence=finding.evidence,
        expected=finding.expected,
        source=finding.source or check.source,
        remedy=remedy,
        seconds=round(seconds, 3),
        stage=check.stage,
        short=finding.short,
        because=because,
    )


DEFAULT_REMEDIES = {
    HEALTHY: "",
    UNSUPPORTED: "",
    WARNING: "keep an eye on it; nothing has to be done now",
    INCONCLUSIVE: "find out why it could not be judged and run the check again",
    REBOOT: "reboot once; the second time the machine is replaced",
    REPLACE: "this host is bad: give the machine back",
    CONFIG: "our own set-up is wrong: fix the image or the declaration, not the machine",
}


def _unknown_names(expect: Expectation, checks: Sequence[Check]) -> list[str]:
    names = {check.name for check in checks}
    tools = {tool for check in checks for tool in check.tools}
    found = [
        f"`limits.checks.{name}`: there is no check of this name"
        for name in expect.limits()
        if name not in names
    ]
    return found + [
        f"`require`: there is no check or tool called {name}"
        for name in expect.texts("require")
        if name not in names | tools
    ]
