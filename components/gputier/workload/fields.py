"""The types of single fields: what a person may write, and the plain value it becomes.

Each is `Annotated[plain type, check]`, the check running before pydantic's own so that every
refusal is in our words. Numbers that a person quoted are read as numbers (the Pulumi command line
stores `config set` values as text); `true` and `false` are the only booleans, as in YAML 1.2.

A check's docstring is the form it takes, in the words of docs/workload.md.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from typing import Annotated, NoReturn, TypeVar, get_args

from pydantic import AfterValidator, BeforeValidator

from gputier import errors, units
from gputier.workload.complaints import complaint, listed, shown
from gputier.workload.shapes import as_items, as_map

K = TypeVar("K")
V = TypeVar("V")

_WHOLE = re.compile(r"[+-]?[0-9]{1,30}")
_NUMBER = re.compile(r"[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]+)?")


class FrozenMap(dict[K, V]):
    """A dict that cannot be changed after it was made, so that a workload can be hashed."""

    def _refuse(self, *_args: object, **_kwargs: object) -> NoReturn:
        raise TypeError("a declared workload cannot be changed; make a new one")

    __setitem__ = __delitem__ = __ior__ = _refuse  # pyright: ignore[reportAssignmentType, reportIncompatibleMethodOverride]
    clear = pop = popitem = setdefault = update = _refuse  # pyright: ignore[reportAssignmentType, reportIncompatibleMethodOverride]

    def __hash__(self) -> int:  # pyright: ignore[reportIncompatibleVariableOverride]
        return hash(frozenset(self.items()))

    def __reduce__(self) -> tuple[type[FrozenMap[K, V]], tuple[dict[K, V]]]:
        return type(self), (dict(self),)


def freeze(value: dict[K, V]) -> FrozenMap[K, V]:
    """The same entries, frozen."""
    return FrozenMap(value)


Frozen = AfterValidator(freeze)


# --- numbers -------------------------------------------------------------------------------------


def as_number(value: object) -> float | int | None:
    """A finite number from what was written, or None. Booleans are no numbers."""
    if isinstance(value, bool):
        return None
    if isinstance(value, int):
        return value
    if isinstance(value, str) and len(value) <= 40 and _NUMBER.fullmatch(value.strip()):
        value = int(value) if _WHOLE.fullmatch(value.strip()) else float(value)
        return value if math.isfinite(value) else None
    if isinstance(value, float) and math.isfinite(value):
        return value
    return None


def is_whole(low: int, high: int, what: str = "a whole number") -> Callable[[object], int]:
    """A whole number in a closed range."""

    def check(value: object) -> int:
        number = as_number(value)
        if number is None or number != int(number) or not low <= number <= high:
            raise complaint(f" must be {what} from {low:,} to {high:,}, not {shown(value)}")
        return int(number)

    check.__doc__ = f"{what.removeprefix('a ')}, {low:,} to {high:,}"
    return check


def whole(low: int, high: int, what: str = "a whole number") -> BeforeValidator:
    """`is_whole` as a field's check."""
    return BeforeValidator(is_whole(low, high, what))


def ranged(low: float, high: float, what: str) -> BeforeValidator:
    """A number in a closed range, without a unit (the field's name carries it)."""

    def check(value: object) -> float:
        number = as_number(value)
        if number is None or not low <= number <= high:
            raise complaint(f" must be {what} from {low:g} to {high:,g}, not {shown(value)}")
        return float(number)

    check.__doc__ = f"number, {low:g} to {high:,g}"
    return BeforeValidator(check)


# --- quantities with a unit ----------------------------------------------------------------------


def is_quantity(
    parse: Callable[[str], float], unit: str, limits: tuple[float, float], printed: Sequence[str]
) -> Callable[[object], float]:
    """A quantity that needs its unit. `limits` are as parsed, `printed` is as people write it."""
    low, high = limits

    def check(value: object) -> float:
        if isinstance(value, str) and as_number(value) is None:
            try:
                number = parse(value)
            except ValueError as error:
                raise complaint(f": {error}, not {shown(value)}") from None
        elif (number := as_number(value)) is not None:
            text = _plain(number)
            raise complaint(
                f" needs a unit, not {shown(value)}", f"{text} needs a unit: {text}{unit}"
            )
        else:
            raise complaint(f" must be a quantity such as {printed[0]}, not {shown(value)}")
        if not low <= number <= high:
            raise complaint(f" must be from {printed[1]} to {printed[2]}, not {shown(value)}")
        return number

    check.__doc__ = f"quantity such as {printed[0]}, {printed[1]} to {printed[2]}"
    return check


def quantity(
    parse: Callable[[str], float], unit: str, limits: tuple[float, float], printed: Sequence[str]
) -> BeforeValidator:
    """`is_quantity` as a field's check."""
    return BeforeValidator(is_quantity(parse, unit, limits, printed))


def _plain(number: float) -> str:
    return shown(number).strip("`").removesuffix(".0")


def money(per: str, high: float) -> BeforeValidator:
    """Dollars per hour or month; bare numbers are fine because the field's name says the unit."""
    example = "$2.50/h" if per == "hour" else "$500/month"

    def check(value: object) -> float:
        number = as_number(value)
        if number is None:
            if not isinstance(value, str):
                raise complaint(f" must be a price such as {example}, not {shown(value)}")
            try:
                number = units.parse_usd(value, per=per)
            except ValueError as error:
                raise complaint(f": {error}, not {shown(value)}") from None
        if not 0 < number <= high:
            raise complaint(f" must be more than $0 and at most ${high:,.0f} per {per}")
        return float(number)

    check.__doc__ = f"price such as {example}, or a number"
    return BeforeValidator(check)


