"""docs/aws.md says what is made, allowed, watched and kept as it is."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import pytest
from tests.aws import pages, world

Generated = Callable[[str, str, str], None]
PAGE = "docs/aws.md"


def written(generated: Generated, name: str, lines: Iterable[str]) -> None:
    generated(PAGE, name, "\n".join(lines))


def test_the_page_lists_what_each_fleet_is_made_of(generated: Generated) -> None:
    written(generated, "fleets", pages.fleets())


def test_the_page_lists_what_the_fleets_of_a_region_share(generated: Generated) -> None:
    written(generated, "shared", pages.shared())


@pytest.mark.parametrize(
    ("name", "stack", "workload"), [("group", "dev", "chat"), ("lone", "prod", "desktops")]
)
def test_the_page_draws_each_shape(
    generated: Generated, name: str, stack: str, workload: str
) -> None:
    written(generated, f"diagram-{name}", pages.diagram(stack, workload))


def test_a_drawing_has_every_resource_of_its_fleet_and_no_edge_that_follows_from_others() -> None:
    lines = list(pages.diagram("dev", "chat"))
    assert any("LaunchTemplate · LifecycleHook" in line for line in lines)
    edges = [tuple(line.split(" --> ")) for line in lines if "-->" in line]
    assert ("  Store_us_east_1", "Identity_chat") in edges
    assert ("  Identity_chat", "Group_chat") in edges
    assert ("  Store_us_east_1", "Group_chat") not in edges


def test_the_page_has_the_matrix(generated: Generated) -> None:
    written(generated, "matrix", pages.combined())


def test_the_page_has_every_right_of_a_group_in_full(generated: Generated) -> None:
    identity = pages.chosen("dev", "chat").identity
    written(generated, "rights-group", pages.rights(identity))
    written(generated, "policy-group", pages.policy(identity))


def test_the_page_has_every_right_of_a_lone_machine_in_full(generated: Generated) -> None:
    identity = pages.chosen("prod", "desktops").identity
    written(generated, "policy-lone", pages.policy(identity))


@pytest.mark.parametrize("fields", [pages.EFA, {"disk": {"kms_key": "create"}}])
def test_neither_a_fabric_nor_a_key_gives_machines_a_right_more(fields: Mapping[str, Any]) -> None:
    """The page says so, in place of the same policy three times."""
    plain, more = world.planned().chosen, world.planned(**fields).chosen
    assert plain
    assert more
    assert plain.identity.statements == more.identity.statements


def test_the_page_has_every_other_policy_in_full(generated: Generated) -> None:
    written(generated, "policies", pages.other_policies())


def test_every_policy_that_a_stack_makes_is_on_the_page() -> None:
    """A new kind of policy would otherwise be made and not shown."""
    runs = [world.example(s) for s in ("dev", "staging", "prod")]
    runs.append(world.alone(disk={"kms_key": "create"}))
    runs += [world.alone(**base, budget=pages.STOPS) for base in (pages.GROUP, pages.NIGHTLY)]
    kinds = {
        (record.type.rsplit(":", 1)[-1], record.name.removeprefix(f"{record.parent.split()[1]}-"))
        for run in runs
        for record in run.records
        if {"policy", "assumeRolePolicy"} & set(record.inputs)
    }
    assert kinds == {
        ("Role", "role"),
        ("RolePolicy", "rights"),
        ("Role", "hours"),
        ("RolePolicy", "hours"),
        ("BucketPolicy", "tls"),
        ("TopicPolicy", "alerts"),
        ("Key", "key"),
        ("Role", "stop"),
        ("RolePolicy", "stop"),
        ("TopicPolicy", "stop"),
        ("Policy", "halt"),
    }


def test_the_page_lists_what_is_watched(generated: Generated) -> None:
    written(generated, "alarms", pages.alarms(pages.chosen("dev", "chat").monitoring))
    written(generated, "alarms-lone", pages.alarms(pages.chosen("prod", "desktops").monitoring))
    written(generated, "dashboard", pages.widgets(pages.chosen("dev", "chat").monitoring))


def test_the_page_lists_what_stops_a_fleet_and_watches_its_cost(generated: Generated) -> None:
    written(generated, "over-budget", pages.over_budget())


def test_the_page_says_what_stands_around_the_machines(generated: Generated) -> None:
    written(generated, "money", pages.money())


def test_the_page_says_what_a_deployment_leaves_alone_and_what_stays(generated: Generated) -> None:
    written(generated, "left-alone", pages.left_alone())
    written(generated, "kept", pages.kept())
