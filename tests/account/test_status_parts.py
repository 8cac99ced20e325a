"""Activities, the clock and reports by themselves."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import UTC, datetime
from importlib import import_module
from types import SimpleNamespace
from typing import Any

import pytest
from tests.account.amazon_account import KEYS, errors
from tests.account.status_amazon import ago, group, launch, report, report_key, terminate
from tests.account.status_scenes import BLOCK, GONE_BY_EC2, GROUP, NIGHTS, ONE, TWO
from tests.account.status_world import CHAT, declared, stack

from gputier.account import status_activities, status_aws
from gputier.account.answers import CannotAsk
from gputier.account.session_aws import AwsSession
from gputier.account.status_activities import read
from gputier.account.status_ask import Clouds, Sessions, ask_stack
from gputier.account.status_facts import Questions
from gputier.account.status_reports import MOST_READ, Listing, Reports, counted
from gputier.account.status_schedule import clock
from gputier.node import settings as boot
from gputier.node.gates.base import report_key as node_key
from gputier.node.result import ORDER

Stubber: Any = import_module("botocore.stub").Stubber
boto3: Any = import_module("boto3")

CAUSES = [
    ("in response to an EC2 health check indicating it has been terminated or stopped", "vanished"),
    ("an instance was taken out of service in response to a user health-check", "broken"),
    ("in response to an EC2 instance status check failure", "broken"),
    ("in response to an EC2 scheduled reboot", "broken"),
    ("in response to a difference between desired and actual capacity, shrinking the capacity from"
     " 3 to 2", "scaled-in"),
    ("in response to a user request, shrinking the capacity from 3 to 2", "scaled-in"),
    ("in response to an EC2 instance rebalance recommendation", "interrupted"),
    ("in response to an instance refresh", "replaced"),
    ("in response to something new", "unknown"),
]  # fmt: skip


@pytest.mark.parametrize(("cause", "how"), CAUSES)
def test_why_a_machine_went_is_read_of_the_cause(cause: str, how: str) -> None:
    story = read([launch(GROUP, ago(hours=2), ONE), terminate(GROUP, ago(hours=1), ONE, cause)])
    (life,) = story.gone
    assert (life.id, life.how) == (ONE, how)
    assert (life.started, life.ended) == (ago(hours=2).timestamp(), ago(hours=1).timestamp())


def test_activities_may_come_in_any_order() -> None:
    told = [
        terminate(GROUP, ago(hours=1), ONE, GONE_BY_EC2),
        launch(GROUP, ago(minutes=5), TWO),
        launch(GROUP, ago(hours=2), ONE),
    ]
    assert read(told) == read(told[::-1])
    assert read(told).came == ago(minutes=5).timestamp()


def test_a_launch_that_was_given_up_says_why_and_its_end_adds_nothing() -> None:
    said = "… was abandoned: Lifecycle Action Completed with ABANDON Result"
    begun = launch(GROUP, ago(hours=2), ONE, "Cancelled", said, ago(hours=1))
    story = read([begun, terminate(GROUP, ago(minutes=50), ONE, GONE_BY_EC2)])
    (life,) = story.gone
    assert (life.how, life.ended) == ("rejected", ago(hours=1).timestamp())


@pytest.mark.parametrize("details", ["", "no json", "[1]", '{"Subnet ID": "s"}'])
def test_details_without_a_zone_name_none(details: str) -> None:
    assert status_activities.zone_of({"Details": details}) is None


def test_an_activity_of_another_kind_is_passed_over() -> None:
    other = {**launch(GROUP, ago(hours=1)), "Description": "Moving EC2 instance to Standby: i-1"}
    story = read([other])
    assert (story.started, story.gone, story.failures) == ({}, (), ())


# --- botocore's own pages --------------------------------------------------------------------


def test_activities_are_read_over_all_pages_and_not_beyond_the_most(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """With botocore's paginators, which the account of the other tests has none of."""
    clients: dict[str, Any] = {}
    stubs: dict[str, Any] = {}
    for service in ("sts", "autoscaling", "ec2", "s3"):
        clients[service] = boto3.client(service, region_name="us-east-1", **KEYS)
        stubs[service] = Stubber(clients[service])
        stubs[service].activate()
    asked = {"AutoScalingGroupName": GROUP, "IncludeDeletedGroups": True, "MaxRecords": 100}
    pages = [[launch(GROUP, ago(hours=n), "", "Failed", "no")] * 2 for n in (1, 2, 3)]
    stubs["sts"].add_response("get_caller_identity", {"Account": "123456789012"})
    groups = {"AutoScalingGroups": [group(GROUP)]}
    stubs["autoscaling"].add_response("describe_auto_scaling_groups", groups)
    stubs["autoscaling"].add_response(
        "describe_scaling_activities", {"Activities": pages[0], "NextToken": "more"}, asked
    )
    stubs["autoscaling"].add_response(
        "describe_scaling_activities",
        {"Activities": pages[1], "NextToken": "most"},
        {**asked, "NextToken": "more"},
    )
    stubs["ec2"].add_response("describe_instances", {"Reservations": []})
    stubs["s3"].add_response("list_objects_v2", {})
    stubs["s3"].add_client_error("get_object", "NoSuchKey")
    monkeypatch.setattr(status_aws, "MOST_ACTIVITIES", 4)
    session = AwsSession(lambda service, _region: clients[service], errors, "us-east-1")
    wanted = stack()

    def aws(_account: Any) -> Any:
        return session

    clouds = Clouds(wanted.account, Sessions(aws))
    found = ask_stack(wanted, clouds, ago().timestamp(), together=1)
    (fleet,) = found.fleets
    assert fleet.troubles[0].times == 4
    assert fleet.spend.not_counted, "there may be more of this month"
    for stub in stubs.values():
        stub.assert_no_pending_responses()


