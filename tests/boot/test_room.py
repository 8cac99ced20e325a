"""The plan's own measure of a boot, in bytes and in seconds, is held to what is rendered.

A plan may not know of the boot, so it has its own figures: what it accepts is rendered, and what
would not be rendered it refuses, with a place and a way out.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.boot.examples import BUNDLE, STACK, Example, examples, planned, rendered
from tests.boot.test_limits import LONGEST, NAME, on, types

from gputier.boot.deadlines import INITIAL_DELAY_SECONDS, deadline
from gputier.boot.settings import settings as written
from gputier.boot.stage0 import LIMITS, fits_inline, lines
from gputier.errors import InvalidInput, Problem
from gputier.node import settings as node
from gputier.plan import DEPLOYABLE, Chosen, WorkloadPlan, patience, room
from gputier.plan.follow import boot_machine
from gputier.workload.software import MOST_BYTES

KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIH0123456789abcdefghijklmnopqrst{} op"
WORDS = st.text(st.characters(exclude_categories=["Cc", "Cs", "Cn", "Co", "Zl", "Zp"]))
URL = st.sampled_from(["http://proxy.internal:3128", "https://m.internal/" + "p" * 60])
OURS: Mapping[str, Mapping[str, Any]] = {
    "aws": {"clouds": ["aws"], "capacity": {"use": "on_demand", "instance_type": "p4d.24xlarge"},
            "nodes": 2, "fabric": "any", "disk": {"data": "500GB"}},
    "gcp": {"gpu": {"models": ["L4"]}, "clouds": ["gcp"], "disk": {"data": "500GB"}},
}  # fmt: skip


@st.composite
def softwares(draw: st.DrawFn) -> dict[str, Any]:
    """Whatever may be declared to run: text of every kind, in every place of it."""
    found: dict[str, Any] = {}
    ways = {
        "run": st.lists(WORDS, max_size=30).map("\n".join),
        "before_stop": WORDS,
        "packages": st.integers(0, 40).map(lambda n: [f"tool-{i}" for i in range(n)]),
        "ssh_keys": st.integers(0, 5).map(lambda n: [KEY.format(i) for i in range(n)]),
        "framework": st.sampled_from(["pytorch==2.9", "pytorch==2.12+cu126", "jax==0.8"]),
        "proxy": st.fixed_dictionaries({"http": URL, "no_proxy": st.just(["10.0.0.0/8", ".i"])}),
        "mirrors": st.fixed_dictionaries({"pip": URL, "container": st.just("m.internal:5000")}),
        "mpi": st.just("horovod"),
    }
    for key in draw(st.sets(st.sampled_from(sorted(ways)))):
        found[key] = draw(ways[key])
    if "run" not in found and draw(st.booleans()):
        found["container"] = {
            "image": "nvcr.io/nvidia/pytorch:25.10-py3", "args": draw(st.lists(WORDS, max_size=9)),
            "env": {"A": draw(WORDS)}, "ports": draw(st.sampled_from([[], [8000]])),
        }  # fmt: skip
    return found


def tried(cloud: str, more: Mapping[str, Any]) -> WorkloadPlan | list[Problem]:
    try:
        return planned(name=NAME, **{**OURS[cloud], **more})
    except InvalidInput as error:
        return list(error.problems)


@pytest.mark.parametrize("cloud", DEPLOYABLE)
@given(software=softwares(), depth=st.sampled_from(["quick", "standard", "burn-in"]))
@settings(max_examples=60, suppress_health_check=[HealthCheck.too_slow])
def test_what_the_plan_accepts_is_rendered_whatever_its_project_and_stack_are_called(
    cloud: str, software: dict[str, Any], depth: str
) -> None:
    plan = tried(cloud, {"software": software, "validation": {"depth": depth}})
    if isinstance(plan, WorkloadPlan) and plan.chosen:
        assert rendered(Example(plan, LONGEST)).size <= LIMITS[cloud]


@given(software=softwares())
@settings(max_examples=40, suppress_health_check=[HealthCheck.too_slow])
def test_the_bytes_of_software_are_no_fewer_than_what_it_adds_to_user_data(
    software: dict[str, Any],
) -> None:
    """Measured where there is room for all of it."""
    with_it, without = tried("gcp", {"software": software}), tried("gcp", {})
    if not isinstance(with_it, WorkloadPlan) or not with_it.chosen:
        return
    assert isinstance(without, WorkloadPlan)
    added = size(with_it) - size(without)
    counted = sum(room.software_bytes(with_it.chosen.boot).values())
    assert added <= counted
    assert counted <= added + 2 * room.BOUNDS_BYTES, "nothing is refused that would fit by far"


def size(plan: WorkloadPlan) -> int:
    """Without the limits, which a plan cannot know and Google alone has cut."""
    found = rendered(Example(plan, STACK))
    limits = next(line for line in found.settings.splitlines() if line.startswith('"limits"'))
    return found.size - len(limits)


def test_too_much_is_refused_by_the_plan_with_its_place_and_its_size_and_a_way_out() -> None:
    found = tried("aws", {"software": {"run": "#" * 3000, "packages": ["htop"]}})
    assert isinstance(found, list)
    (problem,) = found
    assert problem.path.endswith("software")
    assert "bytes of software, and user data of aws has room for 1,700: run 3,0" in problem.message
    assert problem.hint.endswith("or take `clouds: [gcp]`")
    assert isinstance(tried("gcp", {"software": {"run": "#" * 3000}}), WorkloadPlan)


def test_the_largest_machine_with_the_longest_names_leaves_the_room_that_the_plan_promises() -> (
    None
):
    least = 10**9
    for name in (name for cloud, name in types() if cloud == "aws"):
        plan = on("aws", name, "nothing", 2)
        if plan is not None:
            least = min(least, LIMITS["aws"] - rendered(Example(plan, LONGEST)).size)
    assert room.ROOM["aws"] <= least
    assert room.ROOM["aws"] >= least - 250, "nothing is refused that would fit by far"


def test_a_cloud_without_a_figure_has_room_for_whatever_may_be_declared() -> None:
    for cloud in DEPLOYABLE:
        assert (cloud in room.ROOM) != fits_inline(cloud)
    largest = max(rendered(one).size for one in examples().values() if on_gcp(one))
    assert largest + 6 * MOST_BYTES < LIMITS["gcp"]  # `\u20ac` for each character


def on_gcp(example: Example) -> bool:
    chosen = example.plan.chosen
    return chosen is not None and chosen.verdict.type.cloud == "gcp"


# --- seconds ------------------------------------------------------------------------------------


def shortest(plan: WorkloadPlan) -> tuple[int, int | None]:
    """What the boot's own arithmetic comes to with every limit as short as it gets."""
    found = deadline(node.read(lines(written(plan, STACK, BUNDLE))))
    return found.total_seconds, found.allowed_seconds


