"""What is made of what AWS says: states, reasons, hours and money, and what cannot be known."""

from __future__ import annotations

from datetime import timedelta

import pytest
from tests.account import status_scenes as scenes
from tests.account.status_amazon import (
    NOW,
    Account,
    ago,
    group,
    launch,
    machine,
    report,
    report_key,
    terminate,
)
from tests.account.status_scenes import ABANDONED, FULL, GROUP, ONE, QUOTA, THREE, TWO
from tests.account.status_world import CHAT, ask, only, stack, text

from gputier.account.status import Stack
from gputier.lock import Lock

MONTH = NOW.replace(day=1, hour=0, minute=0)


def one(state: str = "InService", **more: object) -> Account:
    """A group with one machine, started three hours ago."""
    aws = Account()
    aws.groups = [group(GROUP, [(ONE, state)])]
    aws.machines = [machine(GROUP, ONE, ago(hours=3), **more)]
    aws.activities = [launch(GROUP, ago(hours=3), ONE)]
    return aws


def state_of(found: Stack) -> str:
    (found_one,) = only(found).machines
    return found_one.state


@pytest.mark.parametrize(
    ("cycle", "outcome", "state"),
    [
        ("Pending", None, "starting"),
        ("Pending:Wait", None, "proving"),
        ("Pending:Proceed", None, "proving"),
        ("Pending:Wait", "config", "rejected"),
        ("InService", "healthy", "healthy"),
        ("InService", "replace", "failing"),
        ("InService", None, "unproved"),
        ("Terminating", None, "leaving"),
        ("Terminating:Wait", "replace", "rejected"),
        ("Standby", "healthy", "aside"),
        ("Warmed:Stopped", None, "aside"),
    ],
)
def test_a_machine_is_what_its_group_and_its_newest_report_make_of_it(
    cycle: str, outcome: str | None, state: str
) -> None:
    aws = one(cycle)
    if outcome:
        aws.objects = {report_key("chat", ONE, ago(hours=2), outcome): report(outcome)}
    assert state_of(ask(stack(), aws)) == state


def test_the_newest_report_counts_and_one_of_an_earlier_boot_does_not() -> None:
    aws = one()
    aws.objects = {
        report_key("chat", ONE, ago(hours=2), "config"): report("config"),
        report_key("chat", ONE, ago(hours=1), "healthy"): report("healthy"),
    }
    assert state_of(ask(stack(), aws)) == "healthy"
    aws.objects = {report_key("chat", ONE, ago(days=2), "healthy"): report("healthy")}
    assert state_of(ask(stack(), aws)) == "unproved", "of before it was started"


def test_a_machine_that_the_cloud_calls_unhealthy_does_not_work() -> None:
    aws = one()
    aws.groups[0]["Instances"][0]["HealthStatus"] = "Unhealthy"
    aws.objects = {report_key("chat", ONE, ago(hours=2), "healthy"): report("healthy")}
    found = ask(stack(), aws)
    assert (state_of(found), found.working, only(found).state) == ("failing", 0, "short")
    assert text(found).startswith("prod: 0 of 1 machine works, 1 fails")


def test_a_lone_machine_proves_itself_while_it_serves() -> None:
    aws = Account()
    aws.machines = [machine(GROUP, ONE, ago(minutes=9))]
    found = ask(stack("workloads: {chat: {purpose: development, gpu: {memory: 16GB}}}"), aws)
    fleet = only(found)
    assert (fleet.shape, fleet.size, state_of(found)) == ("lone", (1, 1, 1), "proving")
    aws.objects = {report_key("chat", ONE, ago(minutes=1), "healthy"): report("healthy")}
    assert state_of(ask(stack(), aws)) == "healthy"


def test_a_lone_machine_without_a_report_is_unproved_after_the_longest_boot() -> None:
    aws = Account()
    aws.machines = [machine(GROUP, ONE, ago(hours=3))]
    assert state_of(ask(stack(), aws)) == "unproved"


def test_a_lone_machine_that_is_stopped_costs_nothing_now_and_what_it_ran_is_not_known() -> None:
    aws = Account()
    aws.machines = [machine(GROUP, ONE, ago(days=3), "stopped")]
    found = ask(stack(), aws)
    assert (state_of(found), found.usd_per_hour) == ("stopped", 0)
    assert only(found).spend.usd is None
    assert only(found).spend.not_counted == ("hours before it was stopped",)
    assert "1 is stopped" in text(found)


