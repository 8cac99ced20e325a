"""AWS: machines that a service runs — EKS node groups, Batch, SageMaker."""

from __future__ import annotations

from collections.abc import Mapping
from math import ceil

from gputier.review.aws_fleet import NO_REGION, extras_of
from gputier.review.aws_start import kinds_of, start_of
from gputier.review.bill import Bill, hidden
from gputier.review.cost import Cost, Elsewhere, Pricer, Unpriced
from gputier.review.hours import Sizes
from gputier.review.machines import hourly
from gputier.review.pool import Counts, Mix, bill_machines, pool_cost
from gputier.review.preview import State
from gputier.review.values import items, maps, number, text
from gputier.review.world import World, at

#: What EKS starts where nothing is named (EKS API, CreateNodegroup: t3.medium).
NODE_DEFAULT = "t3.medium"


def node_group(world: World, state: State) -> Cost:
    """An EKS node group: several types are a range, the first is asked for first."""
    region = world.region(state)
    if region is None:
        return NO_REGION
    start = start_of(world, state, "launchTemplate.id", "launchTemplate.name")
    if (
        start.instance_type is None
        and state.get("launchTemplate")
        and not state.get("instanceTypes")
    ):
        return Unpriced(start.why or "no instance type is named")
    if why := hidden(state, "instanceTypes"):
        return Unpriced(why)
    bill = Bill(world, "aws", region)
    kinds, gaps = kinds_of(items(state.get("instanceTypes")), start.instance_type or NODE_DEFAULT)
    bill.gaps += gaps
    sizes = state.get("scalingConfig")
    least, most = number(at(sizes, "minSize")), number(at(sizes, "maxSize"))
    desired = number(at(sizes, "desiredSize"))
    wanted = desired if desired is not None else least
    if wanted is None:
        return Unpriced("how many nodes it has is not in the preview")
    spot = text(state.get("capacityType")) == "SPOT"
    mix = Mix("on_demand", 0.0, 0.0) if spot else Mix(start.market)
    pool = bill_machines(bill, kinds, mix, Counts(Sizes(least, wanted, most), wanted))
    if not start.devices:  # EKS makes the disk itself, and no page says of which type
        bill.gaps.append("disk: EKS chooses its type")
        return pool_cost(bill, pool, lambda _bill, _times: None)
    return pool_cost(bill, pool, extras_of(start))


def compute_environment(world: World, state: State) -> Cost:
    """A Batch environment: machines for its desired vCPUs, which are its minimum at rest."""
    resources = state.get("computeResources")
    kind = text(at(resources, "type")) or ""
    if kind.startswith("FARGATE"):
        return Unpriced("Fargate is billed by what its tasks ask for")
    region = world.region(state)
    if region is None:
        return NO_REGION
    names = [name for name in items(at(resources, "instanceTypes")) if isinstance(name, str)]
    machines = [name for name in names if "." in name]
    if not machines:
        return Unpriced(f"Batch chooses machines itself ({', '.join(names) or 'no type named'})")
    bill = Bill(world, "aws", region)
    bill.gaps += [f"{name}: a family, of which Batch chooses" for name in names if "." not in name]
    row = world.catalog.types.get(("aws", machines[0]))
    if row is None or not row.vcpus:
        return Unpriced(f"{machines[0]}: not in the catalogue, which has GPU machines")
    vcpus = [number(at(resources, f"{end}Vcpus")) for end in ("min", "max")]
    desired = number(at(resources, "desiredVcpus"))
    least, most, now = (
        None if size is None else float(ceil(size / row.vcpus))
        for size in (*vcpus, vcpus[0] if desired is None else desired)
    )
    if now is None:
        return Unpriced("how many vCPUs it has is not in the preview")
    kinds, _ = kinds_of(machines, None)
    mix = Mix("on_demand", 0.0, 0.0) if kind == "SPOT" else Mix()
    pool = bill_machines(bill, kinds, mix, Counts(Sizes(least, now, most), now))
    return pool_cost(bill, pool, lambda _bill, _times: None)


def endpoint_configuration(world: World, state: State) -> Cost:
    """SageMaker has prices of its own: what EC2 takes for the same machine is only named."""
    region, said = world.region(state), list[str]()
    for variant in maps(state.get("productionVariants")):
        name = text(variant.get("instanceType")) or "a machine that is not named"
        count = number(variant.get("initialInstanceCount")) or 1
        cousin = hourly(world, "aws", name.removeprefix("ml."), region or "", "on_demand")
        told = "" if isinstance(cousin, str) else f"; on EC2 it is ${cousin.usd:.2f} an hour"
        said.append(f"{count:g} × {name}: SageMaker has prices of its own{told}")
    return Unpriced("; ".join(said) or "its machines are not in the preview")


def cluster(_world: World, _state: State) -> Cost:
    return Unpriced("the control plane is billed by the hour, and no price of it is known here")


def elsewhere(_world: World, _state: State) -> Cost:
    return Elsewhere("counted at what it is made of")


PRICERS: Mapping[str, Pricer] = {
    "aws:eks/nodeGroup:NodeGroup": node_group,
    "aws:eks/cluster:Cluster": cluster,
    "aws:batch/computeEnvironment:ComputeEnvironment": compute_environment,
    "aws:batch/jobQueue:JobQueue": elsewhere,
    "aws:batch/jobDefinition:JobDefinition": elsewhere,
    "aws:sagemaker/endpointConfiguration:EndpointConfiguration": endpoint_configuration,
    "aws:sagemaker/endpoint:Endpoint": elsewhere,
    "aws:sagemaker/model:Model": elsewhere,
}
