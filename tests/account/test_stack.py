"""Who a stack deploys as, from its own file and its project's, without Pulumi."""

from __future__ import annotations

from pathlib import Path

import pytest

from gputier.account.stack import AwsAccount, GcpAccount, Role, StackAccount, read_account
from gputier.workload import read_file, read_stack, read_text

ARN = "arn:aws:iam::111122223333:role/deploy"
WORKLOADS = "  gputier:workloads: {chat: {gpu: {models: [L4]}}}\n"


def account(folder: Path, config: str, project: str = "") -> StackAccount:
    (folder / "Pulumi.yaml").write_text(f"name: ml\nruntime: python\n{project}", encoding="utf-8")
    text = f"config:\n{WORKLOADS}{config}"
    (folder / "Pulumi.prod.yaml").write_text(text, encoding="utf-8")
    return read_account(read_stack("prod", folder))


AWS = {
    "a profile": ("  aws:profile: ml\n  aws:region: us-east-1\n", AwsAccount("ml", "us-east-1")),
    "roles": (
        f"  aws:assumeRoles:\n    - roleArn: {ARN}\n      externalId: x\n    - roleArn: {ARN}2\n",
        AwsAccount(roles=(Role(ARN, "x"), Role(f"{ARN}2"))),
    ),
    "roles as text": (
        f'  aws:assumeRoles: \'[{{"roleArn": "{ARN}", "sessionName": "s"}}]\'\n',
        AwsAccount(roles=(Role(ARN, "", "s"),)),
    ),
    "the older spelling": (
        f"  aws:assumeRole: {{roleArn: {ARN}}}\n", AwsAccount(roles=(Role(ARN),)),
    ),
    "a key of the older form": ("  aws:config:profile: ml\n", AwsAccount("ml")),
    "accounts": (
        '  aws:allowedAccountIds: [12345678901, "111122223333"]\n'
        '  aws:forbiddenAccountIds: ["2"]\n',
        AwsAccount(allowed=("012345678901", "111122223333"), forbidden=("000000000002",)),
    ),
    "files": (
        "  aws:sharedConfigFiles: [a]\n  aws:sharedCredentialsFiles: [b]\n",
        AwsAccount(config_files=("a",), credentials_files=("b",)),
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", AWS)
def test_what_the_provider_is_told_of_aws_is_read(name: str, tmp_path: Path) -> None:
    config, wanted = AWS[name]
    assert account(tmp_path, config) == StackAccount("prod", wanted)


def test_what_the_provider_is_told_of_google_is_read(tmp_path: Path) -> None:
    config = (
        "  gcp:project: acme-ml\n  gcp:region: europe-west4\n  gcp:credentials: key.json\n"
        "  gcp:impersonateServiceAccount: a@b.c\n  gcp:billingProject: paid\n"
        "  gcp:impersonateServiceAccountDelegates: [d]\n"
    )
    wanted = GcpAccount("acme-ml", "europe-west4", "a@b.c", ("d",), "key.json", "paid")
    assert account(tmp_path, config).gcp == wanted


def test_what_the_project_sets_for_every_stack_counts_below_the_stacks_own(
    tmp_path: Path,
) -> None:
    project = (
        "config:\n  aws:profile: shared\n  aws:region: {value: eu-west-1}\n"
        "  gcp:project: {type: string, default: acme-ml}\n"
    )
    found = account(tmp_path, "  aws:profile: own\n", project)
    assert found.aws == AwsAccount("own", "eu-west-1")
    assert found.gcp.project == "acme-ml"


def test_what_is_encrypted_is_said_and_not_guessed(tmp_path: Path) -> None:
    config = "  aws:accessKey: {secure: v1:abc}\n  gcp:credentials: {secure: v1:abc}\n"
    found = account(tmp_path, config)
    assert (found.aws, found.gcp) == (AwsAccount(), GcpAccount())
    assert [warning.partition(",")[0] for warning in found.warnings] == [
        f"`{key}` of {tmp_path}/Pulumi.prod.yaml is encrypted"
        for key in ("aws:accessKey", "gcp:credentials")
    ]


@pytest.mark.parametrize(
    ("config", "said"),
    [("aws:accessKey: AKIA", "name a profile or a role"),
     ("gcp:accessToken: ya29", "`gcp:accessToken` is not read here"),
     ("aws:assumeRoleWithWebIdentity: {roleArn: x}", "AWS_WEB_IDENTITY_TOKEN_FILE")],
)  # fmt: skip
def test_what_is_not_read_is_said(config: str, said: str, tmp_path: Path) -> None:
    (warning,) = account(tmp_path, f"  {config}\n").warnings
    assert said in warning
    assert "AKIA" not in warning


def test_a_plain_file_has_no_settings(tmp_path: Path) -> None:
    file = tmp_path / "work.yaml"
    file.write_text("workloads: {chat: {gpu: {models: [L4]}}}\n", encoding="utf-8")
    assert read_account(read_file(file)) == StackAccount("work")
    text = read_text(file.read_bytes(), "<stdin>")
    assert read_account(text) == StackAccount("stdin")


def test_a_file_that_went_is_said(tmp_path: Path) -> None:
    account(tmp_path, "")
    declaration = read_stack("prod", tmp_path)
    (tmp_path / "Pulumi.prod.yaml").write_text("config: [", encoding="utf-8")
    (warning,) = read_account(declaration).warnings
    assert warning.startswith("the stack's settings: ")
