"""`gputier lock --images` against botocore's own models: what is asked, and each way it fails."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.account.amazon_account import Amazon, errors
from tests.cli.test_lock import LOCK
from tests.cli.world import Run

from gputier.account.session_aws import AwsSession
from gputier.account.stack import AwsAccount
from gputier.catalog import Catalog
from gputier.cli import lock_images

AMI = "ami-0abc12345678def00"


class Cloud(Amazon):
    """SSM and EC2, and who asked them."""

    def __init__(self) -> None:
        super().__init__()
        self.accounts: list[AwsAccount] = []

    def as_stack(self, account: AwsAccount) -> AwsSession:
        self.accounts.append(account)
        return self.session()

    def has_images(self, images: list[dict[str, Any]]) -> None:
        self.has("ssm", "get_parameter", {"Parameter": {"Value": AMI}})
        self.has("ec2", "describe_images", {"Images": images})

    def regions(self, call: str) -> list[str]:
        return [region for _, name, region, _ in self.asked if name == call]


@pytest.fixture
def cloud(monkeypatch: pytest.MonkeyPatch) -> Cloud:
    made = Cloud()
    monkeypatch.setattr(lock_images, "session", made.as_stack)
    return made


def image(gib: int = 75, root: str = "/dev/sda1") -> dict[str, Any]:
    disks = [{"DeviceName": root, "Ebs": {"VolumeSize": gib}},
             {"DeviceName": "/dev/sdb", "VirtualName": "ephemeral0"}]  # fmt: skip
    return {"ImageId": AMI, "RootDeviceName": root, "BlockDeviceMappings": disks}


def test_images_are_pinned_and_each_is_asked_for_once(
    run: Run, project: Path, small: Catalog, cloud: Cloud
) -> None:
    run("lock", "prod")
    cloud.has_images([image()])
    ran = run("lock", "prod", "--images")
    assert ran.code == 0, ran.err
    assert "another image" in ran.out
    assert cloud.regions("get_parameter") == ["us-east-1"]
    assert LOCK.read_text(encoding="utf-8").count(f"image: {AMI}") == 3
    assert run("lock", "prod", "--images").out == f"{LOCK}: up to date, 3 workloads\n"
    assert run("lock", "prod", "--check").code == 0


def test_a_named_workload_is_asked_for_again(
    run: Run, project: Path, small: Catalog, cloud: Cloud
) -> None:
    cloud.has_images([image()])
    run("lock", "prod", "--images")
    assert run("lock", "prod", "--images", "chat").code == 0
    assert cloud.regions("describe_images") == ["us-east-1"] * 2


def test_a_stack_s_own_profile_and_roles_ask(
    run: Run, project: Path, small: Catalog, cloud: Cloud
) -> None:
    path = project / "stacks" / "Pulumi.prod.yaml"
    text = path.read_text("utf-8").replace("config:\n", "config:\n  aws:profile: ml\n", 1)
    path.write_text(text, encoding="utf-8")
    cloud.has_images([image()])
    assert run("lock", "prod", "--images").code == 0
    assert [account.profile for account in cloud.accounts] == ["ml"]


FAILURES: dict[str, tuple[Callable[[Cloud], None], str, str]] = {
    "no such parameter": (
        lambda c: c.has("ssm", "get_parameter", "ParameterNotFound"),
        "in us-east-1: ParameterNotFound: no", "it needs ssm:GetParameter",
    ),
    "no right": (
        lambda c: c.has("ssm", "get_parameter", "AccessDeniedException"),
        "AccessDeniedException: no", "it needs ssm:GetParameter and ec2:DescribeImages",
    ),
    "no image": (lambda c: c.has_images([]), "there is no such image", "try again later"),
    "too large": (lambda c: c.has_images([image(gib=200)]), "needs 200 GiB", "an image that fits"),
    "no credentials": (
        lambda c: c.has("ssm", "get_parameter", errors.NoCredentialsError()),
        "us-east-1: Unable to locate credentials", "AWS_PROFILE",
    ),
    "no way there": (
        lambda c: c.has("ec2", "describe_images",
                        errors.EndpointConnectionError(endpoint_url="https://x"))
        or c.has("ssm", "get_parameter", {"Parameter": {"Value": AMI}}),
        "Could not connect", "AWS has to be reached from here",
    ),
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


def test_a_profile_that_is_not_there_is_no_traceback(
    run: Run, project: Path, small: Catalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With boto3 itself: it looks for the profile before any service is asked."""
    monkeypatch.setenv("AWS_PROFILE", "no-such-profile")
    ran = run("lock", "prod", "--images")
    assert ran.code == 2
    assert "no-such-profile" in ran.err
    assert "AWS_PROFILE" in ran.err


def test_without_boto_the_way_to_it_is_named(
    run: Run, project: Path, small: Catalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "boto3", None)
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
