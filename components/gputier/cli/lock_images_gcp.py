"""Asking Google which image a family names today, for `gputier lock --images`."""

from __future__ import annotations

import re
from functools import cache

from gputier.account import session_gcp
from gputier.account.answers import RIGHT, CannotAsk
from gputier.account.session_gcp import GcpSession
from gputier.account.stack import GcpAccount
from gputier.errors import InvalidInput, Problem
from gputier.lock import Found
from gputier.lock.images import Look

_FAMILY = re.compile(r"(?:.*/)?projects/(?P<project>[^/]+)/global/images/family/(?P<name>[^/]+)")
_RIGHTS = "it needs compute.images.getFromFamily on the image's project"


def session(account: GcpAccount) -> GcpSession:
    """Raises `CannotAsk`."""
    return session_gcp.session(account)


def looker(account: GcpAccount) -> Look:
    """How a stack asks: as its own account, and once for each family, which is the same in every
    region. What it gives raises `InvalidInput` in plain words: no credentials, no right, no such
    family, no way there."""

    @cache
    def asked() -> GcpSession:
        return session(account)

    @cache
    def of(family: str) -> Found:
        try:
            return _ask(asked(), family)
        except CannotAsk as error:
            where = f"{family}: " if error.code else ""
            hint = _RIGHTS if error.kind == RIGHT else error.fix or _RIGHTS
            raise InvalidInput(Problem("--images", f"{where}{error.message}", hint)) from None

    return lambda _region, family: of(family)


def _ask(google: GcpSession, family: str) -> Found:
    """The newest image of a family that is not withdrawn (compute v1, images.getFromFamily)."""
    named = _FAMILY.fullmatch(family)
    if named is None:
        way = "projects/PROJECT/global/images/family/NAME"
        raise InvalidInput(Problem("--images", f"{family} is no family of images", way))
    path = f"projects/{named['project']}/global/images"
    image = google.get("compute", f"{path}/family/{named['name']}")
    return Found(f"{path}/{image['name']}", None, int(image.get("diskSizeGb", 0)))
