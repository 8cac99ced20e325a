"""What machines are and cost, from prices.json beside this file: written from gputier's catalogue
(`make docs`), read once and only when a rule asks."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from importlib.resources import files
from typing import Any, NamedTuple

from gputier_policies.machine import BLOCK, FLEX, ON_DEMAND, RESERVATION, SPOT, Machine
from gputier_policies.values import UNKNOWN, is_list, is_map

#: Ways to buy that have no list price: AWS's DescribeCapacityBlockOfferings, Google's Dynamic
#: Workload Scheduler.
QUOTED = (BLOCK, FLEX)
#: What savings plans and committed use cover, as `gputier plan` has it.
DISCOUNTED = (ON_DEMAND, RESERVATION)
#: Where there is no GPU of a name in the catalogue, how consumer cards are called.
_GEFORCE = ("geforce", "titan", "rtx-20", "rtx-30", "rtx-40", "rtx-50")
OLD = ("previous-generation", "retiring", "retired")


class Gpu(NamedTuple):
    """A card. Rates are dense; None is unknown. `ended`: the newest CUDA does without it."""

    memory_gib: float
    memory_gb_s: float | None
    fp32_tflops: float | None
    fp16_tflops: float | None
    fp64_tflops: float | None
    generation: int
    ended: bool
    consumer: bool


class Kind(NamedTuple):
    """What a machine is. `gpus` may be a fraction; `placement` and `fabric` are what its type can
    have, in the catalogue's words, and empty for an N1 machine."""

    family: str
    gpu: str
    gpus: float
    vcpus: int
    memory_gib: float
    cpu: str
    lifecycle: str
    placement: str = ""
    fabric: str = ""
    spot: bool | None = None


class Discount(NamedTuple):
    """A share off what a commitment covers, as the stack's config declares it."""

    cloud: str
    families: tuple[str, ...]
    percent: float
    reason: str


class Price(NamedTuple):
    """USD of a machine-hour after discounts; `note` has what a reader must know of the figure."""

    usd: float
    note: str = ""


def as_of() -> str:
    """The newest price's date, YYYY-MM-DD."""
    return _data()["as_of"]


def catalog() -> str:
    """The id of the catalogue that the prices are from."""
    return _data()["catalog"]


def kind(machine: Machine) -> Kind | None:
    """What a machine is; None where its type is not known here, or not known yet."""
    if machine.guest:
        card, host = _of("accelerators", machine.guest), _of("hosts", machine.type)
        if card is None or host is None or machine.guests is UNKNOWN:
            return None
        return Kind(card["family"], card["gpu"], machine.guests, host["vcpus"],
                    host["memory_gib"], "x86_64", card["lifecycle"])  # fmt: skip
    row = _of(machine.cloud, machine.type)
    return _kind(row) if row else None


def gpu(machine: Machine) -> tuple[str, Gpu | None]:
    """A machine's card: its name, as the catalogue has it where it does; empty where not known."""
    row = _of("accelerators", machine.guest) or _of(machine.cloud, machine.type)
    if row is None:
        return (machine.guest, None) if machine.guest else ("", None)
    return row["gpu"], card(row["gpu"])


def card(model: str) -> Gpu | None:
    found = _of("gpus", model)
    return Gpu(**found) if found else None


def is_consumer(machine: Machine) -> bool:
    """Whether its card is of a series that is licensed for desktops alone."""
    name, known_card = gpu(machine)
    if known_card is not None:
        return known_card.consumer
    return any(word in name.lower() for word in _GEFORCE)


def names(model: str, wanted: Iterable[str]) -> bool:
    """Whether one of the names means a model: `H100` is every H100, `A10` never A10G."""
    exact = model.lower()
    return any(exact == w.lower() or exact.startswith(f"{w.lower()}-") for w in wanted)


def price(machine: Machine, region: Any, discounts: Iterable[Discount] = ()) -> Price | str:
    """The price of a machine-hour with its GPUs; a text is why there is none. All of the machine
    has to be known, the region too: `at_least` is for the rest."""
    if machine.type is None:
        return "it is chosen by its traits when it starts, and any price may come"
    if machine.capacity in QUOTED:
        way = str(machine.capacity).replace("_", " ")
        return f"{machine.type}: {way} is priced by quotation"
    found = _listed(machine, region)
    if found is None:
        return _absent(machine, region)
    usd, basis = found
    discount = _discount(machine, discounts)
    if discount is None:
        return Price(usd, basis)
    said = f"{discount.percent:g} % off: {discount.reason}"
    return Price(usd * (1 - discount.percent / 100), "; ".join(filter(None, (basis, said))))


