"""What Google would not take, or the stand-in does not know, is an error with its words."""

from __future__ import annotations

from typing import Any

import pytest
from tests.engine.gcp.api import GoogleError
from tests.engine.gcp.direct import Direct, Refusal
from tests.engine.gcp.sample import ACCOUNT, CHECK, IMAGE, PROJECT, REGION, ZONE, Sample
from tests.engine.gcp.samples import SAMPLES
from tests.engine.provider import Refused
from tests.engine.schema import inputs as inputs_of
from tests.engine.wire import UNKNOWN, Props

OF = {sample.name: sample for sample in SAMPLES}
MACHINE: Props = OF["Instance"].inputs
TEMPLATE = OF["RegionInstanceTemplate"]
BUCKET = OF["Bucket"]
NETWORK = f"https://www.googleapis.com/compute/v1/projects/{PROJECT}/global/networks/base"


def sample(kind: str, /, **changed: Any) -> tuple[str, Props]:
    """A sample with some of its inputs changed; None takes one away."""
    found = {**OF[kind].inputs, **changed}
    return OF[kind].token, {k: v for k, v in found.items() if v is not None}


def scheduled(**changed: Any) -> Props:
    return {**MACHINE["scheduling"], **changed}


LOGGED: Props = {"displayName": "l", "conditionMatchedLog": {"filter": "severity>=ERROR"}}
SENT: Props = {
    "displayName": "s",
    "conditionThreshold": {
        "filter": 'metric.type = "workload.googleapis.com/gpu.dcgm.temperature"',
        "comparison": "COMPARISON_GT",
        "duration": "60s",
    },
}
IN_PREVIEW: list[tuple[tuple[str, Props], str]] = [
    (sample("AlertPolicy", conditions=[SENT]), "Cannot find metric(s) that match type"),
    (sample("AlertPolicy", conditions=[LOGGED]), "wants a rate limit"),
    (sample("AlertPolicy", conditions=[LOGGED, LOGGED]), "stands alone"),
    (sample("Workflow", userEnvVars={"GOOGLE_X": "a"}), "is one of the service's own"),
    (sample("Workflow", sourceContents="{"), "is no JSON"),
    (sample("Network", name="Upper"), "name: 'Upper' does not match"),
    (sample("Network", mtu=9000), "mtu: 9000 is not from 1300 to 8896"),
    (sample("Network", routingMode="REGION"), "'REGION' is not one of GLOBAL, REGIONAL"),
    (sample("Network", autoCreateSubnetworks=True), "a network with a profile is a custom one"),
    (sample("Network", mtu="big"), "mtu: expected a whole number"),
    (sample("Network", mtv=1), "mtv: unknown property of NetworkArgs; did you mean 'mtu'?"),
    (sample("Subnetwork", ipCidrRange="10.0.0.1/24"), "has host bits set"),
    (sample("Subnetwork", ipv6AccessType="ANY"), "'ANY' is not one of EXTERNAL, INTERNAL"),
    (sample("Firewall", denies=[{"protocol": "tcp"}]), "exactly one of allows, denies"),
    (sample("Firewall", sourceRanges=None), "one of source_tags, source_ranges"),
    (sample("Firewall", sourceTags=["a"]), "conflicts with targetServiceAccounts"),
    (sample("RouterNat", natIps=["a"]), "must be MANUAL_ONLY"),
    (sample("RouterNat", type="OPEN"), "'OPEN' is not one of PRIVATE, PUBLIC"),
    (sample("Disk", accessMode="ALL"), "'ALL' is not one of"),
    (
        sample("Instance", scheduling=scheduled(provisioningModel="SPOTT")),
        "'SPOTT' is not one of FLEX_START, RESERVATION_BOUND, SPOT, STANDARD; did you mean 'SPOT'",
    ),
    (sample("Instance", scheduling=scheduled(automaticRestart=True)), "is not restarted"),
    (sample("Instance", scheduling={"automaticRestart": False}), "do not support live migration"),
    (
        sample("Instance", scheduling=scheduled(provisioningModel="STANDARD")),
        "scheduling.preemptible: conflicts",
    ),
    (
        sample(
            "Instance",
            scheduling=scheduled(provisioningModel="FLEX_START", preemptible=None),
            reservationAffinity=None,
        ),
        "FLEX_START takes no reservation",
    ),
    (
        sample(
            "Instance",
            scheduling={"onHostMaintenance": "TERMINATE", "provisioningModel": "FLEX_START"},
        ),
        "FLEX_START needs how long it runs",
    ),
    (
        sample(
            "Instance",
            scheduling={"onHostMaintenance": "TERMINATE", "provisioningModel": "RESERVATION_BOUND"},
        ),
        "RESERVATION_BOUND needs SPECIFIC_RESERVATION",
    ),
    (
        sample("Instance", networkInterfaces=[{"subnetwork": "base", "nicType": "FAST"}]),
        "'FAST' is not one of GVNIC, IDPF, IRDMA, MRDMA",
    ),
    (
        sample("Instance", networkInterfaces=[{"network": "base"}, {"network": "base"}]),
        "another interface is in the same network",
    ),
    (sample("Instance", desiredStatus="ASLEEP"), "none of RUNNING, SUSPENDED, TERMINATED"),
    (
        sample("Instance", networkInterfaces=[{"network": "base", "ipv6AccessType": "EXTERNAL"}]),
        "NetworkInterface has it as an output only",
    ),
    (
        sample("Instance", networkInterfaces=[{"network": "base", "securityPolicy": "s"}]),
        "networkInterfaces[0].securityPolicy: the API's body has no member for it",
    ),
    (sample("RegionInstanceTemplate", disks=[{"diskType": "pd-ssd"}]), "a disk to boot from"),
    (
        sample("RegionInstanceTemplate", disks=[{"boot": True, "diskSize": 1}]),
        "disks[0].diskSize: unknown property",
    ),
    (
        sample("RegionInstanceTemplate", scheduling=scheduled(onHostMaintenance="STOP")),
        "properties.scheduling.onHostMaintenance: 'STOP' is not one of MIGRATE, TERMINATE",
    ),
    (
        sample(
            "InstanceGroupManager",
            autoHealingPolicies={"healthCheck": CHECK, "initialDelaySec": 3601},
        ),
        "3601 is not from 0 to 3600",
    ),
    (
        sample(
            "InstanceGroupManager",
            updatePolicy={**OF["InstanceGroupManager"].inputs["updatePolicy"], "maxSurgeFixed": 1},
        ),
        "needs a surge of 0",
    ),
    (
        sample(
            "InstanceGroupManager",
            updatePolicy={
                "type": "PROACTIVE",
                "minimalAction": "REPLACE",
                "maxSurgeFixed": 0,
                "maxUnavailableFixed": 0,
            },
        ),
        "cannot both be 0",
    ),
    (
        sample(
            "RegionInstanceGroupManager",
            distributionPolicyTargetShape="ANY_SINGLE_ZONE",
            updatePolicy=OF["InstanceGroupManager"].inputs["updatePolicy"],
        ),
        "the target shape ANY_SINGLE_ZONE needs NONE",
    ),
    (
        sample("Autoscaler", autoscalingPolicy={"minReplicas": 3, "maxReplicas": 2}),
        "3 is more than the 2 of maxReplicas",
    ),
    (
        sample(
            "Autoscaler",
            autoscalingPolicy={
                "minReplicas": 0,
                "maxReplicas": 2,
                "scalingSchedules": [
                    {
                        "name": "s",
                        "schedule": "nightly",
                        "durationSec": 60,
                        "minRequiredReplicas": 1,
                    }
                ],
            },
        ),
        "60 is less than 300; autoscalingPolicy.scalingSchedules[0].schedule: 'nightly' is no cron",
    ),
    (sample("HealthCheck", tcpHealthCheck={"port": 1}), "exactly one of grpcHealthCheck"),
    (sample("HealthCheck", timeoutSec=60), "60 is more than the 10 of checkIntervalSec"),
    (sample("HealthCheck", name="h" * 64), "does not match"),
    (sample("ResourcePolicy", groupPlacementPolicy=None), "one of diskConsistencyGroupPolicy"),
    (
        sample("ResourcePolicy", groupPlacementPolicy={"maxDistance": 4}),
        "4 is not from 1 to 3",
    ),
    (
        sample("ResourcePolicy", groupPlacementPolicy=None, workloadPolicy={"type": "FAST"}),
        "'FAST' is not one of HIGH_AVAILABILITY, HIGH_THROUGHPUT",
    ),
    (sample("Account", accountId="Node"), "is not 6 to 30 lower-case letters"),
    (sample("IAMCustomRole", roleId="a-b"), "is not 3 to 64 letters"),
    (sample("Service", service="compute"), "is no name of a service"),
    (sample("BucketIAMMember", member="ann"), "'ann' is no member"),
    (sample("BucketIAMMember", role="viewer"), "'viewer' is no role"),
    (sample("Bucket", publicAccessPrevention="yes"), "neither enforced nor inherited"),
    (sample("Bucket", name="A-Bucket"), "without capital letters"),
    (
        sample("Bucket", lifecycleRules=[{"action": {"type": "Drop"}, "condition": {"age": 1}}]),
        "lifecycleRules[0].action.type: 'Drop' is no action",
    ),
    (
        sample(
            "Bucket",
            lifecycleRules=[{"action": {"type": "SetStorageClass"}, "condition": {"age": 1}}],
        ),
        "SetStorageClass needs it",
    ),
    (sample("BucketObject", content=None), "exactly one of content, source"),
    (sample("Metric", metricDescriptor={"metricKind": "UP", "valueType": "INT64"}), "'UP' is not"),
    (sample("Dashboard", dashboardJson="{"), "dashboardJson: is no JSON"),
    (sample("Dashboard", dashboardJson='{"displayNam": 1}'), "did you mean 'displayName'"),
    (sample("AlertPolicy", combiner="XOR"), "'XOR' is not one of"),
    (
        sample("AlertPolicy", alertStrategy={"autoClose": "half an hour"}),
        "alertStrategy.autoClose: 'half an hour' is no google-duration",
    ),
    (
        sample("NotificationChannel", sensitiveLabels={"passwordWo": "x"}),
        "the API's labels have none for it",
    ),
    (sample("Topic", messageRetentionDuration="1d"), "'1d' is no google-duration"),
    (sample("Budget", billingAccount="mine"), "'mine' is no billing account"),
    (
        sample("Budget", amount={"specifiedAmount": {"units": "many"}}),
        "amount.specifiedAmount.units: 'many' is no int64",
    ),
    (sample("Job", schedule="every evening"), "'every evening' is no cron expression"),
    (
        sample("Job", httpTarget={"uri": "https://x", "httpMethod": "SEND"}),
        "httpTarget.httpMethod: 'SEND' is not one of",
    ),
    (("gcp:container/cluster:Cluster", {}), "is not in the stand-in"),
    (("gcp:compute/wetwork:Wetwork", {}), "the installed SDK has no resource type"),
]


