"""One way to ask a service: deadlines, tries again, and what an answer that got lost means.

`http.client` and not `urllib`: it follows no redirect (a signed request and its token belong to one
address) and reads no proxy from the environment. The metadata service is never asked by a proxy.
"""

from __future__ import annotations

import http.client
import ipaddress
import json
import random
import ssl
import urllib.parse
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from gputier.node import plain
from gputier.node.cloud import Trouble
from gputier.node.host import Host

# What another try may cure: too many requests, and a service in trouble.
BUSY = frozenset((408, 425, 429, 500, 502, 503, 504))
BODY_LIMIT = 64 * 1024 * 1024
LOCAL_NAMES = ("localhost", "metadata.google.internal", "metadata")
# X509_V_ERR_CERT_NOT_YET_VALID and X509_V_ERR_CERT_HAS_EXPIRED of OpenSSL.
OUT_OF_TIME = (9, 10)


class Patience(NamedTuple):
    """Seconds for all tries together and for one; the pauses between them grow to `most`."""

    seconds: float
    each: float = 10.0
    first: float = 0.5
    most: float = 8.0


class Ask:
    """A request. Shown without its query, headers and body, which may hold secrets."""

    def __init__(
        self,
        method: str,
        url: str,
        headers: Mapping[str, str] | None = None,
        body: bytes = b"",
    ) -> None:
        self.method = method
        self.url = url
        self.headers = dict(headers or {})
        self.body = body

    def __repr__(self) -> str:
        return f"{self.method} {self.url.partition('?')[0]}"


class Answer:
    """Status, headers (names in lower case) and body; only the status is shown.

    `unsure` says that an earlier try went out and its answer never came: it may have been acted on.
    """

    def __init__(self, status: int, headers: Mapping[str, str], body: bytes) -> None:
        self.status = status
        self.headers = dict(headers)
        self.body = body
        self.unsure = False

    def __repr__(self) -> str:
        return f"Answer({self.status})"

    @property
    def ok(self) -> bool:
        return 200 <= self.status < 300

    @property
    def text(self) -> str:
        return self.body.decode("utf-8", "replace")

    def json(self) -> dict[str, Any]:
        """The body's JSON object; empty when it is none."""
        try:
            return plain.mapping(json.loads(self.body)) or {}
        except (ValueError, RecursionError):
            return {}


class NoAnswer(Trouble):
    """No try was answered in time. `unsure`: one went out, and may have been acted on."""

    def __init__(self, ask: Ask, words: str, tries: int, unsure: bool) -> None:
        super().__init__(f"{ask!r}: {words} ({tries} tries)")
        self.words = words
        self.unsure = unsure


class _Lost(Exception):
    def __init__(self, words: str, sent: bool) -> None:
        super().__init__(words)
        self.words = words
        self.sent = sent


class Web:
    """Asks with the host's clock, by the proxies of the settings."""

    def __init__(self, host: Host, proxies: Mapping[str, str] | None = None) -> None:
        self.host = host
        self.proxies = dict(proxies or {})

    def ask(
        self,
        make: Callable[[], Ask],
        patience: Patience,
        again: Callable[[Answer], bool] = lambda _: False,
    ) -> Answer:
        """The first answer that another try cannot better, or the last one at the deadline.

        `make` builds each try afresh: a signature carries the time, credentials get renewed.
        `again` names answers beyond `BUSY` that are worth another try. Raises NoAnswer.
        """
        end = self.host.monotonic() + patience.seconds
        pause, tries, unsure = patience.first, 0, False
        while True:
            ask = make()
            tries += 1
            answer, words = None, ""
            left = end - self.host.monotonic()
            try:
                answer = transmit(ask, max(0.1, min(patience.each, left)), self.proxies)
            except _Lost as lost:
                words, unsure = lost.words, unsure or lost.sent
            if answer is not None:
                answer.unsure = unsure
                if answer.status not in BUSY and not again(answer):
                    return answer
            wait = _jittered(pause, answer)
            if self.host.monotonic() + wait >= end:
                if answer is None:
                    raise NoAnswer(ask, words, tries, unsure)
                return answer
            self.host.sleep(wait)
            pause = min(patience.most, pause * 2)


