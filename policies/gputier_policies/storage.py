"""Disks: whether they are encrypted, and what may delete their data."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, MutableMapping, Sequence
from typing import Any, cast

from gputier_policies.machine import CONFIGURATION, INSTANCE, SPOT_FLEET, SPOT_INSTANCE, TEMPLATE
from gputier_policies.parts import (
    AWS_MACHINES,
    GCP_ALL_TEMPLATES,
    GCP_MACHINES,
    Part,
    from_template,
    launches,
    shown,
    whole,
)
from gputier_policies.rule import Config, Findings, Rule, Undecided, Violation
from gputier_policies.values import UNKNOWN, Resource, yes
from gputier_policies.words import ENVIRONMENT, is_production

VOLUME = "aws:ebs/volume:Volume"
DISK = "gcp:compute/disk:Disk"
REGION_DISK = "gcp:compute/regionDisk:RegionDisk"
#: Where the root disk and the others of a type of AWS's are.
_ROOTS: Mapping[str, str] = {
    INSTANCE: "rootBlockDevice",
    SPOT_INSTANCE: "rootBlockDevice",
    CONFIGURATION: "rootBlockDevice",
    SPOT_FLEET: "rootBlockDevices",
}


def disk_requires_encryption(disk: Resource, config: Config) -> Findings:
    """A snapshot or a disk that is copied elsewhere is readable there, unless it is encrypted."""
    if disk.type.startswith("aws:"):
        yield from _aws(disk, config)
    elif config["customer_managed_key"]:
        # Google encrypts every disk by itself; whose key it is can be chosen.
        yield from _google_keys(disk)


def _aws(disk: Resource, config: Config) -> Findings:
    if disk.type == VOLUME:
        yield from _encrypted(whole(disk), config)
        return
    for launch in launches(disk):
        found = list(_devices(disk.type, launch))
        if launch.unknown:
            yield Undecided(launch.path)
            continue
        for device in found:
            yield from _encrypted(device, config)
        if not any(_is_root(disk.type, device) for device in found) and not from_template(launch):
            yield from _root_of_the_image(disk.type, launch, config)


def _devices(type_: str, launch: Part) -> Iterator[Part]:
    """The volumes that a machine of AWS starts with, as far as they are named."""
    if type_ == TEMPLATE:
        for one in launch.each("blockDeviceMappings"):
            if one.unknown:
                yield one
            elif one.at("ebs").value is not None:
                yield one.at("ebs")
        return
    yield from launch.each(_ROOTS[type_])
    for one in launch.each("ebsBlockDevices"):
        if not yes(one.at("noDevice").value):
            yield one


def _is_root(type_: str, device: Part) -> bool:
    # Which of a template's mappings is the root's only its image knows.
    return type_ == TEMPLATE or _ROOTS[type_] in device.path


def _root_of_the_image(type_: str, launch: Part, config: Config) -> Findings:
    if config["account_default"] and not config["customer_managed_key"]:
        return
    at = launch.at("blockDeviceMappings" if type_ == TEMPLATE else _ROOTS[type_])
    how = (
        'block_device_mappings=[{"device_name": "/dev/sda1", "ebs": {"encrypted": "true"}}]'
        if type_ == TEMPLATE
        else 'root_block_device={"encrypted": True}'
    )
    yield Violation(
        f"{at.path} is {shown(at.value or None)}, so that the root disk is as the image has it,"
        f" which may be unencrypted; say it: {how}"
    )


def _encrypted(device: Part, config: Config) -> Findings:
    flag, key = device.at("encrypted"), device.at("kmsKeyId")
    missing = flag.value is None
    if flag.unknown:
        yield Undecided(flag.path)
    elif not yes(flag.value) and not (missing and config["account_default"]):
        yield Violation(
            f"{flag.path} is {shown(flag.value)}; it must be true: encrypted=True, or"
            ' "encrypted": "true" in a launch template'
        )
    if config["customer_managed_key"]:
        yield from _own_key(key, "kms_key_id=key.arn")


def _own_key(key: Part, how: str) -> Findings:
    if key.unknown:
        yield Undecided(key.path)
    elif not key.text or key.text.endswith("alias/aws/ebs"):
        yield Violation(f"{key.path} is {shown(key.value)}; it must be a key of yours: {how}")


def _google_keys(disk: Resource) -> Findings:
    root = whole(disk)
    if disk.type in (DISK, REGION_DISK):
        word = "kmsKeyName" if disk.type == REGION_DISK else "kmsKeySelfLink"
        yield from _google_key(
            root.at("diskEncryptionKey"), word, 'disk_encryption_key={"kms_…": key.id}'
        )
        return
    for one in root.each("bootDisk"):
        if one.at("diskEncryptionKeyRaw").value is None or one.unknown:
            how = 'boot_disk={"kms_key_self_link": key.id}'
            yield from _unless_it_exists(one, _own_key(one.at("kmsKeySelfLink"), how))
    for one in root.each("disks"):
        # A local disk is encrypted with Google's key and no other (Google: customer-managed
        # encryption keys; unverified).
        local = one.at("type").value == "SCRATCH" or one.at("diskType").value == "local-ssd"
        if not local:
            how = 'disk_encryption_key={"kms_key_self_link": key.id}'
            key = _google_key(one.at("diskEncryptionKey"), "kmsKeySelfLink", how)
            yield from _unless_it_exists(one, key)


def _unless_it_exists(disk: Part, findings: Findings) -> Findings:
    """A disk that exists already has a key, which is its own resource's matter."""
    source = disk.at("source")
    if source.unknown:
        yield Undecided(source.path)
    elif source.value is None:
        yield from findings


