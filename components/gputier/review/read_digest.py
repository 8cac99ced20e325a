"""`pulumi preview --json`: one document with every step."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, cast

from gputier.review.preview import Diagnostic, Preview
from gputier.review.states import properties, stack_of
from gputier.review.steps import changes_of

FAILED = "the preview failed: "


def is_digest(document: Mapping[str, Any]) -> bool:
    return isinstance(document.get("steps"), list) or "changeSummary" in document


def read_digest(document: Mapping[str, Any]) -> Preview:
    """The preview. It is printed when it failed too: an error among the messages tells."""
    steps = cast("list[Mapping[str, Any]]", document.get("steps") or [])
    changes = changes_of(steps)
    diagnostics = tuple(diagnostics_of(document.get("diagnostics") or ()))
    counts = cast("Mapping[str, Any]", document.get("changeSummary") or {})
    listed = sum(change.op == "same" for change in changes.values())
    project, stack = next(filter(any, map(stack_of, changes)), ("", ""))
    return Preview(
        project=project,
        stack=stack,
        kind="digest",
        changes=changes,
        config=properties(document.get("config")),
        diagnostics=diagnostics,
        violations=(),
        incomplete=failure(diagnostics) or _nothing(document, changes),
        unlisted=max(0, int(counts.get("same") or 0) - listed),
    )


def diagnostics_of(raw: Iterable[Any]) -> Iterable[Diagnostic]:
    """Messages as people read them: without colours and line ends."""
    for item in raw:
        if isinstance(item, dict):
            told = cast("Mapping[str, Any]", item)
            text = str(told.get("message") or "").strip()
            yield Diagnostic(str(told.get("severity") or "info"), text, told.get("urn") or None)


def failure(diagnostics: Iterable[Diagnostic]) -> str | None:
    """Why a preview did not come to its end: its first error. None where there is none."""
    errors = [told.message for told in diagnostics if told.severity == "error"]
    if not errors:
        return None
    told = errors[0].splitlines()[0].removeprefix("error: ") if errors[0] else "an error"
    more = f" (and {len(errors) - 1} more)" if len(errors) > 1 else ""
    return f"{FAILED}{told}{more}"


def _nothing(document: Mapping[str, Any], changes: Mapping[str, Any]) -> str | None:
    if changes or document.get("changeSummary"):
        return None
    return f"{FAILED}it has no step, not even the stack's own"
