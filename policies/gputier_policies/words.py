"""How the rules write money, machines and settings."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gputier_policies.rule import Config

PRODUCTION = ("prod", "production")
#: Which environment the configuration is for. Without one it is production: what was forgotten is
#: judged strictly.
ENVIRONMENT: Mapping[str, Any] = {
    "type": "string",
    "default": "prod",
    "description": "The environment that the stack is, as in `gputier:environment`.",
}
UNPRICED: Mapping[str, Any] = {
    "type": "string",
    "enum": ["refuse", "allow"],
    "default": "refuse",
    "description": "What happens to a machine that has no price here, which is not free.",
}


def is_production(config: Config) -> bool:
    return config["environment"] in PRODUCTION


def money(usd: float) -> str:
    """`$184,824`, `$0.98`"""
    return f"${usd:,.0f}" if usd >= 100 else f"${usd:,.2f}"


def number(value: float) -> str:
    """`4`, `260.8`"""
    return f"{value:,.1f}".removesuffix(".0")


def bought(capacity: Any) -> str:
    """`on demand`"""
    return str(capacity).replace("_", " ")
