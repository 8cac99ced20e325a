"""What is asked of AWS while a program runs: no more than is needed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tests.aws import world
from tests.aws.world import planned

from gputier.aws import Deployment, deploy
from gputier.lock import current_bundle

L4: dict[str, Any] = {"gpu": {"models": ["L4"]}, "purpose": "inference"}
PARAMETER = "aws:ssm/getParameter:getParameter"
CALLER = "aws:index/getCallerIdentity:getCallerIdentity"
WEST: dict[str, Any] = {"regions": {"aws": ["us-west-2"]}}
FLEETS = (planned("chat", **L4), planned("other", **L4), planned("far", **L4, **WEST))


def program() -> object:
    return deploy([Deployment(plan, current_bundle()) for plan in FLEETS], world.catalog())


def test_a_family_is_asked_for_once_a_region_and_every_fleet_has_the_answer() -> None:
    asked: list[str] = []

    def parameter(args: Mapping[str, Any]) -> Mapping[str, Any]:
        asked.append(args["region"])
        return {"insecureValue": f"ami-{len(asked):017}"}

    run = world.run(program, answers={**world.ANSWERS, PARAMETER: parameter})
    assert asked == ["us-east-1", "us-west-2"]
    images = {r.name: r.inputs["imageId"][-1] for r in run.of_type("LaunchTemplate")}
    assert images == {"chat-template": "1", "other-template": "1", "far-template": "2"}


def test_who_is_asked_for_the_account_no_more_than_is_needed() -> None:
    """A call of AWS at every preview: for a fleet's rights and topic, and a region's bucket."""
    asked: list[str] = []

    def caller(_args: Mapping[str, Any]) -> Mapping[str, Any]:
        asked.append("")
        return {"accountId": world.ACCOUNT}

    world.run(program, answers={**world.ANSWERS, CALLER: caller})
    assert len(asked) == 2 * len(FLEETS) + 2
