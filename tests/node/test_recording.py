"""Recordings: what is noted is judged the same elsewhere, and identifies nobody."""

# ruff: noqa: E501 (tables of cases, one row a line)
from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.node.cases import CASES, Case
from tests.node.machines import KINDS, Machine

from gputier.node import expect, recording, scrub
from gputier.node.cli import main
from gputier.node.host import Done
from gputier.node.recording import Origin, Recorder, Recording, Replay
from gputier.node.verbs.common import Run, judge

Judge = Callable[..., Run]


def recorded(machine: Machine, depth: str = "quick", **changes: Any) -> tuple[Recording, Run, str]:
    text = json.dumps({**machine.expectation(), **changes})
    recorder = Recorder(machine)
    found = judge(recorder, expect.read(text), depth, keep=False)
    return recorder.recording(Origin("synthesised"), machine.kind.name), found, text


def verdicts(found: Run) -> list[tuple[str, str]]:
    return [(check["name"], check["outcome"]) for check in found.report["checks"]]


@pytest.mark.parametrize("kind", KINDS)
def test_a_replayed_machine_is_judged_as_it_was(kind: str) -> None:
    kept, live, text = recorded(Machine(kind), "standard")
    again = recording.from_json(scrub.recording(kept).to_json())
    replayed = judge(Replay(again), expect.read(text), "standard")
    assert verdicts(replayed) == verdicts(live)
    assert replayed.report["seconds"] == pytest.approx(live.report["seconds"], abs=0.2)


REPLAYED = [case for case in CASES if not case.expect and case.depth == "quick"]


@pytest.mark.parametrize("case", REPLAYED, ids=lambda case: f"{case.check}: {case.words}")
def test_a_fault_survives_recording_and_scrubbing(case: Case) -> None:
    machine = Machine(case.kind)
    case.change(machine)
    kept, live, text = recorded(machine, case.depth)
    replayed = judge(Replay(scrub.recording(kept)), expect.read(text), case.depth)
    assert verdicts(replayed) == verdicts(live)


def test_what_was_not_recorded_is_inconclusive_and_not_missing() -> None:
    kept, _, text = recorded(Machine("p5.48xlarge"))
    cut = kept._replace(commands=tuple(d for d in kept.commands if d.argv[1:2] != ("nvlink",)))
    found = judge(Replay(cut), expect.read(text), "quick")
    assert found.report["causes"] == ["nvlink"]
    (check,) = (c for c in found.report["checks"] if c["name"] == "nvlink")
    assert "not in the recording" in check["evidence"]


def test_a_replay_keeps_its_own_time_and_writes_nowhere() -> None:
    kept, _, _ = recorded(Machine("p5.48xlarge"))
    replay = Replay(kept._replace(commands=(Done(("slow",), 0, "x", "", 50.0, "exited"),)))
    assert replay.run(["slow"], 60).rc == 0
    assert (replay.run(["slow"], 10).state, replay.monotonic()) == ("timeout", 60)
    replay.write("/run/x", "y")
    replay.sleep(5)
    assert (replay.read("/run/x"), replay.monotonic()) == ("y", 65)


# What stands in a line → the part of it that must not survive.
SECRETS = {
    "GPU 0: X (UUID: GPU-5f1bd7a2-9c3e-4d11-8a55-0123456789ab)": "5f1bd7a2-9c3e",
    "link/ether 0a:1b:2c:3d:4e:5f": "0a:1b:2c",
    "inet 10.20.30.40/24": "10.20.30.40",
    "inet6 fe80::a00:27ff:fe4e:66a1/64": "a00:27ff",
    "id i-0abcdef1234567890": "0abcdef1234567890",
    "disk vol-0fedcba1234567890": "0fedcba1234567890",
    "Serial Number                         : 1652922014237": "1652922014237",
    "arn:aws:iam::123456789012:role/x": "123456789012",
    '"accountId" : "123456789012",': "123456789012",
    "account=123456789012": "123456789012",
    "key AKIAIOSFODNN7EXAMPLE": "IOSFODNN7",
    "mail ann@example.com": "ann@",
    "projects/secret-project/zones/z": "secret-project",
    "at ip-10-20-30-40": "ip-10-20-30-40",
    "host trainer-7.internal up": "trainer-7",
    "Node GUID: 0x506b4b0300cbd1f2": "506b4b0300cbd1f2",
}


@pytest.mark.parametrize(("line", "secret"), SECRETS.items())
def test_a_secret_does_not_survive(line: str, secret: str) -> None:
    files = {"/etc/x": line + "\n", "/proc/sys/kernel/hostname": "trainer-7.internal\n"}
    done = Done(("tool", line), 0, f"a\n{line}\n", f"{line}\n", 0.1, "exited")
    kept = Recording(Origin("real"), "m", 0.0, (done,), (), files, {"/sys": (line,)}, {}, ())
    assert secret in kept.to_json()
    assert secret not in scrub.recording(kept).to_json()


def test_what_checks_judge_survives() -> None:
    kept = ("Driver Version: 580.95.05", "0000:1b:00.0 3D controller [0302]: NVIDIA [10de:2330]",
            "127.0.0.1 and 169.254.169.254", "Link 0: 26.562 GB/s", "size 500107862016", "release 13.0, V13.0.85")  # fmt: skip
    scrubber = scrub.Scrubber()
    assert [scrubber.text(text) for text in kept] == list(kept)


def test_the_same_secret_has_the_same_stand_in_and_another_another() -> None:
    scrubber = scrub.Scrubber()
    one, two, again = (scrubber.text(a) for a in ("10.0.0.1", "10.0.0.2", "10.0.0.1"))
    assert one == again != two


def test_record_and_replay_from_the_command_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("GPUTIER_SYSROOT", str(tmp_path / "root"))
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    (tmp_path / "e.json").write_text('{"gpu": {"count": 8}}', encoding="utf-8")
    folder = str(tmp_path / "made")
    assert main(["record", folder, "--expect", str(tmp_path / "e.json")]) == 0
    assert recording.load(folder).origin.kind == "real"
    assert not (tmp_path / "root").exists(), "recording changes nothing on the machine"
    assert main(["replay", folder, "--expect", str(tmp_path / "e.json")]) == 30
    assert capsys.readouterr().out.startswith("gputier-node: CONFIG")
    assert main(["replay", str(tmp_path), "--expect", str(tmp_path / "e.json")]) == 2


@pytest.mark.parametrize("text", ["", "{}", '{"schema": "x"}', "[]"])
def test_what_is_no_recording_is_refused(text: str) -> None:
    with pytest.raises(recording.BadRecording):
        recording.from_json(text)


def test_a_recording_says_where_it_comes_from() -> None:
    kept, _, _ = recorded(Machine("g4dn.xlarge"))
    data = json.loads(kept.to_json())
    assert data["origin"]["kind"] in recording.ORIGINS
    data["origin"]["kind"] = "hearsay"
    with pytest.raises(recording.BadRecording, match="hearsay"):
        recording.from_json(json.dumps(data))
