"""AWS's reasons: (code, words, fix, source, phrases). Auto Scaling tells most as sentences."""

from __future__ import annotations

_ERRORS = "EC2 API reference, error codes (errors-overview), 2026"
_LAUNCH = "EC2 Auto Scaling user guide, ts-as-instancelaunchfailure, 2023-06"
_CAPACITY = "EC2 Auto Scaling user guide, ts-as-capacity, 2023-06"
_STATE = "botocore 1.44.8, EC2 API 2016-11-15, StateReason"
_HEALTH = "EC2 Auto Scaling user guide, ts-as-healthchecks, 2023-06"
_HOOK = "EC2 Auto Scaling user guide, lifecycle hooks tutorial, 2023-06"
_QUOTA_FIX = (
    "`gputier doctor {stack}` names the quota and where to raise it; fewer or smaller machines"
)
_ELSEWHERE = (
    "wait, the group tries again; or more `zones`, another type or another `capacity`:"
    " gputier plan {stack} --explain"
)
_UNVERIFIED = "recalled; unverified"

TABLE: tuple[tuple[str, str, str, str, tuple[str, ...]], ...] = (
    (
        "VcpuLimitExceeded",
        "the account's vCPU quota for this family is used up",
        _QUOTA_FIX,
        _ERRORS,
        ("vcpu capacity than your current vcpu limit",),
    ),
    (
        "InstanceLimitExceeded",
        "the account may run no more machines of this kind",
        _QUOTA_FIX,
        _ERRORS,
        ("than your current instance limit",),
    ),
    (
        "MaxSpotInstanceCountExceeded",
        "the account's Spot quota for this family is used up",
        _QUOTA_FIX,
        "github.com/aws-deepracer-community/deepracer-on-the-spot/issues/55, 2023-05",
        ("max spot instance count exceeded",),
    ),
    (
        "VolumeLimitExceeded",
        "the account's quota of disks is used up",
        "raise it in Service Quotas (Amazon EBS), or delete volumes that nobody uses",
        _ERRORS,
        (),
    ),
    (
        "Client.VolumeLimitExceeded",
        "the account's quota of disks is used up",
        "raise it in Service Quotas (Amazon EBS), or delete volumes that nobody uses",
        _STATE,
        (),
    ),
    (
        "InsufficientInstanceCapacity",
        "AWS has no machine of this type free in the zone",
        _ELSEWHERE,
        _CAPACITY,
        ("we currently do not have sufficient",),
    ),
    (
        "Server.InsufficientInstanceCapacity",
        "AWS has no machine of this type free in the zone",
        _ELSEWHERE,
        _STATE,
        (),
    ),
    (
        "UnfulfillableCapacity",
        "no Spot machine of this type is free in these zones",
        _ELSEWHERE,
        "github.com/aws/aws-parallelcluster-node/pull/673, 2025-06, after errors-overview",
        (
            "unable to fulfill capacity due to your request configuration",
            "there is no spot capacity available that matches your request",
        ),
    ),
    (
        "SpotMaxPriceTooLow",
        "Spot costs more now than the maximum of the launch template",
        "gputier sets no maximum, so somebody did: pulumi up --refresh --stack {stack}",
        "github.com/aws/aws-parallelcluster-node/pull/673, 2025-06",
        (),
    ),
    (
        "Unsupported",
        "the zone does not sell this type, or not in this configuration",
        "name other `zones` for `{workload}`; `gputier doctor {stack}` asks which sell it",
        _LAUNCH,
        (
            "is not supported in your requested availability zone",
            "the requested configuration is currently not supported",
            "the requested availability zone is no longer supported",
        ),
    ),
    (
        "InvalidFleetConfiguration",
        "the zone does not sell this type, or the launch template asks for what cannot be combined",
        "name other `zones` for `{workload}`; `gputier doctor {stack}` asks which sell it",
        "github.com/mludvig/aws-ethereum-miner/issues/23, 2021-12",
        (),
    ),
    (
        "ReservationCapacityExceeded",
        "every place of the reservation is taken",
        "see who else runs in it, or enlarge it",
        _ERRORS,
        (),
    ),
    (
        "InvalidCapacityReservationId.NotFound",
        "there is no such reservation in this account and region",
        "correct `capacity.id` of `{workload}`, lock and deploy",
        _UNVERIFIED,
        (),
    ),
    (
        "Client.InvalidKMSKey.InvalidState",
        "machines vanish as they start: the disks' key is disabled, or Auto Scaling may not use it",
        "enable the key, and let the role AWSServiceRoleForAutoScaling use it and make grants in"
        " the key's policy",
        "EC2 Auto Scaling user guide, key-policy-requirements-EBS-encryption, 2026",
        ("the kms key provided is in an incorrect state",),
    ),
    (
        "Client.InternalError",
        "machines vanish as they start: most often Auto Scaling may not use the disks' key",
        "let the role AWSServiceRoleForAutoScaling use the key and make grants in its policy",
        _LAUNCH,
        ("client error on launch",),
    ),
    (
        "Client.InvalidSnapshot.NotFound",
        "the snapshot of a disk is not there",
        "correct `disk.snapshot` of `{workload}`, or the image, lock and deploy",
        _STATE,
        (),
    ),
    (
        "InsufficientFreeAddressesInSubnet",
        "the subnet has no address left",
        "larger or more subnets: `network.subnets` of `{workload}`",
        _ERRORS,
        ("does not have enough free addresses",),
    ),
    (
        "InvalidAMIID.NotFound",
        "the image is not there, or not shared with this account",
        "gputier lock {stack} --images {workload}, then deploy",
        _ERRORS,
        ("the image id '… does not exist",),
    ),
    (
        "InvalidAMIID.Unavailable",
        "the image cannot be used any more",
        "gputier lock {stack} --images {workload}, then deploy",
        _ERRORS,
        (),
    ),
    (
        "InvalidGroup.NotFound",
        "a security group of the launch template was deleted",
        "pulumi up --refresh --stack {stack}",
        _LAUNCH,
        ("the security group … does not exist",),
    ),
    (
        "InvalidIamInstanceProfile",
        "the machines' role was deleted, or is not known yet",
        "wait a minute after a deployment; else: pulumi up --refresh --stack {stack}",
        _UNVERIFIED,
        ("invalid iam instance profile",),
    ),
    (
        "UnauthorizedOperation",
        "Auto Scaling may not do what the launch template asks for",
        "a service control policy or the service-linked role forbids it: `gputier doctor {stack}`",
        _ERRORS,
        ("you are not authorized to perform this operation",),
    ),
    (
        "OptInRequired",
        "the account has not subscribed to the image or the service",
        "accept the image's terms in AWS Marketplace, or take another image",
        _ERRORS,
        ("you are not subscribed to this service", "in order to use this aws marketplace product"),
    ),
    (
        "PendingVerification",
        "AWS is verifying the account in this region",
        "wait for AWS's mail",
        _ERRORS,
        ("your account is currently being verified", "pending verification"),
    ),
    (
        "Blocked",
        "AWS has blocked the account",
        "ask AWS Support",
        _ERRORS,
        ("account is currently blocked",),
    ),
    (
        "gate-rejected",
        "the gate rejected what was launched",
        "read the newest report; docs/runbooks/rejected-nodes.md",
        _HOOK,
        ("lifecycle action completed with abandon result",),
    ),
    (
        "gate-silent",
        "machines said nothing until their launch hook ran out",
        "they did not get as far as their network, bundle or role: read the console of one",
        "AWS Knowledge Center, lifecycle-actions-code-deploy, its sample of 2016-07",
        ("was abandoned: heartbeat timeout",),
    ),
    (
        "Server.SpotInstanceTermination",
        "EC2 took Spot machines back",
        "others are on their way; `capacity: on_demand`, or several zones, where that is too often",
        _STATE,
        (),
    ),
    (
        "Server.SpotInstanceShutdown",
        "EC2 stopped a Spot machine",
        "it starts again when there is room; `capacity: on_demand` where that is too often",
        _STATE,
        (),
    ),
    (
        "Server.InternalError",
        "AWS failed while the machine started",
        "nothing: another one is started",
        _STATE,
        (),
    ),
    (
        "Server.ScheduledStop",
        "AWS retired the hardware under a machine",
        "nothing for a group; a lone machine: stop and start it",
        _STATE,
        (),
    ),
    (
        "Client.InstanceInitiatedShutdown",
        "a machine was shut down from inside",
        "see what did: `journalctl --boot -1` on one that is still there",
        _STATE,
        (),
    ),
    (
        "Client.UserInitiatedShutdown",
        "somebody stopped or terminated a machine",
        "CloudTrail knows who: StopInstances, TerminateInstances",
        _STATE,
        (),
    ),
    (
        "health-check",
        "EC2 says that a machine was terminated or stopped",
        "Spot: an interruption; else CloudTrail knows who: StopInstances, TerminateInstances",
        _HEALTH,
        ("health check indicating it has been terminated or stopped",),
    ),
)
