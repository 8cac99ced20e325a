"""Comments on a pull request of GitHub (docs.github.com/en/rest/issues/comments, 2022-11-28)."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, cast

from gputier.review.calls import Answer, Calls, CannotPost, Clock, Comment

API = "https://api.github.com"
PAGE = 100
#: What a comment says of itself once another one replaced it: GitHub folds it.
HIDE = (
    "mutation($id: ID!) { minimizeComment(input: {subjectId: $id, classifier: OUTDATED})"
    " { clientMutationId } }"
)
NO_RIGHT = "Resource not accessible by integration"


class GitHub:
    """The pull request that a job runs for, by the environment of GitHub Actions."""

    limit = 65_536

    def __init__(self, environ: Mapping[str, str], clock: Clock | None = None) -> None:
        token = environ.get("GITHUB_TOKEN") or environ.get("GH_TOKEN")
        if not token:
            raise CannotPost("there is no GITHUB_TOKEN", "`env: GITHUB_TOKEN: ${{ github.token }}`")
        repository = environ.get("GITHUB_REPOSITORY", "")
        if not re.fullmatch(r"[A-Za-z0-9_.-]+/[A-Za-z0-9_.-]+", repository):
            raise CannotPost("GITHUB_REPOSITORY is no owner/name", "GitHub Actions sets it")
        headers = {
            "Authorization": f"Bearer {token}",
            "Accept": "application/vnd.github+json",
            "X-GitHub-Api-Version": "2022-11-28",
            "User-Agent": "gputier",
        }
        base = environ.get("GITHUB_API_URL") or API
        self._calls = Calls(base, headers, "GitHub", clock)
        graphql = environ.get("GITHUB_GRAPHQL_URL") or f"{base.removesuffix('/v3')}/graphql"
        self._graphql = Calls(graphql, headers, "GitHub", clock)
        self._issues = f"/repos/{repository}/issues"
        self._path = f"{self._issues}/{number_of(environ)}/comments"

    def comments(self) -> Iterator[Comment]:
        """Every comment; a page is followed by another while the answer links one."""
        page = 1
        while True:
            found = self._asked("GET", f"{self._path}?per_page={PAGE}&page={page}")
            for one in cast("list[dict[str, Any]]", found.data or []):
                yield _comment(one)
            if 'rel="next"' not in found.headers.get("link", ""):
                return
            page += 1

    def create(self, body: str) -> Comment:
        return _comment(self._asked("POST", self._path, {"body": body}).data)

    def edit(self, comment: Comment, body: str) -> Comment | None:
        path = f"{self._issues}/comments/{comment.id}"
        found = self._calls.ask("PATCH", path, {"body": body})
        if found.status in (403, 404) and not _forbidden(found):
            return None
        return _comment(self._checked(found, "PATCH").data)

    def hide(self, comment: Comment) -> None:
        self._checked(
            self._graphql.ask("POST", "", {"query": HIDE, "variables": {"id": comment.node}}),
            "POST",
        )

    def _asked(self, method: str, path: str, body: Mapping[str, Any] | None = None) -> Answer:
        return self._checked(self._calls.ask(method, path, body), method)

    def _checked(self, found: Answer, method: str) -> Answer:
        if 200 <= found.status < 300:
            return found
        told = _message(found)
        if _forbidden(found):
            raise CannotPost(
                f"GitHub does not let this token comment: {told}",
                "`permissions: {pull-requests: write}`; for pull requests of forks keep the review"
                " as an artifact, and post it in a `workflow_run` job",
                expected=True,
            )
        hints = {
            401: "the token is wrong or has run out",
            404: "the token may not see the repository, or the pull request is another",
            422: "GitHub does not take the comment",
        }
        raise CannotPost(
            f"GitHub answers {method} with status {found.status}: {told}",
            hints.get(found.status, "run it again later"),
        )


def _forbidden(found: Answer) -> bool:
    return found.status == 403 and NO_RIGHT.lower() in _message(found).lower()


def _message(found: Answer) -> str:
    return str(_map(found.data).get("message") or "no word")[:200]


def _map(data: Any) -> dict[str, Any]:
    return cast("dict[str, Any]", data) if isinstance(data, dict) else {}


def _comment(data: Any) -> Comment:
    one = _map(data)
    return Comment(
        id=str(one.get("id") or ""),
        body=str(one.get("body") or ""),
        url=str(one.get("html_url") or ""),
        node=str(one.get("node_id") or ""),
    )


def number_of(environ: Mapping[str, str]) -> int:
    """The pull request's number: told, in the ref that was checked out, or in the event."""
    told = environ.get("GPUTIER_PULL_REQUEST", "")
    ref = re.fullmatch(r"refs/pull/(\d+)/\w+", environ.get("GITHUB_REF", ""))
    found = told or (ref[1] if ref else "") or _of_the_event(environ.get("GITHUB_EVENT_PATH", ""))
    if not re.fullmatch(r"[1-9]\d{0,9}", found):
        raise CannotPost("nothing says which pull request this is", "GPUTIER_PULL_REQUEST=123 does")
    return int(found)


def _of_the_event(path: str) -> str:
    try:
        read: Any = json.loads(Path(path).read_text(encoding="utf-8")) if path else None
    except (OSError, ValueError):
        return ""
    event = _map(read)
    found = _map(event.get("pull_request")) or _map(event.get("issue"))
    return str(found.get("number") or "")
