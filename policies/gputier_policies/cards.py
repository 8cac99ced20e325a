"""Which GPUs machines have: those that are allowed, none for desktops, none that are outdated."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any, NamedTuple

from gputier_policies import facts
from gputier_policies.facts import Discount, Kind, Price
from gputier_policies.hours import MONTH
from gputier_policies.machine import NAME_MACHINES, SPOT, Machine, machines, region_of
from gputier_policies.rule import SIZING, Config, Findings, Rule, Undecided, Violation
from gputier_policies.values import UNKNOWN, Resource
from gputier_policies.words import ENVIRONMENT, is_production, money

#: Rates that differ by less are the same to whoever runs on them.
ABOUT = 0.95
#: What a successor may have less of where the configuration says so, by the setting's word.
LESSER = ("memory", "gpu_memory_speed")
#: The share of fp32 from which a card's fp64 is more than a courtesy, and what is asked for by it.
HPC = 0.45


def machine_limits_gpu_models(machine: Resource, config: Config) -> Findings:
    allowed: list[str] = config["models"]
    if not allowed:
        return
    words = f"it must be one of {', '.join(allowed)}"
    for one in machines(machine):
        if one.gpu is False:
            continue
        name, _ = facts.gpu(one)
        if one.type is None:
            yield Violation(f"{one.path} takes any machine with such traits; name types: {words}")
        elif name and not facts.names(name, allowed):
            yield Violation(f"{one.path} is {one}, which has {_a(name)}; {words}")
        elif not name and UNKNOWN in (one.type, one.guest):
            yield Undecided(one.path if one.type is UNKNOWN else "guestAccelerators")
        elif not name:
            yield Violation(f"{one.path} is {one}, whose GPU nobody here knows; {words}")


def _a(name: str) -> str:
    return f"{'an' if name[0] in 'AHLM' else 'a'} {name}"


MODELS = Rule(
    check=machine_limits_gpu_models,
    description="Machines have GPUs of the models that the configuration allows.",
    remediation="Name a machine with an allowed GPU, or add the model to `models`.",
    severity="medium",
    url=SIZING,
    types=NAME_MACHINES,
    settings={
        "models": {
            "type": "array",
            "items": {"type": "string"},
            "default": [],
            "description": "The GPU models that are allowed, such as `L4`, or `H100` for every one"
            " of that name; empty: any.",
        }
    },
)


def machine_forbids_consumer_gpus(machine: Resource, config: Config) -> Findings:
    """Their licence bars them from data centres, and they have neither ECC nor a vendor's word."""
    if not is_production(config):
        return
    for one in machines(machine):
        if facts.is_consumer(one):
            yield Violation(
                f"{one.path} is {one}: a card for desktops, whose driver's licence bars data"
                " centres; name a machine with a data centre card, such as an L4"
            )
        elif UNKNOWN in (one.type, one.guest):
            yield Undecided(one.path if one.type is UNKNOWN else "guestAccelerators")


CONSUMER = Rule(
    check=machine_forbids_consumer_gpus,
    description="No machine of production has a GPU that is made for desktops.",
    remediation="Name a machine with a data centre card.",
    severity="high",
    types=NAME_MACHINES,
    url="https://www.nvidia.com/en-us/drivers/geforce-license/",
    settings={"environment": ENVIRONMENT},
)


class Successor(NamedTuple):
    """A newer machine; `less` is what it has less of."""

    name: str
    what: Kind
    usd_per_month: float
    less: str


def machine_forbids_previous_generations(machine: Resource, config: Config) -> Findings:
    """Only where a newer machine costs less in the same region, and is no worse in anything that
    a program may feel: number of GPUs, their memory and its speed, arithmetic, CPUs, memory."""
    region, declared = region_of(machine), facts.discounts(machine.stack.config)
    for one in machines(machine):
        what = facts.kind(one)
        if what is None:
            if UNKNOWN in (one.type, one.guest, one.guests):
                yield Undecided(one.path if one.type is UNKNOWN else "guestAccelerators")
        elif not _old(what):
            continue
        elif not isinstance(region, str) or one.capacity is UNKNOWN:
            yield Undecided("region" if one.capacity is not UNKNOWN else "how it is bought")
        elif found := successor(one, what, (region, declared), config["lesser"]):
            yield Violation(_newer(one, what, found, region))