def test_a_machine_of_a_group_is_no_lone_one() -> None:
    aws = Account()
    made = machine(GROUP, ONE, ago(hours=3))
    made["Tags"].append({"Key": "aws:autoscaling:groupName", "Value": GROUP})
    aws.machines = [made]
    assert only(ask(stack(), aws)).state == "deleted"


# --- reasons ---------------------------------------------------------------------------------


def test_errors_of_one_kind_are_one_reason_with_a_count_and_since_when() -> None:
    aws = Account()
    aws.groups = [group(GROUP)]
    aws.activities = [
        launch(GROUP, ago(minutes=at), "", "Failed", said)
        for at, said in ((1, FULL), (3, QUOTA), (5, FULL), (9, FULL.replace("-1a)", "-1c)")))
    ]
    first, second = only(ask(stack(), aws)).troubles
    assert (first.code, first.times) == ("InsufficientInstanceCapacity", 3)
    assert (first.first, first.last) == (ago(minutes=9).timestamp(), ago(minutes=1).timestamp())
    assert (second.code, second.times) == ("VcpuLimitExceeded", 1)


def test_a_code_that_nobody_knows_is_shown_as_it_is() -> None:
    aws = Account()
    aws.groups = [group(GROUP)]
    said = "Could not launch Spot Instances. FluxLimitExceeded - The flux of {} is too high."
    subnets = ("subnet-0123456789abcdef0", "subnet-0fedcba9876543210")
    aws.activities = [
        launch(GROUP, ago(minutes=n), "", "Failed", said.format(one))
        for n, one in enumerate(subnets, 1)
    ]
    found = ask(stack(), aws)
    (trouble,) = only(found).troubles
    assert (trouble.code, trouble.known, trouble.times) == ("FluxLimitExceeded", False, 2)
    shown = text(found)
    assert "the cloud says: Could not launch Spot Instances. FluxLimitExceeded" in shown
    assert "describe-scaling-activities" in shown, "how to look further"


def test_a_sentence_without_a_code_is_one_kind_whatever_ids_it_names() -> None:
    aws = Account()
    aws.groups = [group(GROUP)]
    aws.activities = [
        launch(GROUP, ago(minutes=n), "", "Failed", f"Flux in subnet-{n:017x} is too high.")
        for n in (1, 2, 3)
    ]
    (trouble,) = only(ask(stack(), aws)).troubles
    assert (trouble.code, trouble.times) == (None, 3)
    assert trouble.words == "Flux in subnet-00000000000000001 is too high."


def test_an_error_is_over_when_machines_came_after_it() -> None:
    aws = one()
    aws.groups[0]["DesiredCapacity"] = 2
    aws.activities.append(launch(GROUP, ago(hours=4), "", "Failed", FULL))
    found = ask(stack(), aws)
    (trouble,) = only(found).troubles
    assert trouble.over
    assert "· over: AWS has no machine" in text(found)
    aws.activities.append(launch(GROUP, ago(hours=1), "", "Failed", FULL))
    (trouble,) = only(ask(stack(), aws)).troubles
    assert not trouble.over


def test_what_was_over_a_day_ago_is_not_told_and_what_still_stands_is() -> None:
    aws = one()
    aws.activities.append(launch(GROUP, ago(hours=30), "", "Failed", FULL))
    assert only(ask(stack(), aws)).troubles == ()
    aws = Account()
    aws.groups = [group(GROUP)]
    aws.activities = [launch(GROUP, ago(hours=30), "", "Failed", FULL)]
    (trouble,) = only(ask(stack(), aws)).troubles
    assert not trouble.over


def test_launches_that_a_person_stopped_are_not_the_breakers() -> None:
    aws = Account()
    aws.groups = [group(GROUP, suspended=["Launch"])]
    (trouble,) = only(ask(stack(), aws)).troubles
    assert trouble.code == "launches-suspended"
    assert trouble.said == "User suspended at 2026-12-10T10:00:00Z"
    assert trouble.fix.startswith("aws autoscaling resume-processes --region us-east-1")


def test_another_process_that_is_suspended_stops_no_launch() -> None:
    aws = one()
    aws.groups[0]["SuspendedProcesses"] = [{"ProcessName": "AZRebalance"}]
    assert only(ask(stack(), aws)).troubles == ()


