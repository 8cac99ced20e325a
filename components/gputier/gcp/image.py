"""The machine image: the pinned one, or what a family names when a fleet is first made."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping

import pulumi
import pulumi_gcp as gcp

from gputier.deploy import stack_name
from gputier.errors import InvalidInput, Problem
from gputier.plan import ImagePlan, WorkloadPlan

_FAMILY = re.compile(r"projects/(?P<project>[^/]+)/global/images/family/(?P<family>[^/]+)")


def image_links(
    plans: Iterable[WorkloadPlan], parent: pulumi.Resource | None = None
) -> Mapping[str, str]:
    """The images by workload, as machines are told of them; a family is asked for once.

    Raises `InvalidInput` with everything that Google does not tell; a plan without an image is left
    out.
    """
    found: dict[str, str] = {}
    asked: defaultdict[str, list[str]] = defaultdict(list)
    for plan in plans:
        if plan.chosen is None:
            continue
        image = plan.chosen.boot.image
        if image.id is not None:
            found[plan.name] = image.id
        elif image.family is not None:
            asked[image.family].append(plan.name)
    problems: list[Problem] = []
    for family, names in asked.items():
        try:
            found |= dict.fromkeys(names, _ask(family, parent))
        except Exception as error:  # the SDK raises nothing more exact
            message = f"{family} cannot be looked up: {error}"
            hint = "name an image: `software.image: projects/…/global/images/NAME`"
            problems += [Problem(f"workloads.{n}.software.image", message, hint) for n in names]
    if problems:
        raise InvalidInput(problems)
    return found


def _ask(family: str, parent: pulumi.Resource | None) -> str:
    named = _FAMILY.search(family)
    if named is None:
        raise ValueError("a family is named projects/PROJECT/global/images/family/NAME")
    options = pulumi.InvokeOptions(parent=parent)
    found = gcp.compute.get_image(family=named["family"], project=named["project"], opts=options)
    return found.self_link


def kept(image: ImagePlan, field: str) -> tuple[str, ...]:
    """What a later deployment leaves as it is: an image that moves would replace machines on the
    day of its release."""
    return () if image.pinned else (field,)


def warn(name: str, image: ImagePlan, resource: pulumi.Resource) -> None:
    """Say what will not do for long: an image that is not pinned."""
    if not image.pinned:
        pulumi.log.warn(
            f"{name}: the image is not pinned. The newest of {image.family} is taken when the fleet"
            f" is first made, and kept; `gputier lock {stack_name()} --images` pins one",
            resource,
        )
