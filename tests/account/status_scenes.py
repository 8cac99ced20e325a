"""What a fleet may be found in: one scene for each screen that people will see."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

from tests.account.google_account import FORBIDDEN
from tests.account.status_amazon import (
    NOW,
    Account,
    ago,
    group,
    launch,
    machine,
    report,
    report_key,
    terminate,
)
from tests.account.status_google_account import (
    Project,
    failure,
    group_error,
    instance,
    member,
    operation,
)
from tests.account.status_world import ON_GOOGLE, ask, stack

from gputier.account.status import Stack

GROUP = "demo-prod-chat"
ONE, TWO, THREE = (f"i-0{digit * 16}" for digit in "abc")
QUOTA = (
    "Could not launch On-Demand Instances. VcpuLimitExceeded - You have requested more vCPU"
    " capacity than your current vCPU limit of 32 allows for the instance bucket that the specified"
    " instance type belongs to. Launching EC2 instance failed."
)
FULL = (
    "Could not launch On-Demand Instances. InsufficientInstanceCapacity - We currently do not have"
    " sufficient g6.4xlarge capacity in the Availability Zone you requested (us-east-1a)."
)
ABANDONED = (
    "Instance failed to complete user's Lifecycle Action: Lifecycle Action with token"
    " e85eb647-4fe0-4909-b341-a6c42d8aba1f was abandoned: Lifecycle Action Completed with ABANDON"
    " Result"
)
GONE_BY_EC2 = (
    "an instance was taken out of service in response to an EC2 health check indicating it has been"
    " terminated or stopped"
)
NIGHTS = """\
workloads:
  chat:
    purpose: inference
    gpu: {memory: 16GB}
    scale: {min: 1, max: 8, metric: gpu_utilization, target: 70}
    schedule: [{start: "0 19 * * *", stop: "0 6 * * *", timezone: Europe/Berlin}]
