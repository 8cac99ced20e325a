"""Selection: every catalogue row of the allowed clouds gets a verdict; the cheapest that fits wins.

Pure and deterministic. A row is represented by its best composition (GCP N1: which predefined
machine carries the GPUs; attached local SSD) in its best allowed region. Regions whose own price
is listed come before those where it is estimated or borrowed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import ceil, inf

from gputier import units
from gputier.catalog import HOME_REGIONS, Catalog, InstanceType, Price
from gputier.plan import market as markets
from gputier.plan import price as prices
from gputier.plan.contract import Contract, contract_of
from gputier.plan.disks_gcp import best_of
from gputier.plan.machine import Machine
from gputier.plan.market import Market, Places
from gputier.plan.need import Need, scales
from gputier.plan.reasons import FAR, Check, Context, Reason, bound, doublings
from gputier.plan.rules import RULES
from gputier.plan.rules_gpu import model_fit
from gputier.plan.rules_machine import NVME_MB_S_PER_DISK
from gputier.plan.tiers import Floor
from gputier.plan.verdict import Verdict
from gputier.sizing import Sizing
from gputier.workload import CapacityChoice, Discount

#: Sources print the same price with four or five decimals; a difference behind the fourth is
#: rounding. Regions that tie are taken by name: the order of a list means nothing.
PRICE_DIGITS = 4
#: The most machines a training run is spread over before we say that it does not fit.
MAX_NODES = 64


@dataclass(frozen=True)
class Ask:
    """One selection: what is needed, where, bought how, at which discounts."""

    catalog: Catalog
    need: Need
    market: Market
    choice: CapacityChoice
    discounts: tuple[Discount, ...] = ()
    max_price_age_days: int | None = None

    def without(self, rule: str) -> Ask:
        """The same selection with one floor dropped."""
        return replace(self, need=self.need.without(rule))

    def machines_of(self, machine: Machine) -> int:
        """Machines of this composition that run."""
        return self.machines or machine.nodes

    @property
    def machines(self) -> int | None:
        """Machines that run, when declared: nodes, else scale.min (at least one), else what a
        reservation holds."""
        w = self.need.workload
        if w.nodes is not None:
            return w.nodes
        if scales(w):
            return max(1, w.scale.min or 1)
        return self.choice.count

    @property
    def contract(self) -> Contract | None:
        """The version contract, where software is declared that decides which machines do."""
        if "software" not in self.need.floors:
            return None
        return contract_of(self.catalog, self.need.workload.software)

    @property
    def ceilings(self) -> Mapping[str, float]:
        """USD per hour and machine that may not be passed, by the field that says so."""
        floor = self.need.floors.get("price_ceiling")
        found = {"max_usd_per_hour": floor.number} if floor else {}
        if self.choice.max_usd_per_hour is not None:
            found["capacity.max_usd_per_hour"] = self.choice.max_usd_per_hour
        return found


Active = Sequence[tuple[Check, Floor]]


def active_checks(need: Need) -> Active:
    """The rules that have a floor, in the ledger's order."""
    return [(rule.check, need.floors[name]) for name, rule in RULES.items() if name in need.floors]


def select(ask: Ask) -> tuple[Verdict, ...]:
    """A verdict for every catalogue row of the allowed clouds, in the catalogue's order."""
    rows = ask.catalog.rows(ask.market.clouds)
    active = active_checks(ask.need)
    return tuple(verdict(ask, row, active) for row in rows)


def verdict(ask: Ask, row: InstanceType, active: Active) -> Verdict:
    """The row's best composition in its best region, with every reason against it."""
    named = ask.choice.instance_type or ""
    found = markets.places(ask.catalog, row, ask.market, ask.choice)
    fixed = [
        markets.lifecycle_reason(row, named),
        markets.capacity_reason(row, ask.choice, named),
        markets.availability_reason(ask.catalog, row, ask.market, (found, ask.choice.zone or "")),
    ]
    reasons = tuple(r for r in fixed if r is not None)
    best: tuple[tuple[object, ...], Verdict] | None = None
    for machine in _compositions(ask, row):
        hardware = _hardware_reasons(ask, machine, active)
        made = _offer(ask, machine, found, reasons + hardware)
        key = (
            len(made.reasons),
            made.total is None,
            made.total or 0.0,
            machine.instance_type,
        )
        if best is None or key < best[0]:
            best = (key, made)
    if best is None:  # cannot happen: a row has at least one composition
        raise AssertionError(row.name)
    return best[1]


