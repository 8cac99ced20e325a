"""Everything that a change risks, found in its preview."""

from __future__ import annotations

from collections.abc import Iterable

from gputier.review import (
    risks_capacity,
    risks_gate,
    risks_images,
    risks_machines,
    risks_money,
    risks_network,
    risks_storage,
)
from gputier.review.preview import Preview
from gputier.review.risk import WARNING, Finder, Risk, Rule, Scene
from gputier.review.world import World

_MODULES = (
    risks_machines,
    risks_storage,
    risks_capacity,
    risks_gate,
    risks_network,
    risks_images,
    risks_money,
)
#: Every rule, in the order in which a person wants to know.
RULES: tuple[Rule, ...] = tuple(rule for module in _MODULES for rule in module.RULES)
_FINDERS: tuple[Finder, ...] = tuple(one for module in _MODULES for one in module.FINDERS)


def risks(preview: Preview, before: World, after: World) -> tuple[Risk, ...]:
    """What the change risks: warnings first, then in the order of the rules, each by URN."""
    scene = Scene(preview, before, after)
    return in_order(risk for find in _FINDERS for risk in find(scene))


def in_order(found: Iterable[Risk]) -> tuple[Risk, ...]:
    """As a person wants to know them, and the same at every run."""
    places = {rule.id: number for number, rule in enumerate(RULES)}
    unique = dict.fromkeys(found)
    return tuple(
        sorted(
            unique,
            key=lambda r: (r.level != WARNING, places[r.rule], r.urn, r.property or "", r.text),
        )
    )