def _newer(one: Machine, what: Kind, found: Successor, region: str) -> str:
    way = "on spot" if one.capacity == SPOT else "on demand"
    return (
        f"{one.path} is {one}, with {what.gpus:g} × {what.gpu} of a previous generation;"
        f" {found.name} has {found.what.gpus:g} × {found.what.gpu}{found.less} and costs"
        f" {money(found.usd_per_month)} less a month {way} in {region}"
        f" (prices of {facts.as_of()}): name it"
    )


def _old(what: Kind) -> bool:
    known_card = facts.card(what.gpu)
    return what.lifecycle in facts.OLD or bool(known_card and known_card.ended)


def successor(
    one: Machine, what: Kind, place: tuple[str, Sequence[Discount]], lesser: Collection[str] = ()
) -> Successor | None:
    """The cheapest that is newer and no worse, with what it saves in a region and after discounts;
    None where none is known."""
    now = facts.price(one, *place)
    if not isinstance(now, Price):
        return None
    found: list[Successor] = []
    for name, other in facts.machines(one.cloud):
        price = facts.price(Machine(one.cloud, name, "", one.capacity), *place)
        less = _less(other, what)
        if less is None or not less.keys() <= set(lesser):
            continue
        if isinstance(price, Price) and price.usd < now.usd:
            saved = (now.usd - price.usd) * MONTH
            found.append(Successor(name, other, saved, "".join(f", {v}," for v in less.values())))
    return max(found, key=lambda each: (each.usd_per_month, each.name), default=None)


def _less(new: Kind, old: Kind) -> dict[str, str] | None:
    """What a newer machine has less of, of what may be less; None where it does not succeed."""
    card, other = facts.card(new.gpu), facts.card(old.gpu)
    if card is None or other is None or new.lifecycle != "current" or new.cpu != old.cpu:
        return None
    asked = [
        (new.gpus, old.gpus),
        (new.vcpus, old.vcpus),
        (card.generation, other.generation + 1),
        (card.memory_gib, other.memory_gib),
        (card.fp32_tflops, _about(other.fp32_tflops)),
        (card.fp16_tflops, _about(other.fp16_tflops)),
    ]
    if other.fp64_tflops and other.fp32_tflops and other.fp64_tflops >= HPC * other.fp32_tflops:
        asked.append((card.fp64_tflops, _about(other.fp64_tflops)))
    if not all(_at_least(has, needed) for has, needed in asked):
        return None
    less: dict[str, str] = {}
    if not _at_least(new.memory_gib, _about(old.memory_gib)):
        less["memory"] = f"{new.memory_gib:g} GiB of memory instead of {old.memory_gib:g}"
    if not _at_least(card.memory_gb_s, _about(other.memory_gb_s)):
        speeds = f"{card.memory_gb_s or 0:g} GB/s instead of {other.memory_gb_s or 0:g}"
        less["gpu_memory_speed"] = f"GPU memory of {speeds}"
    return less


def _about(value: float | None) -> float | None:
    return None if value is None else value * ABOUT


def _at_least(has: Any, needed: Any) -> bool:
    """What the old one is not known to have is not asked for."""
    return needed is None or (has is not None and has >= needed)


GENERATIONS = Rule(
    check=machine_forbids_previous_generations,
    description="No machine of a previous generation where a newer one costs less and does more.",
    remediation="Name the newer machine.",
    severity="low",
    types=NAME_MACHINES,
    url="https://aws.amazon.com/ec2/previous-generation/",
    settings={
        "lesser": {
            "type": "array",
            "items": {"type": "string", "enum": list(LESSER)},
            "default": [],
            "description": "What the newer machine may have less of: `memory` of the machine,"
            " `gpu_memory_speed`, which the message then says.",
        }
    },
)

RULES = (MODELS, CONSUMER, GENERATIONS)
