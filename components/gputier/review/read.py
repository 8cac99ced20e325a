"""Reading what a preview was written to, whichever of the engine's formats it is."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any, cast

from gputier.errors import InvalidInput, Problem
from gputier.review.preview import Preview
from gputier.review.read_digest import is_digest, read_digest
from gputier.review.read_events import events_of, is_event, read_events
from gputier.review.read_export import is_export, read_export
from gputier.review.read_plan import is_plan, read_plan

HINT = "`pulumi preview --json > preview.json` writes one"


def read(data: bytes, name: str) -> Preview:
    """The preview in a file. `name` is what messages call it. Raises `InvalidInput`."""
    text = _text(data, name).strip()
    if not text:
        raise _refused(name, "is empty", f"did the preview run? {HINT}")
    try:
        document = json.loads(text)
    except (ValueError, RecursionError) as error:
        events = events_of(text)
        if events is not None:
            return _guarded(lambda: read_events(events), name)
        raise _refused(name, _why(text, error), HINT) from None
    if not isinstance(document, dict):
        raise _refused(name, "is JSON, and no preview", HINT)
    whole = cast("Mapping[str, Any]", document)
    for known, reader in (
        (is_export, read_export),
        (is_plan, read_plan),
        (is_digest, read_digest),
    ):
        if known(whole):
            return _guarded(lambda reader=reader: reader(whole), name)
    if is_event(whole):
        return _guarded(lambda: read_events([whole]), name)
    raise _refused(name, "is JSON, and no preview, plan, event log or export of a stack", HINT)


def _guarded(reader: Callable[[], Preview], name: str) -> Preview:
    """What has the outline of a preview and not its shape inside is refused, not a bug of ours."""
    try:
        found = reader()
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise _refused(name, f"has no shape of a preview: {error}", HINT) from error
    return found


def _text(data: bytes, name: str) -> str:
    """UTF-8; UTF-16 too, which is what `>` of PowerShell 5 writes."""
    wide = data.startswith((b"\xff\xfe", b"\xfe\xff"))
    try:
        return data.decode("utf-16" if wide else "utf-8-sig")
    except UnicodeDecodeError:
        raise _refused(name, "is no text in UTF-8", HINT) from None


def _why(text: str, error: Exception) -> str:
    if text.startswith(("Previewing", "@ ", "+ ", "~ ", "  ")):
        return "is what a preview prints for people"
    if isinstance(error, json.JSONDecodeError) and error.pos >= len(text) - 1:
        return "ends in the middle: the preview was interrupted, or the disk is full"
    return f"is no JSON: {error}"


def _refused(name: str, message: str, hint: str) -> InvalidInput:
    return InvalidInput(Problem(name, f"{name} {message}", hint))
