"""Every fleet of a stack on Google, with what those of a region share."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pulumi

from gputier.catalog import Catalog
from gputier.deploy import Deployed, Deployment, Prepared, chosen_of, refuse, reports_of, stack_name
from gputier.gcp.fleet import Given, GpuFleet
from gputier.gcp.image import image_links
from gputier.gcp.network import Network
from gputier.gcp.refused import problems_of
from gputier.gcp.store import Store
from gputier.plan.labels import label
from gputier.plan.region import network_name
from gputier.plan.region_gcp import RegionNetwork, networks


def deploy(deployments: Sequence[Deployment], catalog: Catalog) -> Deployed:
    """All fleets. Raises `InvalidInput` with everything that cannot be deployed, before anything
    is made."""
    return prepare(deployments, catalog)()


def prepare(deployments: Sequence[Deployment], catalog: Catalog) -> Prepared:
    """What makes all fleets, after everything that may be refused was looked at. Raises
    `InvalidInput`."""
    refuse(problem for d in deployments for problem in problems_of(d.plan, d.bundle))
    shared = networks([d.plan for d in deployments])
    images = image_links(d.plan for d in deployments)
    return lambda: _made(deployments, catalog, shared, images)


def _made(
    deployments: Sequence[Deployment],
    catalog: Catalog,
    shared: Mapping[str, RegionNetwork],
    images: Mapping[str, str],
) -> Deployed:
    chosen = chosen_of(deployments)
    labels = {"gputier-project": label(pulumi.get_project()), "gputier-stack": label(stack_name())}
    nets = {name: Network(plan) for name, plan in shared.items()}
    stores = {
        region: Store(region, region, reports=reports, labels=labels)
        for region, reports in reports_of(chosen).items()
    }
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
