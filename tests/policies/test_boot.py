"""The metadata service and the image of a machine."""

from __future__ import annotations

from typing import Any

import pytest
from pulumi_policy.secret import Secret, secrets_preserving_proxy
from tests.policies import cases
from tests.policies.tables import Case, check

from gputier_policies.boot import IMDSV2, PINNED_IMAGE
from gputier_policies.values import UNKNOWN

AMI = "ami-0123456789abcdef0"
IMAGE = "projects/p/global/images/gpu-2026-11-01"
FAMILY = "projects/p/global/images/family/gpu"
INSTANCE = "aws:ec2/instance:Instance"
SPOT = "aws:ec2/spotInstanceRequest:SpotInstanceRequest"
TEMPLATE = "aws:ec2/launchTemplate:LaunchTemplate"
CONFIGURATION = "aws:ec2/launchConfiguration:LaunchConfiguration"
SPOT_FLEET = "aws:ec2/spotFleetRequest:SpotFleetRequest"
GCP_INSTANCE = "gcp:compute/instance:Instance"
GCP_TEMPLATE = "gcp:compute/instanceTemplate:InstanceTemplate"
GCP_REGION_TEMPLATE = "gcp:compute/regionInstanceTemplate:RegionInstanceTemplate"
DISK = "gcp:compute/disk:Disk"

TOKENS = {"metadataOptions": {"httpTokens": "required", "httpEndpoint": "enabled"}}
IMDSV2_CASES = [
    Case(type_, {"instanceType": "g6.xlarge", **TOKENS}, path, value, says)
    for type_ in (INSTANCE, SPOT, TEMPLATE, CONFIGURATION)
    for path, value, says in (
        ("metadataOptions.httpTokens", "optional", "is optional; it must be `required`"),
        ("metadataOptions.httpTokens", None, "httpTokens is not set"),
    )
]


@pytest.mark.parametrize("case", IMDSV2_CASES, ids=str)
def test_version_2_of_the_metadata_service_is_required(case: Case) -> None:
    check(IMDSV2, case)


def test_a_machine_without_metadata_options_has_version_1() -> None:
    assert cases.violations(IMDSV2, cases.resource(TEMPLATE, instanceType="g6.xlarge"))


@pytest.mark.parametrize(
    "props",
    [
        {"metadataOptions": {"httpEndpoint": "disabled", "httpTokens": "optional"}},
        {"launchTemplate": {"id": "lt-1"}},  # the template says
        {"launchTemplate": {"id": UNKNOWN}, "metadataOptions": {"httpEndpoint": "enabled"}},
    ],
)
def test_a_machine_without_the_service_or_with_a_template_needs_not_say_it(
    props: dict[str, Any],
) -> None:
    assert cases.found(IMDSV2, cases.resource(INSTANCE, **props)) == []


def test_a_spot_fleet_says_it_in_its_templates_alone() -> None:
    own = cases.resource(SPOT_FLEET, launchSpecifications=[{"instanceType": "g6.xlarge"}])
    (message,) = cases.violations(IMDSV2, own)
    assert "launch_template_configs" in message
    by_template = cases.resource(SPOT_FLEET, launchTemplateConfigs=[{}])
    assert cases.found(IMDSV2, by_template) == []


def remedied(type_: str, props: dict[str, Any]) -> Any:
    """The properties after the remedy wrote through the SDK's proxy; None where it did not."""
    assert IMDSV2.remedy
    return props if IMDSV2.remedy(type_, secrets_preserving_proxy(props), {}) else None


def test_the_remedy_requires_version_2_and_leaves_the_rest() -> None:
    hops = Secret(1)
    props = {"metadataOptions": {"httpTokens": "optional", "httpPutResponseHopLimit": hops}}
    assert remedied(TEMPLATE, props) == {
        "metadataOptions": {"httpTokens": "required", "httpPutResponseHopLimit": hops}
    }
    assert remedied(TEMPLATE, {}) == {"metadataOptions": {"httpTokens": "required"}}


LEFT: list[tuple[str, dict[str, Any]]] = [
    (TEMPLATE, {"metadataOptions": {"httpTokens": "required"}}),
    (TEMPLATE, {"metadataOptions": "an unknown value's mark"}),
    (TEMPLATE, {"metadataOptions": {"httpTokens": "an unknown value's mark"}}),
    (INSTANCE, {"launchTemplate": {"id": "lt-1"}}),
    (SPOT_FLEET, {"launchSpecifications": [{}]}),
]


@pytest.mark.parametrize(("type_", "props"), LEFT)
def test_the_remedy_leaves_what_is_right_and_what_is_not_known(
    type_: str, props: dict[str, Any]
) -> None:
    assert remedied(type_, props) is None


PINNED = [
    Case(type_, {path: AMI}, path, bad, says)
    for type_, path in (
        (INSTANCE, "ami"),
        (SPOT, "ami"),
        (TEMPLATE, "imageId"),
        (CONFIGURATION, "imageId"),
    )
    for bad, says in (
        ("resolve:ssm:/aws/service/deeplearning/ami/x86_64/latest/ami-id", "a parameter"),
        ("resolve:ssm:/mine:stable", "a parameter"),
        ("ami-00000000000000000", "stands for an image"),
        ("ubuntu", "no image's id"),
    )
] + [
    Case(
        SPOT_FLEET,
        {"launchSpecifications": [{"ami": AMI, "instanceType": "g6.xlarge"}]},
        "launchSpecifications[0].ami",
        "resolve:ssm:/mine",
        "launchSpecifications[0].ami is resolve:ssm:/mine",
    ),
    *(
        Case(
            GCP_INSTANCE,
            {"bootDisk": {"initializeParams": {"image": IMAGE, "size": 100}}},
            "bootDisk.initializeParams.image",
            bad,
            says,
        )
        for bad, says in (
            (FAMILY, "a family"),
            ("https://www.googleapis.com/compute/v1/" + FAMILY, "a family"),
            ("debian-cloud/debian-12", "not the full name"),
            ("debian-12", "not the full name"),
            ("projects/p/zones/z/imageFamilyViews/gpu", "not the full name"),
        )
    ),
    *(
        Case(t, {"disks": [{"boot": True, "sourceImage": IMAGE}]}, "disks[0].sourceImage", FAMILY,
             "disks[0].sourceImage is projects/p/global/images/family/gpu, a family")
        for t in (GCP_TEMPLATE, GCP_REGION_TEMPLATE)
    ),
    Case(DISK, {"image": IMAGE, "size": 100}, "image", "family/gpu", "a family"),
]  # fmt: skip


@pytest.mark.parametrize("case", PINNED, ids=str)
def test_an_image_is_named_by_itself(case: Case) -> None:
    check(PINNED_IMAGE, case)


@pytest.mark.parametrize(
    ("type_", "props"),
    [
        (TEMPLATE, {"imageId": "resolve:ssm:/mine:7"}),
        (TEMPLATE, {"imageId": "ami-12c6146b"}),
        (TEMPLATE, {"instanceType": "g6.xlarge"}),  # the machine names it
        (DISK, {"size": 100}),
        (DISK, {"image": "global/images/mine"}),
        (DISK, {"image": "https://www.googleapis.com/compute/v1/" + IMAGE}),
        (GCP_TEMPLATE, {"disks": [{"source": "data", "boot": False}]}),
    ],
)
def test_what_never_moves_passes(type_: str, props: dict[str, Any]) -> None:
    assert cases.found(PINNED_IMAGE, cases.resource(type_, **props)) == []
