"""Schema `gputier/doctor/1`."""

from __future__ import annotations

from collections.abc import Sequence

from gputier.account.answers import BAD, GOOD, UNASKED, Answer
from gputier.account.doctor_examine import Examined

SCHEMA = "gputier/doctor/1"


def document(name: str, examined: Examined, basis: str, notes: Sequence[str]) -> dict[str, object]:
    """The document that `gputier doctor --json` prints."""
    return {
        "schema": SCHEMA,
        "name": name,
        "ok": examined.ok,
        "machines": basis,
        "counts": {
            "bad": examined.count(BAD),
            "could_not_ask": examined.count(UNASKED),
            "good": examined.count(GOOD),
        },
        "answers": [_answer(one) for one in examined.answers],
        "notes": list(notes),
    }


def _answer(one: Answer) -> dict[str, object]:
    return {
        "check": one.check,
        "cloud": one.cloud or None,
        "workloads": list(one.workloads),
        "state": one.state,
        "asked": one.asked,
        "found": one.found,
        "why": one.why,
        "fixes": list(one.fixes),
    }
