"""One resource of every type of the stand-in, wired as a GPU fleet would be."""

import json

import pulumi
import pulumi_aws as aws

config = pulumi.Config()
tags = {"owner": config.get("owner") or "ann"}
zones = aws.get_availability_zones(state="available")
caller, region, partition = aws.get_caller_identity(), aws.get_region(), aws.get_partition()
image = aws.ec2.get_ami(most_recent=True, owners=["amazon"])
latest = aws.ssm.get_parameter(
    name="/aws/service/ami-amazon-linux-latest/al2023-ami-kernel-default-x86_64"
)
trust = aws.iam.get_policy_document(
    statements=[
        {
            "actions": ["sts:AssumeRole"],
            "principals": [{"type": "Service", "identifiers": ["ec2.amazonaws.com"]}],
        }
    ]
)

# network
vpc = aws.ec2.Vpc("vpc", cidr_block="10.0.0.0/16", enable_dns_hostnames=True, tags=tags)
gateway = aws.ec2.InternetGateway("gateway", vpc_id=vpc.id, tags=tags)
public = aws.ec2.Subnet(
    "public", vpc_id=vpc.id, cidr_block="10.0.0.0/24", availability_zone_id=zones.zone_ids[0]
)
private = aws.ec2.Subnet(
    "private",
    vpc_id=vpc.id,
    cidr_block="10.0.1.0/24",
    availability_zone_id=zones.zone_ids[0],
    map_public_ip_on_launch=False,
    tags=tags,
)
address = aws.ec2.Eip("address", domain="vpc", tags=tags)
nat = aws.ec2.NatGateway("nat", subnet_id=public.id, allocation_id=address.allocation_id, tags=tags)
public_table = aws.ec2.RouteTable(
    "public", vpc_id=vpc.id, routes=[{"cidr_block": "0.0.0.0/0", "gateway_id": gateway.id}]
)
private_table = aws.ec2.RouteTable("private", vpc_id=vpc.id, tags=tags)
aws.ec2.Route(
    "out",
    route_table_id=private_table.id,
    destination_cidr_block="0.0.0.0/0",
    nat_gateway_id=nat.id,
)
for name, subnet, table in (("public", public, public_table), ("private", private, private_table)):
    aws.ec2.RouteTableAssociation(name, subnet_id=subnet.id, route_table_id=table.id)
aws.ec2.VpcEndpoint(
    "s3",
    vpc_id=vpc.id,
    service_name=f"com.amazonaws.{region.region}.s3",
    route_table_ids=[private_table.id],
    tags=tags,
)
group = aws.ec2.SecurityGroup(
    "machines",
    vpc_id=vpc.id,
    description="machines of the fleet",
    egress=[{"protocol": "-1", "from_port": 0, "to_port": 0, "cidr_blocks": ["0.0.0.0/0"]}],
    tags=tags,
)
fabric = aws.ec2.SecurityGroup("fabric", vpc_id=vpc.id)
for way, kind in (
    ("in", aws.vpc.SecurityGroupIngressRule),
    ("out", aws.vpc.SecurityGroupEgressRule),
):
    kind(
        f"fabric-{way}",
        security_group_id=fabric.id,
        referenced_security_group_id=fabric.id,
        ip_protocol="-1",
    )
aws.ec2.SecurityGroupRule(
    "old-form",
    type="ingress",
    security_group_id=fabric.id,
    protocol="tcp",
    from_port=443,
    to_port=443,
    cidr_blocks=["10.0.0.0/16"],
)
aws.ec2.VpcEndpoint(
    "ssm",
    vpc_id=vpc.id,
    vpc_endpoint_type="Interface",
    service_name=f"com.amazonaws.{region.region}.ssm",
    subnet_ids=[private.id],
    security_group_ids=[group.id],
    private_dns_enabled=True,
)
interface = aws.ec2.NetworkInterface(
    "interface", subnet_id=private.id, security_groups=[group.id], source_dest_check=False
)

