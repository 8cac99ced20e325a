"""The declared budget against what the plan costs."""

from __future__ import annotations

from dataclasses import dataclass

from gputier.workload import Workload


@dataclass(frozen=True, slots=True)
class BudgetPlan:
    """`alerts_usd` are the declared percentages in money; `used` the share the plan takes, None
    when its cost is unknown."""

    usd_per_month: float
    alerts_usd: tuple[float, ...]
    action: str
    billing_account: str | None
    used: float | None

    @property
    def exceeded(self) -> bool:
        return self.used is not None and self.used > 1.0


def plan_budget(workload: Workload, usd_per_month: float | None) -> BudgetPlan | None:
    """None without a declared budget. `usd_per_month` is machines and everything around them."""
    budget = workload.budget
    if budget is None:
        return None
    limit = budget.usd_per_month
    return BudgetPlan(
        limit,
        tuple(limit * percent / 100 for percent in budget.alerts),
        budget.action,
        budget.billing_account,
        None if usd_per_month is None else usd_per_month / limit,
    )