# --- the clock -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("hour", "runs", "what", "next_hour"),
    [
        (10, False, "start", 18),
        (17, False, "start", 18),
        (18, True, "stop", 5),
        (23, True, "stop", 5),
    ],
)
def test_the_next_change_is_the_schedules_in_its_own_time_zone(
    hour: int, runs: bool, what: str, next_hour: int
) -> None:
    now = datetime(2026, 12, 10, hour, 30, tzinfo=UTC)
    found = clock(declared(NIGHTS).workloads["chat"], "on_demand", now.timestamp())
    assert found.runs is runs
    assert found.next is not None
    at = datetime.fromtimestamp(found.next.at, UTC)
    assert (found.next.what, at.hour, at.minute) == (what, next_hour, 0)


def test_without_a_schedule_and_beyond_its_calendar_nothing_is_said() -> None:
    assert clock(declared(CHAT).workloads["chat"], "on_demand", 0.0) == (None, None)
    assert clock(None, "spot", 0.0) == (None, None)
    far = datetime(2031, 1, 1, tzinfo=UTC).timestamp()
    assert clock(declared(NIGHTS).workloads["chat"], "spot", far) == (None, None)


@pytest.mark.parametrize(
    ("day", "what", "at"),
    [
        (10, "start", "2026-12-12T11:30"),
        (
            13,
            "stop",
            "2026-12-14T10:45",
        ),  # 30 minutes before its end it is taken, 15 are for leaving
        (15, None, None),
    ],
)
def test_what_is_reserved_begins_and_ends_at_its_times(
    day: int, what: str | None, at: str | None
) -> None:
    now = datetime(2026, 12, day, 12, tzinfo=UTC).timestamp()
    found = clock(declared(BLOCK).workloads["chat"], "capacity_block", now).next
    assert (found and found.what) == what
    shown = found and datetime.fromtimestamp(found.at, UTC).strftime("%Y-%m-%dT%H:%M")
    assert shown == at
    assert clock(declared(BLOCK).workloads["chat"], "on_demand", now).next is None


# --- reports ---------------------------------------------------------------------------------


class Shelf:
    """A bucket as a map."""

    address = "s3://b"

    def __init__(self, objects: Mapping[str, Any], most: int = 10_000) -> None:
        self.objects, self.most = objects, most
        self.read_keys: list[str] = []

    def keys(self, prefix: str, most: int) -> Listing:
        found = sorted(key for key in self.objects if key.startswith(prefix))
        room = min(most, self.most)
        return Listing(found[:room], len(found) <= room)

    def read(self, key: str) -> Mapping[str, Any] | None:
        self.read_keys.append(key)
        found = self.objects.get(key)
        if isinstance(found, CannotAsk):
            raise found
        return found


def reports(shelf: Shelf, *present: str) -> Reports:
    found = Reports(shelf, "chat", Questions("chat"))
    found.load(present)
    found.explain(present, ago(days=1).timestamp())
    return found


