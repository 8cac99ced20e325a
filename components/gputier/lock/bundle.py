"""The node bundle that a new entry is locked to: this release's, by what is in it."""

from __future__ import annotations

import hashlib
from functools import cache
from typing import NamedTuple

from gputier.node import __version__
from gputier.node.build import content


class Bundle(NamedTuple):
    """`sha256` names the bytes a machine fetches, `version` is what people read."""

    sha256: str
    version: str


@cache
def current_bundle() -> Bundle:
    """The bundle that this gputier builds."""
    return Bundle(hashlib.sha256(content()).hexdigest(), __version__)
