"""Processes that hang, ignore signals, leave children, or are killed: on this very machine."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from tests.node.standins import environment

from gputier.node import build, processes, timeline
from gputier.node.host import Host

linux = pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="no /proc on this machine")
pytestmark = linux

TREE = """
import os, signal, subprocess, sys, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
keep = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); time.sleep(600)"
child = subprocess.Popen([sys.executable, "-S", "-c", keep], start_new_session=True)
second = subprocess.Popen([sys.executable, "-S", "-c", "import subprocess, sys, time\\n"
    f"p = subprocess.Popen([sys.executable, '-S', '-c', {keep!r}], start_new_session=True)\\n"
    "print(p.pid, flush=True); time.sleep(600)"], start_new_session=True)
print(os.getpid(), child.pid, second.pid, flush=True)
time.sleep(600)
"""


def alive(pid: int) -> bool:
    try:
        text = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8")
    except OSError:
        return False
    return text.rpartition(")")[2].split()[0] not in ("Z", "X")


def gone(pids: list[int], seconds: float = 10.0) -> bool:
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        if not any(map(alive, pids)):
            return True
        time.sleep(0.05)
    return False


def test_a_command_is_killed_with_children_in_sessions_of_their_own() -> None:
    done = Host().run([sys.executable, "-S", "-c", TREE], 3.0)
    assert done.state == "timeout"
    pids = [int(word) for word in done.out.split()]
    assert len(pids) == 4
    assert gone(pids)


def test_what_descends_from_a_process_is_found_through_every_generation() -> None:
    process = subprocess.Popen([sys.executable, "-S", "-c", TREE], stdout=subprocess.PIPE)
    try:
        assert process.stdout
        pids = {int(w) for _ in range(2) for w in process.stdout.readline().split()}
        assert set(processes.below(process.pid)) == pids - {process.pid}
    finally:
        processes.end(process.pid)
        process.wait(10)
        assert process.stdout
        process.stdout.close()
    assert gone(sorted(pids))


# --- the whole boot, as its bundle ----------------------------------------------------------------

# A stand-in that says that it runs, then waits as long as the file `hold` names it.
SCRIPT = """#!{python} -S
import os, sys, time
here = os.path.dirname(os.path.abspath(sys.argv[0]))
with open(os.path.join(here, "calls"), "a") as calls:
    calls.write(" ".join([{name!r}, *sys.argv[1:]]) + "\\n")
hold = os.path.join(here, "hold")
while os.path.exists(hold) and open(hold).read().strip() == {name!r}:
    time.sleep(0.05)
