"""GitLab's REST API, as far as notes on a merge request go."""

from __future__ import annotations

import re
from typing import Any

from tests.standins.server import Asked, Reply, StandIn

TOKEN = "glpat-secret"  # noqa: S105
NOTES = r"/api/v4/projects/42/merge_requests/7/notes"


class GitLab(StandIn):
    """`notes` are those of merge request 7, the oldest first."""

    def __init__(self) -> None:
        super().__init__()
        self.notes: list[dict[str, Any]] = []

    def add(self, body: str) -> int:
        self.notes.append({"id": 1000 + len(self.notes), "body": body, "system": False})
        return int(self.notes[-1]["id"])

    def reply(self, asked: Asked) -> Reply:
        if asked.headers.get("private-token") != TOKEN:
            return Reply.json({"message": "401 Unauthorized"}, 401)
        if re.fullmatch(NOTES, asked.path):
            if asked.method == "POST":
                self.add(asked.json()["body"])
                return Reply.json(self.notes[-1], 201)
            size, page = int(asked.parameters["per_page"]), int(asked.parameters["page"])
            found = Reply.json(self.notes[(page - 1) * size : page * size])
            more = page * size < len(self.notes)
            found.headers["X-Next-Page"] = str(page + 1) if more else ""
            return found
        one = re.fullmatch(rf"{NOTES}/(\d+)", asked.path)
        for note in self.notes:
            if one and asked.method == "PUT" and note["id"] == int(one[1]):
                note["body"] = asked.json()["body"]
                return Reply.json(note)
        return Reply.json({"message": "404 Not found"}, 404)