def test_of_more_reports_than_are_listed_those_of_machines_that_are_there_are_found() -> None:
    objects: dict[str, Any] = {
        report_key("chat", f"i-{n:03}", ago(days=3), "healthy"): {} for n in range(9)
    }
    assert set(reports(Shelf(objects, most=4)).newest) == {"i-000", "i-001", "i-002", "i-003"}
    assert "i-008" in reports(Shelf(objects, most=4), "i-008").newest


def test_only_reports_that_say_why_are_read_and_the_newest_first() -> None:
    objects = {
        report_key("chat", "i-a", ago(hours=1), "healthy"): report("healthy"),
        report_key("chat", "i-b", ago(hours=2), "replace"): report(
            "replace", ("gpu", "7 of 8", "")
        ),
        report_key("chat", "i-c", ago(days=3), "replace"): report("replace"),
        report_key("chat", "i-d", ago(days=3), "config"): report("config"),
        **{
            report_key("chat", f"i-{n:03}", ago(hours=3 + n / 60), "config"): report("config")
            for n in range(30)
        },
    }
    shelf = Shelf(objects)
    found = reports(shelf, "i-d")
    assert shelf.read_keys[0] == report_key("chat", "i-b", ago(hours=2), "replace")
    assert len(shelf.read_keys) == MOST_READ
    assert found.newest["i-b"].causes == (("gpu", "7 of 8", ""),)
    assert found.newest["i-b"].gate == "enforce"


@pytest.mark.parametrize("outcome", ORDER)
def test_a_report_is_found_where_a_node_puts_it(outcome: str) -> None:
    at = ago(minutes=3)
    node: Any = SimpleNamespace(
        host=SimpleNamespace(now=at.timestamp),
        settings=boot.read(json.dumps({"schema": boot.SCHEMA, "workload": "chat"})),
        identity=SimpleNamespace(instance_id=ONE),
    )
    found = reports(Shelf({node_key(node, {"outcome": outcome}): {}})).newest[ONE]
    assert (found.outcome, found.at) == (outcome, at.timestamp())


@pytest.mark.parametrize("bad", [outcome for outcome in ORDER if outcome != "healthy"])
def test_of_two_reports_of_one_second_the_bad_one_counts(bad: str) -> None:
    keys = [report_key("chat", ONE, ago(hours=1), outcome) for outcome in ("healthy", bad)]
    assert reports(Shelf({key: {} for key in keys})).newest[ONE].outcome == bad


def test_keys_that_are_no_reports_are_passed_over() -> None:
    keys = ("reports/chat/", "reports/chat/i-1/notes.txt", "reports/chat/i-1/2026-healthy.json",
            "reports/chat/i-1/20269999T000000Z-healthy.json",
            "reports/chat/i-1/20261201T000000Z-splendid.json")  # fmt: skip
    assert reports(Shelf({key: {} for key in keys})).newest == {}


def test_a_report_that_cannot_be_read_is_noted_once_and_the_rest_is_left() -> None:
    refused = CannotAsk("AccessDenied", "allow it", "right")
    objects = {report_key("chat", f"i-{n}", ago(hours=n), "config"): refused for n in (1, 2, 3)}
    shelf = Shelf(objects)
    questions = Questions("chat")
    found = Reports(shelf, "chat", questions)
    found.load(())
    found.explain((), ago(days=1).timestamp())
    assert len(shelf.read_keys) == len(questions.unasked) == 1


def test_the_breakers_count_is_of_nodes_that_failed_alike() -> None:
    def node(instance: str, reason: str, outcome: str = "config", at: float = 5.0) -> Any:
        return {"instance": instance, "outcome": outcome, "reason": reason, "at": at}

    nodes = [node("i-1", "mig@gpu"), node("i-2", "driver@boot", at=6.0), node("i-3", "driver@boot")]
    assert counted({"nodes": nodes}) == (False, 2, "driver@boot", 6.0)
    assert counted({"nodes": [node("i-1", "x", "replace")]}) == (False, 0, "", None)
    assert counted({}) == (False, 0, "", None)
    tripped = {"instance": "i-1", "reason": "mig@gpu", "at": 7}
    assert counted({"nodes": nodes, "tripped": tripped}) == (True, 1, "mig@gpu", 7.0)
    assert counted({"nodes": "no", "tripped": "no"}) == (False, 0, "", None)
