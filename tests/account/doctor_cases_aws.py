"""AWS: each check with an account in which it is good, bad, and not to be told."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from tests.account.amazon_account import errors
from tests.account.doctor_amazon import (
    MONITOR,
    block,
    budget,
    image,
    machine,
    machines,
    monitors,
    quota,
    reservation,
    role,
    simulated,
    subnets,
    tags,
    zones_of,
)
from tests.account.doctor_case import Case, Change, aws, both, well
from tests.account.doctor_world import World

from gputier.account.answers import BAD, GOOD, UNASKED

DENIED = "AccessDeniedException"


def offered(*zones: str) -> Change:
    found = [{"InstanceType": "g6.2xlarge", "Location": zone} for zone in zones]
    return aws("ec2", "describe_instance_type_offerings", {"InstanceTypeOfferings": found})


def offered_by_name(*zones: str) -> Change:
    """Zones of this account's names; all of them by id."""

    def answer(asked: Mapping[str, Any]) -> dict[str, Any]:
        named = asked["LocationType"] == "availability-zone"
        found = zones if named else tuple(zones_of("us-east-1"))
        return {"InstanceTypeOfferings": [{"Location": zone} for zone in found]}

    return aws("ec2", "describe_instance_type_offerings", answer)


def without_role(name: str, *, denied: str = "") -> Change:
    """One of the services' own roles is not there."""

    def change(world: World) -> None:
        def ask(asked: Any) -> Any:
            return "NoSuchEntity" if asked["RoleName"] == name else role(asked["RoleName"])

        world.amazon.has("iam", "get_role", ask)
        if denied:
            world.amazon.has(
                "iam",
                "simulate_principal_policy",
                simulated(
                    "implicitDeny", "CreateServiceLinkedRole", ("aws:Key",) if denied == "?" else ()
                ),
            )

    return change