# identity
role = aws.iam.Role(
    "machine",
    assume_role_policy=trust.json,
    max_session_duration=7200,
    tags=tags,
)
policy = aws.iam.Policy(
    "policy",
    policy=json.dumps(
        {
            "Version": "2012-10-17",
            "Statement": [{"Effect": "Allow", "Action": "s3:GetObject", "Resource": "*"}],
        }
    ),
)
aws.iam.RolePolicy(
    "inline",
    role=role.name,
    policy=aws.iam.get_policy_document(
        statements=[{"actions": ["cloudwatch:PutMetricData"], "resources": ["*"]}]
    ).json,
)
aws.iam.RolePolicyAttachment(
    "session-manager",
    role=role.name,
    policy_arn=f"arn:{partition.partition}:iam::aws:policy/AmazonSSMManagedInstanceCore",
)
aws.iam.RolePolicyAttachment("own", role=role.name, policy_arn=policy.arn)
profile = aws.iam.InstanceProfile("machine", role=role.name)

# keys
key = aws.kms.Key(
    "key",
    description="disks",
    enable_key_rotation=True,
    deletion_window_in_days=7,
    tags=tags,
    policy=json.dumps(
        {
            "Version": "2012-10-17",
            "Statement": [
                {
                    "Effect": "Allow",
                    "Principal": {"AWS": f"arn:aws:iam::{caller.account_id}:root"},
                    "Action": "kms:*",
                    "Resource": "*",
                }
            ],
        }
    ),
)
aws.kms.Alias("key", target_key_id=key.key_id)
aws.kms.Grant(
    "scaling",
    key_id=key.key_id,
    grantee_principal=role.arn,
    operations=["Encrypt", "Decrypt", "CreateGrant"],
)


# storage
def over_tls(arn: str) -> str:
    return aws.iam.get_policy_document(
        statements=[
            {
                "effect": "Deny",
                "actions": ["s3:*"],
                "resources": [arn],
                "principals": [{"type": "*", "identifiers": ["*"]}],
                "conditions": [
                    {"test": "Bool", "variable": "aws:SecureTransport", "values": ["false"]}
                ],
            }
        ]
    ).json


bucket = aws.s3.Bucket("reports", force_destroy=True, tags=tags)
aws.s3.BucketOwnershipControls(
    "reports", bucket=bucket.bucket, rule={"object_ownership": "BucketOwnerEnforced"}
)
aws.s3.BucketPublicAccessBlock(
    "reports",
    bucket=bucket.bucket,
    block_public_acls=True,
    block_public_policy=True,
    ignore_public_acls=True,
    restrict_public_buckets=True,
)
aws.s3.BucketServerSideEncryptionConfiguration(
    "reports",
    bucket=bucket.bucket,
    rules=[
        {
            "apply_server_side_encryption_by_default": {
                "sse_algorithm": "aws:kms",
                "kms_master_key_id": key.arn,
            },
            "bucket_key_enabled": True,
        }
    ],
)
aws.s3.BucketVersioning(
    "reports", bucket=bucket.bucket, versioning_configuration={"status": "Enabled"}
)
aws.s3.BucketLifecycleConfiguration(
    "reports",
    bucket=bucket.bucket,
    rules=[
        {
            "id": "old",
            "status": "Enabled",
            "filter": {"prefix": "reports/"},
            "expiration": {"days": 90},
        }
    ],
)
aws.s3.BucketPolicy(
    "reports",
    bucket=bucket.bucket,
    policy=bucket.arn.apply(over_tls),
)
bundle = aws.s3.BucketObjectv2(
    "bundle", bucket=bucket.bucket, key="node/bundle", source=pulumi.StringAsset("bundle of files")
)
aws.s3.BucketObjectv2("text", bucket=bucket.bucket, key="node/text", content="one line")