"""


def one(state: str = "InService", **more: Any) -> Account:
    """A group with one machine, started three hours ago."""
    aws = Account()
    aws.groups = [group(GROUP, [(ONE, state)])]
    aws.machines = [machine(GROUP, ONE, ago(hours=3), **more)]
    aws.activities = [launch(GROUP, ago(hours=3), ONE)]
    return aws


def well() -> Stack:
    """Two machines of a group that work, one of them for longer than the month."""
    aws = Account()
    aws.groups = [group(GROUP, [(ONE, "InService"), (TWO, "InService")], (2, 1, 8))]
    aws.machines = [machine(GROUP, ONE, ago(days=20)), machine(GROUP, TWO, ago(hours=30))]
    aws.activities = [launch(GROUP, ago(hours=30), TWO), launch(GROUP, ago(days=20), ONE)]
    aws.objects = {
        report_key("chat", ONE, ago(days=19, hours=23), "healthy"): report("healthy"),
        report_key("chat", TWO, ago(hours=29, minutes=40), "healthy"): report("healthy"),
    }
    return ask(stack(), aws)


def quota() -> Stack:
    """Nothing appears: the account may not run it."""
    aws = Account()
    aws.groups = [group(GROUP, size=(2, 1, 8))]
    aws.activities = [launch(GROUP, ago(minutes=7 * n), "", "Failed", QUOTA) for n in range(1, 15)]
    return ask(stack(), aws)


def rejecting() -> Stack:
    """A bad host was given back, the next machine proves itself."""
    aws = Account()
    aws.groups = [group(GROUP, [(ONE, "InService"), (TWO, "Pending:Wait")], (2, 1, 8))]
    aws.machines = [machine(GROUP, ONE, ago(days=2)), machine(GROUP, TWO, ago(minutes=6))]
    aws.activities = [
        launch(GROUP, ago(minutes=6), TWO, "MidLifecycleAction"),
        launch(GROUP, ago(minutes=22), THREE, "Cancelled", ABANDONED, ago(minutes=8)),
        launch(GROUP, ago(days=2), ONE),
    ]
    aws.objects = {
        report_key("chat", ONE, ago(days=2) + timedelta(minutes=9), "healthy"): report("healthy"),
        report_key("chat", THREE, ago(minutes=9), "replace"): report(
            "replace",
            (
                "gpu-count",
                "7 of 8 visible: lspci shows 8, the driver sees 7, Xid 79 at boot+12 s",
                "this host is bad: give the machine back",
            ),
        ),
    }
    return ask(stack(), aws)


def breaker() -> Stack:
    """The same fault of ours on two machines: the fleet is stopped."""
    aws = Account()
    aws.groups = [group(GROUP, size=(2, 1, 8), suspended=["Launch"])]
    aws.activities = [
        launch(GROUP, ago(minutes=90), TWO, "Cancelled", ABANDONED, ago(minutes=80)),
        launch(GROUP, ago(minutes=130), ONE, "Cancelled", ABANDONED, ago(minutes=118)),
    ]
    cause = ("mig", "profile 1g.99gb is not one of this card's", "change `gpu.mig`, lock, deploy")
    nodes = [
        {
            "instance": one,
            "outcome": "config",
            "reason": "mig@gpu",
            "at": ago(minutes=at).timestamp(),
        }
        for one, at in ((ONE, 119), (TWO, 81))
    ]
    tripped = {"instance": TWO, "reason": "mig@gpu", "at": ago(minutes=81).timestamp()}
    aws.objects = {
        report_key("chat", ONE, ago(minutes=119), "config"): report("config", cause),
        report_key("chat", TWO, ago(minutes=81), "config"): report("config", cause),
        "breaker/chat.json": {
            "schema": "gputier/breaker/1",
            "nodes": nodes,
            "tripped": tripped,
        },
    }
    return ask(stack(), aws)


def interrupted() -> Stack:
    """EC2 took a Spot machine back; the one after it works."""
    aws = Account()
    aws.groups = [group(GROUP, [(TWO, "InService")], (1, 1, 8))]
    reason = {"Code": "Server.SpotInstanceTermination", "Message": "taken"}
    spot = {"InstanceLifecycle": "spot"}
    aws.machines = [
        machine(GROUP, TWO, ago(minutes=40), **spot),
        machine(GROUP, ONE, ago(hours=9), "terminated", StateReason=reason, **spot),
    ]
    aws.activities = [
        launch(GROUP, ago(minutes=40), TWO),
        terminate(GROUP, ago(minutes=42), ONE, GONE_BY_EC2),
        terminate(GROUP, ago(days=4), THREE, GONE_BY_EC2),
        launch(GROUP, ago(hours=9), ONE),
        launch(GROUP, ago(days=5), THREE),
    ]
    aws.objects = {report_key("chat", TWO, ago(minutes=30), "healthy"): report("healthy")}
    return ask(stack(chat={"capacity": "spot", "usd_per_hour": 0.53}), aws)


def exhausted() -> Stack:
    """Google has no machine in the zone; one of three was had."""
    google = Project()
    said = "A g2-standard-8 VM instance is currently unavailable in the us-central1-a zone."
    code = "ZONE_RESOURCE_POOL_EXHAUSTED_WITH_DETAILS"
    names = [f"{GROUP}-{letter * 4}" for letter in "xyz"]
    google.managed(
        {"targetSize": 3, "status": {"isStable": False}},
        [
            member(names[0], "111", instanceHealth=[{"detailedHealthState": "HEALTHY"}]),
            *(member(n, "", "CREATING", "", lastAttempt=failure(code, said)) for n in names[1:]),
        ],
    )
    google.errors(*(group_error(ago(minutes=5 * n), names[1], code, said) for n in range(1, 10)))
    google.machines([instance(names[0], "111", ago(hours=20))])
    google.operations([operation("insert", names[0], "111", ago(hours=20))])
    google.objects = {report_key("chat", "111", ago(hours=19), "healthy"): report("healthy")}
    return ask(stack(chat=ON_GOOGLE), gcp=google)


def could_not_ask() -> Stack:
    """The group can be seen, and neither its activities nor its reports; Google not at all."""
    text = (
        "workloads:\n  chat: {purpose: inference, gpu: {memory: 16GB}}\n"
        "  tuner: {purpose: fine-tuning, gpu: {memory: 24GB}}\n"
    )
    aws = Account()
    aws.groups = [group(GROUP, [(ONE, "InService")])]
    aws.machines = [machine(GROUP, ONE, ago(hours=3))]
    aws.activities, aws.objects = "AccessDenied", "AccessDenied"
    return ask(stack(text, tuner=ON_GOOGLE), aws)


def nobody() -> Stack:
    """Nothing can be asked."""
    return ask(stack(), None)


def asleep() -> Stack:
    """By day the schedule has it at zero."""
    aws = Account()
    aws.groups = [group(GROUP, size=(0, 0, 0))]
    aws.activities = [
        terminate(
            GROUP,
            ago(hours=5, minutes=45),
            ONE,
            "a scheduled action update of AutoScalingGroup constraints to min: 0, max: 0, desired:"
            " 0 changing the desired capacity from 1 to 0. An instance was taken out of service in"
            " response to a difference between desired and actual capacity, shrinking the capacity"
            " from 1 to 0",
        ),
        launch(GROUP, ago(hours=16, minutes=45), ONE),
    ]
    return ask(stack(NIGHTS), aws)


def never() -> Stack:
    """Locked and not deployed."""
    return ask(stack(), Account())


def deleted() -> Stack:
    """The group is gone, its activities tell of it."""
    aws = Account()
    last = terminate(GROUP, ago(hours=2), ONE, "a user request update, shrinking the capacity")
    aws.activities = [
        {**last, "AutoScalingGroupState": "Deleted"},
        {**launch(GROUP, ago(hours=8), ONE), "AutoScalingGroupState": "Deleted"},
    ]
    return ask(stack(), aws)


BLOCK = """\
workloads:
  chat:
    purpose: training
    gpu: {models: [H100], count: 8}
    nodes: 2
    capacity:
      use: capacity_block
      id: cr-0123456789abcdef0
      instance_type: p5.48xlarge
      zone: use1-az4
      count: 2
      start: "2026-12-12T11:30:00Z"
      end: "2026-12-14T11:30:00Z"
