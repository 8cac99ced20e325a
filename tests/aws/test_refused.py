"""What AWS cannot be given is said before anything is made."""

from __future__ import annotations

from typing import Any

import pytest
from tests.aws import world
from tests.aws.world import planned

from gputier.aws import Deployment, deploy, problems_of
from gputier.errors import InvalidInput
from gputier.lock import Bundle, current_bundle
from gputier.plan import WorkloadPlan, plan_workload
from gputier.workload import Workload

L4: dict[str, Any] = {"gpu": {"models": ["L4"]}, "purpose": "inference"}


def told(plan: WorkloadPlan, bundle: Bundle | None = None) -> list[tuple[str, str, str]]:
    found = problems_of(plan, bundle or current_bundle())
    return [(problem.path, problem.message, problem.hint) for problem in found]


def test_nothing_is_wrong_with_an_ordinary_fleet() -> None:
    assert told(planned(**L4)) == []


def test_a_placeholder_for_an_image_is_previewed_with_a_warning_and_deployed_never() -> None:
    plan = planned(software={"image": {"id": "ami-00000000000000000", "driver": "595"}}, **L4)
    ((path, message, hint),) = told(plan)
    assert path == "workloads.job.software.image"
    assert message.startswith("ami-00000000000000000 is a placeholder")
    assert "`gputier lock STACK --images` pins today's" in hint

    def program() -> object:
        return deploy([Deployment(plan, current_bundle())], world.catalog())

    with pytest.raises(InvalidInput, match="is a placeholder"):
        world.run(program)
    previewed = world.run(program, preview=True)
    assert previewed.find("LaunchTemplate job-template")
    (warning,) = (text for level, text in previewed.messages if level == "warning")
    assert "which an `up` refuses" in warning
    assert "`gputier lock test --images`" in warning


def test_production_refuses_an_image_that_moves() -> None:
    ((path, message, hint),) = told(planned(environment="prod", **L4))
    assert path == "workloads.job.software.image"
    assert "names another image with each release, and this is prod" in message
    assert "`gputier lock STACK --images`" in hint


def test_production_takes_a_pinned_one() -> None:
    assert told(world.image(planned(environment="prod", **L4), id="ami-1", pinned=True)) == []


def test_a_machine_without_a_known_image_needs_one_named() -> None:
    ((path, message, _),) = told(world.image(planned(**L4), id=None, family=None))
    assert path == "workloads.job.software.image"
    assert message == "no image is known for g6.xlarge"


def test_a_bundle_of_another_release_names_the_release_and_the_command() -> None:
    ((path, message, hint),) = told(planned(**L4), Bundle("f" * 64, "0.9.0"))
    assert path == "workloads.job"
    assert "ffffffffffff of gputier 0.9.0" in message
    assert "`gputier lock STACK --upgrade job`" in hint
    assert "deploy with the gputier 0.9.0 that built it" in hint


def test_a_lock_of_before_bundles_is_told_apart() -> None:
    ((_, message, hint),) = told(planned(**L4), Bundle("", ""))
    assert message == "the lock is of a release that pinned no node bundle"
    assert "deploy with" not in hint


@pytest.mark.parametrize(("action", "most"), [("none", 9), ("scale-to-zero", 8)])
def test_more_alerts_than_aws_takes_are_refused(action: str, most: int) -> None:
    def alerts(many: int) -> list[str]:
        percentages = list(range(10, 10 + many))
        budget = {"usd_per_month": 500, "action": action, "alerts": percentages}
        return [path for path, *_ in told(planned(**L4, budget=budget))]

    assert alerts(most) == []
    assert alerts(most + 1) == ["workloads.job.budget.alerts"]


def test_a_block_without_an_id_is_refused() -> None:
    block = {"use": "capacity_block", "instance_type": "p5.48xlarge", "zone": "use1-az4"}
    assert [path for path, *_ in told(planned(capacity=block))] == ["workloads.job.capacity.id"]


def test_a_plan_of_another_cloud_is_refused() -> None:
    fields: dict[str, Any] = {"gpu": {"models": ["L4"]}, "clouds": ["gcp"]}
    plan = plan_workload("job", Workload(**fields), world.catalog())
    ((path, message, _),) = told(plan)
    assert (path, message) == ("workloads.job", "`job` is planned on gcp, not on aws")


def test_all_fleets_are_told_at_once_with_the_stacks_own_name() -> None:
    plans = [planned("one", environment="prod", **L4), planned("two", environment="prod", **L4)]
    with pytest.raises(InvalidInput) as refused:
        world.run(
            lambda: deploy(
                [Deployment(p, Bundle("f" * 64, "0.9.0")) for p in plans], world.catalog()
            ),
            "live",
        )
    assert len(refused.value.problems) == 4
    assert all("live" in problem.hint for problem in refused.value.problems)
