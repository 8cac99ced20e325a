"""What things are called: logical names for Pulumi, physical ones for the cloud.

A name is made of project, stack and workload alone. It never holds a position in a list, and it
changes only when one of the three does: a changed logical name replaces what it names, and a
physical one is derived a second time by the machine's own boot script.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from typing import NamedTuple

#: The tag that a fleet's costs and machines are found by. Its value is the group's name.
FLEET_TAG = "gputier:fleet"
#: Hex digits of SHA-256 that keep names apart which would look alike.
DIGITS = 8


class Kind(NamedTuple):
    """A kind of resource: what its name ends in, and the characters the cloud allows."""

    ending: str
    longest: int
    source: str


_ASG = "autoscaling API 2011-01-01, CreateAutoScalingGroup and PutLifecycleHook: 255"
_RFC1035 = "compute API v1, resource names: RFC 1035, 63"

#: Per cloud, what a workload's resources are called. The word is a part of the logical name.
KINDS: Mapping[str, Mapping[str, Kind]] = {
    "aws": {
        "group": Kind("", 255, _ASG),
        "hook": Kind("prove", 255, _ASG),
        "template": Kind("", 128, "EC2 API 2016-11-15, CreateLaunchTemplate: 3 to 128"),
        "role": Kind("node", 64, "IAM API 2010-05-08, CreateRole: 64"),
        "profile": Kind("node", 128, "IAM API 2010-05-08, CreateInstanceProfile: 128"),
        "placement": Kind("close", 255, "EC2 API 2016-11-15, CreatePlacementGroup: 255"),
        "security-group": Kind("node", 255, "EC2 API 2016-11-15, CreateSecurityGroup: 255"),
        "log-group": Kind("", 512, "CloudWatch Logs API 2014-03-28, CreateLogGroup: 512"),
        "alarm": Kind("", 200, "CloudWatch API 2010-08-01, PutMetricAlarm: 255, a prefix here"),
        "dashboard": Kind("", 255, "CloudWatch API 2010-08-01, PutDashboard: 255"),
        "budget": Kind("", 100, "Budgets API 2016-10-20, CreateBudget: 100"),
        "stop": Kind("stop", 64, "Lambda API 2015-03-31, CreateFunction: 64"),
    },
    "gcp": {
        "group": Kind("", 63, _RFC1035),
        # A group adds a dash and four characters to it for each machine.
        "instance": Kind("", 58, "compute API v1, baseInstanceName: 1 to 58"),
        # Pulumi adds a dash and characters of its own: a changed template is another one.
        "template": Kind("", 53, "pulumi_gcp 10.2.0, namePrefix: 54 with the dash"),
        "health-check": Kind("healthz", 63, _RFC1035),
        "autoscaler": Kind("", 63, _RFC1035),
        "placement": Kind("close", 63, _RFC1035),
        "firewall": Kind("healthz", 63, _RFC1035),
        "service-account": Kind("node", 30, "IAM API v1, accountId: 6 to 30"),
        "log": Kind("", 63, "Logging API v2, log ids: 512; kept as short as the rest"),
        "alarm": Kind("", 63, "Monitoring API v3, display names: 512; kept as short as the rest"),
        "dashboard": Kind("", 63, "Monitoring API v1, display names; kept as short as the rest"),
        "budget": Kind("", 60, "Billing Budgets API v1, displayName: 60"),
        # Of an account, a topic, a workflow and what starts it: the account's is the shortest.
        "stop": Kind("stop", 30, "IAM API v1, accountId: 6 to 30"),
        "hours": Kind("hours", 30, "IAM API v1, accountId: 6 to 30"),
    },
}  # fmt: skip


class Names(NamedTuple):
    """The names of one workload of a stack: `names["group"]`, `names.logical("group")`."""

    cloud: str
    project: str
    stack: str
    workload: str

    def of(self, kind: str) -> str:
        """The physical name. Raises `KeyError` for what this cloud has not."""
        return _named(self, KINDS[self.cloud][kind])

    def logical(self, kind: str) -> str:
        """The name in Pulumi, below the stack's own: public, and as stable as the workload's."""
        if kind not in KINDS[self.cloud]:
            raise KeyError(kind)
        return f"{self.workload}-{kind}"

    def all(self) -> dict[str, str]:
        """Every physical name by kind."""
        return {kind: self.of(kind) for kind in KINDS[self.cloud]}


def names_of(cloud: str, project: str, stack: str, workload: str) -> Names:
    """The names of a workload. `stack` may carry Pulumi's `organisation/project/`, which is
    dropped. Raises `KeyError` for a cloud that is not deployed."""
    if cloud not in KINDS:
        raise KeyError(cloud)
    return Names(cloud, project, stack.rsplit("/", 1)[-1], workload)


def _named(names: Names, kind: Kind) -> str:
    """`<project>-<stack>-<workload>[-ending]`, in what every cloud allows.

    Digits of a digest are added where the name would not tell three parts apart: when a dash in
    project or stack leaves open where one ends, when characters were changed, when it was cut.
    """
    given = "-".join((names.project, names.stack, names.workload))
    plain = re.sub(r"[^a-z0-9-]+", "-", given.lower()).strip("-")
    if not plain[:1].isalpha():
        plain = f"g-{plain}"
    ending = f"-{kind.ending}" if kind.ending else ""
    unclear = plain != given or "-" in names.project or "-" in names.stack
    if not unclear and len(plain) + len(ending) <= kind.longest:
        return plain + ending
    parts = "\0".join((names.project, names.stack, names.workload))
    ending = f"-{hashlib.sha256(parts.encode()).hexdigest()[:DIGITS]}{ending}"
    return plain[: kind.longest - len(ending)].rstrip("-") + ending
