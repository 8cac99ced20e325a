"""`gputier doctor` asked of accounts that answer: each check, good, bad and not to be had."""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

import pytest
from tests.account.amazon_account import Amazon
from tests.account.doctor_amazon import quota, well_amazon
from tests.account.doctor_case import Case
from tests.account.doctor_cases_aws import AWS
from tests.account.doctor_cases_gcp import GCP
from tests.account.doctor_google import well_google
from tests.account.doctor_world import STACKS, World, declared, subject
from tests.account.google_account import FORBIDDEN

from gputier.account import doctor_aws, doctor_gcp
from gputier.account.answers import BAD, CREDENTIALS, GOOD, STATES, UNASKED, Answer, CannotAsk
from gputier.account.doctor import Once
from gputier.account.doctor_aws import Aws
from gputier.account.doctor_checks import CHECKS
from gputier.account.doctor_examine import Sessions
from gputier.account.session_aws import AwsSession, permission
from gputier.account.stack import StackAccount

CASES = [*AWS, *GCP]
#: Google's methods whose permission is called otherwise.
GOOGLE = {
    "billingbudgets.billingAccounts.budgets.list": "billing.budgets.list",
    "cloudbilling.projects.getBillingInfo": "resourcemanager.projects.get",
    "cloudresourcemanager.projects.get": "resourcemanager.projects.get",
    "cloudresourcemanager.projects.testIamPermissions": (
        "resourcemanager.projects.testIamPermissions"  # takes none
    ),
    "compute.instances.aggregatedList": "compute.instances.list",
    "serviceusage.services.batchGet": "serviceusage.services.get",
    "serviceusage.services.consumerQuotaMetrics.get": "serviceusage.quotas.get",
}


@pytest.fixture
def world() -> World:
    return World(well_amazon(), well_google())


def _says(answer: Answer, wanted: str) -> bool:
    """Whether the words are in the answer; those that end in `$` end it."""
    found = answer.found
    return found.endswith(wanted[:-1]) if wanted.endswith("$") else wanted in found


@pytest.mark.parametrize(
    "case", CASES, ids=[f"{one.cloud} {one.check}: {one.name}" for one in CASES]
)
def test_each_check_says_what_the_account_says(case: Case, world: World) -> None:
    case.change(world)
    found = [
        one
        for one in world.answers(case.stack, case.check)
        if not case.workload or case.workload in one.workloads
    ]
    wanted = [one for one in found if one.state == case.state and _says(one, case.found)]
    assert wanted, [(one.state, one.found) for one in found]
    assert not case.fix or any(case.fix in fix for fix in wanted[0].fixes), wanted[0].fixes
    assert wanted[0].cloud == case.cloud
    assert bool(wanted[0].fixes) or case.state != "bad", "what is bad has a way out"


def test_each_check_has_a_good_case_a_bad_one_and_one_that_cannot_tell() -> None:
    """`placed` is about what is asked of nobody, and has tests of its own."""
    had = {(one.check, one.cloud, one.state) for one in CASES}
    wanted = {(one.name, one.cloud, state) for one in CHECKS if one.cloud for state in STATES}
    assert had == wanted


@pytest.mark.parametrize("stack", ["aws", "reserved", "own-network", "gcp", "gcp-fabric"])
def test_where_everything_is_well_nothing_is_bad_and_nothing_unknown(
    stack: str, world: World
) -> None:
    found = world.ask(stack)
    assert [one for one in found.answers if one.state != GOOD] == []
    assert found.ok


@pytest.mark.parametrize("stack", STACKS)
def test_every_answer_says_what_was_asked_and_why_and_comes_in_the_checks_order(
    stack: str, world: World
) -> None:
    world.amazon.answers.clear()
    world.google.answers.clear()
    found = world.ask(stack).answers
    assert found
    for one in found:
        assert one.asked
        assert one.found
        assert one.why
    places = [(check.name, check.cloud) for check in CHECKS]
    order = [places.index((one.check, one.cloud)) for one in found]
    assert order == sorted(order)


@pytest.mark.parametrize("stack", ["aws", "reserved", "block", "own-network", "gcp", "gcp-fabric"])
def test_the_checks_name_every_right_that_asking_takes(stack: str, world: World) -> None:
    world.ask(stack)
    named = {call for check in CHECKS for call in check.calls}
    calls = {permission(service, call) for service, call, _, _ in world.amazon.asked}
    assert calls <= named
    assert {GOOGLE.get(method, method) for method in world.google.asked} <= named


