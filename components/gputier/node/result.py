"""What a check and a node come out as, and in which order the worst wins."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

HEALTHY = "healthy"
WARNING = "warning"
UNSUPPORTED = "unsupported"
REBOOT = "reboot"
REPLACE = "replace"
CONFIG = "config"
INCONCLUSIVE = "inconclusive"

# The node's outcome is the first of these among root causes.
ORDER = (REPLACE, REBOOT, CONFIG, INCONCLUSIVE, HEALTHY)
EXIT = {HEALTHY: 0, REBOOT: 10, REPLACE: 20, CONFIG: 30, INCONCLUSIVE: 40}
# What a check that others need may have come out as, for them to be judged at all.
USABLE = (HEALTHY, WARNING, UNSUPPORTED)


class Garbled(Exception):
    """A tool's output is not what the tool prints: localised, cut, or another program's."""


class Failed(Garbled):
    """A tool that is there ended badly, or not in time."""


class Wedged(Failed):
    """A tool did not end in time, or says that the GPU has to be reset."""


class Finding(NamedTuple):
    """What a check function returns. `remedy` is None where the check's own table says it."""

    outcome: str
    evidence: str
    expected: str = ""
    remedy: str | None = None
    source: str | None = None
    short: str = ""


class Result(NamedTuple):
    """One check of one node. `because` names the checks that made it inconclusive."""

    name: str
    title: str
    outcome: str
    evidence: str
    expected: str
    source: str
    remedy: str
    seconds: float
    stage: str
    short: str = ""
    because: tuple[str, ...] = ()

    @property
    def counts(self) -> bool:
        """Whether the node's outcome may come from here: it is a root cause."""
        return self.outcome in ORDER and not self.because


def only(table: Mapping[str, str], *outcomes: str) -> dict[str, str]:
    """The rows of a shared table of remedies that a check can come out with."""
    return {outcome: table[outcome] for outcome in outcomes}


def healthy(evidence: str, expected: str = "", short: str = "") -> Finding:
    return Finding(HEALTHY, evidence, expected, short=short)


def warning(evidence: str, expected: str = "") -> Finding:
    return Finding(WARNING, evidence, expected)


def unsupported(evidence: str) -> Finding:
    return Finding(UNSUPPORTED, evidence)


def inconclusive(evidence: str, expected: str = "") -> Finding:
    return Finding(INCONCLUSIVE, evidence, expected)


def worst(findings: list[Finding]) -> Finding:
    """The finding that decides, with the evidence of every one that is as bad."""
    ranks = {name: rank for rank, name in enumerate((REPLACE, REBOOT, CONFIG, INCONCLUSIVE))}
    ranks.update({WARNING: 4, HEALTHY: 5, UNSUPPORTED: 6})
    first = min(findings, key=lambda finding: ranks[finding.outcome])
    same = [finding for finding in findings if finding.outcome == first.outcome]
    return first._replace(evidence="; ".join(finding.evidence for finding in same))