@pytest.mark.parametrize(("what", "why"), IN_PREVIEW)
def test_inputs_are_refused_in_the_preview(what: tuple[str, Props], why: str) -> None:
    found = "; ".join(Direct(base=False).problems(*what))
    assert why in found


WHEN_MADE = [
    (sample("Subnetwork", network="gone"), "404: The resource 'projects/acme/global/networks/gone"),
    (
        sample("Subnetwork", ipCidrRange="10.0.0.128/25"),
        "conflicts with existing subnetwork 'base'",
    ),
    (sample("Disk", image="debian-cloud/debian-1"), "images/debian-1' was not found"),
    (sample("Disk", image="family/mine"), "images/family/mine' was not found"),
    (sample("Instance", attachedDisks=[{"source": "gone"}]), "disks/gone' was not found"),
    (
        sample("InstanceGroupManager", versions=[{"instanceTemplate": "gone"}]),
        "instanceTemplates/gone' was not found",
    ),
    (sample("RouterNat", router="gone"), "routers/gone' was not found"),
    (sample("Router", name="base"), "409: The resource 'projects/acme/regions/us-central1/rou"),
    (sample("Bucket", name="base-bucket"), "409"),
    (sample("Account", accountId="node-1"), "409"),
    (sample("BucketObject", bucket="gone"), "b/gone' was not found"),
    (sample("BucketIAMMember", bucket="gone"), "b/gone' was not found"),
    (
        sample("IAMMember", serviceAccountId=f"projects/{PROJECT}/serviceAccounts/gone"),
        "serviceAccounts/gone' was not found",
    ),
    (
        sample("BucketIAMMember", member=f"serviceAccount:gone@{PROJECT}.iam.gserviceaccount.com"),
        "does not exist",
    ),
    (
        sample("BucketIAMMember", role=f"projects/{PROJECT}/roles/gone"),
        "roles/gone) does not exist",
    ),
    (sample("AlertPolicy", notificationChannels=["projects/acme/notificationChannels/x"]), "404"),
    (sample("Budget", allUpdatesRule={"pubsubTopic": "projects/acme/topics/x"}), "404"),
    (sample("PerInstanceConfig", instanceGroupManager="gone"), "404"),
    (sample("ResizeRequest", instanceGroupManager="gone"), "404"),
]


