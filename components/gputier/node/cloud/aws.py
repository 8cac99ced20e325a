"""Signed requests to AWS: credentials renewed, throttling waited out, a wrong clock made up for."""

from __future__ import annotations

import email.utils
import re
from collections.abc import Callable, Mapping
from typing import NamedTuple

from gputier.node.cloud import Refused
from gputier.node.cloud.credentials import RoleKeys
from gputier.node.cloud.http import Answer, Ask, Patience, Web
from gputier.node.cloud.sign import Scope, headers

ENDED = ("ExpiredToken", "ExpiredTokenException", "TokenRefreshRequired", "InvalidToken")
LATE = ("RequestTimeTooSkewed", "RequestExpired", "SignatureDoesNotMatch")
# The query APIs throttle with status 400.
THROTTLED = ("Throttling", "ThrottlingException", "RequestLimitExceeded", "RequestThrottled")
# AWS takes a signature for five minutes (S3: fifteen); less than this is not worth another try.
SKEW_SECONDS = 60.0
MESSAGE_LIMIT = 300
# A refused signature is answered with the text that should have been signed, session token and all.
QUOTED = re.compile(
    r"(?:The Canonical String|The String-to-Sign|x-amz-security-token).*", re.I | re.S
)


class Send(NamedTuple):
    """A request before it is signed."""

    method: str
    url: str
    headers: Mapping[str, str]
    body: bytes = b""


class Signed:
    """Sends to one service of one region with the instance role."""

    def __init__(self, web: Web, keys: RoleKeys, region: str, service: str) -> None:
        self.web = web
        self.keys = keys
        self.region = region
        self.service = service
        self.skew = 0.0
        self._renewals = 0

    def send(
        self, what: Send, patience: Patience, again: Callable[[Answer], bool] = lambda _: False
    ) -> Answer:
        """The answer, whatever its status. Raises NoAnswer, Denied, Silent."""
        self._renewals = 0
        return self.web.ask(
            lambda: self._signed(what),
            patience,
            lambda answer: self._curable(answer) or again(answer),
        )

    def _signed(self, what: Send) -> Ask:
        scope = Scope(self.web.host.now() + self.skew, self.region, self.service)
        keys = self.keys.get()
        found = headers(keys, scope, what.method, what.url, what.headers, what.body)
        return Ask(what.method, what.url, found, what.body)

    def _curable(self, answer: Answer) -> bool:
        if answer.status not in (400, 401, 403):
            return False
        code, _ = error(answer)
        if code in THROTTLED:
            return True
        if code in ENDED and self._renewals < 2:
            self._renewals += 1
            self.keys.drop()
            return True
        return code in LATE and self._set_clock(answer)

    def _set_clock(self, answer: Answer) -> bool:
        """Sign by the service's clock when ours is off; false when that is not the trouble."""
        there = moment(answer)
        if there is None:
            return False
        found = there - self.web.host.now()
        moved = abs(found - self.skew) > SKEW_SECONDS
        self.skew = found if moved else self.skew
        return moved


def moment(answer: Answer) -> float | None:
    """When a service answered, by its own clock; None when it does not say."""
    try:
        return email.utils.parsedate_to_datetime(answer.headers.get("date", "")).timestamp()
    except (TypeError, ValueError, IndexError):
        return None


def error(answer: Answer) -> tuple[str, str]:
    """Code and message of an error in XML, both "" when there are none. Only these two are read:
    the rest of an error repeats the request."""
    text = answer.text
    code = re.search(r"<Code>([^<]*)</Code>", text)
    message = re.search(r"<Message>([^<]*)</Message>", text)
    said = QUOTED.sub("", message[1]) if message else ""
    return (code[1] if code else ""), " ".join(said.split())[:MESSAGE_LIMIT]


def refused(what: str, answer: Answer) -> Refused:
    return Refused(what, answer.status, *error(answer))
