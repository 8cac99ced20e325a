"""What doctor checks: each with what it asks, the right that asking takes, why, and the way out."""

from __future__ import annotations

from typing import NamedTuple


class Check(NamedTuple):
    """One check of one cloud. `calls` are the actions it takes, as a policy names them (AWS) or as
    permissions (Google); `what` is what makes it good; `why` what happens otherwise; `fix` the way
    out in words."""

    name: str
    cloud: str
    calls: tuple[str, ...]
    what: str
    why: str
    fix: str


def _aws(name: str, calls: str, what: str, why: str, fix: str) -> Check:
    return Check(name, "aws", tuple(calls.split()), what, why, fix)


def _gcp(name: str, calls: str, what: str, why: str, fix: str) -> Check:
    return Check(name, "gcp", tuple(calls.split()), what, why, fix)


#: Of no cloud's: what has to be known before one is asked.
PLACED = Check(
    "placed",
    "",
    (),
    "a machine that fits, on a cloud that is asked",
    "nothing can be made of a workload that fits nowhere",
    "`gputier plan STACK` names the least that would have to go",
)

IDENTITY_AWS = _aws(
    "identity",
    "sts:GetCallerIdentity",
    "somebody is signed in with the stack's profile and roles, to an account that it allows",
    "everything else is asked as whoever this is, and a deployment acts as them",
    "sign in, or set `aws:profile` or `aws:assumeRoles`",
)
OFFERED_AWS = _aws(
    "offered",
    "ec2:DescribeInstanceTypeOfferings",
    "the machine is sold in every zone of the plan",
    "a group asks in each of its zones, and a zone that does not sell the machine fails each time",
    "fewer zones, or another region",
)
QUOTA_AWS = _aws(
    "quota",
    "servicequotas:GetServiceQuota ec2:DescribeInstances ec2:DescribeCapacityReservations",
    "the quota of the family, on demand and spot apart, holds the vCPU of all fleets of the stack"
    " at their maximum beside what others use",
    "machines beyond it fail with VcpuLimitExceeded or MaxSpotInstanceCountExceeded",
    "`aws service-quotas request-service-quota-increase`; large ones take days",
)
RESERVATION_AWS = _aws(
    "reservation",
    "ec2:DescribeCapacityReservations",
    "the reservation or block is there, active or yet to begin as declared, and of the fleet's"
    " type, zone and count",
    "a group that names a reservation that does not match starts nothing",
    "declare what is reserved, or another reservation",
)
IMAGE_AWS = _aws(
    "image",
    "ssm:GetParameter ec2:DescribeImages",
    "the image is there, for the machine's architecture, no larger than its disk, and pinned in"
    " production; no placeholder",
    "a machine of another architecture does not start, and a placeholder is refused",
    "`gputier lock STACK --images`, or `software.image`",
)
FABRIC_AWS = _aws(
    "fabric",
    "ec2:DescribeInstanceTypes",
    "the size has EFA, with as many interfaces as are planned",
    "a template with interfaces that a size does not have is refused at launch",
    "`fabric: none`, or a size with EFA",
)
NETWORK_AWS = _aws(
    "network",
    "ec2:DescribeVpcs ec2:DescribeSubnets",
    "subnets of the network that is named lie in zones of the plan and have addresses left",
    "a fleet without a subnet in its zones cannot be made, and one without addresses cannot grow",
    "a subnet there, or `zones` of the subnets",
)
RIGHTS_AWS = _aws(
    "permissions",
    "iam:SimulatePrincipalPolicy iam:GetRole",
    "the caller may do what a deployment of this stack does",
    "a deployment that may not do one thing stops half way",
    "allow the actions that are named",
)
ROLES_AWS = _aws(
    "roles",
    "iam:GetRole iam:SimulatePrincipalPolicy",
    "the service's own roles are there, or the caller may make them: Auto Scaling's, and Spot's"
    " where spot is bought",
    "the first group or spot machine of an account fails without them",
    "`aws iam create-service-linked-role`",
)
TAG_AWS = _aws(
    "cost-tag",
    "ce:ListCostAllocationTags",
    "the tag `gputier:fleet` is activated for cost allocation",
    "a budget counts by it: until it is active the budget stays at 0 and tells nobody",
    "`aws ce update-cost-allocation-tags-status`, from the organisation's management account",
)
BUDGET_AWS = _aws(
    "budget",
    "budgets:ViewBudget",
    "budgets can be read, and no budget of the same name is somebody else's kind",
    "a budget of the same name that is no cost budget keeps ours from being made",
    "rename or delete it",
)
ANOMALIES_AWS = _aws(
    "anomalies",
    "ce:GetAnomalyMonitors",
    "the monitor of unusual cost that `budget.anomalies` names is there; one that the account has"
    " is told of, so that it can be adopted",
    "a subscription to a monitor that is not there fails the deployment",
    "`budget.anomalies` with the ARN of one that is there, or `create`",
)

