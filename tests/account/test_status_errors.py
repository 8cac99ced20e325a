"""The table of reasons: what clouds really say comes to its row, and each row says what to do."""

from __future__ import annotations

import re
from collections.abc import Callable
from importlib import import_module
from string import Formatter
from typing import Any

import pytest
from tests.account import discovery
from tests.account import status_scenes as scenes

from gputier.account import status_errors, status_errors_aws, status_errors_gcp
from gputier.account.status_errors import OURS, TABLE

#: Sentences as they stand in public issues, guides and logs.
HEARD = [
    (scenes.QUOTA, "VcpuLimitExceeded"),
    (
        "You have requested more vCPU capacity than your current vCPU limit of 0 allows for the"
        " instance bucket that the specified instance type belongs to.",
        "VcpuLimitExceeded",
    ),
    (
        "You have requested more instances (7) than your current instance limit of 6 allows for the"
        " specified instance type.",
        "InstanceLimitExceeded",
    ),
    (
        "Max spot instance count exceeded. Launching EC2 instance failed.",
        "MaxSpotInstanceCountExceeded",
    ),
    (scenes.FULL, "InsufficientInstanceCapacity"),
    (
        "We currently do not have sufficient p3.8xlarge capacity in the Availability Zone you"
        " requested (us-east-1a). Launching EC2 instance failed.",
        "InsufficientInstanceCapacity",
    ),
    (
        "Could not launch Spot Instances. UnfulfillableCapacity - Unable to fulfill capacity due to"
        " your request configuration. Please adjust your request and try again.",
        "UnfulfillableCapacity",
    ),
    (
        "There is no Spot capacity available that matches your request.",
        "UnfulfillableCapacity",
    ),
    (
        "Could not launch Spot Instances. InvalidFleetConfiguration - Your requested instance type"
        " (p3.8xlarge) is not supported in your requested Availability Zone (us-east-2c).",
        "InvalidFleetConfiguration",
    ),
    (
        "The requested configuration is currently not supported. Please check the documentation for"
        " supported configurations. Launching EC2 instance failed.",
        "Unsupported",
    ),
    (
        "Instance became unhealthy while waiting for instance to be in InService state. Termination"
        " Reason: Client.InvalidKMSKey.InvalidState: The KMS key provided is in an incorrect state",
        "Client.InvalidKMSKey.InvalidState",
    ),
    ("Client.InternalError: Client error on launch", "Client.InternalError"),
    (scenes.ABANDONED, "gate-rejected"),
    (
        "Instance failed to complete user's Lifecycle Action: Lifecycle Action with token"
        " 95c60857-3c0a-4a67-8518-6dc18797e421 was abandoned: Heartbeat Timeout",
        "gate-silent",
    ),
    (
        "The security group 'sg-1' does not exist. Launching EC2 instance failed.",
        "InvalidGroup.NotFound",
    ),
    ("The image id '[ami-0123]' does not exist", "InvalidAMIID.NotFound"),
]
ON_GOOGLE = [
    (
        "The zone 'projects/p/zones/z' does not have enough resources available to fulfill the"
        " request.  Try a different zone, or try again later.",
        "ZONE_RESOURCE_POOL_EXHAUSTED",
    ),
    ("Quota 'NVIDIA_T4_GPUS' exceeded.  Limit: 1.0 in region us-central1.", "QUOTA_EXCEEDED"),
    (
        "Constraint constraints/compute.vmExternalIpAccess violated for project 1",
        "CONDITION_NOT_MET",
    ),
    (
        "Required 'compute.instances.create' permission for 'projects/p/zones/z/instances/i' (when"
        " acting as '1@cloudservices.gserviceaccount.com')",
        "PERMISSIONS_ERROR",
    ),
    (
        "The resource 'One of [x@p.iam.gserviceaccount.com]' of type 'serviceAccount' was not"
        " found.",
        "RESOURCE_NOT_FOUND",
    ),
]


@pytest.mark.parametrize(("said", "code"), HEARD)
def test_what_aws_says_comes_to_its_row(said: str, code: str) -> None:
    found = status_errors.known("aws", status_errors.code_in(said), said)
    assert found is not None
    assert found.code == code


@pytest.mark.parametrize(("said", "code"), ON_GOOGLE)
def test_what_google_says_comes_to_its_row(said: str, code: str) -> None:
    found = status_errors.known("gcp", None, said)
    assert found is not None
    assert found.code == code


