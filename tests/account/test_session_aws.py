"""Who asks AWS, where, and each way it is not answered."""

from __future__ import annotations

import os
import sys
from datetime import UTC, datetime, timedelta
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from tests.account.amazon_account import KEYS, Amazon, Session, Stubber, errors

from gputier.account import answers, session_aws
from gputier.account.answers import CannotAsk
from gputier.account.stack import AwsAccount, Role

ROLE = "arn:aws:iam::111122223333:role/deploy"
CONFIG = """\
[profile ml]
region = eu-central-1
aws_access_key_id = AKIAOFTHEPROFILE
aws_secret_access_key = x
"""


@pytest.fixture(autouse=True)
def nobody(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """No credentials of the machine that tests run on."""
    for name in [one for one in os.environ if one.startswith("AWS_")]:
        monkeypatch.delenv(name)
    (tmp_path / "config").write_text(CONFIG, encoding="utf-8")
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "config"))
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "none"))
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")


def test_a_stacks_profile_asks_in_its_region_or_in_the_stacks_own() -> None:
    found = session_aws.session(AwsAccount(profile="ml"))
    client = found.client("ec2")
    assert client.meta.region_name == "eu-central-1"
    assert client._request_signer._credentials.access_key == "AKIAOFTHEPROFILE"
    found = session_aws.session(AwsAccount(profile="ml", region="us-west-2"))
    assert found.client("ec2").meta.region_name == "us-west-2"
    assert found.client("ec2", "us-east-2").meta.region_name == "us-east-2"
    assert found.client("ec2") is found.client("ec2")


