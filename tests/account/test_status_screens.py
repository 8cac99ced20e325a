"""Each way a fleet may be found in, as people read it; and as programs do."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from tests.account.status_scenes import SCENES
from tests.account.status_world import text

from gputier.account.status_document import document
from gputier.cli.text import columns_of

Golden = Callable[[str, str], None]


@pytest.mark.parametrize("name", SCENES)
def test_what_people_read(name: str, golden: Golden) -> None:
    golden(f"status/{name}.txt", text(SCENES[name]()))


def test_the_page_shows_one(generated: Callable[[str, str, str], None]) -> None:
    generated("docs/status.md", "example", f"```\n{text(SCENES['rejecting']())}```")


@pytest.mark.parametrize("name", SCENES)
@pytest.mark.parametrize("width", [60, 80, 160])
def test_no_line_is_wider_than_the_screen_but_for_words_that_are(name: str, width: int) -> None:
    for line in text(SCENES[name](), width).splitlines():
        # An address, or a command, is there to be copied.
        whole = len(line.split()) == 1 or " look: " in line or "→ aws" in line or "→ pulumi" in line
        table = "  i-0" in line or "demo-prod-chat-" in line
        assert columns_of(line) <= (200 if whole else 80 if table else width), line


@pytest.mark.parametrize("name", SCENES)
def test_the_same_moment_is_told_the_same_way_twice(name: str) -> None:
    assert document(SCENES[name]()) == document(SCENES[name]())
    assert text(SCENES[name]()) == text(SCENES[name]())


ANSWERS = {
    "well": "prod: both machines work   $2.64/h now, $339 since 1 Dec",
    "quota": "prod: 0 of 2 machines work   $0/h now, $0 since 1 Dec",
    "rejecting": "prod: 1 of 2 machines work, 1 was rejected by the gate, 1 proves itself",
    "breaker": "prod: 0 of 2 machines work, 2 were rejected by the gate   $0/h now, $0.48 since",
    "interrupted": "prod: its machine works, 1 was interrupted   $0.53/h now, $17.47 since 1 Dec",
    "exhausted": "prod: 1 of 3 machines work   $1.32/h now, $26.40 since 1 Dec",
    "could-not-ask": "prod: its machine works, tuner could not be asked for",
    "nobody": "prod: AWS could not be asked",
    "asleep": "prod: no machine is wanted now   $0/h now, $14.52 since 1 Dec",
    "never": "prod: nothing is deployed",
    "deleted": "prod: everything was deleted",
    "block": "prod: no machine is wanted now",
    "flexing": "prod: no machine is wanted now",
    "refused-on-google": "prod: Google Cloud could not be asked",
}


@pytest.mark.parametrize("name", SCENES)
def test_the_answer_is_the_first_line(name: str) -> None:
    assert text(SCENES[name]()).splitlines()[0].startswith(ANSWERS[name])


#: The first reason of each scene, and a part of its way out.
REASONS = {
    "quota": ("VcpuLimitExceeded", "gputier doctor prod"),
    "rejecting": ("gate-rejected", "read the newest report"),
    "breaker": ("breaker", "aws autoscaling resume-processes --region us-east-1"),
    "exhausted": ("ZONE_RESOURCE_POOL_EXHAUSTED_WITH_DETAILS", "gputier plan prod --explain"),
    "asleep": ("asleep", "`schedule` of `chat`"),
    "never": ("not-deployed", "pulumi up --stack prod"),
    "deleted": ("deleted", "pulumi up --refresh --stack prod"),
    "block": ("block-not-started", "nothing"),
    "flexing": ("flex-start-waits", "nothing"),
}


@pytest.mark.parametrize("name", REASONS)
def test_why_nothing_appears_is_the_first_reason_and_has_its_fix(name: str) -> None:
    code, fix = REASONS[name]
    (fleet,) = SCENES[name]().fleets
    first = fleet.troubles[0]
    assert (first.code, first.known, first.over) == (code, True, False)
    assert fix in first.fix


@pytest.mark.parametrize("name", ["well", "interrupted", "could-not-ask"])
def test_nothing_is_wrong_where_everything_works(name: str) -> None:
    for fleet in SCENES[name]().fleets:
        assert fleet.troubles == ()
