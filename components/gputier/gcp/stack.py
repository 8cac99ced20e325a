"""Every fleet of a stack on Google, with what those of a region share."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import pulumi

from gputier.catalog import Catalog
from gputier.gcp.fleet import Given, GpuFleet
from gputier.gcp.image import image_links
from gputier.gcp.network import Network
from gputier.gcp.refused import refuse
from gputier.gcp.store import Store
from gputier.lock import Bundle
from gputier.plan import Chosen, WorkloadPlan
from gputier.plan.labels import label
from gputier.plan.region import network_name
from gputier.plan.region_gcp import networks


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
    images = image_links(d.plan for d in deployments)
    nets = {name: Network(plan) for name, plan in shared.items()}
    stores = {region: _store(region, chosen) for region in _regions(chosen)}
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


def _store(region: str, chosen: Mapping[str, Chosen]) -> Store:
    here = [one for one in chosen.values() if one.verdict.region == region]
    reports = {one.fleet.resources: one.identity.reports for one in here}
    labels = {
        "gputier-project": label(pulumi.get_project()),
        "gputier-stack": label(pulumi.get_stack().rsplit("/", 1)[-1]),
    }
    return Store(region, region, reports=reports, labels=labels)