def at_least(machine: Machine, region: Any, discounts: Iterable[Discount] = ()) -> float | None:
    """The lowest price that a machine may have, by what is known of it; None where nothing is."""
    ways = (ON_DEMAND, SPOT) if machine.capacity is UNKNOWN else (machine.capacity,)
    guests = 1 if machine.guests is UNKNOWN else machine.guests
    prices: list[float] = []
    for way in ways:
        one = machine._replace(capacity=way, guests=guests)
        for place in [region] if isinstance(region, str) else regions(one):
            found = price(one, place, discounts)
            prices += [found.usd] if isinstance(found, Price) else []
    return min(prices, default=None)


def regions(machine: Machine) -> list[str]:
    """Every region that has a price of a machine as it is bought, sorted."""
    found: list[Mapping[str, Any]] = [row.get(_bought(machine), {}) for row, _ in _rows(machine)]
    return (
        [region for region in sorted(found[0]) if all(region in each for each in found)]
        if found
        else []
    )


def machines(cloud: str) -> Iterator[tuple[str, Kind]]:
    """Every machine of a cloud whose GPUs are part of its type."""
    for name, row in _data()[cloud].items():
        yield name, _kind(row)


def discounts(config: Mapping[str, str]) -> tuple[Discount, ...]:
    """Those of a stack's config, `gputier:discounts`; what is no discount is left out, as the
    program that reads the config refuses it."""
    try:
        declared: Any = json.loads(config.get("gputier:discounts") or "[]")
    except (ValueError, RecursionError):
        return ()
    found: list[Discount] = []
    for one in declared if is_list(declared) else []:
        if not is_map(one):
            continue
        percent, families = one.get("percent"), one.get("families")
        if isinstance(percent, int | float) and 0 < percent <= 100 and is_list(families):
            cloud, reason = str(one.get("cloud", "")), str(one.get("reason", ""))
            found.append(Discount(cloud, tuple(map(str, families)), float(percent), reason))
    return tuple(found)


def _discount(machine: Machine, declared: Iterable[Discount]) -> Discount | None:
    """The largest that covers a machine's family; discounts do not add up."""
    what = kind(machine)
    if what is None or machine.capacity not in DISCOUNTED:
        return None
    fitting = [d for d in declared if d.cloud == machine.cloud and what.family in d.families]
    return max(fitting, key=lambda d: d.percent, default=None)


def _listed(machine: Machine, region: Any) -> tuple[float, str] | None:
    total, notes = 0.0, list[str]()
    rows = _rows(machine)
    for row, times in rows:
        found = row.get(_bought(machine), {}).get(region)
        if found is None:
            return None
        usd, basis = found if is_list(found) else (found, "")
        total += usd * times
        notes += [f"price {basis}"] if basis else []
    return (total, "; ".join(notes)) if rows else None


def _rows(machine: Machine) -> list[tuple[Mapping[str, Any], float]]:
    """What its price is the sum of, with how many of each; nothing where a part is not known."""
    if not machine.guest and machine.guest is not UNKNOWN:
        row = _of(machine.cloud, machine.type)
        return [(row, 1.0)] if row else []
    host, guest = _of("hosts", machine.type), _of("accelerators", machine.guest)
    if host is None or guest is None or machine.guests is UNKNOWN:
        return []
    return [(host, 1.0), (guest, float(machine.guests))]


def _absent(machine: Machine, region: Any) -> str:
    listed = regions(machine)
    if not listed:
        return f"{machine}: no price of it is known"
    near = sorted(listed, key=lambda name: (name[:3] != str(region)[:3], name))
    shown = ", ".join(near[:4]) + (", …" if len(near) > 4 else "")
    words = "spot price" if machine.capacity == SPOT else "price"
    return f"{machine}: no {words} is known in {region} (there is one in {shown})"


def _bought(machine: Machine) -> str:
    return "spot_usd" if machine.capacity == SPOT else "on_demand_usd"


def _kind(row: Mapping[str, Any]) -> Kind:
    return Kind(**{name: row[name] for name in Kind._fields})


def _of(part: str, name: Any) -> Mapping[str, Any] | None:
    return _data()[part].get(name) if isinstance(name, str) and name else None


@cache
def _data() -> Mapping[str, Any]:
    return json.loads(files("gputier_policies").joinpath("prices.json").read_bytes())