def test_what_a_check_names_has_the_form_of_a_right() -> None:
    for check in CHECKS:
        for call in check.calls:
            form = r"[a-z0-9]+:[A-Z]\w+" if check.cloud == "aws" else r"[a-z]+\.\w+\.\w+"
            assert re.fullmatch(form, call), call


def test_without_anybody_signed_in_one_question_is_asked_and_the_rest_say_so() -> None:
    def nobody(_account: StackAccount) -> AwsSession:
        raise CannotAsk("no such profile", "aws configure", CREDENTIALS)

    silent = World(Amazon(), well_google())
    found = silent.ask("prod", sessions=Sessions(nobody))
    assert not silent.amazon.asked
    by_check = {one.check: one for one in found.answers if one.workloads != ("chat",)}
    assert by_check["identity"].found == "no such profile"
    assert by_check["identity"].fixes == ("aws configure",)
    assert by_check["quota"].found == "not asked: AWS could not be asked anything"
    # What is wrong whoever asks is said all the same.
    placeholder = [one for one in found.answers if one.state == BAD]
    assert [one.workloads for one in placeholder] == [("chat",)]


def test_a_right_that_is_missing_for_who_one_is_keeps_nothing_else_from_being_asked(
    world: World,
) -> None:
    world.google.has("projects", "projects/{project}", FORBIDDEN)
    found = world.ask("gcp").answers
    assert [one.check for one in found if one.state == UNASKED] == ["identity"]


def test_what_hangs_is_left_to_itself() -> None:
    """Everything else is answered, and the whole takes no longer than the limit."""
    world = World(well_amazon(), well_google())
    hold = threading.Event()

    def hang(_asked: Mapping[str, Any]) -> dict[str, Any]:
        hold.wait(30)
        return quota(100)({"QuotaCode": "x"})

    world.amazon.has("service-quotas", "get_service_quota", hang)
    told: list[tuple[int, int]] = []
    began = time.monotonic()
    found = world.ask("aws", limit=1.5, say=lambda done, of: told.append((done, of)))
    hold.set()
    assert time.monotonic() - began < 10
    late = {one.check for one in found.answers if one.state == UNASKED}
    assert late == {"quota"}
    assert {one.found for one in found.answers if one.check == "quota"} == {"no answer in 2 s"}
    assert told, "progress is told"
    assert all(done < of for done, of in told)


def test_what_fits_nowhere_is_bad_and_what_is_not_asked_is_unknown(world: World) -> None:
    found = world.ask("nowhere").answers
    assert [(one.check, one.workloads, one.state) for one in found] == [
        ("placed", ("never",), BAD), ("placed", ("azure",), UNASKED),
    ]  # fmt: skip
    assert found[0].fixes == ("gputier plan nowhere",)


def test_what_several_questions_need_is_asked_once() -> None:
    made: list[int] = []
    once = Once()

    def make() -> int:
        made.append(1)
        time.sleep(0.05)
        return 7

    def ask(_n: int) -> int:
        return once.get("key", make)

    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(ask, range(8)))
    assert (found, made) == ([7] * 8, [1])

    def fail() -> int:
        made.append(2)
        raise CannotAsk("no")

    for _ in range(2):
        with pytest.raises(CannotAsk):
            once.get("other", fail)
    assert made.count(2) == 1


def test_a_machine_for_which_no_image_is_known_is_bad_whoever_asks() -> None:
    for stack, cloud, without in (
        ("aws", "aws", partial(doctor_aws.without_image, Aws(World.nobody, subject("aws")))),
        ("gcp", "gcp", doctor_gcp.without_image),
    ):
        target = declared(stack)[1].found[0]
        assert without(target) is None, cloud
        image = target.chosen.boot.image._replace(id=None, family=None)
        chosen = target.chosen._replace(boot=target.chosen.boot._replace(image=image))
        found = without(target._replace(chosen=chosen))
        assert found
        assert found.found.startswith("no image is known for")
        image = image._replace(id="ami-000")
        chosen = target.chosen._replace(boot=target.chosen.boot._replace(image=image))
        found = without(target._replace(chosen=chosen))
        assert found
        assert found.found == "ami-000 is a placeholder"
