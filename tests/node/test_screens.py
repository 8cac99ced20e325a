"""Two machines as files, and the screens that they give: what `make demo` shows.

The recordings are made by `machines.py` (origin: synthesised) and kept in tests/golden/node, so
that anybody can replay them: `gputier-node replay DIR --expect DIR/expect.json`.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.node.cases import lost
from tests.node.machines import Machine

from gputier.node import expect, recording, screen, scrub, watching
from gputier.node.cli import main
from gputier.node.engine import Context
from gputier.node.recording import Origin, Recorder, Replay
from gputier.node.verbs.common import judge

Golden = Callable[[str, str], None]
CHANGES: dict[str, Callable[[Machine], object]] = {"healthy": lambda _: None, "faulty": lost(7)}


def made(name: str) -> tuple[str, str]:
    """The recording and the expectation of one of the two machines."""
    machine = Machine("p5.48xlarge")
    CHANGES[name](machine)
    wanted = json.dumps(machine.expectation(), indent=1) + "\n"
    recorder = Recorder(machine)
    judge(recorder, expect.read(wanted), "quick", keep=False)
    watching.Watch(Context(recorder, expect.read(wanted))).step()
    origin = Origin("synthesised", "", f"{name} p5.48xlarge, made by tests/node/machines.py")
    return scrub.recording(recorder.recording(origin, "p5.48xlarge")).to_json(), wanted


@pytest.mark.parametrize("name", CHANGES)
def test_the_kept_machine_is_what_is_made(golden: Golden, name: str) -> None:
    machine, wanted = made(name)
    golden(f"node/{name}/machine.json", machine)
    golden(f"node/{name}/expect.json", wanted)


@pytest.mark.parametrize("name", CHANGES)
def test_its_screen(golden: Golden, name: str) -> None:
    machine, wanted = made(name)
    found = judge(Replay(recording.from_json(machine)), expect.read(wanted), "quick")
    golden(f"node/{name}/screen.txt", screen.text(found.report, "utf-8"))


@pytest.mark.parametrize(("name", "status"), [("healthy", 0), ("faulty", 20)])
def test_the_kept_machine_can_be_replayed(
    root: Path, name: str, status: int, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = root / "tests/golden/node" / name
    assert main(["replay", str(folder), "--expect", str(folder / "expect.json")]) == status
    assert capsys.readouterr().out == (folder / "screen.txt").read_text(encoding="utf-8")


def test_watching_the_kept_machine_for_a_minute_is_quiet(
    root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = root / "tests/golden/node/healthy"
    verb = ["watch", "--replay", str(folder), "--expect", str(folder / "expect.json")]
    assert main([*verb, "--seconds", "60"]) == 0
    assert capsys.readouterr().out == ""
    assert main([*verb, "--seconds", "0", "--json"]) == 0
    assert '"utilisation_percent": 0.0' in capsys.readouterr().out