@pytest.mark.parametrize(("what", "why"), WHEN_MADE)
def test_what_points_nowhere_or_is_there_already_is_refused(
    what: tuple[str, Props], why: str
) -> None:
    cloud = Direct()
    before = cloud.gcp.inventory()
    with pytest.raises(GoogleError, match="googleapi") as refused:
        cloud.create(*what)
    assert why in str(refused.value)
    assert cloud.gcp.inventory() == before, "nothing is left of it"


@pytest.mark.parametrize(
    ("path", "user"),
    [
        ("projects/acme/global/networks/base", "subnetworks/base"),
        (f"projects/acme/regions/{REGION}/subnetworks/base", "instanceTemplates/base"),
        (f"projects/acme/regions/{REGION}/instanceTemplates/base", "instanceGroupManagers/base"),
    ],
)
def test_what_is_used_cannot_be_deleted(path: str, user: str) -> None:
    cloud = Direct()
    with pytest.raises(GoogleError, match=r"400: .*already being used by") as refused:
        cloud.gcp.api.delete(f"compute/{path}")
    assert user in str(refused.value)
    assert cloud.gcp.get(path)


def test_a_group_with_an_autoscaler_is_in_use_and_has_room_for_no_second_one() -> None:
    cloud = Direct()
    token, inputs = sample("Autoscaler")
    cloud.create(token, inputs)
    with pytest.raises(GoogleError, match="has an autoscaler already"):
        cloud.create(token, {**inputs, "name": "b"})
    with pytest.raises(GoogleError, match="already being used"):
        cloud.gcp.api.delete(f"compute/{inputs['target']}")


