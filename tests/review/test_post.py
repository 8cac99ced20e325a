"""Posting: one comment whatever happens on the way, and no token where it does not belong."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from gputier.review.calls import CannotPost, Clock
from gputier.review.post import PLATFORMS, post
from gputier.review.post_github import number_of
from gputier.review.post_gitlab import SUPERSEDED
from tests.standins import github as github_standin
from tests.standins import gitlab as gitlab_standin
from tests.standins.server import Asked, Fault, Reply

pytestmark = pytest.mark.allow_hosts(["127.0.0.1"])
MARKER = "<!-- gputier review shop/dev -->"
BODY = f"{MARKER}\n**gputier** · dev: **+$1 a month**"


class Time:
    """A clock that a test looks at: pauses cost nothing."""

    def __init__(self) -> None:
        self.seconds, self.slept = 1000.0, [0.0]

    @property
    def clock(self) -> Clock:
        return Clock(lambda: self.seconds, lambda: self.seconds, self.sleep)

    def sleep(self, seconds: float) -> None:
        self.seconds += seconds
        self.slept.append(seconds)


@pytest.fixture
def time() -> Time:
    return Time()


@pytest.fixture
def github() -> Iterator[github_standin.GitHub]:
    service = github_standin.GitHub().start()
    yield service
    service.stop()


@pytest.fixture
def gitlab() -> Iterator[gitlab_standin.GitLab]:
    service = gitlab_standin.GitLab().start()
    yield service
    service.stop()


def on_github(service: github_standin.GitHub, **more: str) -> dict[str, str]:
    return {"GITHUB_TOKEN": github_standin.TOKEN, "GITHUB_REPOSITORY": "o/r",
            "GITHUB_REF": "refs/pull/7/merge", "GITHUB_API_URL": service.url, **more}  # fmt: skip


def on_gitlab(service: gitlab_standin.GitLab, **more: str) -> dict[str, str]:
    return {"GITLAB_TOKEN": gitlab_standin.TOKEN, "CI_PROJECT_ID": "42",
            "CI_MERGE_REQUEST_IID": "7", "CI_API_V4_URL": f"{service.url}/api/v4",
            "CI_MERGE_REQUEST_PROJECT_URL": "https://gitlab.com/o/r", **more}  # fmt: skip


Post = Callable[..., "str | None"]


@pytest.fixture
def posted(github: github_standin.GitHub, time: Time) -> Post:
    """`posted(body)`: to GitHub's pull request 7."""

    def do(body: str = BODY, *, create: bool = True, **environ: str) -> str | None:
        there = PLATFORMS["github"](on_github(github, **environ), time.clock)
        return post(there, body, MARKER, create=create, say=lambda _text: None)

    return do


def bodies(service: github_standin.GitHub) -> list[str]:
    return [comment["body"] for comment in service.comments]


def test_a_first_review_is_a_new_comment_and_the_next_one_edits_it(
    github: github_standin.GitHub, posted: Post
) -> None:
    github.add("looks good")
    assert posted() == "https://github.com/o/r/pull/7#issuecomment-1001"
    assert posted(BODY + "!") == "https://github.com/o/r/pull/7#issuecomment-1001"
    assert bodies(github) == ["looks good", BODY + "!"]


def test_a_review_that_says_the_same_is_not_sent_again(
    github: github_standin.GitHub, posted: Post
) -> None:
    posted()
    posted()
    assert len(github.requests(method="PATCH")) == 0
    assert len(github.requests(method="POST")) == 1


@pytest.mark.parametrize("others", [99, 100, 101, 250])
def test_a_comment_is_found_behind_any_number_of_others(
    github: github_standin.GitHub, posted: Post, others: int
) -> None:
    for number in range(others):
        github.add(f"remark {number}")
    posted()
    posted(BODY + "!")
    assert bodies(github)[others:] == [BODY + "!"]


def test_several_of_ours_become_one(github: github_standin.GitHub, posted: Post) -> None:
    first, second = github.add(BODY), github.add(BODY + "?")
    posted(BODY + "!")
    assert bodies(github) == [BODY, BODY + "!"]
    assert (github.hidden, second) == ([f"IC_{first}"], second)


