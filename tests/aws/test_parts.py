"""Rights, keys, the store, scaling, watching and the budget of a fleet."""

from __future__ import annotations

import base64
import hashlib
import json
from pathlib import Path
from typing import Any

import pytest
from tests.aws import world
from tests.aws.world import alone, planned

from gputier import testing
from gputier.aws import Deployment, deploy
from gputier.aws.storage import GRANTED
from gputier.lock import Bundle, bundle, current_bundle
from gputier.node.bucket import bucket_name

L4: dict[str, Any] = {"gpu": {"models": ["L4"]}, "purpose": "inference"}
BUCKET = bucket_name("gputier", "test", world.ACCOUNT, "us-east-1")


def statements(run: testing.Run, name: str = "job-rights") -> list[dict[str, Any]]:
    return json.loads(run.find(f"RolePolicy {name}").inputs["policy"])["Statement"]


def test_rights_are_the_plans_with_nothing_left_open() -> None:
    plan = planned(**L4)
    found = statements(world.fleet(plan))
    assert plan.chosen
    assert [s["Sid"] for s in found] == [s.sid for s in plan.chosen.identity.statements]
    assert "{" not in json.dumps(found).replace('{"', "").replace("{}", "")
    actions = [action for s in found for action in s["Action"]]
    assert not any("*" in action for action in actions)
    by_sid = {s["Sid"]: s for s in found}
    assert by_sid["WriteReports"]["Resource"] == [f"arn:aws:s3:::{BUCKET}/reports/job/*"]
    assert by_sid["PassGate"]["Resource"] == [
        f"arn:aws:autoscaling:us-east-1:{world.ACCOUNT}:autoScalingGroup:*"
        ":autoScalingGroupName/gputier-test-job"
    ]


def test_a_boundary_bounds_the_role_and_a_role_of_ones_own_is_used_as_it_is() -> None:
    arn = "arn:aws:iam::123456789012:policy/bound"
    run = alone(**L4, identity={"permissions_boundary": arn})
    assert run.find("Role job-role").inputs["permissionsBoundary"] == arn
    run = alone(**L4, identity={"role": "arn:aws:iam::123456789012:role/ml/nodes"})
    assert run.of_type("aws:iam/role:Role") == run.of_type("RolePolicy") == []
    assert run.find("InstanceProfile job-profile").inputs["role"] == "nodes"


def test_volumes_are_encrypted_and_as_fast_as_planned() -> None:
    plan = planned(**L4, disk={"data": "500GiB", "iops": 9000, "snapshot": "snap-1"})
    (template,) = world.fleet(plan).of_type("LaunchTemplate")
    root, data = template.inputs["blockDeviceMappings"]
    assert plan.chosen
    assert plan.chosen.storage.data
    assert root["ebs"]["encrypted"] == data["ebs"]["encrypted"] == "true"
    assert (data["ebs"]["iops"], data["ebs"]["snapshotId"]) == (9000, "snap-1")
    assert data["ebs"]["throughput"] == plan.chosen.storage.data.throughput_mb_s
    assert data["ebs"]["deleteOnTermination"] == "true"
    assert (root["deviceName"], data["deviceName"]) == ("/dev/sda1", "/dev/sdf")


def test_a_key_that_is_made_lets_auto_scaling_start_machines() -> None:
    run = alone(**L4, disk={"kms_key": "create"})
    policy = json.loads(run.find("Key job-key").inputs["policy"])["Statement"]
    launcher = (
        f"arn:aws:iam::{world.ACCOUNT}:role/aws-service-role/autoscaling.amazonaws.com"
        "/AWSServiceRoleForAutoScaling"
    )
    theirs = [s for s in policy if s["Principal"] == {"AWS": launcher}]
    assert [s["Action"] for s in theirs][1] == "kms:CreateGrant"
    assert theirs[1]["Condition"] == {"Bool": {"kms:GrantIsForAWSResource": "true"}}
    (template,) = run.of_type("LaunchTemplate")
    (root,) = template.inputs["blockDeviceMappings"]
    assert root["ebs"]["kmsKeyId"] == "arn:of:job-key"
    assert run.find("Key job-key").inputs["enableKeyRotation"] is True