@pytest.mark.parametrize(
    "said",
    [
        "",
        "Launching EC2 instance failed.",
        "The security group and the subnet belong to different networks.",
        "Quota is a word.",
    ],
)
def test_what_nobody_knows_has_no_row(said: str) -> None:
    for cloud in ("aws", "gcp"):
        assert status_errors.known(cloud, status_errors.code_in(said), said) is None


@pytest.mark.parametrize(
    ("said", "code"),
    [
        ("Could not launch Spot Instances. New.Kind - because", "New.Kind"),
        ("Termination Reason: Server.NewKind: because", "Server.NewKind"),
        ("InsufficientInstanceCapacity: no g4dn", "InsufficientInstanceCapacity"),
        ("No code in here.", None),
        ("At 10:00: nothing", None),
    ],
)
def test_a_code_is_found_in_a_sentence(said: str, code: str | None) -> None:
    assert status_errors.code_in(said) == code


def test_a_code_of_one_cloud_is_none_of_the_other() -> None:
    assert status_errors.known("gcp", "VcpuLimitExceeded", "") is None
    assert status_errors.known("aws", "QUOTA_EXCEEDED", "") is None


def test_what_differs_in_two_tellings_is_left_out() -> None:
    one = "i-0123456789abcdef0 in subnet-0a1b2c3d4 at 2026-12-01T10:00:00Z:  no"
    other = "i-0fedcba9876543210 in subnet-0d4c3b2a1 at 2026-12-02T11:30:09Z: no"
    assert status_errors.kind_of(one) == status_errors.kind_of(other)
    assert status_errors.kind_of("p5 is full") != status_errors.kind_of("g6 is full")


@pytest.mark.parametrize("key", TABLE)
def test_each_row_says_what_it_is_what_to_do_and_where_it_is_from(key: tuple[str, str]) -> None:
    row = TABLE[key]
    assert row.words[0].islower() or row.words[:3] in ("AWS", "EC2", "Goo", "Aut", "Spo")
    assert not row.words.endswith(".")
    assert row.fix
    fields = {name for _, name, _, _ in Formatter().parse(row.fix) if name}
    assert fields <= {"stack", "workload", "region", "group", "project"}
    dated = re.search(r"20\d\d|botocore|discovery revision", row.source)
    assert row.cloud == OURS or dated or "unverified" in row.source
    for phrase in row.phrases:
        assert phrase == phrase.lower()


def test_no_row_is_written_twice_and_no_phrase_is_two_rows() -> None:
    for table in (status_errors_aws.TABLE, status_errors_gcp.TABLE):
        codes = [code for code, *_ in table]
        phrases = [phrase for *_, told in table for phrase in told]
        assert len(codes) == len(set(codes))
        assert len(phrases) == len(set(phrases))


def test_what_ec2_gives_as_a_reason_is_in_its_model() -> None:
    loader: Any = import_module("botocore.session").Session()
    shape: Any = loader.get_service_model("ec2").shape_for("StateReason")
    told = shape.members["Message"].documentation
    rows = [
        row for (cloud, _), row in TABLE.items() if cloud == "aws" and "StateReason" in row.source
    ]
    assert len(rows) > 8
    assert [row.code for row in rows if row.code not in told] == []


def test_what_an_autoscaler_complains_of_is_in_googles_list() -> None:
    api = discovery.document("compute.v1")
    known = api["schemas"]["AutoscalerStatusDetails"]["properties"]["type"]["enum"]
    rows = [row for row in TABLE.values() if "AutoscalerStatusDetails" in row.source]
    assert len(rows) > 3
    assert [row.code for row in rows if row.code not in known] == []


def page() -> str:
    """The table for docs/status.md."""
    lines = ["| cloud | code | it means | what to do | source |", "|---|---|---|---|---|"]
    for (cloud, code), row in TABLE.items():
        shown = {"stack": "STACK", "workload": "WORKLOAD", "region": "REGION", "group": "GROUP"}
        fix = row.fix.format(**shown, project="PROJECT").replace("|", "\\|")
        source = "" if cloud == OURS else row.source
        name = "ours" if cloud == OURS else cloud
        lines.append(f"| {name} | `{code}` | {row.words} | {fix} | {source} |")
    return "\n".join(lines)


def test_the_page_lists_every_reason(generated: Callable[[str, str, str], None]) -> None:
    generated("docs/status.md", "reasons", page())
