"""A program under mocks with what it asks AWS answered, and plans to deploy."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import pulumi

from gputier import testing
from gputier.aws import Deployment, Given, GpuFleet, deploy
from gputier.catalog import Catalog, load
from gputier.lock import current_bundle
from gputier.plan import WorkloadPlan, plan_declaration, plan_workload
from gputier.workload import Workload, read_file

STACKS = Path(__file__).parents[2] / "stacks"
ACCOUNT = "123456789012"
AMI = "ami-0123456789abcdef0"
SUBNETS = {
    "subnet-0a": ("use1-az1", "us-east-1a"),
    "subnet-0b": ("use1-az2", "us-east-1b"),
    "subnet-0f": ("use1-az3", "us-east-1f"),
}


def _subnet(args: Mapping[str, Any]) -> Mapping[str, Any]:
    id_ = args.get("id") or f"subnet-0{args['tags']['Name'][-1]}"
    zone, name = SUBNETS[id_]
    return {"id": id_, "availabilityZoneId": zone, "availabilityZone": name}


def _vpc(args: Mapping[str, Any]) -> Mapping[str, Any]:
    return {"id": args.get("id") or "vpc-0123"}


ANSWERS: Mapping[str, testing.Answer] = {
    "aws:index/getCallerIdentity:getCallerIdentity": {"accountId": ACCOUNT},
    "aws:index/getPartition:getPartition": {"partition": "aws", "dnsSuffix": "amazonaws.com"},
    "aws:ssm/getParameter:getParameter": {"insecureValue": AMI},
    "aws:ec2/getVpc:getVpc": _vpc,
    "aws:ec2/getSubnets:getSubnets": {"ids": list(SUBNETS)},
    "aws:ec2/getSubnet:getSubnet": _subnet,
}


def outputs(type_: str, name: str, inputs: testing.Properties) -> Mapping[str, Any]:
    """What AWS alone decides and other parts of a fleet need."""
    zone = inputs.get("availabilityZoneId")
    made: dict[str, Mapping[str, Any]] = {
        "aws:ec2/launchTemplate:LaunchTemplate": {"latestVersion": 7},
        "aws:ec2/subnet:Subnet": {"availabilityZone": f"name-of-{zone}"},
        "aws:ec2/instance:Instance": {"id": f"i-{name}"},
        "aws:ec2/eip:Eip": {"allocationId": f"{name}-allocation"},
        "aws:kms/key:Key": {"keyId": f"{name}-key-id"},
    }
    return made.get(type_, {})


@cache
def catalog() -> Catalog:
    return load()


def run(program: Callable[[], object], stack: str = "test", **more: Any) -> testing.Run:
    """The program of a project `gputier`, to its end."""
    asked: dict[str, Any] = {"answers": ANSWERS, "outputs": outputs, **more}
    return testing.run(program, project="gputier", stack=stack, **asked)


def planned(name: str = "job", environment: str = "dev", **fields: Any) -> WorkloadPlan:
    """A plan on AWS in one region, unless the fields say otherwise."""
    where: dict[str, Any] = {"clouds": ["aws"], "regions": {"aws": ["us-east-1"]}}
    return plan_workload(name, Workload(**{**where, **fields}), catalog(), environment)


def image(plan: WorkloadPlan, **fields: Any) -> WorkloadPlan:
    """The plan with another image."""
    chosen = plan.chosen
    assert chosen
    boot = chosen.boot._replace(image=chosen.boot.image._replace(**fields))
    return plan._replace(chosen=chosen._replace(boot=boot))


def fleet(plan: WorkloadPlan, stack: str = "test", **more: Any) -> testing.Run:
    """One fleet by itself."""
    given = more.pop("given", None) or Given()

    def program() -> None:
        made = GpuFleet(plan.name, plan, given=given._replace(catalog=catalog()), **more)
        pulumi.export("fleet", made.outputs())

    return run(program, stack)


def alone(name: str = "job", environment: str = "dev", **fields: Any) -> testing.Run:
    """One fleet of these fields."""
    return fleet(planned(name, environment, **fields))


@cache
def example(stack: str) -> testing.Run:
    """An example stack as its program deploys it, with a node bundle and images that do not move:
    neither does what is expected of it."""
    declaration = read_file(STACKS / f"Pulumi.{stack}.yaml")
    plans = plan_declaration(declaration, catalog()).workloads
    bundle = current_bundle()
    given = [Deployment(image(plan, id=AMI, pinned=True), bundle) for plan in plans]
    return run(lambda: deploy(given, catalog()), stack)