def test_a_key_of_ones_own_is_granted_and_a_lone_machine_needs_no_grant() -> None:
    key = "arn:aws:kms:us-east-1:123456789012:key/0a"
    run = alone(**L4, disk={"kms_key": key})
    grant = run.find("Grant job-launcher").inputs
    assert grant["keyId"] == key
    assert set(grant["operations"]) == set(GRANTED)
    desk = alone(purpose="development", gpu={"models": ["L4"]}, disk={"kms_key": key})
    assert desk.of_type("Grant") == desk.of_type("Key") == []
    assert desk.find("Instance job-machine").inputs["rootBlockDevice"]["kmsKeyId"] == key


def test_the_bundle_is_uploaded_under_its_digest_and_never_deleted() -> None:
    (bundle,) = alone(**L4).of_type("BucketObjectv2")
    sha = current_bundle().sha256
    assert bundle.inputs["key"] == f"bundles/{sha}.pyz"
    assert bundle.inputs["bucket"] == BUCKET
    path = Path(bundle.inputs["source"].path)
    assert hashlib.sha256(path.read_bytes()).hexdigest() == sha
    assert path.parent.stat().st_mode & 0o077 == 0, "nobody else writes what machines will run"
    assert bundle.options.retain_on_delete


def test_the_bundles_file_is_named_by_what_is_in_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bundle, "content", lambda: b"edited since the digest was asked for")
    path = bundle.bundle_file()
    assert path.stem == hashlib.sha256(path.read_bytes()).hexdigest()
    path.unlink()


def test_the_bucket_is_nobody_elses_and_over_tls_alone() -> None:
    run = alone(**L4)
    (block,) = run.of_type("BucketPublicAccessBlock")
    assert {k: v for k, v in block.inputs.items() if isinstance(v, bool)} == {
        "blockPublicAcls": True,
        "blockPublicPolicy": True,
        "ignorePublicAcls": True,
        "restrictPublicBuckets": True,
    }
    (policy,) = run.of_type("BucketPolicy")
    (statement,) = json.loads(policy.inputs["policy"])["Statement"]
    assert statement["Effect"] == "Deny"
    assert statement["Condition"] == {"Bool": {"aws:SecureTransport": "false"}}


@pytest.mark.parametrize(("reports", "stays"), [("keep", True), ("remove", False)])
def test_reports_are_kept_or_removed_with_the_stack(reports: str, stays: bool) -> None:
    run = alone(**L4, identity={"reports": reports})
    (bucket,) = run.of_type("aws:s3/bucket:Bucket")
    assert bucket.options.retain_on_delete is stays
    assert bucket.inputs["forceDestroy"] is not stays, "a bucket that goes is not stopped by files"
    (expiry,) = run.of_type("BucketLifecycleConfiguration")
    prefixes = [rule["filter"]["prefix"] for rule in expiry.inputs["rules"]]
    assert ("reports/job/" in prefixes) is not stays


def test_what_is_kept_on_purpose_is_said() -> None:
    told: list[Any] = []

    def program() -> None:
        plan = planned(**L4)
        deployed = deploy([Deployment(plan, current_bundle())], world.catalog())
        for line in deployed.kept:
            line.apply(told.append)

    world.run(program)
    assert told == [f"bucket {BUCKET}: reports are kept"]


def test_scaling_keeps_the_figure_that_the_agent_publishes() -> None:
    run = alone(**L4, scale={"min": 1, "max": 4, "target": 60})
    policy = run.find("Policy job-tracking").inputs
    metric = policy["targetTrackingConfiguration"]["customizedMetricSpecification"]
    assert metric["metricName"] == "nvidia_smi_utilization_gpu"
    assert metric["metricDimensions"] == [
        {"name": "AutoScalingGroupName", "value": "gputier-test-job"}
    ]
    assert policy["targetTrackingConfiguration"]["targetValue"] == 60
    (group,) = run.of_type("aws:autoscaling/group:Group")
    (template,) = run.of_type("LaunchTemplate")
    told = base64.b64decode(template.inputs["userData"]).decode()
    assert '"aggregation_dimensions":[["AutoScalingGroupName"]]' in told
    assert (group.inputs["minSize"], group.inputs["maxSize"]) == (1, 4)
    assert group.inputs["defaultInstanceWarmup"] == policy["estimatedInstanceWarmup"]