def test_another_stacks_comment_is_left_alone(github: github_standin.GitHub, posted: Post) -> None:
    other = BODY.replace("shop/dev", "shop/prod")
    github.add(other)
    github.add(f"> {BODY}")
    posted()
    assert bodies(github) == [other, f"> {BODY}", BODY]


def test_somebody_elses_comment_with_our_marker_is_not_edited(
    github: github_standin.GitHub, posted: Post
) -> None:
    github.theirs.add(github.add(BODY))
    posted(BODY + "!")
    assert bodies(github) == [BODY, BODY + "!"]


def test_nothing_new_is_made_where_there_is_nothing_to_say_and_what_is_there_is_kept_true(
    github: github_standin.GitHub, posted: Post
) -> None:
    assert posted(create=False) is None
    assert bodies(github) == []
    posted()
    posted(BODY + " nothing changes", create=False)
    assert bodies(github) == [BODY + " nothing changes"]


def test_an_answer_that_got_lost_makes_no_second_comment(
    github: github_standin.GitHub, posted: Post
) -> None:
    github.faults.append(Fault(method="POST", lost=True, times=1))
    assert posted()
    assert bodies(github) == [BODY]


def test_a_request_that_got_lost_is_made_again(github: github_standin.GitHub, posted: Post) -> None:
    github.faults.append(Fault(method="POST", drop=True, times=1))
    assert posted()
    assert bodies(github) == [BODY]
    github.faults.append(Fault(method="POST", drop=True))
    github.comments.clear()
    with pytest.raises(CannotPost, match="answers to two new comments got lost"):
        posted()


@pytest.mark.parametrize("status", [429, 500, 502, 503])
@pytest.mark.parametrize("method", ["GET", "PATCH"])
def test_a_service_in_trouble_is_asked_again(
    github: github_standin.GitHub, posted: Post, time: Time, status: int, method: str
) -> None:
    posted()
    github.faults.append(Fault(method=method, status=status, times=2))
    assert posted(BODY + "!")
    assert bodies(github) == [BODY + "!"]
    assert sum(time.slept) == pytest.approx(1.5)


def test_a_service_that_stays_in_trouble_is_given_up(
    github: github_standin.GitHub, posted: Post, time: Time
) -> None:
    github.faults.append(Fault(status=503))
    with pytest.raises(CannotPost, match="GitHub does not answer: status 503"):
        posted()
    assert 40 < time.seconds - 1000 <= 60


class Limited(github_standin.GitHub):
    """Allows no more requests until then."""

    headers: dict[str, str]
    times = 1

    def reply(self, asked: Any) -> Any:
        found = super().reply(asked)
        if self.times:
            self.times -= 1
            found.status, found.body = 403, b'{"message": "API rate limit exceeded"}'
            found.headers |= self.headers
        return found


@pytest.mark.parametrize(
    ("headers", "waits"),
    [
        ({"Retry-After": "7"}, 7.0),
        ({"X-RateLimit-Remaining": "0", "X-RateLimit-Reset": "1030"}, 30.0),
        ({"Retry-After": "3600"}, None),
        ({"X-RateLimit-Remaining": "0", "X-RateLimit-Reset": "4600"}, None),
    ],
)
def test_a_rate_limit_is_waited_for_or_told_with_its_seconds(
    time: Time, headers: dict[str, str], waits: float | None
) -> None:
    service = Limited()
    service.headers = headers
    service.start()
    there = PLATFORMS["github"](on_github(service), time.clock)
    try:
        if waits is None:
            with pytest.raises(CannotPost, match="allows no more requests for 3600 s"):
                post(there, BODY, MARKER, create=True, say=print)
        else:
            assert post(there, BODY, MARKER, create=True, say=print)
            assert sum(time.slept) == waits
    finally:
        service.stop()


def test_a_fork_without_the_right_is_told_the_way_out_and_is_expected(
    github: github_standin.GitHub, posted: Post
) -> None:
    github.may_comment = False
    with pytest.raises(CannotPost, match="Resource not accessible") as caught:
        posted()
    assert caught.value.expected
    assert "`workflow_run` job" in str(caught.value)


