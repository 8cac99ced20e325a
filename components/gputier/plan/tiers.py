"""Tiers and purposes read from tiers.toml: floors, leanings and their reasons.

The data file says what each field means. Nothing here decides anything.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from functools import cache
from importlib import resources
from typing import Any, NamedTuple

FloorValue = float | bool | str | tuple[str, ...]


class Floor(NamedTuple):
    """One thing a machine must have. `value` is in the unit of its rule (see tiers.toml).

    `per` scales it per candidate: `needed` (GiB of GPU memory per machine, sizing's margin not
    counted), `gpu` (GPUs in the machine), `installed` (GiB of GPU memory in the machine).
    `origin` is who asks: `tier mid`, `purpose hpc`, `workload`, `default` or `environment prod`.
    """

    rule: str
    value: FloorValue
    origin: str
    why: str = ""
    requirement: str = ""
    per: str = ""
    at_least: float | None = None
    at_most: float | None = None
    when_nodes: bool = False

    @property
    def number(self) -> float:
        """The value as a figure; only rules with figures ask."""
        if isinstance(self.value, (str, tuple)):
            raise TypeError(f"floor {self.rule} has no figure")
        return float(self.value)

    @property
    def names(self) -> tuple[str, ...]:
        """The value as names; only rules with a list of names ask."""
        if not isinstance(self.value, tuple):
            raise TypeError(f"floor {self.rule} has no names")
        return self.value


class Tier(NamedTuple):
    """A named set of floors and leanings a workload starts from; a purpose is one too."""

    name: str
    kind: str  # "tier" or "purpose"
    purpose_text: str
    requirement: str
    kept_free: float
    kept_free_requirement: str
    require: tuple[Floor, ...]
    prefer: tuple[Floor, ...]
    depth: str
    depth_requirement: str


@cache
def tiers() -> Mapping[str, Tier]:
    """entry, mid and high-end, in this order."""
    return {name: _tier("tier", name, body) for name, body in _data()["tier"].items()}


@cache
def purposes() -> Mapping[str, Tier]:
    """The seven purposes, in the file's order."""
    return {name: _tier("purpose", name, body) for name, body in _data()["purpose"].items()}


@cache
def _data() -> dict[str, dict[str, Any]]:
    text = resources.files("gputier").joinpath("tiers.toml").read_text(encoding="utf-8")
    return tomllib.loads(text)


def _tier(kind: str, name: str, body: dict[str, Any]) -> Tier:
    origin = f"{kind} {name}"
    return Tier(
        name=name,
        kind=kind,
        purpose_text=body["for"],
        requirement=body.get("requirement", ""),
        kept_free=body.get("kept_free", 0.0),
        kept_free_requirement=body.get("kept_free_requirement", ""),
        require=tuple(_floor(origin, entry) for entry in body.get("require", ())),
        prefer=tuple(_floor(origin, entry) for entry in body.get("prefer", ())),
        depth=body.get("depth", ""),
        depth_requirement=body.get("depth_requirement", ""),
    )


def _floor(origin: str, entry: dict[str, Any]) -> Floor:
    value: FloorValue | list[str] = entry["value"]
    return Floor(
        rule=entry["rule"],
        value=tuple(value) if isinstance(value, list) else value,
        origin=origin,
        why=entry["why"],
        requirement=entry["requirement"],
        per=entry.get("per", ""),
        at_least=entry.get("at_least"),
        at_most=entry.get("at_most"),
        when_nodes=entry.get("when") == "nodes",
    )
