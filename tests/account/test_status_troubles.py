"""Why something does not appear, and what ran costs: of what AWS says."""

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
    terminate,
)
from tests.account.status_scenes import ABANDONED, FULL, GROUP, ONE, QUOTA, THREE, TWO, one
from tests.account.status_world import ask, only, stack, text

MONTH = NOW.replace(day=1, hour=0, minute=0)


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


DESK = """\
workloads:
  chat:
    purpose: development
    gpu: {memory: 16GB}
    schedule: [{start: "0 19 * * *", stop: "0 6 * * *", timezone: Europe/Berlin}]
"""
SOMEBODY = {"Code": "Client.UserInitiatedShutdown", "Message": "User initiated shutdown"}


def test_a_lone_machine_that_its_hours_stopped_is_not_wanted() -> None:
    aws = Account()
    aws.machines = [machine(GROUP, ONE, ago(days=3), "stopped", StateReason=SOMEBODY)]
    found = ask(stack(DESK), aws)
    assert (only(found).state, only(found).size) == ("empty", (0, 0, 1))
    assert [trouble.code for trouble in only(found).troubles] == ["asleep"]
    assert text(found).startswith("prod: no machine is wanted now, 1 is stopped")


def test_a_lone_machine_that_is_stopped_in_its_hours_was_stopped_by_somebody() -> None:
    aws = Account()
    aws.machines = [machine(GROUP, ONE, ago(days=3), "stopped", StateReason=SOMEBODY)]
    found = ask(stack(DESK), aws, now=NOW.replace(hour=20))
    (trouble,) = only(found).troubles
    assert (trouble.code, trouble.over) == ("Client.UserInitiatedShutdown", False)
    assert "CloudTrail knows who" in trouble.fix
    assert text(found).startswith("prod: 0 of 1 machine works, 1 is stopped")


def test_a_lone_spot_machine_that_ec2_stopped_says_so() -> None:
    aws = Account()
    reason = {"Code": "Server.SpotInstanceShutdown", "Message": "no"}
    aws.machines = [machine(GROUP, ONE, ago(days=3), "stopped", StateReason=reason)]
    (trouble,) = only(ask(stack(), aws)).troubles
    assert trouble.words == "EC2 stopped a Spot machine"


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


def test_a_machine_that_came_before_all_that_is_told_ran_since_the_month_began() -> None:
    aws = one()
    aws.activities.append(terminate(GROUP, MONTH + timedelta(hours=5), TWO, "a user request"))
    spend = only(ask(stack(), aws)).spend
    assert (spend.hours, spend.not_counted) == (3 + 5, ())


def test_a_machine_whose_beginning_nobody_knows_is_not_counted() -> None:
    aws = one()
    early = [launch(GROUP, ago(minutes=n), "", "Failed", FULL) for n in range(1, 2500)]
    aws.activities = [terminate(GROUP, ago(minutes=1), TWO, "a user request"), *early]
    spend = only(ask(stack(), aws)).spend
    assert spend.hours == 3
    told = "1 that went this month: when they came, or went, is not known"
    assert spend.not_counted[0] == told


def test_activities_that_are_cut_off_make_the_money_a_lower_bound() -> None:
    aws = one()
    aws.activities = [launch(GROUP, ago(minutes=n), "", "Failed", FULL) for n in range(1, 2500)]
    found = ask(stack(), aws)
    assert only(found).spend.not_counted == (
        "machines that have gone this month, as far as the cloud does not list them",
    )
    assert "at least $3.96 since 1 Dec" in text(found)
    assert only(found).troubles[0].times == 2000


def test_what_is_reserved_is_paid_for_when_nothing_runs_in_it() -> None:
    aws = Account()
    aws.groups = [group(GROUP, size=(0, 0, 1))]
    aws.reservations = [{"CapacityReservationId": "cr-0123456789abcdef0", "State": "active"}]
    found = ask(stack(HELD, chat={"capacity": "reservation"}), aws)
    (told,) = only(found).spend.not_counted
    assert told == "what of the reservation stands empty, which is paid for all the same"
    assert "price unknown since 1 Dec" in text(found)


def test_a_lone_machine_that_ran_before_the_month_is_counted_whole() -> None:
    aws = Account()
    aws.machines = [machine(GROUP, ONE, MONTH - timedelta(days=3))]
    assert only(ask(stack(), aws)).spend.not_counted == ()
    aws.machines = [machine(GROUP, ONE, MONTH + timedelta(hours=3))]
    assert only(ask(stack(), aws)).spend.not_counted == ("hours before it was started last",)


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
