"""AWS: what is around machines (gateways, endpoints, addresses, alarms), and what is free."""

from __future__ import annotations

from collections.abc import Mapping

from gputier.review.aws_fleet import NO_REGION
from gputier.review.bill import Bill, hidden
from gputier.review.cost import BILLED_BY_USE, Cost, Elsewhere, Pricer, Unpriced
from gputier.review.preview import State
from gputier.review.values import items, text
from gputier.review.world import World

DATA = "what goes through it is billed by the GB, which no preview knows"


def nat_gateway(world: World, state: State) -> Cost:
    region = world.region(state)
    if region is None:
        return NO_REGION
    bill = Bill(world, "aws", region)
    bill.hours("gateway", "nat-hour", 1)
    bill.notes.append(DATA)
    return bill.cost()


def vpc_endpoint(world: World, state: State) -> Cost:
    """A gateway is free; an interface is billed in each of its zones."""
    region, kind = world.region(state), text(state.get("vpcEndpointType")) or "Gateway"
    if region is None:
        return NO_REGION
    if why := hidden(state, "vpcEndpointType"):
        return Unpriced(why)
    if kind == "Gateway":
        return Elsewhere("gateway endpoints are free")
    zones = len(items(state.get("subnetIds")))
    if kind != "Interface" or not zones:
        return Unpriced(f"a {kind} endpoint, in zones that the preview does not show")
    bill = Bill(world, "aws", region)
    bill.hours("endpoint", "endpoint-hour", zones)
    bill.notes.append(DATA)
    return bill.cost()


def elastic_ip(world: World, state: State) -> Cost:
    """Billed whether it is used or not."""
    bill = Bill(world, "aws", world.region(state) or "")
    bill.hours("public IPv4", "public-ipv4-hour", 1)
    return bill.cost()


def _monthly(item: str, name: str) -> Pricer:
    def price(world: World, state: State) -> Cost:
        bill = Bill(world, "aws", world.region(state) or "")
        bill.item(name, item, 1, "month")
        return bill.cost()

    return price


def _by_use(what: str) -> Pricer:
    return lambda _world, _state: Unpriced(f"{BILLED_BY_USE}: {what}")


def _free(_world: World, _state: State) -> Cost:
    return Elsewhere("free")


#: AWS bills nothing for these by themselves (its pricing pages of VPC, EC2, IAM and Auto Scaling;
#: cost anomaly detection comes at no cost: AWS, its general availability, 2020-12).
FREE = (
    "autoscaling/attachment:Attachment", "autoscaling/lifecycleHook:LifecycleHook",
    "autoscaling/notification:Notification", "autoscaling/policy:Policy",
    "autoscaling/tag:Tag", "budgets/budget:Budget",
    "costexplorer/anomalyMonitor:AnomalyMonitor",
    "costexplorer/anomalySubscription:AnomalySubscription",
    "ec2/defaultSecurityGroup:DefaultSecurityGroup",
    "ec2/vpcDhcpOptions:VpcDhcpOptions", "ec2/eipAssociation:EipAssociation",
    "ec2/internetGateway:InternetGateway", "ec2/keyPair:KeyPair",
    "ec2/mainRouteTableAssociation:MainRouteTableAssociation",
    "ec2/networkAcl:NetworkAcl", "ec2/networkInterface:NetworkInterface",
    "ec2/placementGroup:PlacementGroup", "ec2/route:Route", "ec2/routeTable:RouteTable",
    "ec2/routeTableAssociation:RouteTableAssociation", "ec2/securityGroup:SecurityGroup",
    "ec2/securityGroupRule:SecurityGroupRule", "ec2/subnet:Subnet", "ec2/tag:Tag",
    "ec2/volumeAttachment:VolumeAttachment", "ec2/vpc:Vpc", "iam/group:Group",
    "iam/instanceProfile:InstanceProfile", "iam/policy:Policy",
    "iam/policyAttachment:PolicyAttachment", "iam/role:Role", "iam/rolePolicy:RolePolicy",
    "iam/rolePolicyAttachment:RolePolicyAttachment", "iam/user:User", "kms/alias:Alias",
    "kms/grant:Grant", "lambda/functionEventInvokeConfig:FunctionEventInvokeConfig",
    "lambda/permission:Permission", "s3/bucketLifecycleConfiguration:BucketLifecycleConfiguration",
    "s3/bucketOwnershipControls:BucketOwnershipControls", "s3/bucketPolicy:BucketPolicy",
    "s3/bucketPublicAccessBlock:BucketPublicAccessBlock",
    "s3/bucketServerSideEncryptionConfiguration:BucketServerSideEncryptionConfiguration",
    "sns/topicPolicy:TopicPolicy", "sns/topicSubscription:TopicSubscription",
    "vpc/securityGroupEgressRule:SecurityGroupEgressRule",
    "vpc/securityGroupIngressRule:SecurityGroupIngressRule",
)  # fmt: skip
BY_USE: Mapping[str, str] = {
    "cloudwatch/logGroup:LogGroup": "what is logged, and how long it stays",
    "ec2transitgateway/transitGateway:TransitGateway": "attachments and what goes through them",
    "lambda/function:Function": "calls and their seconds",
    "s3/bucket:Bucket": "what lies in it, and requests",
    "s3/bucketV2:BucketV2": "what lies in it, and requests",
    "s3/bucketObjectv2:BucketObjectv2": "its bytes",
    "s3/bucketObject:BucketObject": "its bytes",
    "sns/topic:Topic": "messages",
    "efs/fileSystem:FileSystem": "what lies in it",
}
PRICERS: Mapping[str, Pricer] = {
    "aws:ec2/natGateway:NatGateway": nat_gateway,
    "aws:ec2/vpcEndpoint:VpcEndpoint": vpc_endpoint,
    "aws:ec2/eip:Eip": elastic_ip,
    "aws:cloudwatch/metricAlarm:MetricAlarm": _monthly("alarm-month", "alarm"),
    "aws:cloudwatch/dashboard:Dashboard": _monthly("dashboard-month", "dashboard"),
    "aws:kms/key:Key": _monthly("kms-key-month", "key"),
    **{f"aws:{token}": _by_use(what) for token, what in BY_USE.items()},
    **{f"aws:{token}": _free for token in FREE},
}
