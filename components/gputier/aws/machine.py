"""What a machine is started with, however it is started: the parts of a fleet put together."""

from __future__ import annotations

from typing import Any, NamedTuple

import pulumi
import pulumi_aws as aws

from gputier.aws.network import Stand
from gputier.aws.place import Place
from gputier.aws.storage import Storage
from gputier.plan import Chosen


class Parts(NamedTuple):
    """The parts of a fleet that exist already. `user_data` is base64; `hook_seconds` is how long
    the launch hook waits for a sign of life, None where there is no hook."""

    stand: Stand
    security_group: pulumi.Input[str]
    profile_arn: pulumi.Input[str]
    profile_name: pulumi.Input[str]
    image: pulumi.Input[str]
    user_data: str
    storage: Storage
    hook_seconds: int | None


#: Metadata by token alone, and not past the machine itself: a container that is not on the host's
#: own network has no business with the machine's role.
HTTP_TOKENS, HOPS = "required", 1

SPOT, BLOCK = "spot", "capacity_block"
HELD = ("reservation", BLOCK)


def reservation(chosen: Chosen) -> Any:
    """Which reservation machines start in: the one that is named, or any that is open for them.
    The SDK has a type of this shape for templates and another for machines."""
    fleet = chosen.fleet
    if fleet.market not in HELD:
        return None
    if fleet.reservation_id is None:
        return {"capacity_reservation_preference": "open"}
    return {"capacity_reservation_target": {"capacity_reservation_id": fleet.reservation_id}}


def interfaces(chosen: Chosen, parts: Parts) -> list[aws.ec2.LaunchTemplateNetworkInterfaceArgs]:
    """An interface for each card of the plan. With more than one there is no public address, and
    the API refuses to be told so (EC2 Auto Scaling user guide, create a launch template)."""
    several = len(chosen.network.interfaces) > 1
    return [
        aws.ec2.LaunchTemplateNetworkInterfaceArgs(
            network_card_index=interface.card,
            device_index=interface.device,
            interface_type=None if interface.kind == "interface" else interface.kind,
            associate_public_ip_address=None if several else str(chosen.network.public_ip).lower(),
            security_groups=[parts.security_group],
            delete_on_termination="true",
        )
        for interface in chosen.network.interfaces
    ]


def template(
    place: Place, chosen: Chosen, parts: Parts, parent: pulumi.Resource, ignored: list[str]
) -> aws.ec2.LaunchTemplate:
    """The launch template of a group."""
    block = chosen.fleet.market == BLOCK
    return aws.ec2.LaunchTemplate(
        place.logical("template"),
        name=place.names.of("template"),
        image_id=parts.image,
        instance_type=chosen.verdict.machine.instance_type,
        user_data=parts.user_data,
        ebs_optimized="true",
        iam_instance_profile={"arn": parts.profile_arn},
        block_device_mappings=parts.storage.mappings(),
        network_interfaces=interfaces(chosen, parts),
        metadata_options={
            "http_endpoint": "enabled",
            "http_tokens": HTTP_TOKENS,
            "http_put_response_hop_limit": HOPS,
        },
        # Spot is the group's to ask for, in its mixed policy: a template that does is refused.
        instance_market_options={"market_type": "capacity-block"} if block else None,
        capacity_reservation_specification=reservation(chosen),
        # The group tags its machines; what comes with them it does not reach.
        tag_specifications=[
            {"resource_type": kind, "tags": place.tags} for kind in ("volume", "network-interface")
        ],
        region=place.region,
        tags=place.tags,
        opts=pulumi.ResourceOptions(parent=parent, ignore_changes=ignored),
    )
