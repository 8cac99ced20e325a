"""What a plain YAML word means, by the rules of the engine that will read the same file.

Pulumi reads with Go's yaml.v3: the core schema of YAML 1.2 (`true`, `false`, `null`, numbers;
`yes`, `on` and `no` are text) with a few liberties: `_` in numbers, `0b101`, and a leading zero for
octal. The last is refused here, because nobody who writes 010 means 8.
Source: https://github.com/go-yaml/yaml/blob/v3/resolve.go, and tried on the engine.
"""

from __future__ import annotations

import math
import re

_WORDS: dict[str, bool | float | None] = {
    "": None, "~": None, "null": None, "Null": None, "NULL": None,
    "true": True, "True": True, "TRUE": True, "false": False, "False": False, "FALSE": False,
    ".nan": math.nan, ".NaN": math.nan, ".NAN": math.nan,
    ".inf": math.inf, ".Inf": math.inf, ".INF": math.inf,
    "+.inf": math.inf, "+.Inf": math.inf, "+.INF": math.inf,
    "-.inf": -math.inf, "-.Inf": -math.inf, "-.INF": -math.inf,
}  # fmt: skip
_DECIMAL = re.compile(r"[-+]?(0|[1-9][0-9]*)")
_PREFIXED = re.compile(r"([-+]?)0([xX][0-9a-fA-F]+|[oO][0-7]+|[bB][01]+)")
_FLOAT = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?")
_LEADING_ZERO = re.compile(r"[-+]?0[0-9]+")
_BASES = {"x": 16, "o": 8, "b": 2}
_LONGEST_NUMBER = 400

Scalar = str | int | float | bool | None


def resolve(text: str) -> Scalar:
    """The value of an unquoted word."""
    if text in _WORDS:
        return _WORDS[text]
    if len(text) > _LONGEST_NUMBER or text[0] not in "+-.0123456789":
        return text
    digits = text if text[0] == "." else text.replace("_", "")
    if _DECIMAL.fullmatch(digits):
        return _within_64_bits(int(digits), digits)
    if prefixed := _PREFIXED.fullmatch(digits):
        base = _BASES[prefixed[2][0].lower()]
        number = int(prefixed[1] + prefixed[2][1:], base)
        return number if _fits(number) else text
    if _FLOAT.fullmatch(digits):
        value = float(digits)
        return value if math.isfinite(value) else text
    return text


def ambiguous(text: str) -> bool:
    """Whether a word is a number to some readers and another number to others (`010`)."""
    return bool(_LEADING_ZERO.fullmatch(text.replace("_", "")))


def _within_64_bits(number: int, digits: str) -> Scalar:
    return number if _fits(number) else float(digits)


def _fits(number: int) -> bool:
    return -(2**63) <= number < 2**64