sys.stdout.write({out!r})
sys.exit({rc})
"""
NIC = "0000:00:05.0 Ethernet controller [0200]: Amazon.com, Inc. Device [1d0f:ec20]\n"
TOOLS = {
    "lspci": (0, NIC),
    "apt-get": (0, ""),
    "apt-mark": (0, ""),
    "dpkg": (0, ""),
    "dpkg-query": (0, "ii |linux-aws|6.8\n"),
    "stat": (0, ""),
    "systemctl": (0, "apt-daily.timer enabled enabled\n"),
    "sysctl": (0, ""),
    "journalctl": (0, "2026-11-30T10:00:01+0000 host kernel: Linux version 6.8\n"),
}
SETTINGS = {"schema": "gputier/boot/1", "gate": {"mode": "enforce"}, "hugepages": 4}


class Place:
    """A root, its stand-ins and the bundle."""

    def __init__(self, folder: Path) -> None:
        self.commands, self.root = folder / "bin", folder / "root"
        self.commands.mkdir()
        self.bundle = folder / "gputier-node.pyz"
        build.build(self.bundle)
        for name, (rc, out) in TOOLS.items():
            script = self.commands / name
            text = SCRIPT.format(python=sys.executable, name=name, rc=rc, out=out)
            script.write_text(text, encoding="utf-8")
            script.chmod(0o755)
        self.put("/etc/gputier/boot.json", json.dumps(SETTINGS))
        self.put("/etc/gputier/expect.json", '{"gpu": {"count": 0}}')
        self.put("/proc/sys/vm/nr_hugepages", "4\n")
        self.put("/proc/sys/kernel/random/boot_id", "11111111-aaaa-4bbb-8ccc-000000000001\n")
        self.put("/proc/uptime", "30.00 1.00\n")
        self.put("/etc/machine-id", "m1\n")

    def put(self, path: str, text: str) -> None:
        target = self.root / path.lstrip("/")
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text, encoding="utf-8")

    def start(self) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [sys.executable, str(self.bundle), "boot"],
            env=environment(self.commands, self.root),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )

    def boot(self) -> tuple[int, str]:
        process = self.start()
        _, said = process.communicate(timeout=120)
        return process.returncode, said

    def calls(self) -> list[str]:
        file = self.commands / "calls"
        return file.read_text(encoding="utf-8").splitlines() if file.exists() else []

    def timeline(self) -> Any:
        text = (self.root / timeline.FILE.lstrip("/")).read_text(encoding="utf-8")
        return json.loads(text)["boots"]


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


def wait_for(place: Place, command: str) -> None:
    until = time.monotonic() + 30
    while not any(call.startswith(command) for call in place.calls()):
        assert time.monotonic() < until, place.calls()
        time.sleep(0.02)


def end_of(place: Place) -> Any:
    gate = json.loads((place.root / "run/gputier/gate.json").read_text(encoding="utf-8"))
    report = json.loads((place.root / "var/lib/gputier/report.json").read_text(encoding="utf-8"))
    outcomes = [(check["name"], check["outcome"]) for check in report["checks"]]
    return {**gate, "since": 0}, report["outcome"], outcomes, place.timeline()[-1]["end"]


def test_the_bundle_boots_a_machine_of_stand_ins(place: Place) -> None:
    status, said = place.boot()
    assert status == 0, said
    (boot,) = place.timeline()
    names = [stage["name"] for stage in boot["stages"]]
    assert names == ["packages", "limits", "services", "validate", "gate"]
    assert {s["outcome"] for s in boot["stages"]} == {"healthy"}
    assert boot["end"] == "admitted"
    assert (place.root / "run/gputier/ready").exists()


HELD = {"packages": "systemctl", "validate": "journalctl"}


@pytest.mark.parametrize("stage", HELD)
@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM])
def test_a_boot_that_is_killed_leaves_nothing_running_and_ends_the_same_when_started_again(
    stage: str, how: signal.Signals, place: Place, tmp_path: Path
) -> None:
    (tmp_path / "other").mkdir()
    undisturbed = Place(tmp_path / "other")
    undisturbed.boot()
    hold = place.commands / "hold"
    hold.write_text(HELD[stage], encoding="utf-8")
    process = place.start()
    wait_for(place, HELD[stage])
    below = processes.below(process.pid)
    assert len(below) >= 2, "the stage and its command"
    os.kill(process.pid, how)
    process.communicate(timeout=30)
    assert gone(below), "a stage does not outlive its boot, nor its commands it"
    hold.unlink()
    cut = place.timeline()[-1]["stages"][-1]
    assert (cut["name"], cut["outcome"]) == (stage, "running")
    assert place.boot()[0] == 0
    assert end_of(place) == end_of(undisturbed)
    assert [s["name"] for s in place.timeline()[-1]["stages"] if s["outcome"] == "interrupted"] == [
        stage
    ]


def test_a_stage_that_hangs_is_ended_with_its_commands_and_the_verdict_is_given(
    place: Place,
) -> None:
    limits = {"limits": {"packages": 3}}
    place.put("/etc/gputier/boot.json", json.dumps({**SETTINGS, **limits}))
    (place.commands / "hold").write_text("apt-mark", encoding="utf-8")
    status, said = place.boot()
    assert status == 40, said
    assert "stage packages: inconclusive" in said
    first = place.timeline()[-1]["stages"][0]
    assert first["seconds"] < 6
    listed = subprocess.run(["ps", "ax"], capture_output=True, text=True, check=True).stdout
    assert str(place.commands) not in listed


def test_two_boots_at_once_are_one(place: Place) -> None:
    hold = place.commands / "hold"
    hold.write_text("systemctl", encoding="utf-8")
    first = place.start()
    wait_for(place, "systemctl")
    status, said = place.boot()
    assert (status, "another boot is under way" in said) == (2, True)
    hold.unlink()
    first.communicate(timeout=60)
    assert first.returncode == 0


def test_settings_that_cannot_be_read_are_told_with_every_problem(place: Place) -> None:
    place.put("/etc/gputier/boot.json", '{"gate": {"mode": "maybe"}, "reboots": -1}')
    status, said = place.boot()
    assert status == 30, said
    assert "settings: gate.mode" in said
    assert "settings: reboots" in said


def test_an_expectation_that_cannot_be_read_is_refused_and_told(place: Place) -> None:
    place.put("/etc/gputier/expect.json", '{"gpu": {"count": -1}}')
    status, said = place.boot()
    assert status == 30, said
    report = json.loads((place.root / "var/lib/gputier/report.json").read_text(encoding="utf-8"))
    assert report["causes"] == ["stage-settings"]
    assert not (place.root / "run/gputier/ready").exists()


def test_the_stages_are_listed_with_why_they_do_not_apply(place: Place) -> None:
    done = subprocess.run(
        [sys.executable, str(place.bundle), "stage"],
        env=environment(place.commands, place.root),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0
    assert "limits             60 s at most" in done.stdout
    assert "mig                not run: the plan has no MIG layout" in done.stdout


def test_a_stage_runs_by_itself_and_says_how_it_came_out(place: Place) -> None:
    done = subprocess.run(
        [sys.executable, str(place.bundle), "stage", "limits"],
        env=environment(place.commands, place.root),
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout) == (
        0,
        "limits: healthy (changed): 4 huge pages of 2 MiB\n",
    )
