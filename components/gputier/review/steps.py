"""The engine's steps, in a preview's JSON and in its events, as changes of resources."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, cast

from gputier.review.preview import Change, State
from gputier.review.states import state, type_of

#: The parts that a replacement is told in, beside the `replace` that says it whole.
_MAKES, _REMOVES = "create-replacement", "delete-replaced"
CREATES, DELETES = "create", "delete"
#: Steps that change nothing that costs or breaks: what is looked up, and what state forgets.
_AS_THEY_ARE = {
    "read-replacement": "read",
    "discard": "same",
    "discard-replaced": "same",
    "remove-pending-replace": "same",
    "import-replacement": "import",
}


def changes_of(steps: Iterable[Mapping[str, Any]]) -> dict[str, Change]:
    """Changes by URN. A replacement that is split into its parts is one change."""
    found: dict[str, Change] = {}
    for step in steps:
        change = _change(step)
        known = found.get(change.urn)
        found[change.urn] = change if known is None else _joined(known, change)
    return found


def _change(step: Mapping[str, Any]) -> Change:
    urn, op = str(step.get("urn") or ""), str(step.get("op") or "same")
    old, new = _side(step, "old"), _side(step, "new")
    before = state(old) if old else None
    # An update has no outputs of its own yet: what is not asked for stays as the cloud has it.
    stays = before.outputs if before is not None and op in ("update", "same", "refresh") else None
    after = state(new, stays) if new else None
    if op in (_MAKES, _REMOVES):
        op = "replace"
    op = _AS_THEY_ARE.get(op, op)
    if op == "delete":
        after = None
    if op == "create":
        before = None
    if after is not None and after.id is None and before is not None and op != "replace":
        after = after._replace(id=before.id)
    found = after or before
    forced = tuple(map(str, step.get("replaceReasons") or step.get("keys") or ()))
    changed = _changed(step)
    type_ = (found.type if found else "") or type_of(urn)
    return Change(urn, type_, op, before, _without_what_goes(after, changed), changed, forced)


def _without_what_goes(after: State | None, changed: Mapping[str, str]) -> State | None:
    """What the program stops asking for is not there because it was there before."""
    gone = {path for path, kind in changed.items() if kind == "delete"}
    if after is None or not gone & set(after.outputs):
        return after
    return after._replace(outputs={k: v for k, v in after.outputs.items() if k not in gone})


def _side(step: Mapping[str, Any], name: str) -> Mapping[str, Any] | None:
    """`oldState` of a preview, `old` of an event."""
    found = step.get(f"{name}State") or step.get(name)
    return cast("Mapping[str, Any]", found) if isinstance(found, dict) and found else None


def _changed(step: Mapping[str, Any]) -> dict[str, str]:
    detailed = step.get("detailedDiff")
    if isinstance(detailed, dict) and detailed:
        paths = cast("Mapping[str, Any]", detailed)
        return {path: _kind(told) for path, told in paths.items() if not path.startswith("__")}
    reasons = step.get("diffReasons") or step.get("diffs") or ()
    return {str(name): "update" for name in reasons if not str(name).startswith("__")}


def _kind(told: Any) -> str:
    """A preview has `{"kind": "add-replace"}`, an event `{"diffKind": "add-replace"}`."""
    if isinstance(told, dict):
        words = cast("Mapping[str, Any]", told)
        told = words.get("kind") or words.get("diffKind")
    return str(told or "update").removesuffix("-replace")


def _joined(one: Change, other: Change) -> Change:
    """Two steps of the same resource: the parts of a replacement."""
    whole = "replace" in (one.op, other.op) or {one.op, other.op} == {"create", "delete"}
    return Change(
        urn=one.urn,
        type=one.type or other.type,
        op="replace" if whole else other.op,
        before=one.before or other.before,
        after=one.after or other.after,
        changed={**one.changed, **other.changed},
        forced_by=tuple(dict.fromkeys((*one.forced_by, *other.forced_by))),
    )
