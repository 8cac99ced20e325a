"""What AWS is asked about the account: who asks, what they may do, its roles, tags and budgets."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

from gputier.account import doctor_checks as checks
from gputier.account.answers import CannotAsk
from gputier.account.doctor import Finding, Question, bad, good, unknown
from gputier.account.doctor_aws import Aws
from gputier.account.doctor_aws_rights import actions
from gputier.account.doctor_targets import Target
from gputier.plan.budget import CREATE
from gputier.plan.names import FLEET_TAG, names_of

#: Service → its role, and when it is needed (IAM user guide, service-linked roles).
AUTOSCALING, SPOT = "autoscaling.amazonaws.com", "spot.amazonaws.com"
ROLES = {AUTOSCALING: "AWSServiceRoleForAutoScaling", SPOT: "AWSServiceRoleForEC2Spot"}
MAKE_ROLE = "iam:CreateServiceLinkedRole"
TAGS_PAGE = "https://console.aws.amazon.com/billing/home#/tags"
BUDGETS_PAGE = "https://console.aws.amazon.com/billing/home#/budgets"
ANOMALIES_PAGE = "https://console.aws.amazon.com/cost-management/home#/anomaly-detection"
POLICIES_PAGE = "https://console.aws.amazon.com/iam/home#/policies"
#: Billing is asked in one region (Cost Explorer and Budgets endpoints).
BILLING = "us-east-1"
_SHOWN = 6


class Caller(NamedTuple):
    """Who asks: the account, and the ARN as STS tells it."""

    account: str
    arn: str


class Denied(NamedTuple):
    """Actions that a simulation did not allow. `unsure` of them depend on what it was not told."""

    sure: tuple[str, ...]
    unsure: tuple[str, ...]
    keys: tuple[str, ...]


def caller(aws: Aws) -> Caller:
    """Who asks. Raises `CannotAsk`."""

    def ask() -> Caller:
        found = aws.session.ask("sts", "get_caller_identity")
        return Caller(str(found["Account"]), str(found["Arn"]))

    return aws.once.get("caller", ask)


def questions(aws: Aws, targets: Sequence[Target]) -> Iterator[Question]:
    """Those of the whole account."""
    yield Question(checks.IDENTITY_AWS, (), "who asks", partial(_identity, aws))
    for region in dict.fromkeys(target.region for target in targets):
        there = tuple(target for target in targets if target.region == region)
        wanted = actions(there)
        about = f"{len(wanted)} actions in {region}"
        names = tuple(target.name for target in there)
        yield Question(checks.RIGHTS_AWS, names, about, partial(_rights, aws, region, wanted))
    for service, whose in _services(targets).items():
        names = tuple(target.name for target in whose)
        yield Question(checks.ROLES_AWS, names, ROLES[service], partial(_role, aws, service, whose))
    budgeted = [target for target in targets if target.chosen.budget is not None]
    names = tuple(target.name for target in budgeted)
    yield Question(checks.TAG_AWS, names, FLEET_TAG, partial(_tag, aws, names))
    for t in budgeted:
        names_ = names_of("aws", aws.subject.project, aws.subject.name, t.chosen.fleet.resources)
        budget = names_.of("budget")
        yield Question(checks.BUDGET_AWS, (t.name,), budget, partial(_budget, aws, budget))
        asked = t.chosen.budget.anomalies if t.chosen.budget else None
        about = asked or "those of the account"
        yield Question(checks.ANOMALIES_AWS, (t.name,), about, partial(_anomalies, aws, asked))


def _identity(aws: Aws) -> Finding:
    found, ours = caller(aws), aws.subject.account.aws
    key = "aws:forbiddenAccountIds" if found.account in ours.forbidden else "aws:allowedAccountIds"
    if found.account in ours.forbidden or (ours.allowed and found.account not in ours.allowed):
        fix = "`aws:profile` or `aws:assumeRoles` of the account that is meant"
        return bad(f"account {found.account}, which `{key}` keeps this stack from", fix)
    return good(f"account {found.account} as {found.arn.split(':', 5)[-1]}")


def _services(targets: Sequence[Target]) -> dict[str, tuple[Target, ...]]:
    """The services whose own roles are needed, and for which fleets."""
    found = {
        AUTOSCALING: tuple(t for t in targets if t.chosen.fleet.shape == "group"),
        SPOT: tuple(t for t in targets if t.market == "spot"),
    }
    return {service: whose for service, whose in found.items() if whose}


def _rights(aws: Aws, region: str, wanted: Sequence[str]) -> Finding:
    who = caller(aws)
    if who.arn.endswith(":root"):
        return good(f"{who.account}'s root user may do all of {len(wanted)} actions")
    denied = _denied(aws, region, wanted)
    who_ = who.arn.split(":", 5)[-1]
    if denied.sure:
        page = f"{POLICIES_PAGE}; allow to {who_}: {' '.join(denied.sure)}"
        return bad(f"{who_} may not {_few(denied.sure)}", page)
    if denied.unsure:
        found = f"{who_}: whether it may {_few(denied.unsure)} depends on {', '.join(denied.keys)}"
        return unknown(found)
    return good(f"{who_} may do all of {len(wanted)} actions")


def _denied(aws: Aws, region: str, wanted: Sequence[str]) -> Denied:
    """What the caller's policies do not allow in a region, on resources of any name."""
    context = [
        {
            "ContextKeyName": "aws:RequestedRegion",
            "ContextKeyValues": [region],
            "ContextKeyType": "string",
        }
    ]
    found = aws.session.every(
        "iam",
        "simulate_principal_policy",
        "EvaluationResults",
        PolicySourceArn=_principal(aws),
        ActionNames=list(wanted),
        ContextEntries=context,
    )
    refused = [one for one in found if one["EvalDecision"] != "allowed"]
    sure = [one for one in refused if not one.get("MissingContextValues")]
    keys = {key for one in refused for key in one.get("MissingContextValues", ())}
    return Denied(
        tuple(sorted(str(one["EvalActionName"]) for one in sure)),
        tuple(sorted(str(one["EvalActionName"]) for one in refused if one not in sure)),
        tuple(sorted(keys)),
    )


