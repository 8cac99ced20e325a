"""Google's reasons: (code, words, fix, source, phrases), of `lastAttempt`, `listErrors`, operations
and the autoscaler's details."""

from __future__ import annotations

_AVAILABILITY = "Compute Engine, troubleshooting-resource-availability, 2026"
_BULK = "Compute Engine, view-cancel-vm-bulk-creation-in-migs, 2026"
_CLIENT = "github.com/kubernetes/autoscaler, gce/autoscaling_gce_client.go, 2025"
_DISCOVERY = "compute.v1 discovery revision 20261106, AutoscalerStatusDetails"
_UNVERIFIED = "recalled; unverified"
_ELSEWHERE = (
    "wait, the group tries again; or more `zones`, another type or another `capacity`:"
    " gputier plan {stack} --explain"
)
_QUOTA_FIX = "`gputier doctor {stack}` names the quota and where to raise it"

TABLE: tuple[tuple[str, str, str, str, tuple[str, ...]], ...] = (
    (
        "ZONE_RESOURCE_POOL_EXHAUSTED",
        "Google has no machine of this type free in the zone",
        _ELSEWHERE,
        _AVAILABILITY,
        ("does not have enough resources available to fulfill the request",),
    ),
    (
        "ZONE_RESOURCE_POOL_EXHAUSTED_WITH_DETAILS",
        "Google has no machine of this type free in the zone",
        _ELSEWHERE,
        _AVAILABILITY,
        ("is currently unavailable in the",),
    ),
    (
        "RESOURCE_POOL_EXHAUSTED",
        "Google has no machine of this type free",
        _ELSEWHERE,
        _CLIENT,
        (),
    ),
    (
        "QUOTA_EXCEEDED",
        "a quota of the project is used up",
        _QUOTA_FIX,
        _BULK,
        ("quota '… exceeded",),
    ),
    (
        "IP_SPACE_EXHAUSTED",
        "the subnet has no address left",
        "a larger range or another subnet: `network.subnets` of `{workload}`",
        _CLIENT,
        (),
    ),
    (
        "IP_SPACE_EXHAUSTED_WITH_DETAILS",
        "the subnet has no address left",
        "a larger range or another subnet: `network.subnets` of `{workload}`",
        _CLIENT,
        (),
    ),
    (
        "PERMISSIONS_ERROR",
        "the group's agent may not make this machine",
        "give PROJECT_NUMBER@cloudservices.gserviceaccount.com what the message names, and the"
        " right to act as the machines' service account",
        _CLIENT,
        ("when acting as",),
    ),
    (
        "CONDITION_NOT_MET",
        "a policy of the organisation forbids this machine",
        "read the constraint in the message; have the project exempted, or change what it forbids"
        " (an external address: `network.egress`)",
        _CLIENT,
        ("constraint constraints/",),
    ),
    (
        "RESOURCE_NOT_FOUND",
        "something that the template names is not there: image, subnet, service account, policy",
        "pulumi up --refresh --stack {stack}; an image: gputier lock {stack} --images {workload}",
        "terraform-google-managed-instance-group/issues/40, 2019-03; the code unverified",
        ("the resource '… was not found",),
    ),
    (
        "RESOURCE_IN_USE_BY_ANOTHER_RESOURCE",
        "a disk or an address that the machine needs is taken",
        "see by what: the message names it",
        _UNVERIFIED,
        (),
    ),
    (
        "UNSUPPORTED_OPERATION",
        "Google does not do this with this machine type",
        "read the message; `gputier plan {stack} --explain` has other machines",
        _UNVERIFIED,
        (),
    ),
    (
        "INVALID_USAGE",
        "the template asks for what cannot be combined",
        "read the message, change the declaration, lock and deploy",
        _UNVERIFIED,
        (),
    ),
    (
        "INTERNAL_ERROR",
        "Google failed while the machine started",
        "nothing: the group tries again; ask Google where it stays",
        "github.com/hashicorp/terraform-provider-google/issues/1961, 2018-08",
        (),
    ),
    (
        "NOT_ENOUGH_QUOTA_AVAILABLE",
        "the autoscaler wants more machines than a quota allows",
        _QUOTA_FIX,
        _DISCOVERY,
        (),
    ),
    (
        "ZONE_RESOURCE_STOCKOUT",
        "the autoscaler finds no machine of this type free in the zone",
        _ELSEWHERE,
        _DISCOVERY,
        (),
    ),
    (
        "REGION_RESOURCE_STOCKOUT",
        "the autoscaler finds no machine of this type free in the region",
        _ELSEWHERE,
        _DISCOVERY,
        (),
    ),
    (
        "MISSING_CUSTOM_METRIC_DATA_POINTS",
        "the autoscaler gets no figures of the machines",
        "the agent sends them once a machine works: docs/node.md; an empty fleet sends none",
        _DISCOVERY,
        (),
    ),
    (
        "CUSTOM_METRIC_INVALID",
        "the autoscaler cannot read the figure that it goes by",
        "pulumi up --refresh --stack {stack}",
        _DISCOVERY,
        (),
    ),
    (
        "compute.instances.preempted",
        "Google took Spot machines back",
        "others are on their way; `capacity: on_demand`, or several zones, where that is too often",
        "public operation logs of 2026-07 (`gcloud compute operations list`)",
        (),
    ),
)
