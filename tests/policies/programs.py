"""Programs that every rule of money lets pass, one for each cloud: tests break one thing at a time.

`AWS` and `GCP` are properties by the name of a resource; `aws()` and `gcp()` the stacks of them,
each resource made from the others as an engine tells it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from tests.policies.cases import changed, only, resource, stack

from gputier_policies import budget, fleets, machine
from gputier_policies.values import UNKNOWN, Resource, Stack

TAGS = {"owner": "research", "cost-center": "4711"}
PROPAGATED = [
    {"key": key, "value": value, "propagateAtLaunch": True} for key, value in TAGS.items()
]

AWS: Mapping[str, dict[str, Any]] = {
    "template": {
        "instanceType": "g6.xlarge",
        "name": "template",
        "tagSpecifications": [{"resourceType": "instance", "tags": TAGS}],
    },
    "group": {
        "name": "group",
        "minSize": 0,
        "maxSize": 2,
        "desiredCapacity": 1,
        "launchTemplate": {"id": "lt-1", "version": "1"},
        "tags": PROPAGATED,
    },
    "start": {
        "autoscalingGroupName": "group",
        "scheduledActionName": "start",
        "minSize": 1,
        "maxSize": 2,
        "desiredCapacity": 2,
        "recurrence": "0 8 * * 1-5",
        "timeZone": "Europe/Berlin",
    },
    "stop": {
        "autoscalingGroupName": "group",
        "scheduledActionName": "stop",
        "minSize": 0,
        "maxSize": 0,
        "desiredCapacity": 0,
        "recurrence": "0 20 * * 1-5",
        "timeZone": "Europe/Berlin",
    },
    "budget": {
        "budgetType": "COST",
        "timeUnit": "MONTHLY",
        "limitAmount": "500",
        "limitUnit": "USD",
        "notifications": [
            {
                "comparisonOperator": "GREATER_THAN",
                "notificationType": "ACTUAL",
                "threshold": 80,
                "thresholdType": "PERCENTAGE",
                "subscriberEmailAddresses": ["team@example.org"],
            }
        ],
    },
}
GCP: Mapping[str, dict[str, Any]] = {
    "template": {
        "machineType": "g2-standard-8",
        "disks": [{"boot": True, "sourceImage": "debian"}],
        "scheduling": {"provisioningModel": "STANDARD"},
        "labels": TAGS,
        "selfLink": "projects/p/global/instanceTemplates/template",
    },
    "group": {
        "baseInstanceName": "job",
        "zone": "us-central1-a",
        "versions": [{"instanceTemplate": "projects/p/global/instanceTemplates/template"}],
        "selfLink": "projects/p/zones/us-central1-a/instanceGroupManagers/group",
    },
    "scaler": {
        "zone": "us-central1-a",
        "target": "projects/p/zones/us-central1-a/instanceGroupManagers/group",
        "autoscalingPolicy": {
            "minReplicas": 0,
            "maxReplicas": 2,
            "scalingSchedules": [
                {
                    "name": "day",
                    "schedule": "0 8 * * 1-5",
                    "timeZone": "Europe/Berlin",
                    "durationSec": 43200,
                    "minRequiredReplicas": 2,
                }
            ],
        },
    },
    "budget": {
        "billingAccount": "0",
        "amount": {"specifiedAmount": {"units": "500"}},
        "thresholdRules": [{"thresholdPercent": 0.8}],
    },
}
TYPES: Mapping[str, Mapping[str, str]] = {
    "aws": {
        "template": machine.TEMPLATE,
        "group": machine.GROUP,
        "start": fleets.GROUP_SCHEDULE,
        "stop": fleets.GROUP_SCHEDULE,
        "budget": budget.AWS_BUDGET,
    },
    "gcp": {
        "template": machine.GCP_TEMPLATE,
        "group": machine.GCP_GROUP,
        "scaler": fleets.SCALERS[0],
        "budget": budget.GCP_BUDGET,
    },
}
#: Resource → property → what that is made from.
_MADE: Mapping[str, Mapping[str, Mapping[str, str]]] = {
    "aws": {
        "group": {"launchTemplate": "template"},
        "start": {"autoscalingGroupName": "group"},
        "stop": {"autoscalingGroupName": "group"},
    },
    "gcp": {"group": {"versions": "template"}, "scaler": {"target": "group"}},
}
_POINTERS = {
    "aws": {"group.launchTemplate.id", "start.autoscalingGroupName", "stop.autoscalingGroupName"},
    "gcp": {"group.versions[0].instanceTemplate", "scaler.target"},
}


def program(
    cloud: str,
    changes: Mapping[str, Any] | None = None,
    *,
    without: Iterable[str] = (),
    known: Iterable[str] | None = None,
    more: Iterable[Resource] = (),
    config: Mapping[str, str] | None = None,
) -> Stack:
    """The passing program of a cloud with changes, `resource.path` → value (None takes it away).
    With `known` nothing but these properties and whole resources is, as in a preview of something
    new; what points at something else is followed all the same."""
    base = {"aws": AWS, "gcp": GCP}[cloud]
    made: dict[str, Resource] = {}
    for name in sorted(base.keys() - set(without), key=list(base).index):
        props = base[name]
        for path, value in (changes or {}).items():
            if path.partition(".")[0] == name:
                props = changed(props, path.partition(".")[2], value)
        for pointer in _POINTERS[cloud]:
            if pointer.startswith(f"{name}.") and known is not None:
                props = changed(props, pointer.partition(".")[2], UNKNOWN)
        if known is not None:
            if name not in known:
                paths = (k.partition(".")[2] for k in known if k.startswith(f"{name}."))
                props = only(props, *paths)
            props = {k: v for k, v in props.items() if k != "selfLink"}
        sources: dict[str, list[Resource]] = {
            p: [made[o]] for p, o in _MADE[cloud].get(name, {}).items() if o in made
        }
        if name == "template" and cloud == "aws" and known is None:
            props = {**props, "id": "lt-1"}
        made[name] = resource(TYPES[cloud][name], name, sources=sources, **dict[str, Any](props))
    return stack(*made.values(), *more, config=config)