def _principal(aws: Aws) -> str:
    """The user's or the role's ARN. A session of a role is told without the role's path."""
    arn = caller(aws).arn
    kind, _, rest = arn.split(":", 5)[-1].partition("/")
    if kind == "user":
        return arn
    if kind != "assumed-role":
        raise CannotAsk(f"the rights of {kind} {rest} cannot be simulated")
    name = rest.partition("/")[0]
    return aws.once.get(
        ("role", name),
        lambda: str(aws.session.ask("iam", "get_role", RoleName=name)["Role"]["Arn"]),
    )


def _role(aws: Aws, service: str, targets: Sequence[Target]) -> Finding:
    name = ROLES[service]
    fix = aws.command(f"iam create-service-linked-role --aws-service-name {service}")
    try:
        aws.session.ask("iam", "get_role", RoleName=name)
    except CannotAsk as error:
        if error.code != "NoSuchEntity":
            raise
    else:
        return good(f"{name} is there")
    keyed = [t.name for t in targets if t.chosen.storage.key is not None]
    if keyed:
        # A grant to a role that is not there is refused.
        return bad(f"{name} is not there, and the key of {', '.join(keyed)} is granted to it", fix)
    if caller(aws).arn.endswith(":root"):
        return good(f"{name} is not there, and is made with the first fleet")
    denied = _denied(aws, targets[0].region, [MAKE_ROLE])
    if denied.sure:
        return bad(f"{name} is not there, and the caller may not {MAKE_ROLE}", fix)
    if denied.unsure:
        return unknown(f"{name} is not there; whether the caller may make it is not known", fix)
    return good(f"{name} is not there, and is made with the first fleet")


def _tag(aws: Aws, budgets: Sequence[str]) -> Finding:
    found = aws.session.every(
        "ce", "list_cost_allocation_tags", "CostAllocationTags", BILLING, TagKeys=[FLEET_TAG]
    )
    status = next((one["Status"] for one in found if one["TagKey"] == FLEET_TAG), None)
    line = (
        "ce update-cost-allocation-tags-status --cost-allocation-tags-status"
        f" TagKey={FLEET_TAG},Status=Active"
    )
    fixes = aws.command(line, BILLING), TAGS_PAGE
    counts = f"; until then the budget of {', '.join(budgets)} stays at 0" if budgets else ""
    if status == "Active":
        return good(f"{FLEET_TAG} is active")
    if status is None:
        later = "AWS lists a tag up to a day after the first machine that has it"
        return unknown(f"{FLEET_TAG} is not listed yet: {later}{counts}", *fixes)
    return bad(f"{FLEET_TAG} is not active{counts}", *fixes)


def _budget(aws: Aws, name: str) -> Finding:
    account = caller(aws).account
    try:
        found: Mapping[str, Any] = aws.session.ask(
            "budgets", "describe_budget", BILLING, AccountId=account, BudgetName=name
        )["Budget"]
    except CannotAsk as error:
        if error.code == "NotFoundException":
            return good(f"no budget is called {name} yet")
        raise
    if found["BudgetType"] != "COST" or found.get("TimeUnit") != "MONTHLY":
        kind = f"{found.get('TimeUnit', '')} {found['BudgetType']}".strip().lower()
        return bad(f"{name} is there as a {kind} budget", BUDGETS_PAGE)
    limit: Mapping[str, str] = found.get("BudgetLimit", {})
    return good(f"{name} is there, {limit.get('Amount', '?')} {limit.get('Unit', '')} a month")


def _anomalies(aws: Aws, asked: str | None) -> Finding:
    """Nothing is looked up when a deployment runs (docs/adr/0016), so it is told here."""
    if asked == CREATE:
        return good("a monitor of its own is made with the budget")
    found = aws.session.every("ce", "get_anomaly_monitors", "AnomalyMonitors", BILLING)
    names = {str(one["MonitorArn"]): str(one["MonitorName"]) for one in found}
    if asked in names:
        return good(f"the monitor {names[asked]} is there")
    if asked:
        line = aws.command("ce get-anomaly-monitors", BILLING)
        return bad(f"there is no monitor {asked}", line, ANOMALIES_PAGE)
    if not names:
        return good("none is there and none is asked for; `budget.anomalies: create` makes one")
    arn, name = min(names.items())
    return good(f"the account has the monitor {name}; `budget.anomalies: {arn}` adopts it")


def _few(names: Sequence[str]) -> str:
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return ", ".join(names[:_SHOWN]) + more
