"""A lone machine: somebody's own, stopped and started, with a data volume that outlives it."""

from __future__ import annotations

import pulumi
import pulumi_aws as aws

from gputier.aws.machine import BLOCK, HOPS, HTTP_TOKENS, SPOT, Parts, reservation
from gputier.aws.place import Place
from gputier.plan import Chosen
from gputier.plan.storage import Volume

#: What a deployment does not change on a machine that somebody works on. Another image, subnet, key
#: or kind of address would replace it; another type or user data would stop it, and user data is
#: read at the first boot alone. A machine made anew has them all: `pulumi destroy --target` it with
#: its dependents, and `pulumi up`; the data volume stays.
KEPT = (
    "ami",
    "instanceType",
    "userDataBase64",
    "subnetId",
    "instanceMarketOptions",
    "associatePublicIpAddress",
    "rootBlockDevice.kmsKeyId",
)
#: What would replace the data volume by an empty one: it stays in its zone, under its key.
KEPT_DATA = ("availabilityZone", "kmsKeyId", "snapshotId")


class Machine(pulumi.ComponentResource):
    """The machine and its data volume."""

    id: pulumi.Output[str]
    machine: aws.ec2.Instance

    def __init__(
        self,
        place: Place,
        chosen: Chosen,
        parts: Parts,
        *,
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        super().__init__("gputier:aws:Machine", place.name, None, opts)
        stand, storage = parts.stand, parts.storage
        self.machine = aws.ec2.Instance(
            place.logical("machine"),
            ami=parts.image,
            instance_type=chosen.verdict.machine.instance_type,
            subnet_id=stand.subnet_ids[0],
            vpc_security_group_ids=[parts.security_group],
            associate_public_ip_address=chosen.network.public_ip,
            iam_instance_profile=parts.profile_name,
            user_data_base64=parts.user_data,
            ebs_optimized=True,
            root_block_device=storage.root(),
            metadata_options={
                "http_endpoint": "enabled",
                "http_tokens": HTTP_TOKENS,
                "http_put_response_hop_limit": HOPS,
            },
            instance_market_options=_market(chosen),
            capacity_reservation_specification=reservation(chosen),
            # A shutdown from inside saves money and loses nothing.
            instance_initiated_shutdown_behavior="stop",
            region=place.region,
            tags=place.tags,
            opts=pulumi.ResourceOptions(parent=self, ignore_changes=list(KEPT)),
        )
        self.id = self.machine.id
        data = storage.plan.data
        if data is not None:
            # The machine's own word for its zone: it is the one that the volume has to lie in.
            zone = stand.zone_name or self.machine.availability_zone
            self._attach(place, data, storage.key, zone)
        self.register_outputs({"id": self.id})

    def _attach(
        self,
        place: Place,
        volume: Volume,
        key: pulumi.Output[str] | None,
        zone: pulumi.Input[str],
    ) -> None:
        """The data volume, which outlives the machine: another one gets the same volume."""
        options = pulumi.ResourceOptions(parent=self)
        made = aws.ebs.Volume(
            place.logical("data"),
            availability_zone=zone,
            type=volume.kind,
            size=volume.gib,
            iops=volume.iops,
            throughput=volume.throughput_mb_s,
            snapshot_id=volume.snapshot,
            encrypted=True,
            kms_key_id=key,
            region=place.region,
            tags=place.tags,
            opts=pulumi.ResourceOptions(
                parent=self, ignore_changes=list(KEPT_DATA), protect=volume.protected or None
            ),
        )
        aws.ec2.VolumeAttachment(
            place.logical("data"),
            instance_id=self.machine.id,
            volume_id=made.id,
            device_name=volume.device,
            # A volume that is in use is never torn off: the machine is stopped first.
            stop_instance_before_detaching=True,
            region=place.region,
            opts=options,
        )


def _market(chosen: Chosen) -> aws.ec2.InstanceInstanceMarketOptionsArgs | None:
    fleet = chosen.fleet
    if fleet.market == BLOCK:
        return aws.ec2.InstanceInstanceMarketOptionsArgs(market_type="capacity-block")
    if fleet.market != SPOT:
        return None
    return aws.ec2.InstanceInstanceMarketOptionsArgs(
        market_type="spot",
        spot_options=aws.ec2.InstanceInstanceMarketOptionsSpotOptionsArgs(
            instance_interruption_behavior=fleet.interruption,
            # Only a request that persists can stop a machine, and start it again (EC2 user guide,
            # Spot interruption behavior).
            spot_instance_type="persistent",
        ),
    )
