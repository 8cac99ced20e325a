"""Image ids in the lock: what a parameter names today, written down so that it stays.

A family's name means another image with each of its releases, and machines that start later would
have it. Who may ask the cloud can pin its id once; nothing but asking again changes it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import NamedTuple

from gputier.errors import InvalidInput, Problem
from gputier.lock.entries import Entry, Lock
from gputier.plan import ImagePlan, StackPlan, Volume

#: AWS's own names of images are paths of its parameter store, and its ids begin so.
FAMILY, AMI = "/aws/", "ami-"
#: Google's families and images are told apart by their paths alone.
GOOGLE_FAMILY, GOOGLE_IMAGE = "/global/images/family/", "/global/images/"


class Found(NamedTuple):
    """An image as the cloud has it: `root_device` is the name of its first disk, which is `gib`
    large; None where a cloud's disks have no names of the image's."""

    id: str
    root_device: str | None
    gib: int


Look = Callable[[str, str], Found]
"""The image that a family names in a region: (region, family). Raises `InvalidInput`."""


def is_id(image: str) -> bool:
    """Whether it names one image for ever."""
    return image.startswith(AMI) or (GOOGLE_IMAGE in image and GOOGLE_FAMILY not in image)


def is_google(family: str) -> bool:
    """Whether it is a family of Google's."""
    return GOOGLE_FAMILY in family


def to_pin(lock: Lock, plan: StackPlan, named: Iterable[str] = ()) -> dict[str, str]:
    """Workload → family for what is not pinned yet, and for those named, which are asked again.
    An image that somebody declared by its id is theirs."""
    wanted, families = set(named), _families(plan)
    return {
        name: families[name]
        for name, entry in lock.entries.items()
        if name in families and (name in wanted or not is_id(entry.image))
    }


def _families(plan: StackPlan) -> dict[str, str]:
    chosen = {w.name: w.chosen.boot.image.family for w in plan.workloads if w.chosen}
    return {name: family for name, family in chosen.items() if family and _known(family)}


def _known(family: str) -> bool:
    return family.startswith(FAMILY) or is_google(family)


def pin_images(lock: Lock, plan: StackPlan, families: Mapping[str, str], look: Look) -> Lock:
    """The lock with the ids that `look` finds. Raises `InvalidInput` with everything that could not
    be found, and with images whose first disk is not what the plan says."""
    roots = {w.name: w.chosen.storage.root for w in plan.workloads if w.chosen}
    entries, problems = dict(lock.entries), list[Problem]()
    for name, family in families.items():
        entry = entries[name]
        try:
            found = look(entry.region, family)
        except InvalidInput as error:
            problems += error.problems
            continue
        problems += _unlike(name, family, found, roots[name])
        entries[name] = replace(entry, image=found.id)
    if problems:
        raise InvalidInput(list(dict.fromkeys(problems)))
    return Lock(lock.stack, entries)


def _unlike(name: str, family: str, found: Found, root: Volume) -> list[Problem]:
    at = f"workloads.{name}.software.image"
    problems: list[Problem] = []
    if found.root_device not in (None, root.device):
        # A volume under another name is a second disk beside one of the image's own size.
        message = f"{found.id} of {family} has {found.root_device} as its root, not {root.device}"
        problems.append(Problem(at, message, "say its system: `software.image.os`"))
    if found.gib > root.gib:
        message = f"{found.id} of {family} needs {found.gib} GiB, and the root has {root.gib}"
        fits = "projects/…/global/images/NAME" if is_google(family) else "ami-…"
        problems.append(Problem(at, message, f"an image that fits: `software.image: {fits}`"))
    return problems


def held_image(entry: Entry, planned: ImagePlan) -> ImagePlan:
    """The image of a locked machine: what the lock says, whatever would be taken today."""
    if not entry.image or entry.image in (planned.id, planned.family):
        return planned
    if is_id(entry.image):
        return planned._replace(id=entry.image, pinned=True, source="lock")
    return planned._replace(id=None, family=entry.image, pinned=False, source="lock")
