"""Everything that follows from the choice of a machine, put together."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain
from typing import NamedTuple

from gputier.errors import InvalidInput, Problem
from gputier.plan.actions import schedule_problems
from gputier.plan.boot import BootPlan, plan_boot
from gputier.plan.budget import budget_problems, plan_budget
from gputier.plan.combinations import Decision
from gputier.plan.egress import egress_problems
from gputier.plan.fleet import FleetPlan, fleet_problems, plan_fleet, settle
from gputier.plan.identity import IdentityPlan, plan_identity
from gputier.plan.model import Chosen
from gputier.plan.monitoring import MonitoringPlan, Watched, plan_monitoring
from gputier.plan.network import NetworkPlan, plan_network
from gputier.plan.notes import notes_of
from gputier.plan.patience import Machine, patience_problems
from gputier.plan.price import commitments, cost_of
from gputier.plan.room import room_problems
from gputier.plan.scaling import ScalingPlan, bounds, plan_scaling
from gputier.plan.select import Ask
from gputier.plan.storage import Site, StoragePlan, plan_storage, storage_problems
from gputier.plan.verdict import Verdict
from gputier.workload import Workload


def chosen_of(ask: Ask, best: Verdict, sharing: int) -> Chosen:
    """The plan on a machine that fits; `sharing` workloads share its way out. Raises `InvalidInput`
    with all that this machine cannot be given."""
    settled, most = settle(ask, best), bounds(ask.need.workload, best)[1]
    fleet, boot = plan_fleet(ask, settled, most), plan_boot(ask.catalog, ask.need, best)
    scaling = plan_scaling(ask.need.workload, best, fleet)
    # What runs is the declared nodes, or the fleet's minimum; a fleet that may be empty counts as
    # empty.
    running = (best.machines if scaling.min else 0, scaling.hours_per_month)
    parts = _parts(ask, best, running, _Given(settled, fleet, scaling, boot, sharing))
    _refuse(
        ask, best, parts, (*fleet_problems(best, settled, most), *_late(ask, best, parts, boot))
    )
    licence, licence_borrowed = _licence(ask, best, running)
    around = {
        "disk": parts.storage.usd_per_month,
        "nat": parts.network.nat_usd,
        "endpoints": parts.network.endpoints_usd,
        "ipv4": parts.network.ipv4_usd,
        "metrics": parts.monitoring.usd_per_month,
        "licence": licence,
    }
    lent = (parts.storage.borrowed, parts.network.borrowed, parts.monitoring.borrowed)
    cost = _machine_costs(ask, best, scaling)
    at_max = cost.usd_per_month_at_max and cost.usd_per_month_at_max / scaling.hours_per_month
    month = (cost.usd_per_month, *around.values())
    budget = plan_budget(ask.need.workload, best.type.cloud, month, at_max)
    told = (parts.network, parts.storage, fleet, scaling, parts.monitoring, budget)
    more = (part.notes for part in told if part is not None)
    return Chosen(
        verdict=best,
        zones=parts.network.zones,
        sizing=best.machine.sizing,
        **cost._asdict(),
        listed_usd_per_hour=best.cost.listed_total if best.cost else None,
        around_usd_per_month=around,
        around_borrowed=any((*lent, licence_borrowed)),
        **parts._asdict(),
        scaling=scaling,
        budget=budget,
        commitments=commitments(ask.catalog, best.machine, best.region, _bare(best)),
        boot=boot,
        fleet=fleet,
        notes=tuple(notes_of(ask, best, tuple(chain(*more)), ask.need.environment)),
    )


class _Given(NamedTuple):
    """What the parts of a plan are made from besides the machine."""

    settled: Decision
    fleet: FleetPlan
    scaling: ScalingPlan
    boot: BootPlan
    sharing: int


class _Parts(NamedTuple):
    storage: StoragePlan
    network: NetworkPlan
    monitoring: MonitoringPlan
    identity: IdentityPlan


def _parts(ask: Ask, best: Verdict, running: tuple[int, float], given: _Given) -> _Parts:
    w, catalog, fleet = ask.need.workload, ask.catalog, given.fleet
    site = Site(best.machine, best.region, given.boot.image.os, fleet.shape)
    return _Parts(
        storage=plan_storage(catalog, ask.need, site, running),
        network=plan_network(ask, best, given.settled, running, given.sharing),
        monitoring=plan_monitoring(catalog, Watched(best, fleet, given.scaling, w.budget), running),
        identity=plan_identity(w, best.type.cloud, fleet, given.boot),
    )


def _late(ask: Ask, best: Verdict, parts: _Parts, boot: BootPlan) -> Iterator[Problem]:
    """What would be found out when user data is rendered."""
    yield from room_problems(boot, best.type.cloud)
    machine = boot_machine(ask.need.workload, best, parts.storage, parts.network)
    yield from patience_problems(boot, machine)


def boot_machine(w: Workload, best: Verdict, storage: StoragePlan, network: NetworkPlan) -> Machine:
    """What of a machine decides how long its boot takes."""
    return Machine(
        family=best.type.family,
        gpus=best.machine.gpus,
        mig=isinstance(w.gpu.mig, str),
        scratch=bool(best.machine.nvme_disks and best.machine.scratch_gib),
        data=bool(storage.data_gib),
        fabric=network.fabric != "none",
    )


def _refuse(ask: Ask, best: Verdict, parts: _Parts, found: tuple[Problem, ...]) -> None:
    """Raises `InvalidInput` with all that the chosen machine cannot be given."""
    problems = [*found, *storage_problems(ask.catalog, best.machine, parts.storage)]
    problems += egress_problems(ask.need.workload, best, parts.network)
    problems += budget_problems(ask.need.workload, ask.need.environment, best)
    if best.type.cloud == "aws":
        problems += schedule_problems(ask.need.workload.schedule)
    elif ask.need.workload.identity.permissions_boundary:
        message = f"{best.type.cloud} knows no permissions boundary, and the machine is there"
        problems.append(
            Problem("identity.permissions_boundary", message, "remove it, or `clouds: [aws]`")
        )
    if problems:
        raise InvalidInput(problems)


class _MachineCosts(NamedTuple):
    """What the machines cost, USD; None is unknown."""

    usd_per_hour: float | None
    usd_per_month: float | None
    usd_per_month_of_one: float | None
    usd_per_month_at_min: float | None
    usd_per_month_at_max: float | None


def _machine_costs(ask: Ask, best: Verdict, scaling: ScalingPlan) -> _MachineCosts:
    hours, total, one = scaling.hours_per_month, best.total, best.per_machine
    at_max = cost_of(
        ask.catalog, best.machine, best.region, ask.choice, ask.discounts, scaling.max
    ).total
    return _MachineCosts(
        total,
        None if total is None else (total * hours if scaling.min else 0.0),
        None if one is None else one * hours,
        None if one is None else one * scaling.min * hours,
        None if at_max is None else at_max * hours,
    )


def _bare(best: Verdict) -> float | None:
    """A machine's price without the disks attached to it."""
    cost = best.cost
    return cost.per_machine - cost.scratch if cost and cost.per_machine else None


def _licence(ask: Ask, best: Verdict, running: tuple[int, float]) -> tuple[float | None, bool]:
    """Virtual-workstation licences: Google bills them per GPU-hour; elsewhere not known."""
    if ask.need.purpose != "vdi":
        return 0.0, False
    price = ask.catalog.item(best.type.cloud, "vws-licence-hour", best.region)
    if price is None or price.usd is None:
        return None, False
    machines, hours = running
    return price.usd * best.machine.gpus * machines * hours, price.borrowed
