"""Policy documents as they come: JSON text, or a block with parts that are not known yet."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, NamedTuple

from gputier_policies.parts import Part
from gputier_policies.values import UNKNOWN, is_list, is_map, items, known

_WORDS = ("Effect", "Action", "NotAction", "Resource", "NotResource", "Principal", "Condition")


class Statement(NamedTuple):
    """One statement of an AWS policy. `inverted`: all actions but those that it lists; `elsewhere`:
    all resources but those. `unknown` are the words whose values are not wholly known; what is
    known of them is in the other fields."""

    effect: str
    actions: tuple[str, ...]
    inverted: bool
    resources: tuple[str, ...]
    elsewhere: bool
    principals: Any
    conditions: bool
    unknown: tuple[str, ...]

    @property
    def says(self) -> str:
        """`Action s3:* on Resource *`."""
        listed = ", ".join(self.actions[:3]) + (", …" if len(self.actions) > 3 else "")
        action = "all actions but those of NotAction" if self.inverted else f"Action {listed}"
        listed = ", ".join(self.resources[:3]) + (", …" if len(self.resources) > 3 else "")
        on = "all resources but those of NotResource" if self.elsewhere else f"Resource {listed}"
        return f"{action} on {on}"

    def maybe(self, *words: str) -> str:
        """The first of these words that is not known."""
        return next((word for word in words if word in self.unknown), "")


def statements(document: Part) -> Iterator[Statement]:
    """The statements of an AWS policy. A text that is no JSON has none: the cloud refuses it."""
    for one in _listed(document, "Statement"):
        if is_map(one):
            yield _statement(one)
        elif one is UNKNOWN:
            yield _statement(dict.fromkeys(_WORDS, UNKNOWN))


def bindings(document: Part) -> Iterator[Part]:
    """The bindings of a policy of Google's: each a `role` with `members`."""
    for count, one in enumerate(_listed(document, "bindings")):
        yield Part(f"{document.path}: bindings[{count}]", one)


def _listed(document: Part, word: str) -> list[Any]:
    value = document.value
    if isinstance(value, str):
        try:
            value = json.loads(value)
        except (ValueError, RecursionError):
            return []
    if value is UNKNOWN:
        return [UNKNOWN]
    return items(value.get(word)) if is_map(value) else []


def _statement(one: Any) -> Statement:
    return Statement(
        effect=str(one.get("Effect") or ""),
        actions=_texts(one.get("Action")),
        inverted=bool(one.get("NotAction")),
        resources=_texts(one.get("Resource")),
        elsewhere=bool(one.get("NotResource")),
        principals=one.get("Principal"),
        conditions=bool(one.get("Condition")),
        unknown=tuple(word for word in _WORDS if not known(one.get(word))),
    )


def _texts(value: Any) -> tuple[str, ...]:
    return tuple(one for one in items(value) if isinstance(one, str))


def anybody(principals: Any) -> bool:
    """Whether a Principal is everybody: `*`, or `*` among AWS's."""
    if is_map(principals):
        return any("*" in items(principals.get(kind)) for kind in ("AWS", "*", "CanonicalUser"))
    return principals == "*" or (is_list(principals) and "*" in principals)