def test_a_schedule_is_actions_in_their_time_zone_named_by_what_they_say() -> None:
    hours = {"start": "0 8 * * mon-fri", "stop": "0 20 * * mon-fri", "timezone": "Europe/Berlin"}
    run = alone(**L4, schedule=[hours])
    actions = run.of_type("aws:autoscaling/schedule:Schedule")
    assert sorted((a.inputs["recurrence"], a.inputs["desiredCapacity"]) for a in actions) == [
        ("0 20 * * 1-5", 0),
        ("0 8 * * 1-5", 1),
    ]
    assert {a.inputs["timeZone"] for a in actions} == {"Europe/Berlin"}
    again = alone(**L4, schedule=[{**hours, "start": "0 7 * * sat", "stop": "0 9 * * sat"}, hours])
    assert {a.name for a in actions} < {
        a.name for a in again.of_type("aws:autoscaling/schedule:Schedule")
    }


def test_every_alarm_of_the_plan_is_made_and_tells_the_topic() -> None:
    plan = planned(**L4)
    run = world.fleet(plan)
    alarms = run.of_type("MetricAlarm")
    assert plan.chosen
    assert len(alarms) == len(plan.chosen.monitoring.alarms) >= 4
    for alarm in alarms:
        assert alarm.inputs["alarmActions"] == ["arn:of:job-alerts"]
        text = json.dumps(alarm.inputs)
        assert "gputier-test-job" in text
        assert "{group}" not in text
    cost = run.find("MetricAlarm job-alarm-cost").inputs["metricQueries"]
    assert [query.get("returnData") for query in cost] == [True, None]
    assert cost[0]["expression"].startswith("machines * 0.8")


def test_a_lone_machines_alarms_read_its_own_figures() -> None:
    run = alone(purpose="development", gpu={"models": ["L4"]})
    hot = run.find("MetricAlarm job-alarm-hot").inputs
    assert hot["dimensions"] == {"InstanceId": "i-job-machine"}
    assert "metricQueries" not in hot


def test_the_dashboard_shows_each_gpu_and_is_linked() -> None:
    run = alone(**L4)
    body = json.loads(run.find("Dashboard job-dashboard").inputs["dashboardBody"])
    lines = [widget["properties"]["metrics"] for widget in body["widgets"]]
    searches = [line[0][0]["expression"] for line in lines if isinstance(line[0][0], dict)]
    assert any('AutoScalingGroupName="gputier-test-job"' in search for search in searches)
    places = {(w["x"], w["y"]) for w in body["widgets"]}
    assert len(places) == len(body["widgets"])
    assert run.outputs["fleet"]["dashboard_url"] == (
        "https://us-east-1.console.aws.amazon.com/cloudwatch/home?region=us-east-1"
        "#dashboards/dashboard/gputier-test-job"
    )


def test_a_budget_counts_the_fleets_tag_and_tells_what_was_and_what_will_be_spent() -> None:
    run = alone(**L4, budget={"usd_per_month": 800, "alerts": [50, 100]})
    inputs = run.find("Budget job-budget").inputs
    assert inputs["limitAmount"] == "800"
    assert inputs["costFilters"] == [
        {"name": "TagKeyValue", "values": ["user:gputier:fleet$gputier-test-job"]}
    ]
    told = [(n["notificationType"], n["threshold"]) for n in inputs["notifications"]]
    assert told == [("ACTUAL", 400), ("ACTUAL", 800), ("FORECASTED", 800)]
    assert all(
        n["subscriberSnsTopicArns"] == ["arn:of:job-alerts"] for n in inputs["notifications"]
    )
    (policy,) = run.of_type("TopicPolicy")
    assert "budgets.amazonaws.com" in policy.inputs["policy"]


def test_without_a_budget_there_is_none() -> None:
    assert alone(**L4).of_type("Budget") == []


def test_a_bundle_of_another_release_is_not_uploaded_as_if_it_were_the_pinned_one() -> None:
    from_elsewhere = Bundle("0" * 64, "9.9.9")
    with pytest.raises(Exception, match=r"`gputier lock test --upgrade job`"):
        world.run(lambda: deploy([Deployment(planned(**L4), from_elsewhere)], world.catalog()))
