"""Images and template versions that move by themselves, or change."""

from __future__ import annotations

from collections.abc import Iterator

from gputier.review.preview import Hidden, State, Value
from gputier.review.risk import NOTE, WARNING, Finder, Risk, Rule, Scene, called, sentence
from gputier.review.risks_sizes import ASG, AWS_INSTANCES, AWS_TEMPLATES, GCP_TEMPLATES
from gputier.review.world import at

MOVING = Rule(
    "moving-image",
    WARNING,
    "An image is named by what points at the newest: machines that start later have another one.",
)
CHANGED = Rule("image-changed", NOTE, "Machines that start from now on have another image.")
LATEST = Rule(
    "moving-template",
    WARNING,
    "A group takes the `$Latest` or `$Default` template: no instance refresh sees a change.",
)
RULES = (MOVING, CHANGED, LATEST)

#: Where a resource names its image.
_IMAGES = {
    **dict.fromkeys(AWS_TEMPLATES, "imageId"),
    **dict.fromkeys(AWS_INSTANCES, "ami"),
    **dict.fromkeys(GCP_TEMPLATES, "disks[0].sourceImage"),
    "gcp:compute/instance:Instance": "bootDisk.initializeParams.image",
}
_VERSIONS = (
    "launchTemplate.version",
    "mixedInstancesPolicy.launchTemplate.launchTemplateSpecification.version",
)


def _image(state: State | None) -> Value:
    if state is None:
        return None
    path = _IMAGES[state.type]
    top = path.split(".")[0].split("[")[0]
    return at({top: state.get(top)}, path)


def moves(image: Value) -> bool:
    """Whether a name means another image with each release: a parameter of AWS's, a family of
    Google's, or Google's short name of one."""
    if not isinstance(image, str) or not image:
        return False
    if image.startswith("resolve:ssm:") or "/family/" in image:
        return True
    # Google resolves PROJECT/FAMILY and a bare FAMILY; images have a date or a version in them.
    return image.count("/") == 1 and not any(char.isdigit() for char in image.rsplit("-", 1)[-1])


def _moving(scene: Scene) -> Iterator[Risk]:
    for before, after in scene.arriving(_IMAGES):
        image = _image(after)
        if moves(image) and _image(before) != image:
            text = f"{sentence(called(after))} takes the newest image of `{image}` at each start."
            yield MOVING.at(after.urn, _IMAGES[after.type], text)


def _changed(scene: Scene) -> Iterator[Risk]:
    for change, before, after in scene.edited(_IMAGES):
        old, new = _image(before), _image(after)
        if old == new or old is None or moves(new):
            continue
        shown = "one that is not known yet" if isinstance(new, Hidden) else f"`{new}`"
        text = f"{sentence(called(after))} gets another image, {shown} for `{old}`."
        yield CHANGED.at(change.urn, _IMAGES[after.type], text)


def _latest(scene: Scene) -> Iterator[Risk]:
    for before, after in scene.arriving((ASG,)):
        for path in _VERSIONS:
            version = at(after.inputs, path)
            new = before is None or at(before.inputs, path) != version
            if version in ("$Latest", "$Default") and new:
                text = (
                    f"{sentence(called(after))} takes the template's `{version}`: a change of the"
                    " template starts no instance refresh, and new machines differ from old ones"
                    " (pulumi-aws#1577). Give it the template's `latestVersion`."
                )
                yield LATEST.at(after.urn, path, text)


FINDERS: tuple[Finder, ...] = (_moving, _changed, _latest)
