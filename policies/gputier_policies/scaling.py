"""Fleets come to zero: by the clock, or when nothing is asked of them."""

from __future__ import annotations

from gputier_policies import facts
from gputier_policies.cost import WORKING_HOURS, month
from gputier_policies.fleets import GROUP_SCHEDULE, SCALERS, SCALING_POLICY, Fleet, fleets
from gputier_policies.hours import MONTH
from gputier_policies.links import Links
from gputier_policies.machine import GCP_GROUP, GCP_REGION_GROUP, GROUP, NODE_GROUP, NODE_POOL
from gputier_policies.rule import Config, Findings, Rule, Undecided, Violation
from gputier_policies.values import UNKNOWN, Resource, Stack
from gputier_policies.words import ENVIRONMENT, is_production, money

#: How a kind of fleet is brought to zero.
_ASKED = {
    GROUP: "aws.autoscaling.Schedule with recurrence, min_size=0 and desired_capacity=0, or"
    " min_size=0 with a scaling policy",
    GCP_GROUP: 'an autoscaler with "min_replicas": 0 and "scaling_schedules"',
    GCP_REGION_GROUP: 'an autoscaler with "min_replicas": 0 and "scaling_schedules"',
    NODE_GROUP: 'scaling_config={"min_size": 0}',
    NODE_POOL: 'autoscaling={"min_node_count": 0}',
    "gcp": 'a resource policy with "instance_schedule_policy"',
    "aws": "aws.scheduler.Schedule that calls ec2:stopInstances",
}


def fleet_requires_schedule(stack: Stack, config: Config) -> Findings:
    if is_production(config):
        return
    links, declared = Links(stack), facts.discounts(stack.surroundings.config)
    for fleet in fleets(stack, links):
        urn = fleet.runner.urn
        if fleet.gpu is False or fleet.zero or fleet.runner.name in config["except"]:
            continue
        if fleet.most == 0 or fleet.elsewhere:
            continue
        waits = fleet.waiting if fleet.gpu is UNKNOWN else _waits(fleet, links)
        if waits:
            yield Undecided(waits, urn)
            continue
        found = month(fleet, links, declared)
        usd = found.usd if found and not found.unpriced else 0
        saved = usd * (1 - WORKING_HOURS / MONTH)
        said = f"; 12 hours on weekdays would save {money(saved)} a month" if saved else ""
        asked = _ASKED.get(fleet.runner.type) or _ASKED[fleet.runner.type[:3]]
        where = config["environment"]
        yield Violation(
            f"it runs day and night in {where}{said}. It must come to zero: {asked}", urn
        )


def _waits(fleet: Fleet, links: Links) -> str:
    """The property that may still say that it comes to zero: its least size, or what a schedule or
    an autoscaler points at."""
    if fleet.least is UNKNOWN and fleet.runner.type in (NODE_GROUP, NODE_POOL):
        return fleet.sized
    pointers = {"autoscalingGroupName": (GROUP_SCHEDULE, SCALING_POLICY), "target": SCALERS}
    for path, types in pointers.items():
        for one in links.stack.of(*types):
            if one.type[:3] != fleet.runner.type[:3]:
                continue
            lost = one.at(path) is UNKNOWN and not one.sources.get(path)
            if lost:
                return path
            if links.follow(one, path, fleet.runner.type) is fleet.runner and _open(one):
                return _open(one)
    return ""


def _open(schedule: Resource) -> str:
    """What is not known yet of when it comes and what it asks for."""
    asked = ("recurrence", "minSize", "desiredCapacity", "autoscalingPolicy")
    return next((path for path in asked if schedule.at(path) is UNKNOWN), "")


SCHEDULE = Rule(
    check_stack=fleet_requires_schedule,
    description="Outside of production GPU machines do not run day and night: a schedule brings"
    " their fleet to zero, or an autoscaler may.",
    remediation="Add a schedule that sets the fleet to zero, or let it scale to zero.",
    severity="medium",
    url="https://docs.aws.amazon.com/autoscaling/ec2/userguide/ec2-auto-scaling-scheduled-scaling.html",
    settings={
        "environment": ENVIRONMENT,
        "except": {
            "type": "array",
            "items": {"type": "string"},
            "default": [],
            "description": "Resources that run day and night all the same, by their names in the"
            " program.",
        },
    },
)

RULES = (SCHEDULE,)
