"""Secrets in user data: found in every packing, told without being shown, and with few false
alarms."""

from __future__ import annotations

import base64
import gzip
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.aws import world
from tests.conftest import ROOT
from tests.policies import cases
from tests.policies.tables import Case, check

from gputier_policies.secrets import SECRETS, secrets_in
from gputier_policies.values import UNKNOWN, Resource

INSTANCE = "aws:ec2/instance:Instance"
SPOT = "aws:ec2/spotInstanceRequest:SpotInstanceRequest"
TEMPLATE = "aws:ec2/launchTemplate:LaunchTemplate"
CONFIGURATION = "aws:ec2/launchConfiguration:LaunchConfiguration"
SPOT_FLEET = "aws:ec2/spotFleetRequest:SpotFleetRequest"
GCP = (
    "gcp:compute/instance:Instance",
    "gcp:compute/instanceFromTemplate:InstanceFromTemplate",
    "gcp:compute/instanceTemplate:InstanceTemplate",
    "gcp:compute/regionInstanceTemplate:RegionInstanceTemplate",
)
PROJECT = "gcp:compute/projectMetadata:ProjectMetadata"
ITEM = "gcp:compute/projectMetadataItem:ProjectMetadataItem"

# Put together here, so that nothing that looks for secrets in files stops at this one.
A, D = "Ab3" * 30, "0a1b2c3d4e" * 8
SHAPES = {
    "an AWS access key id": "AKIA" + "IOSFODNN7EXAMPLE",
    "a private key": "-----BEGIN RSA " + "PRIVATE KEY-----",
    "a GitHub token": "ghp_" + A[:36],
    "a GitLab token": "glpat-" + A[:20],
    "a Hugging Face token": "hf_" + "aBcDeF" * 6,
    "a Slack token": "xoxb-" + A[:24],
    "a Google API key": "AIza" + A[:35],
    "a Google OAuth token": "ya29." + A[:40],
    "an OpenAI or Anthropic key": "sk-proj-" + A[:40],
    "an NGC key": "nvapi-" + A[:60],
    "a Weights & Biases key": "WANDB_API_KEY=" + D[:40],
    "a Pulumi token": "pul-" + D[:40],
    "a JSON web token": "eyJ" + A[:20] + ".eyJ" + A[:20] + "." + A[:20],
    "a password in an address": "postgres://app:" + "hunter22@db.internal/x",
}
SCRIPT = "#!/bin/bash\nset -eu\necho ready\n"
TOKEN = SHAPES["a GitHub token"]
LEAKING = SCRIPT + f"git clone https://x-access-token:{TOKEN}@github.com/a/b\n"


def b64(text: str | bytes) -> str:
    return base64.b64encode(text.encode() if isinstance(text, str) else text).decode()


MIME = (
    "Content-Type: multipart/mixed; boundary=x\n\n--x\nContent-Type: text/x-shellscript\n"
    "Content-Transfer-Encoding: base64\n\n"
    + "\n".join(b64(LEAKING)[n : n + 76] for n in range(0, len(b64(LEAKING)), 76))
    + "\n--x--\n"
)
CLOUD_CONFIG = (
    "#cloud-config\nwrite_files:\n- path: /etc/a\n  encoding: gz+b64\n  content: "
    + b64(gzip.compress(LEAKING.encode()))
    + "\n"
)
PACKED = {
    "plain": b64(LEAKING),
    "compressed": b64(gzip.compress(LEAKING.encode())),
    "mime": b64(MIME),
    "compressed mime": b64(gzip.compress(MIME.encode())),
    "cloud-config": b64(CLOUD_CONFIG),
}


@pytest.mark.parametrize("kind", SHAPES)
def test_each_shape_is_known(kind: str) -> None:
    found = list(secrets_in(f"first\nuse {SHAPES[kind]} here"))
    assert (kind, 2) in {(one.kind, one.line) for one in found}


