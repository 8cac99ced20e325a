"""What keeps machines away, in words: the clouds' own codes and our own reasons, each with its fix.

A code that is not in the table is shown as the cloud says it. Clouds often give a sentence without
its code; `phrases` are parts of such sentences in lower case, with `…` for what varies between.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from gputier.account import status_errors_aws, status_errors_gcp

OURS = "ours"
#: Where no page or code was read for a row.
UNVERIFIED = "unverified"


class Known(NamedTuple):
    """A row. `cloud` is aws, gcp, or `ours` for a reason that is no cloud's error; `fix` may hold
    `{stack}`, `{workload}`, `{region}`, `{group}` and `{project}`; `source` has its date."""

    cloud: str
    code: str
    words: str
    fix: str
    source: str
    phrases: tuple[str, ...] = ()


# --- our own reasons -------------------------------------------------------------------------

BREAKER, SUSPENDED, AUTOSCALER_OFF, ASLEEP, AT_ZERO = (
    "breaker",
    "launches-suspended",
    "autoscaler-off",
    "asleep",
    "at-zero",
)
BLOCK_EARLY, BLOCK_OVER, HELD_FULL, HELD_GONE = (
    "block-not-started",
    "block-over",
    "reservation-full",
    "reservation-gone",
)
REJECTED, SILENT, FLEX = "gate-rejected", "gate-silent", "flex-start-waits"
DELETED, NOT_DEPLOYED, NOT_LOCKED = "deleted", "not-deployed", "not-locked"
#: Reasons that are as they should be.
CALM = (ASLEEP, AT_ZERO, BLOCK_EARLY, FLEX, NOT_DEPLOYED)

_OURS_TABLE = (
    (
        BREAKER,
        "the loop breaker stopped the fleet: new machines failed for one reason of ours",
        "mend what the reports name, lock and deploy; then resume (docs/gates.md):",
    ),
    (
        SUSPENDED,
        "somebody suspended the group's launches",
        "aws autoscaling resume-processes --region {region} --auto-scaling-group-name {group}"
        " --scaling-processes Launch",
    ),
    (
        AUTOSCALER_OFF,
        "somebody switched the group's autoscaler off",
        "pulumi up --refresh --stack {stack}",
    ),
    (ASLEEP, "the schedule has it at zero now", "nothing, or change `schedule` of `{workload}`"),
    (
        AT_ZERO,
        "it is asked for no machine",
        "raise `scale.min` of `{workload}`, lock and deploy; or set the group's size by hand",
    ),
    (
        BLOCK_EARLY,
        "what is reserved has not begun",
        "nothing: machines are asked for when it begins",
    ),
    (
        BLOCK_OVER,
        "what is reserved is over",
        "buy the next one, name its id in `capacity.id` of `{workload}`, lock and deploy",
    ),
    (
        HELD_FULL,
        "every place of the reservation is taken",
        "see who else runs in it, or enlarge it; of a block that gave a machine back the place is"
        " free some minutes later",
    ),
    (
        HELD_GONE,
        "there is no such reservation in this account and region",
        "correct `capacity.id` of `{workload}`, lock and deploy",
    ),
    (
        REJECTED,
        "the gate rejected what was launched",
        "read the newest report; docs/runbooks/rejected-nodes.md",
    ),
    (
        SILENT,
        "machines said nothing until their launch hook ran out",
        "they did not get as far as their network, bundle or role: read the console of one",
    ),
    (
        FLEX,
        "flex-start waits until all machines can be had at once",
        "nothing: a request waits in a queue; or delete it and take another way of buying",
    ),
    (
        DELETED,
        "it was deployed and is gone: destroyed, or deleted by hand",
        "pulumi up --refresh --stack {stack}",
    ),
    (NOT_DEPLOYED, "nothing of it is deployed", "pulumi up --stack {stack}"),
    (NOT_LOCKED, "it is declared, and the lock has no machine for it", "gputier lock {stack}"),
)


def _rows() -> dict[tuple[str, str], Known]:
    rows = [Known(OURS, code, words, fix, OURS) for code, words, fix in _OURS_TABLE]
    rows += [Known("aws", *row) for row in status_errors_aws.TABLE]
    rows += [Known("gcp", *row) for row in status_errors_gcp.TABLE]
    return {(row.cloud, row.code): row for row in rows}


TABLE: Mapping[tuple[str, str], Known] = _rows()

#: `Could not launch On-Demand Instances. VcpuLimitExceeded - You have …`, `Termination Reason:
#: Client.InvalidKMSKey.InvalidState: The KMS key …`, `InsufficientInstanceCapacity: …`.
_CODES = (
    re.compile(r"\b((?:Client|Server)\.[A-Za-z]+(?:\.[A-Za-z]+)*)"),
    re.compile(r"(?:^|Instances\. )([A-Z][A-Za-z]+(?:\.[A-Z][A-Za-z]+)*)(?: - |: )"),
)
#: What differs between two tellings of the same error.
_VARYING = (
    (re.compile(r"\b(?:i|subnet|vol|eni|sir|ami|sg|cr)-[0-9a-f]{8,}"), "…"),
    (re.compile(r"\b[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\b"), "…"),
    (re.compile(r"\b\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?Z"), "…"),
    (re.compile(r"\s+"), " "),
)


def ours(code: str) -> Known:
    """The row of one of our own reasons."""
    return TABLE[OURS, code]


def code_in(said: str) -> str | None:
    """The code that a sentence of AWS carries, None where it has none."""
    for pattern in _CODES:
        found = pattern.search(said)
        if found:
            return found[1]
    return None


def known(cloud: str, code: str | None, said: str) -> Known | None:
    """The row of an error, by its code or by its words; None for one that is not in the table."""
    if code and (cloud, code) in TABLE:
        return TABLE[cloud, code]
    text = said.lower()
    # Of phrases that are both there the longer one says more.
    fitting: Sequence[tuple[int, Known]] = [
        (len(phrase), row)
        for row in TABLE.values()
        if row.cloud == cloud
        for phrase in row.phrases
        if _says(text, phrase)
    ]
    return max(fitting, key=lambda pair: pair[0])[1] if fitting else None


def _says(text: str, phrase: str) -> bool:
    """Whether the parts of a phrase come in a text, one after the other."""
    at = 0
    for part in phrase.split("…"):
        found = text.find(part, at)
        if found < 0:
            return False
        at = found + len(part)
    return True


def kind_of(said: str) -> str:
    """A sentence without what differs each time it is said: what tells unknown errors apart."""
    for pattern, instead in _VARYING:
        said = pattern.sub(instead, said)
    return said.strip()
