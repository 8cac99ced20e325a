"""A preview beside what was there before, and both as worlds that can be priced."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from gputier.catalog import Catalog
from gputier.errors import InvalidInput, Problem
from gputier.review.preview import Change, Hidden, Preview, State, Value
from gputier.review.read_plan import NEEDS_BASE
from gputier.review.world import World
from gputier.workload import Discount

DISCOUNTS = "gputier:discounts"


def with_base(preview: Preview, base: Preview) -> Preview:
    """The preview with the base's after as its before. The base is an earlier preview, or what a
    stack is now.

    What the preview does not list and does not delete stays as it was in the base. What it makes
    and the base has differs (`update`); what it keeps or changes and the base has not is made.
    Raises `InvalidInput` for a base of another stack.
    """
    ours, theirs = (preview.project, preview.stack), (base.project, base.stack)
    if any(ours) and any(theirs) and ours != theirs:
        message = f"the base is of {'/'.join(theirs)}, and the preview of {'/'.join(ours)}"
        raise InvalidInput(Problem("--base", message, "name the same stack's"))
    before = {urn: c.after for urn, c in base.changes.items() if c.after is not None}
    changes = {urn: _rebased(c, before.get(urn)) for urn, c in preview.changes.items()}
    for urn, state in before.items():
        if urn not in changes:
            changes[urn] = Change(urn, state.type, "same", state, state, {}, ())
    kept = {urn: change for urn, change in changes.items() if change.before or change.after}
    resolved = preview.incomplete != NEEDS_BASE
    return preview._replace(
        changes=kept,
        config={**base.config, **preview.config},
        incomplete=(preview.incomplete if resolved else None) or base.incomplete,
        unlisted=0,
    )


def _rebased(change: Change, base: State | None) -> Change:
    after = change.after
    if after is not None and base is not None and change.before is None and change.op != "create":
        # A saved plan has the differences alone.
        stays = {k: v for k, v in base.inputs.items() if change.changed.get(k) != "delete"}
        after = after._replace(
            id=after.id or base.id,
            inputs={**stays, **after.inputs},
            outputs=after.outputs or base.outputs,
        )
    return change._replace(before=base, after=after, op=_operation(change, base))


def _operation(change: Change, base: State | None) -> str:
    if base is None:
        return "same" if change.op == "delete" else _made(change.op)
    return "update" if change.op == "create" else change.op


def _made(op: str) -> str:
    return "create" if op in ("update", "replace", "same", "refresh") else op


def before_and_after(preview: Preview, catalog: Catalog) -> tuple[World, World]:
    """Both sides of a preview. Raises `InvalidInput` for discounts that cannot be read."""
    discounts = discounts_of(preview.config)
    sides = [
        {urn: side for urn, change in preview.changes.items() if (side := getattr(change, name))}
        for name in ("before", "after")
    ]
    before, after = (World(side, preview.config, catalog, discounts) for side in sides)
    return before, after


def discounts_of(config: Mapping[str, Value]) -> tuple[Discount, ...]:
    """The discounts that the stack's config declares."""
    value = config.get(DISCOUNTS)
    if value is None:
        return ()
    if isinstance(value, Hidden):
        raise _refused(
            "is hidden in the preview", "discounts are no secret: set them in plain text"
        )
    try:
        given: Any = json.loads(value) if isinstance(value, str) else value
        return tuple(_discount(number, one) for number, one in enumerate(given))
    except (ValueError, TypeError) as error:
        raise _refused(
            f"cannot be read: {str(error).splitlines()[0]}",
            "`gputier plan STACK` says what is wrong",
        ) from None


def _discount(number: int, given: Any) -> Discount:
    try:
        return Discount.model_validate(given)
    except InvalidInput as error:
        at = f"{DISCOUNTS}[{number}]"
        problems = [replace(p, path=".".join(filter(None, (at, p.path)))) for p in error.problems]
        raise InvalidInput(problems) from None


def _refused(message: str, hint: str) -> InvalidInput:
    return InvalidInput(
        Problem(DISCOUNTS, f"`{DISCOUNTS}` of the preview's config {message}", hint)
    )
