"""Root causes: what explains a symptom speaks, the symptom does not."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from tests.node.cases import blind, flavour, gpu, log, lost, no_module, says, without
from tests.node.machines import Machine

from gputier.node import boots, expect, report, screen
from gputier.node.cloud import glance
from gputier.node.engine import Check, Context, Verdict, outcome_of, run
from gputier.node.host import Done
from gputier.node.result import (
    CONFIG,
    HEALTHY,
    INCONCLUSIVE,
    ORDER,
    REBOOT,
    REPLACE,
    UNSUPPORTED,
    WARNING,
    Finding,
    Result,
    healthy,
)
from gputier.node.verbs.common import Run

Judge = Callable[..., Run]


def result(outcome: str, because: tuple[str, ...] = ()) -> Result:
    return Result("x", "x", outcome, "e", "", "", "", 0.0, "health", because=because)


def test_the_order_of_outcomes() -> None:
    assert ORDER == (REPLACE, REBOOT, CONFIG, INCONCLUSIVE, HEALTHY)
    for i, outcome in enumerate(ORDER):
        assert outcome_of([result(other) for other in ORDER[i:]]) == outcome
    assert outcome_of([result(WARNING), result(UNSUPPORTED)]) == HEALTHY
    assert outcome_of([result(INCONCLUSIVE, ("other",)), result(HEALTHY)]) == HEALTHY


def check(name: str, finding: Finding | Exception, **fields: Any) -> Check:
    def function(_: Context) -> Finding:
        if isinstance(finding, Exception):
            raise finding
        return finding

    return Check(name, name, function, "health", {}, "source", **fields)


def judge(*checks: Check, **wanted: Any) -> Verdict:
    ctx = Context(Machine("g4dn.xlarge"), expect.read(json.dumps(wanted)))
    return run(ctx, checks, "quick")


def outcomes(verdict: Verdict) -> dict[str, tuple[str, tuple[str, ...]]]:
    return {r.name: (r.outcome, r.because) for r in verdict.results}


def test_what_needs_a_failed_check_is_inconclusive_and_does_not_count() -> None:
    verdict = judge(
        check("a", Finding(CONFIG, "bad")),
        check("b", healthy("fine"), needs=("a",)),
        check("c", healthy("fine"), needs=("b",)),
    )
    assert outcomes(verdict)["b"] == (INCONCLUSIVE, ("a",))
    assert outcomes(verdict)["c"] == (INCONCLUSIVE, ("b",))
    assert verdict.outcome == CONFIG
    assert [cause.name for cause in verdict.causes] == ["a"]


@pytest.mark.parametrize("outcome", [WARNING, UNSUPPORTED])
def test_a_warning_does_not_stop_what_needs_it(outcome: str) -> None:
    verdict = judge(check("a", Finding(outcome, "x")), check("b", healthy("y"), needs=("a",)))
    assert outcomes(verdict)["b"] == (HEALTHY, ())


def test_a_configuration_cause_explains_a_symptom_but_not_a_health() -> None:
    cause = check("a", Finding(CONFIG, "wrong module"))
    verdict = judge(
        cause,
        check("lost", Finding(REPLACE, "no GPU"), explained_by=("a",)),
        check("fine", healthy("all there"), explained_by=("a",)),
    )
    assert outcomes(verdict)["lost"] == (INCONCLUSIVE, ("a",))
    assert outcomes(verdict)["fine"] == (HEALTHY, ())
    assert verdict.outcome == CONFIG


def test_a_check_that_breaks_is_inconclusive_and_takes_no_other_along() -> None:
    verdict = judge(check("a", RuntimeError("oops")), check("b", Finding(WARNING, "w")))
    assert outcomes(verdict) == {"a": (INCONCLUSIVE, ()), "b": (WARNING, ())}
    assert "RuntimeError: oops" in verdict.results[0].evidence


def test_an_advisory_check_never_does_more_than_warn() -> None:
    verdict = judge(check("a", Finding(REPLACE, "x"), advisory=True))
    assert (verdict.outcome, outcomes(verdict)["a"]) == (HEALTHY, (WARNING, ()))


def test_what_does_not_apply_is_listed_with_its_reason() -> None:
    def none(_: expect.Expectation) -> str:
        return "the plan has none"

    asked = check("a", healthy("x"), applies=none)
    deep = check("b", healthy("x"), depth="burn-in")
    verdict = judge(asked, deep)
    assert dict(verdict.not_applicable)["a"] == "the plan has none"
    assert "burn-in" in dict(verdict.not_applicable)["b"]
    required = judge(asked, deep, require=["a", "b"])
    assert [r.name for r in required.results] == ["a", "b"]


def test_names_that_nothing_has_are_warnings() -> None:
    verdict = judge(check("a", healthy("x")), require=["teleport"], limits={"checks": {"b": 1}})
    assert len(verdict.warnings) == 2


def test_each_check_has_its_own_limit_and_all_have_one_together() -> None:
    machine = Machine("g4dn.xlarge")
    machine.hangs("nvidia-smi")

    def hang(ctx: Context) -> Finding:
        done: Done = ctx.run("nvidia-smi", "-L")
        return Finding(WARNING, f"{done.state} after {done.seconds:.0f}")

    checks = [check(name, healthy(""))._replace(run=hang) for name in ("a", "b", "c")]
    wanted = expect.read('{"limits": {"checks": {"a": 3}, "total_seconds": 10}}')
    verdict = run(Context(machine, wanted), checks, "quick")
    assert [r.evidence for r in verdict.results] == [
        "timeout after 3", "timeout after 7", "not judged: the time for all checks is used up",
    ]  # fmt: skip
    assert verdict.seconds == 10


def test_a_hung_nvidia_smi_costs_one_time_limit_and_not_one_per_check(run: Judge) -> None:
    machine = Machine("p5.48xlarge")
    machine.hangs("nvidia-smi")
    found = run(machine).report
    assert (found["outcome"], found["causes"]) == (REBOOT, ["driver"])
    assert found["seconds"] < 40


EXPLAINED = {
    "no module": no_module,
    "wrong flavour": flavour("NVIDIA UNIX x86_64 Kernel Module  580.95.05  Tue"),
    "nvidia-smi missing": without("nvidia-smi"),
}


@pytest.mark.parametrize("change", EXPLAINED.values(), ids=EXPLAINED)
def test_our_own_fault_never_costs_the_machine(run: Judge, change: Any) -> None:
    machine = Machine("p6-b200.48xlarge")
    change(machine)
    found = run(machine, "burn-in").report
    assert found["outcome"] == CONFIG
    assert not [c["name"] for c in found["checks"] if c["outcome"] in (REPLACE, REBOOT)]


def test_a_hung_driver_behind_the_wrong_module_is_our_fault_too(run: Judge) -> None:
    machine = Machine("p6-b200.48xlarge")
    flavour("NVIDIA UNIX x86_64 Kernel Module  580.95.05  Tue")(machine)
    machine.hangs("nvidia-smi")
    log("NVRM: Xid (PCI:0000:1b:00): 169, pid=1, Firmware")(machine)
    assert run(machine).report["outcome"] == CONFIG


def test_the_log_is_read_again_and_nothing_is_told_twice(run: Judge) -> None:
    machine = Machine("p5.48xlarge")
    log("NVRM: Xid (PCI:0000:1b:00): 79, pid=1")(machine)
    assert run(machine).report["causes"] == ["xid"]


def test_an_nvlink_error_weighs_more_when_the_links_turn_out_to_be_down(run: Judge) -> None:
    machine = Machine("p6-b200.48xlarge")
    log("NVRM: Xid (PCI:0000:1b:00): 149, NETIR_LINK_EVT Fatal XC0 i0 Link 5")(machine)
    assert run(machine.copy()).report["outcome"] == HEALTHY
    machine.gpus[2].links_down = {5}
    found = run(machine).report
    assert (found["outcome"], found["causes"]) == (REPLACE, ["xid-after"])


def test_a_missing_card_is_the_hosts_fault_even_beside_ours(run: Judge) -> None:
    machine = Machine("p6-b200.48xlarge")
    flavour("NVIDIA UNIX x86_64 Kernel Module  580.95.05  Tue")(machine)
    gpu(3, on_bus=False)(machine)
    assert run(machine).report["outcome"] == REPLACE


# --- reboots -------------------------------------------------------------------------------------


def pending(machine: Machine) -> None:
    machine.gpus[2].fields["remapped_rows.pending"] = "Yes"


def boot(machine: Machine, number: int) -> None:
    machine.files[boots.BOOT_ID] = f"11111111-aaaa-4bbb-8ccc-{number:012}\n"


def test_the_second_reboot_is_a_replacement(run: Judge) -> None:
    machine = Machine("p5.48xlarge")
    pending(machine)
    assert run(machine).exit == 10
    assert run(machine).exit == 10, "twice in one boot is once"
    boot(machine, 2)
    found = run(machine)
    assert found.exit == 20
    (cause,) = (c for c in found.report["checks"] if c["name"] == "row-remap")
    assert cause["outcome"] == REPLACE
    assert "earlier boot" in cause["evidence"]


def test_a_healthy_boot_in_between_sets_the_count_back(run: Judge) -> None:
    machine = Machine("p5.48xlarge")
    pending(machine)
    run(machine)
    boot(machine, 2)
    machine.gpus[2].fields.clear()
    assert run(machine).exit == 0
    boot(machine, 3)
    pending(machine)
    assert run(machine).exit == 10


def test_another_instance_of_the_same_image_starts_at_zero(run: Judge) -> None:
    machine = Machine("p5.48xlarge")
    pending(machine)
    run(machine)
    boot(machine, 2)
    machine.files["/var/lib/cloud/data/instance-id"] = "i-0fedcba9876543210\n"
    assert run(machine).exit == 10


def test_a_count_that_cannot_last_is_not_kept_and_says_so(run: Judge) -> None:
    for line in (
        "50 20 0:9 / /var/lib rw - tmpfs tmpfs rw",
        "50 20 9:127 / /var rw - xfs /dev/md127 rw",
    ):
        machine = Machine("p5.48xlarge")
        pending(machine)
        machine.files["/proc/self/mountinfo"] += line + "\n"
        found = run(machine)
        assert any("cannot be counted" in text for text in found.report["warnings"]), line
        assert boots.FILE not in machine.written


def test_a_boot_without_an_id_is_told_by_its_time(run: Judge) -> None:
    machine = Machine("p5.48xlarge")
    pending(machine)
    del machine.files[boots.BOOT_ID]
    machine.files["/proc/stat"] = "cpu 1 1\nbtime 1700000000\n"
    assert run(machine).exit == 10
    machine.files["/proc/stat"] = "cpu 1 1\nbtime 1700009999\n"
    assert run(machine).exit == 20


# --- report and screen ---------------------------------------------------------------------------


def test_the_report_has_what_was_promised(run: Judge) -> None:
    machine = Machine("p5.48xlarge")
    found = run(machine).report
    assert found["schema"] == "gputier/node/1"
    assert {"name", "outcome", "evidence", "expected", "remedy", "seconds"} <= set(
        found["checks"][0]
    )
    assert found["usd"] == pytest.approx(found["seconds"] * 55.04 / 3600, abs=1e-3)
    assert sum(stage["seconds"] for stage in found["stages"]) == pytest.approx(
        found["seconds"], abs=0.01
    )
    assert len(found["host"]["gpus"]) == 8
    text = json.dumps(found)
    assert not any(one.uuid in text for one in machine.gpus), "digests, never UUIDs"
    assert json.loads(machine.written[report.FILE])["outcome"] == HEALTHY


def test_temperature_utilisation_and_memory_of_each_gpu_are_easy_to_see(run: Judge) -> None:
    machine = Machine("p5.48xlarge")
    machine.gpus[3].fields.update({"utilization.gpu": "97 %", "memory.used": "70000 MiB"})
    found = run(machine).report
    assert found["gpus"][3] == {
        "gpu": "3", "temperature_c": 34.0, "utilisation_percent": 97.0,
        "memory_used_mib": 70000.0, "memory_total_mib": 81559.0,
    }  # fmt: skip
    assert any("GPU 3  34 °C  97 %  70000/81559 MiB" in line for line in screen.lines(found))
    machine.hangs("nvidia-smi")
    assert run(machine).report["gpus"] == []


def test_the_same_host_has_the_same_fingerprint_in_another_instance(run: Judge) -> None:
    one, other = Machine("p5.48xlarge"), Machine("p5.48xlarge")
    other.files["/var/lib/cloud/data/instance-id"] = "i-0fedcba9876543210\n"
    assert run(one).report["host"] == run(other).report["host"]


def test_placement_comes_from_the_providers_own_places(run: Judge) -> None:
    aws = Machine("p5.48xlarge")
    aws.says("curl -s -i -m 2 --noproxy * -X PUT", 0, "HTTP/1.1 200 OK\r\n\r\nsecret")
    ask = (*glance.PIPED, "curl", "-s", "-i", "-m", "2", "--noproxy", "*", "-H", "@-", "http")
    aws.overrides.append((ask, Done((), 0, "HTTP/1.1 200 OK\r\n\r\nuse1-az4\n", "", 0.1, "exited")))
    assert run(aws).report["host"]["placement"]["availability_zone_id"] == "use1-az4"
    assert not [call for call in aws.calls if "secret" in " ".join(call)], (
        "everybody sees arguments"
    )
    azure = Machine("Standard_ND96isr_H100_v5")
    azure.files["/var/lib/hyperv/.kvp_pool_3"] = "PhysicalHostName\0\0\0PHX01\0\0"
    assert run(azure).report["host"]["placement"] == {"physical_host": "PHX01"}


def test_the_first_line_is_the_verdict_and_the_way_out_is_named(run: Judge) -> None:
    machine = Machine("p5.48xlarge")
    lost(7)(machine)
    lines = screen.lines(run(machine).report)
    assert lines[0].startswith("gputier-node: REPLACE   p5.48xlarge i-0123456789abcdef0   3 s   $")
    assert "Xid 79" in lines[1]
    assert any("7 of 8 visible" in line for line in lines)
    assert lines[-1].startswith("  remedy: this host is bad")
    assert len(lines) < 25, "one screen"


def test_a_console_without_unicode_gets_plain_text(run: Judge) -> None:
    machine = Machine("p5.48xlarge")
    says("nvidia-smi nvlink -s", 0, "")(machine)
    text = screen.text(run(machine).report, "ascii")
    assert text.isascii()
    assert "x NVLink" in text
    assert "✗" in screen.text(run(machine).report, "utf-8")


def test_a_blind_driver_is_the_hosts_fault_when_nothing_explains_it(run: Judge) -> None:
    machine = Machine("p5.48xlarge")
    blind(machine)
    assert run(machine).report["outcome"] == REPLACE
