"""The pages of the timeline are drawn from what rehearsals measured."""

from __future__ import annotations

import xml.etree.ElementTree as Xml
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.rehearsal import timeline
from tests.rehearsal.timeline import Row, Timeline

PICTURE = "docs/boot-timeline.svg"
CONSOLE = """\
[    2.253680] env[242]: gputier: bundle there after 0.3 s
[    2.864407] gputier-node[254]: gputier-node: stage packages: healthy, 0.4 of 660 s: held
login: [    9.900000] gputier-node[2]: gputier-node: stage validate: healthy, 2.2 of 210 s: healthy
[    1.100000] env[99]: gputier: bundle there after 0.1 s
[    2.200000] gputier-node[98]: gputier-node: stage packages: healthy, 0.4 of 660 s: held
"""


def test_the_pages_are_those_of_the_measured_data(
    root: Path, generated: Callable[[str, str, str], None], request: pytest.FixtureRequest
) -> None:
    found = timeline.kept()
    assert {one.tier for one in found} == {"vm", "container"}, "both tiers are measured"
    generated("docs/boot-timeline.md", "timelines", timeline.text(found))
    picture = root / PICTURE
    if request.config.getoption("--update-docs"):
        picture.write_text(timeline.picture(found[0]), encoding="utf-8")
    assert picture.read_text(encoding="utf-8") == timeline.picture(found[0]), (
        f"{PICTURE} is out of date: `make docs` draws it again"
    )


def test_no_measured_stage_comes_near_its_limit() -> None:
    """The limits are for real machines; a rehearsal that uses half of one is a stage gone slow."""
    slow = [
        f"{one.machine}: {row.name} took {row.seconds} of {row.limit} s"
        for one in timeline.kept()
        for row in one.rows
        if row.limit and row.seconds > row.limit / 2
    ]
    assert slow == []


def test_only_the_first_boot_of_a_console_is_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = timeline.rows_of(CONSOLE, 300.0)
    assert rows == [
        Row("start", 0.0, 2.0, 0.0),
        Row("bundle", 2.0, 0.3, 300.0),
        Row("packages", 2.5, 0.4, 660.0),
        Row("validate", 7.7, 2.2, 210.0),
    ]


def test_the_picture_is_whole_and_has_a_bar_for_every_stage() -> None:
    rows = (Row("start", 0.0, 2.0, 0.0), Row("<stage>", 2.0, 8.0, 60.0))
    drawn = timeline.picture(Timeline("w", "p5 & more", "vm", "here", rows))
    tree = Xml.fromstring(drawn)  # noqa: S314 (our own text)
    bars = tree.findall("{http://www.w3.org/2000/svg}rect")
    assert len(bars) == 1 + len(rows)
    assert "p5 &amp; more" in drawn
    assert "8.0 s of 60 s" in drawn
