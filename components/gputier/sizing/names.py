"""Loose matching of model names: `meta-llama/Llama-3.1-8B-Instruct`, `llama3.1:8b`, `Llama 3.1 8B`.

A name is compared at four strengths, the first that finds something wins: as written (case
apart); without organisation and separators; without the words that do not change a model's size
(instruct, chat, base…) or that name a quantised copy of it; as the beginning of longer names.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cached_property
from typing import NamedTuple

from gputier.sizing.formats import GGUF

_SEPARATORS = re.compile(r"[\s_:/+\-]+")
_LETTER_DIGIT = re.compile(r"(?<=[a-z])(?=\d)")

SAME_SIZE = frozenset(
    ("instruct", "chat", "it", "base", "hf", "latest", "gguf", "pt", "sft", "dpo", "meta")
)
"""Words that name another training of the same weights, another file of them, or the maker."""

QUANTISED = {
    "awq": "int4-awq", "gptq": "int4-gptq", "int4": "int4-gptq", "int8": "int8", "fp8": "fp8",
    "nf4": "nf4", "bnb": "nf4", "4bit": "nf4", "q4_0": "q4_0", "mxfp4": "mxfp4", "nvfp4": "nvfp4",
    "bf16": "bf16", "fp16": "fp16",
}  # fmt: skip
"""Words that name a copy in another format, and the precision that it is."""

_Looser = tuple[dict[str, list[int]], dict[str, list[int]], list[tuple[tuple[str, ...], int]]]

_GGUF = re.compile(r"[-_.:](i?q\d(?:_[a-z0-9]+)*)(?=$|[-_.])", re.IGNORECASE)


class Asked(NamedTuple):
    """What was asked for: the model's own words, and the precision that the name carries."""

    text: str
    precision: str | None = None
    unknown_format: str | None = None


def understood(name: str) -> Asked:
    """Split a quantised copy's name into the model and the format: `Qwen2.5-7B-Instruct-AWQ`."""
    text = name.strip().removesuffix(".gguf")
    precision, unknown = None, None
    if gguf := _GGUF.search(text):
        text = text[: gguf.start()] + text[gguf.end() :]
        kind = gguf[1].lower()
        precision = QUANTISED.get(kind) or (kind if kind in GGUF else None)
        unknown = None if precision else gguf[1]
    kept: list[str] = []
    for word in re.split(r"(?<=[\s_:/\-])", text):
        known = QUANTISED.get(word.strip(" _:/-").lower())
        if known is None:
            kept.append(word)
        else:
            # `GPTQ-Int8` says both; the later word is the exact one, but `GPTQ-Int4` is GPTQ.
            precision = known if precision is None or word.lower().startswith("int8") else precision
    return Asked("".join(kept).strip(" _:/-") or name, precision, unknown)


def compact(name: str) -> str:
    """Without organisation, case and separators; dots stay, so that 3.1 is not 31."""
    return _SEPARATORS.sub("", name.casefold().rsplit("/", 1)[-1])


def words(name: str) -> tuple[str, ...]:
    """The words that tell models apart, letters and digits parted: llama, 3.1, 8b."""
    parts = _SEPARATORS.split(name.casefold().rsplit("/", 1)[-1])
    spread = (piece for part in parts for piece in _LETTER_DIGIT.sub(" ", part).split())
    return tuple(piece for piece in spread if piece not in SAME_SIZE)


class NameIndex:
    """Row numbers by name at each strength, in the order of the rows.

    The looser strengths are prepared only when a name is not found as written: that halves the
    cold start for the names of the table itself.
    """

    def __init__(self, rows: Sequence[Sequence[str]]) -> None:
        self._rows = rows
        self._exact: dict[str, int] = {}
        for number, row in enumerate(rows):
            for name in row:
                self._exact.setdefault(name.casefold(), number)

    def find(self, name: str) -> tuple[int, ...]:
        """Rows that the name may mean; () when none."""
        exact = self._exact.get(name.strip().casefold())
        if exact is not None:
            return (exact,)
        parts = words(name)
        joined, loose, spread = self._looser
        for found in (joined.get(compact(name)), loose.get("".join(parts))):
            if found:
                return tuple(found)
        if not parts:
            return ()
        begun = {row for row_parts, row in spread if row_parts[: len(parts)] == parts}
        return tuple(sorted(begun))

    @cached_property
    def _looser(self) -> _Looser:
        joined: dict[str, list[int]] = {}
        loose: dict[str, list[int]] = {}
        spread: list[tuple[tuple[str, ...], int]] = []
        for number, row in enumerate(self._rows):
            for name in row:
                parts = words(name)
                _add(joined, compact(name), number)
                _add(loose, "".join(parts), number)
                spread.append((parts, number))
        return joined, loose, spread


def _add(index: dict[str, list[int]], key: str, number: int) -> None:
    rows = index.setdefault(key, [])
    if number not in rows:
        rows.append(number)
