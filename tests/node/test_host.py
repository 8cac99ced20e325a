"""The seam to the machine: nothing a command does can hang or crash who asks."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from gputier.node.host import Host


@pytest.fixture
def place(tmp_path: Path) -> Path:
    (tmp_path / "bin").mkdir()
    (tmp_path / "root").mkdir()
    return tmp_path


def tool(place: Path, name: str, text: str) -> Path:
    path = place / "bin" / name
    path.write_text(f"#!/bin/sh\n{text}\n", encoding="utf-8")
    path.chmod(0o755)
    return path


def host(place: Path) -> Host:
    path = f"{place / 'bin'}{os.pathsep}{os.environ['PATH']}"
    return Host(str(place / "root"), {"PATH": path, "PYTHONPATH": "/kept", "LANG": "de_DE.UTF-8",
                                      "CUDA_VISIBLE_DEVICES": "0"})  # fmt: skip


def test_a_command_that_ends_tells_status_and_both_streams(place: Path) -> None:
    tool(place, "t", "echo out; echo err >&2; exit 7")
    done = host(place).run(["t", "x"], 5)
    assert (done.rc, done.out, done.err, done.state) == (7, "out\n", "err\n", "exited")
    assert done.says() == "out / err"


def test_a_hung_command_is_killed_with_everything_it_started(place: Path) -> None:
    """It ignores TERM, and its child in the background would go on for an hour."""
    tool(place, "t", f"trap '' TERM HUP; sleep 3600 & echo $! > {place}/child; sleep 3600")
    started = time.monotonic()
    done = host(place).run(["t"], 0.5)
    assert (done.state, done.rc) == ("timeout", None)
    assert time.monotonic() - started < 3
    child = int((place / "child").read_text(encoding="utf-8"))
    deadline = time.monotonic() + 5
    while _alive(child) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not _alive(child)


def _alive(pid: int) -> bool:
    """A zombie that nobody has collected yet is dead."""
    state = subprocess.run(
        ["ps", "-o", "stat=", "-p", str(pid)], capture_output=True, text=True, check=False
    ).stdout.strip()
    return bool(state) and not state.startswith("Z")


def test_a_daemon_that_keeps_the_pipe_does_not_keep_us(place: Path) -> None:
    tool(place, "t", "sleep 3600 & echo done")
    started = time.monotonic()
    done = host(place).run(["t"], 30)
    assert (done.rc, done.out) == (0, "done\n")
    assert time.monotonic() - started < 5


def test_what_was_printed_before_the_time_was_up_is_kept(place: Path) -> None:
    tool(place, "t", "echo half; sleep 3600")
    assert host(place).run(["t"], 0.5).out == "half\n"


def test_missing_and_unusable_commands_are_told_apart(place: Path) -> None:
    assert host(place).run(["no-such-tool"], 1).state == "missing"
    (tool(place, "t", "")).write_text("#!/no/such/interpreter\n", encoding="utf-8")
    assert host(place).run(["t"], 1).state == "unusable"


def test_a_command_speaks_english_and_sees_all_gpus_and_keeps_pythonpath(place: Path) -> None:
    tool(place, "t", 'echo "$LC_ALL $LANG [$CUDA_VISIBLE_DEVICES] $PYTHONPATH"')
    assert host(place).run(["t"], 5).out == "C C [] /kept\n"


def test_an_absolute_program_is_looked_up_below_the_root(place: Path) -> None:
    """`/bin/sh` exists on this machine and must not be run for another."""
    assert host(place).run(["/bin/sh", "-c", "echo hi"], 5).state == "missing"
    inside = place / "root/opt/pytorch/bin/python3"
    inside.parent.mkdir(parents=True)
    inside.write_text("#!/bin/sh\necho inside\n", encoding="utf-8")
    inside.chmod(0o755)
    assert host(place).run(["/opt/pytorch/bin/python3"], 5).out == "inside\n"


def test_files_are_read_below_the_root_even_through_absolute_links(place: Path) -> None:
    root = place / "root"
    (root / "etc").mkdir()
    (root / "etc/real").write_text("inside\n", encoding="utf-8")
    (root / "etc/link").symlink_to("/etc/real")
    (root / "etc/out").symlink_to("../../../../../../etc/passwd")
    assert host(place).read("/etc/link") == "inside\n"
    assert host(place).read("/etc/out") is None
    assert host(place).read("/etc/passwd") is None
    assert host(place).link("/etc/link") == "/etc/real"
    assert host(place).names("/etc") == ("link", "out", "real")
    assert host(place).names("/nowhere") == ()


def test_reading_a_pipe_does_not_wait_for_a_writer(place: Path) -> None:
    os.mkfifo(str(place / "root/pipe"))
    started = time.monotonic()
    assert host(place).read("/pipe") == ""
    assert time.monotonic() - started < 1


def test_writing_replaces_a_file_in_one_step_below_the_root(place: Path) -> None:
    seam = host(place)
    seam.write("/var/lib/gputier/x", "one")
    seam.write("/var/lib/gputier/x", "two")
    assert (place / "root/var/lib/gputier/x").read_text(encoding="utf-8") == "two"
    assert os.listdir(place / "root/var/lib/gputier") == ["x"]  # noqa: PTH208
    seam.remove("/var/lib/gputier/x")
    seam.remove("/var/lib/gputier/x")
    assert seam.read("/var/lib/gputier/x") is None


def test_something_can_be_looked_at_while_a_command_works(place: Path) -> None:
    tool(place, "t", "sleep 2.5")
    seen: list[float] = []
    started = time.monotonic()
    host(place).run(["t"], 10, during=lambda: seen.append(time.monotonic() - started))
    assert len(seen) == 1
    assert 1.9 < seen[0] < 2.5


def test_our_own_program_is_started_with_this_python(place: Path) -> None:
    done = Host("/", {**os.environ}).run(["@self", "--version"], 20)
    assert done.rc == 0, done
    assert done.out.startswith("gputier-node ")
    assert host(place).which("@self") == sys.executable


def test_a_file_for_its_owner_alone_never_has_another_mode(tmp_path: Path) -> None:
    host = Host(str(tmp_path))
    host.write("/etc/secret.env", "A=1\n", 0o600)
    assert (tmp_path / "etc/secret.env").stat().st_mode & 0o777 == 0o600
    host.write("/etc/open", "A=1\n")
    assert (tmp_path / "etc/open").stat().st_mode & 0o777 == 0o644
