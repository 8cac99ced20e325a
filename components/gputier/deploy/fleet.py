"""The part of a fleet that is the same on every cloud: its names, its script, what it tells."""

from __future__ import annotations

import pulumi

from gputier.boot import Bundle as Rendering
from gputier.boot import Rendered, Stack, render
from gputier.catalog import Catalog
from gputier.errors import InvalidInput, Problem
from gputier.lock import Bundle
from gputier.plan import Chosen, WorkloadPlan

#: Where a port forward ends when no container says otherwise: SSH.
SSH = 22


class Fleet(pulumi.ComponentResource):
    """One planned workload as a component of `cloud`. The subclass makes what belongs to it, sets
    what its cloud decides, and calls `_told` at its end."""

    machine: pulumi.Output[str]
    usd_per_hour: pulumi.Output[float | None]
    usd_per_month: pulumi.Output[float | None]
    group_name: pulumi.Output[str | None]
    connect: pulumi.Output[dict[str, str]]
    gate_state: pulumi.Output[str]
    dashboard_url: pulumi.Output[str]

    def __init__(
        self, cloud: str, name: str, chosen: Chosen, opts: pulumi.ResourceOptions | None
    ) -> None:
        super().__init__(f"gputier:{cloud}:GpuFleet", name, None, _renamed(chosen, opts))
        #: What a machine finds when it boots: it fetches its bundle with its rights, by its way
        #: out.
        self._first: list[pulumi.Resource] = []

    def _child(self) -> pulumi.ResourceOptions:
        return pulumi.ResourceOptions(parent=self)

    def _last(self) -> pulumi.ResourceOptions:
        return pulumi.ResourceOptions(parent=self, depends_on=self._first)

    def _told(self, chosen: Chosen) -> None:
        self.machine = pulumi.Output.from_input(chosen.verdict.machine.instance_type)
        self.usd_per_hour = pulumi.Output.from_input(_money(chosen.usd_per_hour))
        self.usd_per_month = pulumi.Output.from_input(_money(chosen.usd_per_month))
        self.register_outputs(self.outputs())

    def outputs(self) -> dict[str, pulumi.Output[object]]:
        """Everything that a person wants to see of a fleet, by name."""
        return {
            "machine": self.machine,
            "usd_per_hour": self.usd_per_hour,
            "usd_per_month": self.usd_per_month,
            "group_name": self.group_name,
            "connect": self.connect,
            "gate_state": self.gate_state,
            "dashboard_url": self.dashboard_url,
        }


def same_name(name: str, plan: WorkloadPlan) -> None:
    """Names in the cloud are the plan's; under another name two fleets would have the same.

    Raises `InvalidInput` where a fleet is called otherwise than its plan.
    """
    if name != plan.name:
        raise InvalidInput(
            Problem(
                name,
                f"the fleet is called `{name}`, and its plan is of workload `{plan.name}`",
                f'give the plan its name: gputier.plan(..., name="{name}")',
            )
        )


def rendered(plan: WorkloadPlan, bundle: Bundle, catalog: Catalog) -> Rendered:
    """The script that a machine of this plan boots with in the stack that is being deployed."""
    stack = Stack(pulumi.get_project(), pulumi.get_stack())
    return render(plan, catalog, stack, Rendering(bundle.sha256, bundle.version))


def port_of(chosen: Chosen) -> int:
    """The port that is worth a forward: the container's first, else SSH's."""
    container = chosen.boot.container
    return container.ports[0] if container and container.ports else SSH


def maybe(name: str) -> str | None:
    """The same, for an output that others have None in."""
    return name


def _renamed(chosen: Chosen, opts: pulumi.ResourceOptions | None) -> pulumi.ResourceOptions:
    """The caller's options, and the former name as an alias. Parts follow: their names begin with
    the fleet's."""
    was = chosen.fleet.was
    alias = pulumi.ResourceOptions(aliases=[pulumi.Alias(name=was)] if was else None)
    return pulumi.ResourceOptions.merge(opts, alias)


def _money(usd: float | None) -> float | None:
    """As the lock has it: what a float drags along would be another output for the same price."""
    return None if usd is None else round(usd, 6)
