"""Somebody is told when a stack spends more than was meant."""

from __future__ import annotations

from typing import Any

from gputier_policies.fleets import fleets
from gputier_policies.rule import Config, Findings, Rule, Undecided, Violation
from gputier_policies.values import UNKNOWN, Resource, Stack, at, items, yes

AWS_BUDGET = "aws:budgets/budget:Budget"
GCP_BUDGET = "gcp:billing/budget:Budget"
_ASKED = {
    "aws": 'aws.budgets.Budget with budget_type="COST" and'
    ' notifications=[{..., "subscriber_email_addresses": ["..."]}]',
    "gcp": 'gcp.billing.Budget with threshold_rules=[{"threshold_percent": 0.8}]',
}
_NAMES = {"aws": "AWS", "gcp": "Google Cloud"}
_BUDGETS = {"aws": AWS_BUDGET, "gcp": GCP_BUDGET}


def stack_requires_budget(stack: Stack, config: Config) -> Findings:
    """On each cloud on which the stack has machines with GPUs."""
    if config["elsewhere"]:
        return
    found = fleets(stack)
    for cloud, type_ in _BUDGETS.items():
        here = [one for one in found if one.runner.type.startswith(f"{cloud}:")]
        gpus = [one.gpu for one in here]
        if not any(gpu is True or gpu is UNKNOWN for gpu in gpus):
            continue
        tells = [(one, _tells(one)) for one in stack.of(type_)]
        if any(said is True for _, said in tells):
            continue
        waiting = [one for one, said in tells if said is UNKNOWN]
        if waiting:
            yield from (Undecided(_PATHS[type_], one.urn) for one in waiting)
        elif True in gpus:
            yield Violation(_missing(cloud, [one for one, _ in tells]))
        else:
            yield from (Undecided(f.waiting, f.runner.urn) for f in here if f.waiting)


_PATHS = {AWS_BUDGET: "notifications", GCP_BUDGET: "thresholdRules"}


def _missing(cloud: str, silent: list[Resource]) -> str:
    if silent:
        names = ", ".join(one.name for one in silent)
        what = f"the budget {names} tells nobody"
    else:
        what = f"there are GPU machines on {_NAMES[cloud]} and no budget"
    return (
        f"{what}; there must be one that alerts somebody: {_ASKED[cloud]}. Where another stack"
        " keeps it, say so in `elsewhere`"
    )


def _tells(budget: Resource) -> Any:
    """Whether somebody hears of it: True, False, or UNKNOWN."""
    if budget.type == GCP_BUDGET:
        return _google_tells(budget)
    kind = budget.at("budgetType")
    if kind not in ("COST", UNKNOWN):
        return False
    told = [_hears(one) for one in budget.each("notifications")]
    if True in told:
        return UNKNOWN if kind is UNKNOWN else True
    return UNKNOWN if UNKNOWN in told else False


def _hears(notification: Any) -> Any:
    lists: list[Any] = [
        at(notification, f"subscriber{kind}") for kind in ("EmailAddresses", "SnsTopicArns")
    ]
    if any(items(one) for one in lists if one):
        return True
    return UNKNOWN if UNKNOWN in lists else False


def _google_tells(budget: Resource) -> Any:
    """By mail to those who administer the billing account, unless that is switched off and there
    is nothing instead (Cloud Billing user guide, customize budget alert email recipients)."""
    rules = budget.each("thresholdRules")
    if not rules:
        return False
    silent: Any = budget.at("allUpdatesRule.disableDefaultIamRecipients")
    others: list[Any] = [
        budget.at(f"allUpdatesRule.{word}")
        for word in ("pubsubTopic", "monitoringNotificationChannels")
    ]
    if UNKNOWN in rules and len(rules) == 1:
        return UNKNOWN
    if any(others) or not (yes(silent) or silent is UNKNOWN):
        return True
    return UNKNOWN if silent is UNKNOWN or UNKNOWN in others else False


BUDGET = Rule(
    check_stack=stack_requires_budget,
    description="A stack with GPU machines has a budget that tells somebody when it is spent.",
    remediation="Add a budget with an alert, or say in `elsewhere` which stack keeps it.",
    severity="high",
    url="https://docs.aws.amazon.com/cost-management/latest/userguide/budgets-managing-costs.html",
    settings={
        "elsewhere": {
            "type": "string",
            "default": "",
            "description": "Where the budget is kept instead, such as the stack that has the"
            " account's own; empty: this stack has to have one.",
        }
    },
)

RULES = (BUDGET,)