def _hardware_reasons(ask: Ask, machine: Machine, active: Active) -> tuple[Reason, ...]:
    burst = ask.need.workload.network.burst
    volume = best_of(ask.catalog, machine, ask.need.workload.disk.data)
    context = Context(burst, machine.nodes > 1, ask.contract, volume)
    gpu = ask.catalog.gpus[machine.type.gpu_model]
    found = [check(floor, machine, gpu, context) for check, floor in active]
    found.append(_fit_reason(ask, machine))
    found.append(_nodes_reason(ask, machine))
    return tuple(r for r in found if r is not None)


#: Numbers of machines tried for "it would fit on N of them".
_MORE_NODES = (2, 3, 4, 6, 8, 12, 16)


def _fit_reason(ask: Ask, machine: Machine) -> Reason | None:
    """The model's need, with the fewest machines of this type that would hold it."""
    reason = model_fit(machine)
    if reason is None or ask.need.workload.nodes is not None or ask.choice.count:
        return reason
    for nodes in _MORE_NODES:
        spread = ask.need.sizing(machine.gpus * nodes)
        if spread is not None and spread.fits(machine.type.usable_gib):
            return replace(reason, relax=f"nodes: {nodes}, or {reason.relax}")
    return reason


def _nodes_reason(ask: Ask, machine: Machine) -> Reason | None:
    held = ask.choice.count
    wanted = ask.machines_of(machine)
    if held is None or wanted <= held:
        return None
    return Reason("nodes", f"{wanted} machines", f"{held} in the reservation", f"nodes: {held}")


def _compositions(ask: Ask, row: InstanceType) -> list[Machine]:
    nodes, sizing = _nodes(ask, row)
    floor_gib = ask.need.memory_floor_gib
    plain = Machine(row, None, 0, nodes, sizing, floor_gib)
    ssd = _ssd_count(ask, plain)
    if row.vcpu_range is None:
        return [plain._replace(ssd_count=ssd) if ssd else plain]
    machines = [
        Machine(row, host, ssd, nodes, sizing, floor_gib) for host in ask.catalog.hosts_of(row)
    ]
    # A host with no fewer vCPUs and no less memory than another that fits too only costs more.
    return _smallest(machines, ask)


def _smallest(machines: list[Machine], ask: Ask) -> list[Machine]:
    """The hosts that meet the floors which depend on a host, and are not dominated; the largest
    when none does, so that the ledger shows how far off the row is at its best."""

    need = ask.need

    def meets(m: Machine) -> bool:
        volume = best_of(ask.catalog, m, need.workload.disk.data)
        has = {
            "disk_iops": volume.iops if volume else None,
            "vcpu": m.vcpus,
            "host_memory": m.memory_gib,
            "network": m.network_sustained_gbps,
        }
        wanted = [
            (need.floors[rule], value or 0) for rule, value in has.items() if rule in need.floors
        ]
        return all(value >= bound(floor, m) for floor, value in wanted)

    fitting = [m for m in machines if meets(m)]
    if not fitting:
        return [max(machines, key=lambda m: (m.vcpus or 0, m.memory_gib or 0, m.instance_type))]
    sizes = [((m.vcpus or 0), (m.memory_gib or 0)) for m in fitting]
    return [
        m
        for m, (cpu, memory) in zip(fitting, sizes, strict=True)
        if not any(c <= cpu and g <= memory and (c, g) != (cpu, memory) for c, g in sizes)
    ]


def _nodes(ask: Ask, row: InstanceType) -> tuple[int, Sizing | None]:
    """How many machines work together, and the model's size on their GPUs."""
    need, w = ask.need, ask.need.workload
    nodes = w.nodes or (None if scales(w) else ask.choice.count) or 1
    sizing = need.sizing(row.gpu_devices * nodes)
    if not need.spreads or sizing is None or ask.choice.count or sizing.fits(row.usable_gib):
        return nodes, sizing
    most = need.sizing(row.gpu_devices * MAX_NODES)
    if most is None or not most.fits(row.usable_gib):
        return nodes, sizing
    low, high = 1, MAX_NODES  # does not fit on `low`, fits on `high`; more GPUs never need more
    while high - low > 1:
        middle = (low + high) // 2
        tried = need.sizing(row.gpu_devices * middle)
        if tried is not None and tried.fits(row.usable_gib):
            high = middle
        else:
            low = middle
    return high, need.sizing(row.gpu_devices * high)


