"""A lone machine: its volume, its hours, and what an `up` leaves alone."""

from __future__ import annotations

import json
from typing import Any

from tests.aws.world import alone

DESK: dict[str, Any] = {"purpose": "development", "gpu": {"models": ["L4"]}}
HOURS = {"start": "0 8 * * mon-fri", "stop": "0 20 * * mon-fri", "timezone": "Europe/Berlin"}


def test_one_machine_by_itself_is_an_instance_and_no_group() -> None:
    run = alone(**DESK)
    machine = run.find("Instance job-machine").inputs
    assert run.of_type("aws:autoscaling/group:Group") == []
    assert machine["instanceType"] == "g6.xlarge"
    assert machine["iamInstanceProfile"] == "gputier-test-job-node"
    assert machine["metadataOptions"]["httpTokens"] == "required"


def test_its_data_volume_outlives_it_and_lies_in_its_subnets_zone() -> None:
    run = alone(**DESK, disk={"data": "200GiB", "snapshot": "snap-1", "iops": 5000})
    volume, attached = run.find("Volume job-data"), run.find("VolumeAttachment job-data")
    assert volume.inputs["availabilityZone"] == "name-of-use1-az1"
    assert (volume.inputs["size"], volume.inputs["iops"]) == (200, 5000)
    assert (volume.inputs["encrypted"], volume.inputs["snapshotId"]) == (True, "snap-1")
    assert attached.inputs["volumeId"] == "job-data-id"
    assert attached.inputs["stopInstanceBeforeDetaching"] is True
    assert "Instance job-machine" not in volume.options.depends_on, "it goes with no machine"


def test_an_up_neither_stops_nor_replaces_what_somebody_works_on() -> None:
    kept = alone(**DESK).find("Instance job-machine").options.ignore_changes
    assert set(kept) >= {"ami", "instanceType", "userDataBase64", "subnetId"}


def test_nothing_replaces_its_data_volume_by_an_empty_one() -> None:
    volume = alone(**DESK, disk={"data": "50GB"}).find("Volume job-data")
    kept = {"availabilityZone", "kmsKeyId", "snapshotId"}
    assert set(volume.options.ignore_changes) == kept, "each of them forces a new volume"


def test_in_production_its_data_volume_is_protected() -> None:
    image = {"id": "ami-0123456789abcdef0", "os": "ubuntu-24.04", "driver": "580.95.05"}
    fields: dict[str, Any] = {**DESK, "disk": {"data": "50GB"}, "software": {"image": image}}
    prod = alone(environment="prod", **fields).find("Volume job-data")
    assert prod.options.protect
    assert not alone(environment="dev", **fields).find("Volume job-data").options.protect


def test_its_schedule_starts_and_stops_it_in_its_time_zone() -> None:
    run = alone(**DESK, schedule=[HOURS])
    schedules = run.of_type("aws:scheduler/schedule:Schedule")
    assert {s.inputs["scheduleExpression"] for s in schedules} == {
        "cron(0 8 ? * MON-FRI *)",
        "cron(0 20 ? * MON-FRI *)",
    }
    assert {s.inputs["scheduleExpressionTimezone"] for s in schedules} == {"Europe/Berlin"}
    assert {s.inputs["target"]["arn"] for s in schedules} == {
        "arn:aws:scheduler:::aws-sdk:ec2:startInstances",
        "arn:aws:scheduler:::aws-sdk:ec2:stopInstances",
    }
    for schedule in schedules:
        assert json.loads(schedule.inputs["target"]["input"]) == {"InstanceIds": ["i-job-machine"]}
        assert len(schedule.inputs["name"]) <= 64, "scheduler API 2021-06-30, CreateSchedule: 64"


def test_a_day_of_the_month_or_of_the_week_is_two_schedules() -> None:
    run = alone(**DESK, schedule=[{**HOURS, "start": "0 8 1 * mon", "stop": "0 20 * * *"}])
    starts = [
        schedule
        for schedule in run.of_type("aws:scheduler/schedule:Schedule")
        if "start" in schedule.name
    ]
    assert [s.inputs["scheduleExpression"] for s in starts] == [
        "cron(0 8 1 * ? *)",
        "cron(0 8 ? * MON *)",
    ]
    assert starts[1].name == f"{starts[0].name}-weekdays"


def test_who_keeps_the_hours_may_start_and_stop_this_machine_and_nothing_else() -> None:
    run = alone(**DESK, schedule=[HOURS])
    (statement,) = json.loads(run.find("RolePolicy job-hours").inputs["policy"])["Statement"]
    assert statement["Action"] == ["ec2:StartInstances", "ec2:StopInstances"]
    assert statement["Resource"] == ["arn:of:job-machine"]
    trust = json.loads(run.find("Role job-hours").inputs["assumeRolePolicy"])
    assert trust["Statement"][0]["Principal"] == {"Service": "scheduler.amazonaws.com"}


def test_without_a_schedule_nobody_keeps_hours() -> None:
    assert alone(**DESK).of_type("Role")[0].name == "job-role"
    assert len(alone(**DESK).of_type("Role")) == 1


def test_a_spot_machine_is_stopped_when_it_is_taken_and_comes_back() -> None:
    options = alone(**DESK, capacity="spot").find("Instance job-machine").inputs
    assert options["instanceMarketOptions"] == {
        "marketType": "spot",
        "spotOptions": {
            "instanceInterruptionBehavior": "stop",
            "spotInstanceType": "persistent",
        },
    }


def test_how_to_reach_it_names_it() -> None:
    outputs = alone(**DESK, software={"container": {"image": "x/y:1", "ports": [8888]}}).outputs
    fleet = outputs["fleet"]
    shell = "aws ssm start-session --region us-east-1 --target i-job-machine"
    assert fleet["connect"]["shell"] == shell
    assert "portNumber=8888,localPortNumber=8888" in fleet["connect"]["forward"]
    assert fleet["gate_state"].startswith("aws s3 ls --region us-east-1 --recursive s3://gputier-")
    assert fleet["gate_state"].endswith("/reports/job/")
    assert fleet["machine"] == "g6.xlarge"
