"""The declared budget against what the plan costs, and what happens when it is exceeded."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from gputier.errors import Problem
from gputier.plan.verdict import Verdict
from gputier.units import HOURS_PER_MONTH
from gputier.workload import Workload
from gputier.workload.declare import PRODUCTION

SCALE_TO_ZERO = "scale-to-zero"
#: A monitor of the workload's own, in place of the ARN of one that is there.
CREATE = "create"
#: What is paid for whether it is used or not.
PREPAID = ("reservation", "capacity_block")
#: How late a budget knows, in words and in hours that are spent before anything happens. AWS looks
#: at a budget up to three times a day, 8 to 12 hours apart, and its bill grows at least once a day
#: (Cost Management user guide, managing your costs with AWS Budgets, and best practices for AWS
#: Budgets, 2026). Google tells a topic several times a day and names no figure for its bill (Cloud
#: Billing, programmatic notifications, 2025); others report hours to a day (unverified).
LATE = {"aws": ("8 to 12 hours", 12), "gcp": ("hours to a day", 24)}
#: The part of the amount from which unusual cost is told: what three days may cost. Ours.
ANOMALY_SHARE = 0.1
DAYS_PER_MONTH = HOURS_PER_MONTH / 24


class BudgetPlan(NamedTuple):
    """`alerts_usd` are the declared percentages in money. `used` is the share the plan takes, None
    when a part of its cost is unknown; `used_at_least` counts the known parts.

    `anomalies` is CREATE, or the ARN of a monitor; from `anomaly_usd` on an anomaly is told.
    """

    usd_per_month: float
    alerts_usd: tuple[float, ...]
    action: str
    billing_account: str | None
    used: float | None
    used_at_least: float
    anomalies: str | None = None
    notes: tuple[str, ...] = ()

    @property
    def exceeded(self) -> bool:
        return self.used_at_least > 1.0

    @property
    def stops(self) -> bool:
        """Whether no machine runs once it is exceeded."""
        return self.action == SCALE_TO_ZERO

    @property
    def anomaly_usd(self) -> float:
        return self.usd_per_month * ANOMALY_SHARE


def plan_budget(
    workload: Workload,
    cloud: str,
    parts: Iterable[float | None],
    at_max_usd_per_hour: float | None = None,
) -> BudgetPlan | None:
    """None without a declared budget. `parts` are the machines, and then everything around them,
    USD a month, None where unknown; `at_max_usd_per_hour` is the fleet at its largest."""
    budget = workload.budget
    if budget is None:
        return None
    limit = budget.usd_per_month
    costs = list(parts)
    known = sum(cost for cost in costs if cost is not None)
    found = BudgetPlan(
        limit,
        tuple(limit * percent / 100 for percent in budget.alerts),
        budget.action,
        budget.billing_account,
        None if None in costs else known / limit,
        known / limit,
        budget.anomalies,
    )
    late = LATE.get(cloud)
    notes = _notes(found, costs[0] or 0.0, at_max_usd_per_hour, late) if late else ()
    return found._replace(notes=tuple(notes))


def _notes(
    plan: BudgetPlan, machines: float, usd_per_hour: float | None, late: tuple[str, int]
) -> Iterator[str]:
    if not plan.stops:
        return
    words, hours = late
    said = f"scale-to-zero acts when the bill knows, {words} late or more"
    if usd_per_hour:
        said += f"; {hours} hours of its largest size are ${usd_per_hour * hours:,.0f}"
    yield said
    if machines > plan.usd_per_month:
        day = math.ceil(DAYS_PER_MONTH * plan.usd_per_month / machines)
        yield f"the machines alone cost more than the budget: scale-to-zero ends them by day {day}"


def budget_problems(workload: Workload, environment: str, chosen: Verdict) -> Iterator[Problem]:
    """What a budget cannot do to this machine, at the budget's field."""
    budget = workload.budget
    if budget is None:
        return
    if budget.action == SCALE_TO_ZERO and environment in PRODUCTION:
        message = f"scale-to-zero would end what people use over a bill, and this is {environment}"
        hint = "`action: none` tells people, who decide; `scale.max` bounds the cost"
        yield Problem("budget.action", message, hint)
    if budget.action == SCALE_TO_ZERO and chosen.use in PREPAID:
        message = f"a {chosen.use} is paid for whether it is used or not: emptying it saves nothing"
        yield Problem("budget.action", message, "`action: none`, or another way of buying")
    if budget.anomalies and chosen.type.cloud != "aws":
        message = f"cost anomaly monitors are of aws, and the machine is on {chosen.type.cloud}"
        yield Problem("budget.anomalies", message, "remove it, or `clouds: [aws]`")