def _google_key(box: Part, word: str, how: str) -> Findings:
    given = [box.at(other) for other in ("rawKey", "rsaEncryptedKey")]
    if not any(one.text for one in given):
        yield from _own_key(box.at(word), how)


def _encrypt(type_: str, props: MutableMapping[str, Any], _config: Config) -> bool:
    """Switches encryption on where it is off or not said; what is not known yet is a text, and
    stays."""
    if type_ == VOLUME:
        return _switch_on(props, True)
    if not type_.startswith("aws:"):
        return False
    done = False
    for launch in _blocks(props.get("launchSpecifications")) if type_ == SPOT_FLEET else [props]:
        for device in _stored(type_, launch):
            done = _switch_on(device, "true" if type_ == TEMPLATE else True) or done
        one_root = type_ in (INSTANCE, SPOT_INSTANCE, CONFIGURATION)
        if one_root and not (launch.get("rootBlockDevice") or launch.get("launchTemplate")):
            launch["rootBlockDevice"] = {"encrypted": True}
            done = True
    return done


def _stored(type_: str, launch: Mapping[str, Any]) -> Iterator[Any]:
    if type_ == TEMPLATE:
        for one in _blocks(launch.get("blockDeviceMappings")):
            yield from _blocks(one.get("ebs"))
        return
    yield from _blocks(launch.get(_ROOTS[type_]))
    yield from (d for d in _blocks(launch.get("ebsBlockDevices")) if not yes(d.get("noDevice")))


def _blocks(value: Any) -> list[Any]:
    """The blocks of a proxy of the SDK, which is no list and writes through to the resource."""
    if isinstance(value, Mapping):
        return [value]
    if isinstance(value, Sequence) and not isinstance(value, str | bytes):
        through = cast(Sequence[Any], value)
        return [through[n] for n in range(len(through)) if isinstance(through[n], Mapping)]
    return []


def _switch_on(device: Any, on: Any) -> bool:
    value = device.get("encrypted")
    if value not in (None, False, "false"):
        return False
    device["encrypted"] = on
    return True


ENCRYPTION = Rule(
    check=disk_requires_encryption,
    description="Disks are encrypted; on AWS each says so, root disks included. Google encrypts all"
    " of them.",
    remediation="Set `encrypted` on each volume and block device, and a root block device where"
    " there is none.",
    severity="high",
    url="https://docs.aws.amazon.com/ebs/latest/userguide/ebs-encryption.html",
    types=AWS_MACHINES | GCP_MACHINES | {VOLUME, DISK, REGION_DISK},
    settings={
        "account_default": {
            "type": "boolean",
            "default": False,
            "description": "The AWS account encrypts new volumes by default, in each region that is"
            " used: what is not set is then encrypted, and only what is off is a breach.",
        },
        "customer_managed_key": {
            "type": "boolean",
            "default": False,
            "description": "Disks must be encrypted with a key of yours, on either cloud.",
        },
    },
    remedy=_encrypt,
)


def disk_requires_deletion_protection(disk: Resource, config: Config) -> Findings:
    """A disk is deleted with its stack, and by a change that replaces it, with everything on it."""
    if disk.protect or not is_production(config):
        return
    if disk.type in GCP_ALL_TEMPLATES:
        yield from _kept_disks(disk)
        return
    paths = ("finalSnapshot",) if disk.type == VOLUME else _GOOGLE_KEEPS
    values = {path: disk.at(path) for path in paths}
    kept = any(yes(value) or value in ("PREVENT", "ABANDON") for value in values.values())
    waits = [path for path, value in values.items() if value is UNKNOWN]
    if kept:
        return
    if waits:
        yield from map(Undecided, waits)
        return
    said = ", ".join(f"{path} is {shown(value)}" for path, value in values.items())
    also = "final_snapshot=True" if disk.type == VOLUME else 'deletion_policy="PREVENT"'
    yield Violation(
        f"the resource is not protected and {said}, so that deleting or replacing it loses its"
        f" data; protect it: opts=pulumi.ResourceOptions(protect=True), or {also}"
    )


#: PREVENT refuses to delete, ABANDON leaves the disk there (pulumi_gcp 10.2.0, Disk).
_GOOGLE_KEEPS = ("deletionPolicy", "createSnapshotBeforeDestroy")


def _kept_disks(template: Resource) -> Findings:
    """A disk that existed before the machine is data; `autoDelete` is true unless it is said
    (pulumi_gcp 10.2.0, InstanceTemplateDisk)."""
    for one in whole(template).each("disks"):
        source, flag = one.at("source"), one.at("autoDelete")
        if yes(one.at("boot").value) or not (source.text or source.unknown):
            continue
        if flag.unknown or (source.unknown and not _says_no(flag)):
            yield Undecided(flag.path if flag.unknown else source.path)
        elif flag.value is None or yes(flag.value):
            yield Violation(
                f"{flag.path} is {shown(flag.value)}, so that the existing disk {source.text} is"
                ' deleted with its machine; it must be false: {"auto_delete": False}'
            )


def _says_no(flag: Part) -> bool:
    return flag.value is not None and not yes(flag.value)


DELETION_PROTECTION = Rule(
    check=disk_requires_deletion_protection,
    description="In production data disks survive the deletion of what they belong to. Disks that"
    " are part of a machine go with it.",
    remediation="Protect the resource, or let a snapshot be taken before it is deleted.",
    severity="high",
    url="https://docs.aws.amazon.com/ebs/latest/userguide/ebs-deleting-volume.html",
    types=frozenset({VOLUME, DISK, REGION_DISK}) | GCP_ALL_TEMPLATES,
    settings={"environment": ENVIRONMENT},
)

RULES = (ENCRYPTION, DELETION_PROTECTION)
