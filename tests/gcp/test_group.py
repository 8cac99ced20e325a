"""A group on Google: its template, its health check, and how a change reaches it."""

from __future__ import annotations

from typing import Any

import pytest
from tests.gcp import world
from tests.gcp.world import alone, planned

from gputier import testing
from gputier.boot.deadlines import INITIAL_DELAY_SECONDS

L4: dict[str, Any] = {"gpu": {"models": ["L4"]}, "purpose": "inference"}
ONE_ZONE: dict[str, Any] = {**L4, "zones": ["us-central1-a"]}
H200: dict[str, Any] = {
    "gpu": {"models": ["H200"], "count": 8}, "nodes": 2, "fabric": "any", "capacity": "spot",
}  # fmt: skip


def group(run: testing.Run) -> dict[str, Any]:
    return run.find("RegionInstanceGroupManager job-group").inputs


def template(run: testing.Run) -> dict[str, Any]:
    return run.find("RegionInstanceTemplate job-template").inputs


def test_a_group_is_spread_over_the_zones_that_sell_the_machine() -> None:
    plan = planned(**L4)
    found = group(world.fleet(plan))
    assert plan.chosen
    assert found["distributionPolicyZones"] == list(plan.chosen.network.zones)
    assert (found["name"], found["baseInstanceName"]) == ("gputier-test-job", "gputier-test-job")
    assert found["distributionPolicyTargetShape"] == "ANY"
    assert found["updatePolicy"]["instanceRedistributionType"] == "NONE"


def test_a_group_of_one_zone_is_told_nothing_of_others() -> None:
    run = alone(**ONE_ZONE)
    found = run.find("InstanceGroupManager job-group").inputs
    assert found["zone"] == "us-central1-a"
    assert "instanceRedistributionType" not in found["updatePolicy"]
    assert run.of_type("RegionInstanceGroupManager") == []


def test_no_deployment_waits_for_machines() -> None:
    assert group(alone(**L4))["waitForInstances"] is False


def test_the_health_check_has_the_longest_patience_and_asks_where_the_node_answers() -> None:
    run = alone(**L4, validation={"gate": "enforce"})
    found = group(run)
    healing = found["autoHealingPolicies"]
    assert healing["initialDelaySec"] == INITIAL_DELAY_SECONDS
    assert healing["healthCheck"].endswith("HealthCheck/job-health-check")
    assert found["instanceLifecyclePolicy"]["onFailedHealthCheck"] == "REPAIR"
    check = run.find("HealthCheck job-health-check").inputs
    assert check["httpHealthCheck"] == {"port": 8080, "requestPath": "/healthz"}
    assert check["checkIntervalSec"] * check["unhealthyThreshold"] > 400
    assert check["healthyThreshold"] == 1


def test_a_gate_that_reports_repairs_nobody_and_one_that_is_off_asks_nobody() -> None:
    told = group(alone(**L4, validation={"gate": "report"}))
    assert told["instanceLifecyclePolicy"]["onFailedHealthCheck"] == "DO_NOTHING"
    assert told["autoHealingPolicies"]
    run = alone(**L4, validation={"gate": "off"})
    found = group(run)
    assert "autoHealingPolicies" not in found
    assert "onFailedHealthCheck" not in found["instanceLifecyclePolicy"]
    assert run.of_type("HealthCheck") == []
    assert [r.name for r in run.of_type("Firewall")] == ["job-from-tunnels"]


def test_a_machine_made_anew_has_what_was_declared_last() -> None:
    lifecycle = group(alone(**L4))["instanceLifecyclePolicy"]
    assert lifecycle["defaultActionOnFailure"] == "REPAIR"
    assert lifecycle["forceUpdateOnRepair"] == "YES"


