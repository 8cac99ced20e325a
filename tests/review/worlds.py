"""Resources and worlds in a line or two each, for tests of what things cost and risk."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cache
from typing import Any

from gputier.catalog import Catalog, load
from gputier.review.cost import Cost, Pricer
from gputier.review.preview import State
from gputier.review.world import World
from gputier.workload import Discount


@cache
def catalog() -> Catalog:
    """The packaged catalogue, read once."""
    return load()


def urn(type_: str, name: str) -> str:
    return f"urn:pulumi:dev::shop::{type_}::{name}"


def state(type_: str, name: str = "it", **inputs: Any) -> State:
    """A resource as a program asks for it; what it is made from is said by `made_from`."""
    return State(urn(type_, name), type_, None, inputs, {}, {}, None, None, False)


def made_from(one: State, **sources: State | Iterable[State]) -> State:
    """The same with its dependencies: property → the resources that its value comes from."""
    found = {
        name: tuple(s.urn for s in ([source] if isinstance(source, State) else source))
        for name, source in sources.items()
    }
    return one._replace(dependencies=found)


def known(one: State, id_: str, **outputs: Any) -> State:
    """The same as the cloud has it already, under its id."""
    return one._replace(id=id_, outputs={**one.inputs, **outputs})


def world(
    *states: State,
    config: Mapping[str, Any] | None = None,
    discounts: Iterable[Discount] = (),
) -> World:
    """One side of a preview, in us-east-1 and us-central1 unless `config` says otherwise."""
    settings = {"aws:region": "us-east-1", "gcp:region": "us-central1"}
    return World(
        {one.urn: one for one in states},
        settings if config is None else config,
        catalog(),
        tuple(discounts),
    )


def cost(pricers: Mapping[str, Pricer], one: State, *others: State, **settings: Any) -> Cost:
    """What one resource costs beside the others; `settings` are those of `world`."""
    return pricers[one.type](world(one, *others, **settings), one)
