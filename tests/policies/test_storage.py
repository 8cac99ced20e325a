"""Encrypted disks, and disks that outlive what they belong to."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from pulumi_policy.secret import Secret, secrets_preserving_proxy
from tests.policies import cases
from tests.policies.tables import Case, check

from gputier_policies.storage import DELETION_PROTECTION, ENCRYPTION
from gputier_policies.values import UNKNOWN

INSTANCE = "aws:ec2/instance:Instance"
SPOT = "aws:ec2/spotInstanceRequest:SpotInstanceRequest"
TEMPLATE = "aws:ec2/launchTemplate:LaunchTemplate"
CONFIGURATION = "aws:ec2/launchConfiguration:LaunchConfiguration"
SPOT_FLEET = "aws:ec2/spotFleetRequest:SpotFleetRequest"
VOLUME = "aws:ebs/volume:Volume"
GCP_INSTANCE = "gcp:compute/instance:Instance"
GCP_TEMPLATE = "gcp:compute/instanceTemplate:InstanceTemplate"
GCP_REGION_TEMPLATE = "gcp:compute/regionInstanceTemplate:RegionInstanceTemplate"
DISK = "gcp:compute/disk:Disk"
REGION_DISK = "gcp:compute/regionDisk:RegionDisk"

KEY = "arn:aws:kms:us-east-1:1:key/1"
OWN = {"customer_managed_key": True}
ROOT = {"rootBlockDevice": {"encrypted": True}}
EXTRA = {**ROOT, "ebsBlockDevices": [{"deviceName": "/dev/sdf", "encrypted": True}]}
MAPPED = {"blockDeviceMappings": [{"deviceName": "/dev/sda1", "ebs": {"encrypted": "true"}}]}
ON_MAPPING = "blockDeviceMappings[0].ebs.encrypted"
SPECIFIED = {
    "launchSpecifications": [
        {"rootBlockDevices": [{"encrypted": True}], "ami": "a", "instanceType": "g6.xlarge"}
    ]
}  # fmt: skip
GOOGLE_KEY = {"kmsKeySelfLink": "projects/p/locations/l/keyRings/r/cryptoKeys/k"}
LINK = "is not set; it must be a key of yours"

ENCRYPTED = [
    *(
        Case(t, EXTRA, path, bad, says)
        for t in (INSTANCE, SPOT, CONFIGURATION)
        for path in ("rootBlockDevice.encrypted", "ebsBlockDevices[0].encrypted")
        for bad, says in ((False, f"{path} is false; it must be true"), (None, "is not set"))
    ),
    Case(TEMPLATE, MAPPED, ON_MAPPING, "false", f"{ON_MAPPING} is false"),
    Case(TEMPLATE, MAPPED, ON_MAPPING, "False", f"{ON_MAPPING} is False"),
    Case(TEMPLATE, MAPPED, ON_MAPPING, None, f"{ON_MAPPING} is not set"),
    Case(SPOT_FLEET, SPECIFIED, "launchSpecifications[0].rootBlockDevices[0].encrypted", False,
         "launchSpecifications[0].rootBlockDevices[0].encrypted is false"),
    Case(VOLUME, {"encrypted": True, "size": 100}, "encrypted", False, "encrypted is false"),
    Case(VOLUME, {"encrypted": True, "size": 100}, "encrypted", None, "encrypted is not set"),
    Case(VOLUME, {"encrypted": True, "kmsKeyId": KEY}, "kmsKeyId", None, f"kmsKeyId {LINK}",
         config=OWN),
    Case(VOLUME, {"encrypted": True, "kmsKeyId": KEY}, "kmsKeyId",
         "arn:aws:kms:us-east-1:1:alias/aws/ebs", "a key of yours", config=OWN),
    Case(INSTANCE, {"rootBlockDevice": {"encrypted": True, "kmsKeyId": KEY}},
         "rootBlockDevice.kmsKeyId", None, f"rootBlockDevice.kmsKeyId {LINK}", config=OWN),
    Case(DISK, {"diskEncryptionKey": GOOGLE_KEY}, "diskEncryptionKey.kmsKeySelfLink", None, LINK,
         config=OWN),
    Case(REGION_DISK, {"diskEncryptionKey": {"kmsKeyName": "k"}}, "diskEncryptionKey.kmsKeyName",
         None, LINK, config=OWN),
    Case(GCP_INSTANCE, {"bootDisk": GOOGLE_KEY}, "bootDisk.kmsKeySelfLink", None,
         f"bootDisk.kmsKeySelfLink {LINK}", config=OWN),
    *(
        Case(t, {"disks": [{"diskEncryptionKey": GOOGLE_KEY}]},
             "disks[0].diskEncryptionKey.kmsKeySelfLink", None, LINK, config=OWN)
        for t in (GCP_TEMPLATE, GCP_REGION_TEMPLATE)
    ),
]  # fmt: skip


@pytest.mark.parametrize("case", ENCRYPTED, ids=str)
def test_every_disk_is_encrypted(case: Case) -> None:
    check(ENCRYPTION, case)


@pytest.mark.parametrize("type_", [INSTANCE, SPOT, CONFIGURATION, TEMPLATE])
def test_a_root_disk_that_is_not_named_is_as_its_image_has_it(type_: str) -> None:
    bare = cases.resource(type_, instanceType=UNKNOWN)
    (message,) = cases.violations(ENCRYPTION, bare)
    assert "as the image has it" in message
    assert cases.violations(ENCRYPTION, bare, account_default=True) == []
    assert cases.violations(ENCRYPTION, bare, account_default=True, customer_managed_key=True)


@pytest.mark.parametrize(
    ("type_", "props"),
    [
        (INSTANCE, {"launchTemplate": {"id": "lt-1"}}),  # its template says
        (TEMPLATE, {"blockDeviceMappings": [*MAPPED["blockDeviceMappings"], {"noDevice": "true"}]}),
        (CONFIGURATION, {**ROOT, "ebsBlockDevices": [{"deviceName": "b", "noDevice": True}]}),
        (DISK, {"size": 100}),  # Google encrypts it
        (GCP_INSTANCE, {"bootDisk": {}}),
    ],
)
def test_what_is_encrypted_elsewhere_passes(type_: str, props: dict[str, Any]) -> None:
    assert cases.found(ENCRYPTION, cases.resource(type_, **props)) == []


def test_an_account_that_encrypts_by_default_needs_not_say_it_and_may_not_say_no() -> None:
    for value, count in ((None, 0), (False, 1)):
        volume = cases.resource(VOLUME, encrypted=value)
        assert len(cases.violations(ENCRYPTION, volume, account_default=True)) == count


@pytest.mark.parametrize(
    "disk",
    [
        {"type": "SCRATCH", "diskType": "local-ssd"},
        {"source": "data"},
        {"diskEncryptionKey": {"rawKey": "mine"}},
    ],
)
def test_a_local_disk_and_one_with_a_key_of_its_own_need_no_key(disk: dict[str, Any]) -> None:
    assert cases.found(ENCRYPTION, cases.resource(GCP_TEMPLATE, disks=[disk]), **OWN) == []


def remedied(type_: str, props: dict[str, Any]) -> Any:
    assert ENCRYPTION.remedy
    return props if ENCRYPTION.remedy(type_, secrets_preserving_proxy(props), {}) else None


REMEDIED: list[tuple[str, dict[str, Any], dict[str, Any]]] = [
        (VOLUME, {"size": 1}, {"size": 1, "encrypted": True}),
        (VOLUME, {"encrypted": False}, {"encrypted": True}),
        (INSTANCE, {"ami": "a"}, {"ami": "a", "rootBlockDevice": {"encrypted": True}}),
        (INSTANCE, {"rootBlockDevice": {"volumeSize": 9}},
         {"rootBlockDevice": {"volumeSize": 9, "encrypted": True}}),
        (CONFIGURATION, {**ROOT, "ebsBlockDevices": [{"deviceName": "b"}]},
         {**ROOT, "ebsBlockDevices": [{"deviceName": "b", "encrypted": True}]}),
        (TEMPLATE, {"blockDeviceMappings": [{"ebs": {"encrypted": "false"}}, {"noDevice": "1"}]},
         {"blockDeviceMappings": [{"ebs": {"encrypted": "true"}}, {"noDevice": "1"}]}),
        (SPOT_FLEET, {"launchSpecifications": [{"rootBlockDevices": [{}]}]},
         {"launchSpecifications": [{"rootBlockDevices": [{"encrypted": True}]}]}),
]  # fmt: skip


@pytest.mark.parametrize(("type_", "props", "made"), REMEDIED)
def test_the_remedy_encrypts_what_is_there_and_a_root_disk(
    type_: str, props: dict[str, Any], made: dict[str, Any]
) -> None:
    assert remedied(type_, props) == made
    after = cases.resource(type_, **made)
    assert cases.found(ENCRYPTION, after) == []


@pytest.mark.parametrize(
    ("type_", "props"),
    [
        (VOLUME, {"encrypted": True}),
        (VOLUME, {"encrypted": "an unknown value's mark"}),
        (INSTANCE, {"rootBlockDevice": "an unknown value's mark"}),
        (INSTANCE, {"launchTemplate": {"id": "lt-1"}}),
        (TEMPLATE, {"blockDeviceMappings": "an unknown value's mark"}),
        (TEMPLATE, {"instanceType": "g6.xlarge"}),  # its root's name is its image's
        (DISK, {"size": 1}),
    ],
)
def test_the_remedy_leaves_what_is_right_and_what_is_not_known(
    type_: str, props: dict[str, Any]
) -> None:
    assert remedied(type_, props) is None


def test_what_was_secret_stays_secret() -> None:
    props = {"encrypted": Secret(False), "kmsKeyId": Secret(KEY)}
    made = remedied(VOLUME, props)
    assert isinstance(made["encrypted"], Secret)
    assert made["encrypted"].value is True
    assert isinstance(made["kmsKeyId"], Secret)


ATTACHED = {"disks": [{"boot": True, "autoDelete": True}, {"source": "data", "autoDelete": False}]}
KEPT = [
    Case(VOLUME, {"finalSnapshot": True}, "finalSnapshot", False, "finalSnapshot is false"),
    Case(VOLUME, {"finalSnapshot": True, "size": 1}, "finalSnapshot", None, "protect=True"),
    *(
        case
        for t in (DISK, REGION_DISK)
        for case in (
            Case(t, {"deletionPolicy": "PREVENT", "createSnapshotBeforeDestroy": False},
                 "deletionPolicy", "DELETE", "deletionPolicy is DELETE",
                 ("createSnapshotBeforeDestroy",)),
            Case(t, {"createSnapshotBeforeDestroy": True}, "createSnapshotBeforeDestroy", False,
                 "createSnapshotBeforeDestroy is false"),
        )
    ),
    *(
        Case(t, ATTACHED, "disks[1].autoDelete", bad, f"disks[1].autoDelete is {says}",
             ("disks[1].source", "disks[1].boot"))
        for t in (GCP_TEMPLATE, GCP_REGION_TEMPLATE)
        for bad, says in ((True, "true"), (None, "not set"))
    ),
]  # fmt: skip


@pytest.mark.parametrize("case", KEPT, ids=str)
def test_a_data_disk_in_production_survives(case: Case) -> None:
    check(DELETION_PROTECTION, case)
    for environment in ("dev", "staging"):
        bad = case.subject(DELETION_PROTECTION, cases.changed(case.good, case.path, case.bad))
        assert cases.found(DELETION_PROTECTION, bad, environment=environment) == []


@pytest.mark.parametrize("type_", [VOLUME, DISK, REGION_DISK])
def test_a_protected_resource_survives(type_: str) -> None:
    disk = cases.resource(type_, size=100)
    assert cases.violations(DELETION_PROTECTION, disk)
    assert cases.found(DELETION_PROTECTION, replace(disk, protect=True)) == []


@pytest.mark.parametrize(
    ("disk", "waits"),
    [
        ({"source": UNKNOWN, "autoDelete": False}, []),
        ({"source": UNKNOWN, "autoDelete": True}, ["disks[0].source"]),
        ({"source": UNKNOWN}, ["disks[0].source"]),
        ({"source": "data", "autoDelete": UNKNOWN}, ["disks[0].autoDelete"]),
    ],
)
def test_a_disk_that_is_kept_is_not_waited_for(disk: dict[str, Any], waits: list[str]) -> None:
    template = cases.resource(GCP_TEMPLATE, disks=[disk])
    assert cases.waits(DELETION_PROTECTION, template) == waits
    assert cases.violations(DELETION_PROTECTION, template) == []
