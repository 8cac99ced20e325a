"""GitHub's REST API, as far as comments on a pull request go: pages, rights, limits."""

from __future__ import annotations

import re
from typing import Any

from tests.standins.server import Asked, Reply, StandIn

TOKEN = "ghs_secret"  # noqa: S105
COMMENTS = r"/repos/o/r/issues/7/comments"
ONE = r"/repos/o/r/issues/comments/(\d+)"
LONGEST = 65_536


class GitHub(StandIn):
    """`comments` are those of pull request 7, the oldest first; `theirs` may not be edited."""

    def __init__(self) -> None:
        super().__init__()
        self.comments: list[dict[str, Any]] = []
        self.hidden: list[str] = []
        self.theirs: set[int] = set()
        self.may_comment = True

    def add(self, body: str) -> int:
        id_ = 1000 + len(self.comments)
        url = f"https://github.com/o/r/pull/7#issuecomment-{id_}"
        self.comments.append({"id": id_, "node_id": f"IC_{id_}", "body": body, "html_url": url})
        return id_

    def reply(self, asked: Asked) -> Reply:
        if asked.headers.get("authorization") != f"Bearer {TOKEN}":
            return Reply.json({"message": "Bad credentials"}, 401)
        if asked.path == "/graphql":
            self.hidden.append(asked.json()["variables"]["id"])
            return Reply.json({"data": {"minimizeComment": {}}})
        if re.fullmatch(COMMENTS, asked.path):
            return self._list(asked) if asked.method == "GET" else self._create(asked)
        one = re.fullmatch(ONE, asked.path)
        if one and asked.method == "PATCH":
            return self._edit(int(one[1]), asked)
        return Reply.json({"message": "Not Found"}, 404)

    def _list(self, asked: Asked) -> Reply:
        size = int(asked.parameters.get("per_page", "30"))
        page = int(asked.parameters.get("page", "1"))
        found = Reply.json(self.comments[(page - 1) * size : page * size])
        if page * size < len(self.comments):
            found.headers["Link"] = f'<{self.url}{asked.path}?page={page + 1}>; rel="next"'
        return found

    def _create(self, asked: Asked) -> Reply:
        if not self.may_comment:
            return Reply.json({"message": "Resource not accessible by integration"}, 403)
        body = asked.json()["body"]
        if len(body) > LONGEST:
            return Reply.json({"message": "Validation Failed: body is too long"}, 422)
        self.add(body)
        return Reply.json(self.comments[-1], 201)

    def _edit(self, id_: int, asked: Asked) -> Reply:
        found = next((c for c in self.comments if c["id"] == id_), None)
        if found is None:
            return Reply.json({"message": "Not Found"}, 404)
        if id_ in self.theirs:
            return Reply.json({"message": "Must have admin rights to Repository."}, 403)
        found["body"] = asked.json()["body"]
        return Reply.json(found)
