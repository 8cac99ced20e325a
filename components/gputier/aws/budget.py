"""The budget of a fleet: what it costs by its tag, told at each percentage and when it will be too
much."""

from __future__ import annotations

from collections.abc import Iterator

import pulumi
import pulumi_aws as aws

from gputier.aws.place import FLEET_TAG, Place
from gputier.plan.budget import BudgetPlan


class Budget(pulumi.ComponentResource):
    """A cost budget over the fleet's tag, which counts from the day on which the tag is activated
    for cost allocation (Billing user guide, user-defined cost allocation tags)."""

    def __init__(
        self,
        place: Place,
        plan: BudgetPlan,
        *,
        topic: pulumi.Input[str],
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        super().__init__("gputier:aws:Budget", place.name, None, opts)
        aws.budgets.Budget(
            place.logical("budget"),
            name=place.names.of("budget"),
            budget_type="COST",
            time_unit="MONTHLY",
            limit_amount=f"{plan.usd_per_month:g}",
            limit_unit="USD",
            cost_filters=[
                {
                    "name": "TagKeyValue",
                    # The form of the Budgets API: `user:` and the key, `$` and the value.
                    "values": [f"user:{FLEET_TAG}${place.tags[FLEET_TAG]}"],
                }
            ],
            notifications=list(_notifications(plan, topic)),
            tags=place.tags,
            opts=pulumi.ResourceOptions(parent=self),
        )
        self.register_outputs({})


def _notifications(
    plan: BudgetPlan, topic: pulumi.Input[str]
) -> Iterator[aws.budgets.BudgetNotificationArgsDict]:
    alerts = [("ACTUAL", usd) for usd in plan.alerts_usd]
    for kind, usd in (*alerts, ("FORECASTED", plan.usd_per_month)):
        yield {
            "notification_type": kind,
            "comparison_operator": "GREATER_THAN",
            "threshold": usd,
            "threshold_type": "ABSOLUTE_VALUE",
            "subscriber_sns_topic_arns": [topic],
        }