@pytest.mark.parametrize(
    ("environ", "words"),
    [
        ({"GITHUB_TOKEN": "wrong"}, "status 401"),
        ({"GITHUB_REF": "refs/pull/8/merge"}, "status 404"),
        ({"GITHUB_TOKEN": ""}, "there is no GITHUB_TOKEN"),
        ({"GITHUB_REPOSITORY": "o/r/../x"}, "is no owner/name"),
        ({"GITHUB_REF": "refs/heads/main"}, "which pull request"),
        ({"GITHUB_API_URL": "http://example.com"}, "not by https"),
        ({"GITHUB_API_URL": "file:///etc"}, "not by https"),
    ],
)
def test_what_is_wrong_with_the_environment_is_told(
    posted: Post, environ: dict[str, str], words: str
) -> None:
    with pytest.raises(CannotPost, match=words) as caught:
        posted(**environ)
    assert not caught.value.expected
    assert github_standin.TOKEN not in str(caught.value)
    assert "wrong" not in str(caught.value).replace("the token is wrong", "")


def test_a_redirect_is_not_followed_with_the_token(
    github: github_standin.GitHub, posted: Post
) -> None:
    elsewhere = github_standin.GitHub().start()

    def moved(asked: Asked) -> Reply:
        return Reply(307, b"", {"Location": f"{elsewhere.url}/repos/o/r/issues/7/comments"})

    github.reply = moved
    with pytest.raises(CannotPost, match="status 307"):
        posted()
    assert elsewhere.seen == []
    elsewhere.stop()


def test_a_comment_that_is_too_long_is_refused_before_it_is_sent(
    github: github_standin.GitHub, posted: Post
) -> None:
    with pytest.raises(CannotPost, match="65,540 characters, of 65,536"):
        posted(MARKER + "x" * (65_540 - len(MARKER)))
    assert github.requests() == []


@pytest.mark.parametrize(
    ("event", "number"),
    [({"pull_request": {"number": 5}}, 5), ({"issue": {"number": 6}}, 6)],
)
def test_the_number_may_come_from_the_event(tmp_path: Path, event: Any, number: int) -> None:
    path = tmp_path / "event.json"
    path.write_text(json.dumps(event), encoding="utf-8")
    assert number_of({"GITHUB_EVENT_PATH": str(path)}) == number
    assert number_of({"GPUTIER_PULL_REQUEST": "9", "GITHUB_EVENT_PATH": str(path)}) == 9


# --- GitLab ---------------------------------------------------------------------------------------


def test_a_merge_request_has_one_note_too(gitlab: gitlab_standin.GitLab, time: Time) -> None:
    for number in range(150):
        gitlab.add(f"remark {number}")
    old = gitlab.add(BODY)
    gitlab.add(BODY + "?")
    there = PLATFORMS["gitlab"](on_gitlab(gitlab), time.clock)
    address = post(there, BODY + "!", MARKER, create=True, say=print)
    assert address == "https://gitlab.com/o/r/-/merge_requests/7#note_1151"
    assert [note["body"] for note in gitlab.notes[150:]] == [SUPERSEDED, BODY + "!"]
    assert old == 1150


@pytest.mark.parametrize(
    ("environ", "words"),
    [
        ({"GITLAB_TOKEN": "", "CI_JOB_TOKEN": "x"}, "CI_JOB_TOKEN may not write notes"),
        ({"GITLAB_TOKEN": "wrong"}, "status 401"),
        ({"CI_MERGE_REQUEST_IID": ""}, "CI_MERGE_REQUEST_IID is no number"),
        ({"CI_PROJECT_ID": "42/../43"}, "CI_PROJECT_ID is no number"),
        ({"CI_MERGE_REQUEST_IID": "8"}, "status 404"),
    ],
)
def test_what_gitlab_cannot_be_asked_is_told(
    gitlab: gitlab_standin.GitLab, time: Time, environ: dict[str, str], words: str
) -> None:

    def do() -> object:
        there = PLATFORMS["gitlab"](on_gitlab(gitlab, **environ), time.clock)
        return post(there, BODY, MARKER, create=True, say=print)

    with pytest.raises(CannotPost, match=words):
        do()