def test_a_profile_of_the_environment_counts_when_the_stack_has_none(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("AWS_PROFILE", "ml")
    assert session_aws.session(AwsAccount()).region == "eu-central-1"


def test_a_stacks_own_files_are_read(tmp_path: Path) -> None:
    file = tmp_path / "other"
    file.write_text(CONFIG.replace("profile ml", "profile other"), encoding="utf-8")
    account = AwsAccount(profile="other", config_files=(str(file),))
    assert session_aws.session(account).region == "eu-central-1"


def test_it_gives_up_soon() -> None:
    config = session_aws.session(AwsAccount(profile="ml")).client("ec2").meta.config
    assert (config.connect_timeout, config.read_timeout) == (5, 15)
    assert config.retries == {"total_max_attempts": 3, "mode": "standard"}


def test_each_role_is_assumed_by_the_one_before(monkeypatch: pytest.MonkeyPatch) -> None:
    """STS is stubbed in every session; who asks it is in the client's credentials."""
    asked: list[tuple[str, dict[str, Any]]] = []
    boto3: Any = import_module("boto3")
    plain = boto3.Session.client

    def client(self: Any, service: str, **more: Any) -> Any:
        made = plain(self, service, **more)
        if service == "sts":
            stub = Stubber(made)
            n = len(asked) + 1
            ends = datetime.now(UTC) + timedelta(hours=1)
            keys = {"AccessKeyId": f"ASIAOFTHEROLE{n:04}", "SecretAccessKey": "x",
                    "SessionToken": "t", "Expiration": ends}  # fmt: skip
            stub.add_response("assume_role", {"Credentials": keys})
            stub.activate()
            call = made.assume_role

            def assume(**parameters: Any) -> Any:
                asked.append((made._request_signer._credentials.access_key, parameters))
                return call(**parameters)

            made.assume_role = assume
        return made

    monkeypatch.setattr(boto3.Session, "client", client)
    roles = (Role(ROLE, external_id="ext"), Role(f"{ROLE}-2", session_name="mine"))
    found = session_aws.session(AwsAccount("ml", "us-east-1", roles))
    assert found.client("ec2")._request_signer._credentials.access_key == "ASIAOFTHEROLE0002"
    assert asked == [
        ("AKIAOFTHEPROFILE",
         {"RoleArn": ROLE, "RoleSessionName": "gputier", "ExternalId": "ext"}),
        ("ASIAOFTHEROLE0001", {"RoleArn": f"{ROLE}-2", "RoleSessionName": "mine"}),
    ]  # fmt: skip


def test_a_role_that_may_not_be_assumed_is_in_plain_words(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def client(self: Any, service: str, **more: Any) -> Any:
        made: Any = Session().create_client(service, region_name="us-east-1", **KEYS)
        stub = Stubber(made)
        stub.add_client_error("assume_role", "AccessDenied", "may not assume")
        stub.activate()
        return made

    boto3: Any = import_module("boto3")
    monkeypatch.setattr(boto3.Session, "client", client)
    with pytest.raises(CannotAsk) as raised:
        session_aws.session(AwsAccount("ml", roles=(Role(ROLE),)))
    assert raised.value.kind == answers.RIGHT
    assert raised.value.fix == "allow sts:AssumeRole to whoever asks"


ERRORS: dict[str, tuple[Any, str, str]] = {
    "no right": ("UnauthorizedOperation", answers.RIGHT, "allow ec2:DescribeImages to"),
    "denied elsewhere": ("AccessDeniedException", answers.RIGHT, "allow ec2:DescribeImages"),
    "expired": ("ExpiredToken", answers.CREDENTIALS, "AWS_PROFILE"),
    "too many": ("RequestLimitExceeded", answers.BUSY, "in a minute"),
    "another": ("InvalidAMIID.NotFound", answers.OTHER, ""),
    "no credentials": (errors.NoCredentialsError(), answers.CREDENTIALS, "AWS_PROFILE"),
    "sso": (errors.SSOTokenLoadError(error_msg="x"), answers.CREDENTIALS, "SSO"),
    "no way": (errors.EndpointConnectionError(endpoint_url="https://x"), answers.WAY, "reached"),
    "too slow": (errors.ReadTimeoutError(endpoint_url="https://x"), answers.WAY, "reached"),
}


@pytest.mark.parametrize("name", ERRORS)
@pytest.mark.parametrize("every", [False, True], ids=["one call", "all pages"])
def test_who_cannot_ask_is_told_why(name: str, every: bool) -> None:
    error, kind, fix = ERRORS[name]
    amazon = Amazon()
    amazon.has("ec2", "describe_images", error)
    session = amazon.session()
    ask: Any = partial(session.every, key="Images") if every else session.ask
    with pytest.raises(CannotAsk) as raised:
        ask("ec2", "describe_images", Owners=["self"])
    assert raised.value.kind == kind
    assert fix in raised.value.fix
    assert raised.value.code == (error if isinstance(error, str) else "")
    assert amazon.asked == [("ec2", "describe_images", "us-east-1", {"Owners": ["self"]})]


def test_all_pages_are_read() -> None:
    amazon = Amazon()
    images = {"Images": [{"ImageId": "ami-1"}, {"ImageId": "ami-2"}]}
    amazon.has("ec2", "describe_images", images)
    found = amazon.session().every("ec2", "describe_images", "Images")
    assert [image["ImageId"] for image in found] == ["ami-1", "ami-2"]
    amazon.has("ec2", "describe_placement_groups", {"PlacementGroups": []})  # has no pages
    assert amazon.session().every("ec2", "describe_placement_groups", "PlacementGroups") == []


@pytest.mark.parametrize(
    ("service", "call", "action"),
    [("ec2", "describe_images", "ec2:DescribeImages"),
     ("service-quotas", "get_service_quota", "servicequotas:GetServiceQuota"),
     ("iam", "get_role", "iam:GetRole")],
)  # fmt: skip
def test_the_right_that_a_call_needs_is_named(service: str, call: str, action: str) -> None:
    assert session_aws.permission(service, call) == action


def test_a_profile_that_is_not_there_is_no_traceback() -> None:
    with pytest.raises(CannotAsk, match="no-such-profile") as raised:
        session_aws.session(AwsAccount(profile="no-such-profile"))
    assert raised.value.kind == answers.CREDENTIALS


def test_without_boto_the_way_to_it_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "boto3", None)
    with pytest.raises(CannotAsk) as raised:
        session_aws.session(AwsAccount())
    assert (raised.value.kind, raised.value.fix) == (
        answers.MISSING, "pip install 'gputier[aws]'",
    )  # fmt: skip
