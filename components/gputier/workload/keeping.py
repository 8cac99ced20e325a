"""How a workload's machines are kept: whose rights they have, how a change reaches them, and what
they are called."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Annotated, Literal

from pydantic import BeforeValidator, Field

from gputier.workload import fields
from gputier.workload.base import Clash, Spec
from gputier.workload.complaints import complaint, shown
from gputier.workload.shapes import as_map

Reports = Literal["keep", "remove"]
Rollout = Literal["new-machines", "rolling"]

_REPORTS_NAMES = {"retain": "keep", "delete": "remove", "destroy": "remove"}
_ROLLOUT_NAMES = {"refresh": "rolling", "rolling-update": "rolling", "none": "new-machines",
                  "manual": "new-machines", "new": "new-machines"}  # fmt: skip
#: AWS takes 50 tags on a resource, some of which are ours (EC2 user guide, tag restrictions).
MOST_TAGS = 40
LONGEST_KEY, LONGEST_VALUE = 128, 256
#: Prefixes of a tag's name that are not a person's to set: AWS's own, and what we find things by.
RESERVED = ("aws:", "gputier:")
_TAG = re.compile(r"[\w .:/=+@-]*")


def _tags(value: object) -> object:
    """map of text"""
    tags = as_map(value)
    if tags is None:
        raise complaint(f" must be a map of text, not {shown(value)}", "such as {team: vision}")
    if len(tags) > MOST_TAGS:
        raise complaint(f" holds {len(tags):,} tags; a resource takes {MOST_TAGS} beside our own")
    found = {str(key): _tag(str(key), text) for key, text in tags.items() if text is not None}
    return dict(sorted(found.items()))


def _tag(key: str, value: object) -> str:
    # YAML reads `cost-center: 4711` as a number, and a tag is text.
    if isinstance(value, bool) or not isinstance(value, (str, int, float)):
        raise complaint(f": `{key}` must be text, not {shown(value)}")
    text = str(value)
    if not 0 < len(key) <= LONGEST_KEY or not _TAG.fullmatch(key):
        raise complaint(
            f" names {shown(key)}; a tag's name is up to {LONGEST_KEY} letters, digits and"
            " _ . : / = + - @"
        )
    if key.lower().startswith(RESERVED):
        raise complaint(
            f" names `{key}`; names that begin with {' or '.join(RESERVED)} are not yours to set"
        )
    if len(text) > LONGEST_VALUE or not _TAG.fullmatch(text):
        raise complaint(
            f": `{key}` is {shown(text)}; a tag's value is up to {LONGEST_VALUE} letters, digits"
            " and _ . : / = + - @"
        )
    return text


Tags = Annotated[Mapping[str, str], BeforeValidator(_tags), fields.Frozen]
RolloutName = Annotated[Rollout, fields.choice(Rollout, _ROLLOUT_NAMES)]
FormerName = Annotated[
    str, fields.text(r"[a-z]([a-z0-9-]{0,38}[a-z0-9])?", "a workload's name such as chat", 40)
]


class Identity(Spec):
    """Whose rights the machines have, and what becomes of their reports."""

    role: (
        Annotated[
            str,
            fields.text(
                r"[A-Za-z0-9][\w+=,.@:/\-]*", "a role's name or ARN, or a service account", 200
            ),
        ]
        | None
    ) = Field(
        default=None,
        description="An existing role for the machines, by name or ARN; on Google Cloud a service"
        " account, by id or address. Default: one is made with"
        " the least rights that the plan lists.",
    )
    permissions_boundary: (
        Annotated[str, fields.text(r"arn:aws[a-z-]*:iam::.+:policy/.+", "a policy's ARN", 300)]
        | None
    ) = Field(
        default=None,
        description="ARN of the policy that bounds the rights of the role that is made (AWS).",
    )
    reports: Annotated[Reports, fields.choice(Reports, _REPORTS_NAMES)] = Field(
        default="keep",
        description="What happens to the machines' reports when the stack is destroyed: keep, or"
        " remove.",
    )

    def cross_checks(self) -> Iterator[Clash]:
        if self.role and self.permissions_boundary:
            yield Clash(
                ("permissions_boundary",),
                complaint(
                    " bounds a role that is made, and `role` names one that exists",
                    "keep one of the two",
                    place="key",
                ),
                ("role", "permissions_boundary"),
            )
