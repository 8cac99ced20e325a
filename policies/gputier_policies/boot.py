"""What a machine starts with: its metadata service and its image."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, MutableMapping
from typing import Any

from gputier_policies.machine import CONFIGURATION, INSTANCE, SPOT_FLEET, SPOT_INSTANCE, TEMPLATE
from gputier_policies.parts import (
    AWS_MACHINES,
    GCP_MACHINES,
    Part,
    disks,
    from_template,
    launches,
    shown,
    whole,
)
from gputier_policies.rule import Config, Findings, Rule, Undecided, Violation
from gputier_policies.values import UNKNOWN, Resource, is_map

_TOKENS = "metadataOptions.httpTokens"


def machine_requires_imdsv2(machine: Resource, _config: Config) -> Findings:
    """Anything on the machine that can be made to fetch an address reads its role's credentials
    from version 1 of the metadata service."""
    tokens, root = machine.at(_TOKENS), whole(machine)
    if machine.type == SPOT_FLEET:
        # A fleet's own specifications have no such property (pulumi_aws 7.51.1), its templates do.
        own = machine.at("launchSpecifications")
        if own is UNKNOWN:
            yield Undecided("launchSpecifications")
        elif own:
            yield Violation(
                "launchSpecifications cannot ask for version 2 of the metadata service; start the"
                " fleet from a template: launch_template_configs=[…]"
            )
    elif machine.at("metadataOptions.httpEndpoint") == "disabled":
        return
    elif tokens is UNKNOWN:
        yield Undecided(_TOKENS)
    elif tokens is None and from_template(root):
        return  # the template says; one that is in the program is judged by itself
    elif tokens != "required":
        yield Violation(
            f"metadataOptions.httpTokens is {shown(tokens)}; it must be `required`:"
            ' metadata_options={"http_tokens": "required"}'
        )


def _require_tokens(type_: str, props: MutableMapping[str, Any], _config: Config) -> bool:
    if type_ == SPOT_FLEET:
        return False
    options: Any = props.get("metadataOptions")
    if not options:
        if props.get("launchTemplate"):
            return False
        props["metadataOptions"] = {"httpTokens": "required"}
        return True
    # One that is not known yet is a text here, and stays.
    if not is_map(options) or options.get("httpTokens") not in (None, "optional"):
        return False
    through: Any = options
    through["httpTokens"] = "required"  # in place, so that what is secret beside it stays so
    return True


# Google's metadata server answers no request without the header `Metadata-Flavor: Google`, and the
# metadata key `disable-legacy-endpoints` is about two former versions that did (Google: about VM
# metadata; Tenable AC_GCP_0297, both read 2026-12-01). That those are shut down: unverified.
IMDSV2 = Rule(
    check=machine_requires_imdsv2,
    description="Machines of AWS answer only version 2 of the instance metadata service; Google's"
    " asks for a header by itself.",
    remediation='Set metadata_options={"http_tokens": "required"}.',
    severity="high",
    url="https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/configuring-instance-metadata-service.html",
    types=AWS_MACHINES,
    remedy=_require_tokens,
)

_AMI = re.compile(r"ami-(?:[0-9a-f]{8}|[0-9a-f]{17})")
_PLACEHOLDER = re.compile(r"ami-0+")  # what examples hold
# `resolve:ssm:NAME:VERSION`: a version of a parameter never changes; a label and the newest do
# (EC2 user guide, Systems Manager parameters as AMI references; botocore RunInstances ImageId).
_VERSION = re.compile(r"resolve:ssm:[^:]+:\d+|resolve:ssm:arn:[^:]+:ssm:[^:]*:[^:]*:[^:]+:\d+")
_GOOGLE = re.compile(r"(?:.*/)?global/images/(?!family/)[^/]+")
_IMAGES: Mapping[str, str] = {
    INSTANCE: "ami",
    SPOT_INSTANCE: "ami",
    SPOT_FLEET: "ami",
    TEMPLATE: "imageId",
    CONFIGURATION: "imageId",
}
_DISK = "gcp:compute/disk:Disk"
_REGION_DISK = "gcp:compute/regionDisk:RegionDisk"


def machine_requires_pinned_image(machine: Resource, _config: Config) -> Findings:
    """Another driver comes with a newer image, and a new image replaces machines on a day that
    nobody chose."""
    for image in _images(machine):
        if image.unknown:
            yield Undecided(image.path)
        elif image.text and (why := _moves(machine.type, image.text)):
            yield Violation(f"{image.path} is {shown(image.text)}, {why}")


def _images(machine: Resource) -> Iterator[Part]:
    if machine.type in (_DISK, _REGION_DISK):
        yield whole(machine).at("image")
        return
    for launch in launches(machine):
        if machine.type in _IMAGES:
            yield launch.at(_IMAGES[machine.type])
            continue
        for disk in disks(launch):
            yield disk.at("initializeParams.image" if "bootDisk" in disk.path else "sourceImage")


def _moves(type_: str, image: str) -> str:
    """Why an image may be another one tomorrow; nothing where it stays."""
    if type_.startswith("aws:"):
        if _VERSION.fullmatch(image):
            return ""
        if image.startswith("resolve:ssm:"):
            return (
                "a parameter that AWS or you point at newer images; it must be an image's own id,"
                ' image_id="ami-…", or a version of the parameter, resolve:ssm:NAME:VERSION'
            )
        if _PLACEHOLDER.fullmatch(image):
            return 'which stands for an image; it must be the id of one: "ami-…"'
        return "" if _AMI.fullmatch(image) else "which is no image's id; it must be one: ami-…"
    if _GOOGLE.fullmatch(image):
        return ""
    family = "family/" in image
    what = "a family, whose newest image it is" if family else "not the full name of an image"
    return (
        f"{what}; it must be one image by its full name,"
        ' "projects/PROJECT/global/images/NAME"'
        " (gcloud compute images describe-from-family FAMILY tells today's)"
    )


PINNED_IMAGE = Rule(
    check=machine_requires_pinned_image,
    description="Machines and disks start from one image by its id or full name; not from a family"
    " or a parameter that moves to newer ones.",
    remediation="Name the image itself: an AMI's id, or projects/PROJECT/global/images/NAME;"
    " `gputier lock` pins it for a stack of ours.",
    severity="medium",
    url="https://docs.cloud.google.com/compute/docs/images/image-families-best-practices",
    types=AWS_MACHINES | GCP_MACHINES | {_DISK, _REGION_DISK},
)

RULES = (IMDSV2, PINNED_IMAGE)