def test_a_full_bucket_is_emptied_only_if_so_asked() -> None:
    cloud = Direct()
    cloud.create(*sample("BucketObject"))
    token = BUCKET.token
    inputs: Props = {"name": "base-bucket", "location": "US"}
    with pytest.raises(GoogleError, match=r"409: The bucket .* is not empty"):
        cloud.delete(token, "base-bucket", inputs)
    cloud.delete(token, "base-bucket", {**inputs, "forceDestroy": True})
    assert not [key for key in cloud.gcp.inventory() if key.startswith("storage/")]


def test_a_channel_that_an_alert_tells_stays_until_it_is_forced() -> None:
    cloud = Direct()
    token, inputs = sample("NotificationChannel")
    id_, inputs = cloud.create(token, inputs)
    cloud.create(*sample("AlertPolicy", notificationChannels=[id_]))
    with pytest.raises(GoogleError, match="it is used by"):
        cloud.delete(token, id_, inputs)
    cloud.delete(token, id_, {**inputs, "forceDelete": True})


def test_a_protected_resource_is_not_deleted() -> None:
    cloud = Direct()
    token, inputs = sample("Instance", deletionProtection=True)
    id_, inputs = cloud.create(token, inputs)
    with pytest.raises(GoogleError, match="protected"):
        cloud.delete(token, id_, inputs)
    token, inputs = sample("Topic", deletionPolicy="PREVENT")
    id_, inputs = cloud.create(token, inputs)
    with pytest.raises(Refused, match="PREVENT"):
        cloud.delete(token, id_, inputs)
    cloud.delete(token, id_, {**inputs, "deletionPolicy": "ABANDON"})
    assert cloud.read(token, id_, inputs), "abandoned, not deleted"


