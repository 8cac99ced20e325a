"""`gputier.plan(...)` for programs: callable however it was imported, with our own errors."""

from __future__ import annotations

import subprocess
import sys

import pytest
from tests.plan.world import Doctored, best, discount, planned

import gputier
from gputier.errors import CannotPlace, ExitCode, InvalidInput
from gputier.workload import Workload

USES = {
    "the attribute": "import gputier; p = gputier.plan",
    "the name": "from gputier import plan as p",
    "a module of the layer first": "import gputier.plan.select, gputier; p = gputier.plan",
    "the layer's own import": "import gputier.plan; p = gputier.plan",
    "the layer after the name": "from gputier import plan as p; from gputier.plan import need_of",
}


@pytest.mark.parametrize("use", USES)
def test_plan_can_be_called_in_whatever_order_it_was_imported(use: str) -> None:
    program = f"{USES[use]}; import gputier; print(p(gputier.Workload(tier='mid')).name)"
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout) == (0, "workload\n"), done.stderr


def test_the_call_takes_name_environment_discounts_and_a_catalogue() -> None:
    catalog = Doctored(only=[("aws", "g6.xlarge")])
    workload = Workload(nodes=2)
    plan = gputier.plan(
        workload, name="job", environment="prod", discounts=[discount(50, "g6")], catalog=catalog
    )
    same = planned(workload, environment="prod", discounts=[discount(50, "g6")], catalog=catalog)
    assert plan.name == "job"
    assert plan.need.environment == "prod"
    assert best(plan) == best(same)
    assert plan.chosen is not None
    assert plan.chosen.usd_per_hour == pytest.approx((plan.chosen.listed_usd_per_hour or 0) / 2)


def test_what_fits_nowhere_is_raised_with_the_smallest_relaxation_of_each_cloud() -> None:
    with pytest.raises(CannotPlace) as refused:
        gputier.plan(Workload(gpu={"count": 64}), name="huge")  # pyright: ignore[reportArgumentType]
    (problem,) = refused.value.problems
    assert refused.value.exit_code == ExitCode.CANNOT_PLACE == 3
    assert problem.path == "huge"
    assert problem.message.startswith("no machine fits workload `huge` (0 of ")
    assert problem.hint.splitlines()[0] == "smallest relaxation per cloud:"
    assert [line.split(":")[0] for line in problem.hint.splitlines()[1:]] == ["aws", "gcp"]


@pytest.mark.parametrize(
    "fields", [{"gpu": {"models": ["H1000"]}}, {"model": {"name": "no-such-model"}}], ids=str
)
def test_mistakes_that_only_the_catalogue_can_tell_are_invalid_input(
    fields: dict[str, object],
) -> None:
    with pytest.raises(InvalidInput) as refused:
        gputier.plan(Workload(**fields))  # pyright: ignore[reportArgumentType]
    assert refused.value.exit_code == ExitCode.USAGE
    assert refused.value.problems[0].hint