def seconds(chosen: Chosen, plan: WorkloadPlan) -> int:
    machine = boot_machine(plan.need.workload, chosen.verdict, chosen.storage, chosen.network)
    return sum(patience.least_seconds(chosen.boot, machine).values())


def everything() -> Iterator[tuple[str, WorkloadPlan]]:
    yield from ((name, one.plan) for name, one in examples().items() if on_gcp(one))
    for name in (name for cloud, name in types() if cloud == "gcp"):
        for need in ("nothing", "a framework", "a container behind a proxy"):
            plan = on("gcp", name, need, 2)
            if plan is not None:
                yield f"{name}, {need}", plan


def test_the_seconds_that_a_boot_needs_are_those_of_its_own_arithmetic(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Asked with a cloud that waits for nothing, so that all limits are cut as far as they go."""
    count = 0
    monkeypatch.setattr("gputier.boot.deadlines.INITIAL_DELAY_SECONDS", 60)
    for words, plan in everything():
        assert plan.chosen
        if plan.chosen.boot.gate.kind in patience.WAITS:
            assert seconds(plan.chosen, plan) == shortest(plan)[0], words
            count += 1
    assert count > 20


def test_a_boot_that_google_would_not_wait_for_is_refused_by_the_plan() -> None:
    software = {"framework": "pytorch==2.9", "packages": ["htop"]}
    late = {"software": software, "validation": {"depth": "standard"}}
    found = tried("gcp", late)
    assert isinstance(found, list)
    (problem,) = found
    assert "Google's autohealing waits 3,540" in problem.message
    assert "`validation.depth`" in problem.hint
    assert isinstance(tried("gcp", {**late, "validation": {"depth": "quick"}}), WorkloadPlan)
    assert isinstance(tried("aws", late), WorkloadPlan)


def test_the_plan_knows_how_long_google_waits() -> None:
    plan = examples()["gcp-one"].plan
    assert {"health-endpoint": shortest(plan)[1]} == patience.WAITS
    assert INITIAL_DELAY_SECONDS == 3600
