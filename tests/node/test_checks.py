"""Every check speaks up where it must and is silent where it must."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from tests.node.cases import CASES, Case
from tests.node.machines import KINDS, Machine

from gputier.node.checks import ALL
from gputier.node.result import EXIT, HEALTHY, UNSUPPORTED
from gputier.node.verbs.common import Run

Judge = Callable[..., Run]
NAMES = [check.name for check in ALL]


def of(report: dict[str, Any], name: str) -> dict[str, Any]:
    (found,) = (check for check in report["checks"] if check["name"] == name)
    return found


@pytest.mark.parametrize("depth", ["quick", "standard", "burn-in"])
@pytest.mark.parametrize("kind", KINDS)
def test_a_healthy_machine_of_every_kind_passes(run: Judge, kind: str, depth: str) -> None:
    report = run(Machine(kind), depth).report
    bad = [(c["name"], c["evidence"]) for c in report["checks"]
           if c["outcome"] not in (HEALTHY, UNSUPPORTED)]  # fmt: skip
    assert bad == []
    assert (report["outcome"], report["warnings"]) == (HEALTHY, [])


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.check}: {case.words}")
def test_a_fault_has_the_right_outcome(run: Judge, case: Case) -> None:
    machine = Machine(case.kind)
    case.change(machine)
    report = run(machine, case.depth, **merged(machine, case.expect)).report
    found = of(report, case.check)
    assert (found["outcome"], report["outcome"]) == (case.outcome, case.node), found["evidence"]
    assert case.evidence in found["evidence"]
    assert found["evidence"], "a verdict shows what it judged"
    assert found["remedy"], "and says what to do"


def merged(machine: Machine, changes: dict[str, Any]) -> dict[str, Any]:
    """Sections are laid over the plan's; an empty one leaves the section out."""
    plan = machine.expectation()
    return {
        key: {**plan.get(key, {}), **value} if isinstance(value, dict) and value else value
        for key, value in changes.items()
    }


def test_every_check_has_a_bad_machine_and_a_good_one(run: Judge) -> None:
    """A check that nobody has seen fail may be one that cannot."""
    assert {case.check for case in CASES} == set(NAMES)
    good: set[str] = set()
    for kind in KINDS:
        report = run(Machine(kind), "burn-in").report
        good |= {c["name"] for c in report["checks"] if c["outcome"] == HEALTHY}
    extra = GOOD_ELSEWHERE - good
    assert set(NAMES) - good == extra, "a check that is never healthy is one that cannot pass"


# Healthy only where the plan asks for more than any kind's does; shown by their own tests below.
GOOD_ELSEWHERE = {"container", "nic-speed", "all-reduce-pairs", "memory-bandwidth"}


def test_the_checks_that_a_plan_has_to_ask_for_pass_too(run: Judge) -> None:
    machine = Machine("a3-megagpu-8g")
    machine.absent -= {"docker", "mpirun"}
    machine.files["/sys/class/net/ens5/speed"] = "200000\n"
    data = json.loads(machine.dcgm(3)[1])
    tests = data["DCGM Diagnostic"]["test_categories"][0]["tests"]
    tests.append(
        {"name": "memory_bandwidth", "results": [{"status": "Pass", "info": ["2540 GB/s"]}]}
    )
    machine.dcgm = lambda _: (0, json.dumps(data))
    plan = machine.expectation()
    report = run(
        machine,
        "burn-in",
        container={"image": "cuda"},
        host={**plan["host"], "network_gbps": 200},
        fabric={**plan["fabric"], "peers": ["b"]},
    ).report
    assert {of(report, name)["outcome"] for name in GOOD_ELSEWHERE} == {HEALTHY}


def test_every_outcome_that_a_check_declares_has_a_case() -> None:
    """What the table promises is shown; what is shown is in the table."""
    shown = {(case.check, case.outcome) for case in CASES}
    shown |= {
        (twin, outcome) for twin, one in TWINS.items() for name, outcome in shown if name == one
    }
    assert shown - {(c.name, outcome) for c in ALL for outcome in c.remedies} == set()
    assert {(c.name, outcome) for c in ALL for outcome in c.remedies} - shown == set()


# Judged by the very function of another check.
TWINS = {"dcgm-2": "dcgm-1", "dcgm-3": "dcgm-1", "xid-after": "xid"}


def test_what_needs_whole_cards_is_left_out_where_the_plan_divides_them(run: Judge) -> None:
    report = run(Machine("a2-highgpu-1g"), "burn-in").report
    why = {entry["name"]: entry["why"] for entry in report["not_applicable"]}
    for name in ("host-bandwidth", "all-reduce", "peer-bandwidth", "dcgm-3"):
        assert "MIG" in why[name]


def test_exit_statuses_are_the_documented_ones() -> None:
    assert EXIT == {"healthy": 0, "reboot": 10, "replace": 20, "config": 30, "inconclusive": 40}
