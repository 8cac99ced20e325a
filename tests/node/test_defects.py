"""Ten defects that were found in public checks: none of them is in ours.

Each is described in docs/node.md; here its input is fed to our check.
"""

# ruff: noqa: E501 (tables of cases, one row a line)
from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from tests.node.cases import cell, dcgm, failed, gpu, says, state, without
from tests.node.machines import Machine, diag_json

from gputier.node.checks import dcgm as dcgm_checks
from gputier.node.result import CONFIG, HEALTHY, INCONCLUSIVE, REBOOT, REPLACE, WARNING
from gputier.node.verbs.common import Run

Judge = Callable[..., Run]


def outcome(run: Run, name: str) -> str:
    (found,) = (check for check in run.report["checks"] if check["name"] == name)
    return str(found["outcome"])


def changed(kind: str, change: Callable[[Machine], object]) -> Machine:
    machine = Machine(kind)
    change(machine)
    return machine


def test_1_a_failing_diagnostic_is_never_passed(run: Judge) -> None:
    """The severity is inside `warnings`, and the entity is `entity_id` in DCGM 4."""
    assert outcome(run(changed("p5.48xlarge", dcgm(failed(52, 2)))), "dcgm-1") == REPLACE


def test_2_a_failure_that_only_needs_watching_does_not_give_the_machine_back(run: Judge) -> None:
    assert outcome(run(changed("p5.48xlarge", dcgm(failed(5, 1)))), "dcgm-1") == WARNING


def test_3_every_result_is_looked_at_whatever_the_exit_status(run: Judge) -> None:
    """GPU 0 passes, GPU 3 fails; 0, 205 and 226 must come to the same."""
    for rc in (0, 205, 226):
        machine = changed("p5.48xlarge", dcgm(failed(52, 2), rc))
        assert outcome(run(machine), "dcgm-1") == REPLACE, rc


def test_4_ecc_and_links_of_every_gpu_count_and_a_missing_tool_is_no_pass(run: Judge) -> None:
    last = cell(7, "ecc.errors.uncorrected.volatile.sram", "1")
    assert outcome(run(changed("p5.48xlarge", last)), "ecc") == REPLACE
    assert outcome(run(changed("p5.48xlarge", gpu(7, links_down={17}))), "nvlink") == REBOOT
    missing = run(changed("p5.48xlarge", without("nvidia-smi")))
    assert missing.report["outcome"] == CONFIG
    assert missing.exit == 30


def test_5_the_count_of_remapped_rows_is_read_from_its_own_column(run: Judge) -> None:
    many = cell(4, "remapped_rows.uncorrectable", "513")
    assert outcome(run(changed("p5.48xlarge", many)), "row-remap") == REPLACE


def test_6_nothing_printed_is_no_pass_and_a_wrong_type_is_not_healthy(run: Judge) -> None:
    silent = says("nvidia-smi nvlink -s", 0, "")
    assert outcome(run(changed("p5.48xlarge", silent)), "nvlink") == INCONCLUSIVE
    for code in (94, 95):
        line = f"kernel: NVRM: Xid (PCI:0000:1b:00): {code}, pid=1, Contained: error"
        machine = changed("p5.48xlarge", lambda m, line=line: m.log.append(line))
        assert outcome(run(machine), "xid") == (WARNING if code == 94 else REPLACE)


def test_6_the_log_is_read_whatever_its_time_stamps_look_like(run: Judge) -> None:
    for stamp in ("Nov 30 10:00:12", "2026-11-30T10:00:12.123456+00:00", "[   12.345678]", ""):
        line = f"{stamp} host kernel: NVRM: Xid (PCI:0000:1b:00): 79, GPU has fallen off the bus."
        machine = changed("p5.48xlarge", lambda m, line=line: m.log.append(line))
        assert outcome(run(machine), "xid") == REPLACE, stamp


def test_6_an_error_of_an_earlier_boot_does_not_count(run: Judge) -> None:
    def old(machine: Machine) -> None:
        line = "kernel: NVRM: Xid (PCI:0000:1b:00): 79, GPU has fallen off the bus."
        machine.log = [line, "-- Boot 0123456789abcdef0123456789abcdef --", *machine.log]

    assert outcome(run(changed("p5.48xlarge", old)), "xid") == HEALTHY


def test_7_four_gpus_are_as_many_as_planned_and_reset_is_severity_6(run: Judge) -> None:
    assert run(Machine("a4x-highgpu-4g")).report["outcome"] == HEALTHY
    assert outcome(run(changed("a4x-highgpu-4g", dcgm(failed(85, 6)))), "dcgm-1") == REBOOT