def test_a_breaker_that_counts_is_told_before_it_stops_anything() -> None:
    aws = one()
    node = {"instance": TWO, "outcome": "config", "reason": "mig@gpu", "at": 1.0}
    aws.objects = {"breaker/chat.json": {"schema": "gputier/breaker/1", "nodes": [node]}}
    found = ask(stack(), aws)
    count = only(found).breaker
    assert count is not None
    assert (count.tripped, count.nodes, count.reason) == (False, 1, "mig@gpu")
    assert "breaker: 1 machine failed for mig@gpu" in text(found)


def test_a_group_that_is_asked_for_no_machine_says_so_and_by_night_the_schedule_does() -> None:
    aws = Account()
    aws.groups = [group(GROUP, size=(0, 0, 3))]
    (trouble,) = only(ask(stack(), aws)).troubles
    assert trouble.code == "at-zero"
    (trouble,) = only(ask(stack(scenes.NIGHTS), aws)).troubles
    assert trouble.code == "asleep"
    (trouble,) = only(ask(stack(scenes.NIGHTS), aws, now=NOW.replace(hour=20))).troubles
    assert trouble.code == "at-zero", "at 21:00 in Berlin it should run"


HELD = """\
workloads:
  chat:
    purpose: training
    gpu: {models: [H100], count: 8}
    capacity:
      use: reservation
      id: cr-0123456789abcdef0
      instance_type: p5.48xlarge
      zone: use1-az4
"""


@pytest.mark.parametrize(
    ("state", "free", "code"),
    [
        ("scheduled", 0, "block-not-started"),
        ("pending", 0, "block-not-started"),
        ("payment-pending", 0, "block-not-started"),
        ("expired", 0, "block-over"),
        ("cancelled", 0, "block-over"),
        ("payment-failed", 0, "block-over"),
        ("active", 0, "reservation-full"),
        ("active", 1, None),
    ],
)
def test_a_reservation_that_keeps_machines_away(state: str, free: int, code: str | None) -> None:
    aws = Account()
    aws.groups = [group(GROUP)]
    aws.reservations = [
        {
            "CapacityReservationId": "cr-0123456789abcdef0",
            "State": state,
            "TotalInstanceCount": 2,
            "AvailableInstanceCount": free,
        }
    ]
    found = only(ask(stack(HELD, chat={"capacity": "reservation"}), aws)).troubles
    assert [trouble.code for trouble in found] == ([code] if code else [])


def test_a_full_reservation_is_no_trouble_when_it_is_full_of_our_own() -> None:
    aws = one()
    aws.reservations = [
        {
            "CapacityReservationId": "cr-0123456789abcdef0",
            "State": "active",
            "TotalInstanceCount": 1,
            "AvailableInstanceCount": 0,
        }
    ]
    assert only(ask(stack(HELD, chat={"capacity": "reservation"}), aws)).troubles == ()


def test_a_reservation_that_is_not_there_is_named() -> None:
    aws = Account()
    aws.groups = [group(GROUP)]
    aws.reservations = "InvalidCapacityReservationId.NotFound"
    (trouble,) = only(ask(stack(HELD, chat={"capacity": "reservation"}), aws)).troubles
    assert (trouble.code, trouble.said) == ("reservation-gone", "cr-0123456789abcdef0")


def test_reservations_are_not_asked_for_when_none_is_used() -> None:
    aws = one()
    aws.reservations = "AccessDenied"
    assert ask(stack(), aws).unasked == ()


# --- hours and money -------------------------------------------------------------------------


def test_hours_count_from_the_month_and_end_when_a_machine_went() -> None:
    aws = one()
    aws.activities += [
        launch(GROUP, MONTH - timedelta(days=9), TWO),
        terminate(GROUP, MONTH + timedelta(hours=10), TWO, "shrinking the capacity from 2 to 1"),
        launch(GROUP, MONTH - timedelta(days=9), THREE),
        terminate(GROUP, MONTH - timedelta(hours=1), THREE, "shrinking the capacity from 2 to 1"),
    ]
    spend = only(ask(stack(), aws)).spend
    assert spend.hours == 3 + 10
    assert spend.usd == pytest.approx(13 * 1.32)
    assert spend.not_counted == ()


