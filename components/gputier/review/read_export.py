"""`pulumi stack export`: what a stack is now. Everything in it stays as it is."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

from gputier.review.preview import Change, Preview
from gputier.review.states import stack_of, state


def is_export(document: Mapping[str, Any]) -> bool:
    return isinstance(document.get("deployment"), dict)


def read_export(document: Mapping[str, Any]) -> Preview:
    """A preview in which nothing changes. What a failed deployment left to be deleted is gone."""
    deployment = cast("Mapping[str, Any]", document["deployment"])
    changes: dict[str, Change] = {}
    for raw in cast("list[Mapping[str, Any]]", deployment.get("resources") or []):
        if not raw.get("delete"):
            found = state(raw)
            changes[found.urn] = Change(found.urn, found.type, "same", found, found, {}, ())
    project, stack = next(filter(any, map(stack_of, changes)), ("", ""))
    return Preview(
        project=project,
        stack=stack,
        kind="export",
        changes=changes,
        config={},
        diagnostics=(),
        violations=(),
        incomplete=_pending(deployment),
        unlisted=0,
    )


def _pending(deployment: Mapping[str, Any]) -> str | None:
    pending = deployment.get("pending_operations") or ()
    if not pending:
        return None
    return (
        f"{len(pending)} operation(s) of a deployment that was interrupted are pending:"
        " `pulumi refresh` finds out what came of them"
    )
