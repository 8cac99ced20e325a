"""The budget of a fleet: what it costs by its tag, told at each percentage and when it will be too
much."""

from __future__ import annotations

from collections.abc import Iterator

import pulumi
import pulumi_aws as aws

from gputier.aws.place import Place
from gputier.plan.budget import BudgetPlan
from gputier.plan.names import FLEET_TAG


class Budget(pulumi.ComponentResource):
    """A cost budget over the fleet's tag, which counts from the day on which the tag is activated
    for cost allocation (Billing user guide, user-defined cost allocation tags).

    People hear of it on `topic`. `stop` is told when more was spent than declared, and that alone.
    """

    def __init__(
        self,
        place: Place,
        plan: BudgetPlan,
        *,
        topic: pulumi.Input[str],
        stop: pulumi.Input[str] | None = None,
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        super().__init__("gputier:aws:Budget", place.name, None, opts)
        aws.budgets.Budget(
            place.logical("budget"),
            name=place.names.of("budget"),
            budget_type="COST",
            time_unit="MONTHLY",
            limit_amount=dollars(plan.usd_per_month),
            limit_unit="USD",
            cost_filters=[
                {
                    "name": "TagKeyValue",
                    # The form of the Budgets API: `user:` and the key, `$` and the value.
                    "values": [f"user:{FLEET_TAG}${place.tags[FLEET_TAG]}"],
                }
            ],
            notifications=[*_notifications(plan, topic), *_over(stop)],
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


def _over(
    topic: pulumi.Input[str] | None,
) -> Iterator[aws.budgets.BudgetNotificationArgsDict]:
    """A notification takes one topic (budgets API 2016-10-20, Notification), and one of the amount
    in money may be there already: this one is in percent."""
    if topic is not None:
        yield {
            "notification_type": "ACTUAL",
            "comparison_operator": "GREATER_THAN",
            "threshold": 100,
            "threshold_type": "PERCENTAGE",
            "subscriber_sns_topic_arns": [topic],
        }


def dollars(usd: float) -> str:
    """An amount as the APIs take it: digits alone, to the cent."""
    return f"{usd:.2f}".rstrip("0").rstrip(".")