IDENTITY_GCP = _gcp(
    "identity",
    "resourcemanager.projects.get",
    "the project is there and active",
    "everything else is asked of this project, and a deployment acts in it",
    "sign in, or set `gcp:project`",
)
API_GCP = _gcp(
    "api",
    "serviceusage.services.get",
    "the services that a deployment calls are enabled",
    "a call of a service that is not enabled fails with SERVICE_DISABLED",
    "`gcloud services enable`",
)
OFFERED_GCP = _gcp(
    "offered",
    "compute.machineTypes.get compute.acceleratorTypes.get compute.regions.get",
    "the machine, and the GPU attached to it, is sold in every zone of the plan",
    "a group asks in each of its zones, and a zone that does not sell the machine fails each time",
    "fewer zones, or another region",
)
QUOTA_GCP = _gcp(
    "quota",
    "compute.regions.get compute.projects.get serviceusage.quotas.get compute.instances.list",
    "the quotas of the GPU in the region, on demand and spot apart, and of all GPUs of the project"
    " hold all fleets of the stack at their maximum beside what is used",
    "machines beyond it fail with QUOTA_EXCEEDED",
    "`gcloud beta quotas preferences create`; large ones take days",
)
RESERVATION_GCP = _gcp(
    "reservation",
    "compute.reservations.get compute.futureReservations.get",
    "the reservation is there, ready, of the fleet's type, zone and count, and free",
    "a group that names a reservation that does not match starts nothing",
    "declare what is reserved, or another reservation",
)
IMAGE_GCP = _gcp(
    "image",
    "compute.images.get compute.images.getFromFamily",
    "the image is there, for the machine's architecture, not withdrawn, and pinned in production",
    "a machine of another architecture does not start",
    "`software.image`",
)
NETWORK_GCP = _gcp(
    "network",
    "compute.networks.get compute.subnetworks.get",
    "the network and the subnets that are named are there, in the region, and packets are as large"
    " as the fabric wants",
    "GPUs that talk over a network of smaller packets are slow, or do not talk",
    "`gcloud compute networks update --mtu`, with its machines stopped",
)
FABRIC_GCP = _gcp(
    "fabric",
    "compute.networkProfiles.get",
    "the zone has the network profile that the RDMA network is made with",
    "an RDMA network cannot be made in a zone without it",
    "another zone, or `fabric: none`",
)
RIGHTS_GCP = _gcp(
    "permissions",
    "resourcemanager.projects.testIamPermissions",
    "the caller may do what a deployment of this stack does",
    "a deployment that may not do one thing stops half way",
    "grant the roles that are named",
)
BUDGET_GCP = _gcp(
    "budget",
    "resourcemanager.projects.get billing.budgets.list",
    "the project is billed, to the account that the budget names, whose budgets can be read",
    "without billing no machine starts, and a budget is a part of the billing account",
    "link a billing account; roles/billing.costsManager on it",
)

#: Every check, in the order in which they are shown.
CHECKS = (
    PLACED,
    IDENTITY_AWS,
    OFFERED_AWS,
    QUOTA_AWS,
    RESERVATION_AWS,
    IMAGE_AWS,
    FABRIC_AWS,
    NETWORK_AWS,
    RIGHTS_AWS,
    ROLES_AWS,
    TAG_AWS,
    BUDGET_AWS,
    ANOMALIES_AWS,
    IDENTITY_GCP,
    API_GCP,
    OFFERED_GCP,
    QUOTA_GCP,
    RESERVATION_GCP,
    IMAGE_GCP,
    FABRIC_GCP,
    NETWORK_GCP,
    RIGHTS_GCP,
    BUDGET_GCP,
)
