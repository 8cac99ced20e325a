"""Requests end in time, are tried again where that helps, and go by a proxy only where they may."""

from __future__ import annotations

import socket
import ssl
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.node.clouds import Quick
from tests.standins.server import Asked, Fault, Reply, StandIn

from gputier.node.cloud import http
from gputier.node.cloud.http import Answer, Ask, NoAnswer, Patience, Web, proxy_for

pytestmark = pytest.mark.allow_hosts(["127.0.0.1"])
SOME = Patience(20.0, each=5.0)


class Echo(StandIn):
    def reply(self, asked: Asked) -> Reply:
        return Reply(200, asked.body or b"hello", {"Retry-After": "7"})


@pytest.fixture
def echo() -> Iterator[Echo]:
    service = Echo().start()
    yield service
    service.stop()


@pytest.fixture
def web(tmp_path: Path) -> Web:
    return Web(Quick(tmp_path))


def pauses(web: Web) -> list[float]:
    assert isinstance(web.host, Quick)
    return web.host.pauses


@pytest.mark.parametrize("status", sorted(http.BUSY))
def test_a_service_in_trouble_is_asked_again(echo: Echo, web: Web, status: int) -> None:
    echo.faults.append(Fault(status=status, times=2))
    assert web.ask(lambda: Ask("GET", echo.url), SOME).text == "hello"
    assert [asked.status for asked in echo.seen] == [status, status, 200]


@pytest.mark.parametrize("status", [400, 401, 403, 404, 409, 412, 301])
def test_an_answer_that_no_other_try_betters_is_taken(echo: Echo, web: Web, status: int) -> None:
    echo.faults.append(Fault(status=status))
    assert web.ask(lambda: Ask("GET", echo.url), SOME).status == status
    assert len(echo.seen) == 1


def test_a_redirect_is_never_followed(echo: Echo, web: Web) -> None:
    """A signature and a token belong to one address."""

    class Elsewhere(StandIn):
        def reply(self, asked: Asked) -> Reply:
            return Reply(307, b"", {"Location": f"{echo.url}{asked.path}stolen"})

    service = Elsewhere().start()
    assert web.ask(lambda: Ask("GET", service.url), SOME).status == 307
    service.stop()
    assert echo.seen == []


def test_the_last_answer_stands_when_the_time_is_up(echo: Echo, web: Web) -> None:
    echo.faults.append(Fault(status=503))
    assert web.ask(lambda: Ask("GET", echo.url), SOME).status == 503
    assert 11.9 < sum(pauses(web)) <= 20, "the longest pause may not have fitted in"


def test_pauses_grow_are_jittered_and_stop_growing(echo: Echo, web: Web) -> None:
    echo.faults.append(Fault(drop=True))
    with pytest.raises(NoAnswer):
        web.ask(lambda: Ask("GET", echo.url), Patience(120.0, first=1.0, most=4.0))
    found = pauses(web)
    for pause, whole in zip(found[:4], [1.0, 2.0, 4.0, 4.0], strict=True):
        assert whole / 2 <= pause <= whole
    assert len(set(found)) > 3, "nodes that started together would ask together"


def test_a_pause_that_the_service_names_is_kept(echo: Echo, web: Web) -> None:
    class Busy(StandIn):
        def reply(self, asked: Asked) -> Reply:
            return Reply(200 if len(self.seen) > 1 else 429, asked.body, {"Retry-After": "7"})

    service = Busy().start()
    assert web.ask(lambda: Ask("GET", service.url), SOME).ok
    service.stop()
    assert pauses(web)[0] == 7.0


@pytest.mark.parametrize("fault", [Fault(drop=True, times=1), Fault(lost=True, times=1)])
def test_a_lost_answer_is_told(echo: Echo, web: Web, fault: Fault) -> None:
    echo.faults.append(fault)
    answer = web.ask(lambda: Ask("PUT", echo.url, {}, b"x"), SOME)
    assert answer.ok
    assert answer.unsure, "from here, nobody can tell whether it was acted on"
    assert not web.ask(lambda: Ask("PUT", echo.url, {}, b"x"), SOME).unsure


def test_a_slow_answer_is_cut_and_tried_again(echo: Echo, web: Web) -> None:
    echo.faults.append(Fault(delay=0.5, times=1))
    answer = web.ask(lambda: Ask("GET", echo.url), Patience(20.0, each=0.1))
    assert answer.unsure


def test_nobody_there_is_no_answer_and_nothing_was_sent(web: Web) -> None:
    with pytest.raises(NoAnswer, match="refused") as error:
        web.ask(lambda: Ask("GET", "http://127.0.0.1:1/secret?token=t"), SOME)
    assert not error.value.unsure
    assert "token" not in str(error.value)


