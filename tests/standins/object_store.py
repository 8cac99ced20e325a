"""Object storage: S3 with signatures, expected owner and conditions; Google's JSON API.

Both keep `objects` by key. What a policy would deny is in `denied`: pairs of method and key prefix.
"""

from __future__ import annotations

import hashlib
import json
import urllib.parse
from collections.abc import Iterable, Mapping
from typing import Any

from tests.standins.server import Asked, Fault, Reply, StandIn
from tests.standins.signature import Credentials, Verifier, digest_wrong, error


class Store(StandIn):
    """What is common to both."""

    def __init__(self, bucket: str, faults: Iterable[Fault] = ()) -> None:
        super().__init__(faults)
        self.bucket = bucket
        self.objects: dict[str, bytes] = {}
        self.denied: set[tuple[str, str]] = set()
        self.writes: int = 0

    def json(self, key: str) -> Any:
        return json.loads(self.objects[key])

    def keys(self, prefix: str = "") -> list[str]:
        with self.lock:
            return sorted(key for key in self.objects if key.startswith(prefix))

    def may_not(self, method: str, key: str) -> bool:
        return any(m == method and key.startswith(prefix) for m, prefix in self.denied)

    def change(self, what: Mapping[str, Any]) -> None:
        """`{key: text}`; None removes."""
        for key, text in what.items():
            if text is None:
                self.objects.pop(key, None)
            else:
                self.objects[key] = str(text).encode()


class S3(Store):
    """One bucket, path style: `/BUCKET/KEY`."""

    def __init__(
        self,
        bucket: str,
        owner: str = "111122223333",
        region: str = "us-east-1",
        credentials: Iterable[Credentials] = (),
        faults: Iterable[Fault] = (),
    ) -> None:
        super().__init__(bucket, faults)
        self.owner = owner
        # Without the permission to list, a key that is not there is answered with 403.
        self.may_list = True
        self.verifier = Verifier(region, "s3", self.now)
        for each in credentials:
            self.verifier.admit(each)

    def reply(self, asked: Asked) -> Reply:
        refusal = self.verifier.wrong(asked) or digest_wrong(asked)
        if refusal:
            return refusal
        _, bucket, key = (*urllib.parse.unquote(asked.path).split("/", 2), "", "")[:3]
        if bucket != self.bucket:
            return error(404, "NoSuchBucket", "The specified bucket does not exist")
        expected = asked.headers.get("x-amz-expected-bucket-owner")
        if expected is None:
            # The real one takes it; our nodes must never leave it out.
            return error(400, "StandIn", "x-amz-expected-bucket-owner is missing")
        if expected != self.owner or self.may_not(asked.method, key):
            return error(403, "AccessDenied", "Access Denied")
        with self.lock:
            return self._get(key) if asked.method == "GET" else self._put(key, asked)

    def _get(self, key: str) -> Reply:
        body = self.objects.get(key)
        if body is None:
            if not self.may_list:
                return error(403, "AccessDenied", "Access Denied")
            return error(404, "NoSuchKey", "The specified key does not exist.")
        return Reply(200, body, {"ETag": etag(body)})

    def _put(self, key: str, asked: Asked) -> Reply:
        if asked.method != "PUT":
            return error(405, "MethodNotAllowed", "not by this method")
        before = self.objects.get(key)
        if asked.headers.get("if-none-match") == "*" and before is not None:
            return error(412, "PreconditionFailed", "If-None-Match")
        match = asked.headers.get("if-match")
        if match is not None and before is None:
            return error(404, "NoSuchKey", "The specified key does not exist.")
        if match is not None and before is not None and match != etag(before):
            return error(412, "PreconditionFailed", "If-Match")
        self.objects[key] = asked.body
        self.writes += 1
        return Reply(200, b"", {"ETag": etag(asked.body)})


def etag(body: bytes) -> str:
    return f'"{hashlib.sha256(body).hexdigest()[:32]}"'


class Gcs(Store):
    """The JSON API, with generations."""

    def __init__(
        self,
        bucket: str,
        token: str = "stand-in-bearer-token",  # noqa: S107 (belongs to nobody)
        faults: Iterable[Fault] = (),
    ) -> None:
        super().__init__(bucket, faults)
        self.token = token
        self.generations: dict[str, int] = {}

    def reply(self, asked: Asked) -> Reply:
        if asked.headers.get("authorization") != f"Bearer {self.token}":
            return google_error(401, "authError", "Invalid Credentials")
        root = f"/storage/v1/b/{self.bucket}/o"
        with self.lock:
            if asked.method == "GET" and asked.path.startswith(f"{root}/"):
                return self._get(asked, urllib.parse.unquote(asked.path[len(root) + 1 :]))
            if asked.method == "POST" and asked.path == f"/upload{root}":
                return self._put(asked)
        return google_error(404, "notFound", "Not Found")

    def _get(self, asked: Asked, key: str) -> Reply:
        if self.may_not("GET", key):
            return google_error(403, "forbidden", "no storage.objects.get access")
        body = self.objects.get(key)
        if body is None:
            return google_error(404, "notFound", f"No such object: {key}")
        if asked.parameters.get("alt") != "media":
            return Reply.json({"name": key, "generation": str(self.generations[key])})
        return Reply(200, body, {"x-goog-generation": str(self.generations.get(key, 1))})

    def _put(self, asked: Asked) -> Reply:
        wanted = asked.parameters
        key = wanted.get("name", "")
        if wanted.get("uploadType") != "media" or not key:
            return google_error(400, "required", "uploadType and name")
        if self.may_not("PUT", key):
            return google_error(403, "forbidden", "no storage.objects.create access")
        now = self.generations.get(key, 1 if key in self.objects else 0)
        match = wanted.get("ifGenerationMatch")
        if match is not None and int(match) != now:
            return google_error(412, "conditionNotMet", "Precondition Failed")
        self.objects[key] = asked.body
        self.generations[key] = now + 1
        self.writes += 1
        return Reply.json({"name": key, "generation": str(now + 1)})


def google_error(status: int, reason: str, message: str) -> Reply:
    """An error as Google's JSON APIs write it."""
    errors = [{"reason": reason, "message": message}]
    return Reply.json({"error": {"code": status, "message": message, "errors": errors}}, status)
