"""What the cloud describes -> properties as the program names them, and inputs brought up to date.

A refresh shows a change from outside only if the inputs that it reads back are those that were
written, in the same form; so the form is taken from the input and the value from the cloud.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any, cast

from tests.engine.aws.request import member
from tests.engine.wire import Props


def named(live: Mapping[str, Any], properties: Iterable[str], renames: Mapping[str, str]) -> Props:
    """The properties that a description has, by name; `renames` are the request's."""
    found: Props = {}
    for name in properties:
        renamed = renames.get(name)
        at = renamed if renamed in live else member(live, name)
        if at and live[at] is not None:
            found[name] = plain(live[at])
    return found


def plain(value: Any) -> Any:
    """Member names as properties (`CidrBlock` -> cidrBlock), pairs as a map, times as text."""
    if isinstance(value, datetime):
        return value.isoformat()
    if isinstance(value, dict):
        return {k[:1].lower() + k[1:]: plain(v) for k, v in cast(Props, value).items()}
    if not isinstance(value, list):
        return value
    several = cast(list[Any], value)
    if several and all(_is_pair(v) for v in several):
        return {pair["Key"]: pair["Value"] for pair in several}
    return [*map(plain, several)]


def _is_pair(value: Any) -> bool:
    return isinstance(value, dict) and cast(Props, value).keys() == {"Key", "Value"}


def aligned(old: Any, now: Any, *, free: bool = False) -> Any:
    """`now` in the form of `old`; `old` itself when they mean the same. In a map that is `free`
    (tags, dimensions) the keys are data; elsewhere what `now` lacks is what nobody can tell."""
    if isinstance(old, dict) and isinstance(now, dict):
        olds, news = cast(Props, old), cast(Props, now)
        if free:
            return {k: aligned(olds.get(k), v) for k, v in news.items()}
        return {k: _part(k, v, news) for k, v in olds.items()}
    if isinstance(old, dict) and isinstance(now, list) and len(cast(list[Any], now)) == 1:
        return aligned(cast(Props, old), now[0])
    if isinstance(old, list) and isinstance(now, list):
        return _aligned_lists(cast(list[Any], old), cast(list[Any], now))
    return _scalar(old, now)


def _part(key: str, old: Any, news: Props) -> Any:
    return aligned(old, news[key], free=key in FREE) if key in news else old


FREE = {"tags", "dimensions"}


def _aligned_lists(old: list[Any], now: list[Any]) -> list[Any]:
    # Most lists of the provider are sets: another order is no change.
    if len(old) == len(now) and all(isinstance(v, dict) for v in old + now):
        key = _identifying(old, now)
        by_key = {item.get(key): item for item in now}
        if key and set(by_key) == {item.get(key) for item in old}:
            return [aligned(item, by_key[item[key]]) for item in old]
        return [aligned(o, n) for o, n in zip(old, now, strict=True)]
    texts = [sorted(map(str, side)) for side in (old, now)]
    return old if texts[0] == texts[1] else now


def _identifying(old: list[Any], now: list[Any]) -> str:
    for key in ("key", "name", "deviceName", "id"):
        if all(key in item for item in old + now):
            return key
    return ""


def _same(old: Any, now: Any) -> bool:
    if old == now or str(old).lower() == str(now).lower():
        return True
    try:
        return float(old) == float(now)
    except (TypeError, ValueError):
        return _document(old) is not None and _document(old) == _document(now)


def _document(value: Any) -> Any:
    """A JSON document, which is the same in every layout."""
    if isinstance(value, str) and value.lstrip()[:1] in ("{", "["):
        try:
            return json.loads(value)
        except ValueError:
            return None
    return cast(Any, value) if isinstance(value, dict) else None


def _scalar(old: Any, now: Any) -> Any:
    if _same(old, now):
        return old
    if not isinstance(old, str) or isinstance(now, str):
        return now
    return json.dumps(now) if isinstance(now, dict | list) else str(now)
