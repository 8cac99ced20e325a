"""What an account says: an answer is good, bad, or could not be had.

What could not be asked is never good and never bad: it says why, and what would make it possible.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

GOOD, BAD, UNASKED = "good", "bad", "could-not-ask"
STATES = (GOOD, BAD, UNASKED)

#: Why a question was not answered.
MISSING, CREDENTIALS, RIGHT, WAY, OFF, BUSY, OTHER = (
    "package",  # what asks is not installed
    "credentials",  # nobody knows who is asking
    "right",  # who asks may not
    "way",  # nothing answers at the address
    "off",  # the API is not enabled in the project
    "busy",  # too many questions
    "other",  # the cloud's own words
)


class CannotAsk(Exception):
    """A question that was not answered. `kind` is one of the words above, `code` the cloud's own
    name of the error (``""`` where none came back), `fix` a command or a sentence to act on."""

    def __init__(self, message: str, fix: str = "", kind: str = OTHER, code: str = "") -> None:
        super().__init__(message)
        self.message, self.fix, self.kind, self.code = message, fix, kind, code


class Answer(NamedTuple):
    """One answer, as people read it. `subject` is a workload, or ``""`` for the whole stack.

    `asked` names the call and what it was asked of; `found` is the answer in a few words; `why`
    says what it means for a deployment; `fixes` are command lines or addresses, ready to copy.
    Good answers need no fix.
    """

    check: str
    subject: str
    cloud: str
    state: str
    asked: str
    found: str
    why: str = ""
    fixes: tuple[str, ...] = ()


def worst(answers: Sequence[Answer]) -> str:
    """The state of all of them: bad before could-not-ask before good."""
    states = {answer.state for answer in answers}
    return next((state for state in (BAD, UNASKED) if state in states), GOOD)