@pytest.mark.parametrize(
    ("fields", "kind", "surge"),
    [
        ({"rollout": "rolling"}, ("PROACTIVE", "SUBSTITUTE"), (3, 0)),
        ({"rollout": "new-machines"}, ("OPPORTUNISTIC", "RECREATE"), (0, 3)),
    ],
)
def test_a_change_replaces_machines_or_waits_for_new_ones(
    fields: dict[str, Any], kind: tuple[str, str], surge: tuple[int, int]
) -> None:
    policy = group(alone(**L4, **fields))["updatePolicy"]
    assert (policy["type"], policy["replacementMethod"]) == kind
    assert (policy["maxSurgeFixed"], policy["maxUnavailableFixed"]) == surge


def test_the_size_is_the_programs_unless_machines_come_and_go_by_themselves() -> None:
    run = alone(**L4)
    assert group(run)["targetSize"] == 1
    fixed = run.find("RegionInstanceGroupManager job-group")
    assert fixed.options.ignore_changes == ()
    moving = alone(**L4, scale={"min": 1, "max": 3}).find("RegionInstanceGroupManager job-group")
    assert "targetSize" not in moving.inputs
    assert moving.options.ignore_changes == ("targetSize",)


def test_a_template_is_another_one_at_each_change() -> None:
    found = template(alone(**L4))
    assert found["namePrefix"] == "gputier-test-job-"
    assert "name" not in found


def test_a_machine_with_a_card_cannot_be_moved_and_loads_its_driver() -> None:
    found = template(alone(**L4))
    assert found["scheduling"]["onHostMaintenance"] == "TERMINATE"
    assert found["shieldedInstanceConfig"] == {
        "enableSecureBoot": False, "enableVtpm": True, "enableIntegrityMonitoring": True,
    }  # fmt: skip


def test_the_script_runs_at_every_boot_and_rights_are_the_accounts() -> None:
    found = template(alone(**L4))
    assert found["metadata"]["startup-script"].startswith("#!")
    assert found["metadata"]["enable-guest-attributes"] == "TRUE"
    assert found["serviceAccount"]["scopes"] == ["https://www.googleapis.com/auth/cloud-platform"]
    assert found["serviceAccount"]["email"].startswith("gputier-test-job-node@")


def test_spot_is_said_in_both_words_and_a_taken_machine_is_deleted() -> None:
    found = template(alone(**ONE_ZONE, capacity="spot"))["scheduling"]
    assert (found["provisioningModel"], found["preemptible"]) == ("SPOT", True)
    assert (found["automaticRestart"], found["instanceTerminationAction"]) == (False, "DELETE")
    plain = template(alone(**L4))["scheduling"]
    assert (plain["provisioningModel"], plain["preemptible"]) == ("STANDARD", False)
    assert "instanceTerminationAction" not in plain


def test_only_the_hosts_interface_has_an_address_and_only_where_it_is_asked_for() -> None:
    (nic,) = template(alone(**L4, network={"egress": "public"}))["networkInterfaces"]
    assert nic["accessConfigs"]
    run = alone(**H200, network={"egress": "public"})
    first, *others = template(run)["networkInterfaces"]
    assert first["accessConfigs"]
    assert not any(nic.get("accessConfigs") for nic in others)
    run = alone(**H200)
    nics = template(run)["networkInterfaces"]
    assert [n["nicType"] for n in nics] == ["GVNIC", "GVNIC", *["MRDMA"] * 8]
    assert not any(n.get("accessConfigs") for n in nics)
    assert run.find("InstanceGroupManager job-group").inputs["zone"] == "us-central1-b"


def test_machines_that_work_together_hear_each_other() -> None:
    assert alone(**H200).find("Firewall job-from-each-other")


def test_cards_of_n1_are_attached() -> None:
    found = template(alone(gpu={"models": ["T4"], "count": 2}, purpose="inference"))
    assert found["guestAccelerators"] == [{"type": "nvidia-tesla-t4", "count": 2}]
    assert found["machineType"].startswith("n1-")
    assert "guestAccelerators" not in template(alone(**L4))


