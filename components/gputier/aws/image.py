"""The machine image: the pinned one, or what a parameter names when a fleet is first made."""

from __future__ import annotations

import pulumi
import pulumi_aws as aws

from gputier.errors import InvalidInput, Problem
from gputier.plan import ImagePlan
from gputier.plan.boot import PLACEHOLDER_HINT


def image_id(image: ImagePlan, region: str, parent: pulumi.Resource, at: str) -> str:
    """The image's id. Raises `InvalidInput` for `at`, the workload, when AWS does not tell, and
    `ValueError` where the plan knows no image."""
    if image.id is not None:
        return image.id
    if image.family is None:
        raise ValueError("no image is known for this machine")
    options = pulumi.InvokeOptions(parent=parent)
    try:
        # `value` is marked secret whatever it is, and a secret in a template hides its diff.
        found = aws.ssm.get_parameter(name=image.family, region=region, opts=options)
    except Exception as error:  # the SDK raises nothing more exact
        message = f"{image.family} cannot be looked up in {region}: {error}"
        hint = "name an image by id: `software.image: ami-…`"
        raise InvalidInput(Problem(f"{at}.software.image", message, hint)) from error
    return found.insecure_value


def kept(image: ImagePlan, field: str) -> list[str]:
    """What a later deployment leaves as it is: an image that moves would replace machines on the
    day of its release (github.com/pulumi/pulumi-eks/issues/88)."""
    return [] if image.pinned else [field]


def warn(name: str, image: ImagePlan, resource: pulumi.Resource) -> None:
    """Say what will not do for long: an image that is not pinned, or a placeholder for one."""
    if image.placeholder:
        stack = pulumi.get_stack().rsplit("/", 1)[-1]
        hint = PLACEHOLDER_HINT.replace("STACK", stack)
        pulumi.log.warn(
            f"{name}: {image.id} is a placeholder, which an `up` refuses: {hint}", resource
        )
    if not image.pinned:
        pulumi.log.warn(
            f"{name}: the image is not pinned. The newest of {image.family} is taken when the fleet"
            " is first made, and kept; `gputier lock STACK --images` pins one",
            resource,
        )
