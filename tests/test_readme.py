"""The README shows what the product prints, and its commands work."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable
from pathlib import Path

import pytest

from gputier.cli.__main__ import main


def blocks(page: Path, language: str) -> list[str]:
    """The fenced code blocks of a language, in order."""
    text = page.read_text(encoding="utf-8")
    return re.findall(rf"^```{language}\n(.*?)^```", text, re.DOTALL | re.MULTILINE)


def test_the_plan_in_the_readme_is_what_the_command_prints(
    root: Path,
    generated: Callable[[str, str, str], None],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(root)
    monkeypatch.setenv("COLUMNS", "110")
    assert main(["plan", "dev"]) == 0
    printed = capsys.readouterr().out
    generated("README.md", "plan", f"```\n$ gputier plan dev\n{printed}```\n")


def test_the_review_in_the_readme_is_what_the_command_prints(
    root: Path,
    generated: Callable[[str, str, str], None],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(root / "tests" / "review" / "samples")
    monkeypatch.setenv("COLUMNS", "104")
    assert main(["review", "prod-change.json", "--base", "prod-export.json"]) == 0
    printed = capsys.readouterr().out
    shown = "```\n$ gputier review preview.json --base export.json\n" + printed + "```\n"
    generated("README.md", "review", shown)


def test_the_python_of_the_readme_runs(
    root: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(root)
    example, _program = blocks(root / "README.md", "python")
    exec(compile(example, "README.md", "exec"), {})  # noqa: S102  the README's own example
    machine, cost = capsys.readouterr().out.split()
    assert machine
    assert float(cost) > 0


def test_every_command_in_the_readme_is_understood(
    root: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Those that only read are run; the others are asked for their help."""
    monkeypatch.chdir(root)
    text = (root / "README.md").read_text(encoding="utf-8")
    # What the shell does with the output is the shell's.
    commands = {re.split("[#>]", line)[0] for line in re.findall(r"`(gputier [^`]+)`", text)}
    commands |= set(re.findall(r"^(gputier [^#\n]+)", text, re.MULTILINE))
    assert len(commands) > 8
    for command in sorted(commands):
        meant = command.replace("[STACK or FILE]", "dev").replace("STACK", "dev")
        meant = meant.replace("preview.json", "tests/review/samples/prod-change.json")
        words = shlex.split(meant)[1:]
        writes = words[0] in ("init", "lock") or {"refresh", "build"} & set(words)
        asks_a_cloud = words[0] in ("doctor", "status")
        if writes or asks_a_cloud or {"workloads.yaml", "-"} & set(words):
            words = [*words[: 2 if {"refresh", "build"} & set(words) else 1], "--help"]
        code = main(words)
        out = capsys.readouterr()
        assert code == 0, (command, out.err)
        assert out.out