def test_what_a_rejected_machine_ran_is_paid_for() -> None:
    aws = Account()
    aws.groups = [group(GROUP)]
    aws.activities = [
        launch(GROUP, ago(hours=2), ONE, "Cancelled", ABANDONED, ago(hours=1, minutes=30))
    ]
    assert only(ask(stack(), aws)).spend.hours == 0.5


def test_an_unknown_price_is_never_zero() -> None:
    found = ask(stack(chat={"usd_per_hour": None}), one())
    spend = only(found).spend
    assert (spend.usd, spend.usd_per_hour, spend.hours) == (None, None, 3)
    assert spend.not_counted == ("money: g6.4xlarge has no known price",)
    assert "price unknown now, price unknown since 1 Dec" in text(found)


def test_a_machine_of_another_type_has_no_price_here() -> None:
    aws = one(InstanceType="p5.48xlarge")
    aws.groups[0]["Instances"][0]["InstanceType"] = "p5.48xlarge"
    spend = only(ask(stack(), aws)).spend
    assert (spend.usd, spend.usd_per_hour) == (None, None)
    assert spend.not_counted == (
        "the money of p5.48xlarge: the lock has the price of another type",
    )


def test_the_price_of_a_lock_is_for_all_its_machines() -> None:
    found = ask(stack(chat={"machines": 4, "nodes": 4, "usd_per_hour": 8.0}), one())
    assert only(found).spend.usd_per_hour == 2.0


def test_a_machine_whose_beginning_nobody_knows_is_not_counted() -> None:
    aws = one()
    aws.activities.append(terminate(GROUP, ago(hours=5), TWO, "a user request"))
    spend = only(ask(stack(), aws)).spend
    assert spend.hours == 3
    assert spend.not_counted == ("1 that went this month: when they came, or went, is not known",)


def test_activities_that_are_cut_off_make_the_money_a_lower_bound() -> None:
    aws = one()
    aws.activities = [launch(GROUP, ago(minutes=n), "", "Failed", FULL) for n in range(1, 2500)]
    found = ask(stack(), aws)
    assert only(found).spend.not_counted == (
        "machines that have gone this month, as far as the cloud does not list them",
    )
    assert "at least $3.96 since 1 Dec" in text(found)
    assert only(found).troubles[0].times == 2000


def test_interruptions_are_counted_for_spot_and_zero_is_known_zero() -> None:
    assert only(ask(stack(), one())).interruptions is None, "it is not bought so"
    spot = {"capacity": "spot"}
    assert only(ask(stack(chat=spot), one())).interruptions == 0
    aws = one()
    aws.activities = "AccessDenied"
    assert only(ask(stack(chat=spot), aws)).interruptions is None, "nobody could say"


def test_a_machine_that_somebody_ended_is_no_interruption() -> None:
    aws = one()
    ended = {"StateReason": {"Code": "Client.UserInitiatedShutdown", "Message": "no"}}
    aws.machines.append(machine(GROUP, TWO, ago(hours=9), "terminated", **ended))
    aws.activities += [
        launch(GROUP, ago(hours=9), TWO),
        terminate(GROUP, ago(hours=1), TWO, scenes.GONE_BY_EC2),
    ]
    (gone,) = only(ask(stack(chat={"capacity": "spot"}), aws)).gone
    assert gone.how == "vanished"


# --- what is not known -----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("part", "told"),
    [
        ("groups", "for the group demo-prod-chat in us-east-1"),
        ("machines", "for the machines of demo-prod-chat in us-east-1"),
        ("activities", "for the scaling activities of demo-prod-chat"),
        ("objects", "for the reports in s3://gputier-demo-prod-123456789012-us-east-1"),
    ],
)
def test_what_could_not_be_asked_is_a_warning_with_the_reason_and_a_fix(
    part: str, told: str
) -> None:
    aws = one()
    setattr(aws, part, "AccessDenied")
    found = ask(stack(), aws)
    assert found.unasked[0].workload == "chat"
    assert f"⚠ chat: could not ask {told}: AccessDenied" in text(found, 160)
    assert found.unasked[0].fix.startswith("allow ")


def test_listing_a_bucket_takes_a_right_of_another_name() -> None:
    aws = one()
    aws.objects = "AccessDenied"
    bucket = "gputier-demo-prod-123456789012-us-east-1"
    assert ask(stack(), aws).unasked[0].fix == f"allow s3:ListBucket on {bucket} to whoever asks"