def test_a_service_that_starts_late_is_waited_for(tmp_path: Path) -> None:
    service = Echo().start(late=0.3)

    class Patient(Quick):
        def sleep(self, seconds: float) -> None:
            super().sleep(seconds)
            service.__dict__["_listening"].wait(2)

    answer = Web(Patient(tmp_path)).ask(lambda: Ask("GET", service.url), SOME)
    service.stop()
    assert answer.ok


@pytest.mark.parametrize("url", ["ftp://h/x", "no address", "http:///x", "file:///etc/passwd"])
def test_only_http_is_asked(web: Web, url: str) -> None:
    with pytest.raises(NoAnswer, match="not http"):
        web.ask(lambda: Ask("GET", url), Patience(1.0))


def test_a_secret_in_a_header_is_in_no_message(echo: Echo, web: Web) -> None:
    ask = Ask("GET", f"{echo.url}/x?X-Amz-Signature=s3cret", {"Authorization": "s3cret\nx"})
    with pytest.raises(NoAnswer) as error:
        web.ask(lambda: ask, Patience(1.0))
    assert "s3cret" not in f"{error.value}{error.value!r}{ask!r}"
    assert error.value.__suppress_context__ or error.value.__cause__ is None


def test_a_body_is_not_shown() -> None:
    assert "s3cret" not in f"{Answer(200, {'x': 's3cret'}, b's3cret')!r}"


def test_what_is_not_http_is_said(web: Web) -> None:
    server = socket.create_server(("127.0.0.1", 0))

    def talk() -> None:
        while True:
            try:
                connection, _ = server.accept()
            except OSError:
                return
            connection.sendall(b"SSH-2.0-OpenSSH\r\n")
            connection.close()

    threading.Thread(target=talk, daemon=True).start()
    port = server.getsockname()[1]
    with pytest.raises(NoAnswer, match=r"not an HTTP answer|closed|reset"):
        web.ask(lambda: Ask("GET", f"http://127.0.0.1:{port}/"), Patience(2.0))
    server.close()


PROXIES = {
    "http": "http://proxy:3128",
    "https": "http://secure:3129",
    "no_proxy": "internal.example,.svc, 10.0.0.0/8",
}


@pytest.mark.parametrize(
    ("url", "proxy"),
    [
        ("http://169.254.169.254/latest", None),
        ("http://[fe80::1]/x", None),
        ("http://[fd00:ec2::254]/latest", None),
        ("http://127.0.0.1:8080/", None),
        ("http://metadata.google.internal/x", None),
        ("https://s3.us-east-1.amazonaws.com/b", "http://secure:3129"),
        ("http://mirror.example/", "http://proxy:3128"),
        ("http://internal.example/", None),
        ("http://a.internal.example/", None),
        ("http://notinternal.example/", "http://proxy:3128"),
        ("http://x.svc/", None),
        ("http://10.1.2.3/", None),
        ("http://11.1.2.3/", "http://proxy:3128"),
    ],
)
def test_a_proxy_is_never_asked_for_what_is_near(url: str, proxy: str | None) -> None:
    assert proxy_for(url, PROXIES) == proxy
    assert proxy_for(url, {**PROXIES, "no_proxy": "*"}) is None


def test_a_request_by_a_proxy_names_the_whole_address(echo: Echo, web: Web) -> None:
    by = Web(web.host, {"http": echo.url})
    assert by.ask(lambda: Ask("GET", "http://far.example/x?y=1"), SOME).ok
    assert (echo.seen[0].path, echo.seen[0].query) == ("/x", "y=1")


def test_a_secure_request_by_a_proxy_is_a_tunnel(echo: Echo, web: Web) -> None:
    by = Web(web.host, {"https": echo.url})
    with pytest.raises(NoAnswer, match=r"Tunnel connection failed|501"):
        by.ask(lambda: Ask("GET", "https://far.example/x"), Patience(1.0))


def test_a_wrong_clock_is_named_when_a_certificate_is_out_of_time(
    web: Web, monkeypatch: pytest.MonkeyPatch
) -> None:
    error = ssl.SSLCertVerificationError()
    error.verify_code, error.verify_message = 10, "certificate has expired"

    class Connection:
        def connect(self) -> None:
            raise error

        def close(self) -> None:
            pass

    def made(*_: object) -> tuple[Connection, str]:
        return Connection(), "/"

    monkeypatch.setattr(http, "_connection", made)
    with pytest.raises(NoAnswer, match="is the clock right"):
        web.ask(lambda: Ask("GET", "https://h/"), Patience(0.2))
