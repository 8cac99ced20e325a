"""What a machine may do on Google: roles that the cloud has, each on as little as it can be put on.

Objects are granted by role and by name, for Cloud Storage knows a condition on an object's name
(docs.cloud.google.com/storage, storage-add-bucket-conditional-iam-binding; the form of a name in
it: iam.googleapis.com documentation, resource attributes, recalled and so unverified). What each of
them allows that it need not is said in docs/gates.md.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from gputier.errors import Problem
from gputier.plan.boot import GROUP_GATES, BootPlan
from gputier.plan.fleet import FleetPlan

ENFORCE = "enforce"
#: What a node calls of its own group and of the group's autoscaler (node/cloud/compute.py): compute
#: v1 discovery of 2026-11-06 and iam-dataset@2073fa52a have each method's permission. A binding
#: cannot be put on a group, so these are of the project (docs/adr/0012-loop-breaker-on-gcp.md).
GROUP = (
    "compute.autoscalers.get",
    "compute.autoscalers.update",
    "compute.instanceGroupManagers.get",
    "compute.instanceGroupManagers.update",
)


_ID = r"[a-z][a-z0-9-]{4,28}[a-z0-9]"
_ADDRESS = r"[a-z0-9][a-z0-9.-]*@[a-z0-9.:-]+"
ACCOUNT = re.compile(rf"{_ID}|{_ADDRESS}|projects/[^/]+/serviceAccounts/({_ADDRESS}|{_ID})")


class Grant(NamedTuple):
    """One right. `role` is Google's own, "" for one that is made of `permissions`. `below` are the
    prefixes and `objects` the names that it is for in the stack's bucket; without any it is of the
    project. `key` names it."""

    key: str
    role: str
    permissions: tuple[str, ...]
    below: tuple[str, ...]
    objects: tuple[str, ...]
    why: str


def grants(fleet: FleetPlan, boot: BootPlan) -> Iterator[Grant]:
    """Least rights on Google (roles: iam-dataset@2073fa52a, 2026-08-22)."""
    name = fleet.resources
    yield _of_bucket(
        "bundle",
        "roles/storage.objectViewer",
        ("bundles/",),
        (),
        "fetch the bundle that prepares and checks the machine",
    )
    yield _of_bucket(
        "reports",
        "roles/storage.objectCreator",
        (f"reports/{name}/",),
        (),
        "leave a report of each boot where it outlives the machine; no report is written over",
    )
    yield _of_bucket(
        "state",
        "roles/storage.objectUser",
        (),
        (f"breaker/{name}.json", f"bad-hosts/{name}.json"),
        "stop a fleet whose machines all fail alike, and know a bad host again",
    )
    yield _of_project("metrics", "roles/monitoring.metricWriter", "send what the GPUs do")
    yield _of_project("logs", "roles/logging.logWriter", "send what the agent has to say")
    if boot.gate.kind == GROUP_GATES["gcp"] and boot.gate.mode == ENFORCE:
        yield Grant(
            "group",
            "",
            GROUP,
            (),
            (),
            "be replaced at once when a check fails, and end a loop of machines that are bought and"
            " fail for the same reason",
        )


def _of_bucket(
    key: str, role: str, below: tuple[str, ...], objects: tuple[str, ...], why: str
) -> Grant:
    return Grant(key, role, (), below, objects, why)


def _of_project(key: str, role: str, why: str) -> Grant:
    return Grant(key, role, (), (), (), why)


def condition(grant: Grant, bucket: str) -> str | None:
    """What an object must be called for this grant, in the language of conditions; None for a grant
    of the project."""
    root = f"projects/_/buckets/{bucket}/objects/"
    parts = [f'resource.name.startsWith("{root}{prefix}")' for prefix in grant.below]
    parts += [f'resource.name == "{root}{name}"' for name in grant.objects]
    return " || ".join(parts) or None


def role_id(account_id: str) -> str:
    """The id of the role that is made, which is a word of the account's: it takes no dash (IAM API
    v1, CreateRoleRequest.roleId)."""
    return account_id.replace("-", "_")


def role_problems(given: str | None, path: str) -> Iterator[Problem]:
    """A name that is no service account's: an id is 6 to 30 characters (IAM API v1, accountId)."""
    if given is None or ACCOUNT.fullmatch(given):
        return
    message = f"`{given}` is no service account of gcp"
    hint = "its id, its address, or projects/PROJECT/serviceAccounts/ADDRESS"
    yield Problem(f"{path}.identity.role", message, hint)


def email(given: str, project: str) -> str:
    """The address of a service account that is named by id, by address or by resource name."""
    name = given.rsplit("/", 1)[-1]
    return name if "@" in name else f"{name}@{project}.iam.gserviceaccount.com"
