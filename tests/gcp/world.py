"""A program under mocks with what it asks Google answered, and plans to deploy."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from typing import Any

import pulumi

from gputier import testing
from gputier.catalog import Catalog, load
from gputier.gcp import Deployment, Given, GpuFleet, deploy
from gputier.lock import current_bundle
from gputier.plan import WorkloadPlan, plan_workload
from gputier.workload import Workload

PROJECT, NUMBER = "acme-gpu", "123456789012"
REGION = "us-central1"
LINK = "https://www.googleapis.com/compute/v1/projects/acme-gpu"
#: Networks that are there already, and the subnets of each in our region.
ADOPTED: Mapping[str, tuple[str, ...]] = {
    "one": ("inside",),
    "shut": ("closed",),
    "two": ("inside", "other"),
    "elsewhere": (),
}


def _network(args: Mapping[str, Any]) -> Mapping[str, Any]:
    name, project = args["name"], args.get("project") or PROJECT
    root = f"{LINK.replace(PROJECT, project)}/regions"
    inside = [f"{root}/{REGION}/subnetworks/{subnet}" for subnet in ADOPTED[name]]
    link = f"{LINK.replace(PROJECT, project)}/global/networks/{name}"
    more = [f"{root}/europe-west4/subnetworks/far"]
    return {"selfLink": link, "subnetworksSelfLinks": [*inside, *more]}


def _image(args: Mapping[str, Any]) -> Mapping[str, Any]:
    return {"selfLink": f"projects/{args['project']}/global/images/{args['family']}-v1"}


def _subnetwork(args: Mapping[str, Any]) -> Mapping[str, Any]:
    project = args.get("project") or PROJECT
    link = f"{LINK.replace(PROJECT, project)}/regions/{args['region']}/subnetworks/{args['name']}"
    return {"selfLink": link, "privateIpGoogleAccess": args["name"] != "closed"}


ANSWERS: Mapping[str, testing.Answer] = {
    "gcp:organizations/getProject:getProject": {
        "projectId": PROJECT, "number": NUMBER, "id": f"projects/{PROJECT}",
    },
    "gcp:compute/getImage:getImage": _image,
    "gcp:compute/getNetwork:getNetwork": _network,
    "gcp:compute/getSubnetwork:getSubnetwork": _subnetwork,
}  # fmt: skip


def outputs(type_: str, name: str, inputs: testing.Properties) -> Mapping[str, Any]:
    """What Google alone decides and other parts of a fleet need."""
    made: dict[str, Mapping[str, Any]] = {
        "gcp:serviceaccount/account:Account": {
            "email": f"{inputs.get('accountId')}@{PROJECT}.iam.gserviceaccount.com"
        },
        "gcp:projects/iAMCustomRole:IAMCustomRole": {
            "name": f"projects/{PROJECT}/roles/{inputs.get('roleId')}"
        },
    }
    link = {"selfLink": f"{LINK}/{type_.rsplit(':', 1)[-1]}/{name}"}
    # A name that the program does not give is Pulumi's: the logical one, and characters of its own.
    own = {"name": inputs.get("name") or f"{name}-0a1b2c3"}
    return {**({**link, **own} if type_.startswith("gcp:compute/") else {}), **made.get(type_, {})}


@cache
def catalog() -> Catalog:
    return load()


def run(program: Callable[[], object], stack: str = "test", **more: Any) -> testing.Run:
    """The program of a project `gputier`, to its end."""
    asked: dict[str, Any] = {"answers": ANSWERS, "outputs": outputs, **more}
    return testing.run(program, project="gputier", stack=stack, **asked)


def planned(name: str = "job", environment: str = "dev", **fields: Any) -> WorkloadPlan:
    """A plan on Google in one region, unless the fields say otherwise."""
    where: dict[str, Any] = {"clouds": ["gcp"], "regions": {"gcp": [REGION]}}
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


IMAGE = "projects/acme-images/global/images/gpu-v1"
L4: Mapping[str, Any] = {"gpu": {"models": ["L4"]}, "purpose": "inference"}
NIGHTS: Mapping[str, Any] = {
    "start": "0 20 * * mon-fri", "stop": "0 6 * * tue-sat", "timezone": "Europe/Berlin",
}  # fmt: skip
#: Fleets as people would declare them, by the name of the file that holds what becomes of them.
STACKS: Mapping[str, Mapping[str, Mapping[str, Any]]] = {
    "dev": {
        "desk": {
            "gpu": {"models": ["L4"]}, "purpose": "development", "disk": {"data": "200GiB"},
            "schedule": [NIGHTS],
        },
        "trial": {"gpu": {"models": ["T4"]}, "purpose": "inference", "capacity": "spot",
                  "zones": ["us-central1-a"]},
    },
    "prod": {
        "chat": {**L4, "scale": {"min": 1, "max": 4}, "tags": {"team": "vision"}, "budget": {
            "usd_per_month": 3000, "billing_account": "012345-6789AB-CDEF01"}},
        "foundation": {"gpu": {"models": ["H200"], "count": 8}, "nodes": 2, "fabric": "any",
                       "purpose": "training", "capacity": "spot"},
    },
}  # fmt: skip


@cache
def example(stack: str) -> testing.Run:
    """These fleets as they are deployed together, with an image that does not move."""
    environment = "prod" if stack == "prod" else "dev"
    plans = [planned(name, environment, **fields) for name, fields in STACKS[stack].items()]
    pinned = [image(plan, id=IMAGE, family=None, pinned=True) for plan in plans]
    given = [Deployment(plan, current_bundle()) for plan in pinned]
    return run(lambda: deploy(given, catalog()), stack)