AWS = [
    Case("somebody", "aws", "aws", "identity", well, GOOD, "account 111122223333 as assumed-role"),
    Case("another account", "aws", "aws", "identity", aws("sts", "get_caller_identity",
         {"Account": "999999999999", "Arn": "arn:aws:iam::999999999999:user/ann"}), BAD,
         "account 999999999999, which `aws:allowedAccountIds` keeps this stack from",
         "`aws:profile`"),
    Case("nobody", "aws", "aws", "identity", aws("sts", "get_caller_identity",
         errors.NoCredentialsError()), UNASKED, "Unable to locate", "AWS_PROFILE"),
    # Where the machine is sold.
    Case("sold", "aws", "aws", "offered", well, GOOD, "g6.2xlarge in use1-az1, use1-az2"),
    Case("not in a zone", "aws", "aws", "offered", offered("use1-az1", "use1-az2"), BAD,
         "g6.2xlarge is not sold in use1-az4, use1-az5, use1-az6; sold in use1-az1, use1-az2",
         "`zones: [use1-az1, use1-az2]` of chat, then gputier lock aws"),
    Case("not in the region", "aws", "aws", "offered", offered(), BAD,
         "g6.2xlarge is not sold in us-east-1", "`regions` of chat without us-east-1"),
    Case("may not ask", "aws", "aws", "offered",
         aws("ec2", "describe_instance_type_offerings", "UnauthorizedOperation"), UNASKED,
         "UnauthorizedOperation", "allow ec2:DescribeInstanceTypeOfferings"),
    Case("zones by this account's names", "by-name", "aws", "offered", well, GOOD,
         "g6.xlarge in us-east-1a, us-east-1b", workload="named"),
    Case("not in a zone by its name", "by-name", "aws", "offered", offered_by_name("us-east-1b"),
         BAD, "g6.xlarge is not sold in us-east-1a; sold in", "`zones: [us-east-1b]` of named",
         "named"),
    # Quotas.
    Case("enough", "aws", "aws", "quota", well, GOOD,
         "52 vCPU needed of 5000, 0 in use by others: L-DB2E81BA"),
    Case("as many as are needed", "aws", "aws", "quota",
         aws("service-quotas", "get_service_quota", quota(52)), GOOD, "52 vCPU needed of 52"),
    Case("a new account", "aws", "aws", "quota",
         aws("service-quotas", "get_service_quota", quota(0)), BAD,
         "52 vCPU needed of 0, which is what a new account has: L-DB2E81BA Running On-Demand G and"
         " VT instances in us-east-1",
         "aws service-quotas request-service-quota-increase --service-code ec2 --quota-code"
         " L-DB2E81BA --desired-value 52 --region us-east-1 --profile ml"),
    Case("others use it", "aws", "aws", "quota", both(
         aws("service-quotas", "get_service_quota", quota(60)),
         aws("ec2", "describe_instances", machines(
             machine("g5.xlarge", CpuOptions={"CoreCount": 2, "ThreadsPerCore": 2}),
             machine("g6.2xlarge"), machine("g6.xlarge", "aws"),
             machine("g6.xlarge", lifecycle="spot")))), BAD,
         "52 vCPU needed of 60, 12 in use by others", "--desired-value 64"),
    Case("our own machines are not counted twice", "aws", "aws", "quota", both(
         aws("service-quotas", "get_service_quota", quota(60)),
         aws("ec2", "describe_instances", machines(machine("g6.12xlarge", "aws")))), GOOD,
         "52 vCPU needed of 60, 0 in use by others"),
    Case("what others have reserved counts", "aws", "aws", "quota", both(
         aws("service-quotas", "get_service_quota", quota(60)),
         aws("ec2", "describe_capacity_reservations",
             reservation(InstanceType="g6.2xlarge", AvailableInstanceCount=2))), BAD,
         "52 vCPU needed of 60, 16 in use by others"),
    Case("a block counts against no quota", "aws", "aws", "quota", both(
         aws("service-quotas", "get_service_quota", quota(60)),
         aws("ec2", "describe_capacity_reservations",
             block(InstanceType="g6.2xlarge", AvailableInstanceCount=2, State="active"))), GOOD,
         "52 vCPU needed of 60, 0 in use by others"),
    Case("our reservation is a part of what is needed", "reserved", "aws", "quota",
         aws("service-quotas", "get_service_quota", quota(768)), GOOD,
         "768 vCPU needed of 768, 0 in use by others: L-417A185B"),
    Case("asked for already", "aws", "aws", "quota", both(
         aws("service-quotas", "get_service_quota", quota(8)),
         aws("service-quotas", "list_requested_service_quota_change_history_by_quota",
             {"RequestedQuotas": [{"DesiredValue": 96.0, "Status": "CASE_OPENED"},
                                  {"DesiredValue": 999.0, "Status": "DENIED"}]})), BAD,
         "of 8: L-DB2E81BA Running On-Demand G and VT instances in us-east-1; 96 have been asked",
         "console.aws.amazon.com/servicequotas/home/services/ec2/quotas/L-DB2E81BA"),
    Case("no value of its own", "aws", "aws", "quota", both(
         aws("service-quotas", "get_service_quota", "NoSuchResourceException"),
         aws("service-quotas", "get_aws_default_service_quota", quota(0))), BAD, "of 0, which is"),
    Case("may not ask", "aws", "aws", "quota",
         aws("service-quotas", "get_service_quota", DENIED), UNASKED, DENIED,
         "allow servicequotas:GetServiceQuota"),
    Case("what is in use is not told", "aws", "aws", "quota",
         aws("ec2", "describe_instances", "UnauthorizedOperation"), UNASKED,
         "52 vCPU needed of 5000; what is in use: UnauthorizedOperation", "ec2:DescribeInstances"),
    Case("a type that nobody knows", "aws", "aws", "quota",
         aws("ec2", "describe_instances", machines(machine("g99.xlarge"))), UNASKED,
         "how many vCPU g99.xlarge has is not known here"),
    # What is reserved.
    Case("as declared", "reserved", "aws", "reservation", well, GOOD,
         "cr-0abc12345678def00 active: p5.48xlarge in use1-az4, 4 of 4 free"),
    Case("a block that begins later", "block", "aws", "reservation",
         aws("ec2", "describe_capacity_reservations", block()), GOOD, "scheduled: p5.48xlarge"),
    Case("gone", "reserved", "aws", "reservation", aws("ec2", "describe_capacity_reservations",
         "InvalidCapacityReservationId.NotFound"), BAD, "is not there in us-east-1",
         "`capacity` of foundation"),
    Case("of others", "reserved", "aws", "reservation",
         aws("ec2", "describe_capacity_reservations", {"CapacityReservations": []}), BAD,
         "no reservation of p5.48xlarge"),
    Case("over", "reserved", "aws", "reservation",
         aws("ec2", "describe_capacity_reservations", reservation(State="expired")), BAD,
         "cr-0abc12345678def00 expired: it is not active"),
    Case("of another type", "reserved", "aws", "reservation",
         aws("ec2", "describe_capacity_reservations", reservation(InstanceType="p5e.48xlarge")),
         BAD, "it is of p5e.48xlarge, not p5.48xlarge"),
    Case("elsewhere", "reserved", "aws", "reservation",
         aws("ec2", "describe_capacity_reservations", reservation(AvailabilityZoneId="use1-az1")),
         BAD, "it is in use1-az1, not use1-az4"),
    Case("too few", "reserved", "aws", "reservation",
         aws("ec2", "describe_capacity_reservations", reservation(TotalInstanceCount=2)), BAD,
         "it holds 2, and the fleet has 4 at most"),
    Case("for Windows", "reserved", "aws", "reservation",
         aws("ec2", "describe_capacity_reservations", reservation(InstancePlatform="Windows")),
         BAD, "it is for Windows"),
    Case("a block where none was declared", "reserved", "aws", "reservation",
         aws("ec2", "describe_capacity_reservations", block(State="active")), BAD,
         "it is a capacity block"),
    Case("a block that is none", "block", "aws", "reservation", well, BAD,
         "it is no capacity block"),
    Case("other dates", "block", "aws", "reservation",
         aws("ec2", "describe_capacity_reservations",
             block(EndDate=datetime(2026, 12, 17, 11, 30, tzinfo=UTC))), BAD,
         "it ends at 2026-12-17T11:30:00Z, not 2026-12-20T11:30:00Z"),
    Case("without an id", "by-name", "aws", "reservation", well, GOOD,
         "active: p5.48xlarge in use1-az4", workload="unnamed"),
    Case("without an id, the best counts", "by-name", "aws", "reservation",
         aws("ec2", "describe_capacity_reservations", {"CapacityReservations": [
             *reservation(TotalInstanceCount=0, AvailabilityZoneId="use1-az1")[
                 "CapacityReservations"],
             *reservation(AvailabilityZoneId="use1-az1")["CapacityReservations"]]}), BAD,
         "active: it is in use1-az1, not use1-az4", workload="unnamed"),
    Case("a resource group", "by-name", "aws", "reservation", well, UNASKED,
         "is a resource group", workload="group"),
    Case("may not ask", "reserved", "aws", "reservation",
         aws("ec2", "describe_capacity_reservations", "UnauthorizedOperation"), UNASKED,
         "UnauthorizedOperation", "allow ec2:DescribeCapacityReservations"),
    # Images.
    Case("the newest", "aws", "aws", "image", well, GOOD,
         "for x86_64, the newest of its family and not pinned"),
    Case("pinned", "prod", "aws", "image", well, GOOD, "for x86_64, pinned$", workload="own"),
    Case("not old yet", "prod", "aws", "image",
         aws("ec2", "describe_images", image(DeprecationTime="2028-01-01T00:00:00.000Z")), GOOD,
         "for x86_64, pinned$", workload="own"),
    Case("old", "prod", "aws", "image",
         aws("ec2", "describe_images", image(DeprecationTime="2026-01-01T00:00:00.000Z")), GOOD,
         "its owner calls it old since 2026-01-01", workload="own"),
    Case("a placeholder", "prod", "aws", "image", well, BAD, "is a placeholder",
         "`gputier lock prod --images` pins today's", "chat"),
    Case("not pinned in production", "prod", "aws", "image", well, BAD, "not pinned",
         "gputier lock prod --images moves", "moves"),
    Case("no such family", "aws", "aws", "image",
         aws("ssm", "get_parameter", "ParameterNotFound"), BAD, "is not there in us-east-1",
         "`software.image: ami-…` of chat"),
    Case("no such image", "prod", "aws", "image",
         aws("ec2", "describe_images", "InvalidAMIID.NotFound"), BAD, "is not there",
         "gputier lock prod --images own", "own"),
    Case("an image of others", "prod", "aws", "image",
         aws("ec2", "describe_images", {"Images": []}), BAD, "or not for this account",
         workload="own"),
    Case("not ready", "aws", "aws", "image", aws("ec2", "describe_images", image(State="failed")),
         BAD, "is failed", "gputier lock aws --images chat"),
    Case("of another architecture", "aws", "aws", "image",
         aws("ec2", "describe_images", image(Architecture="arm64")), BAD,
         "is for arm64, and g6.2xlarge is x86_64"),
    Case("too large", "aws", "aws", "image", aws("ec2", "describe_images", image(
         BlockDeviceMappings=[{"DeviceName": "/dev/sda1", "Ebs": {"VolumeSize": 900}}])), BAD,
         "needs 900 GiB, and the root disk has"),
    Case("may not ask", "aws", "aws", "image", aws("ssm", "get_parameter", DENIED), UNASKED,
         DENIED, "allow ssm:GetParameter"),
    # EFA.
    Case("as many as are planned", "reserved", "aws", "fabric", well, GOOD,
         "p5.48xlarge takes 32 EFA interfaces, 32 planned"),
    Case("none", "reserved", "aws", "fabric", aws("ec2", "describe_instance_types",
         {"InstanceTypes": [{"NetworkInfo": {"EfaSupported": False}}]}), BAD, "has no EFA",
         "`fabric: none` of foundation"),
    Case("too few", "reserved", "aws", "fabric", aws("ec2", "describe_instance_types",
         {"InstanceTypes": [{"NetworkInfo": {"EfaSupported": True,
                                             "EfaInfo": {"MaximumEfaInterfaces": 4}}}]}), BAD,
         "takes 4 EFA interfaces, and 32 are planned"),
    Case("no such type", "reserved", "aws", "fabric",
         aws("ec2", "describe_instance_types", "InvalidInstanceType"), BAD, "is not known"),
    Case("how many is not said", "reserved", "aws", "fabric", aws("ec2", "describe_instance_types",
         {"InstanceTypes": [{"NetworkInfo": {"EfaSupported": True}}]}), UNASKED, "is not said"),
    Case("may not ask", "reserved", "aws", "fabric",
         aws("ec2", "describe_instance_types", "UnauthorizedOperation"), UNASKED, "Unauthorized",
         "allow ec2:DescribeInstanceTypes"),
    # A network of one's own.
    Case("room", "own-network", "aws", "network", well, GOOD,
         "subnet-0aaa, subnet-0bbb: 500 addresses left, 1 needed"),
    Case("no network", "own-network", "aws", "network",
         aws("ec2", "describe_vpcs", {"Vpcs": []}), BAD, "no network shared in us-east-1",
         "`network.vpc`"),
    Case("no subnet", "own-network", "aws", "network",
         aws("ec2", "describe_subnets", subnets(Tags=[])), BAD, "no subnet private-b in vpc-0aaa"),
    Case("another zone", "own-network", "aws", "network",
         aws("ec2", "describe_subnets", subnets(AvailabilityZoneId="use1-az3",
                                               AvailabilityZone="us-east-1e")), BAD,
         "subnets in use1-az3, and the fleet stands in", "a subnet in use1-az1"),
    Case("no address left", "own-network", "aws", "network",
         aws("ec2", "describe_subnets", subnets(AvailableIpAddressCount=0)), BAD,
         "0 addresses left, and 1 are needed"),
    Case("may not ask", "own-network", "aws", "network",
         aws("ec2", "describe_subnets", "UnauthorizedOperation"), UNASKED, "Unauthorized",
         "allow ec2:DescribeSubnets"),
    # Rights.
    Case("all of them", "aws", "aws", "permissions", well, GOOD, "ann may do all of"),
    Case("the root user", "aws", "aws", "permissions", aws("sts", "get_caller_identity",
         {"Account": "1", "Arn": "arn:aws:iam::111122223333:root"}), GOOD, "root user may do all"),
    Case("denied", "aws", "aws", "permissions", aws("iam", "simulate_principal_policy",
         simulated("implicitDeny", "PassRole|RunInstances")), BAD,
         "may not ec2:RunInstances, iam:PassRole", "ec2:RunInstances iam:PassRole"),
    Case("it depends", "aws", "aws", "permissions", aws("iam", "simulate_principal_policy",
         simulated("implicitDeny", "PassRole", ("iam:PassedToService",))), UNASKED,
         "whether it may iam:PassRole depends on iam:PassedToService"),
    Case("somebody federated", "aws", "aws", "permissions", aws("sts", "get_caller_identity",
         {"Account": "1", "Arn": "arn:aws:sts::111122223333:federated-user/ann"}), UNASKED,
         "the rights of federated-user ann cannot be simulated"),
    Case("may not ask", "aws", "aws", "permissions",
         aws("iam", "simulate_principal_policy", "AccessDenied"), UNASKED, "AccessDenied",
         "allow iam:SimulatePrincipalPolicy"),
    # Roles of the services' own.
    Case("there", "aws", "aws", "roles", well, GOOD, "AWSServiceRoleForAutoScaling is there"),
    Case("made with the first fleet", "aws", "aws", "roles",
         without_role("AWSServiceRoleForAutoScaling"), GOOD, "is made with the first fleet"),
    Case("and may not be made", "aws", "aws", "roles",
         without_role("AWSServiceRoleForEC2Spot", denied="no"), BAD,
         "AWSServiceRoleForEC2Spot is not there, and the caller may not",
         "aws iam create-service-linked-role --aws-service-name spot.amazonaws.com", "tuner"),
    Case("whether it may be made is not known", "aws", "aws", "roles",
         without_role("AWSServiceRoleForAutoScaling", denied="?"), UNASKED, "is not known"),
    Case("may not ask", "aws", "aws", "roles", aws("iam", "get_role", "AccessDenied"), UNASKED,
         "AccessDenied", "allow iam:GetRole"),
    # Tags and budgets.
    Case("active", "aws", "aws", "cost-tag", well, GOOD, "gputier:fleet is active"),
    Case("not active", "aws", "aws", "cost-tag",
         aws("ce", "list_cost_allocation_tags", tags("Inactive")), BAD,
         "gputier:fleet is not active; until then the budget of chat stays at 0",
         "TagKey=gputier:fleet,Status=Active"),
    Case("not listed yet", "aws", "aws", "cost-tag",
         aws("ce", "list_cost_allocation_tags", {"CostAllocationTags": []}), UNASKED,
         "is not listed yet", "aws ce update-cost-allocation-tags-status"),
    Case("a member of an organisation", "aws", "aws", "cost-tag",
         aws("ce", "list_cost_allocation_tags", DENIED), UNASKED, DENIED),
    Case("not there yet", "aws", "aws", "budget", well, GOOD, "no budget is called shop-aws-chat"),
    Case("there", "aws", "aws", "budget", aws("budgets", "describe_budget", budget()), GOOD,
         "shop-aws-chat is there, 600.0 USD a month"),
    Case("of another kind", "aws", "aws", "budget",
         aws("budgets", "describe_budget", budget("USAGE")), BAD, "as a monthly usage budget",
         "https://console.aws.amazon.com/billing"),
    Case("may not ask", "aws", "aws", "budget",
         aws("budgets", "describe_budget", DENIED), UNASKED, DENIED, "allow budgets:ViewBudget"),
    Case("the account has one", "aws", "aws", "anomalies", well, GOOD,
         f"the account has the monitor services; `budget.anomalies: {MONITOR}` adopts it"),
    Case("none is there", "aws", "aws", "anomalies",
         aws("ce", "get_anomaly_monitors", monitors()), GOOD, "`budget.anomalies: create` makes"),
    Case("the named one is there", "watched", "aws", "anomalies", well, GOOD,
         "the monitor services is there", workload="named"),
    Case("the named one is not there", "watched", "aws", "anomalies",
         aws("ce", "get_anomaly_monitors", monitors()), BAD, f"there is no monitor {MONITOR}",
         "aws ce get-anomaly-monitors", "named"),
    Case("one of its own", "watched", "aws", "anomalies",
         aws("ce", "get_anomaly_monitors", DENIED), GOOD, "is made with the budget",
         workload="own"),
    Case("may not ask", "aws", "aws", "anomalies",
         aws("ce", "get_anomaly_monitors", DENIED), UNASKED, DENIED, "allow ce:GetAnomalyMonitors"),
]  # fmt: skip
