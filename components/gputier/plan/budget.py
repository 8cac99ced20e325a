"""The declared budget against what the plan costs."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from gputier.workload import Workload


class BudgetPlan(NamedTuple):
    """`alerts_usd` are the declared percentages in money. `used` is the share the plan takes, None
    when a part of its cost is unknown; `used_at_least` counts the known parts."""

    usd_per_month: float
    alerts_usd: tuple[float, ...]
    action: str
    billing_account: str | None
    used: float | None
    used_at_least: float

    @property
    def exceeded(self) -> bool:
        return self.used_at_least > 1.0


def plan_budget(workload: Workload, parts: Iterable[float | None]) -> BudgetPlan | None:
    """None without a declared budget. `parts` are the machines and everything around them, USD a
    month, None where unknown."""
    budget = workload.budget
    if budget is None:
        return None
    limit = budget.usd_per_month
    costs = list(parts)
    known = sum(cost for cost in costs if cost is not None)
    return BudgetPlan(
        limit,
        tuple(limit * percent / 100 for percent in budget.alerts),
        budget.action,
        budget.billing_account,
        None if None in costs else known / limit,
        known / limit,
    )
