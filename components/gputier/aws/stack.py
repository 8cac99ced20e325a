"""Every fleet of a stack, with what those of a region share."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import pulumi

from gputier.aws.fleet import Given, GpuFleet
from gputier.aws.image import image_ids
from gputier.aws.network import Network
from gputier.aws.refused import refuse
from gputier.aws.store import Store
from gputier.catalog import Catalog
from gputier.lock import Bundle
from gputier.plan import Chosen, WorkloadPlan
from gputier.plan.region import network_name, networks


class Deployment(NamedTuple):
    """A planned workload and the bundle that its lock pins."""

    plan: WorkloadPlan
    bundle: Bundle


class Deployed(NamedTuple):
    """Fleets by workload, and what is kept on purpose when the stack is destroyed."""

    fleets: Mapping[str, GpuFleet]
    kept: Sequence[pulumi.Output[str]]


def deploy(deployments: Sequence[Deployment], catalog: Catalog) -> Deployed:
    """All fleets. Raises `InvalidInput` with everything that cannot be deployed, before anything
    is made."""
    refuse(deployments)
    chosen = {d.plan.name: d.plan.chosen for d in deployments if d.plan.chosen}
    shared = networks([d.plan for d in deployments])
    images = image_ids(d.plan for d in deployments)
    tags = {"gputier:project": pulumi.get_project(), "gputier:stack": pulumi.get_stack()}
    nets = {name: Network(plan, tags=tags) for name, plan in shared.items()}
    stores = {region: _store(region, chosen, tags) for region in _regions(chosen)}
    fleets = {
        d.plan.name: GpuFleet(
            d.plan.name,
            d.plan,
            network=nets[network_name(chosen[d.plan.name])],
            store=stores[chosen[d.plan.name].verdict.region],
            given=Given(image=images[d.plan.name], bundle=d.bundle, catalog=catalog),
        )
        for d in deployments
    }
    return Deployed(fleets, [store.kept for store in stores.values()])


def _regions(chosen: Mapping[str, Chosen]) -> list[str]:
    return sorted({one.verdict.region for one in chosen.values()})


def _store(region: str, chosen: Mapping[str, Chosen], tags: Mapping[str, str]) -> Store:
    here = [one for one in chosen.values() if one.verdict.region == region]
    reports = {one.fleet.resources: one.identity.reports for one in here}
    return Store(region, region, reports=reports, tags=tags)
