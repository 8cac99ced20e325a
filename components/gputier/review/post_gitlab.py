"""Notes on a merge request of GitLab (docs.gitlab.com/api/notes)."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, cast

from gputier.review.calls import Answer, Calls, CannotPost, Clock, Comment

SUPERSEDED = "*gputier: superseded by a newer review below.*"


class GitLab:
    """The merge request that a job runs for, by the environment of GitLab CI."""

    limit = 1_000_000

    def __init__(self, environ: Mapping[str, str], clock: Clock | None = None) -> None:
        token = environ.get("GITLAB_TOKEN")
        if not token:
            own = " (CI_JOB_TOKEN may not write notes)" if environ.get("CI_JOB_TOKEN") else ""
            hint = "a project access token with the scope `api`, as a masked variable"
            raise CannotPost(f"there is no GITLAB_TOKEN{own}", hint)
        base = environ.get("CI_API_V4_URL") or "https://gitlab.com/api/v4"
        project, request = environ.get("CI_PROJECT_ID", ""), environ.get("CI_MERGE_REQUEST_IID", "")
        if not re.fullmatch(r"\d{1,12}", project):
            raise CannotPost("CI_PROJECT_ID is no number", "GitLab CI sets it")
        if not re.fullmatch(r"\d{1,12}", request):
            hint = "run the job in merge request pipelines: `rules: [{if: $CI_MERGE_REQUEST_IID}]`"
            raise CannotPost("CI_MERGE_REQUEST_IID is no number", hint)
        self._calls = Calls(
            base, {"PRIVATE-TOKEN": token, "User-Agent": "gputier"}, "GitLab", clock
        )
        self._page = f"{environ.get('CI_MERGE_REQUEST_PROJECT_URL', '')}/-/merge_requests/{request}"
        self._path = f"/projects/{project}/merge_requests/{request}/notes"

    def comments(self) -> Iterator[Comment]:
        page = "1"
        while page:
            query = f"per_page=100&page={page}&order_by=created_at&sort=asc"
            found = self._asked("GET", f"{self._path}?{query}")
            for one in cast("list[dict[str, Any]]", found.data or []):
                yield self._comment(one)
            told = found.headers.get("x-next-page", "")
            page = told if told.isdigit() else ""

    def create(self, body: str) -> Comment:
        return self._comment(self._asked("POST", self._path, {"body": body}).data)

    def edit(self, comment: Comment, body: str) -> Comment | None:
        found = self._calls.ask("PUT", f"{self._path}/{comment.id}", {"body": body})
        if found.status in (403, 404):
            return None
        return self._comment(self._checked(found, "PUT").data)

    def hide(self, comment: Comment) -> None:
        """GitLab folds nothing: the note says that it is an old one."""
        self.edit(comment, SUPERSEDED)

    def _asked(self, method: str, path: str, body: Mapping[str, Any] | None = None) -> Answer:
        return self._checked(self._calls.ask(method, path, body), method)

    def _checked(self, found: Answer, method: str) -> Answer:
        if 200 <= found.status < 300:
            return found
        hints = {
            401: "the token is wrong or has run out",
            403: "the token needs the scope `api` and the role of a reporter",
            404: "the token may not see the project, or the merge request is another",
        }
        raise CannotPost(
            f"GitLab answers {method} with status {found.status}",
            hints.get(found.status, "run it again later"),
            expected=found.status == 403,
        )

    def _comment(self, data: Any) -> Comment:
        one = cast("dict[str, Any]", data) if isinstance(data, dict) else {}
        id_ = str(one.get("id") or "")
        return Comment(id_, str(one.get("body") or ""), f"{self._page}#note_{id_}")
