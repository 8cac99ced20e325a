"""Incidents of hardware and of the tools that judge it, each on a machine that shows it.

docs/boot.md lists them by number; those whose test stands elsewhere have it in that test's name.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest
from tests.node.cases import (
    B200,
    H100,
    V100,
    XID_LINE,
    Change,
    both,
    cell,
    dcgm,
    failed,
    gpu,
    hangs,
    log,
    torch,
    without,
)
from tests.node.machines import Machine

from gputier.node import tools
from gputier.node.result import CONFIG, HEALTHY, INCONCLUSIVE, REBOOT, REPLACE
from gputier.node.verbs.common import Run

Judge = Callable[..., Run]
# Two checks may take so long at most where nothing answers; all of them would take minutes.
FEW_SECONDS = 60.0


def machine(kind: str, *changes: Change) -> Machine:
    made = Machine(kind)
    both(*changes)(made)
    return made


def verdict(run: Run) -> tuple[str, list[str]]:
    return run.report["outcome"], run.report["causes"]


# --- a driver that hangs, and what it says of itself ---------------------------------------------


def test_incident_50_a_gsp_that_hangs_costs_one_limit_and_is_rebooted_once(run: Judge) -> None:
    found = run(machine(H100, log(XID_LINE.format(119)), hangs("nvidia-smi")))
    assert found.report["outcome"] == REBOOT
    assert "xid" in found.report["causes"]
    assert found.report["seconds"] < FEW_SECONDS


def test_incident_51_the_log_is_read_before_any_tool_that_may_hang(run: Judge) -> None:
    """A drain by timeout names nothing; the log had the cause all the time."""
    made = machine(H100, log(XID_LINE.format(119)), hangs("nvidia-smi"))
    found = run(made)
    programs = [call[0] for call in made.calls]
    assert programs.index("journalctl") < programs.index("nvidia-smi")
    assert "Xid 119" in next(c["evidence"] for c in found.report["checks"] if c["name"] == "xid")


# --- faults that give the host back, and repairs that do not -------------------------------------


@pytest.mark.parametrize(
    "change",
    [
        pytest.param(log(XID_LINE.format(79)), id="incident 52: off the bus"),
        pytest.param(cell(2, "remapped_rows.failure", "Yes"), id="incident 53: no rows left"),
        pytest.param(log(XID_LINE.format(64)), id="incident 54: the repair failed"),
    ],
)
def test_incidents_52_to_54_what_no_reset_cures_is_given_back(run: Judge, change: Change) -> None:
    assert run(machine(H100, change)).report["outcome"] == REPLACE


# Code → what NVIDIA's own table (dcgm_errors.c) wants to be done.
DCGM_CODES = {80: REPLACE, 83: REBOOT, 84: REBOOT, 85: REBOOT, 52: REPLACE, 55: CONFIG}
SEVERITIES = {REPLACE: 2, REBOOT: 6, CONFIG: 5}


@pytest.mark.parametrize(("code", "outcome"), DCGM_CODES.items())
def test_incident_55_a_code_of_dcgm_comes_to_what_nvidias_table_says(
    run: Judge, code: int, outcome: str
) -> None:
    found = run(machine(H100, dcgm(failed(code, SEVERITIES[outcome]))))
    assert verdict(found) == (outcome, ["dcgm-1"])


def test_incident_55_an_older_table_that_only_resets_a_failed_repair_is_corrected() -> None:
    assert tools.OVERRIDES[80].outcome == REPLACE


@pytest.mark.parametrize(
    "change",
    [
        pytest.param(cell(1, "remapped_rows.uncorrectable", "4"), id="rows that were remapped"),
        pytest.param(cell(1, "remapped_rows.correctable", "9"), id="rows remapped ahead"),
        pytest.param(cell(1, "ecc.errors.uncorrected.aggregate.dram", "3"), id="an old error"),
        pytest.param(log(XID_LINE.format(63)), id="a repair that was noted"),
    ],
)
def test_incident_56_a_memory_that_repaired_itself_is_healthy(run: Judge, change: Change) -> None:
    assert run(machine(H100, change)).report["outcome"] == HEALTHY


# --- NVIDIA's diagnostic --------------------------------------------------------------------------


def test_incident_58_a_pass_with_a_warning_that_nothing_was_tested_is_none(run: Judge) -> None:
    found = run(machine(H100, dcgm(failed(56, 4, "Pass"), 0)), "standard")
    assert found.report["outcome"] == INCONCLUSIVE
    words = [c["evidence"] for c in found.report["checks"] if c["name"] in found.report["causes"]]
    assert any("the memory was not tested" in one for one in words)


def test_incident_70_a_diagnostic_that_is_not_there_is_said(run: Judge) -> None:
    found = run(machine(H100, without("dcgmi")))
    (said,) = (check for check in found.report["checks"] if check["name"] == "dcgm-1")
    assert (said["outcome"], said["evidence"]) == ("unsupported", "dcgmi is not installed")
    needed = run(machine(H100, without("dcgmi")), require=["dcgm"])
    assert verdict(needed) == (CONFIG, ["dcgm-1"])


# --- silently on the CPU --------------------------------------------------------------------------

NO_IMAGE = "CUDA error: no kernel image is available for execution on the device"
OLD = "The NVIDIA driver on your system is too old (found version 12040)"


@pytest.mark.parametrize(
    ("kind", "change", "named"),
    [
        pytest.param(H100, torch(available=False, devices=[]), "CPU", id="incident 61"),
        pytest.param(
            H100, torch(available=False, devices=[], error=OLD), "too old", id="incident 62"
        ),
        pytest.param(
            B200, gpu(0, cuda_error=NO_IMAGE), "no kernel image", id="incident 63: sm_120"
        ),
        pytest.param(V100, gpu(0, cuda_error=NO_IMAGE), "no kernel image", id="incident 64: cu130"),
    ],
)
def test_incidents_61_to_64_a_framework_that_cannot_use_the_gpu_is_no_healthy_node(
    run: Judge, kind: str, change: Change, named: str
) -> None:
    found = run(machine(kind, change))
    assert found.report["outcome"] == CONFIG
    (cause, *_) = found.report["causes"]
    assert named in next(c["evidence"] for c in found.report["checks"] if c["name"] == cause)
