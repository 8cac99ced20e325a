"""State that the nodes of a fleet share: read, change, write back only over what was read.

A write that lost the race is made again over the winner's; so no node's change is ever lost, and a
write whose answer got lost is found when it is read again.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Mapping
from typing import Any

from gputier.node import plain
from gputier.node.cloud import Refused, Trouble
from gputier.node.cloud.http import Patience
from gputier.node.cloud.store import Store, Stored

# A fleet of a hundred that boots together writes one after the other.
RACE = Patience(60.0, first=0.1, most=2.0)


def read(store: Store, key: str) -> Mapping[str, Any]:
    """What is there; empty when nothing is, or nothing that can be read. Raises Trouble."""
    return _data(_look(store, key, RACE)[0])


def update(
    store: Store, key: str, change: Callable[[Mapping[str, Any]], Mapping[str, Any] | None]
) -> Mapping[str, Any]:
    """What stands there afterwards. `change` returns None when nothing has to be written; it may
    be called again and must come out the same over its own result. Raises Trouble."""
    host = store.web.host
    end, pause, lost = host.monotonic() + RACE.seconds, RACE.first, False
    while True:
        left = RACE._replace(seconds=max(1.0, end - host.monotonic()))
        found, denied = _look(store, key, left)
        if denied and lost:
            # Something is there, and it is not for us.
            raise denied
        before = _data(found)
        after = change(before)
        if after is None:
            return before
        text = json.dumps(after, sort_keys=True) + "\n"
        left = RACE._replace(seconds=max(1.0, end - host.monotonic()))
        if store.put_if(key, text.encode(), found.version if found else None, left):
            return after
        lost = True
        wait = pause * random.uniform(0.2, 1.0)  # noqa: S311 (spreads the racers)
        if host.monotonic() + wait >= end:
            raise Trouble(f"{key} could not be written: other nodes kept writing it")
        host.sleep(wait)
        pause = min(RACE.most, pause * 1.5)


def _look(store: Store, key: str, patience: Patience) -> tuple[Stored | None, Refused | None]:
    """What is there, and a refusal that may mean that nothing is: S3 says 403 for a key that is
    not there when the role may not list. Else the write that must find nothing there says so."""
    try:
        return store.get(key, patience), None
    except Refused as error:
        if error.status == 403:
            return None, error
        raise


def _data(found: Stored | None) -> Mapping[str, Any]:
    try:
        return plain.mapping(json.loads(found.body if found else b"{}")) or {}
    except (ValueError, RecursionError):
        return {}
