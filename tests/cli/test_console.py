"""Streams of every kind: no terminal, narrow, colourless, ASCII only, closed, gone."""

from __future__ import annotations

import io
import os
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gputier.cli import console
from gputier.cli.ascii import LOOK_ALIKES, plain
from gputier.cli.console import Paint


class Terminal(io.StringIO):
    """A stream that says a person reads it."""

    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(
    ("environment", "coloured"),
    [({}, True), ({"NO_COLOR": "1"}, False), ({"NO_COLOR": ""}, True), ({"TERM": "dumb"}, False)],
)
def test_colour_is_for_terminals_that_want_it(
    environment: dict[str, str], coloured: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TERM", "xterm")
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    assert Paint(Terminal()).bold("x") == ("\x1b[1mx\x1b[0m" if coloured else "x")
    assert Paint(io.StringIO()).bold("x") == "x"
    assert Paint(None).bold("x") == "x"


def test_nothing_is_never_painted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")
    paint = Paint(Terminal())
    for colour in (paint.bold, paint.dim, paint.red, paint.green, paint.yellow, paint.cyan):
        assert colour("") == ""
        assert colour("x") != "x"


@pytest.mark.parametrize(
    ("columns", "width"), [("20", 60), ("60", 60), ("93", 93), ("500", 160), ("0", 120)]
)
def test_the_width_is_the_terminals_within_reason(
    columns: str, width: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", columns)
    assert console.width() == width


def test_without_a_terminal_the_width_is_fixed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("COLUMNS", raising=False)
    monkeypatch.setattr(sys, "stdout", io.StringIO())
    assert console.width() == console.WITHOUT_TERMINAL


def test_a_closed_or_missing_stream_is_no_terminal_and_no_error(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    closed = io.StringIO()
    closed.close()
    assert not console.is_terminal(closed)
    monkeypatch.setattr(sys, "stdout", None)
    console.out("nobody reads this")


def test_data_goes_to_stdout_and_talk_to_stderr(capsys: pytest.CaptureFixture[str]) -> None:
    console.out("data")
    console.err("talk\n")
    console.note("a note")
    assert tuple(capsys.readouterr()) == ("data\n", "talk\nnote: a note\n")


class Gone(io.TextIOBase):
    """A pipe whose reader has left; its descriptor is a real one."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor

    def write(self, _text: str, /) -> int:
        raise BrokenPipeError

    def fileno(self) -> int:
        return self._descriptor

    def isatty(self) -> bool:
        return False


def test_a_reader_that_has_left_is_no_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with (tmp_path / "pipe").open("w") as file:
        monkeypatch.setattr(sys, "stdout", Gone(file.fileno()))
        console.out("nobody reads this")
        # What Python flushes at its end goes nowhere: the descriptor is /dev/null now.
        assert os.fstat(file.fileno()).st_rdev == Path(os.devnull).stat().st_rdev


@pytest.mark.parametrize("encoding", ["ascii", "latin-1", "nosuch"])
def test_ascii_streams_get_look_alikes_in_their_columns(encoding: str) -> None:
    text = "needs  ≥ 80 GB   4 × H100   → else\n×"
    shown = plain(text, encoding)
    assert shown.splitlines()[0].replace("×", "x") == "needs  >= 80 GB  4 x H100   -> else"
    shown.encode("ascii" if encoding != "latin-1" else encoding)


def test_what_can_be_shown_is_left_alone() -> None:
    assert plain("≥ 80 GB × 4 ✓", "utf-8") == "≥ 80 GB × 4 ✓"


def test_every_look_alike_is_ascii() -> None:
    assert all(instead.isascii() for instead in LOOK_ALIKES.values())


@given(st.text(), st.sampled_from(["ascii", "latin-1", "cp1252", "koi8-r", "utf-8"]))
def test_no_text_is_refused_by_any_encoding(text: str, encoding: str) -> None:
    plain(text, encoding).encode(encoding)
