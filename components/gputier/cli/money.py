"""Money as screens show it. Unknown is said, never $0."""

from __future__ import annotations

from gputier import units

UNKNOWN = "price unknown"


def per_hour(value: float | None) -> str:
    """`$1.32/h`."""
    return UNKNOWN if value is None else units.usd_per_hour(value)


def per_month(value: float | None) -> str:
    """`$966/month`; cents below $100."""
    return UNKNOWN if value is None else f"{amount(value)}/month"


def amount(value: float) -> str:
    """`$966`, `$45.10`, `$0`: cents below $100, where they still say something."""
    if value == 0:
        return "$0"
    sign = "−" if value < 0 else ""
    value = abs(value)
    return f"{sign}${value:,.0f}" if value >= 99.995 else f"{sign}${value:,.2f}"