def _parameter_count(value: object) -> int:
    """count such as 7B, 350M or 6738417664"""
    number = as_number(value)
    if number is None:
        if not isinstance(value, str):
            raise complaint(f" must be a parameter count such as 7B, not {shown(value)}")
        try:
            number = units.parse_count(value)
        except ValueError as error:
            raise complaint(f": {error}, not {shown(value)}") from None
    if number <= 2000 and number > 0:
        text = _plain(number)
        raise complaint(f" needs a unit, not {shown(value)}", f"did you mean {text}B?")
    if not 1e5 <= number <= 1e14:
        raise complaint(f" must be from 100K to 100T parameters, not {shown(value)}")
    return round(number)


def _measured(value: object) -> float:
    """number of GiB, up to 2048"""
    number = as_number(value)
    if number is None:
        try:
            number = units.parse_size_gib(value if isinstance(value, str) else "")
        except ValueError:
            raise complaint(f" must be GiB per GPU such as 21.5, not {shown(value)}") from None
    if not 0 < number <= 2048:
        raise complaint(f" must be more than 0 and at most 2048 GiB, not {shown(value)}")
    return float(number)


# --- words ---------------------------------------------------------------------------------------


def is_text(pattern: str, rule: str, longest: int = 200) -> Callable[[object], str]:
    """Text of a given form. `rule` finishes the sentence "`field` must be …"."""

    def check(value: object) -> str:
        if not isinstance(value, str) or len(value) > longest or not re.fullmatch(pattern, value):
            raise complaint(f" must be {rule}, not {shown(value)}")
        return value

    check.__doc__ = rule
    return check


def text(pattern: str, rule: str, longest: int = 200) -> BeforeValidator:
    """`is_text` as a field's check."""
    return BeforeValidator(is_text(pattern, rule, longest))


_TRUTH_ELSEWHERE: dict[str, str] = {
    **dict.fromkeys(("yes", "on", "y"), "true"),
    **dict.fromkeys(("no", "off", "n"), "false"),
}


def _truth(value: object) -> bool:
    """true or false"""
    if isinstance(value, bool):
        return value
    if value in ("true", "false"):
        return value == "true"
    hint = ""
    if isinstance(value, str):
        plain = _TRUTH_ELSEWHERE.get(value.lower(), value.lower())
        hint = f"write {plain}" if plain in ("true", "false") else ""
    raise complaint(f" must be true or false, not {shown(value)}", hint)


def choice(words: object, aliases: dict[str, str] | None = None) -> BeforeValidator:
    """One word of `words`, a Literal. `aliases` are what people call the same thing elsewhere."""
    options: tuple[str, ...] = get_args(words)

    def check(value: object) -> str:
        if isinstance(value, str) and value in options:
            return value
        raise complaint(
            f" must be {listed(options, 'or')}, not {shown(value)}",
            _choice_hint(value, options, aliases or {}),
        )

    check.__doc__ = listed(options, "or")
    return BeforeValidator(check)


def _choice_hint(value: object, options: Sequence[str], aliases: dict[str, str]) -> str:
    if not isinstance(value, str) or len(value) > 60:
        return ""
    folded = value.strip().lower().replace("_", "-").replace(" ", "-")
    for option in options:
        if option.replace("_", "-") == folded:
            return f"did you mean `{option}`?"
    if folded in aliases:
        return f"did you mean `{aliases[folded]}`?"
    return errors.spelling_hint(value, options)


def _as_list(value: object) -> tuple[object, ...]:
    if isinstance(value, str) or as_map(value) is not None:
        return (value,)
    items = as_items(value)
    if items is not None:
        return items
    raise complaint(f" must be a list, not {shown(value)}")


def several(what: str, most: int = 100, *, least: int = 1) -> BeforeValidator:
    """A list of things; one alone may stand for a list of one."""

    def check(value: object) -> tuple[object, ...]:
        items = _as_list(value)
        if len(items) < least:
            raise complaint(f" must name at least one {what}, not an empty list", "or leave it out")
        if len(items) > most:
            raise complaint(f" holds {len(items):,} entries; at most {most} make sense")
        return items

    check.__doc__ = "list of"
    return BeforeValidator(check)


def _without_repeats(items: tuple[V, ...]) -> tuple[V, ...]:
    return tuple(dict.fromkeys(items))


Once = AfterValidator(_without_repeats)

_MEMORY = ("64GiB", "1GiB", "64TiB")
_DISK = ("500GB", "1GB", "1PB")

Truth = Annotated[bool, BeforeValidator(_truth)]
Parameters = Annotated[int, BeforeValidator(_parameter_count)]
MeasuredGib = Annotated[float, BeforeValidator(_measured)]
GpuMemory = Annotated[
    float, quantity(units.parse_gpu_memory_gib, "GB", (1, 2048), ("24GB", "1GB", "2048GB"))
]
TotalGpuMemory = Annotated[
    float, quantity(units.parse_gpu_memory_gib, "GB", (1, 262144), ("640GB", "1GB", "256TB"))
]
MemoryGib = Annotated[float, quantity(units.parse_size_gib, "GiB", (1, 65536), _MEMORY)]
DiskGib = Annotated[float, quantity(units.parse_size_gib, "GB", (0.93, 931323), _DISK)]
StorageSpeed = Annotated[
    float, quantity(units.parse_mb_s, "MB/s", (1, 1e6), ("500MB/s", "1MB/s", "1000GB/s"))
]
NetworkSpeed = Annotated[
    float, quantity(units.parse_gbps, "Gbps", (0.1, 1e5), ("10Gbps", "100Mbps", "100Tbps"))
]
UsdPerHour = Annotated[float, money("hour", 1e6)]
UsdPerMonth = Annotated[float, money("month", 1e9)]
