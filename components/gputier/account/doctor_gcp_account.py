"""What Google is asked about the project: whether it is there, its APIs, rights and billing."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any

from gputier.account import doctor_checks as checks
from gputier.account.doctor import Finding, Question, bad, good
from gputier.account.doctor_gcp import Gcp
from gputier.account.doctor_targets import Target
from gputier.plan.monitoring_gcp import watched

#: What a deployment calls; a budget's service comes with a budget.
SERVICES = (
    "cloudresourcemanager.googleapis.com",
    "compute.googleapis.com",
    "iam.googleapis.com",
    "logging.googleapis.com",
    "monitoring.googleapis.com",
    "storage.googleapis.com",
)
BUDGETS = "billingbudgets.googleapis.com"
#: What ends a group by the clock that grows by its load.
CLOCK = "cloudscheduler.googleapis.com"
#: What stops a fleet over its budget (docs/adr/0016-what-stops-a-fleet-over-budget.md).
STOPS = (
    "eventarc.googleapis.com",
    "pubsub.googleapis.com",
    "workflowexecutions.googleapis.com",
    "workflows.googleapis.com",
)
#: Role → the permissions of it that a deployment uses (pulumi-gcp 10.2 resources; compute API v1,
#: iam-dataset of 2026-08). All can be asked of a project.
ROLES = {
    "roles/compute.admin": (
        "compute.instanceTemplates.create",
        "compute.instanceTemplates.delete",
        "compute.instanceGroupManagers.create",
        "compute.instanceGroupManagers.update",
        "compute.instanceGroupManagers.delete",
        "compute.instances.create",
        "compute.instances.setMetadata",
        "compute.autoscalers.create",
        "compute.healthChecks.create",
        "compute.disks.create",
        "compute.networks.create",
        "compute.networks.updatePolicy",
        "compute.subnetworks.create",
        "compute.subnetworks.use",
        "compute.firewalls.create",
        "compute.routers.create",
        "compute.resourcePolicies.create",
    ),
    "roles/iam.serviceAccountAdmin": ("iam.serviceAccounts.create", "iam.serviceAccounts.delete"),
    "roles/iam.serviceAccountUser": ("iam.serviceAccounts.actAs",),
    "roles/resourcemanager.projectIamAdmin": (
        "resourcemanager.projects.getIamPolicy",
        "resourcemanager.projects.setIamPolicy",
    ),
    "roles/storage.admin": ("storage.buckets.create", "storage.objects.create"),
    "roles/monitoring.editor": ("monitoring.alertPolicies.create", "monitoring.dashboards.create"),
}
#: And for what stops a fleet over its budget (iam-dataset of 2026-08).
STOP_ROLES = {
    "roles/eventarc.admin": ("eventarc.triggers.create",),
    "roles/iam.roleAdmin": ("iam.roles.create",),
    "roles/pubsub.admin": ("pubsub.topics.create", "pubsub.topics.setIamPolicy"),
    "roles/workflows.editor": ("workflows.workflows.create",),
}
ACCOUNTS_PAGE = "https://console.cloud.google.com/billing/projects"
#: Who is to be granted something, where the credentials do not say.
SOMEBODY = "user:NAME@EXAMPLE.COM"


def questions(gcp: Gcp, targets: Sequence[Target]) -> Iterator[Question]:
    """Those of the whole project."""
    budgeted = [target for target in targets if target.chosen.budget is not None]
    stopped = any(t.chosen.budget and t.chosen.budget.stops for t in budgeted)
    clocked = any(watched(t.chosen).clocked for t in targets)
    services = SERVICES + ((BUDGETS,) if budgeted else ()) + (STOPS if stopped else ())
    services += (CLOCK,) if clocked else ()
    yield Question(checks.IDENTITY_GCP, (), gcp.called, partial(_identity, gcp))
    yield Question(
        checks.API_GCP, (), f"{len(services)} services", partial(_services, gcp, services)
    )
    names = tuple(target.name for target in targets)
    roles = {**ROLES, **STOP_ROLES} if stopped else ROLES
    about = f"{sum(map(len, roles.values()))} permissions on {gcp.called}"
    yield Question(checks.RIGHTS_GCP, names, about, partial(_rights, gcp, roles))
    for t in budgeted:
        yield Question(checks.BUDGET_GCP, (t.name,), gcp.called, partial(_budget, gcp, t))


def _identity(gcp: Gcp) -> Finding:
    found = gcp.session.get("projects", "projects/{project}")
    state = str(found.get("state", "STATE_UNSPECIFIED"))
    number = str(found.get("name", "")).rpartition("/")[2]
    label = f"project {gcp.project} ({number})"
    who = f" as {gcp.session.caller}" if gcp.session.caller else ""
    if state == "DELETE_REQUESTED":
        fix = f"gcloud projects undelete {gcp.project}"
        return bad(f"{label} is to be deleted", fix)
    return good(f"{label}{who}")


def _services(gcp: Gcp, wanted: Sequence[str]) -> Finding:
    names = [f"projects/{gcp.project}/services/{name}" for name in wanted]
    found = gcp.session.get("services", "projects/{project}/services:batchGet", names=names).get(
        "services", ()
    )
    on = {str(one["name"]).rpartition("/")[2] for one in found if one.get("state") == "ENABLED"}
    off = [name for name in wanted if name not in on]
    if off:
        fix = f"gcloud services enable {' '.join(off)} --project {gcp.project}"
        return bad(f"not enabled: {', '.join(off)}", fix)
    return good(f"all {len(wanted)} are enabled")


def _rights(gcp: Gcp, roles: Mapping[str, Sequence[str]]) -> Finding:
    wanted = [permission for role in roles.values() for permission in role]
    found = gcp.session.post(
        "projects", "projects/{project}:testIamPermissions", {"permissions": list(wanted)}
    )
    held = set(found.get("permissions", ()))
    missing = [one for one in wanted if one not in held]
    if not missing:
        return good(f"the caller has all {len(wanted)}")
    lacking = [role for role, needed in roles.items() if set(needed) & set(missing)]
    fixes = [
        f"gcloud projects add-iam-policy-binding {gcp.project} --member={_member(gcp)}"
        f" --role={role}"
        for role in lacking
    ]
    few = ", ".join(missing[:4]) + (f" and {len(missing) - 4} more" if len(missing) > 4 else "")
    return bad(f"the caller has no {few}", *fixes)


def _member(gcp: Gcp) -> str:
    return f"serviceAccount:{gcp.session.caller}" if gcp.session.caller else SOMEBODY


def _budget(gcp: Gcp, target: Target) -> Finding:
    budget = target.chosen.budget
    wanted = budget.billing_account if budget else None
    found: dict[str, Any] = gcp.once.get(
        "billing", lambda: gcp.session.get("billing", "projects/{project}/billingInfo")
    )
    account = str(found.get("billingAccountName", "")).rpartition("/")[2]
    if not found.get("billingEnabled") or not account:
        line = f"gcloud billing projects link {gcp.project} --billing-account={wanted or 'ACCOUNT'}"
        return bad(f"{gcp.project} is not billed to any account", line, ACCOUNTS_PAGE)
    if wanted and wanted.rpartition("/")[2] != account:
        fix = f"`budget.billing_account: {account}` of {target.name}"
        return bad(f"{gcp.project} is billed to {account}, not to {wanted}", fix)
    gcp.session.get("budgets", f"billingAccounts/{account}/budgets", pageSize=1)
    return good(f"{gcp.project} is billed to {account}, whose budgets can be read")
