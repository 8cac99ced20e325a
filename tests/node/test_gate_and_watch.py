"""The gate opens on a healthy verdict only, and what happens afterwards shuts it."""

# ruff: noqa: E501 (tables of cases, one row a line)
from __future__ import annotations

import json
import socket
import threading
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.node.machines import Machine

from gputier.node import expect, gate, load_cause, watching
from gputier.node.cli import main
from gputier.node.engine import Context
from gputier.node.host import Done, Host
from gputier.node.load_cause import BATCH, BUSY, CPU, IDLE, INPUT, UNKNOWN
from gputier.node.result import HEALTHY, INCONCLUSIVE, REBOOT, REPLACE, WARNING
from gputier.node.verbs import serve, watch
from gputier.node.verbs.common import Run

Judge = Callable[..., Run]
XID = "kernel: NVRM: Xid (PCI:0000:1b:00): {}, pid=1, words"


def settled(run: Judge, machine: Machine, mode: str) -> gate.Gate:
    return gate.settle(machine, mode, run(machine).report)


@pytest.mark.parametrize(("mode", "opened"), [("enforce", False), ("report", True), ("off", True)])
def test_a_bad_node_is_kept_out_only_where_the_gate_enforces(
    run: Judge, mode: str, opened: bool
) -> None:
    machine = Machine("p5.48xlarge")
    machine.gpus[7].visible = False
    state = settled(run, machine, mode)
    assert (state.open, state.outcome) == (opened, REPLACE)
    assert "gpu-count" in state.reasons[0]
    assert (gate.READY in machine.written) == opened
    assert gate.read(machine) == state


def test_a_healthy_node_comes_in(run: Judge) -> None:
    machine = Machine("p5.48xlarge")
    assert settled(run, machine, "enforce").open
    assert gate.READY in machine.written


@pytest.mark.parametrize("text", [None, "", "{}", "nonsense", '{"open": true}'])
def test_a_gate_nobody_settled_is_shut(text: str | None) -> None:
    machine = Machine("g4dn.xlarge")
    if text is not None:
        machine.written[gate.FILE] = text
    assert not gate.read(machine).open


