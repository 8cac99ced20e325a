"""Where a fleet is deployed, what its parts are called and labelled, and in whose project."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import NamedTuple

import pulumi
import pulumi_gcp as gcp

from gputier.plan import WorkloadPlan
from gputier.plan.labels import label
from gputier.plan.names import Names, names_of

#: The label that a fleet's costs are found by. Its value is as unique as the group's name.
FLEET_LABEL = "gputier-fleet"


class Place(NamedTuple):
    """`name` is what logical names begin with, `names` are the physical ones. What is regional is
    told its `region`: a plan is for one region, whatever region a provider is set to. The project
    is the provider's."""

    name: str
    names: Names
    region: str
    labels: Mapping[str, str]

    def logical(self, word: str) -> str:
        """The name in Pulumi of a part. It begins with the component's own, so that an alias of the
        component is one of its parts too."""
        return f"{self.name}-{word}"


def place_of(plan: WorkloadPlan) -> Place:
    """The place of a planned fleet in the stack that is being deployed."""
    if plan.chosen is None:
        raise ValueError(f"no machine was chosen for {plan.name}")
    fleet = plan.chosen.fleet
    names = names_of("gcp", pulumi.get_project(), pulumi.get_stack(), fleet.resources)
    own = {
        FLEET_LABEL: names.of("group"),
        "gputier-workload": fleet.resources,
        "gputier-project": label(names.project),
        "gputier-stack": label(names.stack),
    }
    return Place(plan.name, names, plan.chosen.verdict.region, {**fleet.tags, **own})


class Project:
    """The project that a parent's provider is signed in to, asked for once."""

    def __init__(self, options: pulumi.InvokeOptions) -> None:
        self._options = options

    @cached_property
    def id(self) -> pulumi.Output[str]:
        """The project's id, as names of buckets and accounts hold it."""
        return self._found.project_id.apply(_known)

    @cached_property
    def number(self) -> pulumi.Output[str]:
        """The project's number, as Google's own accounts in it hold it."""
        return self._found.number

    @cached_property
    def _found(self) -> pulumi.Output[gcp.organizations.GetProjectResult]:
        return gcp.organizations.get_project_output(opts=self._options)


def _known(found: str | None) -> str:
    if not found:
        raise ValueError("the provider has no project: `pulumi config set gcp:project PROJECT`")
    return found


def project_of(parent: pulumi.Resource) -> Project:
    """The project that `parent`'s provider is signed in to."""
    return Project(pulumi.InvokeOptions(parent=parent))
