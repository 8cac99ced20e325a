"""Unusual cost is told: by a monitor of the workload's own, or by one that the account has.

AWS lets an account have one monitor of each of its own dimensions, and made one of services for
many by itself: a second is refused. So none of these is ever made here. What is made watches the
workload's tag, of which an account may have many (docs/adr/0016-what-stops-a-fleet-over-budget.md).
"""

from __future__ import annotations

import json

import pulumi
import pulumi_aws as aws

from gputier.aws.budget import dollars
from gputier.aws.place import Place
from gputier.plan.budget import CREATE, BudgetPlan
from gputier.plan.names import FLEET_TAG


class Anomalies(pulumi.ComponentResource):
    """What is found is told to `topic`, at once, from the plan's amount on."""

    def __init__(
        self,
        place: Place,
        plan: BudgetPlan,
        *,
        topic: pulumi.Input[str],
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        super().__init__("gputier:aws:Anomalies", place.name, None, opts)
        child = pulumi.ResourceOptions(parent=self)
        monitor: pulumi.Input[str] = plan.anomalies or ""
        if plan.anomalies == CREATE:
            monitor = aws.costexplorer.AnomalyMonitor(
                place.logical("anomalies"),
                name=place.names.of("budget"),
                monitor_type="CUSTOM",
                monitor_specification=watches(place.tags[FLEET_TAG]),
                tags=place.tags,
                opts=child,
            ).arn
        aws.costexplorer.AnomalySubscription(
            place.logical("anomalies"),
            name=place.names.of("budget"),
            # Over a topic AWS tells at once, and by mail alone once a day or week (Cost Explorer
            # API 2017-10-25, AnomalySubscription).
            frequency="IMMEDIATE",
            monitor_arn_lists=[monitor],
            subscribers=[{"type": "SNS", "address": topic}],
            threshold_expression={
                "dimension": {
                    "key": "ANOMALY_TOTAL_IMPACT_ABSOLUTE",
                    "match_options": ["GREATER_THAN_OR_EQUAL"],
                    "values": [dollars(plan.anomaly_usd)],
                }
            },
            tags=place.tags,
            opts=child,
        )
        self.register_outputs({})


def watches(tag: str) -> str:
    """The costs of one fleet, with what is left out told as nothing: so AWS gives it back."""
    found = dict.fromkeys(("And", "CostCategories", "Dimensions", "Not", "Or"))
    tags = {"Key": FLEET_TAG, "MatchOptions": None, "Values": [tag]}
    return json.dumps({**found, "Tags": tags})
