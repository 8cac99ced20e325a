"""The stack's bucket: reports are put, shared state is put only over what was read before.

One small interface over S3 and Google Cloud Storage. A version is S3's ETag or Google's generation;
None stands for "not there".
"""

from __future__ import annotations

import urllib.parse
from typing import NamedTuple

from gputier.node import plain
from gputier.node.cloud import Refused
from gputier.node.cloud.aws import Send, Signed, moment, refused
from gputier.node.cloud.credentials import ServiceToken
from gputier.node.cloud.http import Answer, Ask, Patience, Web

PATIENCE = Patience(60.0)
JSON = "application/json"


class Stored(NamedTuple):
    body: bytes
    version: str


class Store:
    """`get`, `put`, `put_if`. All raise Trouble; Refused where the store said no."""

    def __init__(self, web: Web) -> None:
        self.web = web
        self._ahead = 0.0

    def now(self) -> float:
        """Seconds since 1970 by the store's clock, once it has answered: the one that all nodes
        of a fleet share, when this node's own is off."""
        return self.web.host.now() + self._ahead

    def _heard(self, answer: Answer) -> Answer:
        there = moment(answer)
        if there is not None:
            self._ahead = there - self.web.host.now()
        return answer

    def get(self, key: str, patience: Patience = PATIENCE) -> Stored | None:
        """An object and its version, None when there is none."""
        raise NotImplementedError

    def put(self, key: str, body: bytes, patience: Patience = PATIENCE) -> None:
        """Write it, whatever was there."""
        raise NotImplementedError

    def put_if(
        self, key: str, body: bytes, version: str | None, patience: Patience = PATIENCE
    ) -> bool:
        """Write it if the version still stands; False when somebody else was there first, which
        after a lost answer may have been ourselves: read again."""
        raise NotImplementedError


class S3(Store):
    """Every request says whose bucket it has to be: a bucket's name can be taken by anybody.

    `base` is the bucket's own address (endpoints.bucket).
    """

    def __init__(self, signed: Signed, base: str, bucket: str, owner: str) -> None:
        super().__init__(signed.web)
        self.signed = signed
        self.base = base
        self.bucket = bucket
        self.owner = owner

    def get(self, key: str, patience: Patience = PATIENCE) -> Stored | None:
        answer = self._send("GET", key, b"", {}, patience)
        if answer.status == 404:
            return None
        self._good(answer, "get", key)
        return Stored(answer.body, answer.headers.get("etag", ""))

    def put(self, key: str, body: bytes, patience: Patience = PATIENCE) -> None:
        self._good(self._send("PUT", key, body, {"Content-Type": JSON}, patience), "put", key)

    def put_if(
        self, key: str, body: bytes, version: str | None, patience: Patience = PATIENCE
    ) -> bool:
        wanted = {"If-None-Match": "*"} if version is None else {"If-Match": version}
        answer = self._send("PUT", key, body, {"Content-Type": JSON, **wanted}, patience)
        # 409: another conditional write was under way. 404: what we would replace is gone.
        if answer.status in (409, 412) or (answer.status == 404 and version is not None):
            return False
        self._good(answer, "put", key)
        return True

    def _send(
        self, method: str, key: str, body: bytes, more: dict[str, str], patience: Patience
    ) -> Answer:
        url = f"{self.base}/{urllib.parse.quote(key, safe='/~')}"
        found = {**more, "x-amz-expected-bucket-owner": self.owner}
        return self._heard(self.signed.send(Send(method, url, found, body), patience))

    def _good(self, answer: Answer, verb: str, key: str) -> None:
        if not answer.ok:
            raise refused(f"{verb} s3://{self.bucket}/{key}", answer)


class Gcs(Store):
    """Google's JSON API. A bucket there has no owner to check: its name holds the project's."""

    def __init__(self, web: Web, token: ServiceToken, base: str, bucket: str) -> None:
        super().__init__(web)
        self.token = token
        self.base = base
        self.bucket = bucket

    def get(self, key: str, patience: Patience = PATIENCE) -> Stored | None:
        url = f"{self.base}/storage/v1/b/{self.bucket}/o/{_whole(key)}?alt=media"
        answer = self._send("GET", url, b"", patience)
        if answer.status == 404:
            return None
        self._good(answer, "get", key)
        return Stored(answer.body, answer.headers.get("x-goog-generation", ""))

    def put(self, key: str, body: bytes, patience: Patience = PATIENCE) -> None:
        self._good(self._send("POST", self._upload(key), body, patience), "put", key)

    def put_if(
        self, key: str, body: bytes, version: str | None, patience: Patience = PATIENCE
    ) -> bool:
        url = f"{self._upload(key)}&ifGenerationMatch={version or '0'}"
        answer = self._send("POST", url, body, patience)
        if answer.status in (409, 412):
            return False
        self._good(answer, "put", key)
        return True

    def _upload(self, key: str) -> str:
        return (
            f"{self.base}/upload/storage/v1/b/{self.bucket}/o?uploadType=media&name={_whole(key)}"
        )

    def _send(self, method: str, url: str, body: bytes, patience: Patience) -> Answer:
        what = Send(method, url, {"Content-Type": JSON}, body)
        return self._heard(bearer(self.web, self.token, what, patience))

    def _good(self, answer: Answer, verb: str, key: str) -> None:
        if not answer.ok:
            raise google_refused(f"{verb} gs://{self.bucket}/{key}", answer)


def bearer(web: Web, token: ServiceToken, what: Send, patience: Patience) -> Answer:
    """Send with the service account's token; one that ran out is renewed once."""
    renewed: list[bool] = []

    def make() -> Ask:
        found = {**what.headers, "Authorization": f"Bearer {token.get()}"}
        return Ask(what.method, what.url, found, what.body)

    def again(answer: Answer) -> bool:
        if answer.status != 401 or renewed:
            return False
        renewed.append(True)
        token.drop()
        return True

    return web.ask(make, patience, again)


def google_refused(what: str, answer: Answer) -> Refused:
    """The error of one of Google's JSON APIs."""
    found = plain.mapping(answer.json().get("error")) or {}
    message = str(found.get("message") or "")
    details = [plain.mapping(item) or {} for item in plain.sequence(found.get("errors")) or ()]
    reason = str(details[0].get("reason") or "") if details else ""
    return Refused(what, answer.status, reason, " ".join(message.split())[:300])


def _whole(key: str) -> str:
    return urllib.parse.quote(key, safe="")
