"""Every plan that the catalogue can give has user data that its cloud takes, with room to spare."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.boot.examples import STACK, Example, catalog, planned, rendered

from gputier.boot import Stack
from gputier.boot.stage0 import LIMITS, fits_inline
from gputier.errors import InvalidInput
from gputier.plan import DEPLOYABLE, WorkloadPlan, plan_workload, purposes, tiers
from gputier.plan.names import KINDS
from gputier.workload import Workload

#: As long as Pulumi and a declaration allow: names go into user data too.
LONGEST = Stack("p" * 100, "s" * 100)
NAME = "w" * 40
BOUGHT = ("on_demand", "spot")
#: What a person needs beside the machine: a framework or a container, a way out, a key.
NEEDS: Mapping[str, Mapping[str, Any]] = {
    "nothing": {},
    "a framework": {"software": {"framework": "pytorch==2.9", "run": "exec python3 /srv/run.py\n"}},
    "a container behind a proxy": {
        "software": {
            "container": {"image": "nvcr.io/nvidia/pytorch:25.10-py3", "ports": [8000],
                          "args": ["python", "-m", "serve"], "env": {"LOG_LEVEL": "info"}},
            "proxy": {"http": "http://proxy.internal:3128", "no_proxy": ["10.0.0.0/8"]},
            "mirrors": {"apt": "http://apt.internal/ubuntu", "pip": "https://pip.internal/simple",
                        "container": "mirror.internal:5000"},
            "ssh_keys": ["ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIH0123456789abcdefghijklmnopqrst op"],
            "before_stop": "curl -fsS localhost:8000/drain",
        }
    },
}  # fmt: skip


#: Families that nobody sells any more, or that are had by reservation or block alone.
NOT_GIVEN: Mapping[str, set[str]] = {
    "aws": {"g3", "g3s", "p2", "p3", "p6e-gb200"},
    "gcp": {"a4x", "a4x-max"},
}


def types() -> list[tuple[str, str]]:
    return sorted(key for key in catalog().types if key[0] in DEPLOYABLE)


@cache
def on(cloud: str, name: str, need: str, nodes: int) -> WorkloadPlan | None:
    """The plan of a workload on one named type; None where it cannot be had."""
    row = catalog().types[cloud, name]
    zones = catalog().zones(cloud, name)
    fields: dict[str, Any] = {
        **NEEDS[need], "clouds": [cloud], "nodes": nodes,
        "gpu": {"fractional": "allow"} if row.fractional else {},
        "cpu": {"architecture": "any"},
        "disk": {"data": "500GB"},
        "regions": {cloud: sorted(zones)} if zones else {},
    }  # fmt: skip
    if nodes > 1 and row.interconnect != "none":
        fields["fabric"] = "any"
    return anywhere(fields, name)


def anywhere(fields: dict[str, Any], only: str | None = None) -> WorkloadPlan | None:
    """The plan; None where no machine can be had."""
    try:
        found = _planned(fields, only)
    except InvalidInput as error:
        if all("Google's autohealing waits" in one.message for one in error.problems):
            return None  # where driver and framework are installed, its hour may be too short
        raise
    return found if found.chosen else None


def _planned(fields: dict[str, Any], only: str | None) -> WorkloadPlan:
    workload = Workload(**fields)
    if only is not None:
        (choice,) = workload.capacity
        ways = [choice.model_copy(update={"use": use, "instance_type": only}) for use in BOUGHT]
        workload = workload.model_copy(update={"capacity": tuple(ways)})
    return plan_workload(NAME, workload, catalog(), "prod")


def of(cloud: str) -> Iterator[tuple[str, WorkloadPlan]]:
    for place, name in types():
        for need in NEEDS if place == cloud else ():
            for nodes in (1, 2):
                plan = on(cloud, name, need, nodes)
                if plan is not None:
                    yield f"{name}, {need}, {nodes}", plan


@pytest.mark.slow
@pytest.mark.parametrize("cloud", DEPLOYABLE)
def test_every_machine_of_the_catalogue_gets_user_data_that_fits(cloud: str) -> None:
    seen: dict[str, int] = {}
    refused: dict[str, str] = {}
    machines: set[str] = set()
    for words, plan in of(cloud):
        machines.add(words.split(",")[0])
        try:
            seen[words] = rendered(Example(plan, LONGEST)).size
        except InvalidInput as error:
            refused[words] = error.problems[0].message
    assert seen, "nothing was rendered"
    assert max(seen.values()) <= LIMITS[cloud]
    assert not refused, "what the plan accepts is rendered"
    missing = {key for key in types() if key[0] == cloud and key[1] not in machines}
    assert {catalog().types[key].family for key in missing} <= NOT_GIVEN[cloud]


@pytest.mark.parametrize("cloud", DEPLOYABLE)
def test_every_tier_and_purpose_gets_user_data_that_fits(cloud: str) -> None:
    count = 0
    for tier in (None, *tiers()):
        for purpose in purposes():
            fields: dict[str, Any] = {"tier": tier, "purpose": purpose, "clouds": [cloud]}
            plan = anywhere(fields)
            if plan is not None:
                assert rendered(Example(plan, LONGEST)).size <= LIMITS[cloud], (tier, purpose)
                count += 1
    assert count > len(purposes())


lines = st.text(st.characters(codec="ascii", exclude_categories=["Cc"]), max_size=200)


@given(run=st.lists(lines, min_size=1, max_size=40), packages=st.integers(0, 60))
@settings(max_examples=60)
def test_whatever_is_to_run_is_rendered_within_the_limit_or_refused_before(
    run: list[str], packages: int
) -> None:
    software = {
        "run": "\n".join(["exec true", *run]),
        "packages": [f"tool-{n}" for n in range(packages)],
    }
    try:
        plan = planned(name=NAME, gpu={"models": ["L4"]}, clouds=["aws"], software=software)
    except InvalidInput:
        return  # refused where it is declared, or by the plan (test_room.py)
    assert rendered(Example(plan, STACK)).size <= LIMITS["aws"]


def test_there_is_room_for_a_script_of_one_and_a_half_kilobytes_beside_the_longest_names() -> None:
    """Less would make `software.run` a promise that nobody can use."""
    plan = planned(
        name=NAME, tier="high-end", purpose="training", nodes=4, clouds=["aws"],
        gpu={"models": ["A100-80GB"], "count": 8}, software={"run": "#" * 1599 + "\n"},
    )  # fmt: skip
    assert rendered(Example(plan, LONGEST)).size <= LIMITS["aws"]


def test_every_cloud_that_is_deployed_has_its_names_and_its_limit() -> None:
    assert set(DEPLOYABLE) == set(KINDS)
    assert set(LIMITS) > set(DEPLOYABLE)
    assert [cloud for cloud in LIMITS if fits_inline(cloud)] == ["gcp", "azure"]
