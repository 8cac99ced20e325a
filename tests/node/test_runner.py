"""`boot`: stages in order, each within its limit; one verdict, whatever happens on the way."""

from __future__ import annotations

import json
import time
from typing import Any

import pytest
from tests.node.booting import EVERYTHING, Booting, last, opened, passes, said

from gputier.node import report, stages, timeline
from gputier.node.heartbeat import Heartbeat
from gputier.node.host import Done
from gputier.node.result import CONFIG, HEALTHY, INCONCLUSIVE, REBOOT, REPLACE
from gputier.node.runner import parse
from gputier.node.stages import StageResult, config, inconclusive, ok, reboot, replace

DRIVER: dict[str, Any] = {"driver": {"source": "prebaked"}, "run": "true"}


def test_a_healthy_machine_is_prepared_judged_admitted_and_put_to_work() -> None:
    machine = Booting(**DRIVER)
    assert machine.boot() == 0
    before = ["packages", "driver", "persistence", "services"]
    assert machine.began == [*before, "validate", "gate", "workload"]
    assert opened(machine).open
    assert said(machine)["outcome"] == HEALTHY
    assert last(machine).end == timeline.ADMITTED


def test_every_stage_that_the_settings_ask_for_runs_once_and_in_order() -> None:
    machine = Booting("a2-highgpu-1g", **EVERYTHING)
    assert machine.boot() == 0
    asked = [stage.name for stage in stages.STAGES if stage.name != stages.BURN_IN]
    assert machine.began == asked, "a burn-in is asked for by the expectation"


def test_the_workload_starts_only_behind_an_open_gate() -> None:
    machine = Booting("p5.48xlarge", **DRIVER)
    machine.gpus[0].visible = False
    assert machine.boot() == 20
    assert "workload" not in machine.began
    assert not opened(machine).open
    assert last(machine).end == timeline.REFUSED


FAILURES = {
    "config": (config("nouveau has the GPU", "blacklist it"), 30),
    "replace": (replace("no GPU on the bus"), 20),
    "inconclusive": (inconclusive("the mirror does not answer"), 40),
}


@pytest.mark.parametrize(("result", "status"), FAILURES.values(), ids=FAILURES)
def test_a_failed_stage_ends_preparation_and_is_the_reports_first_check(
    result: StageResult, status: int
) -> None:
    machine = Booting(**DRIVER)
    machine.scripts["driver"] = result
    assert machine.boot() == status
    assert machine.began == ["packages", "driver", "validate", "gate"]
    first, found = said(machine)["checks"][0], said(machine)
    assert (first["name"], first["outcome"]) == ("stage-driver", result.outcome)
    assert (first["evidence"], first["remedy"]) == (result.evidence, result.remedy)
    assert found["causes"] == ["stage-driver"]
    assert found["outcome"] == result.outcome
    assert found["depth"] == "quick"
    assert len(found["checks"]) > 10, "the validation still gathers evidence"


def test_what_fails_because_of_a_failed_stage_is_told_as_that() -> None:
    machine = Booting("g6.12xlarge", **DRIVER)
    machine.scripts["driver"] = inconclusive("no end within 120 s")
    machine.files["/proc/self/mountinfo"] = "20 1 259:1 / / rw - ext4 /dev/nvme0n1p1 rw\n"
    machine.boot()
    found = {check["name"]: check for check in said(machine)["checks"]}
    assert found["scratch-mount"]["outcome"] == INCONCLUSIVE
    assert found["scratch-mount"]["because"] == ["stage-driver"]
    assert "not prepared to the end" in found["scratch-mount"]["evidence"]
    assert said(machine)["outcome"] == INCONCLUSIVE


def test_a_bad_host_is_a_bad_host_even_when_preparation_failed() -> None:
    machine = Booting(**DRIVER)
    machine.scripts["packages"] = inconclusive("apt-get (process 7) holds the lock")
    line = "2026-11-30T10:00:09+0000 host kernel: NVRM: Xid (PCI:0000:10:00): 79, pid=1, GPU"
    machine.log.append(line)
    assert machine.boot() == 20
    assert said(machine)["outcome"] == REPLACE
    assert said(machine)["causes"] == ["xid"]


