"""How fleets are bought, and how large they may become."""

from __future__ import annotations

from typing import Any

from gputier_policies.fleets import Fleet, fleets
from gputier_policies.machine import GROUP, SPOT
from gputier_policies.rule import SIZING, Config, Findings, Rule, Undecided, Violation
from gputier_policies.values import UNKNOWN, Stack
from gputier_policies.words import bought, number

_MIX = (
    'mixed_instances_policy={"instances_distribution":'
    ' {"on_demand_percentage_above_base_capacity": 0}}'
)
#: How spot is asked for, by the beginning of a type.
_SPOT = {
    "aws:autoscaling/": _MIX,
    "aws:eks/": 'capacity_type="SPOT"',
    "aws:": 'instance_market_options={"market_type": "spot"}',
    "gcp:container/": 'node_config={"spot": True}',
    "gcp:": 'scheduling={"provisioning_model": "SPOT", "preemptible": True,'
    ' "automatic_restart": False}',
}


def fleet_requires_spot(stack: Stack, config: Config) -> Findings:
    if not config["required"]:
        return
    base: int = config["on_demand_base"]
    for fleet in fleets(stack):
        if fleet.gpu is False or fleet.runner.name in config["except"]:
            continue
        asked = _SPOT[next(kind for kind in _SPOT if fleet.runner.type.startswith(kind))]
        for path, what in _firm(fleet, base):
            if what is UNKNOWN or fleet.gpu is UNKNOWN:
                yield from _waits(fleet, path)
            else:
                yield Violation(f"{path} is {what}; it must be spot: {asked}", fleet.runner.urn)


def _firm(fleet: Fleet, allowed: int) -> list[tuple[str, Any]]:
    """What is not on spot, or may be: the property and what it says."""
    within = "mixedInstancesPolicy.instancesDistribution"
    base, percent = fleet.base, fleet.percent
    if fleet.runner.type == GROUP and not all(m.capacity == SPOT for m in fleet.machines):
        found: list[tuple[str, Any]] = []
        if percent is UNKNOWN or percent:
            shown = percent if percent is UNKNOWN else f"{percent:g} %"
            found.append((f"{within}.onDemandPercentageAboveBaseCapacity", shown))
        if base is UNKNOWN or base > allowed:
            shown = base if base is UNKNOWN else f"{base:g}"
            found.append((f"{within}.onDemandBaseCapacity", shown))
        return found
    if not fleet.machines:
        return [(fleet.waits or fleet.elsewhere, UNKNOWN)]
    firm = next((m for m in fleet.machines if m.capacity != SPOT), None)
    if firm is None or percent == 0:
        return []
    return [("how it is bought", UNKNOWN if firm.capacity is UNKNOWN else bought(firm.capacity))]


def _waits(fleet: Fleet, path: str) -> Findings:
    """What is in another stack never becomes known here."""
    if not fleet.elsewhere:
        yield Undecided(fleet.waiting or path, fleet.runner.urn)


REQUIRES_SPOT = Rule(
    check_stack=fleet_requires_spot,
    description="GPU machines run on spot, where the configuration asks for it.",
    remediation="Buy the machines on spot, or name the fleet in `except`.",
    severity="medium",
    url="https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/using-spot-instances.html",
    settings={
        "required": {
            "type": "boolean",
            "default": False,
            "description": "Whether fleets have to be on spot.",
        },
        "on_demand_base": {
            "type": "integer",
            "minimum": 0,
            "default": 0,
            "description": "How many machines of a group may be on demand all the same.",
        },
        "except": {
            "type": "array",
            "items": {"type": "string"},
            "default": [],
            "description": "Resources that may be on demand, by their names in the program.",
        },
    },
)


def fleet_forbids_spot(stack: Stack, config: Config) -> Findings:
    if not config["forbidden"]:
        return
    for fleet in fleets(stack):
        if fleet.gpu is False or fleet.runner.name in config["except"]:
            continue
        spot = any(machine.capacity == SPOT for machine in fleet.machines)
        path = "mixedInstancesPolicy.instancesDistribution.onDemandPercentageAboveBaseCapacity"
        mixed = fleet.percent is not UNKNOWN and fleet.percent < 100
        if fleet.gpu is True and (spot or mixed):
            where = path if mixed and fleet.runner.type == GROUP else "how it is bought"
            yield Violation(
                f"{where} is {f'{fleet.percent:g} %' if where == path else 'spot'}; it must be on"
                " demand, or in a reservation: the cloud takes spot machines away at any time",
                fleet.runner.urn,
            )
        elif fleet.gpu is UNKNOWN or fleet.percent is UNKNOWN:
            yield from _waits(fleet, path)
        elif any(machine.capacity is UNKNOWN for machine in fleet.machines):
            yield Undecided("how it is bought", fleet.runner.urn)


FORBIDS_SPOT = Rule(
    check_stack=fleet_forbids_spot,
    description="GPU machines are not on spot, where the configuration forbids it.",
    remediation="Buy the machines on demand or in a reservation, or name the fleet in `except`.",
    severity="medium",
    url="https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/spot-interruptions.html",
    settings={
        "forbidden": {
            "type": "boolean",
            "default": False,
            "description": "Whether fleets may not be on spot.",
        },
        "except": {
            "type": "array",
            "items": {"type": "string"},
            "default": [],
            "description": "Resources that may be on spot, by their names in the program.",
        },
    },
)


def fleet_limits_size(stack: Stack, config: Config) -> Findings:
    most: int = config["machines"]
    if not most:
        return
    for fleet in fleets(stack):
        size, urn = fleet.most, fleet.runner.urn
        if fleet.gpu is False or not fleet.sized:
            continue
        large = isinstance(size, int | float) and size > most
        if large and fleet.gpu is True:
            yield Violation(
                f"{fleet.sized} allows {number(size)} machines; it must be no more than"
                f" {number(most)}. Lower it, or raise `machines`",
                urn,
            )
        elif large or size is UNKNOWN:
            yield from _waits(fleet, fleet.sized)


SIZE = Rule(
    check_stack=fleet_limits_size,
    description="No fleet of GPU machines can become larger than the configuration allows.",
    remediation="Lower the largest size of the group, or raise `machines`.",
    severity="medium",
    url=SIZING,
    settings={
        "machines": {
            "type": "integer",
            "minimum": 0,
            "default": 0,
            "description": "The most machines of a fleet; 0: no limit.",
        }
    },
)

RULES = (REQUIRES_SPOT, FORBIDS_SPOT, SIZE)
