"""Where a fleet is deployed, what its parts are called and tagged, and in whose account."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import pulumi
import pulumi_aws as aws

from gputier.plan import WorkloadPlan
from gputier.plan.names import Names, names_of

#: The tag that a fleet's costs are found by. Its value is as unique as the group's name.
FLEET_TAG = "gputier:fleet"


class Place(NamedTuple):
    """`name` is what logical names begin with, `names` are the physical ones. Every regional
    resource is told its `region`: a plan is for one region, whatever region a provider is set to.
    """

    name: str
    names: Names
    region: str
    tags: Mapping[str, str]

    def logical(self, word: str) -> str:
        """The name in Pulumi of a part. It begins with the component's own, so that an alias of the
        component is one of its parts too."""
        return f"{self.name}-{word}"


def place_of(plan: WorkloadPlan) -> Place:
    """The place of a planned fleet in the stack that is being deployed."""
    if plan.chosen is None:
        raise ValueError(f"no machine was chosen for {plan.name}")
    fleet = plan.chosen.fleet
    names = names_of("aws", pulumi.get_project(), pulumi.get_stack(), fleet.resources)
    own = {
        "Name": names.of("group"),
        FLEET_TAG: names.of("group"),
        "gputier:workload": fleet.resources,
        "gputier:project": names.project,
        "gputier:stack": names.stack,
    }
    return Place(plan.name, names, plan.chosen.verdict.region, {**fleet.tags, **own})


class Account(NamedTuple):
    """The account that is deployed to: `domain` is what its services' principals end in."""

    id: pulumi.Output[str]
    partition: pulumi.Output[str]
    domain: pulumi.Output[str]


def account_of(parent: pulumi.Resource) -> Account:
    """The account that `parent`'s provider is signed in to."""
    options = pulumi.InvokeOptions(parent=parent)
    partition = aws.get_partition_output(opts=options)
    return Account(
        aws.get_caller_identity_output(opts=options).account_id,
        partition.partition,
        partition.dns_suffix,
    )
