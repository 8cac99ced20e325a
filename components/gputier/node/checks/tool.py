"""What a check says when the program it runs is not on the machine."""

from __future__ import annotations

from gputier.node.engine import Context
from gputier.node.result import CONFIG, Finding, unsupported


def missing(ctx: Context, check: str, tool: str, expected: str) -> Finding:
    """A failure where the plan requires the check or the tool, else not supported here."""
    wanted = ctx.expect.texts("require")
    if check in wanted or tool in wanted or _alias(tool) & set(wanted):
        return Finding(CONFIG, f"{tool} is not installed, and the plan requires it", expected)
    return unsupported(f"{tool} is not installed")


def _alias(tool: str) -> set[str]:
    names = {"dcgmi": {"dcgm"}, "all_reduce_perf": {"nccl", "nccl-tests"}, "fi_pingpong": {"efa"}}
    return names.get(tool, set())
