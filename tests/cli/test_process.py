"""What only a process of its own shows: pipes, signals, terminals, encodings, hash seeds."""

from __future__ import annotations

import os
import pty
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path

import pytest

MODULE = (sys.executable, "-m", "gputier.cli")


def started(
    *arguments: str, environment: Mapping[str, str] | None = None, out: int, err: int
) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [*MODULE, *arguments], env={**os.environ, **(environment or {})}, stdout=out, stderr=err
    )


def test_the_module_runs_as_the_console_script_does(tmp_path: Path) -> None:
    script = Path(sys.executable).with_name("gputier")
    for command in ([str(script)], list(MODULE)):
        done = subprocess.run(
            [*command, "--version"], capture_output=True, text=True, cwd=tmp_path, check=True
        )
        assert done.stdout.startswith("gputier 0.")
        assert done.stderr == ""


def test_a_reader_that_leaves_is_met_with_silence() -> None:
    """The listing is larger than a pipe holds, so that writing meets the closed end."""
    process = started("catalog", "--json", out=subprocess.PIPE, err=subprocess.PIPE)
    assert process.stdout
    assert process.stderr
    assert process.stdout.read(1) == b"{"
    process.stdout.close()
    said = process.stderr.read()
    process.stderr.close()
    assert (process.wait(), said) == (0, b"")


def wait_in_the_kernel(process: subprocess.Popen[bytes]) -> None:
    """Return once it sleeps. Where nothing tells (no /proc), it has a second to come to that."""
    stat, until = Path(f"/proc/{process.pid}/stat"), time.monotonic() + 30
    if not stat.exists():
        time.sleep(1)
        return
    while stat.read_text(encoding="utf-8").rsplit(") ", 1)[1][0] != "S":
        assert time.monotonic() < until, "it never waited"
        time.sleep(0.01)


def test_an_interruption_ends_it_quietly(tmp_path: Path) -> None:
    """A named pipe tells when it was opened, as both ends wait for each other. It has to be read
    by then too: a signal that comes between the two is handled when the reading ends, so never."""
    pipe = tmp_path / "config.json"
    os.mkfifo(pipe)
    # A shell's background job ignores interruptions, and so does all that it starts.
    inherited = signal.signal(signal.SIGINT, signal.default_int_handler)
    process = started("plan", "--config", str(pipe), out=subprocess.PIPE, err=subprocess.PIPE)
    signal.signal(signal.SIGINT, inherited)
    writing = os.open(pipe, os.O_WRONLY)
    wait_in_the_kernel(process)
    process.send_signal(signal.SIGINT)
    try:
        out, err = process.communicate(timeout=30)
    finally:
        os.close(writing)
        process.kill()
        process.wait()
    assert (process.returncode, out, err.strip()) == (130, b"", b"")


def on_a_terminal(environment: Mapping[str, str], *arguments: str) -> str:
    """What a person would see: run with a pseudo-terminal as standard output."""
    mine, theirs = pty.openpty()
    process = started(*arguments, environment=environment, out=theirs, err=theirs)
    os.close(theirs)
    shown = b""
    while True:
        try:
            part = os.read(mine, 65536)
        except OSError:  # Linux: the other side has closed
            break
        if not part:
            break
        shown += part
    os.close(mine)
    assert process.wait() == 0
    return shown.decode()


TERMINALS = {
    "a terminal": ({"TERM": "xterm"}, True),
    "without colour": ({"TERM": "xterm", "NO_COLOR": "1"}, False),
    "a dumb one": ({"TERM": "dumb"}, False),
}


@pytest.mark.parametrize(("environment", "coloured"), TERMINALS.values(), ids=TERMINALS)
def test_a_terminal_gets_colour_when_it_can_and_wants(
    environment: Mapping[str, str], coloured: bool
) -> None:
    shown = on_a_terminal(environment, "pick", "--gpu", "L4", "--cloud", "aws")
    assert ("\x1b[" in shown) == coloured
    assert "considered" in shown


def test_a_pipe_gets_no_colour() -> None:
    done = subprocess.run(
        [*MODULE, "pick", "--gpu", "L4", "--cloud", "aws"],
        capture_output=True,
        env={**os.environ, "TERM": "xterm"},
        check=True,
    )
    assert b"\x1b" not in done.stdout


@pytest.mark.parametrize("arguments", [("tiers",), ("pick", "--gpu", "L4"), ("pick", "--help")])
def test_an_ascii_stream_gets_ascii(arguments: tuple[str, ...]) -> None:
    environment = {**os.environ, "PYTHONIOENCODING": "ascii"}
    done = subprocess.run([*MODULE, *arguments], capture_output=True, env=environment, check=True)
    assert done.stdout
    done.stdout.decode("ascii")


def test_the_same_input_gives_the_same_bytes_whatever_the_hash_seed(tmp_path: Path) -> None:
    (tmp_path / "w.yaml").write_text(
        "workloads:\n  a: {tier: mid, purpose: inference, model: {name: llama-3.1-8b}}\n"
        "  b: {gpu: {models: [H100, A100], graphics: [vulkan]}, clouds: [gcp, azure, aws]}\n",
        encoding="utf-8",
    )
    printed = {
        subprocess.run(
            [*MODULE, "plan", "w.yaml", *options],
            capture_output=True,
            cwd=tmp_path,
            env={**os.environ, "PYTHONHASHSEED": seed, "LANG": language, "TZ": zone},
            check=False,
        ).stdout
        for seed, language, zone in (("0", "C", "UTC"), ("1", "de_DE", "Asia/Tokyo"))
        for options in (("--json",),)
    }
    assert len(printed) == 1
    assert printed != {b""}


def test_help_and_version_load_nothing_that_is_slow() -> None:
    code = (
        "import sys\n"
        "from gputier.cli.__main__ import main\n"
        "assert main(sys.argv[1:]) == 0\n"
        "heavy = {'pydantic', 'yaml', 'rich', 'pulumi', 'jinja2', 'gputier.catalog',\n"
        "         'gputier.plan', 'gputier.workload', 'importlib.metadata'}\n"
        "print(sorted(heavy & set(sys.modules)), file=sys.stderr)\n"
    )
    for arguments in (["--help"], ["--version"], ["plan", "--help"], ["lock", "--help"],
                      ["size", "--help"], ["tiers", "--help"]):  # fmt: skip
        done = subprocess.run(
            [sys.executable, "-c", code, *arguments], capture_output=True, text=True, check=True
        )
        assert done.stderr == "[]\n", arguments
