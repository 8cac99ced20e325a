"""What cannot be deployed to Google is said before anything is made, all of it at once."""

from __future__ import annotations

from typing import Any

import pytest
from tests.gcp import world
from tests.gcp.world import planned

from gputier.errors import InvalidInput
from gputier.gcp import Given, GpuFleet, problems_of
from gputier.lock import Bundle, current_bundle
from gputier.plan import WorkloadPlan

L4: dict[str, Any] = {"gpu": {"models": ["L4"]}, "purpose": "inference"}
B200: dict[str, Any] = {"gpu": {"models": ["B200"], "count": 8}}


def told(plan: WorkloadPlan) -> dict[str, str]:
    return {p.path.removeprefix("workloads.job."): p.message for p in problems_of(plan, BUNDLE)}


BUNDLE = current_bundle()
CASES: list[tuple[dict[str, Any], str, str]] = [
    ({**L4, "budget": {"usd_per_month": 900}}, "budget.billing_account", "none is named"),
    (
        {**L4, "budget": {"usd_per_month": 900, "billing_account": "01AB-23"}},
        "budget.billing_account",
        "`01AB-23` is no billing account",
    ),
    (
        {**L4, "identity": {"role": "arn:aws:iam::123456789012:role/gpu-node"}},
        "identity.role",
        "is no service account",
    ),
    ({**L4, "identity": {"role": "node"}}, "identity.role", "is no service account"),
    ({**B200, "capacity": "flex_start"}, "capacity", "resize request"),
    ({**L4, "tags": {"Team": "x"}}, "tags", "cannot be a label"),
    ({**L4, "purpose": "vdi"}, "software.image", "does not use it"),
    ({"gpu": {"models": ["V100"]}, "purpose": "vdi"}, "purpose", "no card with a licence"),
    ({**L4, "disk": {"kms_key": "create"}}, "disk.kms_key", "never be deleted"),
    (
        {**L4, "disk": {"data": "10GiB", "persist": True}, "scale": {"min": 1, "max": 2}},
        "disk.persist",
        "no autoscaler",
    ),
    (
        {**L4, "capacity": {"use": "spot", "on_demand_base": 1}, "scale": {"min": 1, "max": 2}},
        "capacity.on_demand_base",
        "one way",
    ),
]


@pytest.mark.parametrize(("fields", "path", "words"), CASES, ids=[c[1] for c in CASES])
def test_what_is_not_built_is_refused_and_never_ignored(
    fields: dict[str, Any], path: str, words: str
) -> None:
    found = told(planned(**fields))
    assert set(found) == {path}
    assert words in found[path]


def test_what_can_be_deployed_is_not_refused() -> None:
    assert told(planned(**L4)) == {}


def test_an_image_that_moves_is_refused_in_production_alone() -> None:
    assert set(told(planned(environment="prod", **L4))) == {"software.image"}
    plan = world.image(planned(environment="prod", **L4), id="i", family=None, pinned=True)
    assert told(plan) == {}
    nothing = world.image(planned(**L4), id=None, family=None)
    assert "no image is known" in told(nothing)["software.image"]


def test_a_plan_on_another_cloud_is_no_plan_on_this_one() -> None:
    plan = planned(**L4, clouds=["aws"], regions={"aws": ["us-east-1"]})
    (problem,) = problems_of(plan, BUNDLE)
    assert problem.message == "`job` is planned on aws, not on gcp"


def test_the_bundle_of_another_release_cannot_be_uploaded() -> None:
    (problem,) = problems_of(planned(**L4), Bundle("0" * 64, "0.0.1"))
    assert "another gputier" in problem.message


def test_everything_is_said_at_once_and_nothing_is_made() -> None:
    plan = planned(**L4, tags={"Team": "x"}, disk={"kms_key": "create"})
    with pytest.raises(InvalidInput) as raised:
        world.fleet(plan, given=Given())
    assert len(raised.value.problems) == 2


def test_a_fleet_has_its_plans_name() -> None:
    with pytest.raises(InvalidInput, match="its plan is of workload `job`"):
        world.run(lambda: GpuFleet("other", planned(**L4)))
