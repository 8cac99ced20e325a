"""The machine image: the pinned one, or what a parameter names when a fleet is first made."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping

import pulumi
import pulumi_aws as aws

from gputier.deploy import stack_name
from gputier.errors import InvalidInput, Problem
from gputier.plan import ImagePlan, WorkloadPlan
from gputier.plan.boot import PLACEHOLDER_HINT


def image_ids(
    plans: Iterable[WorkloadPlan], parent: pulumi.Resource | None = None
) -> Mapping[str, str]:
    """The ids of the images by workload; a family is asked for once a region. The program waits for
    each answer, and each wait takes longer the more is under way: ask for all of a stack at first.

    Raises `InvalidInput` with everything that AWS does not tell; a plan without an image is left
    out.
    """
    found: dict[str, str] = {}
    asked: defaultdict[tuple[str, str], list[str]] = defaultdict(list)
    for plan in plans:
        if plan.chosen is None:
            continue
        image = plan.chosen.boot.image
        if image.id is not None:
            found[plan.name] = image.id
        elif image.family is not None:
            asked[image.family, plan.chosen.verdict.region].append(plan.name)
    problems: list[Problem] = []
    for (family, region), names in asked.items():
        try:
            found |= dict.fromkeys(names, _ask(family, region, parent))
        except Exception as error:  # the SDK raises nothing more exact
            message = f"{family} cannot be looked up in {region}: {error}"
            hint = "name an image by id: `software.image: ami-…`"
            problems += [Problem(f"workloads.{n}.software.image", message, hint) for n in names]
    if problems:
        raise InvalidInput(problems)
    return found


def _ask(family: str, region: str, parent: pulumi.Resource | None) -> str:
    options = pulumi.InvokeOptions(parent=parent)
    # `value` is marked secret whatever it is, and a secret in a template hides its diff.
    return aws.ssm.get_parameter(name=family, region=region, opts=options).insecure_value


def kept(image: ImagePlan, field: str) -> list[str]:
    """What a later deployment leaves as it is: an image that moves would replace machines on the
    day of its release (github.com/pulumi/pulumi-eks/issues/88)."""
    return [] if image.pinned else [field]


def warn(name: str, image: ImagePlan, resource: pulumi.Resource) -> None:
    """Say what will not do for long: an image that is not pinned, or a placeholder for one."""
    if image.placeholder:
        hint = PLACEHOLDER_HINT.replace("STACK", stack_name())
        pulumi.log.warn(
            f"{name}: {image.id} is a placeholder, which an `up` refuses: {hint}", resource
        )
    if not image.pinned:
        pulumi.log.warn(
            f"{name}: the image is not pinned. The newest of {image.family} is taken when the fleet"
            f" is first made, and kept; `gputier lock {stack_name()} --images` pins one",
            resource,
        )