def _ssd_count(ask: Ask, machine: Machine) -> int:
    """Local SSDs to attach: the fewest that meet the scratch and throughput floors."""
    need, row = ask.need, machine.type
    scratch, speed = need.floors.get("scratch"), need.floors.get("disk_throughput")
    if not row.attachable_ssd_counts or (scratch is None and speed is None):
        return 0
    gib = bound(scratch, machine) if scratch else 0.0
    disks = ceil(bound(speed, machine) / NVME_MB_S_PER_DISK) if speed else 0
    data = need.workload.disk.data
    if speed and speed.origin == "workload" and data:
        volume = best_of(ask.catalog, machine, data)
        if volume and volume.throughput >= bound(speed, machine):
            disks = 0  # the data volume gives it
    have_gib, have_disks = row.local_nvme_gib or 0.0, row.local_nvme_count or 0
    each = row.attachable_ssd_gib or 0.0

    def short(count: int) -> tuple[bool, bool]:
        return have_gib + count * each < gib, have_disks + count < disks

    counts = (0, *row.attachable_ssd_counts)
    enough = [c for c in counts if not any(short(c))]
    # Not enough for the speed: still attach what the size asks, so that the ledger is fair.
    roomy = [c for c in counts if not short(c)[0]]
    return min(enough or roomy or [max(counts)])


def _offer(ask: Ask, machine: Machine, found: Places, reasons: tuple[Reason, ...]) -> Verdict:
    regions = found.regions or dict.fromkeys(found.elsewhere, ())
    row = machine.type
    if row.zone_caps:
        regions = _roomy(machine, regions)
    region = _best_region(ask, machine, regions)
    use, named = ask.choice.use, ask.choice.instance_type == row.name
    if not region:
        if found.availability != markets.ABSENT:
            reasons = (*reasons, _no_room(machine))
        return Verdict(row, machine, "", (), found.availability, use, None, reasons, named)
    machines = ask.machines_of(machine)
    cost = prices.cost_of(ask.catalog, machine, region, ask.choice, ask.discounts, machines)
    money = _money_reasons(ask, machine, region, cost)
    zones = regions[region]
    return Verdict(
        row, machine, region, zones, found.availability, use, cost, reasons + money, named
    )


def _roomy(
    machine: Machine, regions: Mapping[str, tuple[str, ...]]
) -> Mapping[str, tuple[str, ...]]:
    """The regions and zones whose cap on this configurable machine lets the host in."""
    vcpus, memory = machine.vcpus or 0, machine.memory_gib or 0.0
    closed = {
        cap.zone for cap in machine.type.zone_caps if vcpus > cap.vcpus or memory > cap.memory_gib
    }
    open_zones = {r: tuple(z for z in zones if z not in closed) for r, zones in regions.items()}
    return {r: zones for r, zones in open_zones.items() if zones or not regions[r]}


def _no_room(machine: Machine) -> Reason:
    vcpus, memory = machine.vcpus or 0, units.gib(machine.memory_gib or 0.0)
    caps = {f"at most {c.vcpus} vCPU and {units.gib(c.memory_gib)}" for c in machine.type.zone_caps}
    has = f"{' or '.join(sorted(caps))} in the allowed zones"
    relax = f"regions.{machine.type.cloud} or zones: others"
    return Reason("availability", f"{vcpus} vCPU and {memory}", has, relax)


def _best_region(ask: Ask, machine: Machine, regions: Mapping[str, tuple[str, ...]]) -> str:
    row, choice = machine.type, ask.choice
    key = ("region", row.cloud, row.name, machine.instance_type, choice.use, choice.zone)
    # With a base on demand, regions are compared by the whole fleet and all that it holds.
    fleet = (
        choice.on_demand_base, ask.machines_of(machine), ask.discounts, machine.ssd_count
    )  # fmt: skip
    key = (*key, ask.max_price_age_days, fleet if choice.on_demand_base else ())
    known = ask.market.memo.get(key)
    if known is None:
        known = ask.market.memo[key] = _cheapest_region(ask, machine, regions)
    found: str = known
    return found


def _cheapest_region(ask: Ask, machine: Machine, regions: Mapping[str, tuple[str, ...]]) -> str:
    use = ask.choice.use
    listed: Mapping[str, tuple[float, str]] = {}
    if use not in prices.QUOTED:
        listed = _listed(ask.catalog, machine, use)
    good: tuple[float, str] | None = None
    bad: tuple[float, str] | None = None
    for region, (usd, as_of) in listed.items():
        if region not in regions:
            continue
        key = (round(_compared(ask, machine, region, usd), PRICE_DIGITS), region)
        if _stale(ask, as_of) or _no_saving(ask, machine, region, usd):
            bad = min(bad, key) if bad else key
        elif good is None or key < good:
            good = key
    if good:
        return good[1]
    rest = [r for r in regions if r not in listed]
    if rest:
        return _best_unlisted(ask, machine, rest)
    return bad[1] if bad else ""


