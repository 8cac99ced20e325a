"""Quantities with a unit: parsed once and printed one way.

Inside the program memory is GiB, network Gbps (decimal bits), storage speed MB/s (decimal bytes),
money USD. A parser takes what a person writes (`24GB`, `24GiB`, `10Gbps`, `500MB/s`, `$2.50/h`,
`7B`) and returns a float or int; it raises `ValueError` with a message that says what is
accepted. A bare number is refused where its unit would be a guess.
"""

from __future__ import annotations

import math
import re

GIB_PER_GB = 1e9 / 2**30
#: What clouds and this product mean by a month.
HOURS_PER_MONTH = 730.0

_DECIMAL = {"K": 1e3, "M": 1e6, "G": 1e9, "T": 1e12, "P": 1e15}
_BINARY = {"KI": 2**10, "MI": 2**20, "GI": 2**30, "TI": 2**40, "PI": 2**50}
_NUMBER = r"\s*([0-9]+(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?)\s*"
_SIZE = re.compile(_NUMBER + r"([KMGTP]i?)B?\s*", re.IGNORECASE)
_BITS = re.compile(_NUMBER + r"([KMGT])(?:bps|bit/s|b/s)\s*")
_BYTES_PER_SECOND = re.compile(_NUMBER + r"([KMGT]i?)(?:B/s|Bps)\s*")
_COUNT = re.compile(_NUMBER + r"([KMBT]?)\s*", re.IGNORECASE)
_MONEY = re.compile(
    r"\s*(?:USD\s*|\$\s*)?([0-9]+(?:\.[0-9]+)?)\s*(?:USD)?\s*(/\s*[a-z]+)?\s*", re.IGNORECASE
)
_COUNT_FACTORS = {"": 1.0, "K": 1e3, "M": 1e6, "B": 1e9, "T": 1e12}
_PER_HOUR = {"/h", "/hr", "/hour"}
_PER_MONTH = {"/mo", "/month"}


def parse_size_gib(text: str) -> float:
    """Bytes as GiB: `64GiB` is 64, `64GB` is 59.6 (decimal). Host memory and disks."""
    match = _SIZE.fullmatch(text)
    if not match:
        raise ValueError("a size needs a unit, such as 64GiB, 500GB or 2TB")
    prefix = match[2].upper()
    factor = _BINARY.get(prefix) or _DECIMAL[prefix]
    return _positive(float(match[1]) * factor / 2**30, "a size")


def parse_gpu_memory_gib(text: str) -> float:
    """A card's marketed memory: `24GB` and `24GiB` both mean the 24 GB class."""
    match = _SIZE.fullmatch(text)
    if not match or match[2].upper() not in {"G", "GI", "T", "TI"}:
        raise ValueError("GPU memory is the card's marketed size, such as 24GB or 80GB")
    factor = 1024.0 if match[2].upper().startswith("T") else 1.0
    return _positive(float(match[1]) * factor, "GPU memory")


def parse_gbps(text: str) -> float:
    """Network speed in Gbps: `10Gbps`, `400Mbps`, `3.2Tbps`. Bytes per second are refused."""
    match = _BITS.fullmatch(text)
    if not match:
        raise ValueError("network speed is in bits per second, such as 10Gbps or 400Mbps")
    return _positive(float(match[1]) * _DECIMAL[match[2].upper()] / 1e9, "network speed")


def parse_mb_s(text: str) -> float:
    """Storage speed in MB/s (decimal): `500MB/s`, `1GB/s`, `1GiB/s`. Bits are refused."""
    match = _BYTES_PER_SECOND.fullmatch(text)
    if not match:
        raise ValueError("storage speed is in bytes per second, such as 500MB/s or 1GB/s")
    prefix = match[2].upper()
    factor = _BINARY.get(prefix) or _DECIMAL[prefix]
    return _positive(float(match[1]) * factor / 1e6, "storage speed")


def parse_gb_s(text: str) -> float:
    """A GPU link's speed in GB/s: `600GB/s`."""
    return parse_mb_s(text) / 1000


def parse_count(text: str) -> int:
    """A parameter count: `7B`, `350M`, `1.5T`, `6738417664`."""
    match = _COUNT.fullmatch(text)
    if not match:
        raise ValueError("a parameter count looks like 7B, 350M or 1.5T")
    value = float(match[1]) * _COUNT_FACTORS[match[2].upper()]
    return round(_positive(value, "a parameter count"))


def parse_usd(text: str, *, per: str = "hour") -> float:
    """Money: `$2.50/h`, `2.50 USD`, `500/month`. `per` is hour or month; the other is refused."""
    match = _MONEY.fullmatch(text)
    example = "$2.50/h" if per == "hour" else "$500/month"
    if not match:
        raise ValueError(f"a price is in USD per {per}, such as {example}")
    unit = (match[2] or "").replace(" ", "").lower()
    if unit and unit not in (_PER_HOUR if per == "hour" else _PER_MONTH):
        raise ValueError(f"this price is per {per}, such as {example}")
    return _positive(float(match[1]), "a price")


def _positive(value: float, what: str) -> float:
    if not math.isfinite(value) or value <= 0:
        raise ValueError(f"{what} is more than 0")
    return value


def gib(value: float) -> str:
    """`22.4 GiB`, `1152 GiB`: one decimal below 100, none above; no trailing `.0`."""
    return f"{number(value)} GiB"


def number(value: float) -> str:
    """A plain figure: up to one decimal below 100, none above."""
    text = f"{value:.0f}" if abs(value) >= 100 else f"{value:.1f}"
    return text.removesuffix(".0")


def size(value_gib: float) -> str:
    """A disk's size from GiB: `600 GB`-style figures stay GiB, large ones become TiB."""
    return f"{number(value_gib / 1024)} TiB" if value_gib >= 1024 else gib(value_gib)


def gbps(value: float) -> str:
    """`2.5 Gbps`, `400 Gbps`."""
    return f"{number(value)} Gbps"


def mb_s(value: float) -> str:
    """`500 MB/s`, `1.2 GB/s`."""
    return f"{number(value / 1000)} GB/s" if value >= 1000 else f"{number(value)} MB/s"


def usd(value: float) -> str:
    """Money: cents below $1,000, whole dollars with thousands separators above."""
    sign = "−" if value < 0 else ""
    value = abs(value)
    return f"{sign}${value:,.0f}" if value >= 1000 else f"{sign}${value:,.2f}"


def usd_per_hour(value: float) -> str:
    """`$1.32/h`; four decimals under one cent so that nothing prints as free."""
    return f"${value:.4f}/h" if 0 < value < 0.01 else f"{usd(value)}/h"


def parameters(value: float) -> str:
    """`13B`, `6.7B`, `350M`."""
    for factor, suffix in ((1e12, "T"), (1e9, "B"), (1e6, "M"), (1e3, "K")):
        if value >= factor:
            return f"{value / factor:.1f}".removesuffix(".0") + suffix
    return str(round(value))