def _jittered(pause: float, answer: Answer | None) -> float:
    """Between half and the whole pause: nodes that started together do not ask together.

    A service that names its own pause gets it, up to a minute.
    """
    asked = answer.headers.get("retry-after", "") if answer else ""
    least = min(60.0, float(asked)) if asked.isdigit() else 0.0
    return max(least, pause * random.uniform(0.5, 1.0))  # noqa: S311 (no secret depends on it)


def transmit(ask: Ask, seconds: float, proxies: Mapping[str, str]) -> Answer:
    """One try. Raises _Lost."""
    address = urllib.parse.urlsplit(ask.url)
    if address.scheme not in ("http", "https") or not address.hostname:
        raise _Lost("the address is not http or https", sent=False)
    proxy = proxy_for(ask.url, proxies)
    connection, target = _connection(address, proxy, seconds)
    sent = False
    try:
        connection.connect()
        sent = True
        connection.request(ask.method, target, body=ask.body or None, headers=ask.headers)
        reply = connection.getresponse()
        body = reply.read(BODY_LIMIT + 1)
        if len(body) > BODY_LIMIT:
            raise _Lost("the answer is too large", sent)
        found = {name.lower(): value for name, value in reply.getheaders()}
        return Answer(reply.status, found, body)
    except ssl.SSLCertVerificationError as error:
        clock = ": is the clock right?" if error.verify_code in OUT_OF_TIME else ""
        raise _Lost(
            f"the certificate is not trusted: {error.verify_message}{clock}", False
        ) from None
    except (OSError, http.client.HTTPException) as error:
        raise _Lost(_words(error, seconds), sent) from None
    except ValueError:
        # Its message would quote the header, and a header may be a token.
        raise _Lost("a header or the address is malformed", sent=False) from None
    finally:
        connection.close()


def _words(error: BaseException, seconds: float) -> str:
    if isinstance(error, TimeoutError):
        return f"no answer in {seconds:.1f} s"
    if isinstance(error, http.client.RemoteDisconnected):
        return "the connection was closed without an answer"
    if isinstance(error, http.client.HTTPException):
        return f"not an HTTP answer: {type(error).__name__}"
    return str(error) or type(error).__name__


def _connection(
    address: urllib.parse.SplitResult, proxy: str | None, seconds: float
) -> tuple[http.client.HTTPConnection, str]:
    """The connection to make, and what to ask it for."""
    path = urllib.parse.urlunsplit(("", "", address.path or "/", address.query, ""))
    name = str(address.hostname)
    secure = address.scheme == "https"
    port = address.port or (443 if secure else 80)
    if proxy is None:
        if secure:
            context = ssl.create_default_context()
            return http.client.HTTPSConnection(name, port, timeout=seconds, context=context), path
        return http.client.HTTPConnection(name, port, timeout=seconds), path
    by = urllib.parse.urlsplit(proxy if "://" in proxy else f"http://{proxy}")
    where = (str(by.hostname), by.port or 3128)
    if not secure:
        return http.client.HTTPConnection(*where, timeout=seconds), address.geturl()
    context = ssl.create_default_context()
    tunnel = http.client.HTTPSConnection(*where, timeout=seconds, context=context)
    tunnel.set_tunnel(name, port)
    return tunnel, path


def proxy_for(url: str, proxies: Mapping[str, str]) -> str | None:
    """The proxy for an address. Never one for this machine or for link-local: a proxy would ask
    *its* metadata service, and hand this node the proxy's own identity."""
    address = urllib.parse.urlsplit(url)
    name = (address.hostname or "").lower()
    number = _number(name)
    if name in LOCAL_NAMES or (number and (number.is_link_local or number.is_loopback)):
        return None
    if name == "fd00:ec2::254":  # the metadata service of AWS by IPv6, which is not link-local
        return None
    for entry in proxies.get("no_proxy", "").replace(" ", "").lower().split(","):
        if entry and _spared(entry, name, number):
            return None
    return proxies.get(address.scheme) or None


def _number(name: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    try:
        return ipaddress.ip_address(name)
    except ValueError:
        return None


def _spared(
    entry: str, name: str, number: ipaddress.IPv4Address | ipaddress.IPv6Address | None
) -> bool:
    if entry == "*":
        return True
    if number is not None and "/" in entry:
        try:
            return number in ipaddress.ip_network(entry, strict=False)
        except ValueError:
            return False
    bare = entry.lstrip("*").lstrip(".")
    return name == bare or name.endswith("." + bare)
