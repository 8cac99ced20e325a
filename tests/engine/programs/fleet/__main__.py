"""A fleet in little; the tests change one of its configured values at a time."""

import pulumi
import pulumi_aws as aws

config = pulumi.Config()
vpc = aws.ec2.Vpc(
    "net", cidr_block=config.get("cidr") or "10.0.0.0/16", tags={"owner": config.require("owner")}
)
subnet = aws.ec2.Subnet("net", vpc_id=vpc.id, cidr_block=vpc.cidr_block)
template = aws.ec2.LaunchTemplate(
    "machines",
    image_id="ami-12c6146b",
    instance_type=config.get("type") or "g5.xlarge",
    user_data=config.get_secret("boot"),
)
group = aws.autoscaling.Group(
    "machines",
    min_size=0,
    max_size=4,
    vpc_zone_identifiers=[subnet.id],
    launch_template={"id": template.id, "version": template.latest_version.apply(str)},
    health_check_grace_period=config.get_int("grace") or 300,
    force_delete=True,
)
aws.autoscaling.LifecycleHook(
    "gate",
    name="gate",
    autoscaling_group_name=group.name,
    lifecycle_transition="autoscaling:EC2_INSTANCE_LAUNCHING",
    default_result="ABANDON",
    heartbeat_timeout=900,
)
machine = aws.ec2.Instance(
    "desk",
    ami="ami-12c6146b",
    instance_type=config.get("type") or "g5.xlarge",
    subnet_id=subnet.id,
    user_data=config.get("boot-text"),
    tags={"owner": config.require("owner")},
)

print("a fleet of", config.require("owner"))
pulumi.export("group", group.name)
pulumi.export("boot", template.user_data)
pulumi.export("machine", machine.private_ip)
