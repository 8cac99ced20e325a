"""Google Cloud: what is around machines — gateways, addresses, tunnels."""

from __future__ import annotations

import json
from collections.abc import Mapping

from gputier.review.bill import Bill
from gputier.review.cost import BILLED_BY_USE, Cost, Elsewhere, Priced, Pricer, Unpriced
from gputier.review.gcp_fleet import PRICERS as FLEET
from gputier.review.gcp_fleet import RUN_MACHINES, TEMPLATES
from gputier.review.gcp_storage import NO_REGION
from gputier.review.preview import State
from gputier.review.values import text
from gputier.review.world import World

INSTANCE = "gcp:compute/instance:Instance"
MACHINES = {token: FLEET[token] for token in RUN_MACHINES}


def address(world: World, state: State) -> Cost:
    """An external address costs more while nothing uses it; a used one is on its machine's bill."""
    region = world.region(state)
    if text(state.get("addressType")) == "INTERNAL":
        return Elsewhere("internal addresses are free")
    if region is None:
        return NO_REGION
    number = text(state.get("address"))
    for one in world.of_type(INSTANCE, *TEMPLATES):
        made_from = one.dependencies.get("networkInterfaces", ())
        shown = json.dumps(one.get("networkInterfaces"), default=str)
        if state.urn in made_from or (number is not None and f'"{number}"' in shown):
            return Elsewhere("counted at the machine that has it")
    bill = Bill(world, "gcp", region)
    bill.hours("idle public IPv4", "public-ipv4-idle-hour", 1)
    bill.notes.append("no machine of the preview uses it: one that does makes it cheaper")
    return bill.cost()


def tunnel(world: World, state: State) -> Cost:
    region = world.region(state)
    if region is None:
        return NO_REGION
    bill = Bill(world, "gcp", region)
    bill.hours("tunnel", "vpn-tunnel-hour", 1)
    return bill.cost()


#: From so many machines on a gateway costs no more (items.csv: the cap is unverified).
NAT_MOST = 32


def nat(world: World, state: State) -> Cost:
    """Billed by the hour of each machine that may go through it: those of its region that this
    preview has."""
    region = world.region(state)
    if region is None:
        return NO_REGION
    count = 0.0
    for one in world.of_type(*MACHINES):
        found = MACHINES[one.type](world, one)
        if world.region(one) == region and isinstance(found, Priced):
            count += found.quantity or 0.0
    bill = Bill(world, "gcp", region)
    if not count:
        bill.gaps.append("gateway: billed by machines that go through it, and none is here")
    bill.hours("gateway", "nat-hour", min(count, NAT_MOST))
    bill.notes.append("what goes through it is billed by the GiB, which no preview knows")
    return bill.cost()


def _rule(_world: World, _state: State) -> Cost:
    return Unpriced(f"{BILLED_BY_USE}: forwarding rules and what goes through them")


PRICERS: Mapping[str, Pricer] = {
    "gcp:compute/address:Address": address,
    "gcp:compute/routerNat:RouterNat": nat,
    "gcp:compute/vPNTunnel:VPNTunnel": tunnel,
    "gcp:compute/forwardingRule:ForwardingRule": _rule,
    "gcp:compute/globalForwardingRule:GlobalForwardingRule": _rule,
}
