"""The budget of a fleet: what it costs by its label, told at each percentage and when it will be
too much."""

from __future__ import annotations

from typing import Any

import pulumi
import pulumi_gcp as gcp

from gputier.errors import InvalidInput, Problem
from gputier.gcp.place import FLEET_LABEL, Place, project_of
from gputier.plan.budget import BudgetPlan

NANOS = 1_000_000_000
#: billingbudgets v1 discovery, NotificationsRule.monitoringNotificationChannels: up to 5, by mail.
MOST_CHANNELS = 5


class Budget(pulumi.ComponentResource):
    """A budget of the billing account over the fleet's label, in this project alone. It tells the
    account's administrators, and `channels`. `topic` is told what was spent several times a day,
    much or little, and is for what `stops` the fleet."""

    budget: gcp.billing.Budget

    def __init__(
        self,
        place: Place,
        plan: BudgetPlan,
        *,
        channels: tuple[pulumi.Input[str], ...] = (),
        topic: pulumi.Input[str] | None = None,
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        super().__init__("gputier:gcp:Budget", place.name, None, opts)
        if len(channels) > MOST_CHANNELS:
            message = f"a budget of gcp tells {MOST_CHANNELS} channels at most, not {len(channels)}"
            raise InvalidInput(Problem(f"{place.name}.channels", message, "fewer channels"))
        number = project_of(self).number
        money: Any = {"specified_amount": amount(plan.usd_per_month)}
        told: Any = _told(channels, topic)
        self.budget = gcp.billing.Budget(
            place.logical("budget"),
            billing_account=plan.billing_account or "",
            display_name=place.names.of("budget"),
            budget_filter={
                "projects": [number.apply(lambda known: f"projects/{known}")],
                "labels": {FLEET_LABEL: place.labels[FLEET_LABEL]},
                "calendar_period": "MONTH",
            },
            amount=money,
            threshold_rules=[
                *(
                    {"threshold_percent": share, "spend_basis": "CURRENT_SPEND"}
                    for share in shares(plan)
                ),
                {"threshold_percent": 1.0, "spend_basis": "FORECASTED_SPEND"},
            ],
            all_updates_rule=told,
            opts=pulumi.ResourceOptions(parent=self),
        )
        self.register_outputs({})


def _told(
    channels: tuple[pulumi.Input[str], ...], topic: pulumi.Input[str] | None
) -> dict[str, Any] | None:
    found: dict[str, Any] = {"monitoring_notification_channels": list(channels)} if channels else {}
    if topic is not None:
        # The one form of a message that there is (billingbudgets v1 discovery, NotificationsRule).
        found |= {"pubsub_topic": topic, "schema_version": "1.0"}
    return found or None


def shares(plan: BudgetPlan) -> list[float]:
    """The declared percentages, as parts of the amount."""
    return [round(usd / plan.usd_per_month, 6) for usd in plan.alerts_usd]


def amount(usd: float) -> dict[str, Any]:
    """An amount as the API takes it: whole dollars as text, and the rest in billionths."""
    cents = round(usd * 100)
    nanos = cents % 100 * (NANOS // 100)
    return {"currency_code": "USD", "units": str(cents // 100), "nanos": nanos or None}