def test_mode_report_lets_in_and_tells() -> None:
    machine = Booting(gate={"mode": "report"}, **DRIVER)
    machine.scripts["driver"] = config("wrong branch")
    assert machine.boot() == 0
    assert opened(machine).open
    assert opened(machine).outcome == CONFIG
    assert machine.began[-1] == "workload"


def test_mode_off_checks_nothing_and_lets_in() -> None:
    machine = Booting(gate={"mode": "off"}, **DRIVER)
    machine.gpus[0].visible = False
    assert machine.boot() == 0
    assert "validate" not in machine.began
    assert opened(machine).open
    assert said(machine)["checks"] == []


def test_an_expectation_that_cannot_be_read_is_told_to_the_cloud() -> None:
    machine = Booting(**DRIVER)
    machine.scripts["validate"] = inconclusive("it ended without a result")
    assert machine.boot(problem="expectation: gpu.count: -1 is not a number") == 30
    assert machine.began == ["validate", "gate"]
    assert said(machine)["causes"] == ["stage-settings"]
    assert "gpu.count" in said(machine)["checks"][0]["evidence"]


# --- time ---------------------------------------------------------------------------------------


def test_incident_69_a_stage_that_hangs_is_killed_at_its_limit_and_named() -> None:
    machine = Booting(limits={"driver": 30}, **DRIVER)
    machine.scripts["driver"] = passes(10_000)
    assert machine.boot() == 40
    (entry,) = [entry for entry in last(machine).stages if entry.name == "driver"]
    assert entry.outcome == INCONCLUSIVE
    assert entry.evidence == "no end within 30 s; it was killed"
    assert (entry.seconds, entry.limit) == (30.0, 30.0)


def test_past_the_deadline_nothing_is_begun_and_the_verdict_is_inconclusive() -> None:
    machine = Booting(gate={"deadline_seconds": 100}, limits={"packages": 900}, **DRIVER)
    machine.scripts["packages"] = passes(10_000)
    assert machine.boot() == 40
    assert machine.began == ["packages", "gate"]
    assert machine.clock < 100
    first, *_ = said(machine)["checks"]
    assert (first["name"], first["outcome"]) == ("stage-packages", INCONCLUSIVE)


def test_the_deadline_counts_from_power_on_over_all_boots_of_an_arrival() -> None:
    machine = Booting(gate={"deadline_seconds": 600}, reboots=5, **DRIVER)
    machine.scripts["packages"] = passes(100, reboot("once more"))
    assert machine.until_settled() == 40
    assert 1 <= machine.reboots <= 3
    assert "deadline" in said(machine)["checks"][0]["evidence"]


def test_a_later_boot_of_a_node_that_joined_has_the_whole_deadline_again() -> None:
    machine = Booting(gate={"deadline_seconds": 600}, **DRIVER)
    machine.scripts["packages"] = passes(300)
    for _ in range(4):
        assert machine.boot() == 0
        machine.power_cycle()


def test_a_node_that_a_warm_pool_keeps_aside_is_proved_again_with_the_whole_deadline() -> None:
    machine = Booting(gate={"deadline_seconds": 600}, **DRIVER)
    machine.scripts["gate"] = ok("kept in the warm pool (Warmed:Running)")
    assert machine.boot() == 0
    assert last(machine).end == timeline.ASIDE
    assert "workload" not in machine.began
    machine.clock += 3 * 3600
    del machine.scripts["gate"]
    assert machine.boot() == 0
    assert last(machine).end == timeline.ADMITTED
    assert machine.began[-1] == "workload"


def test_an_inconclusive_validation_is_done_once_more() -> None:
    machine = Booting(**DRIVER)
    tries: list[int] = []

    def validate(_: Booting) -> StageResult:
        tries.append(1)
        outcome = INCONCLUSIVE if len(tries) == 1 else HEALTHY
        report.save(machine, {"schema": report.SCHEMA, "outcome": outcome, "causes": [],
                              "checks": []})  # fmt: skip
        return StageResult(outcome, "")

    machine.scripts["validate"] = validate
    assert machine.boot() == 0
    assert len(tries) == 2


def test_a_validation_that_stays_inconclusive_is_refused() -> None:
    machine = Booting(**DRIVER)
    machine.absent.add("journalctl")
    assert machine.boot() == 40
    assert machine.began.count("validate") == 2


