"""Every field of a workload on every cloud that is deployed: what it is set to there, and what
becomes of that: another machine, other resources, a line of the plan, or a refusal."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from typing import Any, NamedTuple, cast

import pulumi
from tests.aws import world as aws_world
from tests.gcp import world as gcp_world
from tests.plan.test_every_field import CASES, Case, Fields, plan, with_

from gputier import testing
from gputier.errors import InvalidInput, Problem
from gputier.plan import WorkloadPlan

CLOUDS = ("aws", "gcp")
CARDS = ["L4"]
PAID: Fields = {
    "budget": {"usd_per_month": 500, "billing_account": "012345-6789AB-CDEF01"},
}
HELD: Fields = {"capacity": {"use": "reservation", "instance_type": "a3-highgpu-8g",
                             "zone": "us-central1-a", "count": 2, "id": "ours"}}  # fmt: skip
WHERE: Mapping[str, Fields] = {
    "aws": {"clouds": ["aws"], "regions": {"aws": ["us-east-1", "us-west-2", "eu-west-2"]}},
    "gcp": {"clouds": ["gcp"], "regions": {"gcp": ["us-central1", "us-east4", "europe-west4"]}},
}
#: What is called otherwise on one cloud, or is told to a workload that fits there.
OWN: Mapping[str, Mapping[str, Case]] = {
    "aws": {
        "network.subnets": Case(["subnet-0b"], {"network": {"vpc": "vpc-0abc"}}),
        "capacity.zone": Case("use1-az4", {"capacity": {"use": "on_demand"}}),
    },
    "gcp": {
        "regions": Case({"gcp": ["europe-west4"]}),
        "zones": Case(["us-central1-a"]),
        "fabric": Case("none", {"gpu": {"models": ["H200"], "count": 8}, "nodes": 2,
                                "purpose": "training", "capacity": "spot"}),
        "capacity.id": Case("others", HELD),
        "capacity.instance_type": Case("g2-standard-8", {"capacity": {"use": "on_demand"}}),
        "capacity.zone": Case("us-central1-b", {"capacity": {"use": "on_demand"}}),
        "capacity.count": Case(3, HELD),
        "capacity.start": Case("2036-11-01", HELD),
        "capacity.end": Case("2036-12-01", HELD),
        "network.burst": Case(True, {"network": {"bandwidth": "500Gbps"}}),
        "network.vpc": Case("one"),
        "network.subnets": Case(["other"], {"network": {"vpc": "two", "subnets": ["inside"]}}),
        "disk.snapshot": Case("projects/p/global/snapshots/s", {"disk": {"data": "500GB"}}),
        "disk.iops": Case(8000, {"disk": {"data": "500GB"}}),
        "disk.kms_key": Case("projects/p/locations/us-central1/keyRings/r/cryptoKeys/k"),
        "budget.usd_per_month": Case(100, PAID),
        "budget.alerts": Case([10], PAID),
        "budget.action": Case("scale-to-zero", PAID),
        "budget.anomalies": Case("create", PAID),
        "budget.billing_account": Case("012345-6789AB-CDEF02", PAID),
        "software.image.id": Case("projects/p/global/images/ours"),
        "software.image.driver": Case("570"),
        "identity.permissions_boundary": Case("arn:aws:iam::123456789012:policy/bound"),
    },
}  # fmt: skip
#: Chooses the machine, and is looked for in the plan.
CHOOSES = (
    "model.", "gpu.", "cpu.", "memory", "tier", "purpose", "prefer", "clouds", "regions",
    "network.burst",
)  # fmt: skip
#: Fields that a line of the plan shows and no resource has, and why.
PLAN_ALONE: Mapping[str, Mapping[str, str]] = {
    "aws": {
        "max_usd_per_hour": "a ceiling chooses; it is no bid",
        "capacity.max_usd_per_hour": "a ceiling chooses; it is no bid",
        "capacity.end": "when a reservation ends its machines run on, and a note says so",
        "hours_per_month": "what is reckoned with; nothing enforces it without a budget",
        "budget.billing_account": "Google's: an account of AWS has one bill",
        "software.image.os": "of an image that is known, it is known already",
    },
    "gcp": {
        "max_usd_per_hour": "a ceiling chooses; it is no bid",
        "capacity.max_usd_per_hour": "a ceiling chooses; it is no bid",
        "capacity.end": "when a reservation ends its machines run on, and a note says so",
        "hours_per_month": "what is reckoned with; nothing enforces it without a budget",
    },
}
#: Fields by which nothing there is told from anything else, and why: a test looks.
NO_CHOICE: Mapping[str, Mapping[str, str]] = {
    "aws": {},
    "gcp": {
        "gpu.video_decode": "every card there decodes",
    },
}


class Outcome(NamedTuple):
    """What a workload becomes: its resources' inputs by type and name, or why it is refused."""

    made: Mapping[tuple[str, str], Mapping[str, Any]]
    machine: str
    problems: tuple[Problem, ...] = ()


