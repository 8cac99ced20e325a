"""What users of other tools reported of capacity, fabric, disks and drift, and where each is shown.

The numbers are those of the collected reports: 3C capacity, 3E network and disks, 3G drift. The
table in docs/field-rows.md has every row of them that a deployment to AWS answers for, with the
tests that are named after it, or of what shows it, or with the reason why there is none.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from tests.aws import world
from tests.aws.pages import EFA, table

from gputier.boot import expectation

ROOT = Path(__file__).resolve().parents[2]
NUMBERS = (*range(33, 55), *range(76, 92), *range(133, 136))
#: Files whose tests may be named by the number alone; elsewhere that is another list's number.
BARE = {
    "tests/catalog/test_interfaces.py",
    "tests/lock/test_images.py",
    "tests/plan/test_actions.py",
    "tests/plan/test_combinations.py",
    "tests/plan/test_fleet.py",
    "tests/plan/test_volumes.py",
}
NAMED = re.compile(r"test_(?:row_|field_3[ceg]_)(\d+)_")
BY_NUMBER = re.compile(r"test_(\d+)_")


class Row(NamedTuple):
    """What was reported; `shown` are tests under other names, `why` why there is none."""

    said: str
    shown: tuple[str, ...] = ()
    why: str = ""


SCRATCH, NETWORK = "tests/node/stages/test_scratch.py", "tests/node/stages/test_network.py"
ROWS: Mapping[int, Row] = {
    33: Row("try all zones of a region"),
    34: Row("skip zones without a subnet"),
    35: Row("a spot failure code is not recognised",
            why="no code is read: the group launches, and tries again by itself"),
    36: Row("skip regions without quota", why="quota needs an account, and picking is offline"),
    37: Row("no quota is reported wrongly", why="as row 36: nothing is said of quota"),
    38: Row("a shortage is an endless loop of machines"),
    39: Row("the next type when there is no capacity"),
    40: Row("fifteen spot offers are tried, all gone"),
    41: Row("no capacity ends the retries"),
    42: Row("why launching failed",
            ("tests/plan/test_monitoring.py::test_a_gate_that_rejects_what_is_launched_is_noticed",)),
    43: Row("wait for a capacity block to begin"),
    44: Row("buy capacity blocks by itself",
            why="spends money without being asked; the plan says which types are sold so"),
    45: Row("use reservations"),
    46: Row("not all reserved machines start"),
    47: Row("a forced placement group breaks a reservation"),
    48: Row("what the placement warning says"),
    49: Row("reservations on Google"),
    50: Row("capacity blocks"),
    51: Row("flex-start"),
    52: Row("keep a fleet filled after an interruption"),
    53: Row("prices and capacity mix"),
    54: Row("spot dearer than on demand"),
    76: Row("one of four EFA interfaces is used"),
    77: Row("EFA without a public address"),
    78: Row("EFA needs certain device indexes"),
    79: Row("NCCL fails: plugin and variables",
            (f"{NETWORK}::test_incident_47_a_missing_plugin_is_said_before_nccl_takes_tcp",
             "tests/boot/test_settings.py"
             "::test_the_fabric_is_named_so_that_nothing_falls_back_to_tcp_unseen")),
    80: Row("EFA fails above four GPUs, a bad GPU stalls the job"),
    81: Row("EFA for node groups"),
    82: Row("the newest driver breaks TCPX",
            why="Google's; a driver is in the lock, and changes when somebody says so"),
    83: Row("the bandwidth floor of A3 is raised",
            why="Google's; floors are data of the node (`node/thresholds.py`)"),
    84: Row("one interface more pushes one off"),
    85: Row("no health check of EFA",
            ("tests/node/test_checks.py::test_a_fault_has_the_right_outcome",)),
    86: Row("NVMe is not found by its name",
            (f"{SCRATCH}::test_incident_7_names_that_changed_places_change_nothing",
             f"{SCRATCH}::test_incident_8_an_nvme_that_is_a_volume_is_never_scratch")),
    87: Row("a disk script fails the boot",
            (f"{SCRATCH}::test_a_reboot_keeps_what_is_on_the_disks",
             f"{SCRATCH}::test_an_image_that_mounts_the_disks_itself_is_used_and_not_fought")),
    88: Row("mount local disks",
            (f"{SCRATCH}::test_blank_disks_become_one_stripe_that_is_mounted_by_uuid",)),
    89: Row("RAID 0 by default",
            (f"{SCRATCH}::test_blank_disks_become_one_stripe_that_is_mounted_by_uuid",)),
    90: Row("disks and kubelet wait for each other",
            ("tests/node/test_runner.py"
             "::test_every_stage_that_the_settings_ask_for_runs_once_and_in_order",)),
    91: Row("local disks for rendering and games"),
    133: Row("user data differs without a change"),
    134: Row("an instance refresh does not begin with `$Latest`"),
    135: Row("the newest image replaces machines"),
}  # fmt: skip


@cache
def found_in(file: str) -> tuple[str, ...]:
    tree = ast.parse((ROOT / file).read_text(encoding="utf-8"))
    return tuple(node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef))


@cache
def named() -> Mapping[int, tuple[str, ...]]:
    """Row → the tests that are named after it."""
    found: dict[int, list[str]] = {}
    for path in sorted((ROOT / "tests").rglob("test_*.py")):
        file = path.relative_to(ROOT).as_posix()
        for test in found_in(file):
            match = NAMED.match(test) or (BY_NUMBER.match(test) if file in BARE else None)
            if match:
                found.setdefault(int(match[1]), []).append(f"{file}::{test}")
    return {number: tuple(tests) for number, tests in found.items()}


def problems(rows: Mapping[int, Row]) -> Iterator[str]:
    for number, row in rows.items():
        shown = (*named().get(number, ()), *row.shown)
        if bool(shown) == bool(row.why):
            yield f"{number}: neither a test nor a reason, or both"
        for test in row.shown:
            file, _, name = test.partition("::")
            if name not in found_in(file):
                yield f"{number}: there is no {test}"


def test_every_row_is_tested_or_says_why_not() -> None:
    assert tuple(ROWS) == NUMBERS
    assert list(problems(ROWS)) == []


def test_a_row_without_a_test_with_a_reason_too_many_or_a_test_that_is_gone_is_found() -> None:
    wrong = {
        36: Row("a"),
        34: Row("b", why="no need"),
        35: Row("c", ("tests/aws/world.py::gone",)),
    }
    assert [found[:3] for found in problems(wrong)] == ["36:", "34:", "35:"]


def test_the_page_has_every_row(generated: Callable[[str, str, str], None]) -> None:
    lines = [
        (
            number,
            row.said,
            "<br/>".join(f"`{t.replace('::', '` `')}`" for t in named().get(number, ()))
            + "".join(f"{'<br/>' if i or number in named() else ''}`{t.replace('::', '` `')}`"
                      for i, t in enumerate(row.shown))
            or f"none: {row.why}",
        )
        for number, row in ROWS.items()
    ]  # fmt: skip
    text = "\n".join(table(("row", "what was reported", "what shows it"), lines))
    generated("docs/field-rows.md", "aws", text)


# ---- rows that no other test is named after --------------------------------------------------


def test_row_38_a_fleet_whose_machines_all_fail_may_stop_itself_and_stays_stopped() -> None:
    run = world.alone(purpose="inference", gpu={"models": ["L4"]})
    rights = str(run.find("RolePolicy job-rights").inputs["policy"])
    assert "autoscaling:SuspendProcesses" in rights
    assert "autoscaling:ResumeProcesses" not in rights
    assert "suspendedProcesses" in run.find("Group job-group").options.ignore_changes


def test_row_40_spot_is_bought_where_there_is_most_of_it() -> None:
    run = world.alone(purpose="fine-tuning", gpu={"models": ["L4"]}, capacity="spot")
    policy = run.find("Group job-group").inputs["mixedInstancesPolicy"]
    how = policy["instancesDistribution"]["spotAllocationStrategy"]
    assert how == "price-capacity-optimized"


def test_row_41_a_deployment_ends_without_capacity_and_the_group_goes_on_trying() -> None:
    run = world.alone(purpose="inference", gpu={"models": ["L4"]})
    assert run.find("Group job-group").inputs["waitForCapacityTimeout"] == "0"
    alarm = run.find("MetricAlarm job-alarm-short").inputs
    assert "the cloud has no machine" in alarm["alarmDescription"]


def test_row_80_machines_that_work_together_are_burnt_in_before_their_first_job() -> None:
    plan = world.planned(**EFA)
    assert plan.chosen
    assert plan.chosen.boot.gate.depth == "burn-in"


@pytest.mark.parametrize("fields", [EFA, {**EFA, "gpu": {"models": ["H100"], "count": 8}}])
def test_row_84_the_machine_looks_for_exactly_the_interfaces_it_is_given(
    fields: dict[str, Any],
) -> None:
    plan = world.planned(**fields)
    run = world.fleet(plan)
    given = run.find("LaunchTemplate job-template").inputs["networkInterfaces"]
    efa = [one for one in given if one.get("interfaceType", "").startswith("efa")]
    fabric: Any = expectation(plan, world.catalog())["fabric"]
    assert fabric["interfaces"] == len(efa)
    assert len({(one["networkCardIndex"], one["deviceIndex"]) for one in given}) == len(given)


@pytest.mark.parametrize("purpose", ["rendering", "vdi"])
def test_row_91_local_disks_are_there_for_who_renders_and_plays(purpose: str) -> None:
    chosen = world.planned(purpose=purpose, disk={"scratch": "200GB"}).chosen
    assert chosen
    assert chosen.storage.scratch_gib
    assert chosen.storage.scratch_gib > 180