@pytest.mark.parametrize(
    "line",
    [
        "export DB_PASSWORD=hunter2abc",
        "DB_PASSWORD='correct horse 9'",
        "mysql --password s3cretpw1",
        "mysql --admin-password=s3cretpw1",
        'secret_key = "abcdef123456"',
        '{"token": "abc123def456"}',
        "AWS_SECRET_ACCESS_KEY=" + A[:40],
        "api-key: 0123456789ab",
        "passphrase: Tr0ub4dor&3",
    ],
)
def test_a_value_that_is_written_out_is_found(line: str) -> None:
    assert [one.kind for one in secrets_in(line)] == ["a secret that is written out"]


@pytest.mark.parametrize(
    "line",
    [
        "export DB_PASSWORD=$DB_PASSWORD",
        'PASSWORD="$(aws secretsmanager get-secret-value --secret-id prod/db1)"',
        "password: {{ vault_password }}",
        "TOKEN=`cat /run/token`",
        'TOKEN=$(curl -X PUT -H "X-aws-ec2-metadata-token-ttl-seconds: 21600" http://169.254.169.254)',
        'curl -H "X-aws-ec2-metadata-token: $TOKEN" http://169.254.169.254/latest',
        "# the token is fetched when the machine starts",
        "password = args.password",
        "token = get_token()",
        "passwd: /etc/passwd",
        "secret: projects/p/secrets/hf/versions/3",
        "secret_key: arn:aws:secretsmanager:us-east-1:1:secret:hf",
        "max_tokens: 4096123",
        "http_tokens: required",
        "PasswordAuthentication no",
        "password: changeme",
        "password=",
        "postgres://app:$PASSWORD@db/x",
        "https://example.com/a:b@c",
        "chpasswd: {expire: false}",
        "sk-learn is installed",
        "AKIA",
    ],
)
def test_what_names_a_secret_or_speaks_of_one_is_no_alarm(line: str) -> None:
    assert list(secrets_in(line)) == []


PLACES = [
    *(
        case
        for t in (INSTANCE, SPOT, CONFIGURATION)
        for case in (
            Case(t, {"userData": SCRIPT}, "userData", LEAKING,
                 "userData holds a GitHub token on line 4"),
            Case(t, {"userDataBase64": b64(SCRIPT)}, "userDataBase64", PACKED["plain"],
                 "userDataBase64 holds a GitHub token on line 4"),
        )
    ),
    *(
        Case(TEMPLATE, {"userData": b64(SCRIPT)}, "userData", packed, "holds a GitHub token")
        for packed in PACKED.values()
    ),
    Case(SPOT_FLEET, {"launchSpecifications": [{"userData": b64(SCRIPT), "ami": "a",
                                               "instanceType": "g6.xlarge"}]},
         "launchSpecifications[0].userData", PACKED["plain"],
         "launchSpecifications[0].userData holds a GitHub token"),
    *(
        case
        for t in GCP
        for case in (
            Case(t, {"metadataStartupScript": SCRIPT}, "metadataStartupScript", LEAKING,
                 "metadataStartupScript holds a GitHub token"),
            Case(t, {"metadata": {"startup-script": SCRIPT, "a": "b"}}, "metadata.startup-script",
                 LEAKING, "metadata.startup-script holds a GitHub token"),
            Case(t, {"metadata": {"user-data": "#cloud-config"}}, "metadata.user-data",
                 CLOUD_CONFIG, "metadata.user-data holds a GitHub token"),
        )
    ),
    Case(PROJECT, {"metadata": {"k": "v"}}, "metadata.k", TOKEN, "metadata.k holds a GitHub token"),
    Case(ITEM, {"key": "k", "value": "v"}, "value", TOKEN, "value holds a GitHub token on line 1"),
]  # fmt: skip


#: An address with a token in it is a password in an address, too.
def alone(case: Case) -> Case:
    clone = f"git clone https://x-access-token:{TOKEN}@github.com/a/b"
    text = case.bad.replace(clone, f"echo {TOKEN}")
    return replace(case, bad=text)


@pytest.mark.parametrize(
    "case", [c for c in PLACES if TOKEN in c.bad], ids=lambda c: f"{c.type} {c.path}"
)
def test_every_place_is_read(case: Case) -> None:
    check(SECRETS, alone(case))


