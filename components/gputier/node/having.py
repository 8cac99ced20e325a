"""What a stage needs of the image: have a command or a package, installed where it is absent."""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Sequence

from gputier.node import distro
from gputier.node.host import Done
from gputier.node.stages import Halt, StageResult, Work, config, inconclusive

# What pip, curl and docker say when nobody answered; distro.UNREACHED has the package managers'.
UNANSWERED = re.compile(
    r"newconnectionerror|failed to establish|name or service not known|no such host|"
    r"i/o timeout|tls handshake timeout|curl: \((?:6|7|28|35|52|56)\)|max retries exceeded",
    re.IGNORECASE,
)
WRONG = re.compile(r"^E:|error|unable|fail|no match|denied", re.I)
NO_NETWORK = "see how the machine gets out: NAT, proxy, mirror, name service, security group"


def packages(work: Work, names: Sequence[str], words: str, remedy: str = "") -> bool:
    """Have packages; whether any had to be installed. Raises Halt that names those missing."""
    wanted = missing(work, names)
    if not wanted:
        return False
    distro.refresh(work)
    try:
        distro.install(work, *wanted, limit=work.left())
    except Halt as halt:
        result = halt.result
        raise Halt(
            result._replace(evidence=f"{words}: {result.evidence}", remedy=remedy or result.remedy)
        ) from None
    return True


def missing(work: Work, names: Sequence[str]) -> tuple[str, ...]:
    """Those that are not installed, or not in the version that `name=version` asks."""
    return tuple(name for name in names if not _had(work, name))


def _had(work: Work, name: str) -> bool:
    """Of `name=1.2*` apt understands a pattern of the version."""
    plain, _, version = name.partition("=")
    have = distro.installed(work, plain).values()
    return bool(have) and (not version or any(fnmatch.fnmatchcase(v, version) for v in have))


def command(work: Work, name: str, package: str) -> bool:
    """Have a command, from its package. Raises Halt (config) that names both."""
    if work.host.which(name):
        return False
    remedy = f"put {package} into the image"
    packages(work, (package,), f"{name} is not in the image", remedy)
    if work.host.which(name) is None:
        raise Halt(config(f"{package} is installed, but there is no {name}", remedy))
    return True


def failed(words: str, done: Done, remedy: str = "") -> StageResult:
    """A download or an installation that failed: no answer is inconclusive, the rest config."""
    evidence = f"{words}: {done.name}: {done.how}" + (f": {last(done)}" if done.text else "")
    silent = UNANSWERED.search(done.text) or distro.UNREACHED.search(done.text)
    if done.state == "timeout" or silent:
        return inconclusive(evidence, NO_NETWORK)
    return config(evidence, remedy)


def last(done: Done, length: int = 300) -> str:
    """The lines that say what went wrong: those with an error in them, else the last ones."""
    lines = [line.strip() for line in done.text.splitlines() if line.strip()]
    wrong = [line for line in lines if WRONG.search(line)]
    return " / ".join((wrong or lines)[-2:])[:length]