def test_an_inconclusive_validation_is_not_done_again_without_the_time_for_it() -> None:
    machine = Booting(gate={"deadline_seconds": 240}, limits={"validate": 180}, **DRIVER)
    machine.absent.add("journalctl")
    assert machine.boot() == 40
    assert machine.began.count("validate") == 1


def test_a_validation_that_leaves_no_report_is_reported_by_the_boot() -> None:
    machine = Booting(**DRIVER)
    report.save(machine, {"schema": report.SCHEMA, "outcome": HEALTHY, "checks": [], "causes": []})
    machine.scripts["validate"] = passes(10_000)
    assert machine.boot() == 40
    assert said(machine)["causes"] == ["stage-validate"]


def test_a_report_of_an_earlier_boot_never_counts() -> None:
    class ReadOnly(Booting):
        def remove(self, path: str) -> None:
            if path == report.FILE:
                raise OSError(30, "Read-only file system", path)
            super().remove(path)

    machine = ReadOnly(**DRIVER)
    report.save(machine, {"schema": report.SCHEMA, "outcome": HEALTHY, "checks": [], "causes": []})
    machine.scripts["validate"] = passes(10_000)
    assert machine.boot() == 40


def test_a_notice_during_the_validation_proves_nothing_and_tells_nobody_to_replace() -> None:
    machine = Booting("p5.48xlarge", **DRIVER)
    machine.gpus[0].visible = False
    said_so = '{"action": "terminate", "time": "2026-11-30T10:02:00Z"}'
    for tool in ("curl", "sh"):
        machine.says(tool, 0, f"HTTP/1.1 200 OK\r\n\r\n{said_so}")
    assert machine.boot() == 40
    assert machine.began.count("validate") == 1
    assert said(machine)["causes"] == ["interruption"]
    count = next(c for c in said(machine)["checks"] if c["name"] == "gpu-count")
    assert count["because"] == ["interruption"]


# --- reboots ------------------------------------------------------------------------------------


def test_a_stage_that_needs_a_reboot_gets_it_and_goes_on_after_it() -> None:
    machine = Booting(**DRIVER)

    def driver(found: Booting) -> StageResult:
        return ok("loaded") if found.reboots else reboot("the old module is loaded")

    machine.scripts["driver"] = driver
    assert machine.boot() == 0
    assert (machine.reboots, opened(machine).open) == (1, False)
    assert last(machine).end == timeline.REBOOTING
    machine.power_cycle()
    assert machine.boot() == 0
    assert opened(machine).open
    assert len(timeline.read(machine).boots) == 2


@pytest.mark.parametrize("then", [CONFIG, REPLACE])
@pytest.mark.parametrize("allowed", [0, 1, 2])
def test_reboots_for_preparation_are_counted_and_end_as_the_stage_says(
    then: str, allowed: int
) -> None:
    machine = Booting(reboots=allowed, **DRIVER)
    machine.scripts["driver"] = reboot("the mode waits for a reset", then=then)
    assert machine.until_settled() == {CONFIG: 30, REPLACE: 20}[then]
    assert machine.reboots == allowed
    assert "used up" in said(machine)["checks"][0]["evidence"]


def test_a_reboot_that_cannot_be_counted_is_not_done() -> None:
    machine = Booting(**DRIVER)
    machine.files["/proc/self/mountinfo"] = "20 1 0:1 / / rw - tmpfs tmpfs rw\n"
    machine.scripts["driver"] = reboot("the old module is loaded", then=CONFIG)
    assert machine.boot() == 30
    assert machine.reboots == 0
    assert "cannot be counted" in said(machine)["checks"][0]["evidence"]


def test_an_image_of_a_used_machine_starts_with_no_reboot_used() -> None:
    machine = Booting(**DRIVER)
    machine.scripts["driver"] = reboot("the old module is loaded")
    machine.boot()
    machine.power_cycle()
    machine.files["/var/lib/cloud/data/instance-id"] = "i-another\n"
    machine.boot()
    assert machine.reboots == 2


