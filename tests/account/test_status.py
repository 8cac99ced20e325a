"""What is made of what AWS says: what a machine is, and what cannot be known."""

from __future__ import annotations

import pytest
from tests.account.status_amazon import (
    Account,
    ago,
    machine,
    report,
    report_key,
)
from tests.account.status_scenes import GROUP, ONE, one
from tests.account.status_world import CHAT, ask, only, stack, text

from gputier.account.status import Stack
from gputier.lock import Lock


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


def test_a_refusal_to_tell_of_a_group_that_is_there_is_not_taken_for_nothing() -> None:
    aws = one()
    aws.activities = "ValidationError"
    (unasked,) = ask(stack(), aws).unasked
    assert unasked.what == "the scaling activities of demo-prod-chat"


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
