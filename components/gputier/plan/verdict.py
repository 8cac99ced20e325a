"""A verdict per catalogue row: accepted, or rejected with every reason."""

from __future__ import annotations

from typing import NamedTuple

from gputier.catalog import InstanceType
from gputier.plan.machine import Machine
from gputier.plan.market import CONFIRMED, DEPLOYABLE, UNCONFIRMED
from gputier.plan.price import Cost
from gputier.plan.reasons import Reason


class Verdict(NamedTuple):
    """One catalogue row, represented by its best allowed region and composition.

    `region` is "" only when no allowed region sells the type. `zones` may be empty: not known.
    """

    type: InstanceType
    machine: Machine
    region: str
    zones: tuple[str, ...]
    availability: str
    use: str
    cost: Cost | None
    reasons: tuple[Reason, ...]
    named: bool = False  # the capacity names this very type

    @property
    def accepted(self) -> bool:
        return not self.reasons

    @property
    def plan_only(self) -> bool:
        """True on clouds that are shown as an alternative and never locked."""
        return self.type.cloud not in DEPLOYABLE

    @property
    def confirmed(self) -> bool:
        return self.availability == CONFIRMED

    @property
    def unconfirmed(self) -> bool:
        return self.availability == UNCONFIRMED

    @property
    def total(self) -> float | None:
        """USD per hour of the whole workload, None when unknown."""
        return self.cost.total if self.cost else None

    @property
    def per_machine(self) -> float | None:
        return self.cost.per_machine if self.cost else None

    @property
    def machines(self) -> int:
        """Machines that run: what is paid for, or what the need asks where no price is known."""
        return self.cost.machines if self.cost else self.machine.nodes
