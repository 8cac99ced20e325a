"""`gputier lock --images` against botocore's own models: what is asked, and each way it fails."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from tests.cli.test_lock import LOCK
from tests.cli.world import Run

from gputier.catalog import Catalog
from gputier.cli import lock_images

AMI = "ami-0abc12345678def00"
# No stubs of types come with it.
errors: Any = import_module("botocore.exceptions")
Session: Any = import_module("botocore.session").Session
Stubber: Any = import_module("botocore.stub").Stubber


class Cloud:
    """SSM and EC2 with queued answers. Stubber checks every parameter against the service."""

    def __init__(self) -> None:
        make: Any = Session().create_client
        keys = {"aws_access_key_id": "x", "aws_secret_access_key": "x"}
        self.ssm, self.ec2 = (make(n, region_name="us-east-1", **keys) for n in ("ssm", "ec2"))
        self.asked: list[str] = []
        self.stubs = Stubber(self.ssm), Stubber(self.ec2)
        for stub in self.stubs:
            stub.activate()

    def clients(self, region: str) -> tuple[Any, ...]:
        self.asked.append(region)
        return self.ssm, self.ec2

    def has(self, images: list[dict[str, Any]]) -> None:
        self.stubs[0].add_response("get_parameter", {"Parameter": {"Value": AMI}})
        self.stubs[1].add_response("describe_images", {"Images": images}, {"ImageIds": [AMI]})


@pytest.fixture
def cloud(monkeypatch: pytest.MonkeyPatch) -> Iterator[Cloud]:
    made = Cloud()
    monkeypatch.setattr(lock_images, "_boto", lambda: (errors, made.clients))
    lock_images.look.cache_clear()
    yield made
    lock_images.look.cache_clear()


def image(gib: int = 75, root: str = "/dev/sda1") -> dict[str, Any]:
    disks = [{"DeviceName": root, "Ebs": {"VolumeSize": gib}},
             {"DeviceName": "/dev/sdb", "VirtualName": "ephemeral0"}]  # fmt: skip
    return {"ImageId": AMI, "RootDeviceName": root, "BlockDeviceMappings": disks}


def test_images_are_pinned_and_each_is_asked_for_once(
    run: Run, project: Path, small: Catalog, cloud: Cloud
) -> None:
    run("lock", "prod")
    cloud.has([image()])
    ran = run("lock", "prod", "--images")
    assert ran.code == 0, ran.err
    assert "another image" in ran.out
    assert cloud.asked == ["us-east-1"]
    assert LOCK.read_text(encoding="utf-8").count(f"image: {AMI}") == 3
    assert run("lock", "prod", "--images").out == f"{LOCK}: up to date, 3 workloads\n"
    assert run("lock", "prod", "--check").code == 0


def test_a_named_workload_is_asked_for_again(
    run: Run, project: Path, small: Catalog, cloud: Cloud
) -> None:
    cloud.has([image()])
    run("lock", "prod", "--images")
    cloud.has([image()])
    lock_images.look.cache_clear()
    assert run("lock", "prod", "--images", "chat").code == 0
    assert len(cloud.asked) == 2


FAILURES: dict[str, tuple[Callable[[Cloud], None], str, str]] = {
    "no such parameter": (
        lambda c: c.stubs[0].add_client_error("get_parameter", "ParameterNotFound", "none"),
        "in us-east-1: ParameterNotFound: none", "it needs ssm:GetParameter",
    ),
    "no right": (
        lambda c: c.stubs[0].add_client_error("get_parameter", "AccessDeniedException", "no"),
        "AccessDeniedException: no", "it needs ssm:GetParameter and ec2:DescribeImages",
    ),
    "no image": (lambda c: c.has([]), "there is no such image", "try again later"),
    "too large": (lambda c: c.has([image(gib=200)]), "needs 200 GiB", "an image that fits"),
}  # fmt: skip


@pytest.mark.parametrize("name", FAILURES)
def test_what_cannot_be_found_is_said_in_plain_words_and_nothing_is_written(
    name: str, run: Run, project: Path, small: Catalog, cloud: Cloud
) -> None:
    fail, message, hint = FAILURES[name]
    run("lock", "prod")
    before = LOCK.read_bytes()
    fail(cloud)
    ran = run("lock", "prod", "--images")
    assert ran.code == 2
    assert message in ran.err
    assert hint in ran.err
    assert "Traceback" not in ran.err
    assert LOCK.read_bytes() == before


@pytest.mark.parametrize(
    ("error", "hint"),
    [
        (errors.NoCredentialsError(), "AWS_PROFILE"),
        (errors.EndpointConnectionError(endpoint_url="https://x"),
         "AWS has to be reached from here"),
        (errors.ProfileNotFound(profile="x"), "AWS_PROFILE"),
    ],
    ids=["no credentials", "no way there", "no such profile"],
)  # fmt: skip
def test_who_cannot_ask_is_told_why(
    error: Exception, hint: str, run: Run, project: Path, small: Catalog,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    def failing(region: str) -> tuple[Any, ...]:
        raise error

    monkeypatch.setattr(lock_images, "_boto", lambda: (errors, failing))
    ran = run("lock", "prod", "--images")
    assert ran.code == 2
    assert hint in ran.err


def test_a_profile_that_is_not_there_is_no_traceback(
    run: Run, project: Path, small: Catalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With boto3 itself: it looks for the profile before any service is asked."""
    monkeypatch.setenv("AWS_PROFILE", "no-such-profile")
    lock_images.look.cache_clear()
    ran = run("lock", "prod", "--images")
    assert ran.code == 2
    assert "no-such-profile" in ran.err
    assert "AWS_PROFILE" in ran.err


def test_without_boto_the_way_to_it_is_named(
    run: Run, project: Path, small: Catalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    def missing(name: str) -> None:
        raise ModuleNotFoundError(name)

    monkeypatch.setattr(lock_images, "import_module", missing)
    lock_images.look.cache_clear()
    ran = run("lock", "prod", "--images")
    assert ran.code == 2
    assert "pip install 'gputier[aws]'" in ran.err


@pytest.mark.parametrize("option", ["--check", "--watch=10"])
def test_looking_and_pinning_are_two_commands(
    option: str, run: Run, project: Path, small: Catalog
) -> None:
    ran = run("lock", "prod", "--images", option)
    assert ran.code == 2
    assert "--images writes, and --check and --watch only look" in ran.err