def test_a_machine_that_runs_is_changed_only_with_leave_to_stop_it() -> None:
    cloud = Direct()
    token, inputs = sample("Instance", allowStoppingForUpdate=False)
    id_, inputs = cloud.create(token, inputs)
    with pytest.raises(Refused, match="allow_stopping_for_update"):
        cloud.update(token, id_, inputs, {**inputs, "machineType": "g2-standard-8"})
    cloud.gcp.set(id_, {"status": "TERMINATED"})
    cloud.update(token, id_, inputs, {**inputs, "machineType": "g2-standard-8"})


def test_a_template_cannot_be_changed_nor_an_input_that_the_stand_in_cannot() -> None:
    cloud = Direct()
    id_, inputs = cloud.create(TEMPLATE.token, TEMPLATE.inputs)
    with pytest.raises(Refused, match="cannot change it in place"):
        cloud.update(TEMPLATE.token, id_, inputs, {**inputs, "machineType": "n1-standard-1"})


@pytest.mark.parametrize("example", SAMPLES, ids=lambda each: each.name)
def test_values_that_a_preview_does_not_know_pass_every_check(example: Sample) -> None:
    hidden = {name: UNKNOWN for name in example.inputs if name not in ("sensitiveLabels",)}
    assert Direct(base=False).problems(example.token, hidden) == []


def test_a_place_that_nobody_names_is_refused() -> None:
    nowhere = Direct({"project": PROJECT}, base=False)
    token, inputs = sample("Disk", zone=None)
    assert "neither the resource nor the provider has a zone" in nowhere.problems(token, inputs)[0]
    token, inputs = sample("Router", region=None)
    assert "has a region" in nowhere.problems(token, inputs)[0]
    token, inputs = sample("Network")
    homeless = Direct({}, base=False)
    assert "the provider has no project" in homeless.problems(token, inputs)[0]


def test_a_type_that_is_not_known_is_recorded_only_if_a_test_asks() -> None:
    cloud = Direct(base=False)
    token, inputs = "gcp:dns/managedZone:ManagedZone", {"name": "s", "dnsName": "s."}
    with pytest.raises(Refusal, match="not in the stand-in"):
        cloud.create(token, inputs)
    cloud.gcp.recorded = True
    id_, inputs = cloud.create(token, inputs)
    assert cloud.gcp.inventory() == [f"recorded {token} {id_}"]
    state = cloud.read(token, id_, inputs)
    assert state
    assert state.inputs == inputs
    cloud.update(token, id_, inputs, {**inputs, "dnsName": "t."})
    cloud.delete(token, id_, inputs)
    assert cloud.gcp.inventory() == []


def test_the_samples_name_what_exists() -> None:
    assert IMAGE
    assert ACCOUNT.endswith(".iam.gserviceaccount.com")
    for example in SAMPLES:
        assert set(example.inputs) <= inputs_of(example.token)
    assert NETWORK
    assert ZONE