@pytest.mark.parametrize("case", PLACES, ids=lambda c: f"{c.type} {c.path} {len(c.bad)}")
def test_no_packing_hides_a_secret_and_no_message_shows_it(case: Case) -> None:
    bad = case.subject(SECRETS, cases.changed(case.good, case.path, case.bad))
    told = cases.violations(SECRETS, bad)
    assert any(case.says in one for one in told)
    assert not any(TOKEN[4:12] in one for one in told)


def test_a_line_of_a_packed_part_is_where_the_part_stands() -> None:
    machine = cases.resource(TEMPLATE, userData=PACKED["mime"])
    assert all("on line 7 (" in one for one in cases.violations(SECRETS, machine))


def test_the_secret_config_of_the_stack_is_found_and_not_shown() -> None:
    machine = cases.resource(TEMPLATE, userData=b64("a\nconnect violet-umbrella-7 now\n"))
    around = replace(cases.HERE, secrets={"app:db": "violet-umbrella-7", "app:short": "now"})
    (message,) = cases.violations(SECRETS, replace(machine, stack=around))
    assert message.startswith("userData holds the value of the stack's secret app:db on line 2 (17")
    assert "umbrella" not in message
    assert cases.violations(SECRETS, machine) == []
    assert "umbrella" not in repr(around)


def test_keys_of_metadata_may_be_left_out() -> None:
    machine = cases.resource(GCP[0], metadata={"k": TOKEN, "ssh-keys": TOKEN})
    assert len(cases.violations(SECRETS, machine)) == 1
    assert cases.violations(SECRETS, machine, allowed_keys=["k", "ssh-keys"]) == []


def test_what_is_not_known_is_waited_for_beside_what_is() -> None:
    machine = cases.resource(GCP[0], metadata={"a": UNKNOWN, "b": TOKEN})
    assert cases.waits(SECRETS, machine) == ["metadata.a"]
    assert len(cases.violations(SECRETS, machine)) == 1


@pytest.mark.parametrize(
    "text",
    [
        "====",
        b64(b"\x1f\x8b not gzip at all, really"),
        b64(b"\xff\xfe" * 40),
        b64(gzip.compress(b"0" * 50_000_000)),
        "",
    ],
    ids=["padding", "false gzip", "no text", "a bomb", "nothing"],
)  # fmt: skip
def test_what_cannot_be_unpacked_holds_nothing_and_costs_little(text: str) -> None:
    assert cases.found(SECRETS, cases.resource(TEMPLATE, userData=text)) == []


@given(st.text(max_size=300), st.sampled_from(sorted(SHAPES)))
def test_a_secret_is_found_whatever_stands_around_it(around: str, kind: str) -> None:
    found = {one.kind for one in secrets_in(f"{around}\n{SHAPES[kind]}\n{around}")}
    assert kind in found


def boot_files() -> list[Path]:
    return sorted(
        p for p in (ROOT / "templates" / "boot").rglob("*") if p.suffix in (".j2", ".py", ".sh")
    )


@pytest.mark.parametrize("file", boot_files(), ids=lambda path: path.name)
def test_what_our_boot_scripts_are_made_of_is_no_alarm(file: Path) -> None:
    assert list(secrets_in(file.read_text(encoding="utf-8"))) == []


@pytest.mark.parametrize("name", ["dev", "staging", "prod"])
def test_our_own_machines_hold_no_secret_and_would_be_caught_with_one(name: str) -> None:
    stack = cases.recorded(world.example(name), {"aws:region": "us-east-1"}, name)
    count = 0
    for one in stack.resources:
        assert cases.found(SECRETS, one) == []
        for path in ("userData", "userDataBase64"):
            if one.props.get(path):
                count += 1
                assert leaked(one, path)
    assert count


def leaked(machine: Resource, path: str) -> list[str]:
    text = base64.b64decode(machine.props[path]).decode() + f"\n# {TOKEN}\n"
    return cases.violations(SECRETS, replace(machine, props={**machine.props, path: b64(text)}))


def test_a_document_of_json_is_read_as_text() -> None:
    value: Any = json.dumps({"db": {"password": "hunter2abc"}})
    assert cases.violations(SECRETS, cases.resource(ITEM, key="k", value=value))