# machines
placement = aws.ec2.PlacementGroup("near", strategy="cluster", tags=tags)
template = aws.ec2.LaunchTemplate(
    "machines",
    image_id=image.id,
    instance_type="g5.xlarge",
    update_default_version=True,
    user_data=config.get("boot") or "IyEvYmluL3NoCg==",
    iam_instance_profile={"arn": profile.arn},
    block_device_mappings=[
        {
            "device_name": "/dev/xvda",
            "ebs": {
                "volume_size": 100,
                "volume_type": "gp3",
                "throughput": 250,
                "encrypted": "true",
                "delete_on_termination": "true",
                "kms_key_id": key.arn,
            },
        }
    ],
    metadata_options={"http_tokens": "required", "http_put_response_hop_limit": 1},
    network_interfaces=[
        {
            "device_index": 0,
            "network_card_index": 0,
            "interface_type": "efa",
            "security_groups": [group.id, fabric.id],
            "delete_on_termination": "true",
        }
    ],
    tag_specifications=[{"resource_type": "instance", "tags": tags}],
    monitoring={"enabled": True},
    tags=tags,
)
fleet = aws.autoscaling.Group(
    "fleet",
    min_size=0,
    max_size=int(config.get("max") or "2"),
    desired_capacity=1,
    vpc_zone_identifiers=[private.id],
    placement_group=placement.name,
    health_check_grace_period=900,
    launch_template={"id": template.id, "version": template.latest_version.apply(str)},
    initial_lifecycle_hooks=[
        {
            "name": "gate",
            "lifecycle_transition": "autoscaling:EC2_INSTANCE_LAUNCHING",
            "heartbeat_timeout": 1800,
            "default_result": "ABANDON",
        }
    ],
    capacity_rebalance=True,
    enabled_metrics=[aws.autoscaling.Metric.GROUP_IN_SERVICE_INSTANCES],
    wait_for_capacity_timeout="0",
    tags=[{"key": "owner", "value": tags["owner"], "propagate_at_launch": True}],
    opts=pulumi.ResourceOptions(ignore_changes=["desiredCapacity"]),
)
hook = aws.autoscaling.LifecycleHook(
    "gate",
    autoscaling_group_name=fleet.name,
    lifecycle_transition="autoscaling:EC2_INSTANCE_LAUNCHING",
    heartbeat_timeout=1800,
    default_result="ABANDON",
)
aws.autoscaling.Policy(
    "busy",
    autoscaling_group_name=fleet.name,
    policy_type="TargetTrackingScaling",
    target_tracking_configuration={
        "target_value": 70,
        "customized_metric_specification": {
            "namespace": "fleet",
            "metric_name": "gpu",
            "statistic": "Average",
            "metric_dimensions": [{"name": "Fleet", "value": "fleet"}],
        },
    },
)
aws.autoscaling.Schedule(
    "night",
    autoscaling_group_name=fleet.name,
    scheduled_action_name="night",
    recurrence="0 20 * * MON-FRI",
    time_zone="Europe/Berlin",
    min_size=0,
    max_size=-1,
    desired_capacity=0,
)
machine = aws.ec2.Instance(
    "desk",
    ami=image.id,
    instance_type="g5.xlarge",
    subnet_id=private.id,
    vpc_security_group_ids=[group.id],
    iam_instance_profile=profile.name,
    user_data="#!/bin/sh\n",
    root_block_device={"volume_size": 100, "volume_type": "gp3", "encrypted": True},
    metadata_options={"http_tokens": "required"},
    tags=tags,
)
data = aws.ebs.Volume(
    "data",
    availability_zone=private.availability_zone,
    size=200,
    type="gp3",
    throughput=250,
    encrypted=True,
    kms_key_id=key.arn,
    tags=tags,
)
aws.ec2.VolumeAttachment("data", instance_id=machine.id, volume_id=data.id, device_name="/dev/sdf")

