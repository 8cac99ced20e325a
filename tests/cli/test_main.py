"""The edge: exit codes, messages, and that nothing ever ends in a traceback."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import click
import pytest
from tests.cli.world import Run

from gputier.catalog import Catalog
from gputier.cli import __main__ as edge
from gputier.cli.app import root
from gputier.errors import CannotPlace, ExitCode, GputierError, InvalidInput, Problem, StaleLock

CODES = {
    ("plan", "prod"): 0,
    ("plan", "dev"): 3,
    ("plan", "dev", "--json"): 3,
    ("plan", "dev", "--explain"): 3,
    ("plan", "prod", "--why-not", "g6e.xlarge"): 0,
    ("plan", "prod", "--why-not", "g6e.xlarg"): 2,
    ("plan", "nosuch"): 2,
    ("plan", "./nosuch.yaml"): 2,
    ("plan", "prod", "--config", "-"): 2,
    ("plan", "--config", "nosuch.json"): 2,
    ("plan", "prod", "--catalog", "nosuch"): 2,
    ("plan", "prod", "extra"): 2,
    ("plan", "--nosuch"): 2,
    ("plan", "--why-not"): 2,
    ("lock", "prod", "--check"): 4,
    ("lock", "dev"): 3,
    ("lock",): 2,
    ("lock", "-"): 2,
    ("size", "prod"): 0,
    ("size", "nosuch"): 2,
    ("tiers",): 0,
    ("catalog",): 0,
    ("catalog", "show", "g6.xlarge"): 0,
    ("catalog", "show", "g6.xlarg"): 2,
    ("catalog", "regions", "nosuch"): 2,
    ("catalog", "nosuch"): 2,
    ("pick", "--gpu-memory", "24GB"): 0,
    ("pick", "--gpu-memory", "24"): 2,
    ("pick", "--gpu-memory", "2000GB"): 3,
    ("completion", "bash"): 0,
    ("completion", "tcsh"): 2,
    ("--version",): 0,
    ("--help",): 0,
    (): 2,
    ("nosuch",): 2,
}


@pytest.mark.parametrize(("arguments", "code"), CODES.items(), ids=map(" ".join, CODES))
def test_the_exit_code_says_what_happened(
    arguments: tuple[str, ...], code: int, run: Run, project: Path, small: Catalog
) -> None:
    ran = run(*arguments)
    assert ran.code == code
    assert ("error:" in ran.err) == (code != 0 and arguments != ())
    assert "Traceback" not in ran.out + ran.err
    assert "pydantic" not in ran.out + ran.err


def test_the_documented_exit_codes_are_the_ones_there_are(root: Path) -> None:
    page = (root / "docs" / "cli.md").read_text(encoding="utf-8")
    for code in ExitCode:
        assert f"\n| {code.value} |" in page, f"docs/cli.md does not say what {code.value} means"


def raising(error: BaseException) -> Callable[..., object]:
    def callback(**_ignored: object) -> object:
        raise error

    return callback


RAISED = {
    "a mistake in a file": (InvalidInput(Problem("x", "is wrong")), 2, "error: x: is wrong"),
    "nothing fits": (CannotPlace(Problem("", "no machine")), 3, "error: no machine"),
    "a stale lock": (StaleLock(Problem("", "is stale")), 4, "error: is stale"),
    "our own error": (GputierError(Problem("", "odd")), 1, "error: odd"),
    "the system": (PermissionError(13, "Permission denied", "f"), 2, "error: f: permission denied"),
    "an interruption": (KeyboardInterrupt(), 130, ""),
    "an abort": (click.Abort(), 130, ""),
    "an exit": (click.exceptions.Exit(7), 7, ""),
    "the end of the process": (SystemExit(5), 5, ""),
}


@pytest.mark.parametrize(("error", "code", "message"), RAISED.values(), ids=RAISED)
def test_what_a_command_raises_becomes_a_code_and_a_message(
    error: BaseException, code: int, message: str, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    command = root.get_command(click.Context(root), "tiers")
    assert command is not None
    monkeypatch.setattr(command, "callback", raising(error))
    ran = run("tiers")
    assert (ran.code, ran.out, ran.err.strip()) == (code, "", message)


def test_a_bug_is_said_in_one_line_and_the_traceback_is_for_those_who_ask(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    command = root.get_command(click.Context(root), "tiers")
    assert command is not None
    monkeypatch.setattr(command, "callback", raising(KeyError("nosuch\nkey")))
    ran = run("tiers")
    assert ran.code == 1
    assert ran.err.startswith(
        "error: this is a bug in gputier: KeyError: 'nosuch\\nkey' (test_main"
    )
    assert "hint: please report it" in ran.err
    assert "Traceback" not in ran.err
    monkeypatch.setenv("GPUTIER_DEBUG", "1")
    assert "Traceback (most recent call last)" in run("tiers").err


def test_only_the_console_script_ends_the_process(monkeypatch: pytest.MonkeyPatch) -> None:
    def exit_with(code: int) -> None:
        raise SystemExit(code)

    monkeypatch.setattr(edge.sys, "argv", ["gputier", "--version"])
    monkeypatch.setattr(edge.gc, "disable", lambda: None)
    monkeypatch.setattr(edge.os, "_exit", exit_with)
    with pytest.raises(SystemExit) as ended:
        edge.run()
    assert ended.value.code == 0


def test_the_process_ends_with_the_code_of_what_it_did_and_all_that_it_printed() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "gputier.cli", "pick", "--gpu-memory", "24GB", "--json"],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0
    assert json.loads(done.stdout)["workloads"]
    refused = subprocess.run(
        [sys.executable, "-m", "gputier.cli", "plan", "./nowhere.yaml"],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert (refused.returncode, refused.stdout) == (2, "")
    assert "nowhere.yaml" in refused.stderr


MISTYPED = {
    ("plam",): ("`plam` is not a command of `gputier`", "did you mean `plan`?"),
    ("zzz",): ("`zzz` is not a command of `gputier`", "see `gputier --help`"),
    ("catalog", "shwo"): ("`shwo` is not a command of `gputier catalog`", "did you mean `show`?"),
    ("plan", "--explian"): (
        "`gputier plan` has no option `--explian`",
        "did you mean `--explain`?",
    ),
    ("plan", "--hepl"): ("`gputier plan` has no option `--hepl`", "did you mean `--help`?"),
    ("--versoin",): ("`gputier` has no option `--versoin`", "did you mean `--version`?"),
    ("catalog", "regions", "asw"): (
        "CLOUD: must be aws, gcp, azure, alibaba or tencent, not `asw`",
        "did you mean `aws`?",
    ),
    ("catalog", "--graphics", "vulcan"): (
        "--graphics: must be opengl or vulkan, not `vulcan`",
        "did you mean `vulkan`?",
    ),
    ("catalog", "--memory", "24"): (
        "--memory: GPU memory is the card's marketed size, such as 24GB or 80GB, not `24`",
        "see `gputier catalog --help`",
    ),
    ("catalog", "show"): ("`gputier catalog show` needs TYPE", "see `gputier catalog show --help`"),
    ("catalog", "refresh"): (
        "`gputier catalog refresh` needs --from FILE...",
        "see `gputier catalog refresh --help`",
    ),
    ("plan", "a", "b"): ("got unexpected extra argument (b)", "see `gputier plan --help`"),
    ("lock", "prod", "--watch", "lots"): (
        "--watch: must be a percentage such as 10, not `lots`",
        "see `gputier lock --help`",
    ),
    ("lock", "prod", "--watch", "100"): (
        "--watch: must be from 0 to below 100, not `100`",
        "see `gputier lock --help`",
    ),
    ("catalog", "--gpu", "L4", "show", "g6.xlarge"): (
        "`--gpu` before `show` narrows the list, and `show` prints none; options of `show` come"
        " after it",
        "see `gputier catalog --help`",
    ),
}


@pytest.mark.parametrize(("arguments", "said"), MISTYPED.items(), ids=map(" ".join, MISTYPED))
def test_a_mistyped_command_line_is_answered_in_our_words(
    arguments: tuple[str, ...], said: tuple[str, str], run: Run, project: Path, small: Catalog
) -> None:
    ran = run(*arguments)
    assert (ran.code, ran.out) == (2, "")
    assert ran.err == f"error: {said[0]}\nhint: {said[1]}\n"


def test_gputier_alone_says_what_it_can_do_and_that_it_did_nothing(run: Run) -> None:
    ran = run()
    assert (ran.code, ran.out) == (2, "")
    assert "Commands:\n  plan " in ran.err


def test_every_command_has_a_summary_an_explanation_and_examples_that_parse(run: Run) -> None:
    for path, command in commands():
        text = run(*path, "--help").out
        assert text.startswith(f"Usage: {' '.join(['gputier', *path])} ")
        assert "Examples:\n  # " in text, f"{path} shows no example"
        assert command.help
        assert len(command.help.split("\n", 1)[0]) > 10


def test_the_list_of_commands_says_what_the_commands_say_of_themselves() -> None:
    """The summaries stand apart from the commands so that help imports none of them."""
    for path, command in commands():
        group = root
        for name in path[:-1]:
            found = group.get_command(click.Context(group), name)
            assert isinstance(found, type(root))
            group = found
        summary = group.lazy[path[-1]].summary.rstrip(".")
        first = (command.help or "").split("\n", 1)[0].rstrip(".")
        assert first.startswith(summary), f"{path}: `{first}` is not `{summary}`"


def commands() -> list[tuple[tuple[str, ...], click.Command]]:
    """Every command with the words that run it."""
    found: list[tuple[tuple[str, ...], click.Command]] = []
    waiting: list[tuple[tuple[str, ...], click.Command]] = [((), root)]
    while waiting:
        path, command = waiting.pop()
        if path:
            found.append((path, command))
        if isinstance(command, click.Group):
            for name in command.list_commands(click.Context(command)):
                inner = command.get_command(click.Context(command), name)
                assert inner is not None
                waiting.append(((*path, name), inner))
    return found
