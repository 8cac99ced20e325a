"""`pulumi preview --save-plan FILE`: what a deployment may do, as differences."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

from gputier.review.preview import Change, Preview, State
from gputier.review.states import properties, stack_of, state, type_of
from gputier.review.steps import CREATES, DELETES

NEEDS_BASE = (
    "a saved plan does not say what was there before: add `--base` with `pulumi stack export`"
)


def is_plan(document: Mapping[str, Any]) -> bool:
    return isinstance(document.get("resourcePlans"), dict)


def read_plan(document: Mapping[str, Any]) -> Preview:
    """The preview. An update has the inputs that differ, and no side of before: a base adds them.
    Until then one that changes what there is is incomplete."""
    plans = cast("Mapping[str, Mapping[str, Any]]", document["resourcePlans"])
    changes = {urn: _change(urn, plan) for urn, plan in plans.items()}
    project, stack = next(filter(any, map(stack_of, changes)), ("", ""))
    open_ = any(change.op not in ("create", "same", "read") for change in changes.values())
    return Preview(
        project=project,
        stack=stack,
        kind="plan",
        changes=changes,
        config=properties(document.get("config")),
        diagnostics=(),
        violations=(),
        incomplete=NEEDS_BASE if open_ else None,
        unlisted=sum(change.op == "same" for change in changes.values()),
    )


def _change(urn: str, plan: Mapping[str, Any]) -> Change:
    steps = [str(step) for step in plan.get("steps") or ()]
    op = _operation(steps)
    goal = cast("Mapping[str, Any]", plan.get("goal") or {})
    difference = cast("Mapping[str, Any]", goal.get("inputDiff") or {})
    added, updated = properties(difference.get("adds")), properties(difference.get("updates"))
    removed = [str(name) for name in difference.get("deletes") or ()]
    changed = {
        **dict.fromkeys(added, "add"),
        **dict.fromkeys(updated, "update"),
        **dict.fromkeys(removed, "delete"),
    }
    after: State | None = None
    if op != "delete":
        made = state({**goal, "urn": urn, "type": goal.get("type") or type_of(urn)})
        outputs = {k: v for k, v in properties(plan.get("state")).items() if k not in removed}
        after = made._replace(inputs={**added, **updated}, outputs=outputs)
    return Change(urn, type_of(urn), op, None, after, {} if op == "create" else changed, ())


def _operation(steps: list[str]) -> str:
    if any(step == "replace" or step.endswith(("-replacement", "-replaced")) for step in steps):
        return "replace"
    if DELETES in steps and CREATES in steps:
        return "replace"
    return steps[0] if steps else "same"
