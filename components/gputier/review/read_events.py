"""The engine's events, one JSON document a line: `--event-log FILE`, or a streaming preview."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any, cast

from gputier.review.preview import Diagnostic, Preview, Violation
from gputier.review.read_digest import FAILED, diagnostics_of, failure
from gputier.review.states import properties, stack_of
from gputier.review.steps import changes_of

KINDS = ("preludeEvent", "resourcePreEvent", "resOutputsEvent", "summaryEvent", "diagnosticEvent")
_OTHERS = ("cancelEvent", "stdoutEvent", "policyEvent", "resOpFailedEvent", "policyLoadEvent")


def is_event(document: Mapping[str, Any]) -> bool:
    return any(kind in document for kind in (*KINDS, *_OTHERS))


def events_of(text: str) -> list[Mapping[str, Any]] | None:
    """The events of a log, None where a line is no document. A last line that was cut off is left
    out: the log has no summary then, which tells."""
    lines = [line for line in text.splitlines() if line.strip()]
    found: list[Mapping[str, Any]] = []
    for number, line in enumerate(lines):
        try:
            document = json.loads(line)
        except ValueError:
            if number and number == len(lines) - 1:
                break
            return None
        if not isinstance(document, dict):
            return None
        found.append(cast("Mapping[str, Any]", document))
    return found if any(map(is_event, found)) else None


def read_events(events: Iterable[Mapping[str, Any]]) -> Preview:
    """The preview that the events tell of. One without a summary was interrupted."""
    told = list(events)
    steps = (_part(_part(event, "resourcePreEvent"), "metadata") for event in told)
    changes = changes_of(step for step in steps if step)
    diagnostics = tuple(
        one
        for one in diagnostics_of(_part(event, "diagnosticEvent") for event in told)
        if one.message or one.severity == "error"
    )
    violations = tuple(_violations(_part(event, "policyEvent") for event in told))
    config = _first(told, "preludeEvent") or {}
    summary = _first(told, "summaryEvent")
    project, stack = next(filter(any, map(stack_of, changes)), ("", ""))
    counts = cast("Mapping[str, Any]", (summary or {}).get("resourceChanges") or {})
    listed = sum(change.op == "same" for change in changes.values())
    return Preview(
        project=project,
        stack=stack,
        kind="events",
        changes=changes,
        config=properties(config.get("config")),
        diagnostics=diagnostics,
        violations=violations,
        incomplete=_why_not(diagnostics, violations, summary is not None),
        unlisted=max(0, int(counts.get("same") or 0) - listed),
    )


def _part(event: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    found = event.get(name)
    return cast("Mapping[str, Any]", found) if isinstance(found, dict) else {}


def _first(events: Iterable[Mapping[str, Any]], name: str) -> Mapping[str, Any] | None:
    return next((part for event in events if (part := _part(event, name))), None)


def _violations(parts: Iterable[Mapping[str, Any]]) -> Iterable[Violation]:
    for part in parts:
        if part:
            yield Violation(
                policy=str(part.get("policyName") or ""),
                pack=str(part.get("policyPackName") or ""),
                level=str(part.get("enforcementLevel") or ""),
                message=str(part.get("message") or "").strip(),
                urn=part.get("resourceUrn") or None,
            )


def _why_not(
    diagnostics: tuple[Diagnostic, ...], violations: tuple[Violation, ...], summed_up: bool
) -> str | None:
    broken = [one for one in violations if one.level == "mandatory"]
    if broken:
        return f"{FAILED}policy {broken[0].policy} of {broken[0].pack} does not allow it"
    if found := failure(diagnostics):
        return found
    return None if summed_up else f"{FAILED}its events end without a summary: it was interrupted"
