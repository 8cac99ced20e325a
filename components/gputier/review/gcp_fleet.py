"""Google Cloud: machines alone, in groups and in node pools, and what they are started from."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from math import ceil
from typing import Any, NamedTuple, cast

from gputier.review.bill import Bill
from gputier.review.cost import Cost, Elsewhere, Pricer, Unpriced
from gputier.review.gcp_storage import LOCAL_SSD_GIB, NO_REGION, Disk, disk, made
from gputier.review.hours import Sizes, fires, hours_of
from gputier.review.pool import Counts, Kind, Mix, bill_machines, pool_cost
from gputier.review.preview import Hidden, State, Value
from gputier.review.values import maps, number, text, yes
from gputier.review.world import World, at, region_of_zone
from gputier.units import HOURS_PER_MONTH

TEMPLATES = (
    "gcp:compute/instanceTemplate:InstanceTemplate",
    "gcp:compute/regionInstanceTemplate:RegionInstanceTemplate",
)
SCALERS = (
    "gcp:compute/autoscaler:Autoscaler",
    "gcp:compute/regionAutoscaler:RegionAutoscaler",
)
#: What runs machines, of these.
RUN_MACHINES = (
    "gcp:compute/instance:Instance",
    "gcp:compute/instanceFromTemplate:InstanceFromTemplate",
    "gcp:compute/instanceGroupManager:InstanceGroupManager",
    "gcp:compute/regionInstanceGroupManager:RegionInstanceGroupManager",
    "gcp:container/nodePool:NodePool",
)
CLUSTER = "gcp:container/cluster:Cluster"
POLICY = "gcp:compute/resourcePolicy:ResourcePolicy"
_MODELS = {"SPOT": "spot", "FLEX_START": "flex_start", "RESERVATION_BOUND": "reservation"}
#: Which families have it (unverified: recalled, no page was read). Machines with built-in GPUs (A2,
#: A3, A4, G2, G4) and spot are taken to have none; N1 and what is attached to it may.
SUSTAINED = "Google may take a sustained-use discount off N1 machines; it is not in this figure"


class Start(NamedTuple):
    """What one machine is started from; `ssds` is how many local SSDs of `ssd_gib` in all."""

    kind: Kind | None
    licences: int
    capacity: str
    disks: tuple[Disk, ...]
    ssd_gib: float
    public_ip: bool
    why: str | None


def _kind(world: World, type_: Value, guests: Value) -> tuple[Kind | None, int, str | None]:
    """The machine, its workstation licences, and why there is none. GPUs that are part of a type
    are in its price, whatever the list of guests says."""
    if isinstance(type_, Hidden):
        return None, 0, f"its machine type is {type_.value} in the preview"
    name = (text(type_) or "").rsplit("/", 1)[-1]
    if not name:
        return None, 0, "no machine type is named"
    guest = next(iter(maps(guests)), None)
    label = (text(guest.get("type")) or "").rsplit("/", 1)[-1] if guest else ""
    count = int(number(guest.get("count")) or 0) if guest else 0
    licences = count if label.endswith("-vws") else 0
    if guest is None or not count or ("gcp", name) in world.catalog.types:
        return Kind(name), licences, None
    if not label:
        return None, 0, "the GPUs that are attached are not in the preview"
    return Kind(name, (label.removesuffix("-vws"), count)), licences, None


def _capacity(scheduling: Value) -> str:
    model = text(at(scheduling, "provisioningModel")) or ""
    return "spot" if yes(at(scheduling, "preemptible")) else _MODELS.get(model, "on_demand")


def start_of(world: World, state: State) -> Start:
    """What an instance or a template says of its machine. A disk that is there already is counted
    where it is made."""
    kind, licences, why = _kind(world, state.get("machineType"), state.get("guestAccelerators"))
    disks: list[Disk] = []
    ssd = sum(number(one.get("size")) or LOCAL_SSD_GIB for one in maps(state.get("scratchDisks")))
    for one in maps(state.get("disks")):
        if text(one.get("type")) == "SCRATCH" or text(one.get("diskType")) == "local-ssd":
            ssd += number(one.get("diskSizeGb")) or LOCAL_SSD_GIB
        elif not one.get("source"):
            disks.append(made(one, "diskSizeGb", "diskType"))
    for boot in maps(state.get("bootDisk")):
        if not boot.get("source"):
            disks.append(made(_one(boot.get("initializeParams")), "size", "type"))
    nets = maps(state.get("networkInterfaces"))
    public = any(net.get("accessConfigs") for net in nets)
    capacity = _capacity(state.get("scheduling"))
    return Start(kind, licences, capacity, tuple(disks), ssd, public, why)


def extras_of(start: Start, share: float = 1.0) -> Callable[[Bill, float], None]:
    """Disks, local SSDs, addresses and licences of so many machines. `share` of the month they
    run: what lives with a running machine is billed for that, its disks throughout."""
    spot = "-spot" if start.capacity == "spot" else ""

    def extras(bill: Bill, times: float) -> None:
        for one in start.disks:
            disk(bill, "disk", one, times)
        type_ = bill.world.catalog.types.get(
            ("gcp", start.kind.instance_type if start.kind else "")
        )
        if not (type_ and type_.local_nvme_count):
            bill.item("local SSD", f"local-ssd{spot}", start.ssd_gib * share, "GiB", times)
        hours = HOURS_PER_MONTH * share
        if start.public_ip:
            bill.hours("public IPv4", f"public-ipv4{spot}-hour", times, hours)
        bill.hours("workstation licence", "vws-licence-hour", times * start.licences, hours)

    return extras


def _cost(bill: Bill, start: Start, counts: Counts, share: float = 1.0) -> Cost:
    """Machines of one kind. `share` of the month is in `counts` already."""
    if start.kind is None:
        return Unpriced(start.why or "no machine type is named")
    mix = Mix("on_demand", 0.0, 0.0) if start.capacity == "spot" else Mix(start.capacity)
    if start.kind.instance_type.startswith("n1-") and start.capacity == "on_demand":
        bill.notes.append(SUSTAINED)
    pool = bill_machines(bill, [start.kind], mix, counts)
    if pool and share != 1.0:
        pool = pool._replace(average=counts.peak)
    return pool_cost(bill, pool, extras_of(start, share))


def instance(world: World, state: State) -> Cost:
    """One machine. One that is stopped, or that a policy stops, keeps its disks."""
    region = world.region(state)
    if region is None:
        return NO_REGION
    bill = Bill(world, "gcp", region)
    hours = _running(world, state, bill)
    share = hours / HOURS_PER_MONTH
    return _cost(bill, start_of(world, state), Counts(Sizes(None, share, None), 1.0), share)


def _running(world: World, state: State, bill: Bill) -> float:
    if text(state.get("desiredStatus")) in ("TERMINATED", "SUSPENDED"):
        bill.notes.append("it is stopped")
        return 0.0
    policy = world.follow(state, "resourcePolicies", POLICY) or world.follow(
        state, "resourcePolicies[0]", POLICY
    )
    plan = at(policy.get("instanceSchedulePolicy"), "timeZone") if policy else None
    if policy is None or plan is None:
        return HOURS_PER_MONTH
    when = policy.get("instanceSchedulePolicy")
    crons = [text(at(when, f"vm{what}Schedule.schedule")) for what in ("Start", "Stop")]
    found = hours_of([(crons[0], crons[1], text(plan) or "")]) if crons[0] and crons[1] else None
    if found is None:
        bill.notes.append("its schedule cannot be read: it counts as running all month")
        return HOURS_PER_MONTH
    bill.notes.append("hours by its schedule")
    return found


def from_template(world: World, state: State) -> Cost:
    """An instance from a template, with what it says itself instead."""
    region = world.region(state)
    if region is None:
        return NO_REGION
    source = world.follow(state, "sourceInstanceTemplate", *TEMPLATES)
    if source is None:
        return Unpriced("the template that it starts from is not in the preview")
    inputs = {**source.outputs, **source.inputs, **state.inputs}
    start = start_of(world, state._replace(inputs=inputs))
    return _cost(Bill(world, "gcp", region), start, Counts(Sizes(None, 1.0, None), 1.0))


def group(world: World, state: State) -> Cost:
    """A managed group: its target size, which its autoscaler's bounds hold, else the minimum. That
    of a regional group is for all its zones."""
    region = world.region(state)
    if region is None:
        return NO_REGION
    versions = maps(state.get("versions"))
    paths = [f"versions[{count}].instanceTemplate" for count in range(len(versions) or 1)]
    sources = [world.follow(state, path, *TEMPLATES) for path in paths]
    found = [start_of(world, source) for source in sources if source is not None]
    if len(found) < len(paths):
        return Unpriced("a template that it starts from is not in the preview")
    bill = Bill(world, "gcp", region)
    if isinstance(state.get("targetSize"), Hidden):
        return Unpriced("its target size is not in the preview")
    sizes = Sizes(None, number(state.get("targetSize")), None)
    scaler = next(world.pointing_at(state, "target", *SCALERS), None)
    counts = Counts(sizes._replace(desired=sizes.desired or 0.0), sizes.desired or 0.0)
    if scaler is not None:
        counts = _scaled(scaler, sizes.desired, bill)
    if len(found) > 1:
        return _several(bill, found, split(versions, counts.now.desired or 0.0))
    return _cost(bill, found[0], counts)


def split(versions: Sequence[Mapping[str, Any]], total: float) -> list[float]:
    """How many machines each version of a group has: a fixed number or a percentage, rounded up;
    the one that says neither has the rest (compute API v1, instanceGroupManagers.versions)."""
    counts: list[float | None] = []
    for one in versions:
        size = one.get("targetSize")
        fixed, percent = number(at(size, "fixed")), number(at(size, "percent"))
        share = None if percent is None else float(ceil(total * percent / 100))
        counts.append(share if fixed is None else fixed)
    rest = max(0.0, total - sum(count or 0.0 for count in counts))
    return [rest if count is None else min(count, total) for count in counts]


def _several(bill: Bill, starts: Sequence[Start], counts: Sequence[float]) -> Cost:
    """Machines of several templates in one group, each at its share."""
    names: list[str] = []
    for start, count in zip(starts, counts, strict=True):
        if start.kind is None:
            return Unpriced(start.why or "no machine type is named")
        mix = Mix("on_demand", 0.0, 0.0) if start.capacity == "spot" else Mix(start.capacity)
        pool = bill_machines(bill, [start.kind], mix, Counts(Sizes(None, count, None), count))
        if pool is None:
            return Unpriced("; ".join(bill.gaps))
        names.append(f"{count:g} × {pool.machine}")
        extras_of(start)(bill, pool.average)
    capacity = starts[0].capacity if len({start.capacity for start in starts}) == 1 else "mixed"
    return bill.cost(
        machine=" and ".join(names), capacity=capacity, quantity=sum(counts), hours=HOURS_PER_MONTH
    )


def _scaled(scaler: State, target: float | None, bill: Bill) -> Counts:
    """The bounds of an autoscaler. A schedule of its asks for so many machines for a while: they
    count for the hours in which they are more than run anyway."""
    policy = scaler.get("autoscalingPolicy")
    least, most = number(at(policy, "minReplicas")), number(at(policy, "maxReplicas"))
    now = max(least or 0.0, target or 0.0)
    top = now if most is None else min(now, most)
    more, peak = 0.0, top
    for one in maps(at(policy, "scalingSchedules")):
        asked, seconds = number(one.get("minRequiredReplicas")), number(one.get("durationSec"))
        often = fires(text(one.get("schedule")) or "", text(one.get("timeZone")) or "UTC")
        if yes(one.get("disabled")):
            continue
        if asked is None or seconds is None or often is None:
            bill.notes.append("a scaling schedule cannot be read, and is not counted")
            continue
        asked = asked if most is None else min(asked, most)
        share = min(1.0, often * seconds / 3600 / HOURS_PER_MONTH)
        more, peak = more + max(0.0, asked - top) * share, max(peak, asked)
        bill.notes.append("hours by its scaling schedules")
    average = min(top + more, peak)
    return Counts(Sizes(least, average, most), peak)


def node_pool(world: World, state: State) -> Cost:
    cluster = world.follow(state, "cluster", CLUSTER)
    place = text(state.get("location")) or (text(cluster.get("location")) if cluster else None)
    zones = _count(state.get("nodeLocations"))
    if not zones and cluster is not None:
        zones = _zones_of(cluster)
    return _nodes(world, state, place or world.region(state), zones)


def _one(value: Value) -> Mapping[str, Any]:
    found = maps(value)
    return found[0] if found else {}


def _count(value: Value) -> int:
    return len(cast("list[Any]", value)) if isinstance(value, list) else 0


def _zonal(place: str) -> bool:
    return re.fullmatch(r".+-[a-z]", place) is not None


def _zones_of(cluster: State) -> int:
    """Of a zonal cluster the list has its other zones; of a regional one, all."""
    count = _count(cluster.get("nodeLocations"))
    return count + 1 if _zonal(text(cluster.get("location")) or "") else count


def _nodes(world: World, pool: State, place: str | None, zones: int) -> Cost:
    if place is None:
        return NO_REGION
    bill = Bill(world, "gcp", region_of_zone(place) if _zonal(place) else place)
    if not zones:
        zones = 1 if _zonal(place) else 3
        if zones > 1:
            bill.notes.append("a regional pool without a list of zones counts as three")
    scaling = pool.get("autoscaling")
    least, most = (_bound(scaling, word, zones) for word in ("Min", "Max"))
    asked = number(pool.get("nodeCount"))
    asked = number(pool.get("initialNodeCount")) if asked is None else asked
    now = least or 0.0 if asked is None else asked * zones
    now = max(now, least or 0.0) if most is None else min(max(now, least or 0.0), most)
    start = _node_start(world, _one(pool.get("nodeConfig")))
    return _cost(bill, start, Counts(Sizes(least, now, most), now))


def _bound(scaling: Value, word: str, zones: int) -> float | None:
    total = number(at(scaling, f"total{word}NodeCount"))
    each = number(at(scaling, f"{word.lower()}NodeCount"))
    if total:
        return total
    return None if each is None else each * zones


def _node_start(world: World, config: Mapping[str, Any]) -> Start:
    """A node: e2-medium with 100 GiB of pd-balanced where nothing else is said (GKE's defaults,
    unverified)."""
    type_ = config.get("machineType") or "e2-medium"
    kind, licences, why = _kind(world, type_, config.get("guestAccelerators"))
    given = {"diskType": "pd-balanced", "diskSizeGb": 100, **config}
    ssds = number(config.get("localSsdCount")) or 0.0
    for name in ("ephemeralStorageLocalSsdConfig", "localNvmeSsdBlockConfig"):
        ssds += number(at(config, f"{name}.localSsdCount")) or 0.0
    spot = yes(config.get("spot")) or yes(config.get("preemptible"))
    flex = yes(config.get("flexStart"))
    capacity = "spot" if spot else "flex_start" if flex else "on_demand"
    boot = made(given, "diskSizeGb", "diskType")
    return Start(kind, licences, capacity, (boot,), ssds * LOCAL_SSD_GIB, False, why)


def cluster(world: World, state: State) -> Cost:
    """The management fee has no price here, and so a cluster is never whole."""
    fee = "the cluster's management fee has no known price"
    if yes(state.get("enableAutopilot")):
        return Unpriced(f"Autopilot bills what pods ask for; {fee}")
    if yes(state.get("removeDefaultNodePool")):
        return Unpriced(fee)
    found = _nodes(
        world, state, text(state.get("location")) or world.region(state), _zones_of(state)
    )
    if isinstance(found, Unpriced):
        return Unpriced(f"{found.why}; {fee}")
    return found._replace(gaps=(*found.gaps, fee)) if not isinstance(found, Elsewhere) else found


def reservation(world: World, state: State) -> Cost:
    """Capacity that is held is paid for whether machines run in it or not."""
    region = world.region(state)
    if region is None:
        return NO_REGION
    count = number(at(state.get("specificReservation"), "count"))
    given = at(state.get("specificReservation"), "instanceProperties")
    guests = [
        {"type": g.get("acceleratorType"), "count": g.get("acceleratorCount")}
        for g in maps(at(given, "guestAccelerators"))
    ]
    kind, licences, why = _kind(world, at(given, "machineType"), guests)
    if count is None:
        return Unpriced("its count is not in the preview")
    ssd = sum(
        number(one.get("diskSizeGb")) or LOCAL_SSD_GIB for one in maps(at(given, "localSsds"))
    )
    bill = Bill(world, "gcp", region)
    bill.notes.append("machines that run in it are paid for here too: count them once")
    start = Start(kind, licences, "reservation", (), ssd, False, why)
    return _cost(bill, start, Counts(Sizes(None, count, None), count))


def _elsewhere(why: str) -> Pricer:
    return lambda _world, _state: Elsewhere(why)


PRICERS: Mapping[str, Pricer] = {
    "gcp:compute/instance:Instance": instance,
    "gcp:compute/instanceFromTemplate:InstanceFromTemplate": from_template,
    "gcp:compute/instanceGroupManager:InstanceGroupManager": group,
    "gcp:compute/regionInstanceGroupManager:RegionInstanceGroupManager": group,
    "gcp:container/nodePool:NodePool": node_pool,
    CLUSTER: cluster,
    "gcp:compute/reservation:Reservation": reservation,
    **dict.fromkeys(TEMPLATES, _elsewhere("counted at what starts machines from it")),
    **dict.fromkeys(SCALERS, _elsewhere("counted at the group that it scales")),
    POLICY: _elsewhere("counted at the machines that it starts and stops"),
}
