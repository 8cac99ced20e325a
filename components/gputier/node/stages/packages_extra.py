"""The packages that the workload wants from the distribution."""

from __future__ import annotations

from gputier.node import having
from gputier.node.stages import StageResult, Work, config, ok


def run(work: Work) -> StageResult:
    """All of them, or the names of those that the repositories do not have."""
    names = work.settings.texts("packages")
    odd = [name for name in names if name.startswith("-") or len(name.split()) != 1]
    if odd:
        return config(f"not names of packages: {', '.join(odd)}", "mend `software.packages`")
    changed = having.packages(
        work, names, "`software.packages`", "name packages that the image's repositories have"
    )
    return ok(f"installed: {', '.join(names)}", changed)
