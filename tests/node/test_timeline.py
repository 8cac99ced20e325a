"""The timeline: what each boot did, on disk as it goes, and readable."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests.node.booting import Booting, passes

from gputier.node import timeline
from gputier.node.cli import main
from gputier.node.stages import config, ok, reboot

DRIVER: dict[str, Any] = {"driver": {"source": "prebaked"}}


def machine() -> Booting:
    found = Booting(**DRIVER)
    found.scripts["packages"] = passes(41.0, ok("nothing upgrades unattended", changed=True))
    return found


def test_every_stage_has_its_seconds_and_its_limit() -> None:
    box = machine()
    box.boot()
    boot = timeline.read(box).last
    first = boot.stages[0]
    assert (first.name, first.seconds, first.limit) == ("packages", 42.0, 660)
    assert (first.at, first.changed) == (20.0, True)
    assert boot.stages[1].at == pytest.approx(62.0, abs=0.5)
    assert boot.up_seconds > 62


def test_the_text_has_aligned_columns_with_the_limits_beside() -> None:
    box = machine()
    box.boot()
    lines = timeline.text(timeline.read(box)).splitlines()
    assert lines[0].startswith("boot 11111111-")
    head, first = lines[1], lines[2]
    assert head.split() == ["at", "stage", "took", "limit", "outcome", "evidence"]
    assert first.split()[:9] == ["20.0", "s", "packages", "42.0", "s", "660", "s", "healthy", "*"]
    column = head.index("outcome")
    assert all(row[column - 2 : column] == "  " for row in lines[2:7])
    assert lines[-2].strip().startswith("admitted: ")
    assert lines[-1] == "  * changed the machine"


def test_each_boot_is_told_apart_and_old_ones_are_let_go() -> None:
    box = machine()
    box.scripts["driver"] = lambda found: ok("loaded") if found.reboots else reboot("old module")
    box.until_settled()
    ends = [boot.end for boot in timeline.read(box).boots]
    assert ends == [timeline.REBOOTING, timeline.ADMITTED]
    for _ in range(timeline.KEPT + 3):
        box.power_cycle()
        box.boot()
    assert len(timeline.read(box).boots) == timeline.KEPT


@pytest.mark.parametrize("text", ["", "{", "[]", '{"schema": "gputier/timeline/1", "boots": [1]}'])
def test_a_timeline_that_cannot_be_read_starts_anew(text: str) -> None:
    box = machine()
    box.files[timeline.FILE] = text
    assert box.boot() == 0
    assert len(timeline.read(box).boots) == 1


def test_another_instances_timeline_does_not_count() -> None:
    box = machine()
    box.boot()
    box.files["/var/lib/cloud/data/instance-id"] = "i-another\n"
    assert timeline.read(box).boots == ()


def test_a_disk_that_keeps_no_timeline_does_not_end_the_boot() -> None:
    class Full(Booting):
        def write(self, path: str, text: str, mode: int = 0o644) -> None:
            if path == timeline.FILE:
                raise OSError(28, "No space left on device")
            super().write(path, text, mode)

    assert Full(**DRIVER).boot() == 0


def test_the_stage_that_ended_preparation_is_found_again() -> None:
    box = machine()
    box.scripts["driver"] = config("nouveau")
    box.boot()
    entries = [e for e in timeline.read(box).last.stages if e.name != "gate"]
    bad = timeline.failed(timeline.read(box).last._replace(stages=tuple(entries)))
    assert bad is not None
    assert bad.name == "driver"
    assert timeline.as_result(bad).name == "stage-driver"


def test_the_verb_prints_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("GPUTIER_SYSROOT", str(tmp_path))
    assert main(["timeline"]) == 2
    assert "no boot" in capsys.readouterr().out
    box = machine()
    box.boot()
    place = tmp_path / timeline.FILE.lstrip("/")
    place.parent.mkdir(parents=True)
    place.write_text(box.written[timeline.FILE], encoding="utf-8")
    (tmp_path / "var/lib/cloud/data").mkdir(parents=True)
    (tmp_path / "var/lib/cloud/data/instance-id").write_text("i-0123456789abcdef0\n", "utf-8")
    assert main(["timeline"]) == 0
    assert "packages" in capsys.readouterr().out
    assert main(["timeline", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["schema"] == timeline.SCHEMA
