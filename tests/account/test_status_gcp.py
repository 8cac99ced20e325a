"""What is made of what Google says: requests and answers are as its discovery documents say."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import Any

import pytest
from tests.account import discovery
from tests.account.google_account import FORBIDDEN, PROJECT
from tests.account.status_amazon import NOW, ago, report, report_key
from tests.account.status_google_account import (
    Project,
    failure,
    group_error,
    instance,
    member,
    operation,
)
from tests.account.status_world import CHAT, ON_GOOGLE, ask, only, stack, text

from gputier.account import status_google
from gputier.account.status import Fleet

GROUP = "demo-prod-chat"
NAME, OTHER = f"{GROUP}-x1k2", f"{GROUP}-y3l4"
HEALTHY = [{"detailedHealthState": "HEALTHY"}]
SICK = [{"detailedHealthState": "UNHEALTHY"}]


def fleet(google: Project, text_: str = CHAT, **more: Any) -> Fleet:
    return only(ask(stack(text_, chat={**ON_GOOGLE, **more}), gcp=google))


def one(action: str = "NONE", status: str = "RUNNING", **more: Any) -> Project:
    """A group with one machine, started three hours ago."""
    google = Project()
    google.managed({"targetSize": 1}, [member(NAME, "111", action, status, **more)])
    google.machines([instance(NAME, "111", ago(hours=3), status=status)])
    return google


@pytest.mark.parametrize(
    ("action", "status", "health", "outcome", "state"),
    [
        ("CREATING", "PROVISIONING", [], None, "starting"),
        ("CREATING", "STAGING", [], None, "starting"),
        ("VERIFYING", "RUNNING", [], None, "proving"),
        ("VERIFYING", "RUNNING", SICK, "config", "rejected"),
        ("NONE", "RUNNING", HEALTHY, "healthy", "healthy"),
        ("NONE", "RUNNING", HEALTHY, None, "unproved"),
        ("NONE", "RUNNING", SICK, "healthy", "failing"),
        ("NONE", "RUNNING", [], "replace", "failing"),
        ("RECREATING", "RUNNING", [], None, "starting"),
        ("DELETING", "STOPPING", [], None, "leaving"),
        ("DELETING", "STOPPING", [], "replace", "rejected"),
        ("NONE", "TERMINATED", [], None, "stopped"),
    ],
)
def test_a_machine_is_what_its_group_and_its_newest_report_make_of_it(
    action: str, status: str, health: list[Any], outcome: str | None, state: str
) -> None:
    google = one(action, status, **({"instanceHealth": health} if health else {}))
    if outcome:
        google.objects = {report_key("chat", "111", ago(hours=2), outcome): report(outcome)}
    (found,) = fleet(google).machines
    assert (found.id, found.zone, found.state) == (NAME, "us-central1-a", state)


def test_reports_are_filed_under_the_number_for_names_come_again() -> None:
    google = one()
    google.objects = {report_key("chat", "999", ago(hours=2), "replace"): report("replace")}
    found = fleet(google)
    assert found.machines[0].state == "unproved"
    assert [(gone.id, gone.how) for gone in found.gone] == [("999", "rejected")]


def test_a_machine_that_does_not_exist_yet_is_none_and_its_error_is_told() -> None:
    google = Project()
    attempt = failure("QUOTA_EXCEEDED", "Quota 'NVIDIA_L4_GPUS' exceeded. Limit: 1.0")
    google.managed({"targetSize": 1}, [member(NAME, "", "CREATING", "", lastAttempt=attempt)])
    found = fleet(google)
    assert found.machines == ()
    (trouble,) = found.troubles
    assert (trouble.code, trouble.times, trouble.over) == ("QUOTA_EXCEEDED", 1, False)
    assert trouble.last == NOW.timestamp()


def test_the_limit_of_a_quota_is_told_where_the_message_does_not() -> None:
    google = Project()
    details = {"quotaInfo": {"limitName": "GPUS-ALL-REGIONS-per-project", "limit": 0.0}}
    attempt = failure("QUOTA_EXCEEDED", "no", **details)
    google.managed({"targetSize": 1}, [member(NAME, "", "CREATING", "", lastAttempt=attempt)])
    shown = text(ask(stack(chat=ON_GOOGLE), gcp=google))
    assert "no (GPUS-ALL-REGIONS-per-project: 0.0)" in shown


CODES = [
    ("ZONE_RESOURCE_POOL_EXHAUSTED", "no machine of this type free"),
    ("CONDITION_NOT_MET", "policy of the organisation"),
    ("PERMISSIONS_ERROR", "may not make this machine"),
    ("RESOURCE_NOT_FOUND", "is not there"),
    ("IP_SPACE_EXHAUSTED", "no address left"),
]


@pytest.mark.parametrize(("code", "words"), CODES)
def test_errors_of_a_group_are_told_in_words(code: str, words: str) -> None:
    google = Project()
    google.managed({"targetSize": 1})
    google.errors(*(group_error(ago(minutes=n), NAME, code, "said so") for n in (2, 9)))
    (trouble,) = fleet(google).troubles
    assert (trouble.code, trouble.known, trouble.times) == (code, True, 2)
    assert words in trouble.words
    assert trouble.fix
    assert trouble.zones == ("us-central1-a",)


def test_a_code_that_nobody_knows_is_shown_as_it_is() -> None:
    google = Project()
    google.managed({"targetSize": 1})
    google.errors(group_error(ago(minutes=2), NAME, "FLUX_EXCEEDED", "too much flux"))
    shown = text(ask(stack(chat=ON_GOOGLE), gcp=google))
    assert "✗ the cloud says: too much flux (FLUX_EXCEEDED); at 10:43" in shown
    assert "list-errors demo-prod-chat --zone us-central1-a --project acme-ml" in shown


def test_an_error_without_words_is_shown_by_its_code() -> None:
    google = Project()
    google.managed({"targetSize": 1})
    google.errors(group_error(ago(minutes=2), NAME, "FLUX_EXCEEDED", ""))
    (trouble,) = fleet(google).troubles
    assert trouble.words == "FLUX_EXCEEDED"


def test_a_group_of_several_zones_is_asked_for_in_its_region_first() -> None:
    google = Project(place="regions/us-central1")
    google.managed({"targetSize": 0})
    google.machines([], "us-central1-b")
    google.operations([], "us-central1-b")
    found = fleet(google, zones=("us-central1-a", "us-central1-b"))
    assert found.shape == "group"
    assert google.asked[0] == "compute.regionInstanceGroupManagers.get"
    assert "--region us-central1" in found.look[0]


def test_a_group_is_found_where_it_is_and_not_where_it_was_expected() -> None:
    google = Project(place="regions/us-central1")
    google.managed({"targetSize": 0})
    assert fleet(google).shape == "group"


def test_a_lone_machine_is_found_by_its_name() -> None:
    google = Project()
    google.machines([instance(GROUP, "7", ago(minutes=10))])
    found = fleet(google)
    assert (found.shape, found.machines[0].state, found.size) == ("lone", "proving", (1, 1, 1))


def test_machines_of_other_fleets_are_not_asked_for() -> None:
    google = one()
    fleet(google)
    urls = [url for url, _, _ in google.sent]
    listing = next(url for url in urls if "/instances?" in url)
    assert listing.endswith("filter=name+eq+%22demo-prod-chat%28-%5Ba-z0-9%5D%7B4%7D%29%3F%22")


def policy(**more: Any) -> Mapping[str, Any]:
    return {"minNumReplicas": 1, "maxNumReplicas": 8, "mode": "ON", **more}


def scaled(answer: Mapping[str, Any]) -> Project:
    google = Project()
    where = google.autoscaler(answer)
    google.managed({"targetSize": 2, "status": {"autoscaler": where}})
    return google


def test_the_bounds_are_the_autoscalers() -> None:
    assert fleet(scaled({"autoscalingPolicy": policy()})).size == (2, 1, 8)


def test_an_autoscaler_that_is_off_was_stopped_by_the_breaker_or_by_a_person() -> None:
    google = scaled({"autoscalingPolicy": policy(mode="OFF")})
    (trouble,) = fleet(google).troubles
    assert (trouble.code, trouble.fix) == ("autoscaler-off", "pulumi up --refresh --stack prod")
    google.objects = {"breaker/chat.json": BROKEN}
    (trouble,) = fleet(google).troubles
    assert trouble.code == "breaker"
    assert trouble.fix.endswith("\npulumi up --refresh --stack prod")


BROKEN = {
    "schema": "gputier/breaker/1",
    "nodes": [{"instance": "1", "outcome": "config", "reason": "mig@gpu", "at": 9.0}],
    "tripped": {"instance": "1", "reason": "mig@gpu", "at": 9.0},
}


def test_a_group_without_an_autoscaler_that_the_breaker_made_smaller_says_so() -> None:
    google = Project()
    google.managed({"targetSize": 0})
    google.objects = {"breaker/chat.json": BROKEN}
    assert fleet(google).troubles[0].code == "breaker"


@pytest.mark.parametrize(
    ("kind", "told"),
    [
        ("NOT_ENOUGH_QUOTA_AVAILABLE", True),
        ("ZONE_RESOURCE_STOCKOUT", True),
        ("MODE_OFF", False),
        ("CAPPED_AT_MAX_NUM_REPLICAS", False),
    ],
)
def test_an_autoscaler_says_what_is_wrong_and_what_is_only_so(kind: str, told: bool) -> None:
    details = [{"type": kind, "message": "because"}]
    found = fleet(scaled({"autoscalingPolicy": policy(), "statusDetails": details}))
    assert [trouble.code for trouble in found.troubles] == ([kind] if told else [])


def test_every_detail_that_is_left_out_is_one_of_googles() -> None:
    api = discovery.document("compute.v1")
    known = api["schemas"]["AutoscalerStatusDetails"]["properties"]["type"]["enum"]
    assert set(status_google.QUIET) <= set(known)


def test_machines_that_are_made_all_at_once_tell_why_they_wait() -> None:
    google = Project()
    error = {"errors": [{"code": "ZONE_RESOURCE_POOL_EXHAUSTED", "message": "none"}]}
    check = {"error": error, "timestamp": ago(minutes=4).isoformat()}
    operation_ = {"inProgress": True, "lastProgressCheck": check}
    google.managed({"targetSize": 2, "status": {"bulkInstanceOperation": operation_}})
    (trouble,) = fleet(google).troubles
    assert (trouble.code, trouble.last) == (
        "ZONE_RESOURCE_POOL_EXHAUSTED",
        ago(minutes=4).timestamp(),
    )


def test_a_flex_start_request_waits_and_one_that_failed_says_why() -> None:
    google = Project()
    google.managed({"targetSize": 0})
    google.requests({"name": "a", "state": "CREATING", "resizeBy": 2})
    assert fleet(google, capacity="flex_start").troubles[0].code == "flex-start-waits"
    error = {"errors": [{"code": "QUOTA_EXCEEDED", "message": "preemptible"}]}
    google.requests(
        {
            "name": "a",
            "state": "FAILED",
            "creationTimestamp": ago(hours=1).isoformat(),
            "status": {"error": error},
        }
    )
    codes = [trouble.code for trouble in fleet(google, capacity="flex_start").troubles]
    assert codes == ["at-zero", "QUOTA_EXCEEDED"]


def test_requests_are_asked_for_only_where_that_is_how_it_is_bought() -> None:
    google = one()
    fleet(google)
    assert "compute.instanceGroupManagerResizeRequests.list" not in google.asked


def held(used: str) -> Mapping[str, str]:
    return {"count": "2", "inUseCount": used}


RESERVED = (
    CHAT
    + "    capacity: {use: reservation, id: mine, instance_type: g2-standard-8,"
    + (" zone: us-central1-a}\n    clouds: [gcp]\n")
)


@pytest.mark.parametrize(
    ("answer", "code"),
    [
        (None, "reservation-gone"),
        ({"status": "CREATING"}, "block-not-started"),
        ({"status": "DELETING"}, "block-over"),
        ({"status": "READY", "specificReservation": held("2")}, "reservation-full"),
        ({"status": "UPDATING", "specificReservation": held("2")}, "reservation-full"),
        ({"status": "READY", "specificReservation": held("1")}, None),
    ],
)
def test_a_reservation_that_keeps_machines_away(answer: Any, code: str | None) -> None:
    google = Project()
    google.managed({"targetSize": 1})
    if answer:
        google.has("compute", "projects/{project}/zones/us-central1-a/reservations/mine", answer)
    found = fleet(google, RESERVED, capacity="reservation").troubles
    assert [trouble.code for trouble in found] == ([code] if code else [])


# --- those that have gone --------------------------------------------------------------------


def test_machines_that_went_are_found_in_the_operations() -> None:
    google = one()
    google.operations(
        [
            operation("insert", OTHER, "222", ago(hours=9)),
            operation("compute.instances.preempted", OTHER, "222", ago(hours=4)),
            operation("delete", OTHER, "222", ago(hours=3)),
            operation("insert", NAME, "111", ago(hours=3)),
        ]
    )
    found = fleet(google, capacity="spot")
    (gone,) = found.gone
    assert (gone.id, gone.how, gone.hours) == (OTHER, "interrupted", 5)
    assert (found.interruptions, found.spend.hours) == (1, 8)
    assert found.spend.not_counted == ()


def test_a_machine_that_its_own_report_gave_up_was_rejected() -> None:
    google = one()
    google.operations(
        [
            operation("insert", NAME, "99", ago(hours=5)),
            operation("delete", NAME, "99", ago(hours=4)),
        ]
    )
    google.objects = {report_key("chat", "99", ago(hours=4), "replace"): report("replace")}
    (gone,) = fleet(google).gone
    assert (gone.id, gone.how) == (NAME, "rejected")


def test_a_machine_that_was_never_made_did_not_go() -> None:
    google = one()
    failed = {
        **operation("insert", OTHER, "222", ago(hours=1)),
        "error": {"errors": [{"code": "ZONE_RESOURCE_POOL_EXHAUSTED"}]},
    }
    google.operations([failed, operation("delete", OTHER, "222", ago(hours=1))])
    assert fleet(google).gone == ()


def test_late_in_a_month_the_operations_do_not_go_back_to_its_beginning() -> None:
    late = NOW + timedelta(days=12)
    found = only(ask(stack(chat=ON_GOOGLE), gcp=one(), now=late))
    assert found.spend.not_counted == (
        "machines that have gone this month, as far as the cloud does not list them",
    )


# --- what is not known -----------------------------------------------------------------------

WHERE = f"projects/{{project}}/zones/us-central1-a/instanceGroupManagers/{GROUP}"


@pytest.mark.parametrize(
    ("path", "told"),
    [
        (WHERE, "the group demo-prod-chat in acme-ml, us-central1"),
        (f"{WHERE}/listManagedInstances", "the machines of demo-prod-chat"),
        (f"{WHERE}/listErrors", "the errors of demo-prod-chat"),
        ("projects/{project}/zones/us-central1-a/instances", "the machines in us-central1-a"),
        ("projects/{project}/zones/us-central1-a/operations", "the operations in us-central1-a"),
    ],
)
def test_what_could_not_be_asked_is_a_warning_with_the_reason(path: str, told: str) -> None:
    google = one()
    google.has("compute", path, FORBIDDEN)
    found = ask(stack(chat=ON_GOOGLE), gcp=google)
    (unasked,) = found.unasked
    assert (unasked.workload, unasked.what, unasked.kind) == ("chat", told, "right")
    assert "PERMISSION_DENIED" in unasked.why


def test_the_bucket_is_named_as_the_machine_names_it() -> None:
    google = one()
    google.objects = FORBIDDEN
    (first, _) = ask(stack(chat=ON_GOOGLE), gcp=google).unasked
    assert first.what == f"the reports in gs://gputier-demo-prod-{PROJECT}-us-central1"


def test_a_time_that_is_none_is_not_known() -> None:
    assert status_google.at("yesterday") is None
    assert status_google.at(None) is None
    assert status_google.at("2026-12-10T10:45:00.000+00:00") == NOW.timestamp()
