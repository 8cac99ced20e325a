"""How a field says what is wrong with its value, before anybody knows where the value stands.

A validator sees a value, never its place in the file. It raises a complaint: the words around the
field's name, which `problems` fills in once the place is known. Every complaint travels through
pydantic as one custom error type, so no wording of pydantic's is ever left to show.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Literal

from pydantic_core import PydanticCustomError

from gputier import errors

TYPE = "gputier"
Place = Literal["value", "key", "hidden"] | tuple[int, int]


def complaint(
    after: str,
    hint: str = "",
    *,
    before: str = "",
    place: Place = "value",
    short: bool = False,
) -> PydanticCustomError:
    """The sentence `{before}{name of the field}{after}` and the way out.

    `place` says where the caret goes: to the value, to the key, or to a part of a text value, as
    (offset, length); `hidden` is the value, without the line of the file, which nobody may print.
    `short` names the field loosely ("schedule of `tuner`"), for sentences in which it is not the
    subject.
    """
    context: dict[str, Any] = {
        "before": before,
        "after": after,
        "hint": hint,
        "place": place,
        "short": short,
    }
    return PydanticCustomError(TYPE, "{before}{after}", context)


def unknown_field(
    key: object, known: Iterable[str], below: Iterable[str] = ()
) -> PydanticCustomError:
    """A key that the schema does not have. `below` are paths of that name further down."""
    options, deeper = list(known), [f"`{path}`" for path in below]
    hint = ""
    if deeper:
        hint = f"did you mean {listed(deeper, 'or')}?"
    elif options:
        others = f"fields here: {listed(options)}"
        hint = errors.spelling_hint(printable(str(key)), options, otherwise=others)
    return complaint("", hint, before="unknown field ", place="key")


def unread_field(key: str) -> PydanticCustomError:
    """A field of the design that this release does not read."""
    return complaint(
        " is not read by this release; a field that nothing reads is refused, never ignored",
        f"remove `{key}`",
        place="key",
    )


def shown(value: object) -> str:
    """A value as a message may quote it: short, printable, and never the inside of a map."""
    if value is None:
        return "nothing"
    if isinstance(value, bool):
        return f"`{str(value).lower()}`"
    if isinstance(value, dict):
        return "a map"
    if isinstance(value, (list, tuple, set, frozenset)):
        return "a list"
    return f"`{printable(_text(value))}`"


def printable(text: str, longest: int = 60) -> str:
    """Text for a message: no control characters, and not longer than a line can hold."""
    clean = "".join(c if c.isprintable() else "�" for c in text[: longest + 1])
    return f"{clean[: longest - 3]}…" if len(clean) > longest else clean


def _text(value: object) -> str:
    # str() of an int beyond 4,300 digits raises: Python guards against quadratic conversion.
    if isinstance(value, int) and value.bit_length() > 200:
        return f"a number of about {round(value.bit_length() * 0.30103):,} digits"
    return str(value)


def listed(words: Iterable[str], last: str = "and") -> str:
    """`a, b and c`."""
    items = list(words)
    if len(items) < 2:
        return "".join(items)
    return f"{', '.join(items[:-1])} {last} {items[-1]}"
