"""Where a fleet is deployed, what its parts are called and tagged, and in whose account."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import NamedTuple

import pulumi
import pulumi_aws as aws

from gputier.plan import WorkloadPlan
from gputier.plan.names import FLEET_TAG, Names, names_of


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


class Account:
    """The account that a parent's provider is signed in to. Each part is asked for once it is read:
    the id costs a call of AWS's, the partition is in the provider."""

    def __init__(self, options: pulumi.InvokeOptions) -> None:
        self._options = options

    @cached_property
    def id(self) -> pulumi.Output[str]:
        """Twelve digits."""
        return aws.get_caller_identity_output(opts=self._options).account_id

    @cached_property
    def partition(self) -> pulumi.Output[str]:
        """What ARNs begin with: `aws`, or that of another partition."""
        return self._partition.partition

    @cached_property
    def domain(self) -> pulumi.Output[str]:
        """What its services' principals end in."""
        return self._partition.dns_suffix

    @cached_property
    def _partition(self) -> pulumi.Output[aws.GetPartitionResult]:
        return aws.get_partition_output(opts=self._options)


def account_of(parent: pulumi.Resource) -> Account:
    """The account that `parent`'s provider is signed in to."""
    return Account(pulumi.InvokeOptions(parent=parent))