def test_the_verb_opens_and_shuts_and_an_old_verdict_does_not_stay(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("GPUTIER_SYSROOT", str(tmp_path))
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    host = Host(str(tmp_path))
    gate.write(host, gate.Gate(True, HEALTHY, "enforce", (), 1))
    path = tmp_path / "e.json"
    path.write_text("{}", encoding="utf-8")
    assert main(["gate", "--expect", str(path)]) in (30, 40)
    assert not gate.read(host).open
    assert not (tmp_path / "run/gputier/ready").exists()
    path.write_text('{"gate": "off"}', encoding="utf-8")
    assert main(["gate", "--expect", str(path)]) == 0
    assert gate.read(host).open
    assert main(["report"]) in (30, 40), "the last verdict can be shown again"
    assert "gputier-node: " in capsys.readouterr().out


@pytest.fixture
def endpoint(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, socket_enabled: None
) -> Iterator[tuple[Host, str]]:
    host = Host(str(tmp_path))
    served = serve.server(host, "127.0.0.1", 0)
    thread = threading.Thread(target=served.serve_forever, args=(0.05,), daemon=True)
    thread.start()
    yield host, f"http://127.0.0.1:{served.server_address[1]}/healthz"
    served.shutdown()
    served.server_close()
    thread.join(5)


def answer(url: str) -> tuple[int, dict[str, Any]]:
    try:
        with urllib.request.urlopen(url, timeout=5) as reply:  # noqa: S310 (our own server)
            return reply.status, json.loads(reply.read())
    except urllib.error.HTTPError as error:
        with error:
            return error.code, json.loads(error.read())


def test_the_endpoint_follows_the_gate(endpoint: tuple[Host, str]) -> None:
    host, url = endpoint
    assert answer(url)[0] == 503
    gate.write(host, gate.Gate(True, HEALTHY, "enforce", (), 1))
    assert answer(url) == (200, json.loads(gate.read(host).to_json()))
    gate.shut(host, REPLACE, ["Xid 79"])
    status, body = answer(url)
    assert (status, body["reasons"]) == (503, ["Xid 79"])


def test_a_client_that_says_nothing_does_not_block_others(endpoint: tuple[Host, str]) -> None:
    _, url = endpoint
    port = int(url.rsplit(":", 1)[1].split("/")[0])
    with socket.create_connection(("127.0.0.1", port), 5):
        assert answer(url)[0] == 503


# --- watch ---------------------------------------------------------------------------------------


class Watched:
    """A machine under watch, step by step, half a minute apart."""

    def __init__(self, kind: str = "p5.48xlarge") -> None:
        self.machine = Machine(kind)
        self.watch = watching.Watch(
            Context(self.machine, expect.read(json.dumps(self.machine.expectation())))
        )
        self.step()

    def step(self, times: int = 1) -> list[watching.Event]:
        found: list[watching.Event] = []
        for _ in range(times):
            found += self.watch.step()
            self.machine.sleep(30)
        return found


def outcomes(events: list[watching.Event]) -> list[str]:
    return [event.outcome for event in events]


def test_a_quiet_machine_says_nothing() -> None:
    assert Watched().step(20) == []


def test_an_xid_that_is_new_is_told_once_and_shuts_the_gate() -> None:
    seen = Watched()
    seen.machine.log.append(XID.format(79))
    events = seen.step(5)
    assert outcomes(events) == [REPLACE]
    assert events[0].shuts


def test_an_xid_of_before_and_an_applications_own_are_no_news() -> None:
    machine = Machine("p5.48xlarge")
    machine.log.append(XID.format(79))
    watch = watching.Watch(Context(machine, expect.read("{}")))
    assert watch.step() == []
    machine.log.append(XID.format(31))
    assert watch.step() == []


def test_new_ecc_errors_are_counted_from_where_they_stood() -> None:
    seen = Watched()
    seen.machine.gpus[0].fields[watching.ECC] = "5"
    assert outcomes(seen.step()) == [REBOOT]
    assert seen.step(3) == []


def test_errors_of_before_the_watch_are_no_news() -> None:
    machine = Machine("p5.48xlarge")
    machine.gpus[0].fields[watching.ECC] = "5"
    watch = watching.Watch(Context(machine, expect.read("{}")))
    assert watch.step() + watch.step() == []


def test_a_gpu_that_is_gone_is_told_after_three_looks() -> None:
    seen = Watched()
    seen.machine.gpus[3].visible = False
    assert seen.step(2) == []
    events = seen.step()
    assert outcomes(events) == [REPLACE]
    assert "GPU 3 is gone" in events[0].words


def test_a_gpu_that_comes_back_in_between_is_not() -> None:
    seen = Watched()
    for visible in (False, True, False, True, False):
        seen.machine.gpus[3].visible = visible
        assert seen.step() == []


def test_throttling_warns_first_and_then_gives_the_machine_back() -> None:
    seen = Watched()
    seen.machine.gpus[1].fields["clocks_event_reasons.active"] = "0x0000000000000040"
    events = seen.step(4)
    assert outcomes(events) == [WARNING, REPLACE]
    assert "HW thermal slowdown" in events[0].words


def test_a_driver_that_does_not_answer_is_a_reboot() -> None:
    seen = Watched()
    seen.machine.hangs("nvidia-smi")
    assert outcomes(seen.step(3)) == [REBOOT]


def test_an_answer_that_cannot_be_read_is_a_warning_and_no_fault() -> None:
    seen = Watched()
    seen.machine.says("nvidia-smi --query-gpu", 0, "alles gut")
    assert outcomes(seen.step(3)) == [WARNING]


def test_a_port_that_goes_down_is_told() -> None:
    seen = Watched("Standard_ND96isr_H100_v5")
    seen.machine.files["/sys/class/infiniband/mlx5_ib2/ports/1/state"] = "1: DOWN\n"
    events = seen.step(3)
    assert outcomes(events) == [REPLACE]
    assert "mlx5_ib2" in events[0].words


def test_what_costs_a_process_is_asked_less_often_than_notices() -> None:
    machine = Machine("p5.48xlarge")
    view = watching.Watch(Context(machine, expect.read("{}")), every=4)
    machine.calls.clear()
    for _ in range(8):
        view.step()
    tools = [call[0] for call in machine.calls]
    assert (tools.count("nvidia-smi"), tools.count("journalctl"), tools.count("curl")) == (
        3,
        2,
        8,
    ), "one more, for a field this branch lacks"


def test_the_same_event_is_not_repeated_all_the_time() -> None:
    seen = Watched()
    seen.machine.gpus[1].fields["clocks_event_reasons.active"] = "0x0000000000000040"
    many = seen.step(40)
    assert len(many) <= 2 * (1 + 40 * 30 // watching.QUIET_SECONDS)
    assert seen.watch.suppressed > 30


NOTICES: dict[str, tuple[str, dict[str, str], str]] = {
    "aws spot": ("p5.48xlarge", {"/api/token": "t", "/spot/instance-action": '{"action": "terminate"}'}, "spot notice"),
    "aws maintenance": ("p5.48xlarge", {"/api/token": "t", "/maintenance/scheduled": '[{"Code": "system-reboot"}]'}, "maintenance"),
    "gcp spot": ("a3-megagpu-8g", {"/preempted": "TRUE"}, "spot notice"),
    "gcp maintenance": ("a3-megagpu-8g", {"/preempted": "FALSE", "/maintenance-event": "TERMINATE_ON_HOST_MAINTENANCE"}, "maintenance"),
    "azure": ("Standard_ND96isr_H100_v5", {"/scheduledevents?api-version=2020-07-01": '{"Events": [{"EventType": "Preempt"}]}'}, "Preempt"),
}  # fmt: skip


class Metadata(Machine):
    """A machine whose metadata service answers."""

    pages: dict[str, str]

    def run(self, argv: Any, limit: float, env: Any = None, during: Any = None) -> Done:
        if "curl" not in argv:
            return super().run(argv, limit, env, during)
        page = next((text for end, text in self.pages.items() if argv[-1].endswith(end)), None)
        status = "404 Not Found" if page is None else "200 OK"
        head = f"HTTP/1.1 {status}\r\nMetadata-Flavor: Google\r\n\r\n"
        return Done(tuple(argv), 0, head + (page or ""), "", 0.01, "exited")


@pytest.mark.parametrize(("kind", "pages", "words"), NOTICES.values(), ids=NOTICES)
def test_a_notice_of_the_provider_shuts_the_gate_and_is_no_fault(
    kind: str, pages: dict[str, str], words: str
) -> None:
    machine = Metadata(kind)
    machine.pages = {}
    view = watching.Watch(Context(machine, expect.read(json.dumps(machine.expectation()))))
    assert view.step() == []
    machine.pages = pages
    (event,) = view.step()
    assert words in event.words
    assert (event.outcome, event.shuts) == (INCONCLUSIVE, True)


def test_the_verb_shuts_the_gate_and_prints_figures(
    run: Judge, capsys: pytest.CaptureFixture[str]
) -> None:
    machine = Machine("p5.48xlarge")
    settled(run, machine, "enforce")
    machine.late = [XID.format(79)]
    wanted = expect.read(json.dumps(machine.expectation()))
    assert watch.loop(machine, wanted, 10, machine.monotonic() + 65, as_json=True) == 0
    rows = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [event["outcome"] for row in rows for event in row["events"]] == [REPLACE]
    assert rows[0]["gpus"][0] == {
        "gpu": "0", "utilisation_percent": 0.0, "temperature_c": 34.0, "memory_used_mib": 1.0,
        "memory_total_mib": 81559.0, "power_w": 70.12,
    }  # fmt: skip
    assert not gate.read(machine).open


def test_in_report_mode_the_gate_stays_open_and_keeps_the_reason(run: Judge) -> None:
    machine = Machine("p5.48xlarge")
    settled(run, machine, "report")
    state = gate.shut(machine, REPLACE, ["Xid 79"])
    assert (state.open, state.reasons) == (True, ("Xid 79",))


# --- why the GPUs idle ---------------------------------------------------------------------------

# What the GPUs, the CPU (busy and waiting, of 4 cores per step) and the disks do → the cause.
LOADS: dict[str, tuple[dict[str, str], tuple[int, int], str | None, str]] = {
    "waits for its data": ({"utilization.gpu": "20 %", "memory.used": "60000 MiB"}, (10, 40), None, INPUT),
    "waits, by pressure": ({"utilization.gpu": "20 %", "memory.used": "60000 MiB"}, (10, 0), "some avg10=35.00 avg60=1 avg300=1 total=1", INPUT),
    "small kernels": ({"utilization.gpu": "30 %", "memory.used": "9000 MiB"}, (15, 0), None, BATCH),
    "cores full": ({"utilization.gpu": "20 %", "memory.used": "60000 MiB"}, (95, 0), None, CPU),
    "nothing shows": ({"utilization.gpu": "20 %", "memory.used": "60000 MiB", "power.draw": "600.00 W"}, (15, 0), None, UNKNOWN),
    "all is well": ({"utilization.gpu": "97 %", "memory.used": "60000 MiB"}, (95, 0), None, BUSY),
    "no job": ({"utilization.gpu": "0 %", "memory.used": "1 MiB"}, (1, 0), None, IDLE),
}  # fmt: skip


def stat(step: int, busy: int, waiting: int, cores: int = 4) -> str:
    idle = 100 - busy - waiting
    row = f"{busy * step} 0 0 {idle * step} {waiting * step} 0 0 0 0 0"
    return "".join(f"cpu{n} {row}\n" for n in range(cores))


def loaded(fields: dict[str, str], cpu: tuple[int, int], pressure: str | None) -> Watched:
    seen = Watched()
    for one in seen.machine.gpus:
        one.fields.update(fields)
    for step in range(1, 8):
        seen.machine.files["/proc/stat"] = stat(step, *cpu)
        if pressure:
            seen.machine.files["/proc/pressure/io"] = pressure + "\n"
        seen.step()
    return seen


@pytest.mark.parametrize(("fields", "cpu", "pressure", "name"), LOADS.values(), ids=LOADS)
def test_the_causes_of_low_utilisation_are_told_apart(
    fields: dict[str, str], cpu: tuple[int, int], pressure: str | None, name: str
) -> None:
    cause = loaded(fields, cpu, pressure).watch.cause.judge()
    assert cause
    assert cause.name == name, cause.words
    assert cause.words


def test_one_full_core_among_idle_ones_is_the_cpu() -> None:
    """A single process that decodes all images."""
    seen = Watched()
    for one in seen.machine.gpus:
        one.fields.update({"utilization.gpu": "20 %", "memory.used": "60000 MiB"})
    for step in range(1, 8):
        full = f"cpu0 {100 * step} 0 0 0 0 0 0\n"
        seen.machine.files["/proc/stat"] = full + stat(step, 3, 0).replace("cpu0", "cpu9")
        seen.step()
    cause = seen.watch.cause.judge()
    assert cause
    assert cause.name == CPU
    assert "1 cores full" in cause.words


def test_low_utilisation_is_told_with_what_was_measured() -> None:
    seen = Watched()
    for one in seen.machine.gpus:
        one.fields.update({"utilization.gpu": "20 %", "memory.used": "60000 MiB"})
    told: list[watching.Event] = []
    for step in range(1, 8):
        seen.machine.files["/proc/stat"] = stat(step, 10, 40)
        told += seen.step()
    (event,) = told
    assert event.outcome == WARNING
    assert not event.shuts
    assert event.words.startswith("input too slow: GPU 20 %, CPU 10% busy")


def test_a_pause_is_no_cause() -> None:
    window = load_cause.Window()
    assert window.judge() is None
