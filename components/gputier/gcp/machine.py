"""What a machine is started with, however it is started: the parts of a fleet put together."""

from __future__ import annotations

from typing import Any, NamedTuple

import pulumi
import pulumi_gcp as gcp

from gputier.boot.health import HealthCheck
from gputier.gcp.network import Stand
from gputier.gcp.place import Place
from gputier.gcp.storage import Storage
from gputier.plan import Chosen
from gputier.plan.google import RESERVATION_KEY, GoogleMachine

#: What a token may be asked for: rights are the account's to bound (docs.cloud.google.com, service
#: accounts on machines, 2026-04).
SCOPE = "https://www.googleapis.com/auth/cloud-platform"
#: A machine with a card cannot be moved while it runs (docs.cloud.google.com/compute/docs/gpus).
MAINTENANCE = "TERMINATE"


class Parts(NamedTuple):
    """The parts of a fleet that exist already. `image` is an image's path, `script` what runs at
    every boot, `told` what Google is told of the machine, `health` how a group asks it."""

    stand: Stand
    account: pulumi.Input[str]
    image: pulumi.Input[str]
    script: str
    storage: Storage
    told: GoogleMachine
    health: HealthCheck | None


def metadata(parts: Parts) -> dict[str, pulumi.Input[str]]:
    """Read at every boot. A machine leaves a word of its verdict among its guest attributes."""
    return {"startup-script": parts.script, "enable-guest-attributes": "TRUE"}


def shielded() -> dict[str, bool]:
    """A measured boot. Secure Boot stays off: it loads no driver that somebody else than the
    image's maker has built or signed, and the NVIDIA driver is one (github.com/GoogleCloudPlatform/
    compute-gpu-installation, README, secure boot)."""
    return {
        "enable_secure_boot": False,
        "enable_vtpm": True,
        "enable_integrity_monitoring": True,
    }


def scheduling(told: GoogleMachine) -> dict[str, Any]:
    """How it is bought, and what becomes of it."""
    return {
        "on_host_maintenance": MAINTENANCE,
        "automatic_restart": told.restarts,
        "provisioning_model": told.provisioning,
        # The older word for the same, which has to agree.
        "preemptible": told.provisioning == "SPOT",
        "instance_termination_action": told.ends,
    }


def interfaces(chosen: Chosen, parts: Parts) -> list[dict[str, Any]]:
    """The host's interface first, which may have a public address; those of a fabric have none."""
    public = [{"network_tier": "PREMIUM"}] if chosen.network.public_ip else None
    return [
        {
            "network": one.network,
            "subnetwork": one.subnetwork,
            "nic_type": one.kind,
            "access_configs": public if place == 0 else None,
        }
        for place, one in enumerate(parts.stand.interfaces)
    ]


def cards(told: GoogleMachine) -> list[dict[str, Any]] | None:
    """Cards to attach; most types have theirs built in."""
    return [{"type": told.card.kind, "count": told.card.number}] if told.card else None


def reservation(told: GoogleMachine) -> dict[str, Any] | None:
    """Which reservation machines start in: the one that is named, or any that is open for them."""
    if told.reservation is None:
        return None
    if not told.reservation:
        return {"type": "ANY_RESERVATION"}
    named = {"key": RESERVATION_KEY, "values": [told.reservation]}
    return {"type": "SPECIFIC_RESERVATION", "specific_reservation": named}


def close(place: Place, told: GoogleMachine, parent: pulumi.Resource) -> Any:
    """The policy that has machines lie close together. Of its own for each fleet: machines of two
    fleets under one policy would be packed together."""
    if not told.compact:
        return None
    return gcp.compute.ResourcePolicy(
        place.logical("placement"),
        name=place.names.of("placement"),
        region=place.region,
        group_placement_policy={"collocation": "COLLOCATED"},
        # In most fields a change is another policy, and the old one's name is taken until its
        # machines are gone.
        opts=pulumi.ResourceOptions(parent=parent),
    ).self_link


def template(
    place: Place, chosen: Chosen, parts: Parts, parent: pulumi.Resource, ignored: list[str]
) -> gcp.compute.RegionInstanceTemplate:
    """The instance template of a group. It is never changed: another one takes its place, under
    another name, while the group still has the old one."""
    told = parts.told
    disks: Any = parts.storage.disks(parts.image, told.ssds)
    nics: Any = interfaces(chosen, parts)
    bought: Any = scheduling(told)
    attached: Any = cards(told)
    held: Any = reservation(told)
    boot: Any = shielded()
    return gcp.compute.RegionInstanceTemplate(
        place.logical("template"),
        name_prefix=f"{place.names.of('template')}-",
        region=place.region,
        description=f"machines of {place.names.of('group')}",
        machine_type=chosen.verdict.machine.instance_type,
        disks=disks,
        network_interfaces=nics,
        guest_accelerators=attached,
        scheduling=bought,
        reservation_affinity=held,
        resource_policies=close(place, told, parent),
        service_account={"email": parts.account, "scopes": [SCOPE]},
        shielded_instance_config=boot,
        metadata=metadata(parts),
        labels=place.labels,
        opts=pulumi.ResourceOptions(parent=parent, ignore_changes=ignored),
    )
