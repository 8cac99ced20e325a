"""Every field of a workload that is more than a wish for a machine reaches a resource on AWS.

What chooses the machine is in the plan, and tests/plan/test_every_field.py shows it there."""

from __future__ import annotations

import json
from functools import cache

import pytest
from tests.aws import world
from tests.aws.test_examples import shown
from tests.plan.test_every_field import CASES, Fields, with_

from gputier.errors import InvalidInput

CHOOSES = ("model.", "gpu.", "cpu.", "memory", "tier", "purpose", "prefer", "clouds")
#: Fields that a line of the plan shows and no resource has, and why.
PLAN_ALONE = {
    "max_usd_per_hour": "a ceiling chooses; it is no bid",
    "capacity.max_usd_per_hour": "a ceiling chooses; it is no bid",
    "capacity.end": "when a reservation ends its machines run on, and a note says so",
    "hours_per_month": "what is reckoned with; nothing enforces it without a budget",
    "budget.billing_account": "Google's: an account of AWS has one bill",
    "software.image.os": "of an image that is known, it is known already",
}
DEPLOYED = [path for path in CASES if not path.startswith(CHOOSES) and path not in PLAN_ALONE]


@cache
def _deployed(text: str) -> str:
    fields: Fields = json.loads(text)
    where: Fields = {
        "clouds": ["aws"],
        "regions": {"aws": ["us-east-1", "us-west-2", "eu-west-2"]},
    }
    try:
        return shown(world.fleet(world.planned("job", "dev", **{**where, **fields})))
    except InvalidInput as refused:
        return f"refused: {refused}"


def deployed(fields: Fields) -> str:
    """Every resource of a workload, or why it is refused."""
    return _deployed(json.dumps(fields, sort_keys=True))


def test_what_is_left_to_the_plan_is_a_field() -> None:
    assert set(PLAN_ALONE) <= set(CASES)


@pytest.mark.slow
@pytest.mark.parametrize("path", DEPLOYED)
def test_a_field_that_is_set_reaches_a_resource_or_is_refused(path: str) -> None:
    case = CASES[path]
    if case.refused:
        pytest.skip("refused by the schema")
    base: Fields = json.loads(json.dumps(case.base))
    to = ["subnet-0b"] if path == "network.subnets" else case.to
    before = deployed(base)
    assert not before.startswith("refused"), before
    assert deployed(with_(base, path, to)) != before