def test_disks_are_the_plans_and_local_ones_are_asked_for_by_number() -> None:
    fields: dict[str, Any] = {"disk": {"data": "500GiB", "scratch": "300GiB"}}
    root, data, local = template(alone(**L4, **fields))["disks"]
    assert (root["boot"], root["diskType"], root["autoDelete"]) == (True, "pd-balanced", True)
    assert (data["deviceName"], data["diskSizeGb"], data["autoDelete"]) == ("data", 500, True)
    assert (local["type"], local["interface"], local["diskSizeGb"]) == ("SCRATCH", "NVME", 375)


def test_disks_that_stay_belong_to_a_machines_name() -> None:
    run = alone(**L4, disk={"data": "500GiB", "persist": True})
    found = group(run)
    assert found["statefulDisks"] == [{"deviceName": "data", "deleteRule": "NEVER"}]
    assert found["updatePolicy"]["replacementMethod"] == "RECREATE"
    assert found["updatePolicy"]["maxSurgeFixed"] == 0


def test_a_key_of_ones_own_encrypts_every_disk_and_google_may_open_them() -> None:
    key = "projects/p/locations/us-central1/keyRings/r/cryptoKeys/k"
    run = alone(**L4, disk={"kms_key": key, "data": "10GiB"})
    assert {d["diskEncryptionKey"]["kmsKeySelfLink"] for d in template(run)["disks"]} == {key}
    (grant,) = run.of_type("CryptoKeyIAMMember")
    assert grant.inputs["member"] == (
        f"serviceAccount:service-{world.NUMBER}@compute-system.iam.gserviceaccount.com"
    )
    assert alone(**L4).of_type("CryptoKeyIAMMember") == []


def test_machines_close_together_have_a_policy_of_their_own() -> None:
    a100: dict[str, Any] = {"gpu": {"models": ["A100-40GB"]}, "nodes": 2, "fabric": "none"}
    run = alone(**a100, purpose="training", network={"placement": "cluster"})
    policy = run.find("ResourcePolicy job-placement").inputs
    assert policy["groupPlacementPolicy"] == {"collocation": "COLLOCATED"}
    assert template(run)["resourcePolicies"].endswith("ResourcePolicy/job-placement")


def test_a_reservation_is_named_or_any_that_is_open() -> None:
    held: dict[str, Any] = {
        "use": "reservation", "instance_type": "g2-standard-8", "zone": "us-central1-a", "count": 1,
    }  # fmt: skip
    named = template(alone(**L4, capacity={**held, "id": "my-l4"}))["reservationAffinity"]
    assert named == {
        "type": "SPECIFIC_RESERVATION",
        "specificReservation": {
            "key": "compute.googleapis.com/reservation-name", "values": ["my-l4"],
        },
    }  # fmt: skip
    assert "reservationAffinity" not in template(alone(**L4))


def test_an_image_that_moves_is_looked_up_once_and_kept() -> None:
    run = alone(**L4)
    made = run.find("RegionInstanceTemplate job-template")
    assert made.inputs["disks"][0]["sourceImage"].startswith("projects/ubuntu-os-cloud/global/")
    assert made.options.ignore_changes == ("disks[0].sourceImage",)
    assert [level for level, text in run.messages if "not pinned" in text] == ["warning"]
    pinned = world.image(planned(**L4), id="projects/p/global/images/i", family=None, pinned=True)
    run = world.fleet(pinned)
    made = run.find("RegionInstanceTemplate job-template")
    assert made.inputs["disks"][0]["sourceImage"] == "projects/p/global/images/i"
    assert made.options.ignore_changes == ()


def test_a_machine_is_asked_for_when_everything_that_it_needs_is_there() -> None:
    labels = alone(**L4).find("Group job").options.depends_on
    kinds = {label.split()[0] for label in labels}
    assert kinds >= {"BucketObject", "RouterNat", "BucketIAMMember"}
    assert {"Firewall job-from-health-checks", "Firewall job-from-tunnels"} <= set(labels)


def test_a_regrown_template_does_not_forget_the_fleets_labels() -> None:
    found = template(alone(**L4, tags={"team": "vision"}))["labels"]
    assert found["team"] == "vision"
    assert found["gputier-fleet"] == "gputier-test-job"
