"""What a person types to look at a fleet: commands of gcloud, ready to copy."""

from __future__ import annotations

from gputier.deploy.fleet import SSH


def shell(zone: str, machine: str) -> str:
    """A shell on a machine by a tunnel of Identity-Aware Proxy, without an open port."""
    return f"gcloud compute ssh {machine} --zone {zone} --tunnel-through-iap"


def forward(zone: str, machine: str, port: int) -> str:
    """A port of a machine on one's own."""
    local = 2222 if port == SSH else port
    asked = f"gcloud compute start-iap-tunnel {machine} {port}"
    return f"{asked} --local-host-port localhost:{local} --zone {zone}"


def where(region: str, zone: str | None) -> str:
    """The flag that says where a group lies."""
    return f"--zone {zone}" if zone else f"--region {region}"


def first_of_group(group: str, place: str, field: str) -> str:
    """A field of a machine of a group that is in service, as the shell finds it when the command
    runs; `place` is the group's flag."""
    listed = f"gcloud compute instance-groups managed list-instances {group} {place}"
    picked = f"--filter=currentAction=NONE --limit=1 --format='value({field})'"
    return f'"$({listed} {picked})"'


def group_state(group: str, place: str) -> str:
    """Every machine of a group and how far it is: UNHEALTHY is before the gate."""
    listed = f"gcloud compute instance-groups managed list-instances {group} {place}"
    shown = "instance.basename(),currentAction,instanceHealth[0].detailedHealthState"
    return f"{listed} --format='table({shown})'"


def machine_state(bucket: str, workload: str) -> str:
    """The reports of a lone machine, the newest last."""
    return f"gcloud storage ls --recursive gs://{bucket}/reports/{workload}/"
