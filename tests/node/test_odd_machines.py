"""Machines that answer oddly: half a hang, half a listing, a log about something else.

Each was found by attacking the validator, and once got the wrong verdict.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from tests.node.cases import both, cell, driver, hangs, log, says
from tests.node.machines import KINDS, Machine

from gputier.node import expect, pci, versions, xids
from gputier.node.engine import Context
from gputier.node.expect import BadExpectation
from gputier.node.result import CONFIG, HEALTHY, INCONCLUSIVE, REBOOT, REPLACE, WARNING
from gputier.node.verbs.common import Run

Judge = Callable[..., Run]
Change = Callable[[Machine], object]
H100 = "p5.48xlarge"


def seen(run: Judge, change: Change, kind: str = H100, **changes: Any) -> dict[str, Any]:
    machine = Machine(kind)
    change(machine)
    return run(machine, **changes).report


def check(report: dict[str, Any], name: str) -> dict[str, Any]:
    (found,) = (one for one in report["checks"] if one["name"] == name)
    return found


@pytest.mark.parametrize(
    "what", ["nvidia-smi -q", "nvidia-smi --query-gpu", "nvidia-smi nvlink", "nvidia-smi --query"]
)
def test_a_question_that_hangs_is_a_reboot_and_is_not_waited_for_again(
    run: Judge, what: str
) -> None:
    def change(machine: Machine) -> None:
        real = machine.run

        def answer(argv: Any, limit: float, *rest: Any, **more: Any) -> Any:
            done = real(argv, limit, *rest, **more)
            if not " ".join(argv).startswith(what):
                return done
            machine.clock += limit
            return done._replace(rc=None, out="", state="timeout", seconds=limit)

        machine.run = answer  # type: ignore[method-assign]

    report = seen(run, change)
    assert report["outcome"] == REBOOT
    assert any(
        c["outcome"] == REBOOT and what.split()[1] in c["evidence"] for c in report["checks"]
    )
    assert report["seconds"] < 60, "quick is a minute at most"


@pytest.mark.parametrize(
    ("service", "outcome"),
    [("failed", REBOOT), ("inactive", "unsupported"), ("active", "unsupported")],
)
def test_a_failed_fabric_manager_counts_where_the_switches_are_hidden(
    run: Judge, service: str, outcome: str
) -> None:
    def change(machine: Machine) -> None:
        machine.service = service

    report = seen(run, change, "a2-ultragpu-8g")
    assert check(report, "fabric-manager")["outcome"] == outcome


def test_a_gpu_that_the_links_leave_out_has_no_links(run: Judge) -> None:
    machine = Machine(H100)
    text = machine.run(["nvidia-smi", "nvlink", "-s"], 9).out
    start, end = text.index("GPU 3:"), text.index("GPU 4:")
    report = seen(run, says("nvidia-smi nvlink -s", 0, text[:start] + text[end:]))
    assert check(report, "nvlink")["outcome"] == REBOOT
    assert "GPU 3: 0 of 18" in check(report, "nvlink")["evidence"]


def test_the_plainest_form_of_lspci_will_do() -> None:
    machine = Machine("g6.12xlarge")
    plain = "".join(f"{g.address[5:]} 0302: 10de:27b8 (rev a1)\n" for g in machine.gpus)
    for form in ("lspci", "lspci -Dnnk", "lspci -nn"):
        machine.says(form, 1, err="lspci: invalid option")
    machine.says("lspci -n -d 10de:", 0, plain)
    context = Context(machine, expect.read("{}"))
    assert len(pci.bus(context).gpus) == 4


@pytest.mark.parametrize(
    ("have", "floor", "enough"),
    [
        ("13.0", "13.0.0", True),
        ("580.95.05", "580.95.05.0", True),
        ("580.95.05", "580.95.05.1", False),
        ("580", "580.0.1", False),
        ("580.1", "580", True),
    ],
)
def test_parts_that_are_not_named_are_zero(have: str, floor: str, enough: bool) -> None:
    assert versions.at_least(have, floor) is enough


def test_a_cuda_release_with_its_patch_is_the_one_the_tools_show(run: Judge) -> None:
    framework = {"name": "torch", "version": "2.9.0+cu130", "cuda": "13.0.2"}
    report = seen(run, lambda _: None, framework=framework, cuda={"min": "13.0.2"})
    assert report["outcome"] == HEALTHY


@pytest.mark.parametrize(
    "text", ['{"gpu": {"count": 1e999}}', '{"gpu": {"memory_mib": NaN}}', "[" * 9999]
)
def test_a_number_or_a_nesting_beyond_reason_is_a_bad_expectation(text: str) -> None:
    with pytest.raises(BadExpectation):
        expect.read(text)


def test_without_proc_a_lost_gpu_is_still_a_lost_gpu(run: Judge) -> None:
    def change(machine: Machine) -> None:
        for path in [p for p in machine.files if p.startswith(("/proc", "/sys/module"))]:
            del machine.files[path]
        machine.absent.add("lspci")
        machine.absent.add("modinfo")
        words = "Unable to determine the device handle for GPU0000:53:00.0: GPU is lost."
        machine.says("nvidia-smi", 15, words)

    assert check(seen(run, change), "kernel-module")["outcome"] == HEALTHY
    assert seen(run, change)["outcome"] == REPLACE


def test_an_unsigned_module_that_is_not_ours_condemns_nobody(run: Judge) -> None:
    report = seen(run, log("gdrdrv: Loading of unsigned module is rejected"))
    assert report["outcome"] == HEALTHY


def test_a_branch_below_the_plan_explains_the_missing_gpus(run: Judge) -> None:
    change = both(driver("550.163.01"), says("nvidia-smi", 6, "No devices were found"))
    report = seen(run, change)
    assert report["outcome"] == CONFIG
    assert check(report, "driver")["because"] == ["driver-branch"]


@pytest.mark.parametrize(
    ("said", "outcome"),
    [
        ("Fehler: Treiber antwortet nicht", INCONCLUSIVE),
        ("Unknown Error", REBOOT),
        ("", REBOOT),
    ],
)
def test_an_unknown_status_is_judged_only_in_words_that_are_understood(
    run: Judge, said: str, outcome: str
) -> None:
    found = check(seen(run, says("nvidia-smi -L", 1, said)), "driver")
    assert found["outcome"] == outcome
    assert said in found["evidence"]


def test_mig_may_be_asked_for_by_the_number_alone(run: Judge) -> None:
    kind = "a2-highgpu-1g"
    gpu = {**Machine(kind).expectation()["gpu"], "mig": {"count": 7}}
    assert check(seen(run, lambda _: None, kind, gpu=gpu), "mig")["outcome"] == HEALTHY
    gpu["mig"] = {"count": 3}
    assert check(seen(run, lambda _: None, kind, gpu=gpu), "mig")["outcome"] == CONFIG


def test_a_plan_without_gpus_is_not_asked_about_them(run: Judge) -> None:
    def change(machine: Machine) -> None:
        machine.gpus.clear()
        machine.absent.update({"nvidia-smi", "dcgmi"})

    keep: dict[str, dict[str, str]] = {
        "fabric": {},
        "framework": {},
        "cuda": {},
        "driver": {},
        "pcie": {},
    }
    report = seen(run, change, "g6.12xlarge", gpu={"count": 0}, **keep)
    assert report["outcome"] == HEALTHY, [c for c in report["checks"] if c["outcome"] != HEALTHY]
    skipped = {one["name"]: one["why"] for one in report["not_applicable"]}
    assert skipped["driver"] == skipped["cuda-kernel"] == "the plan has no GPU"


def test_a_recovery_action_that_was_taken_back_counts_no_more(run: Judge) -> None:
    line = "NVRM: Xid (PCI:0000:53:00): 154, GPU recovery action changed from {} to {}"
    reset, none, drain = "0x1 (GPU Reset Required)", "0x0 (None)", "0x3 (Drain P2P)"
    (back,) = xids.find(line.format(reset, none))
    (less,) = xids.find(line.format("0x2 (Node Reboot Required)", drain))
    assert xids.action(back, links_down=False) == HEALTHY
    assert xids.action(less, links_down=False) == WARNING
    up, down = log(line.format(none, reset)), log(line.format(reset, none))
    assert check(seen(run, both(up, down)), "xid")["outcome"] == HEALTHY
    assert check(seen(run, both(down, up)), "xid")["outcome"] == REBOOT


def test_a_slice_where_a_card_is_planned_is_our_own_mistake(run: Judge) -> None:
    kind = "gr6f.4xlarge"
    gpu = {**Machine(kind).expectation()["gpu"], "memory_mib": 23034}
    assert check(seen(run, lambda _: None, kind, gpu=gpu), "gpu-memory")["outcome"] == CONFIG


def test_a_cell_that_asks_for_a_reset_is_a_reboot(run: Judge) -> None:
    report = seen(run, cell(2, "temperature.gpu", "[GPU requires reset]"))
    assert report["outcome"] == REBOOT


def test_a_folder_without_libcuda_is_not_taken_for_a_broken_machine(run: Judge) -> None:
    none: dict[str, object] = {"library": None, "error": "libcuda.so.1 is not below /x"}
    change = says("@self kernel", 0, json.dumps(none))
    report = seen(run, change, "g6.12xlarge", framework={})
    assert (report["outcome"], check(report, "cuda-kernel")["outcome"]) == (HEALTHY, WARNING)
    required = seen(run, change, "g6.12xlarge", framework={}, require=["cuda-kernel"])
    assert required["outcome"] == CONFIG


def test_the_last_disk_that_is_gone_is_a_bad_host(run: Judge) -> None:
    def change(machine: Machine) -> None:
        for path in [p for p in machine.files if p.startswith("/sys/block/nvme")]:
            del machine.files[path]
        machine.files["/sys/block/loop0/size"] = "0"

    assert check(seen(run, change, "g4dn.xlarge"), "scratch-disks")["outcome"] == REPLACE


def test_hanging_is_no_reason_to_skip_the_rest(run: Judge) -> None:
    report = seen(run, hangs("nvidia-smi -q"))
    assert check(report, "scratch-disks")["outcome"] == HEALTHY


@pytest.mark.parametrize("kind", KINDS)
def test_the_model_alone_tells_the_memory(run: Judge, kind: str) -> None:
    """A plan without a measured figure; a slice says nothing."""
    gpu = {**Machine(kind).expectation()["gpu"], "memory_mib": None}
    found = check(seen(run, lambda _: None, kind, gpu=gpu), "gpu-memory")
    assert found["outcome"] == ("unsupported" if Machine(kind).kind.sliced else HEALTHY)


def test_memory_that_is_gone_is_found_by_the_model_alone(run: Judge) -> None:
    gpu = {**Machine(H100).expectation()["gpu"], "memory_mib": None}
    report = seen(run, cell(3, "memory.total", "40000 MiB"), gpu=gpu)
    assert check(report, "gpu-memory")["outcome"] == REPLACE