"""


def block() -> Stack:
    """A capacity block that has not begun."""
    aws = Account()
    aws.groups = [group(GROUP, size=(0, 0, 2))]
    aws.reservations = [
        {
            "CapacityReservationId": "cr-0123456789abcdef0",
            "State": "scheduled",
            "StartDate": NOW + timedelta(days=2, minutes=45),
            "EndDate": NOW + timedelta(days=4, minutes=45),
            "TotalInstanceCount": 2,
            "AvailableInstanceCount": 0,
        }
    ]
    entry = {"capacity": "capacity_block", "instance_type": "p5.48xlarge", "usd_per_hour": None}
    return ask(stack(BLOCK, chat=entry), aws)


def flexing() -> Stack:
    """Flex-start waits in its queue."""
    google = Project()
    google.managed({"targetSize": 0, "status": {"isStable": True}})
    google.requests({"name": "first", "resizeBy": 2, "state": "ACCEPTED"})
    return ask(stack(chat={**ON_GOOGLE, "capacity": "flex_start"}), gcp=google)


def refused_on_google() -> Stack:
    """A project that may not be looked at."""
    google = Project()
    path = f"projects/{{project}}/zones/us-central1-a/instanceGroupManagers/{GROUP}"
    google.has("compute", path, FORBIDDEN)
    google.objects = FORBIDDEN
    return ask(stack(chat=ON_GOOGLE), gcp=google)


SCENES: dict[str, Callable[[], Stack]] = {
    "well": well,
    "quota": quota,
    "rejecting": rejecting,
    "breaker": breaker,
    "interrupted": interrupted,
    "exhausted": exhausted,
    "could-not-ask": could_not_ask,
    "nobody": nobody,
    "asleep": asleep,
    "never": never,
    "deleted": deleted,
    "block": block,
    "flexing": flexing,
    "refused-on-google": refused_on_google,
}
