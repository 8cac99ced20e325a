"""The node bundle that a new entry is locked to: this release's, by what is in it."""

from __future__ import annotations

import hashlib
import os
import stat
import tempfile
from functools import cache
from pathlib import Path
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


def bundle_file() -> Path:
    """This release's bundle as a file, whose place is the same at every deployment: text in its
    stead would put half a megabyte into the state. Raises `PermissionError` where somebody else
    has taken the place."""
    folder = Path(tempfile.gettempdir()) / f"gputier-{os.getuid()}"
    folder.mkdir(mode=0o700, exist_ok=True)
    found = folder.lstat()
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.getuid():
        raise PermissionError(f"{folder} is not a folder of ours: remove it, or set TMPDIR")
    # Named by these very bytes: the source may have been edited since it was asked last.
    data = content()
    path = folder / f"{hashlib.sha256(data).hexdigest()}.pyz"
    # Written anew each time: what lies there may have been cut short.
    handle, fresh = tempfile.mkstemp(dir=folder)
    with os.fdopen(handle, "wb") as out:
        out.write(data)
    return Path(fresh).replace(path)