def test_8_incident_65_a_floor_is_held_against_a_message_large_enough_and_not_above_what_is_measured(
    run: Judge,
) -> None:
    """475 GB/s is what eight H100 reach; 8 GiB messages are asked for."""
    machine = Machine("p5.48xlarge")
    assert outcome(run(machine, "standard"), "all-reduce") == HEALTHY
    (call,) = (c for c in machine.calls if c[0] == "all_reduce_perf")
    assert call[call.index("-b") + 1] == "8G"


def test_9_incident_60_dcgms_pcie_verdict_gives_way_to_the_planned_width(run: Judge) -> None:
    """x8 by design is no fault on such a type; a lane missing there is one."""
    machine = changed("g6.12xlarge", dcgm(failed(46, 5)))
    assert outcome(run(machine), "dcgm-1") == HEALTHY
    cell(2, "pcie.link.width.current", "4")(machine)
    found = run(machine)
    assert (outcome(found, "pcie"), outcome(found, "dcgm-1")) == (REBOOT, REBOOT)


def test_9_a_gen5_card_at_gen3_is_found_although_dcgm_is_content(run: Judge) -> None:
    slot = cell(0, "pcie.link.gen.max", "3")
    assert outcome(run(changed("p5.48xlarge", slot)), "pcie") == REBOOT


def test_10_a_machine_without_any_gpu_has_a_verdict(run: Judge) -> None:
    def none(machine: Machine) -> None:
        for one in machine.gpus:
            one.on_bus = False

    assert run(changed("p5.48xlarge", none)).report["outcome"] == REPLACE


# --- and of DCGM itself --------------------------------------------------------------------------


def test_incident_57_a_diagnostic_that_passes_with_all_links_down_convinces_nobody(
    run: Judge,
) -> None:
    def down(machine: Machine) -> None:
        for one in machine.gpus:
            one.links_down = set(range(18))

    assert run(changed("p5.48xlarge", down)).report["outcome"] == REBOOT


def test_level_2_is_told_how_many_links_to_expect(run: Judge) -> None:
    machine = Machine("p5.48xlarge")
    run(machine, "standard")
    (call,) = (c for c in machine.calls if c[:4] == ("dcgmi", "diag", "-r", "2"))
    assert "pcie.gpu_nvlinks_expected_up=18" in call


def test_both_forms_of_the_json_are_read() -> None:
    """DCGM 3: another root, `warnings` instead of `warning`, `gpu_ids`; text before the JSON."""
    old = [{"gpu_ids": "3", "status": "FAIL", "warnings": [{"warnings": "Bad", "error_id": 52, "error_severity": 2}]}]  # fmt: skip
    new: list[dict[str, Any]] = failed(52, 2)
    for text in (diag_json(old, 2, old=True), "Successfully ran\n" + diag_json(new, 2)):
        items, _ = dcgm_checks.parse(text)
        assert [(item.entity, item.error, item.severity, item.status) for item in items] == [
            ("3", 52, 2, "fail")
        ]


def test_a_single_warning_that_is_no_list_and_a_plain_text_one_are_read() -> None:
    for held in ({"warning": "Bad", "error_id": 52, "error_severity": 2}, "Bad", ["Bad"]):
        data = json.loads(diag_json([{"entity_id": 3, "status": "Fail", "warnings": held}], 1))
        items, _ = dcgm_checks.parse(json.dumps(data))
        assert [item.text for item in items] == ["Bad"]


def test_only_three_exit_statuses_are_verdicts(run: Judge) -> None:
    for rc in (1, 124, 198, 203, 204, 217):
        machine = Machine("p5.48xlarge")
        machine.dcgm = lambda _, rc=rc: (rc, diag_json(failed(52, 2), 1))
        assert outcome(run(machine), "dcgm-1") == INCONCLUSIVE, rc


def test_an_isolating_status_counts_even_without_readable_json(run: Judge) -> None:
    machine = Machine("p5.48xlarge")
    machine.dcgm = lambda _: (205, "Error: something")
    assert outcome(run(machine), "dcgm-1") == REPLACE


def test_the_fabric_counts_amazons_devices_and_each_once(run: Judge) -> None:
    """Two mlx5 on p6 are not EFA, and fi_info lists each device under two names."""

    def with_mlx(machine: Machine) -> None:
        for n in range(2):
            base = f"/sys/class/infiniband/mlx5_{n}/ports/1"
            machine.files.update(
                {f"{base}/link_layer": "Ethernet\n", f"{base}/state": "4: ACTIVE\n"}
            )

    assert run(changed("p6-b200.48xlarge", with_mlx)).report["outcome"] == HEALTHY
    short = changed("p6-b200.48xlarge", lambda m: (with_mlx(m), state(nics=6)(m)))
    assert outcome(run(short), "fabric-devices") == REPLACE
