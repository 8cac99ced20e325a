"""What one machine costs an hour, or why nobody here can say.

Prices are those of `gputier.plan.price`: listed, borrowed, estimated or unknown, and the stack's
discounts on what they cover. The catalogue knows machines with GPUs and the hosts that GPUs can be
attached to; any other machine has no price here, and its name is part of the reason.
"""

from __future__ import annotations

from typing import NamedTuple

from gputier.catalog import Catalog, InstanceType
from gputier.plan.machine import Machine
from gputier.plan.price import LISTED, QUOTED, discount_for, machine_price
from gputier.review.world import World

#: Regions that a reason names before it stops.
_SHOWN = 4


class Hourly(NamedTuple):
    """USD of one machine-hour after discounts; `note` has what a reader must know of the figure."""

    usd: float
    basis: str
    as_of: str | None
    note: str | None


def hourly(
    world: World,
    cloud: str,
    instance_type: str,
    region: str,
    capacity: str,
    *,
    attached: tuple[str, int] | None = None,
) -> Hourly | str:
    """The price of a machine with its GPUs, without disks; a text is why there is none.

    `capacity` is of the product's words (on_demand, spot, reservation, capacity_block, flex_start);
    `attached` a guest accelerator's name and how many of it a Google N1 machine carries.
    """
    machine = machine_of(world.catalog, cloud, instance_type, attached)
    if machine is None:
        return _of_a_host(world.catalog, cloud, instance_type, region, capacity, attached)
    if capacity in QUOTED:
        words = capacity.replace("_", " ")
        return f"{instance_type}: {words} is priced by quotation, and nobody here knows the quote"
    price = machine_price(world.catalog, machine, region, capacity)
    absent = _not_offered(world.catalog, machine.type, region)
    if absent and (price.usd is None or price.borrowed):
        return absent
    if price.usd is None:
        words = "spot price" if capacity == "spot" else "price"
        return f"{instance_type}: no {words} is known in {region}"
    notes = [] if absent is None else [f"{absent}, and yet has a price there"]
    if price.basis != LISTED:
        notes.append(f"{instance_type}: price {price.basis}")
    discount = discount_for(world.discounts, machine.type, capacity)
    if discount:
        notes.append(f"{discount.percent:g} % off: {discount.reason}")
    usd = price.usd * (1 - (discount.percent / 100 if discount else 0.0))
    return Hourly(usd, price.basis, price.as_of, "; ".join(notes) or None)


def machine_of(
    catalog: Catalog, cloud: str, instance_type: str, attached: tuple[str, int] | None = None
) -> Machine | None:
    """The catalogue's machine of this name, with what is attached; None if it knows no such."""
    if attached is None:
        found = catalog.types.get((cloud, instance_type))
        return None if found is None else Machine(found, None, 0, 1, None, 0.0)
    name, count = attached
    for row in catalog.rows((cloud,)):
        if (row.accelerator, row.attached_count) == (name, count):
            hosts = [host for host in catalog.hosts_of(row) if host.name == instance_type]
            return Machine(row, hosts[0], 0, 1, None, 0.0) if hosts else None
    return None


def _of_a_host(
    catalog: Catalog,
    cloud: str,
    name: str,
    region: str,
    capacity: str,
    attached: tuple[str, int] | None,
) -> Hourly | str:
    """A machine that GPUs may be attached to and is bought without; else why it has no price."""
    if attached:
        return f"{name} with {attached[1]} × {attached[0]} is not in the catalogue"
    price = catalog.price(cloud, name, region, "spot" if capacity == "spot" else "on_demand")
    if price is None:
        return f"{name}: not in the catalogue, which has GPU machines"
    return Hourly(price.usd_per_hour, LISTED, price.as_of, None)


def _not_offered(catalog: Catalog, type_: InstanceType, region: str) -> str | None:
    """Says that a source lists the type elsewhere and, though it knows the region, not there."""
    listed = catalog.zones(type_.cloud, type_.name)
    if not listed or region in listed or not catalog.region_zones(type_.cloud, region):
        return None
    near = sorted(listed, key=lambda name: (name.split("-")[0] != region.split("-")[0], name))
    shown = ", ".join(near[:_SHOWN]) + (", …" if len(near) > _SHOWN else "")
    return f"{type_.name}: not offered in {region} (it is in {shown})"
