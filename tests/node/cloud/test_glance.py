"""The metadata service by curl: the same answers, and no secret among arguments."""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import pytest
from tests.standins import metadata as standins

from gputier.node import scrub
from gputier.node.cloud import glance, identity
from gputier.node.cloud.glance import ByCurl
from gputier.node.cloud.http import Patience, Web
from gputier.node.cloud.metadata import Aws, Gcp, Silent
from gputier.node.host import Done, Host
from gputier.node.recording import Origin, Recorder, Replay

pytestmark = [
    pytest.mark.allow_hosts(["127.0.0.1"]),
    pytest.mark.skipif(shutil.which("curl") is None, reason="curl is what is tried here"),
]
ONCE = Patience(2.0, each=2.0)
ZONE = "meta-data/placement/availability-zone-id"


class Seen(Host):
    """Keeps what was run, and with which variables."""

    def __init__(self, root: Path) -> None:
        super().__init__(str(root))
        self.ran: list[Done] = []
        self.given: list[str] = []

    def run(
        self,
        argv: Sequence[str],
        limit: float,
        env: Mapping[str, str] | None = None,
        during: object = None,  # noqa: ARG002 (the seam's shape)
    ) -> Done:
        done = Host().run(argv, limit, env)
        self.ran.append(done)
        self.given += (env or {}).values()
        return done


@pytest.fixture
def aws() -> Iterator[standins.Aws]:
    service = standins.Aws(standins.aws_values()).start()
    service.set(ZONE, "use1-az4")
    yield service
    service.stop()


def test_the_answers_are_those_that_http_gives(aws: standins.Aws, tmp_path: Path) -> None:
    by_curl, by_http = Aws(ByCurl(Host()), aws.url), Aws(Web(Host()), aws.url)
    for path in (ZONE, "meta-data/placement/host-id", "dynamic/instance-identity/document"):
        assert by_curl.get(path, ONCE) == by_http.get(path, ONCE)
    google = standins.Gcp().start()
    google.set("instance/attributes/physical_host", "/block/sub/host")
    by_curl = Gcp(ByCurl(Host(str(tmp_path))), google.url)
    assert by_curl.get("instance/attributes/physical_host", ONCE) == "/block/sub/host"
    google.stop()


def test_the_token_stands_in_no_argument(aws: standins.Aws, tmp_path: Path) -> None:
    host = Seen(tmp_path)
    assert Aws(ByCurl(host), aws.url).get(ZONE, ONCE) == "use1-az4"
    (secret,) = {header.partition(": ")[2] for header in host.given}
    assert secret in host.ran[0].out, "it was asked for, and answered with"
    assert not [done for done in host.ran if secret in " ".join(done.argv)]


def test_a_recording_replays_it_and_holds_no_token(aws: standins.Aws, tmp_path: Path) -> None:
    seen = Seen(tmp_path)
    host = Recorder(seen)
    assert Aws(ByCurl(host), aws.url).get(ZONE, ONCE) == "use1-az4"
    kept = scrub.recording(host.recording(Origin("real"), "m"))
    (secret,) = {header.partition(": ")[2] for header in seen.given}
    assert secret in host.recording(Origin("real"), "m").to_json()
    assert secret not in kept.to_json()
    assert Aws(ByCurl(Replay(kept)), aws.url).get(ZONE, ONCE) == "use1-az4"


def test_silence_is_told_as_silence(aws: standins.Aws) -> None:
    url = aws.url
    aws.stop()
    with pytest.raises(Silent, match="does not answer"):
        Aws(ByCurl(Host()), url).get(ZONE, ONCE)


def test_who_knows_itself_is_asked_over_http(aws: standins.Aws, tmp_path: Path) -> None:
    host = Seen(tmp_path)
    host.write("/etc/gputier/endpoints.json", f'{{"metadata": "{aws.url}"}}')
    assert isinstance(getattr(glance.of(host, "aws"), "web", None), ByCurl)
    host.write(identity.FILE, identity.Identity("aws", "1", "r", "z", "i-1").to_json())
    service = glance.of(host, "aws")
    assert service is not None
    assert (service.get(ZONE, ONCE), host.ran) == ("use1-az4", [])
    assert glance.of(host, "tencent") is None
