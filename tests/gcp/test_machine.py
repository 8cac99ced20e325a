"""One machine by itself on Google."""

from __future__ import annotations

from typing import Any

from tests.gcp import world
from tests.gcp.world import alone, planned

DESK: dict[str, Any] = {
    "gpu": {"models": ["L4"]}, "purpose": "development", "disk": {"data": "200GiB"},
}  # fmt: skip


def test_a_lone_machine_stands_in_the_first_zone_with_a_disk_of_its_own() -> None:
    plan = planned(**DESK)
    run = world.fleet(plan)
    machine, disk = run.find("Instance job-machine").inputs, run.find("Disk job-data").inputs
    assert plan.chosen
    assert machine["zone"] == disk["zone"] == plan.chosen.network.zones[0]
    (attached,) = machine["attachedDisks"]
    assert attached["deviceName"] == "data"
    assert attached["source"].endswith("Disk/job-data")
    assert disk["size"] == 200
    assert machine["bootDisk"]["autoDelete"] is True


def test_a_workstation_has_the_card_with_the_licence_and_an_image_of_ones_own() -> None:
    image = {"id": "projects/p/global/images/vws", "driver": "580"}
    for card, kind in (("L4", "nvidia-l4-vws"), ("T4", "nvidia-tesla-t4-vws")):
        fields: dict[str, Any] = {"gpu": {"models": [card]}, "software": {"image": image}}
        run = alone(**fields, purpose="vdi")
        made = run.find("Instance job-machine").inputs
        assert made["guestAccelerators"] == [{"type": kind, "count": 1}]
        assert run.outputs["fleet"]["usd_per_month"]


def test_nobody_asks_a_lone_machine_and_no_group_is_made() -> None:
    run = alone(**DESK)
    kinds = {record.type.rsplit(":", 1)[-1] for record in run.records}
    assert not kinds & {"HealthCheck", "InstanceGroupManager", "RegionInstanceGroupManager"}
    assert "RegionInstanceTemplate" not in kinds


def test_no_deployment_replaces_somebodys_machine_or_data() -> None:
    run = alone(**DESK)
    ignored = run.find("Instance job-machine").options.ignore_changes
    assert {"bootDisk", "machineType", "networkInterfaces", "zone"} <= set(ignored)
    assert "metadata" not in ignored, "a script is read at every boot"
    assert {"zone", "snapshot"} <= set(run.find("Disk job-data").options.ignore_changes)


def test_a_spot_machine_stops_when_it_is_taken() -> None:
    found = alone(**DESK, capacity="spot").find("Instance job-machine").inputs["scheduling"]
    assert found["instanceTerminationAction"] == "STOP"
    assert found["onHostMaintenance"] == "TERMINATE"


def test_local_disks_are_as_many_as_the_plan_says() -> None:
    fields: dict[str, Any] = {**DESK, "disk": {"scratch": "300GiB"}}
    machine = alone(**fields).find("Instance job-machine").inputs
    assert machine["scratchDisks"] == [{"interface": "NVME"}]
    assert "attachedDisks" not in machine


def test_a_person_gets_in_by_a_tunnel_and_sees_the_reports() -> None:
    found = alone(**DESK).outputs["fleet"]
    assert found["connect"]["shell"] == (
        "gcloud compute ssh gputier-test-job --zone us-central1-a --tunnel-through-iap"
    )
    assert "gs://gputier-gputier-test-acme-gpu-us-central1/reports/job/" in found["gate_state"]
    assert found.get("group_name") is None