class Change(NamedTuple):
    """What a field's value changed. `path` is the field's own, in the workload."""

    path: str
    before: Outcome
    after: Outcome

    @property
    def said(self) -> list[Problem]:
        """The problems that the field alone brought."""
        return [one for one in self.after.problems if one not in self.before.problems]


def case_of(cloud: str, path: str) -> Case:
    return OWN[cloud].get(path) or CASES[path]


def is_plans(cloud: str, path: str) -> bool:
    return path.startswith(CHOOSES) or path in PLAN_ALONE[cloud]


def on(cloud: str, fields: Fields) -> Fields:
    return {**json.loads(json.dumps(fields)), **WHERE[cloud]}


def planned_on(cloud: str, path: str) -> tuple[str, str]:
    """The plan without the field's value and with it, as text."""
    case = case_of(cloud, path)
    before = case.base if path not in {"model.config", "model.weights_index"} else PLAIN
    there = WHERE[cloud] if path not in {"clouds", "regions"} else {}
    changed = with_(case.base, path, case.to)
    return plan({**before, **there}), plan({**changed, **there})


PLAIN: Fields = {"model": {"parameters": "7B", "context_tokens": 4096}}


def changed(cloud: str, path: str) -> Change:
    """What a field's value does to a workload on this cloud."""
    case = case_of(cloud, path)
    base, whole = on(cloud, case.base), with_(case.base, path, case.to)
    return Change(path, _tried(cloud, base), _tried(cloud, on(cloud, whole)))


def _tried(cloud: str, fields: Fields) -> Outcome:
    return _outcome(cloud, json.dumps(fields, sort_keys=True))


@cache
def _outcome(cloud: str, text: str) -> Outcome:
    fields: Fields = json.loads(text)
    planned, fleet = DEPLOYS[cloud]
    try:
        found = planned("job", "dev", **fields)
        if found.chosen is None:
            return Outcome({}, "", tuple(_missed(found)))
        run = fleet(found)
    except InvalidInput as refused:
        return Outcome({}, "", tuple(refused.problems))
    made = {
        (record.type.rsplit(":", 1)[-1], record.name): plain(record.inputs)
        for record in run.records
        if not record.component
    }
    return Outcome(made, found.chosen.verdict.machine.instance_type)


def _missed(plan: WorkloadPlan) -> Iterator[Problem]:
    """What the nearest machine lacks, at the field that would have to be less."""
    for reason in plan.relaxations[0].reasons:
        why = f"no machine fits: {reason.needed} wanted, {reason.has}"
        yield Problem(f"workloads.{plan.name}.{reason.relax}", why, f"relax `{reason.relax}`")


DEPLOYS: Mapping[str, tuple[Callable[..., WorkloadPlan], Callable[[WorkloadPlan], testing.Run]]] = {
    "aws": (aws_world.planned, aws_world.fleet),
    "gcp": (gcp_world.planned, gcp_world.fleet),
}


def plain(value: Any) -> Any:
    """Inputs without what cannot be compared."""
    if isinstance(value, dict):
        return {key: plain(item) for key, item in cast(dict[str, Any], value).items()}
    if isinstance(value, list):
        return [plain(item) for item in cast(list[Any], value)]
    return value if not isinstance(value, pulumi.Asset | pulumi.Archive) else type(value).__name__


#: The script that a machine boots with, wherever a cloud keeps it.
SCRIPT = "the boot script"
SCRIPTS = {"userData", "userDataBase64", "metadata"}


#: What follows from the others, and is nothing that a field reaches by itself.
WATCHES = ("AlertPolicy", "Dashboard", "MetricAlarm")


def reached(change: Change) -> list[str]:
    """The differences, alarms apart."""
    return [one for one in differences(change) if not any(kind in one for kind in WATCHES)]


def differences(change: Change) -> Iterator[str]:
    """What is other in the resources: a type that is made or not any more, or a property; alarms
    come last."""
    before, after = change.before.made, change.after.made
    every = before.keys() | after.keys()
    for kind, name in sorted(every, key=lambda found: (found[0] in WATCHES, found)):
        olds, news = before.get((kind, name)), after.get((kind, name))
        if olds is None or news is None:
            yield f"{'+' if olds is None else '−'} {kind}"
            continue
        for key in sorted(olds.keys() | news.keys()):
            if olds.get(key) != news.get(key):
                yield SCRIPT if key in SCRIPTS else f"{kind}.{key}"
