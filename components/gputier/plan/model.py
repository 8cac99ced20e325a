"""The plan: every decision made, nothing left open.

`WorkloadPlan` is one workload's, `StackPlan` a declaration's. Both are frozen and plain; the JSON
form is in `document.py`, the text form in the command line.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from gputier.plan.boot import BootPlan
from gputier.plan.budget import BudgetPlan
from gputier.plan.explain import FloorCost, Leaning, OtherWay
from gputier.plan.fleet import FleetPlan
from gputier.plan.identity import IdentityPlan
from gputier.plan.market import Market
from gputier.plan.monitoring import MonitoringPlan
from gputier.plan.need import Need
from gputier.plan.network import NetworkPlan
from gputier.plan.price import Commitment
from gputier.plan.scaling import ScalingPlan
from gputier.plan.storage import StoragePlan
from gputier.plan.verdict import Verdict
from gputier.sizing import Sizing
from gputier.workload import CapacityChoice

#: The parts of `around_usd_per_month`, in the order they print.
AROUND = ("disk", "nat", "endpoints", "ipv4", "metrics", "licence")


class Chosen(NamedTuple):
    """The machine and everything that follows from it. Money is USD; None is unknown."""

    verdict: Verdict
    zones: tuple[str, ...]
    sizing: Sizing | None
    usd_per_hour: float | None
    usd_per_month: float | None
    listed_usd_per_hour: float | None
    usd_per_month_of_one: float | None
    usd_per_month_at_min: float | None
    usd_per_month_at_max: float | None
    around_usd_per_month: Mapping[str, float | None]
    around_borrowed: bool
    storage: StoragePlan
    network: NetworkPlan
    scaling: ScalingPlan
    monitoring: MonitoringPlan
    budget: BudgetPlan | None
    commitments: tuple[Commitment, ...]
    boot: BootPlan
    fleet: FleetPlan
    identity: IdentityPlan
    notes: tuple[str, ...]

    @property
    def around_total(self) -> float | None:
        """Everything around the machines a month; None when a part is unknown."""
        parts = list(self.around_usd_per_month.values())
        return None if any(p is None for p in parts) else sum(p or 0.0 for p in parts)


class WorkloadPlan(NamedTuple):
    """One workload's choice, its ledger and why. `chosen` is None when nothing fits.

    `order` is every accepted row, best first; `verdicts` every row, in the catalogue's order.
    `skipped` says why earlier ways of buying were not taken.
    """

    name: str
    need: Need
    market: Market
    choice: CapacityChoice
    chosen: Chosen | None
    order: tuple[Verdict, ...]
    verdicts: tuple[Verdict, ...]
    floor_costs: tuple[FloorCost, ...]
    leanings: tuple[Leaning, ...]
    misses: tuple[Verdict, ...]
    relaxations: tuple[Verdict, ...]
    cheaper_unconfirmed: Verdict | None
    other_way: OtherWay | None
    skipped: tuple[str, ...]

    @property
    def rests_on_borrowed_price(self) -> bool:
        """True when clouds were compared and a price of another region decided it."""
        if not self.order:
            return False
        best = self.order[0]
        rivals: dict[str, Verdict] = {}
        for v in self.order:
            # What ranks lower whatever it costs decided nothing.
            if (v.plan_only, v.confirmed) == (best.plan_only, best.confirmed):
                rivals.setdefault(v.type.cloud, v)
        return len(rivals) > 1 and any(v.cost and v.cost.borrowed for v in rivals.values())

    @property
    def rejected(self) -> tuple[Verdict, ...]:
        return tuple(v for v in self.verdicts if not v.accepted)


class StackPlan(NamedTuple):
    """All workloads of a declaration, with the catalogue they were planned on."""

    name: str
    source: str
    environment: str
    catalog_id: str
    catalog_as_of: str
    workloads: tuple[WorkloadPlan, ...]
    warnings: tuple[str, ...]

    @property
    def unplaced(self) -> tuple[WorkloadPlan, ...]:
        return tuple(w for w in self.workloads if w.chosen is None)

    @property
    def usd_per_month(self) -> float | None:
        """Machines of all workloads a month; None when one is unknown or unplaced."""
        parts = [w.chosen.usd_per_month if w.chosen else None for w in self.workloads]
        return None if any(p is None for p in parts) else sum(p or 0.0 for p in parts)
