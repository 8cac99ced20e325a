"""`gputier doctor` asked of accounts that answer: each check, good, bad and not to be had."""

from __future__ import annotations

import pytest
from tests.account.doctor_amazon import well_amazon
from tests.account.doctor_case import Case
from tests.account.doctor_cases_aws import AWS
from tests.account.doctor_cases_gcp import GCP
from tests.account.doctor_google import well_google
from tests.account.doctor_world import World

CASES = [*AWS, *GCP]


@pytest.fixture
def world() -> World:
    return World(well_amazon(), well_google())


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
    wanted = [one for one in found if one.state == case.state and case.found in one.found]
    assert wanted, [(one.state, one.found) for one in found]
    assert not case.fix or any(case.fix in fix for fix in wanted[0].fixes), wanted[0].fixes
    assert wanted[0].cloud == case.cloud
    assert bool(wanted[0].fixes) or case.state != "bad", "what is bad has a way out"