# what watches, and the rest
topic = aws.sns.Topic("alarms", tags=tags)
aws.sns.TopicPolicy(
    "alarms",
    arn=topic.arn,
    policy=topic.arn.apply(
        lambda arn: json.dumps(
            {
                "Version": "2012-10-17",
                "Statement": [
                    {
                        "Effect": "Allow",
                        "Principal": {"Service": "cloudwatch.amazonaws.com"},
                        "Action": "sns:Publish",
                        "Resource": arn,
                    }
                ],
            }
        )
    ),
)
aws.sns.TopicSubscription("ann", topic=topic.arn, protocol="email", endpoint="ann@example.org")
aws.cloudwatch.MetricAlarm(
    "idle",
    comparison_operator="LessThanThreshold",
    evaluation_periods=3,
    namespace="fleet",
    metric_name="gpu",
    period=300,
    statistic="Average",
    threshold=5,
    dimensions={"Fleet": fleet.name},
    alarm_actions=[topic.arn],
    treat_missing_data="notBreaching",
    tags=tags,
)
aws.cloudwatch.MetricAlarm(
    "cost",
    comparison_operator="GreaterThanThreshold",
    evaluation_periods=1,
    threshold=100,
    metric_queries=[
        {"id": "cost", "expression": "machines * 1.006", "return_data": True, "label": "usd"},
        {
            "id": "machines",
            "metric": {
                "namespace": "AWS/AutoScaling",
                "metric_name": "GroupInServiceInstances",
                "period": 300,
                "stat": "Average",
                "dimensions": {"AutoScalingGroupName": fleet.name},
            },
        },
    ],
)
aws.cloudwatch.Dashboard(
    "fleet",
    dashboard_name="fleet",
    dashboard_body=json.dumps(
        {"widgets": [{"type": "text", "x": 0, "y": 0, "properties": {"markdown": "fleet"}}]}
    ),
)
aws.cloudwatch.LogGroup("boot", retention_in_days=30, tags=tags)
aws.budgets.Budget(
    "fleet",
    budget_type="COST",
    time_unit="MONTHLY",
    limit_amount="1000",
    limit_unit="USD",
    cost_filters=[{"name": "TagKeyValue", "values": ["user:fleet$fleet"]}],
    notifications=[
        {
            "comparison_operator": "GREATER_THAN",
            "threshold": 80,
            "threshold_type": "PERCENTAGE",
            "notification_type": "FORECASTED",
            "subscriber_email_addresses": ["ann@example.org"],
        }
    ],
)
aws.ssm.Parameter("agent", type="String", value="{}", tags=tags)
aws.ssm.Parameter("token", type="SecureString", value=config.get_secret("token") or "none")
aws.scheduler.Schedule(
    "evening",
    flexible_time_window={"mode": "OFF"},
    schedule_expression="cron(0 20 ? * MON-FRI *)",
    schedule_expression_timezone="Europe/Berlin",
    target={
        "arn": "arn:aws:scheduler:::aws-sdk:ec2:stopInstances",
        "role_arn": role.arn,
        "input": machine.id.apply(lambda id_: json.dumps({"InstanceIds": [id_]})),
    },
)

# what is called when a budget is exceeded, and what watches for unusual cost
stops = aws.iam.Role(
    "stops",
    assume_role_policy=json.dumps(
        {
            "Version": "2012-10-17",
            "Statement": [
                {
                    "Effect": "Allow",
                    "Action": "sts:AssumeRole",
                    "Principal": {"Service": "lambda.amazonaws.com"},
                }
            ],
        }
    ),
)
code = f"def handler(event, context):\n    return {tags['owner']!r}\n"
function = aws.lambda_.Function(
    "stops",
    runtime="python3.14",
    handler="index.handler",
    role=stops.arn,
    code=pulumi.AssetArchive({"index.py": pulumi.StringAsset(code)}),
    environment={"variables": {"OWNER": tags["owner"]}},
    tags=tags,
)
aws.lambda_.Permission(
    "stops",
    statement_id="topic",
    action="lambda:InvokeFunction",
    function=function.name,
    principal="sns.amazonaws.com",
    source_arn=topic.arn,
)
aws.lambda_.FunctionEventInvokeConfig(
    "stops",
    function_name=function.name,
    maximum_retry_attempts=2,
    destination_config={"on_failure": {"destination": topic.arn}},
)
monitor = aws.costexplorer.AnomalyMonitor(
    "fleet",
    monitor_type="CUSTOM",
    monitor_specification=json.dumps({"Tags": {"Key": "fleet", "Values": ["fleet"]}}),
    tags=tags,
)
aws.costexplorer.AnomalySubscription(
    "fleet",
    frequency="IMMEDIATE",
    monitor_arn_lists=[monitor.arn],
    subscribers=[{"type": "SNS", "address": topic.arn}],
    threshold_expression={
        "dimension": {
            "key": "ANOMALY_TOTAL_IMPACT_ABSOLUTE",
            "match_options": ["GREATER_THAN_OR_EQUAL"],
            "values": ["100"],
        }
    },
    tags=tags,
)

pulumi.export("fleet", fleet.name)
pulumi.export("image", latest.value)
pulumi.export("public", address.public_ip)
pulumi.export("template", template.latest_version)
pulumi.export("zone", private.availability_zone)
