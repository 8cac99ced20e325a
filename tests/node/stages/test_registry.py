"""Images of the clouds' own registries: a password of the machine's role, seen by docker alone."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.node.clouds import ACCOUNT, World, settings, world
from tests.standins.server import Asked, Reply, StandIn
from tests.standins.signature import Credentials, Verifier

from gputier.node import expect, registry
from gputier.node.cloud import endpoints
from gputier.node.stages import Work

pytestmark = pytest.mark.allow_hosts(["127.0.0.1"])
IMAGE = f"{ACCOUNT}.dkr.ecr.eu-west-1.amazonaws.com/team/serve:1"
TOKEN = base64.b64encode(b"AWS:hunter2").decode()


class Ecr(StandIn):
    """GetAuthorizationToken, for those who sign for this region."""

    def __init__(self, keys: Credentials) -> None:
        super().__init__()
        self.verifier = Verifier("eu-west-1", "ecr", self.now)
        self.verifier.admit(keys)

    def reply(self, asked: Asked) -> Reply:
        refusal = self.verifier.wrong(asked)
        if refusal:
            return refusal
        if asked.headers.get("x-amz-target") != registry.TARGET:
            return Reply.json({"__type": "UnknownOperationException"}, 400)
        return Reply.json({"authorizationData": [{"authorizationToken": TOKEN}]})


@pytest.fixture
def aws(tmp_path: Path) -> Iterator[tuple[World, Ecr]]:
    with world(tmp_path, "aws") as made:
        service = Ecr(made.keys).start()
        urls = {name: one.url for name, one in {**made.services, "ecr": service}.items()}
        made.host.write(endpoints.FILE, json.dumps(urls))
        try:
            yield made, service
        finally:
            service.stop()


def job(there: World) -> Work:
    return Work(there.host, expect.read("{}"), settings(there.cloud, "file"), 60.0)


@pytest.mark.parametrize(
    ("image", "host"),
    [
        ("ubuntu", "docker.io"),
        ("vllm/vllm-openai:v0.11", "docker.io"),
        ("ghcr.io/org/serve:1", "ghcr.io"),
        ("localhost/x", "localhost"),
        ("registry:5000/x", "registry:5000"),
        (IMAGE, f"{ACCOUNT}.dkr.ecr.eu-west-1.amazonaws.com"),
    ],
)
def test_the_registry_is_the_one_that_the_image_names(image: str, host: str) -> None:
    assert registry.of(image) == host


def test_ecr_gives_a_password_for_the_role_in_the_registry_s_own_region(
    aws: tuple[World, Ecr],
) -> None:
    there, service = aws
    made = job(there)
    env = registry.login(made, IMAGE, there.identity())
    assert made.warnings == []
    assert env == {"DOCKER_CONFIG": registry.FOLDER}
    path = there.host.root / registry.FILE.lstrip("/")
    assert path.stat().st_mode & 0o777 == 0o600
    host = registry.of(IMAGE)
    assert json.loads(path.read_text("utf-8")) == {"auths": {host: {"auth": TOKEN}}}
    assert [asked.status for asked in service.seen] == [200]


def test_a_role_that_may_not_is_a_warning_and_shows_no_secret(aws: tuple[World, Ecr]) -> None:
    there, service = aws
    service.verifier.good.clear()
    made = job(there)
    assert registry.login(made, IMAGE, there.identity()) == {}
    (warning,) = made.warnings
    assert "no password for" in warning
    assert there.keys.secret not in warning
    assert there.keys.token not in warning


def test_google_takes_the_token_of_the_service_account(tmp_path: Path) -> None:
    with world(tmp_path, "gcp") as there:
        image = "europe-west4-docker.pkg.dev/project/repo/serve:1"
        made = job(there)
        assert registry.login(made, image, there.identity()) == {"DOCKER_CONFIG": registry.FOLDER}
        found = json.loads(there.host.read(registry.FILE) or "")
        auth = found["auths"]["europe-west4-docker.pkg.dev"]["auth"]
        assert base64.b64decode(auth).startswith(b"oauth2accesstoken:")
        assert made.warnings == []


@pytest.mark.parametrize("image", ["ubuntu", "ghcr.io/org/serve:1", "nvcr.io/nvidia/pytorch:1"])
def test_no_other_registry_is_told_who_the_machine_is(aws: tuple[World, Ecr], image: str) -> None:
    there, service = aws
    assert registry.login(job(there), image, there.identity()) == {}
    assert service.seen == []
    assert registry.login(job(there), IMAGE, None) == {}