def test_without_the_machines_a_group_still_tells_who_is_there() -> None:
    aws = one()
    aws.machines = "AccessDenied"
    (found,) = only(ask(stack(), aws)).machines
    assert (found.id, found.started) == (ONE, ago(hours=3).timestamp())


def test_a_bucket_that_is_not_there_has_no_reports() -> None:
    aws = one()
    aws.objects = "NoSuchBucket"
    found = ask(stack(), aws)
    assert (found.unasked, state_of(found)) == ((), "unproved")


def test_a_report_that_is_no_json_or_of_another_schema_explains_nothing() -> None:
    for broken in ("{half", '{"schema": "other/1", "causes": ["gpu"]}', "[]"):
        aws = one("Pending:Wait")
        aws.objects = {report_key("chat", ONE, ago(hours=2), "config"): broken}
        found = ask(stack(), aws)
        assert state_of(found) == "rejected"
        assert "its report says config" in text(found)


def test_a_group_of_which_nobody_has_heard_is_not_deployed() -> None:
    aws = Account()
    aws.activities = "ValidationError"
    found = ask(stack(), aws)
    assert (only(found).state, found.unasked) == ("not-deployed", ())


def test_reports_without_a_group_tell_of_one_that_was_there() -> None:
    aws = Account()
    aws.objects = {report_key("chat", ONE, ago(days=9), "healthy"): report("healthy")}
    assert only(ask(stack(), aws)).state == "deleted"


def test_without_an_identity_nothing_is_asked_twice_and_every_fleet_is_unknown() -> None:
    aws = Account()
    aws.has("sts", "get_caller_identity", "ExpiredToken")
    found = ask(stack(CHAT + "  tuner: {purpose: fine-tuning, gpu: {memory: 24GB}}\n"), aws)
    assert [fleet.state for fleet in found.fleets] == ["unknown", "unknown"]
    assert len(found.unasked) == 1
    assert (found.answered, found.wanted, found.usd) == (False, None, None)
    assert [call for _, call, _, _ in aws.asked] == ["get_caller_identity"]


# --- the files -------------------------------------------------------------------------------


def test_a_stack_without_a_lock_is_an_answer() -> None:
    asked = stack()._replace(lock=None)
    found = ask(asked, Account())
    assert (found.fleets, found.answered) == ((), True)
    shown = text(found)
    assert shown.startswith("prod: the lock has no machine, so nothing is deployed from here\n")
    assert "chat  not locked" in shown
    assert "→ gputier lock" in shown


def test_a_workload_that_is_not_locked_yet_is_told_beside_those_that_are() -> None:
    two = CHAT + "  tuner: {purpose: fine-tuning, gpu: {memory: 24GB}}\n"
    asked = stack(two)
    entries = {"chat": asked.lock.entries["chat"]} if asked.lock else {}
    found = ask(asked._replace(lock=Lock("prod", entries)), one())
    assert [missing.name for missing in found.missing] == ["tuner"]
    assert "tuner  not locked" in text(found)


def test_a_lock_that_is_stale_is_still_what_runs() -> None:
    found = ask(stack(chat={"digest": "0000000000000000"}), one())
    assert only(found).machines
    assert "changed since it was locked on g6.4xlarge" in text(found)


def test_a_workload_that_is_no_longer_declared_is_asked_for_all_the_same() -> None:
    asked = stack(CHAT + "  tuner: {purpose: fine-tuning, gpu: {memory: 24GB}}\n")
    less = asked._replace(declaration=stack().declaration)
    found = ask(less, one())
    assert [fleet.name for fleet in found.fleets] == ["chat", "tuner"]
    assert "`tuner` is in the lock and no longer declared" in text(found)


def test_a_renamed_workload_is_found_under_its_former_name() -> None:
    renamed = CHAT.replace("  chat:", "  talk:") + "    was: chat\n"
    found = ask(stack(renamed), one())
    assert (only(found).name, only(found).group) == ("talk", GROUP)
    assert only(found).machines[0].id == ONE


def test_what_machines_say_cannot_move_a_cursor() -> None:
    aws = one("Pending:Wait")
    aws.objects = {
        report_key("chat", ONE, ago(hours=2), "config"): report(
            "config", ("gpu", "a\x1b[2Jb\nc\u202ed", "no\x07")
        )
    }
    shown = text(ask(stack(), aws))
    assert "gpu: a�[2Jb c�d" in shown
    assert "\x1b" not in shown
    assert "\x07" not in shown
