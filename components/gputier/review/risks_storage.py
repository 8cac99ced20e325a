"""Data that goes, or lies open."""

from __future__ import annotations

from collections.abc import Iterator

from gputier.review.preview import State, Value
from gputier.review.risk import NOTE, WARNING, Finder, Risk, Rule, Scene, called, sentence, told
from gputier.review.risks_sizes import AWS_INSTANCES, AWS_TEMPLATES, BUCKETS, STORES
from gputier.review.values import fields, maps, yes
from gputier.review.world import at

LOST = Rule("data-deleted", WARNING, "What keeps data is deleted or replaced.")
UNENCRYPTED = Rule("encryption-lost", WARNING, "A disk or a bucket is not encrypted any more.")
UNPROTECTED = Rule("protection-removed", NOTE, "A resource can be deleted that could not before.")
RULES = (LOST, UNENCRYPTED, UNPROTECTED)

_ENCRYPTION = (
    "aws:s3/bucketServerSideEncryptionConfiguration:BucketServerSideEncryptionConfiguration",
    "aws:s3/bucketServerSideEncryptionConfigurationV2:BucketServerSideEncryptionConfigurationV2",
)
_VOLUME = "aws:ebs/volume:Volume"
_DISKS = (_VOLUME, *AWS_INSTANCES, *AWS_TEMPLATES)


def _lost(scene: Scene) -> Iterator[Risk]:
    for change in scene.preview.changes.values():
        before = change.before
        if change.type not in STORES or before is None or change.op not in ("delete", "replace"):
            continue
        if before.retain:
            text = f"{sentence(called(before))} stays in the cloud, and in its costs."
            yield LOST.softly(change.urn, None, text)
        elif change.op == "replace":
            prop = change.forced_by[0] if change.forced_by else None
            why = f" because `{prop}` changes" if prop else ""
            text = f"{sentence(called(before))} is replaced{why}: an empty one takes its place."
            yield LOST.at(change.urn, prop, text)
        elif change.type in BUCKETS and not yes(before.get("forceDestroy")):
            text = f"{sentence(called(before))} is deleted, if it is empty."
            yield LOST.softly(change.urn, None, text)
        else:
            yield LOST.at(change.urn, None, f"{sentence(called(before))} is deleted with its data.")


def _encrypted(state: State) -> dict[str, Value]:
    """What is asked for of each of its disks, by the path that says so. What the cloud answered
    does not count: an update still has the answer of before."""
    if state.type == _VOLUME:
        return {"encrypted": state.inputs.get("encrypted")}
    found: dict[str, Value] = {}
    for name in ("rootBlockDevice", "ebsBlockDevices", "blockDeviceMappings"):
        for number, block in enumerate(maps(state.inputs.get(name))):
            within = ".ebs" if name == "blockDeviceMappings" else ""
            given = fields(block.get("ebs")) if within else block
            found[f"{name}[{number}]{within}.encrypted"] = given.get("encrypted")
    return found


def _unencrypted(scene: Scene) -> Iterator[Risk]:
    for change, before, after in scene.edited(_DISKS):
        was = _encrypted(before)
        for path, is_ in _encrypted(after).items():
            if yes(was.get(path)) and told(is_) and not yes(is_):
                text = f"A disk of {called(after)} is not encrypted any more."
                yield UNENCRYPTED.at(change.urn, path, text)
    for change in scene.changes("delete", _ENCRYPTION):
        if change.before is not None and not scene.goes(_bucket(scene, change.before)):
            text = f"{sentence(called(change.before))} goes: new objects have AWS's default key."
            yield UNENCRYPTED.at(change.urn, None, text)


def _bucket(scene: Scene, state: State) -> str | None:
    found = scene.before.follow(state, "bucket", *BUCKETS)
    return found.urn if found else None


def _unprotected(scene: Scene) -> Iterator[Risk]:
    for change in scene.preview.changes.values():
        before, after = change.before, change.after
        if before is None or after is None or change.op not in ("update", "same"):
            continue
        if before.protect and not after.protect:
            text = f"{sentence(called(after))} is not protected from deletion any more."
            yield UNPROTECTED.at(change.urn, "protect", text)
        for path in ("deletionProtection", "disableApiTermination"):
            if yes(at(before.inputs, path)) and not yes(at(after.inputs, path)):
                text = f"{sentence(called(after))} can be deleted: `{path}` is off."
                yield UNPROTECTED.at(change.urn, path, text)


FINDERS: tuple[Finder, ...] = (_lost, _unencrypted, _unprotected)
