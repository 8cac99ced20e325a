"""Every fleet of a stack, with what those of a region share."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pulumi

from gputier.aws.fleet import Given, GpuFleet
from gputier.aws.image import image_ids
from gputier.aws.network import Network
from gputier.aws.refused import problems_of
from gputier.aws.store import Store
from gputier.catalog import Catalog
from gputier.deploy import Deployed, Deployment, Prepared, chosen_of, refuse, reports_of
from gputier.plan.region import RegionNetwork, network_name, networks


def deploy(deployments: Sequence[Deployment], catalog: Catalog) -> Deployed:
    """All fleets. Raises `InvalidInput` with everything that cannot be deployed, before anything
    is made."""
    return prepare(deployments, catalog)()


def prepare(deployments: Sequence[Deployment], catalog: Catalog) -> Prepared:
    """What makes all fleets, after everything that may be refused was looked at. Raises
    `InvalidInput`."""
    refuse(problem for d in deployments for problem in problems_of(d.plan, d.bundle))
    shared = networks([d.plan for d in deployments])
    images = image_ids(d.plan for d in deployments)
    return lambda: _made(deployments, catalog, shared, images)


def _made(
    deployments: Sequence[Deployment],
    catalog: Catalog,
    shared: Mapping[str, RegionNetwork],
    images: Mapping[str, str],
) -> Deployed:
    chosen = chosen_of(deployments)
    tags = {"gputier:project": pulumi.get_project(), "gputier:stack": pulumi.get_stack()}
    nets = {name: Network(plan, tags=tags) for name, plan in shared.items()}
    stores = {
        region: Store(region, region, reports=reports, tags=tags)
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
