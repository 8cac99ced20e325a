"""Labels: what tags are on Google, and what Google does not take of a tag."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from gputier.errors import Problem

#: Lower case, digits, dash and underscore, up to 63; a key begins with a letter (compute API v1
#: discovery of 2026-11-06, Instance.labels, which must comply with RFC 1035; underscores and the
#: limit: cloud.google.com/compute/docs/labeling-resources, recalled and so unverified).
LONGEST = 63
_KEY, _VALUE = re.compile(r"[a-z][a-z0-9_-]{0,62}"), re.compile(r"[a-z0-9_-]{0,63}")
_OTHER = re.compile(r"[^a-z0-9_-]+")


def label(text: str) -> str:
    """A word of ours as a label's value: what a label cannot hold becomes a dash."""
    return _OTHER.sub("-", text.lower())[:LONGEST].strip("-")


def label_problems(tags: Mapping[str, str], path: str) -> Iterator[Problem]:
    """Tags that cannot be labels as they are written. None is changed in silence: what finds costs
    by a tag would not find them by another."""
    for key, value in tags.items():
        if _KEY.fullmatch(key) and _VALUE.fullmatch(value):
            continue
        message = (
            f"`{key}: {value}` cannot be a label on gcp: lower-case letters, digits, - and _, up to"
            f" {LONGEST}, the name with a letter first"
        )
        name = label(key) if _KEY.fullmatch(label(key)) else f"tag-{label(key)}"[:LONGEST]
        yield Problem(f"{path}.tags", message, f"`{name}: {label(value)}`")