def _compared(ask: Ask, machine: Machine, region: str, usd: float) -> float:
    """What regions are compared by: a machine's price, or the fleet's with a base on demand."""
    if not ask.choice.on_demand_base:
        return usd
    machines = ask.machines_of(machine)
    cost = prices.cost_of(ask.catalog, machine, region, ask.choice, ask.discounts, machines)
    return inf if cost.total is None else cost.total


def _best_unlisted(ask: Ask, machine: Machine, regions: list[str]) -> str:
    home = HOME_REGIONS.get(machine.type.cloud, "")
    if not _priced_somewhere(ask, machine):
        return home if home in regions else min(regions)

    def key(region: str) -> tuple[object, ...]:
        found = prices.machine_price(ask.catalog, machine, region, ask.choice.use)
        return (found.usd is None, found.usd or 0.0, region != home, region)

    return min(regions, key=key)


def _priced_somewhere(ask: Ask, machine: Machine) -> bool:
    """Whether any region could lend a price or an estimate; most unpriced rows end here."""
    if ask.choice.use in prices.QUOTED:
        return False
    cloud, name = machine.type.cloud, machine.instance_type
    ways = ("spot", "on_demand") if ask.choice.use == "spot" else ("on_demand",)
    return any(ask.catalog.prices(cloud, name, way) for way in ways)


def _listed(catalog: Catalog, machine: Machine, use: str) -> Mapping[str, tuple[float, str]]:
    """Region → (USD per hour, oldest date) where every part has a listed price."""
    purchase = "spot" if use == "spot" else "on_demand"
    cloud = machine.type.cloud
    base: Mapping[str, Price] = catalog.prices(cloud, machine.instance_type, purchase)
    if machine.host is None:
        return {r: (p.usd_per_hour, p.as_of) for r, p in base.items()}
    each = catalog.prices(cloud, f"accelerator:{machine.type.accelerator}", purchase)
    count = machine.type.attached_count
    return {
        r: (p.usd_per_hour + count * each[r].usd_per_hour, min(p.as_of, each[r].as_of))
        for r, p in base.items()
        if r in each
    }


def _stale(ask: Ask, as_of: str) -> bool:
    limit = ask.max_price_age_days
    return limit is not None and prices.age_days(as_of, ask.catalog.as_of) > limit


def _no_saving(ask: Ask, machine: Machine, region: str, spot: float) -> bool:
    if ask.choice.use != "spot":
        return False
    full = prices.machine_price(ask.catalog, machine, region, "on_demand")
    return full.usd is not None and not full.borrowed and spot >= full.usd


def _money_reasons(
    ask: Ask, machine: Machine, region: str, cost: prices.Cost
) -> tuple[Reason, ...]:
    found: list[Reason] = []
    if ask.choice.use == "spot":
        spot = prices.machine_price(ask.catalog, machine, region, "spot")
        if spot.usd is not None and _no_saving(ask, machine, region, spot.usd):
            has = f"spot {units.usd_per_hour(spot.usd)} is no less than on demand in {region}"
            found.append(Reason("spot_saving", "spot below on demand", has, "capacity: on_demand"))
    limit = ask.max_price_age_days
    if limit is not None and cost.as_of and _stale(ask, cost.as_of):
        age = prices.age_days(cost.as_of, ask.catalog.as_of)
        has = f"{age} days ({cost.as_of})"
        relax = f"max_price_age_days: {age}, or `gputier catalog refresh`"
        found.append(Reason("price_age", f"price ≤ {limit} days old", has, relax))
    return (*found, *_ceiling_reasons(ask, machine, region, cost))


def _ceiling_reasons(
    ask: Ask, machine: Machine, region: str, cost: prices.Cost
) -> tuple[Reason, ...]:
    """One reason per ceiling that is passed; the dearest machine of a mixed fleet counts."""
    if not ask.ceilings:
        return ()
    each = cost.per_machine
    if ask.choice.on_demand_base and each is not None:
        firm = CapacityChoice(use="on_demand")
        alone = prices.cost_of(ask.catalog, machine, region, firm, ask.discounts, 1).per_machine
        each = None if alone is None else max(each, alone)
    found: list[Reason] = []
    for field, ceiling in ask.ceilings.items():
        needed = f"≤ {units.usd_per_hour(ceiling)}"
        if each is None:
            found.append(Reason("price_ceiling", needed, "price unknown", f"{field}: drop it", FAR))
        elif each > ceiling:
            # Rounded up, so that pasting it really makes the machine fit.
            relax = f"{field}: {ceil(each * 100) / 100:.2f}"
            has = units.usd_per_hour(each)
            found.append(Reason("price_ceiling", needed, has, relax, doublings(ceiling, each)))
    return tuple(found)
