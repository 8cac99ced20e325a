"""Every type that has a price here, or is known to have none."""

from __future__ import annotations

from collections.abc import Mapping

from gputier.review import (
    aws_fleet,
    aws_managed,
    aws_network,
    aws_storage,
    gcp_fleet,
    gcp_free,
    gcp_network,
    gcp_storage,
    other_clouds,
)
from gputier.review.cost import Cost, Elsewhere, Pricer, Unpriced
from gputier.review.preview import State
from gputier.review.world import World

PRICERS: Mapping[str, Pricer] = {
    **aws_fleet.PRICERS,
    **aws_managed.PRICERS,
    **aws_storage.PRICERS,
    **aws_network.PRICERS,
    **gcp_fleet.PRICERS,
    **gcp_storage.PRICERS,
    **gcp_network.PRICERS,
    **gcp_free.PRICERS,
    **other_clouds.PRICERS,
}
#: Providers whose resources are made by the engine alone, or on the machine that runs it.
WITHOUT_COST = frozenset({"command", "local", "null", "pulumi", "random", "std", "tls", "time"})


def price(world: World, state: State) -> Cost:
    """What a resource costs a month. A type that nobody here knows has no price: it may cost."""
    pricer = PRICERS.get(state.type)
    if pricer is not None:
        return pricer(world, state)
    if state.type.split(":")[0] in WITHOUT_COST:
        return Elsewhere("nothing in a cloud")
    return Unpriced(f"no price is known for {state.type}")
