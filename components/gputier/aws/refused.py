"""What AWS cannot be given, said before anything is made: every reason of every fleet at once."""

from __future__ import annotations

from collections.abc import Iterator

import pulumi

from gputier.deploy import bundle_problems
from gputier.errors import Problem
from gputier.lock import Bundle
from gputier.plan import WorkloadPlan
from gputier.plan.boot import PLACEHOLDER_HINT
from gputier.plan.budget import BudgetPlan
from gputier.plan.fleet import deploy_problems
from gputier.workload.declare import PRODUCTION

#: AWS Budgets takes so many notifications, and one of ours is the forecast, and one
#: more what stops a fleet (budgets API 2016-10-20,
#: NotificationWithSubscribersList: 10).
MOST_ALERTS = 9


def problems_of(plan: WorkloadPlan, bundle: Bundle) -> Iterator[Problem]:
    """Why this plan and the bundle that its lock pins cannot be deployed to AWS by this release."""
    at = f"workloads.{plan.name}"
    chosen = plan.chosen
    if chosen is None or chosen.verdict.type.cloud != "aws":
        cloud = "no cloud" if chosen is None else chosen.verdict.type.cloud
        yield Problem(at, f"`{plan.name}` is planned on {cloud}, not on aws", "`clouds: [aws]`")
        return
    yield from deploy_problems(chosen.fleet, at)
    image, budget = chosen.boot.image, chosen.budget
    if image.id is None and image.family is None:
        message = f"no image is known for {chosen.verdict.machine.instance_type}"
        yield Problem(f"{at}.software.image", message, "name one: `software.image: ami-…`")
    elif image.placeholder and not pulumi.runtime.is_dry_run():
        # A preview goes on, and warns: what an example shows needs nobody's image.
        message = f"{image.id} is a placeholder for an image, and machines need one"
        yield Problem(f"{at}.software.image", message, PLACEHOLDER_HINT)
    elif not image.pinned and plan.need.environment in PRODUCTION:
        yield Problem(
            f"{at}.software.image",
            f"{image.family} names another image with each release, and this is"
            f" {plan.need.environment}",
            "`gputier lock STACK --images` pins today's, or name one: `software.image: ami-…`",
        )
    if budget is not None:
        yield from _alerts_problems(budget, at)
    yield from bundle_problems(plan.name, bundle)


def _alerts_problems(budget: BudgetPlan, at: str) -> Iterator[Problem]:
    most, given = MOST_ALERTS - budget.stops, len(budget.alerts_usd)
    if given > most:
        beside = "the forecast and what stops the fleet" if budget.stops else "the forecast"
        message = f"AWS takes {most} alerts beside {beside}, not {given}"
        yield Problem(f"{at}.budget.alerts", message, "fewer percentages")
