"""What an account says: an answer is good, bad, or could not be had.

What could not be asked is never good and never bad: it says why, and what would make it possible.
"""

from __future__ import annotations

from typing import NamedTuple

GOOD, BAD, UNASKED = "good", "bad", "could-not-ask"
#: The worst first.
STATES = (BAD, UNASKED, GOOD)

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
#: With these no other question of the same cloud is answered either.
FOR_ALL = (MISSING, CREDENTIALS, WAY)


class CannotAsk(Exception):
    """A question that was not answered. `kind` is one of the words above, `code` the cloud's own
    name of the error ("" where none came back), `fix` a command or a sentence to act on."""

    def __init__(self, message: str, fix: str = "", kind: str = OTHER, code: str = "") -> None:
        super().__init__(message)
        self.message, self.fix, self.kind, self.code = message, fix, kind, code


class Answer(NamedTuple):
    """One answer, as people read it. `workloads` are those it is about; none: the whole stack.

    `asked` names the calls and what they were asked of; `found` is the answer in a few words; `why`
    says what it means for a deployment; `fixes` are command lines, addresses or what to declare.
    Good answers have none.
    """

    check: str
    cloud: str
    workloads: tuple[str, ...]
    state: str
    asked: str
    found: str
    why: str
    fixes: tuple[str, ...] = ()
