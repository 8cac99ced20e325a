"""Volumes and the key that encrypts them."""

from __future__ import annotations

import json

import pulumi
import pulumi_aws as aws

from gputier.aws.place import Account, Place, account_of
from gputier.plan.storage import KeyPlan, StoragePlan

#: The service that starts a group's machines. Without the use of the key they vanish as they start
#: (EC2 Auto Scaling user guide, required key policy for encrypted volumes, 2026). The role is there
#: once an account has had a group.
LAUNCHER = "role/aws-service-role/autoscaling.amazonaws.com/AWSServiceRoleForAutoScaling"
USES = ("Encrypt", "Decrypt", "ReEncrypt*", "GenerateDataKey*", "DescribeKey")
#: A grant spells out what a policy may cover by a star (KMS API 2014-11-01, GrantOperation).
GRANTED = (
    "Encrypt",
    "Decrypt",
    "ReEncryptFrom",
    "ReEncryptTo",
    "GenerateDataKey",
    "GenerateDataKeyWithoutPlaintext",
    "DescribeKey",
    "CreateGrant",
)
#: Until a deleted key is gone volumes can be saved: the longest there is.
DELETION_DAYS = 30


class Storage(pulumi.ComponentResource):
    """The key of a fleet's volumes, and the volumes as templates and machines are told of them.

    `key` is the ARN or id of a key that is passed in, which comes before the plan's.
    """

    key: pulumi.Output[str] | None

    def __init__(
        self,
        place: Place,
        plan: StoragePlan,
        *,
        key: pulumi.Input[str] | None = None,
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        super().__init__("gputier:aws:Storage", place.name, None, opts)
        self._place, self.plan = place, plan
        asked = plan.key
        given = key or (asked.id if asked else None)
        self.key = None if given is None else pulumi.Output.from_input(given)
        if asked and asked.create and given is None:
            self.key = self._made(asked)
        elif self.key is not None and asked and asked.grant:
            self._granted(self.key)
        self.register_outputs({"key": self.key})

    def _made(self, plan: KeyPlan) -> pulumi.Output[str]:
        place, account = self._place, account_of(self)
        policy = pulumi.Output.all(account.partition, account.id).apply(
            lambda known: key_policy(*known, grant=plan.grant)
        )
        made = aws.kms.Key(
            place.logical("key"),
            description=f"volumes of {place.names.of('group')}",
            enable_key_rotation=True,
            deletion_window_in_days=DELETION_DAYS,
            policy=policy,
            region=place.region,
            tags=place.tags,
            opts=pulumi.ResourceOptions(parent=self),
        )
        aws.kms.Alias(
            place.logical("key"),
            name=f"alias/{place.names.of('group')}",
            target_key_id=made.key_id,
            region=place.region,
            opts=pulumi.ResourceOptions(parent=self),
        )
        return made.arn

    def _granted(self, key: pulumi.Output[str]) -> None:
        aws.kms.Grant(
            self._place.logical("launcher"),
            key_id=key,
            grantee_principal=_launcher(account_of(self)),
            operations=GRANTED,
            region=self._place.region,
            opts=pulumi.ResourceOptions(parent=self),
        )

    def mappings(self) -> list[aws.ec2.LaunchTemplateBlockDeviceMappingArgs]:
        """Every volume, for a launch template. Two of its booleans are text (pulumi-aws 7)."""
        volumes = filter(None, (self.plan.root, self.plan.data))
        return [
            aws.ec2.LaunchTemplateBlockDeviceMappingArgs(
                device_name=volume.device,
                ebs=aws.ec2.LaunchTemplateBlockDeviceMappingEbsArgs(
                    volume_type=volume.kind,
                    volume_size=volume.gib,
                    iops=volume.iops,
                    throughput=volume.throughput_mb_s,
                    snapshot_id=volume.snapshot,
                    encrypted="true",
                    kms_key_id=self.key,
                    delete_on_termination=str(not volume.stays).lower(),
                ),
            )
            for volume in volumes
        ]

    def root(self) -> aws.ec2.InstanceRootBlockDeviceArgs:
        """The root volume of a lone machine. It goes with the machine: what is to stay lies on the
        data volume."""
        volume = self.plan.root
        return aws.ec2.InstanceRootBlockDeviceArgs(
            volume_type=volume.kind,
            volume_size=volume.gib,
            iops=volume.iops,
            throughput=volume.throughput_mb_s,
            encrypted=True,
            kms_key_id=self.key,
            delete_on_termination=True,
            tags=self._place.tags,
        )


def _launcher(account: Account) -> pulumi.Output[str]:
    return pulumi.Output.format("arn:{0}:iam::{1}:" + LAUNCHER, account.partition, account.id)


def key_policy(partition: str, account: str, *, grant: bool) -> str:
    """Who may use a key that is made: the account's own policies say, and the launcher where a
    group needs it. `kms:*` and `*` in a key's policy mean this key."""
    owner = {
        "Sid": "AccountPoliciesDecide",
        "Effect": "Allow",
        "Principal": {"AWS": f"arn:{partition}:iam::{account}:root"},
        "Action": "kms:*",
        "Resource": "*",
    }
    launcher = {"AWS": f"arn:{partition}:iam::{account}:{LAUNCHER}"}
    launches = [
        {
            "Sid": "AutoScalingStartsMachines",
            "Effect": "Allow",
            "Principal": launcher,
            "Action": [f"kms:{use}" for use in USES],
            "Resource": "*",
        },
        {
            "Sid": "AutoScalingAttachesVolumes",
            "Effect": "Allow",
            "Principal": launcher,
            "Action": "kms:CreateGrant",
            "Resource": "*",
            "Condition": {"Bool": {"kms:GrantIsForAWSResource": "true"}},
        },
    ]
    return json.dumps({"Version": "2012-10-17", "Statement": [owner, *(launches if grant else [])]})