def test_a_reboot_that_the_validation_asks_for_is_done_once_then_it_is_a_replacement() -> None:
    machine = Booting(**DRIVER)
    machine.gpus[0].fields["ecc.errors.uncorrected.volatile.dram"] = "3"
    machine.gpus[0].fields["ecc.errors.uncorrected.volatile.device_memory"] = "3"
    machine.gpus[0].fields["retired_pages.pending"] = "Yes"
    assert machine.until_settled() == 20
    assert machine.reboots == 1
    assert said(machine)["outcome"] == REPLACE


def test_mode_report_reboots_nothing_for_a_verdict() -> None:
    machine = Booting(gate={"mode": "report"}, **DRIVER)
    machine.gpus[0].fields["retired_pages.pending"] = "Yes"
    assert machine.boot() == 0
    assert machine.reboots == 0
    assert opened(machine).outcome == REBOOT


def test_a_reboot_for_the_driver_does_not_use_up_the_one_for_health() -> None:
    machine = Booting(**DRIVER)
    machine.scripts["driver"] = lambda found: (
        ok("loaded") if found.reboots else reboot("the old module is loaded")
    )
    machine.gpus[0].fields["retired_pages.pending"] = "Yes"
    assert machine.until_settled() == 20
    assert machine.reboots == 2


def test_incident_16_no_reboot_into_a_kernel_that_has_no_driver() -> None:
    machine = Booting(**DRIVER)
    machine.files["/boot/vmlinuz-6.8.0-1022-aws"] = ""
    machine.files["/boot/vmlinuz-6.8.0-1021-aws"] = ""
    machine.says("modinfo -k 6.8.0-1022-aws", 1, "", "modinfo: ERROR: Module nvidia not found.")
    machine.says("dkms", 11, "", "Error! Your kernel headers cannot be found")
    machine.scripts["packages"] = reboot("something wants a reboot")
    assert machine.boot() == 30
    assert machine.reboots == 0
    assert "6.8.0-1022-aws, which has no nvidia module" in said(machine)["checks"][0]["evidence"]


def test_incident_16_a_module_that_can_be_built_for_the_next_kernel_is() -> None:
    machine = Booting(**DRIVER)
    machine.files["/boot/vmlinuz-6.8.0-1022-aws"] = ""
    machine.says("modinfo -k 6.8.0-1022-aws", 1)
    built = machine.run

    def dkms(argv: Any, limit: float, *rest: Any, **kept: Any) -> Done:
        if tuple(argv[:2]) == ("dkms", "autoinstall"):
            machine.says("modinfo -k 6.8.0-1022-aws", 0, "/lib/modules/nvidia.ko\n")
            return Done(tuple(argv), 0, "", "", 9.0, "exited")
        return built(argv, limit, *rest, **kept)

    machine.run = dkms  # type: ignore[method-assign]
    machine.scripts["packages"] = reboot("something wants a reboot")
    assert machine.boot() == 0
    assert machine.reboots == 1


# --- parts --------------------------------------------------------------------------------------


def test_a_stage_that_ends_without_a_word_is_inconclusive() -> None:
    died = Done(("x",), -9, "", "Killed", 3.0, "exited")
    assert parse(died, 10).outcome == INCONCLUSIVE
    assert "exit status -9: Killed" in parse(died, 10).evidence
    garbled = Done(("x",), 0, "gputier-stage:{", "", 3.0, "exited")
    assert parse(garbled, 10).outcome == INCONCLUSIVE
    other = Done(("x",), 0, f"gputier-stage:{json.dumps({'a': 1})}", "", 3.0, "exited")
    assert parse(other, 10).outcome == INCONCLUSIVE


def test_signs_of_life_go_on_while_stages_run_and_their_failures_are_told() -> None:
    beats: list[float] = []

    def beat() -> str | None:
        beats.append(time.monotonic())
        if len(beats) == 2:
            raise OSError("no route")
        return "throttled" if len(beats) == 3 else None

    heartbeat = Heartbeat(beat, 0.02)
    heartbeat.start()
    time.sleep(0.3)
    heartbeat.stop()
    many = len(beats)
    assert many > 4
    assert heartbeat.failed == 2
    assert heartbeat.trouble.endswith("signs of life failed: throttled")
    time.sleep(0.1)
    assert len(beats) == many, "none is sent once the verdict is told"
