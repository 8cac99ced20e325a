"""What a stack deploys, on whichever cloud."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple

import pulumi

from gputier.deploy.fleet import Fleet
from gputier.lock import Bundle
from gputier.plan import Chosen, WorkloadPlan


class Deployment(NamedTuple):
    """A planned workload and the bundle that its lock pins."""

    plan: WorkloadPlan
    bundle: Bundle


class Deployed(NamedTuple):
    """Fleets by workload, and what is kept on purpose when the stack is destroyed."""

    fleets: Mapping[str, Fleet]
    kept: Sequence[pulumi.Output[str]]


#: Makes what was looked at and looked up. Until it is called nothing is made.
Prepared = Callable[[], Deployed]


def chosen_of(deployments: Iterable[Deployment]) -> dict[str, Chosen]:
    """What was chosen, by workload."""
    return {d.plan.name: d.plan.chosen for d in deployments if d.plan.chosen}


def reports_of(chosen: Mapping[str, Chosen]) -> dict[str, dict[str, str]]:
    """What happens to each fleet's reports, by region and by the name of its resources."""
    found: dict[str, dict[str, str]] = {}
    for one in sorted(chosen.values(), key=lambda c: c.verdict.region):
        found.setdefault(one.verdict.region, {})[one.fleet.resources] = one.identity.reports
    return found
